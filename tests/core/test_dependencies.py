"""What waits for what, and the errors in it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baton_cli.errors import BatonError
from tests.core.plans import plan


def flags(text: str, **more: Any) -> dict[str, tuple[str, ...]]:
    return {short(one.key): one.flags for one in plan(text, **more).tickets}


def edges(text: str, **more: Any) -> dict[str, str]:
    return {short(one.key): " ".join(map(short, one.after)) for one in plan(text, **more).tickets}


def short(key: str) -> str:
    return key.split("#")[1]


def refused(text: str, code: str) -> str:
    with pytest.raises(BatonError) as caught:
        plan(text)
    assert caught.value.code == code
    assert "\n" not in caught.value.message
    assert caught.value.hint
    return caught.value.message


TWO = "## 1. A\n- [ ] 1.1 a\n- [ ] 1.2 b\n## 2. B\n- [ ] 2.1 c\n- [ ] 2.2 d\n"


def test_a_section_waits_for_the_one_before_and_is_parallel_within() -> None:
    assert edges(TWO) == {"1.1": "", "1.2": "", "2.1": "1.1 1.2", "2.2": "1.1 1.2"}


def test_sections_without_tickets_are_passed_over_and_numbers_do_not_order() -> None:
    text = "- [ ] first\n## 7. A\n- [ ] 7.1 a\n## Notes\nprose\n## 3. B\n- [ ] 3.1 b\n"
    assert edges(text) == {"L1": "", "7.1": "L1", "3.1": "7.1"}


def test_skipped_tickets_stand_in_nobodys_way() -> None:
    assert edges(TWO, skipped=["1.1"])["2.1"] == "1.2"
    three = TWO + "## 3. C\n- [ ] 3.1 e\n- [ ] 3.2 Verify f\n"
    assert edges(three, skipped=["2.1", "2.2"])["3.1"] == "1.1 1.2"
    assert edges(three, skipped=["3.1"])["3.2"] == "2.1 2.2"


def test_sequential_sections_are_chains() -> None:
    text = TWO.replace("2.2 d", "2.2 d\n- [ ] 2.3 e")
    assert edges(text, within_section="sequential") == {
        "1.1": "",
        "1.2": "1.1",
        "2.1": "1.1 1.2",
        "2.2": "2.1",
        "2.3": "2.2",
    }
    assert edges(text, within_section="sequential", skipped=["2.2"])["2.3"] == "2.1"


def test_in_a_chain_a_ticket_that_left_the_barrier_behind_takes_nobody_with_it() -> None:
    text = TWO.replace("2.1 c", "2.1 c (after none)")
    assert edges(text, within_section="sequential") == {"1.1": "", "1.2": "1.1", "2.1": "", "2.2": "1.1 1.2 2.1"}


@pytest.mark.parametrize(
    ("written", "waits"),
    [
        ("c (after 1.2)", "1.2"),
        ("c (after 1.2, 1.1)", "1.1 1.2"),
        ("c (after 1.1 and 1.2).", "1.1 1.2"),
        ("c (After: 1.1)", "1.1"),
        ("c (after none)", ""),
        ("c (after 1.1) (manual)", "1.1"),
        ("c (manual) (after 1.1)", "1.1"),
        ("c that is wrapped\n  over two lines (after 1.1)", "1.1"),
        ("c\n  - after: 1.1", "1.1"),
        ("c\n  - After: `1.1`, `1.2`", "1.1 1.2"),
        ("c\n  - after: none", ""),
        ("c (after 1.1)\n  - after: 1.2", "1.1 1.2"),
    ],
)
def test_after_replaces_the_barrier(written: str, waits: str) -> None:
    text = "## 1. A\n- [ ] 1.1 a\n- [ ] 1.2 b\n- [ ] 1.3 x\n## 2. B\n- [ ] 2.1 " + written + "\n"
    assert edges(text)["2.1"] == waits


@pytest.mark.parametrize(
    "written",
    [
        "c (after applying the mappings)", "c (after 1.1 is done)", "c (after 1.1) and more", "c\n  - after: the parser",
        "c\n  - after the parser: 1.1", "c depends on 1.1", "c\n\n  (after 1.1)",
    ],
)  # fmt: skip
def test_prose_makes_no_edges(written: str) -> None:
    assert edges(TWO.replace("2.1 c", "2.1 " + written))["2.1"] == "1.1 1.2"


def test_after_takes_every_form_of_id_and_the_labels_of_tickets_without_one() -> None:
    text = "## A\n- [ ] A1 a\n- [ ] T-3 b\n- [ ] 3. c\n- [ ] no id\n- [ ] 1.2.3 d\n- [ ] 9.1 e (after A1, T-3, 3, L4, 1.2.3)\n"
    assert edges(text)["9.1"] == "A1 T-3 3 L4 1.2.3"


def test_an_id_that_is_used_twice_means_both() -> None:
    text = "- [ ] 1.1 a\n- [ ] 1.1 b\n- [ ] 1.3 c (after 1.1)\n"
    assert edges(text)["1.3"] == "L1 L2"


@pytest.mark.parametrize(
    "word",
    ["Verify", "validate", "RUN", "Test", "check", "Confirm", "Commit", "**Verify**", "[qa] Run", "验证", "测试"],
)
def test_a_last_ticket_that_begins_like_a_check_waits_for_the_others(word: str) -> None:
    text = TWO.replace("2.2 d", f"2.2 d\n- [ ] 2.3 {word} it")
    assert edges(text)["2.3"] == "1.1 1.2 2.1 2.2"
    assert flags(text)["2.3"] == ("closing_check",)
    assert ("closing_check", 7) in [(warning.code, warning.line) for warning in plan(text).warnings]
    assert edges(text, closing_check=False)["2.3"] == "1.1 1.2"
    assert flags(text, closing_check=False)["2.3"] == ()


@pytest.mark.parametrize("title", ["Testing it", "Runner", "Add a test", "Checks", "Add Verify"])
def test_other_last_tickets_are_no_closing_checks(title: str) -> None:
    assert flags(TWO.replace("2.2 d", "2.2 " + title))["2.2"] == ()


def test_only_the_last_ticket_of_a_section_can_be_a_closing_check() -> None:
    assert flags("- [ ] 1.1 Run it\n- [ ] 1.2 b\n") == {"1.1": (), "1.2": ()}


def test_a_check_alone_in_its_section_waits_for_nothing_more_and_may_change_nothing() -> None:
    text = "- [ ] 1.1 Run it\n"
    assert flags(text) == {"1.1": ("closing_check",)}
    assert "closing_check" not in [warning.code for warning in plan(text).warnings]


def test_after_outdoes_the_inference_of_a_closing_check() -> None:
    text = "- [ ] 1.1 a\n- [ ] 1.2 b\n- [ ] 1.3 Run it (after 1.1)\n"
    assert edges(text)["1.3"] == "1.1"
    assert flags(text)["1.3"] == ("closing_check",)  # still a check: it may have nothing to commit
    waited_for = "- [ ] 1.1 a (after 1.2)\n- [ ] 1.2 Run the generator\n"
    assert edges(waited_for) == {"1.1": "1.2", "1.2": ""}


def test_tickets_that_wait_for_the_same_share_one_tuple() -> None:
    made = plan(TWO)
    assert made.tickets[2].after is made.tickets[3].after


def test_tickets_are_found_by_key() -> None:
    made = plan(TWO)
    assert made.by_key["c#2.1"] is made.tickets[2]
    assert list(made.by_key) == [one.key for one in made.tickets]


# Errors in them


def test_a_cycle_is_shown_as_the_way_round() -> None:
    text = "- [ ] 1.1 a (after 1.3)\n- [ ] 1.2 b (after 1.1)\n- [ ] 1.3 c (after 1.2)\n- [ ] 1.4 d (after 1.3)\n"
    assert refused(text, "plan_cycle").endswith(": 1.1 -> 1.3 -> 1.2 -> 1.1")


def test_a_cycle_through_the_order_of_sections_names_only_those_in_it() -> None:
    message = refused(TWO.replace("1.1 a", "1.1 a (after 2.2)"), "plan_cycle")
    assert message.endswith(": 1.1 -> 2.2 -> 1.1")


def test_every_ticket_of_every_cycle_is_named() -> None:
    text = "\n".join(
        [
            "- [ ] 1.1 a (after 1.2)",
            "- [ ] 1.2 b (after 1.1, 1.3)",
            "- [ ] 1.3 c (after 1.2)",
            "- [ ] 2.1 d (after 2.2)",
            "- [ ] 2.2 e (after 2.1)",
        ]
    )
    message = refused(text, "plan_cycle")
    assert "1.1 -> 1.2 -> 1.1 (in it too: 1.3)" in message
    assert "2.1 -> 2.2 -> 2.1" in message


def test_a_skipped_ticket_closes_no_cycle() -> None:
    assert edges("- [ ] 1.1 a (after 1.2)\n- [ ] 1.2 b (after 1.1)\n", skipped=["1.2"])["1.1"] == "1.2"


def test_references_to_nothing_are_all_named() -> None:
    text = "- [ ] 1.1 a (after 9.9, 8.8)\n- [ ] 1.2 b (after 1.1)\n- [ ] 1.3 c (after 7.7)\n"
    message = refused(text, "plan_dangling")
    assert "1.1 waits for 9.9, 8.8; 1.3 waits for 7.7" in message


def test_self_references_are_all_named() -> None:
    text = "- [ ] 1.1 a (after 1.1)\n- [ ] 1.2 b\n- [ ] 1.3 c (after 1.2, 1.3)\n"
    assert refused(text, "plan_self_reference").endswith(": 1.1, 1.3")


@settings(deadline=None, max_examples=150)
@given(st.lists(st.lists(st.integers(0, 11), max_size=2), min_size=1, max_size=12), st.integers(1, 4))
def test_a_plan_is_refused_exactly_when_its_edges_have_a_cycle(wanted: list[list[int]], size: int) -> None:
    wanted = [[one for one in others if one < len(wanted) and one != at] for at, others in enumerate(wanted)]
    lines = []
    for at, others in enumerate(wanted):
        if at % size == 0:
            lines.append("## S")
        lines.append(f"- [ ] 9.{at} x" + (f" (after {', '.join(f'9.{one}' for one in others)})" if others else ""))
    waits = [
        others or list(range((at // size - 1) * size, at // size * size) if at >= size else ())
        for at, others in enumerate(wanted)
    ]
    done: set[int] = set()
    while ready := {at for at, others in enumerate(waits) if at not in done and done.issuperset(others)}:
        done |= ready
    text = "\n".join(lines)
    if len(done) < len(waits):
        refused(text, "plan_cycle")
    else:
        made = [[int(key.split(".")[1]) for key in one.after] for one in plan(text).tickets]
        assert made == [sorted(set(others)) for others in waits]


def test_a_forward_reference_in_a_big_plan_is_judged_without_recursion() -> None:
    lines = [f"- [ ] 1.{at} x (after 1.{at + 1})" for at in range(999)]
    text = "\n".join(lines) + "\n- [ ] 1.999 x\n"
    assert edges(text)["1.0"] == "1.1"
    assert refused(text.replace("1.999 x", "1.999 x (after 1.0)"), "plan_cycle").count("->") == 1000
