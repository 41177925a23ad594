"""The queue view, line by line: what it says, what it leaves out, and that it stays inside the page."""

from __future__ import annotations

import re
from typing import Any

import pytest
from rich.cells import cell_len

from baton_cli.core.actions import iso
from baton_cli.views.page import Page, page
from baton_cli.views.queue import LINES, queue_view
from tests.views.samples import NOW, change, dark_mode, held, large, section, status, ticket


def view(*changes: dict[str, Any], width: int = 80, unicode: bool = True, colour: bool = False) -> str:
    return queue_view(status(*changes), now=NOW, colour=colour, width=width, unicode=unicode)


def overlong(text: str, width: int) -> list[str]:
    return [line for line in text.splitlines() if cell_len(line) > width]


def test_at_80_columns() -> None:
    assert view(dark_mode()) == (
        "add-dark-mode  11 of 18 tickets done  ━━━━━━━━━━━━━━━━━━────────────\n"
        "  1 needs a person, 2 in flight, 1 ready, 3 waiting\n"
        "  baton/add-dark-mode/integration 4f2a91c, for main\n"
        "\n"
        "  ! 3.2  Document the flag    exhausted after attempt 3\n"
        "         `pytest -q` exited with 1 (log logs/3.2-3.log)\n"
        "         -> when what stopped it is mended: baton retry 'add-dark-mode#3.2'\n"
        "            or commit a repair in its worktree, which explain names, then:\n"
        "            baton seal 'add-dark-mode#3.2' --operator --why '...'\n"
        "\n"
        "  ● 3.1  Persist the choice   running 12 min\n"
        "         child-7b3f, attempt 2, last sign 40 s ago, lease 1 h 48 m\n"
        "  ◐ 3.3  Toggle in settings   sealed, to be integrated\n"
        "         child-91aa, attempt 1\n"
        "\n"
        "  ✓ 1-2  Foundations, Tokens  11 done\n"
        "    3    Settings             0 of 5 done, 1 blocked, 2 in flight\n"
        "  ○ 3.4  Keyboard short cut   ready\n"
        "  ◌ 3.5  Verify both themes   waits for the others (3.2 exhausted)\n"
        "  ◌ 4    Rollout              2 tickets wait for section 3 (3.2 exhausted)\n"
    )


def test_at_200_columns_a_ticket_in_flight_is_one_line() -> None:
    text = view(dark_mode(), width=200)
    assert text.splitlines()[0].endswith("3 waiting  baton/add-dark-mode/integration 4f2a91c, for main")
    assert (
        "  ● 3.1  Persist the choice   running                   child-7b3f  attempt 2  12 min, last sign 40 s ago"
        "  lease 1 h 48 m\n"
    ) in text
    assert "exhausted after attempt 3: `pytest -q` exited with 1 (log logs/3.2-3.log)\n" in text
    assert not overlong(text, 200)


@pytest.mark.parametrize("width", [40, 60, 80, 100, 140, 200])
@pytest.mark.parametrize("unicode", [True, False])
def test_only_remedies_may_be_wider_than_the_page(width: int, unicode: bool) -> None:
    for text in (view(dark_mode(), width=width, unicode=unicode), view(large(), width=width, unicode=unicode)):
        assert [line for line in overlong(text, width) if "baton " not in line and "(or " not in line] == []


def test_no_escape_byte_without_colour_and_few_colours_with_it() -> None:
    plain, coloured = view(dark_mode()), view(dark_mode(), colour=True)
    assert "\x1b" not in plain
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain
    assert set(re.findall(r"\x1b\[([0-9;]*)m", coloured)) <= {"0", "1", "2", "31", "32", "33", "1;31", "1;32"}


def test_colour_is_the_callers_decision(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" in view(dark_mode(), colour=True)
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b" not in view(dark_mode())


def test_ascii() -> None:
    text = view(dark_mode(), large(), unicode=False)
    assert text.isascii()
    assert "##.." in text
    assert "  * 3.1  Persist the choice" in text


@pytest.mark.parametrize(("sections", "size"), [(10, 30), (1, 300), (100, 3), (3, 100), (300, 1)])
@pytest.mark.parametrize("width", [80, 200])
def test_a_large_plan_stays_readable(sections: int, size: int, width: int) -> None:
    parts = []
    for at in range(1, sections + 1):
        name = str(at)
        parts.append(section(name, f"Part {at}", *(ticket(f"{at}.{n}", "Do it", "ready") for n in range(1, size + 1))))
    parts[-1]["tickets"][-1] |= {"status": "in_flight", "assignment": held(agent="child-last")}
    text = view(change(*parts), width=width)
    assert len(text.splitlines()) <= LINES
    assert "child-last" in text
    hidden = 299 - text.count("  ready\n")
    assert sum(int(number) for number in re.findall(r"(\d+) (?:more )?ready", text.split("\n\n", 1)[1])) == hidden


def test_waiting_sections_in_a_row_are_folded() -> None:
    lines = view(large()).splitlines()
    assert "           and 7 more ready" in lines
    assert lines[-2:] == ["  ◌ 7      Part 7                           30 tickets wait for section 6",
                          "           and 3 more sections: 90 waiting"]  # fmt: skip
    assert len(lines) <= LINES


def test_work_on_a_text_that_is_another_one_now_is_named() -> None:
    reworded = {**ticket("1.1", "a", "integrated"), "evidence": {"reworded": True}}
    same = {**ticket("1.2", "b", "integrated"), "evidence": {"reworded": False}}
    assert "\n  1.1 reworded after the merge: baton audit does not count that\n" in view(
        change(section("1", "A", reworded, same))
    )
    assert "reworded" not in view(change(section("1", "A", same)))


def test_several_changes_share_the_page() -> None:
    done = change(
        section("1", "Ground", ticket("1.1", "a", "integrated"), ticket("1.2", "b", "skipped")), name="old-one"
    )
    broken = {
        "change": "odd-one",
        "error": {"code": "plan_cycle", "message": "1.1 waits for itself", "hint": "take it out of tasks.md"},
    }
    text = view(large(), dark_mode(), done, broken)
    assert len(text.splitlines()) <= LINES
    assert "baton retry 'add-dark-mode#3.2'\n" in text
    assert "old-one  2 of 2 tickets done  ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━  1 skipped\n" in text
    assert (
        "  complete -> baton land old-one\n              commit the ticks, then: openspec archive old-one\n"
    ) in text
    assert text.endswith(
        "\n\n! odd-one  its plan cannot be read\n  1.1 waits for itself\n  -> take it out of tasks.md\n"
    )


def test_no_change_and_a_change_not_run_yet() -> None:
    text = view()
    assert text.startswith("no change in openspec/changes\n  project /home/ada/app\n")
    fresh = change(
        section("1", "Ground", ticket("1.1", "Dig", "ready"), ticket("1.2", "Fill", "ready")),
        section("2", "Roof", ticket("2.1", "Tile", "waiting", waits_for=["1.1", "1.2"])),
        started=False,
    )
    assert view(fresh) == (
        "add-dark-mode  0 of 3 tickets done  ────────────────────────  2 ready, 1 waiting\n"
        "\n"
        '  not started: tell an agent session "run baton on add-dark-mode", or: baton\n'
        "  drive add-dark-mode --agent CMD\n"
        "\n"
        "    1    Ground            0 of 2 done\n"
        "  ○ 1.1  Dig               ready\n"
        "  ○ 1.2  Fill              ready\n"
        "  ◌ 2    Roof              1 ticket waits for section 1\n"
    )
    assert "no tickets in tasks.md" in view(change())


def test_nothing_runs() -> None:
    started = change(section("1", "Ground", ticket("1.1", "Dig", "ready")))
    assert "  nothing runs now; 1 ticket can begin with the next session or drive\n" in view(started)
    paused = change(section("1", "Ground", ticket("1.1", "Dig", "ready")), paused="ada: look first")
    text = view(paused)
    assert "  ! paused\n         ada: look first\n         -> baton resume add-dark-mode\n" in text
    assert "nothing runs" not in text


def test_every_reason_has_its_remedy_and_long_lists_are_cut() -> None:
    stuck = [ticket(f"1.{n}", f"Call {n}", "blocked", reason="manual") for n in range(1, 30)]
    bare = ticket("2.1", "Bare", "blocked", reason="no_verification")
    stop = {"reason": "integration_moved", "tickets": [], "detail": "somebody moved it", "remedy": "move it back"}
    value = change(section("1", "Calls", *stuck), section("2", "Rest", bare))
    value["attention"].append(stop)
    text = view(value)
    assert "and 25 more manual: 1.5 1.6 " in text
    assert (
        "          -> do it by hand, then (the same for 26 more):\n"
        "             baton done 'add-dark-mode#1.1' --why '...'\n"
        "             baton done 'add-dark-mode#1.2' --why '...'\n"
        "             baton done 'add-dark-mode#1.3' --why '...'\n"
        "             or: baton skip 'add-dark-mode#1.1' --why '...'\n"
    ) in text
    assert "write\n" in text
    assert "  ! integration moved\n          somebody moved it\n          -> move it back\n" in text
    value["attention"] = []
    assert "  ! 2.1   Bare              no verification\n" in view(value)


def test_commands_are_never_broken() -> None:
    value = dark_mode()
    command = "/home/ada/a folder of some length/bin/baton"
    value["attention"][0]["steps"] = [
        {"say": "see `baton explain`, then:", "run": [f"'{command}' retry add-dark-mode#3.2"]},
        {"say": "or repair it", "run": []},
    ]
    assert f"            '{command}' retry add-dark-mode#3.2\n            or repair it\n" in view(value, width=60)


def test_in_flight_in_every_state() -> None:
    states = {
        "sealed": "sealed, to be integrated", "conflicted": "merge conflict, to be resolved",
        "rejected": "rejected by the gate, to be repaired", "unknown": "to be taken up again (lease expired)",
    }  # fmt: skip
    tickets = [
        ticket(f"1.{n}", "Work", "in_flight", assignment=held(state, reason="lease_expired", detail=f"why {state}"))
        for n, state in enumerate(states, 1)
    ]
    late = held(agent=None, lease_expires_at=iso(NOW - 300), last_evidence_at=iso(NOW - 720))
    tickets.append(ticket("1.5", "Late", "in_flight", assignment=late))
    tickets.append(ticket("1.6", "Ticked", "external", assignment=held()))
    for width in (80, 200):
        text = view(change(section("1", "All", *tickets)), width=width)
        for state, said in states.items():
            assert said in text
            assert f"why {state}\n" in text
        assert "session s-20" in text
        assert "no sign yet" in text
        assert "lease ran out 5 min ago" in text
        assert "running (ticked by hand)" in text
        assert text.index("Late") < text.index("why sealed")  # agents at work come first


def test_many_in_flight() -> None:
    tickets = [ticket(f"1.{n}", "Work", "in_flight", assignment=held("sealed")) for n in range(40)]
    text = view(change(section("1", "All", *tickets)))
    assert "and 30 more in flight: 1.10 1.11 " in text


def test_what_a_ticket_waits_for() -> None:
    ground = [ticket(f"1.{n}", "Dig", "ready") for n in (1, 2, 3)]
    rest = [
        ticket("2.1", "One", "waiting", waits_for=["1.1"]),
        ticket("2.2", "All", "waiting", waits_for=["1.1", "1.2", "1.3"]),
        ticket("2.3", "Many", "waiting", waits_for=["1.1", "1.2"], waits_for_more=7),
        ticket("2.4", "Now", "ready"),
    ]
    last = ticket("3.1", "End", "waiting", waits_for=["2.1"])
    sections = (section("1", "Ground", *ground), section(None, "Walls", *rest), section("3", "Roof", last))
    text = view(change(*sections))
    assert "2.1  One               waits for 1.1\n" in text
    assert "2.2  All               waits for section 1\n" in text
    assert "2.3  Many              waits for 1.1 1.2 and 7 more\n" in text
    assert "3    Roof              1 ticket waits for 2.1\n" in text
    rest[1] |= {"flags": ["closing_check"], "waits_for": [f"add-dark-mode#2.{n}" for n in (1, 3, 4)]}
    assert "2.2  All               waits for the others (closing check)\n" in view(change(*sections))
    last["waits_for"] += ["add-dark-mode#2.2"]
    assert '1 ticket waits for "Walls"\n' in view(change(*sections))


def test_finished_sections_say_what_was_not_proved() -> None:
    value = change(
        section("1", "A", ticket("1.1", "a", "integrated"), ticket("1.2", "b", "external")),
        section(None, "B", ticket("2.1", "c", "attested"), ticket("2.2", "d", "skipped")),
        section("3", "C", ticket("3.1", "e", "ready")),
    )
    assert "  ✓      A, B              4 done (1 ticked by hand, 1 attested, 1 skipped)\n" in view(value)


def test_hostile_and_wide_texts() -> None:
    wild = "\x1b]0;gone\x07 [bold red]x[/] [link=http://x]y[/link] :boom: \u202e"
    value = change(
        section(
            "1",
            "基础 [red]",
            ticket("1.1", wild, "ready"),
            ticket("1.2", "日本語のタイトルはとても長い" * 9, "ready"),
            ticket("1.3", "👩‍🚀 to the moon ❤️", "ready"),
            ticket("1.4", "x" * 10_000, "in_flight", assignment=held(agent=wild, detail=wild)),
        )
    )
    for colour in (False, True):
        for unicode in (False, True):
            text = view(value, width=140, colour=colour, unicode=unicode)
            bare = re.sub(r"\x1b\[[0-9;]*m", "", text)
            assert "\\x1b]0;gone\\x07 [bold red]x[/] [link=http://x]y[/link]" in bare
            assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", bare)
            assert not overlong(bare, 140)
            ready = [line for line in bare.splitlines() if line.endswith("  ready")]
            assert len({cell_len(line) for line in ready}) == 1  # the last column begins at the same cell


def test_page_asks_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LC_ALL", "LC_CTYPE", "LANG", "TERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "91")
    assert page(None, None).width == 91
    assert page(3, True) == Page(40, True)
    monkeypatch.setenv("LANG", "C")
    assert page(80, None).unicode is False
    monkeypatch.setenv("LANG", "C.UTF-8")
    monkeypatch.setenv("TERM", "dumb")
    assert page(80, None).unicode is False


def test_bar_is_full_only_at_the_end() -> None:
    paper = Page(80, True)
    assert [text for text, _ in paper.bar(0, 300, 10)] == ["", "─" * 10]
    assert [text for text, _ in paper.bar(1, 300, 10)] == ["╸", "─" * 9]
    assert [text for text, _ in paper.bar(299, 300, 10)] == ["━" * 9 + "╸", ""]
    assert [text for text, _ in paper.bar(300, 300, 10)] == ["━" * 10, ""]
    assert paper.bar(0, 0, 4)[1][0] == "─" * 4
    assert [text for text, _ in Page(80, False).bar(299, 300, 10)] == ["#" * 9, "."]


def test_many_changes_are_a_line_each_unless_something_happens_in_them() -> None:
    def small(name: str, status: str) -> dict[str, Any]:
        return change(section("1", "A", ticket("1.1", "a", "integrated"), ticket("1.2", "b", status)), name=name)

    broken = {
        "change": "odd-one",
        "error": {"code": "plan_cycle", "message": "1.1 waits for itself", "hint": "undo it"},
    }
    done = [small(f"done-{n}", "integrated") for n in range(3)]
    waiting = [small(f"idle-{n:02}", "ready") for n in range(30)]
    text = view(*done, *waiting, dark_mode(), broken)
    lines = text.splitlines()
    assert lines[0] == "35 changes  47 of 84 tickets done  2 need a person, 2 in flight, 31 ready, 3 wa…"
    assert "  ! 3.2  Document the flag    exhausted after attempt 3" in lines
    assert "! odd-one  its plan cannot be read" in lines
    assert "  idle-00     1 of 2     ━━━━━─────  1 ready" in lines
    assert lines[-1] == "  and 13 more, 3 of them complete"
    assert len(lines) <= LINES
    assert [line for line in overlong(text, 80) if "baton " not in line] == []
    assert "  done-1      2 of 2     ━━━━━━━━━━  complete" in view(*done, *waiting[:4]).splitlines()


def test_a_page_of_few_lines() -> None:
    assert len(view(large(), width=100).splitlines()) > 30
    text = queue_view(status(large()), now=NOW, colour=False, width=100, unicode=True, lines=20)
    assert len(text.splitlines()) <= 20
    assert "child-0" in text


def test_what_baton_itself_does_just_now() -> None:
    doing = {"prepare": "being set up", "seal": "being sealed", "integrate": "being integrated"}
    tickets = [
        ticket(f"1.{n}", "Work", "in_flight", assignment=held(busy={"with": what, "since": iso(NOW - 31)}))
        for n, what in enumerate(doing, 1)
    ]
    moment = held("unknown", reason="no_receipt", busy={"with": "seal", "since": iso(NOW)})
    tickets.append(ticket("1.4", "Moment", "in_flight", assignment=moment))
    text = view(change(section("1", "All", *tickets)), width=120)
    assert [said for said in doing.values() if f"{said} 31 s" in text] == list(doing.values())
    assert "to be taken up again (no receipt)" in text


def test_an_agent_that_its_drive_has_yet_to_settle_is_not_running() -> None:
    gone = held(agent="drive-7-1", gone="agent")
    checked = held(agent="drive-7-2", gone="agent", busy={"with": "seal", "since": iso(NOW - 31)})
    tickets = [ticket("1.1", "A", "in_flight", assignment=gone), ticket("1.2", "B", "in_flight", assignment=checked)]
    text = view(change(section("1", "All", *tickets)), width=120)
    assert "its agent has ended, to be checked" in text
    assert "being sealed 31 s" in text
    assert "running" not in text


def test_a_name_with_brackets_is_still_a_name() -> None:
    """Nothing is read out of a key."""
    first = ticket("1.1", "Dig", "blocked", "add (v2)", reason="manual")
    rest = [ticket(f"2.{n}", "Lay", "waiting", "add (v2)", waits_for=["1.1"]) for n in (1, 2)]
    value = change(section("1", "Ground", first), section("2", "Walls", *rest), name="add (v2)")
    assert "2 tickets wait for 1.1 (1.1 manual)" in view(value, width=120)


def test_commands_are_as_baton_is_called() -> None:
    finished = change(section("1", "Ground", ticket("1.1", "Dig", "integrated")))
    fresh = change(section("1", "Ground", ticket("1.1", "Dig", "ready")), started=False, name="new")
    paused = change(section("1", "Ground", ticket("1.1", "Dig", "ready")), paused="ada: later", name="old")
    text = queue_view(
        status(finished, fresh, paused), now=NOW, colour=False, width=120, unicode=True, command="./baton"
    )
    for words in ("./baton land add-dark-mode", "./baton drive new", "./baton resume old"):
        assert words in text
    assert not re.search(r"(?<!/)baton (land|drive|resume)", text)
    assert "./baton plan NAME" in queue_view({"changes": []}, now=NOW, colour=False, width=120, command="./baton")


def test_landed_work_is_shown_where_it_is() -> None:
    value = change(section("1", "Ground", ticket("1.1", "Dig", "integrated")), landed="main")
    text = view(value)
    assert "complete, on main -> with the ticks in tasks.md committed: openspec archive add-dark-mode\n" in text
    assert "integration" not in text


def test_of_many_reasons_to_wait_two_are_told_and_the_rest_counted() -> None:
    stuck = [ticket(f"1.{n}", "Stuck", "blocked", reason="manual") for n in range(1, 5)]
    waits = ticket("2.1", "After", "waiting", waits_for=[f"1.{n}" for n in range(1, 5)])
    text = view(change(section("1", "One", *stuck), section("2", "Two", waits)), width=120)
    assert "(1.1 manual; 1.2 manual; 2 more)" in text
