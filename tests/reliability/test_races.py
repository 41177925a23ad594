"""Real processes at once: one answer for each question, one owner for each ticket, one merge for each piece of work."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from baton_cli import context as contexts
from baton_cli.controller import SessionController
from baton_cli.core.receipt import Authority
from baton_cli.errors import BatonError
from tests import figures, invariants
from tests.conftest import run_git, write_files
from tests.kit import MAIN, World, hand_outs, kinds, make_world, seal_key

FIVE = "## 1. Parts\n" + "".join(f"- [ ] 1.{number} Part {number}\n" for number in range(1, 6))
EIGHT = "## 1. Parts\n" + "".join(f"- [ ] 1.{number} Part {number}\n" for number in range(1, 9))
DAY = 24 * 3600  # seconds
# A start-up file of the process's own: what preloads a library to shift its clock can hang in the fork of a thread.
CLOCK = "import time\nreal = time.time\ntime.time = lambda: real() + {shift}\n"

pytestmark = pytest.mark.usefixtures("swift_git")


def begin(world: World, *words: str, token: str = "", **env: str) -> subprocess.Popen[str]:
    """One call of the command line, started and not waited for."""
    child = subprocess.Popen(
        [sys.executable, str(MAIN), *words, "--project", str(world.root), "--json"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **env},
    )  # fmt: skip
    assert child.stdin is not None
    child.stdin.write(token)
    child.stdin.flush()
    return child


def answers(children: Sequence[subprocess.Popen[str]]) -> list[Any]:
    """What they say, all of them well."""
    said = []
    for child in children:
        out, err = child.communicate(timeout=240)
        assert child.returncode == 0, out + err
        said.append(json.loads(out))
    return said


def settle(world: World, action: dict[str, Any]) -> subprocess.Popen[str]:
    words = ("reconcile", action["assignment_id"], "--token", "-", "--terminal", "completed")
    return begin(world, *words, token=action["claim_token"] + "\n")


def ready_to_merge(world: World, count: int) -> list[dict[str, Any]]:
    """So many tickets are sealed, none is reconciled."""
    handed: list[dict[str, Any]] = []
    for session in ("s1", "s2"):
        handed += hand_outs(world.actions(session))
    for action in handed[:count]:
        world.work(action)
        world.seal(action)
    return handed[:count]


def merges(world: World) -> Counter[str]:
    """Ticket -> how often it was merged."""
    shown = run_git(
        world.root, "log", "--first-parent", "--format=%(trailers:key=Baton-Ticket,valueonly)", world.integration
    )
    return Counter(line.split()[0] for line in shown.splitlines() if line)


def lines_client(world: World, session: str) -> subprocess.Popen[bytes]:
    """An MCP server that has been asked for actions, as bare lines."""
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "race", "version": "1"}}
    asked = {
        "name": "actions",
        "arguments": {"project_path": str(world.root), "feature": "grow", "session_id": session},
    }
    messages: list[dict[str, Any]] = [
        {"id": 0, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        {"id": 1, "method": "tools/call", "params": asked},
    ]
    child = subprocess.Popen(
        [sys.executable, str(MAIN), "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert child.stdin is not None
    for message in messages:
        child.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    child.stdin.flush()
    return child


def lines_answer(child: subprocess.Popen[bytes]) -> Any:
    assert child.stdout is not None
    for line in child.stdout:
        message = json.loads(line)
        if message.get("id") == 1:
            child.communicate()  # closes its input, and it ends
            assert not message["result"].get("isError"), message
            return json.loads(message["result"]["content"][0]["text"])
    raise AssertionError("the server ended without an answer")


@pytest.mark.parametrize("rounds", [1, pytest.param(10, marks=[pytest.mark.full, pytest.mark.timeout(1800)])])
def test_sessions_of_command_line_and_mcp_share_no_ticket(tmp_path: Path, rounds: int) -> None:
    pytest.importorskip("mcp", reason="the MCP server needs its extra")
    for number in range(rounds):
        world = make_world(tmp_path / str(number), FIVE)
        before = invariants.checkout(world.root)
        servers = [lines_client(world, f"mcp-{one}") for one in range(2)]
        children = [begin(world, "actions", "grow", "--session", f"cli-{one}", "--capacity", "2") for one in range(3)]
        said = [*answers(children), *map(lines_answer, servers)]
        owners = Counter(action["ticket"] for answer in said for action in hand_outs(answer))
        figures.add("mixed claim rounds", 1, int(len(owners) != 5 or set(owners.values()) != {1}))
        assert owners == Counter(f"grow#1.{ticket}" for ticket in range(1, 6))
        for answer in said:
            assert hand_outs(answer) or kinds(answer) == ["wait"], answer["actions"]
        invariants.check(world, before)


def test_the_same_notice_twice_at_once_is_one_merge_and_one_answer(tmp_path: Path) -> None:
    world = make_world(tmp_path / "p", FIVE)
    (action,) = ready_to_merge(world, 1)
    said = answers([settle(world, action) for _ in range(3)])
    # One that finds the lock busy says "sealed": queued behind the one that merges. Asked again, all say the same.
    assert {answer["state"] for answer in said} <= {"integrated", "sealed"}
    again = answers([settle(world, action)])
    assert again[0]["state"] == "integrated"
    assert merges(world) == {"grow#1.1": 1}
    invariants.check(world)


@pytest.mark.timeout(900)
def test_eight_notices_at_once_are_eight_ticks(tmp_path: Path) -> None:
    config = '[verify]\ncommands = ["test -f README"]\n[limits]\nparallel = 8\n'
    world = make_world(tmp_path / "p", EIGHT, config=config)
    before = invariants.checkout(world.root)
    sealed = ready_to_merge(world, 8)
    assert len(sealed) == 8
    answers([settle(world, action) for action in sealed])
    last = world.actions("s1")
    assert last["state"] == "complete", last["actions"]
    assert world.tasks.read_text().count("[x]") == 8
    assert set(merges(world).values()) == {1}
    invariants.check(world, before)


def test_two_changes_are_integrated_at_once_in_one_repository(tmp_path: Path) -> None:
    world = make_world(tmp_path / "p", "## 1. A\n- [ ] 1.1 One\n")
    write_files(world.root, {"openspec/changes/shrink/tasks.md": "## 1. B\n- [ ] 1.1 Other\n"})
    run_git(world.root, "add", "-A")
    run_git(world.root, "commit", "-q", "-m", "another change")
    other = World(world.root, "shrink", world.clock)
    both = [hand_outs(place.actions(place.change))[0] for place in (world, other)]
    for place, action in zip((world, other), both, strict=True):
        place.work(action)
        place.seal(action)
    answers([settle(world, action) for action in both])
    for place in (world, other):
        assert place.actions(place.change)["state"] == "complete"
        assert merges(place) == {f"{place.change}#1.1": 1}
        invariants.check(place)


def test_five_dead_sessions_give_back_what_they_held_with_their_work(tmp_path: Path) -> None:
    world = make_world(tmp_path / "p", FIVE)
    held = [hand_outs(world.actions(f"dead-{number}", capacity=1))[0] for number in range(5)]
    heads = {action["ticket"]: world.work(action) for action in held[:4]}
    write_files(Path(held[4]["cwd"]), {"not-committed.txt": "yet\n"})
    waiting = world.actions("alive")["actions"][0]
    assert (waiting["kind"], {entry["session"] for entry in waiting["in_flight"]}) == (
        "wait",
        {f"dead-{number}" for number in range(5)},
    )
    assert all(entry["since"] for entry in waiting["in_flight"])
    world.clock.seconds += 30 * 86400
    again = hand_outs(world.actions("alive"))
    assert [action["kind"] for action in again] == ["recover"] * 5
    for action in again:
        assert run_git(Path(action["cwd"]), "rev-parse", "HEAD") == heads.get(
            action["ticket"], run_git(world.root, "rev-parse", "main")
        )
    assert (Path(again[4]["cwd"]) / "not-committed.txt").read_text() == "yet\n"
    invariants.check(world)


def while_sealing(world: World, action: dict[str, Any], meanwhile: Callable[[], object]) -> str | None:
    """Seal, and do something else while its first check runs; the code of a refusal."""
    with contexts.opened(world.project, create=True, clock=world.clock) as surroundings:

        def tell(text: str) -> None:
            if text.startswith("checking"):
                meanwhile()

        try:
            SessionController(surroundings._replace(progress=tell)).seal(
                action["assignment_id"], Authority("key", key=seal_key(action))
            )
        except BatonError as error:
            return error.code
    return None


@pytest.mark.parametrize("take_over", [None, "s1"], ids=["expiry", "take-over"])
def test_a_seal_that_runs_keeps_its_claim(tmp_path: Path, take_over: str | None) -> None:
    world = make_world(tmp_path / "p", FIVE)
    action = hand_outs(world.actions("s1", capacity=1))[0]
    world.work(action)
    seen: list[Any] = []

    def meanwhile() -> None:
        world.clock.seconds += 0 if take_over else 5 * 3600
        seen.append(world.actions("s2", capacity=1, take_over=take_over))

    assert while_sealing(world, action, meanwhile) is None
    assert [item["ticket"] for item in hand_outs(seen[0])] == ["grow#1.2"], "the sealing one is not handed out"
    assert world.reconcile(action)["state"] == "integrated"
    invariants.check(world)


@pytest.mark.parametrize("take_over", [None, "s1"], ids=["expiry", "take-over"])
def test_a_seal_that_comes_after_is_refused(tmp_path: Path, take_over: str | None) -> None:
    world = make_world(tmp_path / "p", FIVE)
    action = hand_outs(world.actions("s1", capacity=1))[0]
    world.clock.seconds += 0 if take_over else 5 * 3600
    again = hand_outs(world.actions("s2", capacity=1, take_over=take_over))[0]
    world.work(action)
    with pytest.raises(BatonError) as caught:
        world.seal(action)
    assert caught.value.code == "stale_claim"
    world.seal(again)
    assert world.reconcile(again)["state"] == "integrated"
    invariants.check(world)


@pytest.mark.parametrize("jump", [-30 * 86400, -3600, 400 * 86400])
def test_the_clock_jumps_while_a_change_is_under_way(tmp_path: Path, jump: int) -> None:
    world = make_world(tmp_path / "p")
    action = hand_outs(world.actions("s1", capacity=1))[0]
    if jump < 0:
        world.work(action)
    world.clock.seconds += jump
    world.actions("s2", capacity=1)
    if jump < 0:
        world.seal(action)
        assert world.reconcile(action)["state"] == "integrated"
    world.clock.seconds -= jump
    for _ in range(6):
        world.run_to_end("s2")
        world.clock.seconds += 3 * 3600
    assert world.actions("s2")["state"] == "complete"
    invariants.check(world)


@pytest.mark.parametrize("days", [-400, 400])
def test_a_process_with_another_clock_spoils_nothing(tmp_path: Path, days: int) -> None:
    world = make_world(tmp_path / "p", FIVE)
    before = invariants.checkout(world.root)
    write_files(tmp_path, {"clock/sitecustomize.py": CLOCK.format(shift=days * DAY)})
    fake = {"PYTHONPATH": str(tmp_path / "clock")}
    (first,) = answers([begin(world, "actions", "grow", "--session", "s1", "--capacity", "1")])
    (second,) = answers([begin(world, "actions", "grow", "--session", "s2", "--capacity", "1", **fake)])
    one, two = hand_outs(first)[0], hand_outs(second)[0]
    same = one["assignment_id"] == two["assignment_id"]
    assert same == (days > 0), "a lease that ran out, by that clock, or another ticket"
    assert two["lease_expires_at"][:4] != one["lease_expires_at"][:4]
    world.work(two)
    answers([begin(world, "seal", two["assignment_id"], "--key", seal_key(two))])
    (settled,) = answers([settle(world, two)])
    assert settled["state"] == "integrated"
    invariants.check(world, before)
