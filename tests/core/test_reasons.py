"""Why a ticket stands where it stands, in one sentence."""

from __future__ import annotations

from typing import Any

import pytest

from baton_cli.core.actions import REMEDIES
from baton_cli.core.facts import Change, Completion
from baton_cli.core.frontier import TicketView, survey
from baton_cli.core.lifecycle import OPEN, State
from baton_cli.core.reasons import BLOCKED, STANDING, because, root
from tests.stand_ins import CHECKED, UNCHECKED, ids_of, make_assignment, make_attempt, make_plan

FREE = {"used": 0, "limit": 5}
CHAIN = "\n".join(["- [ ] 1.1 a", *(f"- [ ] 1.{n} b (after 1.{n - 1})" for n in range(2, 400))])


def surveyed(
    text: str, held: dict[str, Any] | None = None, facts: tuple[Completion, ...] = (), **more: Any
) -> dict[str, TicketView]:
    plan = make_plan(text, **{"sources": CHECKED, **more})
    ids = ids_of(plan)
    assignments = [
        make_assignment(f"a-{name}", ticket_id=ids[f"grow#{name}"], ticket=f"grow#{name}", **values)
        for name, values in (held or {}).items()
    ]
    return {view.key.rpartition("#")[2]: view for view in survey(plan, ids, facts, assignments)}


def why(
    views: dict[str, TicketView],
    name: str,
    change: Change | None = None,
    slots: dict[str, int] = FREE,
    stopped: str | None = None,
) -> str:
    return because(views[name], {view.key: view for view in views.values()}, change, slots, stopped)


def test_a_waiting_ticket_names_what_it_waits_for_the_stuck_first() -> None:
    text = (
        "- [ ] 1.1 a\n- [ ] 1.2 b\n- [ ] 1.3 c (manual)\n- [ ] 2.1 d (after 1.1, 1.2)\n- [ ] 2.2 e (after 2.1)\n"
        "- [ ] 2.3 f (after 1.1, 1.2, 1.3, 2.1)\n"
    )
    views = surveyed(text, {"1.2": {"state": State.EXHAUSTED}, "1.1": {}})
    assert why(views, "2.1") == "waits for 1.2, which is exhausted, and 1.1, which is in progress"
    assert why(views, "2.2") == "waits for 2.1, which waits for 1.2, which is exhausted"
    assert why(views, "2.3") == (
        "waits for 1.2, which is exhausted, 1.3, which is for a person, 2.1, which waits for 1.2, which is exhausted, and 1 more"
    )


def test_a_long_chain_is_followed_to_its_end() -> None:
    views = surveyed(CHAIN, {"1.1": {"state": State.EXHAUSTED, "reason": "setup_failed"}})
    assert why(views, "1.399") == "waits for 1.398, which in the end waits for 1.1, which could not be set up"
    assert root("grow#1.399", {view.key: view for view in views.values()}).key == "grow#1.1"


def test_a_ready_ticket_says_what_else_stands_in_the_way() -> None:
    views = surveyed("- [ ] 1.1 a\n")
    paused = Change("grow", "main", "b" * 40, "baton/grow/integration", "c" * 40, "ada: look first", 0.0)
    assert why(views, "1.1") == "is ready: it goes to the next session or drive"
    assert why(views, "1.1", paused) == "is ready: but the change is paused (ada: look first)"
    assert why(views, "1.1", slots={"used": 5, "limit": 5}) == (
        "is ready: but all 5 places of the project are taken (limits.parallel)"
    )


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({}, "is in progress (attempt 2, child-1)"),
        ({"state": State.SEALED}, "is sealed and about to be integrated (attempt 2, child-1)"),
        (
            {"state": State.REJECTED, "detail": "why"},
            "was rejected by the gate and is to be repaired (attempt 2, child-1): why",
        ),
        ({"state": State.EXHAUSTED, "detail": "why"}, "is exhausted (attempt 2, child-1): why"),
    ],
)
def test_a_ticket_in_flight(values: dict[str, Any], said: str) -> None:
    held: dict[str, dict[str, Any]] = {"1.1": {"attempt": make_attempt(number=2, agent="child-1"), **values}}
    assert why(surveyed("- [ ] 1.1 a\n", held), "1.1") == said


def test_what_stops_the_integration_is_said_of_what_is_sealed() -> None:
    held = {"1.1": {"state": State.SEALED, "attempt": make_attempt(number=2, agent="child-1")}, "1.2": {}}
    views = surveyed("- [ ] 1.1 a\n- [ ] 1.2 b\n", held)
    stop = "the branch is checked out in /p"
    assert (
        why(views, "1.1", stopped=stop)
        == f"is sealed, and nothing is integrated now, since {stop} (attempt 2, child-1)"
    )
    assert why(views, "1.2", stopped=stop).startswith("is in progress")


def test_a_blocked_and_a_finished_ticket() -> None:
    assert why(surveyed("- [ ] 1.1 a\n", sources=UNCHECKED), "1.1") == "has no check"
    views = surveyed("- [x] 1.1 a\n- [ ] 1.2 b\n- [ ] 1.3 c\n")
    assert why(views, "1.1") == "was ticked by hand: there is no evidence"
    facts = tuple(
        Completion(view.ticket_id, kind, view.planned.ticket.fingerprint, None, "d" * 40, (), "ada", "seen", 0.0)
        for kind, view in (("integrated", views["1.2"]), ("skipped", views["1.3"]))
    )
    views = surveyed("- [x] 1.1 a\n- [ ] 1.2 b\n- [ ] 1.3 c\n", facts=facts)
    assert why(views, "1.2") == f"is integrated, as {'d' * 12}"
    assert why(views, "1.3") == "was skipped by ada: seen"


def test_every_open_state_and_every_reason_has_its_words() -> None:
    assert set(STANDING) == set(OPEN)
    assert set(BLOCKED) == set(REMEDIES)
