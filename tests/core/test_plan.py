"""The plan: checks, flags, warnings, its JSON form, and what it costs."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from baton_cli.core import tasks
from baton_cli.core.plan import Check, CheckSources, Plan, build, to_json
from tests.core.plans import NONE, PROJECT, keys_of, plan


def short(key: str) -> str:
    return key.split("#")[1]


def flags(text: str, **more: Any) -> dict[str, tuple[str, ...]]:
    return {short(one.key): one.flags for one in plan(text, **more).tickets}


def codes(made: Plan) -> list[tuple[str, int]]:
    return [(warning.code, warning.line) for warning in made.warnings]


TWO = "## 1. A\n- [ ] 1.1 a\n- [ ] 1.2 b\n## 2. B\n- [ ] 2.1 c\n- [ ] 2.2 d\n"


# Checks

EVERYWHERE = """## 1. A
- verify: `make section`
- [ ] 1.1 a
  - verify: `make one`
  - verify: make two
  - verify: `make one`
- [ ] 1.2 b
## 2. B
- [ ] 2.1 c
"""


def test_the_nearest_place_that_names_checks_wins() -> None:
    made = plan(EVERYWHERE, sources=CheckSources(None, ("make project",), ("make detected",), 60))
    assert [one.checks for one in made.tickets] == [
        (Check("make one", 60, "ticket"), Check("make two", 60, "ticket")),
        (Check("make section", 60, "section"),),
        (Check("make project", 60, "project"),),
    ]


@pytest.mark.parametrize(
    ("sources", "command", "source"),
    [
        (CheckSources(("c",), ("p",), ("d",), 5), "c", "change"),
        (CheckSources(None, ("p",), ("d",), 5), "p", "project"),
        (CheckSources(None, None, ("d",), 5), "d", "detected"),
    ],
)
def test_the_change_goes_before_the_project_and_that_before_what_is_detected(
    sources: CheckSources, command: str, source: str
) -> None:
    made = plan("- [ ] 1.1 a\n", sources=sources)
    assert [(check.command, check.source, check.timeout) for check in made.tickets[0].checks] == [(command, source, 5)]
    assert [code for code, _ in codes(made)] == (["checks_detected"] if source == "detected" else [])


@pytest.mark.parametrize("sources", [NONE, CheckSources(None, (), ("d",), 5), CheckSources((), ("p",), (), 5)])
def test_without_checks_a_ticket_is_flagged(sources: CheckSources) -> None:
    made = plan(TWO, sources=sources)
    assert {one.flags for one in made.tickets} == {("no_verification",)}
    assert codes(made) == [("no_check", 0)]


def test_single_tickets_without_checks_are_named() -> None:
    made = plan("## 1. A\n- verify: `x`\n- [ ] 1.1 a\n## 2. B\n- [ ] 2.1 b\n- [x] 2.2 c\n", sources=NONE)
    assert codes(made) == [("no_check", 5)]


def test_a_verify_bullet_that_is_no_command_is_reported() -> None:
    made = plan("- [ ] 1.1 a\n  - verify: `pytest` passes\n  - Verify: all pages load\n")
    assert codes(made) == [("verify_ignored", 2)]
    assert made.tickets[0].checks[0].source == "project"


def test_a_check_that_cannot_fail_is_reported_once_where_it_is_written() -> None:
    text = (
        "## 1. A\n- verify: `true`\n- [ ] 1.1 a\n- [ ] 1.2 b\n- [ ] 1.3 c\n  - verify: `a || true`\n  - verify: `b`\n"
    )
    assert codes(plan(text)) == [("check_cannot_fail", 1), ("check_cannot_fail", 5)]
    assert codes(plan(TWO, sources=CheckSources(None, ("echo ok", "x"), (), 9))) == [("check_cannot_fail", 0)]


# Flags


@pytest.mark.parametrize("mark", ["(manual)", "(human)", "(Manual)", "（人工）"])
def test_marked_tickets_are_for_people(mark: str) -> None:
    text = f"- [ ] 1.1 Ask the bank {mark}\n- [ ] 1.2 Ask the\n  bank again {mark}\n- [ ] 1.3 Add a `{mark}` mark\n"
    assert flags(text) == {"1.1": ("manual",), "1.2": ("manual",), "1.3": ()}
    assert codes(plan(text)) == [("manual", 1), ("manual", 2)]


def test_manual_wording_is_only_a_warning() -> None:
    text = "- [ ] 1.1 Manually test the dialog\n- [ ] 1.2 Add a manual page\n- [ ] 1.3 Click through (manual QA)\n"
    assert flags(text) == {"1.1": (), "1.2": (), "1.3": ()}
    assert codes(plan(text)) == [("manual_wording", 1), ("manual_wording", 3)]


def test_tickets_that_ask_to_edit_the_changes_folder_are_flagged() -> None:
    made = plan("- [ ] 1.1 Update tasks.md\n- [ ] 1.2 Record it\n  in `design.md`\n- [ ] 1.3 Follow design.md\n")
    assert [one.flags for one in made.tickets] == [("edits_change_folder",), ("edits_change_folder",), ()]
    assert codes(made) == [("edits_change_folder", 1), ("edits_change_folder", 2)]


def test_ambiguous_tickets_are_flagged_and_reported() -> None:
    made = plan(TWO, ambiguous=[1])
    assert made.tickets[1].flags == ("ambiguous",)
    assert codes(made) == [("ambiguous_identity", 3)]


def test_several_flags_come_in_a_fixed_order() -> None:
    text = "- [ ] 1.1 a\n- [ ] 1.2 Commit and push; update tasks.md (manual)\n"
    assert flags(text, sources=NONE, ambiguous=[1])["1.2"] == (
        "manual",
        "closing_check",
        "no_verification",
        "ambiguous",
    )


def test_done_tickets_give_no_warnings_but_keep_their_flags() -> None:
    made = plan("- [x] 1.1 a\n- [x] 1.2 Verify (manual)\n- [ ] 1.3 b\n", sources=CheckSources(None, None, ("d",), 5))
    assert made.tickets[1].flags == ("manual",)
    assert [code for code, _ in codes(made)] == ["checks_detected"]


def test_the_parsers_warnings_come_along_in_order_of_lines() -> None:
    made = plan("- [ ] 1.1 a (manual)\n- [ ] 1.1 b\n```\n- [ ] c\n```\n- [ ] d (manual)\n")
    assert codes(made) == [("manual", 1), ("duplicate_id", 2), ("box_in_fence", 4), ("manual", 6)]


# JSON


def test_the_json_form_is_exactly_the_documented_one() -> None:
    text = "# T\n## 1. Set-up\n- [x] 1.1 Do `it`\n  more\n  - [x] part\n## Notes\n## 2. End\n- [ ] Deploy (manual)\n"
    assert to_json(plan(text, change="add-x")) == {
        "schema": "baton.plan/1",
        "change": "add-x",
        "total": 3,
        "done": 2,
        "sections": [
            {
                "number": "1",
                "title": "Set-up",
                "tickets": [
                    {
                        "key": "add-x#1.1", "id": "1.1", "title": "Do `it`", "body": "  more\n  - [x] part",
                        "line": 3, "done": True, "checklist": [{"line": 5, "done": True, "text": "part"}],
                        "after": [], "verify": ["pytest -q"],
                        "source": "project", "flags": [],
                    }
                ],
            },
            {
                "number": "2",
                "title": "End",
                "tickets": [
                    {
                        "key": "add-x#L2", "id": None, "title": "Deploy (manual)", "body": "",
                        "line": 8, "done": False, "checklist": [],
                        "after": ["add-x#1.1"], "verify": ["pytest -q"], "source": "project", "flags": ["manual"],
                    }
                ],
            },
        ],
        "warnings": [{"code": "manual", "line": 8, "message": to_json(plan(text, change="add-x"))["warnings"][0]["message"]}],
    }  # fmt: skip


def test_a_ticket_without_checks_has_no_source() -> None:
    ticket = to_json(plan("- [ ] 1.1 a\n", sources=NONE))["sections"][0]["tickets"][0]
    assert (ticket["verify"], ticket["source"], ticket["flags"]) == ([], None, ["no_verification"])


# Cost, and the real world


def big(tickets: int, per_section: int, tail: str = "") -> tasks.Document:
    lines = []
    for at in range(tickets):
        if at % per_section == 0:
            lines.append(f"## {at // per_section + 1}. Part")
        lines.append(f"- [ ] Build the index of part {at} in `src/part.py` and keep it" + (tail if at > 3 else ""))
    return tasks.parse("\n".join(lines).encode())


def test_memory_does_not_grow_with_the_product_of_two_sections() -> None:
    document = big(20_000, 10_000)  # a hundred million edges, if they were made
    keys = [f"c#L{at}" for at in range(len(document.tickets))]
    tracemalloc.start()
    try:
        build("c", document, keys, sources=PROJECT)
        assert tracemalloc.get_traced_memory()[1] < 40_000_000
    finally:
        tracemalloc.stop()


def test_hostile_texts_make_a_plan() -> None:
    words = [
        "`" * 20_000,
        "(" * 20_000,
        "update in " * 3_000,
        "(after 1.1," * 2_000,
        "push " * 5_000,
        "archive the " * 2_000,
        "verify: " * 3_000,
    ]
    for word in words:
        plan(
            f"- [ ] 1.1 {word} tasks.md manual\n  - verify: {word}\n  - after: {word}\n  - verify: `{word.replace('`', ';')}`\n"
        )


def test_every_real_task_list_makes_a_plan(corpus: Path) -> None:
    manual, tickets = [], 0
    for file in sorted((corpus / "tasks").glob("*.md")):
        document = tasks.parse(file.read_bytes())
        made = build("c", document, keys_of(document, "c"), sources=PROJECT)
        assert json.loads(json.dumps(to_json(made)))["total"] == document.total
        tickets += len(made.tickets)
        manual += [one.ticket.title for one in made.tickets if "manual" in one.flags]
        position = {one.key: one.ticket.position for one in made.tickets}
        assert all(position[other] < one.ticket.position for one in made.tickets for other in one.after)
    assert tickets > 5000
    # looked at one by one: each of them archives, pushes, or opens or merges a pull request
    assert len(manual) == 17
