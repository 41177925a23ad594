"""The parts of `drive` one by one: its order, its calls of the controller, its lines and its picture."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from baton_cli.drive import groups, order
from baton_cli.drive.results import waiting_for
from baton_cli.errors import USAGE, BatonError
from baton_cli.views import live
from baton_cli.views.page import Page
from tests.kit import World, hand_outs, make_world

EVENT = {
    "event": "ended", "kind": "recover", "ticket": "grow#1.2", "title": "Lay\x1b[2J\u202ethe stone", "attempt": 2,
    "agent": "a", "state": "unknown", "detail": "why\nnot", "seconds": 65.0, "log": "/l/x.log",
}  # fmt: skip


@pytest.fixture
def world(tmp_path: Path) -> World:
    return make_world(tmp_path / "p")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [(None, None), ("90s", 90.0), ("90", 90.0), ("30m", 1800.0), ("1h30m", 5400.0), (" 2h ", 7200.0)],
)
def test_durations(text: str | None, seconds: float | None) -> None:
    assert order.seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "0", "0s", "soon", "-5s", "5d", "1m1h", "1.5h"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(BatonError) as caught:
        order.seconds(text)
    assert (caught.value.code, caught.value.exit_code) == ("bad_duration", USAGE)


def test_a_command_is_split_like_a_shell_and_found_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "my agent"
    own.write_text("#!/bin/sh\n")
    own.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    assert order.command("'./my agent' -p 'two words' $HOME") == (
        ("./my agent", "-p", "two words", "$HOME"),
        str(tmp_path / "my agent"),
    )
    assert os.path.isabs(order.command("sh -c true")[1])


@pytest.mark.parametrize("line", ["'", " ", "''", "/no/such/program -p", "no-such-program"])
def test_what_is_no_agent(line: str) -> None:
    with pytest.raises(BatonError) as caught:
        order.command(line)
    assert (caught.value.code, caught.value.exit_code) == ("bad_agent", USAGE)


def test_a_lease_is_renewed_once_a_quarter_of_it_is_over(world: World) -> None:
    action = hand_outs(world.actions())[0]

    def expires() -> str:
        with world.controller() as controls:
            assert controls.renew(action["assignment_id"], action["claim_token"])["state"] == "claimed"
        return str(world.ticket("1.1")["assignment"]["lease_expires_at"])

    begun, first = world.clock.seconds, expires()
    world.clock.seconds = begun + 1790
    assert expires() == first
    world.clock.seconds = begun + 1810
    assert expires() > first
    world.clock.seconds = begun + 7201  # beyond the first lease: still ours
    assert [item["ticket"] for item in hand_outs(world.actions("other"))] == ["grow#1.2"]
    with world.controller() as controls, pytest.raises(BatonError) as caught:
        controls.renew(action["assignment_id"], "no such token")
    assert caught.value.code == "stale_claim"


def test_a_renewal_after_the_end_says_where_it_stands(world: World) -> None:
    action = hand_outs(world.actions())[0]
    world.finish(action)
    with world.controller() as controls:
        assert controls.renew(action["assignment_id"], action["claim_token"])["state"] == "integrated"


def test_a_session_that_is_gone_gives_its_claims_back(world: World) -> None:
    given = hand_outs(world.actions("gone"))
    with world.controller() as controls:
        assert controls.release(world.change, "other") == 0
        assert controls.release(world.change, "gone") == 0
    again = hand_outs(world.actions("next"))
    assert [item["ticket"] for item in again] == [item["ticket"] for item in given]
    assert {item["attempt"] for item in again} == {2}


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs /proc")
def test_a_group_is_ended_with_its_family_and_nobody_else() -> None:
    """The child ignores SIGTERM, its own child left the session; a daemon that belongs to nobody stays."""
    code = """
import os, signal, subprocess, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
own = "setsid sh -c 'echo $$; exec sleep 1000 >/dev/null 2>&1' &"  # tells its pid when it has left the session
made = subprocess.run(["sh", "-c", own], stdout=subprocess.PIPE, text=True)
print(child.pid, made.stdout.strip(), flush=True)
signal.pause()
"""
    with subprocess.Popen(
        [sys.executable, "-S", "-c", code], stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as leader:
        assert leader.stdout is not None
        child, daemon = map(int, leader.stdout.readline().split())
        assert {leader.pid, child} <= groups.belonging(leader.pid, {}).keys()
        groups.end(leader.pid, hurry=lambda: True)
        assert not groups.belonging(leader.pid, {})
    running = {item.pid for item in groups.processes()}
    assert child not in running
    assert daemon in running
    os.kill(daemon, 9)


def test_lines_show_untrusted_text_literally() -> None:
    said = "".join(text for text, _ in live.line_of(EVENT))
    assert said == ("not done    1.2  Lay\\x1b[2J\\u202ethe stone  (1 min, attempt 2, again)  why not  log /l/x.log")
    assert "log" not in "".join(text for text, _ in live.line_of({**EVENT, "state": "integrated"}))


def test_the_picture_keeps_to_its_width() -> None:
    agent = {**EVENT, "said": "x\x1b[1m" * 80, "slot": 0}
    frame = {
        "change": "grow",
        "progress": {"total": 4, "integrated": 1, "external": 1, "waiting": 1},
        "running": [agent],
        "doing": "running pytest",
    }
    lines = ["".join(text for text, _ in line) for line in live.frame_lines(frame, Page(80, True))]
    assert lines[0].startswith("grow  ")
    assert lines[0].endswith("2 of 4 done, 1 running, 1 waiting")
    assert all(len(line) < 80 and "\x1b" not in line for line in lines)
    assert lines[2] == "  baton: running pytest"


def test_the_summary_says_what_is_next() -> None:
    action = {"kind": "blocked", "reason": "no_verification", "tickets": ["grow#1.1"], "detail": "d", "remedy": "r"}
    answer = {
        "state": "blocked", "progress": {"total": 2, "integrated": 1}, "started": 1, "integrated": 1, "attempts": 1,
        "seconds": 61.0, "actions": [action],
    }  # fmt: skip
    assert live.summary(answer) == (
        "blocked: 1 of 2 done (1 integrated, 1 agent run, 1 min)\n! no verification  1.1\n  d\n  -> r\n"
    )


def test_whom_a_drive_waits_for() -> None:
    entries = [{"ticket": "g#1.1", "state": "claimed", "agent": None, "session": "s"}, "and 3 more"]
    answer = {"actions": [{"kind": "wait", "reason": "agents are at work", "in_flight": entries}]}
    assert waiting_for(answer) == (
        "waiting: agents are at work: g#1.1 (claimed, session s), and 3 more"
        " (--session s goes on as that session, --no-wait ends here)"
    )
