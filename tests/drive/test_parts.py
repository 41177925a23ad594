"""The parts of `drive` one by one: its order, its calls of the controller, its lines and its picture."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from baton_cli.drive import groups, order
from baton_cli.drive.board import Board
from baton_cli.drive.child import Child
from baton_cli.drive.failing import Failing
from baton_cli.drive.results import waiting_for
from baton_cli.errors import USAGE, BatonError
from baton_cli.views import bottom, live
from baton_cli.views.bottom import erased
from baton_cli.views.ending import ending
from baton_cli.views.page import Page
from tests.kit import World, baton, hand_outs, make_world

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
        "ended": [],
        "doing": "running pytest",
    }
    lines = ["".join(text for text, _ in line) for line in live.frame_lines(frame, Page(80, True))]
    assert lines[0].startswith("grow  ")
    assert lines[0].endswith("2 of 4 done (1 ticked by hand), 1 running, 1 waiting")
    assert all(len(line) < 80 and "\x1b" not in line for line in lines)
    assert lines[2] == "  baton: running pytest"


def test_the_picture_counts_every_ticket_once() -> None:
    """Agents that run, those whose work is not decided yet, and what others hold; and what Baton does with which ticket."""
    agents = [{**EVENT, "ticket": f"grow#1.{number}", "said": "", "well": number != 4} for number in range(1, 5)]
    frame = {
        "change": "grow",
        "progress": {
            "total": 12,
            "integrated": 2,
            "skipped": 1,
            "in_flight": 6,
            "ready": 1,
            "waiting": 1,
            "blocked": 1,
        },
        "running": agents[:1],
        "ended": agents[1:],
        "doing": "checking grow#1.2: make test",
    }
    lines = ["".join(text for text, _ in line) for line in live.frame_lines(frame, Page(160, True))]
    words = "3 of 12 done (1 skipped), 1 running, 2 to be checked, 3 more in flight, 1 ready, 1 waiting, 1 blocked"
    assert lines[0].endswith(f"  {words}")
    counts = [int(word) for word in words.replace("of 12", "").replace("(1 skipped)", "").split() if word.isdecimal()]
    assert sum(counts) == 12
    assert [line.rpartition(", ")[2] for line in lines[2:5]] == ["being checked", "to be checked", "failed"]
    assert lines[5] == "  baton: checking 1.2: make test"


def test_an_ended_agent_is_pictured_until_it_is_certain_what_it_came_to(tmp_path: Path) -> None:
    board, child = Board("grow"), _child("1.1", tmp_path)
    board.progress({"total": 2, "integrated": 0, "in_flight": 1, "ready": 1})
    board.started(child)
    assert [len(board.frame()[name]) for name in ("running", "ended")] == [1, 0]
    child.code = 0
    assert [len(board.frame()[name]) for name in ("running", "ended")] == [0, 1]
    board.decided(child)
    board.integrated()
    frame = board.frame()
    assert [len(frame[name]) for name in ("running", "ended")] == [0, 0]
    assert frame["progress"] == {"total": 2, "integrated": 1, "in_flight": 0, "ready": 1}


def _child(ticket: str, place: Path, code: int | None = None, seconds: float = 0.0) -> Child:
    """An agent that was never started, as if it had run so long."""
    action = {"kind": "dispatch", "ticket": f"grow#{ticket}", "title": "t", "attempt": 1, "assignment_id": ticket}
    child = Child(action, agent=f"drive-{ticket}", slot=0, log=place / "log", on_end=lambda _child: None)
    child.code = code
    child.begun -= seconds
    return child


@pytest.mark.parametrize(
    ("runs", "found"),
    [
        ([("1.1", 2, 0), ("1.2", 2, 0), ("1.3", 2, 0)], True),
        ([("1.1", 2, 0), ("1.2", 2, 0), ("1.1", 2, 0)], True),
        ([("1.1", 2, 0), ("1.2", 2, 0)], False),  # two may be chance
        ([("1.1", 2, 0), ("1.1", 2, 0), ("1.1", 2, 0), ("1.1", 2, 0)], False),  # one ticket
        ([("1.1", 2, 0), ("1.2", 1, 0), ("1.3", 2, 0)], False),  # not alike
        ([("1.1", 2, 0), ("1.2", 2, 0), ("1.4", 0, 0), ("1.3", 2, 0)], False),  # one ended well
        ([("1.1", 2, 0), ("1.2", 2, 60), ("1.3", 2, 0)], False),  # one worked
        ([("1.1", 2, 0), ("1.2", 2, 0), ("2.1", 2, 0)], False),  # one has committed something
        ([("1.4", 0, 60), ("1.1", 1, 0), ("1.2", 1, 0), ("1.3", 1, 0)], True),  # it worked, and works no more
    ],
)
def test_when_the_command_itself_does_not_work(runs: list[tuple[str, int, float]], found: bool, tmp_path: Path) -> None:
    failing = Failing(lambda ticket: ticket == "grow#2.1")
    children = [_child(ticket, tmp_path, code, seconds) for ticket, code, seconds in runs]
    for child in children:
        failing.add(child)
    assert failing.found == found
    assert failing.excuses(children[-1]) == found


def test_the_end_says_how_the_change_stands_then_what_this_run_did() -> None:
    action = {
        "kind": "complete", "integration_branch": "baton/grow/integration", "integration_head": 40 * "a", "then": "land",
    }  # fmt: skip
    answer = {
        "state": "complete", "progress": {"total": 12, "integrated": 8, "skipped": 2, "external": 1, "attested": 1},
        "started": 4, "integrated": 3, "attempts": 5, "seconds": 61.0, "actions": [action],
    }  # fmt: skip
    assert ending(answer) == (
        "complete: 12 of 12 done (1 ticked by hand, 1 attested, 2 skipped)\n"
        "  this run: 3 integrated, 5 agent runs on 4 tickets, 1 min\n"
        "  on baton/grow/integration at aaaaaaaaaaaa\n"
        "  -> land\n"
    )


def test_the_end_says_first_what_needs_a_person_then_what_to_do_and_details_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    world = make_world(
        tmp_path / "q", "## 1. S\n- [ ] 1.1 Ask the owner (manual)\n- [ ] 1.2 Build\n- [ ] 1.3 Build on\n"
    )
    config = world.root / "baton.toml"
    config.write_text(config.read_text() + "[limits]\nattempts = 1\n")
    for action in hand_outs(world.actions()):
        world.reconcile(action, "failed", note="it broke")
    blocked = world.actions()["actions"]
    answer = {
        "state": "blocked", "progress": world.status()["progress"], "started": 2, "integrated": 0, "attempts": 2,
        "seconds": 3.0, "actions": blocked,
    }  # fmt: skip
    said = ending(answer, world.status(), "baton")
    wanted = [
        "blocked: 0 of 3 done\n", "! 1.1 ", "manual\n", "done 'grow#1.1'", "! 1.2 ", "exhausted after attempt 1\n", "! 1.3 ",
        "retry 'grow#1.2'", "retry 'grow#1.3'", "  1.2 1.3: its agent ended (failed) with nothing committed; noted: it broke\n",
    ]  # fmt: skip
    places = [said.index(words) for words in wanted]
    assert places == sorted(places), said
    assert said.count("it broke") == 1
    assert said.count("\n") < 30


def test_the_end_of_a_paused_change_says_so_once(tmp_path: Path) -> None:
    world = make_world(tmp_path / "q")
    world.actions("other", 1)
    assert baton(world.root, "pause", world.change, "--why", "lunch").returncode == 0
    for action in world.status()["sections"][0]["tickets"]:
        if action.get("assignment"):
            baton(world.root, "abandon", action["id"], "--why", "lunch")
    answer = {
        "state": "blocked", "progress": world.status()["progress"], "started": 0, "integrated": 0, "attempts": 0,
        "seconds": 0.0, "actions": world.actions()["actions"],
    }  # fmt: skip
    assert answer["actions"][0]["reason"] == "paused"
    assert ending(answer, world.status(), "baton").count("! paused") == 1


def test_a_narrower_terminal_has_broken_the_lines_that_are_erased() -> None:
    assert erased([], 80) == ""
    assert erased([99, 40, 0], 100).count("\x1b[1A\x1b[2K") == 3
    assert erased([99, 40, 0], 50).count("\x1b[1A\x1b[2K") == 4
    assert erased([99, 40, 0], 20).count("\x1b[1A\x1b[2K") == 8


def test_the_picture_is_drawn_below_what_was_said_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(bottom, "BEAT", 1000.0)
    with bottom.Bottom(lambda paper: [[("x" * (paper.width - 1), "")]]) as picture:
        picture.say([("one", "")])
        monkeypatch.setenv("COLUMNS", "40")
        picture.say([("two", "")])
    said = capsys.readouterr().out
    parts = said[said.index("one") :].split("two")
    assert parts[0].endswith("x" * 99 + "\n\x1b[?2026l\x1b[?2026h\r\x1b[2K" + "\x1b[1A\x1b[2K" * 3)
    assert parts[1] == "\n" + "x" * 39 + "\n\x1b[?2026l\r\x1b[2K\x1b[1A\x1b[2K\x1b[?25h"


def test_whom_a_drive_waits_for() -> None:
    entries = [{"ticket": "g#1.1", "state": "claimed", "agent": None, "session": "s"}, "and 3 more"]
    answer = {"change": "g", "actions": [{"kind": "wait", "reason": "agents are at work", "in_flight": entries}]}
    assert waiting_for(answer) == (
        "waiting: agents are at work: g#1.1 (claimed, session s), and 3 more"
        " (--session s goes on as that session, --no-wait ends here)"
    )
