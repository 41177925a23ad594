"""Where every ticket stands, what it waits for, and what may be claimed."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest

from baton_cli.core import tasks
from baton_cli.core.facts import Completion
from baton_cli.core.frontier import FINISHED, Status, TicketView, claimable, finished_as, progress, room, survey
from baton_cli.core.lifecycle import OPEN, ORPHANED, Assignment, State
from baton_cli.core.plan import Plan, build
from tests.stand_ins import (
    CHANGE,
    CHECKED,
    UNCHECKED,
    ids_of,
    make_assignment,
    make_attempt,
    make_completion,
    make_plan,
)

TWO = """\
## 1. Ground
- [ ] 1.1 Lay the first stone
- [ ] 1.2 Lay the second stone
## 2. Walls
- [ ] 2.1 Raise the wall
- [ ] 2.2 Paint it
## 3. Roof
- [ ] 3.1 Raise the roof
"""


def fact(plan: Plan, name: str, kind: str = "integrated", **more: Any) -> Completion:
    planned = plan.by_key[f"{CHANGE}#{name}"]
    values = {"fingerprint": planned.ticket.fingerprint, **more}
    return make_completion(ids_of(plan)[planned.key], kind, **values)


def held(plan: Plan, name: str, state: State = State.CLAIMED, **more: Any) -> Assignment:
    key = f"{CHANGE}#{name}"
    return make_assignment(f"a-{name}", ticket_id=ids_of(plan)[key], ticket=key, state=state, **more)


def look(
    plan: Plan, completions: Sequence[Completion] = (), assignments: Sequence[Assignment] = ()
) -> dict[str, TicketView]:
    views = survey(plan, ids_of(plan), completions, assignments)
    assert [view.planned for view in views] == list(plan.tickets)  # plan order, always
    return {view.key.partition("#")[2]: view for view in views}


def statuses(views: dict[str, TicketView]) -> str:
    return " ".join(f"{name}:{view.status.value}" for name, view in views.items())


def waits(view: TicketView) -> str:
    return " ".join(key.partition("#")[2] for key in view.waits_for)


# Statuses


def test_the_first_section_is_ready_and_the_rest_waits_for_the_one_before() -> None:
    views = look(make_plan(TWO))
    assert statuses(views) == "1.1:ready 1.2:ready 2.1:waiting 2.2:waiting 3.1:waiting"
    assert waits(views["1.1"]) == ""
    assert waits(views["2.1"]) == waits(views["2.2"]) == "1.1 1.2"
    assert waits(views["3.1"]) == "2.1 2.2"


def test_finished_tickets_are_no_longer_waited_for() -> None:
    plan = make_plan(TWO)
    views = look(plan, [fact(plan, "1.2")])
    assert statuses(views) == "1.1:ready 1.2:integrated 2.1:waiting 2.2:waiting 3.1:waiting"
    assert waits(views["2.1"]) == "1.1"
    views = look(plan, [fact(plan, "1.2"), fact(plan, "1.1", "skipped")])
    assert statuses(views) == "1.1:skipped 1.2:integrated 2.1:ready 2.2:ready 3.1:waiting"


def test_a_ticket_in_flight_still_holds_up_the_next_section() -> None:
    plan = make_plan(TWO)
    views = look(plan, [fact(plan, "1.2")], [held(plan, "1.1")])
    assert statuses(views) == "1.1:in_flight 1.2:integrated 2.1:waiting 2.2:waiting 3.1:waiting"
    assert views["1.1"].assignment == held(plan, "1.1")
    assert views["1.2"].completion == fact(plan, "1.2")


@pytest.mark.parametrize("kind", ["integrated", "attested", "skipped"])
def test_every_kind_of_fact_finishes_a_ticket(kind: str) -> None:
    plan = make_plan(TWO)
    views = look(plan, [fact(plan, "1.1", kind), fact(plan, "1.2", kind)])
    assert views["1.1"].status is Status(kind)
    assert views["1.1"].reason is None
    assert views["2.1"].status is Status.READY


def test_a_box_ticked_by_hand_is_external_and_finished() -> None:
    views = look(make_plan(TWO.replace("[ ]", "[x]", 2)))
    assert statuses(views) == "1.1:external 1.2:external 2.1:ready 2.2:ready 3.1:waiting"
    assert views["1.1"].completion is None


def test_a_ticket_counts_as_ticked_only_with_its_whole_checklist() -> None:
    views = look(make_plan("- [x] 1.1 a\n  - [x] part\n  - [ ] part\n- [x] 1.2 b\n  - [x] part\n"))
    assert statuses(views) == "1.1:ready 1.2:external"


@pytest.mark.parametrize("state", [state for state in OPEN if state is not State.EXHAUSTED])
def test_whatever_is_open_is_in_flight(state: State) -> None:
    plan = make_plan(TWO)
    assert look(plan, (), [held(plan, "1.1", state)])["1.1"].status is Status.IN_FLIGHT


@pytest.mark.parametrize(
    ("reason", "shown"), [(None, "exhausted"), ("check_failed", "exhausted"), ("setup_failed", "setup_failed")]
)
def test_an_exhausted_assignment_blocks_with_its_reason(reason: str | None, shown: str) -> None:
    plan = make_plan(TWO)
    view = look(plan, (), [held(plan, "1.1", State.EXHAUSTED, reason=reason)])["1.1"]
    assert (view.status, view.reason) == (Status.BLOCKED, shown)


def test_a_finished_ticket_stays_finished_whatever_its_assignment_is() -> None:
    plan = make_plan(TWO)
    for state in OPEN:
        view = look(plan, [fact(plan, "1.1")], [held(plan, "1.1", state)])["1.1"]
        assert (view.status, view.reason, view.waits_for) == (Status.INTEGRATED, None, ())


def test_reasons_of_blocked_tickets() -> None:
    plan = make_plan("- [ ] 1.1 a (manual)\n- [ ] 1.2 b\n  - verify: `x`\n- [ ] 1.3 c\n", sources=UNCHECKED)
    views = look(plan)
    assert statuses(views) == "1.1:blocked 1.2:ready 1.3:blocked"
    assert [view.reason for view in views.values()] == ["manual", None, "no_verification"]


def test_a_ticket_that_waits_is_not_blocked_yet() -> None:
    plan = make_plan("## 1. A\n- [ ] 1.1 a\n## 2. B\n- [ ] 2.1 b (manual)\n")
    assert statuses(look(plan)) == "1.1:ready 2.1:waiting"
    assert statuses(look(plan, [fact(plan, "1.1")])) == "1.1:integrated 2.1:blocked"


def test_a_manual_ticket_that_somebody_works_on_is_in_flight() -> None:
    plan = make_plan("- [ ] 1.1 a (manual)\n")
    assert statuses(look(plan, (), [held(plan, "1.1", State.SEALED)])) == "1.1:in_flight"


def test_an_ambiguous_ticket_is_blocked_even_when_it_waits_or_is_in_flight() -> None:
    plan = make_plan(TWO, ambiguous=[0, 2])
    views = look(plan, (), [held(plan, "1.1")])
    assert statuses(views) == "1.1:blocked 1.2:ready 2.1:blocked 2.2:waiting 3.1:waiting"
    assert views["1.1"].reason == views["2.1"].reason == "ambiguous_identity"


def test_a_skipped_ticket_is_no_barrier() -> None:
    plan = make_plan(TWO, skipped=[f"{CHANGE}#1.1", f"{CHANGE}#1.2"])
    views = look(plan, [fact(plan, "1.1", "skipped"), fact(plan, "1.2", "skipped")])
    assert statuses(views) == "1.1:skipped 1.2:skipped 2.1:ready 2.2:ready 3.1:waiting"


def test_facts_and_assignments_of_other_tickets_mean_nothing() -> None:
    plan = make_plan(TWO)
    stranger = make_completion(99, fingerprint=plan.tickets[0].ticket.fingerprint)
    assert statuses(look(plan, [stranger], [make_assignment(ticket_id=98)])) == statuses(look(plan))


def test_a_fact_follows_its_ticket_through_renumbering() -> None:
    plan = make_plan(TWO)
    later = make_plan(TWO.replace("1.1 ", "1.7 "))
    views = {
        view.key: view
        for view in survey(
            later, {planned.key: n for n, planned in enumerate(later.tickets, 1)}, [fact(plan, "1.1")], ()
        )
    }
    assert views[f"{CHANGE}#1.7"].status is Status.INTEGRATED


# What finishes a ticket: text x box x facts

BEFORE = "- [ ] 1.1 Lay the first stone\n"


@pytest.mark.parametrize(
    ("kind", "reworded", "ticked"),
    list(itertools.product([None, "integrated", "attested", "skipped"], [False, True], [False, True])),
)
def test_finished_as(kind: str | None, reworded: bool, ticked: bool) -> None:
    plan = make_plan(BEFORE)
    known = [fact(plan, "1.1", kind)] if kind else []
    text = BEFORE.replace("first", "finest") if reworded else BEFORE
    planned = make_plan(text.replace("[ ]", "[x]") if ticked else text).tickets[0]
    status, explains = finished_as(planned, known)
    if kind is None:
        assert (status, explains) == (Status.EXTERNAL if ticked else None, None)
    elif reworded and not ticked:  # a new question
        assert (status, explains) == (None, None)
    else:  # the tick travels with the text, and where a box is ticked the evidence stays
        assert (status, explains) == (Status(kind), known[0])


def test_the_newest_fact_about_this_text_counts() -> None:
    plan = make_plan(BEFORE)
    old, new = fact(plan, "1.1", "skipped", at=1.0), fact(plan, "1.1", "integrated", at=2.0)
    other = fact(plan, "1.1", "attested", at=3.0, fingerprint="0" * 16)
    assert finished_as(plan.tickets[0], [old, new, other]) == (Status.INTEGRATED, new)


def test_a_reworded_ticket_is_open_again_and_holds_up_what_follows() -> None:
    plan = make_plan(TWO)
    done = [fact(plan, "1.1"), fact(plan, "1.2")]
    assert statuses(look(make_plan(TWO.replace("first", "finest")), done)).startswith(
        "1.1:ready 1.2:integrated 2.1:waiting"
    )


# What may be claimed


def keys(views: Sequence[TicketView]) -> str:
    return " ".join(view.key.partition("#")[2] for view in views)


MANY = "".join(f"- [ ] 1.{number} Task number {number}\n" for number in range(1, 9))


def test_orphans_come_first_then_the_frontier_both_in_plan_order() -> None:
    plan = make_plan(MANY)
    claimed = [
        held(plan, "1.7", State.UNKNOWN, created_at=1.0),
        held(plan, "1.3", State.REJECTED, created_at=3.0),
        held(plan, "1.5", State.CONFLICTED, created_at=2.0),
        held(plan, "1.2", State.CLAIMED),
        held(plan, "1.4", State.SEALED),
        held(plan, "1.6", State.EXHAUSTED),
    ]
    assert keys(claimable(look(plan, (), claimed).values())) == "1.3 1.5 1.7 1.1 1.8"
    assert keys(claimable(iter(look(plan, (), claimed).values()))) == "1.3 1.5 1.7 1.1 1.8"


def test_nothing_is_claimed_that_is_finished_waiting_blocked_or_ambiguous() -> None:
    plan = make_plan(
        "## 1. A\n- [x] 1.1 a\n- [ ] 1.2 b (manual)\n- [ ] 1.3 c\n- [ ] 1.4 d\n## 2. B\n- [ ] 2.1 e\n", ambiguous=[2]
    )
    views = look(plan, [fact(plan, "1.4")], [held(plan, "1.3", State.UNKNOWN)])
    assert claimable(views.values()) == ()


@pytest.mark.parametrize("state", ORPHANED)
def test_an_orphan_whose_ticket_was_finished_otherwise_is_left_alone(state: State) -> None:
    plan = make_plan(MANY)
    views = look(plan, [fact(plan, "1.1", "attested")], [held(plan, "1.1", state)])
    assert "1.1" not in keys(claimable(views.values())).split()


def test_an_orphan_that_waits_since_an_edit_is_taken_up_again() -> None:
    plan = make_plan(TWO)
    assert keys(claimable(look(plan, (), [held(plan, "3.1", State.UNKNOWN)]).values())) == "3.1 1.1 1.2"


# Room


def claims(*sessions: str, state: State = State.CLAIMED) -> list[Assignment]:
    return [
        make_assignment(f"a{n}", ticket_id=n, state=state, attempt=make_attempt(session=name))
        for n, name in enumerate(sessions)
    ]


@pytest.mark.parametrize(
    ("capacity", "parallel", "others", "free"),
    [
        (5, 5, [], 5),
        (3, 5, [], 3),
        (5, 2, [], 2),
        (5, 5, ["me", "me"], 3),
        (2, 9, ["me", "me"], 0),
        (1, 9, ["me", "me"], 0),
        (5, 5, ["you", "you"], 3),
        (5, 5, ["you"] * 5, 0),
        (5, 3, ["you"] * 5, 0),
        (2, 9, ["you"] * 5, 2),
        (3, 5, ["me", "you", "you"], 2),
    ],
)
def test_room_is_what_capacity_and_parallel_leave(capacity: int, parallel: int, others: list[str], free: int) -> None:
    assert room("me", capacity, parallel, claims(*others)).free == free


@pytest.mark.parametrize("state", [state for state in OPEN if state is not State.CLAIMED])
def test_only_what_is_claimed_takes_room(state: State) -> None:
    assert room("me", 5, 5, claims("me", "you", state=state)).free == 5


# Progress


def test_progress_counts_every_ticket_once() -> None:
    text = MANY.replace("[ ] 1.1", "[x] 1.1").replace("number 2\n", "number 2 (manual)\n") + "## 2. B\n- [ ] 2.1 last\n"
    plan = make_plan(text)
    done = [fact(plan, "1.3"), fact(plan, "1.4", "attested"), fact(plan, "1.5", "skipped")]
    counts = progress(look(plan, done, [held(plan, "1.6"), held(plan, "1.7", State.EXHAUSTED)]).values())
    assert counts == counts._replace(
        total=9, external=1, blocked=2, integrated=1, attested=1, skipped=1, in_flight=1, ready=1, waiting=1
    )
    assert counts.finished == 4


def test_progress_of_nothing() -> None:
    assert progress([]).total == progress([]).finished == 0


def test_finished_is_what_nothing_more_is_owed_for() -> None:
    assert {Status.INTEGRATED, Status.EXTERNAL, Status.ATTESTED, Status.SKIPPED} == FINISHED


# Size


class Counted(tuple[str, ...]):
    """Dependencies that count how often somebody walks over one of them."""

    steps = 0

    def __iter__(self) -> Any:
        for item in super().__iter__():
            Counted.steps += 1
            yield item


def test_ten_thousand_tickets_cost_one_look_at_each_dependency_list() -> None:
    sections, each = 100, 100
    text = "".join(
        f"## {section}. S\n"
        + "".join(f"- [ ] {section}.{number} Task {section} {number}\n" for number in range(1, each + 1))
        for section in range(1, sections + 1)
    )
    document = tasks.parse(text.encode())
    plan = build(CHANGE, document, [f"{CHANGE}#{ticket.id}" for ticket in document.tickets], sources=CHECKED)
    shared = {id(planned.after): planned.after for planned in plan.tickets}
    counted = {known: Counted(after) for known, after in shared.items()}
    plan = plan._replace(tickets=tuple(planned._replace(after=counted[id(planned.after)]) for planned in plan.tickets))
    Counted.steps = 0
    views = survey(plan, ids_of(plan), (), ())
    assert len(views) == sections * each
    # Without sharing it would be a hundred times as much.
    assert Counted.steps <= 2 * sections * each
    assert keys(claimable(views)).split() == [f"1.{number}" for number in range(1, each + 1)]
