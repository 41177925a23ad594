"""Assignments and attempts: one open assignment a ticket, moves that check the row, attempts that are counted."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from baton_cli.core.lifecycle import FINAL, OPEN, TABLE, Assignment, Event, State
from baton_cli.errors import BatonError
from baton_cli.store import assignments, events
from baton_cli.store.db import Store, open_store
from tests.stand_ins import CHANGE, make_assignment, make_attempt, make_plan, record

TEXT = "".join(f"- [ ] 1.{number} Task {number}\n" for number in range(1, 10))


@pytest.fixture
def store() -> Iterator[Store]:
    opened = open_store(None)
    record(opened, make_plan(TEXT))
    yield opened
    opened.close()


def add(store: Store, name: str = "a", ticket: int = 1, state: State = State.CLAIMED, **more: Any) -> Assignment:
    made = make_assignment(name, ticket_id=ticket, ticket=f"grow#1.{ticket}", state=state, **more)
    with store.transaction():
        assignments.add(store, made)
    return made


def refused(code: str, work: Callable[[], Any], store: Store) -> None:
    with pytest.raises(BatonError) as caught, store.transaction():
        work()
    assert caught.value.code == code
    assert caught.value.hint


def log(store: Store) -> list[str]:
    return [item.name for item in events.history(store)]


# Adding and finding


def test_an_assignment_comes_back_as_it_was_added(store: Store) -> None:
    full = add(
        store, "a", reason="r", detail="d\n", base="b", packet="p", placed="{}", prepared_at=1.5, sealed_head="h", receipt="r",
        sealed_at=2.5, onto="o", refused_head="x", conflicts=2, integrated_commit="i", removed_at=3.5, kept="k",
        attempt=make_attempt(3, agent="g", start_head="h", start_dirty="d", checkout="c", terminal="lost", note="n",
                             settled_at=4.5, counted=True, kind="recover"),
    )  # fmt: skip
    assert assignments.get(store, "a") == full
    assert assignments.find(store, "a") == full
    assert isinstance(assignments.get(store, "a").attempt.counted, bool)
    assert all(isinstance(item.counted, bool) for item in assignments.attempts(store, "a"))
    assert log(store) == ["claimed"]


def test_an_unknown_id_is_named(store: Store) -> None:
    assert assignments.find(store, "nope") is None
    with pytest.raises(BatonError) as caught:
        assignments.get(store, "nope'\n")
    assert caught.value.code == "unknown_assignment"
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(("first", "second"), list(itertools.product(OPEN, repeat=2)))
def test_a_ticket_has_one_open_assignment(store: Store, first: State, second: State) -> None:
    add(store, "a", 1, first)
    with pytest.raises(sqlite3.IntegrityError):
        add(store, "b", 1, second)
    assert [item.id for item in assignments.every_open(store)] == ["a"]
    assert log(store) == ["claimed"]


@pytest.mark.parametrize("state", sorted(FINAL))
def test_a_ticket_whose_assignment_has_ended_can_be_claimed_again(store: Store, state: State) -> None:
    add(store, "a", 1, state)
    add(store, "b", 1, state)
    add(store, "c", 1)
    assert [item.id for item in assignments.every_open(store)] == ["c"]


def test_lists_come_oldest_first_and_by_change(store: Store) -> None:
    record(store, make_plan("- [ ] 1.1 a\n", change="other"))
    add(store, "b", 1, created_at=2.0)
    add(store, "c", 2, State.SEALED, created_at=1.0)
    add(store, "a", 3, State.UNKNOWN, created_at=2.0)
    add(store, "d", 4, State.INTEGRATED, created_at=0.0)
    add(store, "e", 10, created_at=1.5, change="other")
    assert [item.id for item in assignments.of_change(store, CHANGE)] == ["c", "a", "b"]
    assert [item.id for item in assignments.every_open(store)] == ["c", "e", "a", "b"]
    assert [item.id for item in assignments.of_change(store, CHANGE, [State.UNKNOWN, State.INTEGRATED])] == ["d", "a"]
    assert [item.id for item in assignments.of_change(store, CHANGE, list(State))] == ["d", "c", "a", "b"]
    assert assignments.of_change(store, CHANGE, []) == ()


def test_worktrees_to_remove_are_those_of_integrated_assignments(store: Store) -> None:
    add(store, "a", 1, State.INTEGRATED)
    add(store, "b", 2, State.INTEGRATED, removed_at=1.0)
    add(store, "c", 3, State.ABANDONED)
    add(store, "d", 4)
    assert [item.id for item in assignments.with_worktree(store, CHANGE)] == ["a"]
    assert assignments.with_worktree(store, "other") == ()


@pytest.mark.parametrize("state", ["", "CLAIMED", "done"])
def test_the_store_takes_no_other_state(store: Store, state: str) -> None:
    add(store)
    with pytest.raises(sqlite3.IntegrityError), store.transaction():
        store.write("UPDATE assignments SET state = ?", (state,))


# Moves


@pytest.mark.parametrize(("state", "event"), list(itertools.product(State, Event)))
def test_every_move_is_that_of_the_table_or_nothing(store: Store, state: State, event: Event) -> None:
    before = add(store, state=state)
    target = TABLE.get((state, event))
    if target is None:
        refused("invalid_transition", lambda: assignments.move(store, before, event, 200.0), store)
        assert assignments.get(store, "a") == before
        assert log(store) == ["claimed"]
        return
    with store.transaction():
        after = assignments.move(store, before, event, 200.0)
    assert after == before._replace(state=target, state_since=200.0)
    assert log(store) == ["claimed", target.value]


def test_a_move_writes_what_goes_with_it_and_says_why(store: Store) -> None:
    before = add(store)
    with store.transaction():
        after = assignments.move(
            store,
            before,
            Event.SEAL,
            200.0,
            reason="because",
            detail="so",
            session="s-9",
            sealed_head="h",
            sealed_at=200.0,
        )
    assert (after.reason, after.detail, after.sealed_head, after.sealed_at) == ("because", "so", "h", 200.0)
    told = events.history(store)[-1]
    assert (told.name, told.cause, told.detail, told.session, told.attempt, told.at) == (
        "sealed",
        "because",
        "so",
        "s-9",
        1,
        200.0,
    )
    assert (told.ticket, told.assignment_id, told.change) == ("grow#1.1", "a", CHANGE)
    with store.transaction():
        again = assignments.move(store, after, Event.EVIDENCE_STALE, 300.0)
    assert (again.reason, again.detail) == (None, None)
    assert events.history(store)[-1].cause == "evidence_stale"
    assert events.history(store)[-1].session == "s-1"


def test_a_move_from_a_state_that_is_no_more_changes_nothing(store: Store) -> None:
    stale = add(store)
    with store.transaction():
        assignments.move(store, stale, Event.SEAL, 200.0)
    now = assignments.get(store, "a")
    refused("changed_meanwhile", lambda: assignments.move(store, stale, Event.NO_RECEIPT, 300.0), store)
    refused("changed_meanwhile", lambda: assignments.set_columns(store, stale, onto="x"), store)
    refused(
        "changed_meanwhile",
        lambda: assignments.begin_attempt(store, stale, Event.RETRY, make_attempt(2, kind="retry"), 300.0, "x"),
        store,
    )
    assert assignments.get(store, "a") == now
    assert log(store) == ["claimed", "sealed"]
    assert len(assignments.attempts(store, "a")) == 1


def test_a_move_for_an_attempt_that_is_no_more_changes_nothing(store: Store) -> None:
    stale = add(store, state=State.UNKNOWN)
    with store.transaction():
        second = assignments.begin_attempt(store, stale, Event.RECOVER, make_attempt(2), 200.0, "unknown")
        assignments.move(store, second, Event.NO_RECEIPT, 300.0)  # `unknown` again, but in another attempt
    refused("changed_meanwhile", lambda: assignments.move(store, stale, Event.GIVE_UP, 400.0), store)
    assert assignments.get(store, "a").state is State.UNKNOWN


def test_a_move_of_nothing_changes_nothing(store: Store) -> None:
    refused("changed_meanwhile", lambda: assignments.move(store, make_assignment("ghost"), Event.SEAL, 1.0), store)


# Attempts


def test_a_new_attempt_keeps_the_old_one_and_why_it_ended(store: Store) -> None:
    before = add(store, state=State.REJECTED, reason="gate_failed", detail="red")
    with store.transaction():
        after = assignments.begin_attempt(
            store, before, Event.RECOVER, make_attempt(2, session="s-2"), 200.0, "rejected"
        )
    assert (after.state, after.attempt, after.reason, after.detail) == (
        State.CLAIMED, make_attempt(2, session="s-2"), "gate_failed", "red",
    )  # fmt: skip
    assert assignments.attempts(store, "a") == (before.attempt, make_attempt(2, session="s-2"))
    told = events.history(store)[-1]
    assert (told.name, told.cause, told.attempt, told.session) == ("recover", "rejected", 2, "s-2")


@pytest.mark.parametrize("state", OPEN)
def test_a_retry_gives_a_new_token_to_nobody(store: Store, state: State) -> None:
    before = add(store, state=state)
    with store.transaction():
        after = assignments.begin_attempt(store, before, Event.RETRY, make_attempt(2, kind="retry"), 200.0, "operator")
    assert after.state is State.UNKNOWN
    assert after.attempt.claim_token != before.attempt.claim_token


def test_an_attempt_number_is_used_once(store: Store) -> None:
    before = add(store, state=State.UNKNOWN)
    with pytest.raises(sqlite3.IntegrityError), store.transaction():
        assignments.begin_attempt(store, before, Event.RECOVER, make_attempt(1), 200.0, "x")
    assert assignments.get(store, "a") == before


def test_columns_of_the_current_attempt_only(store: Store) -> None:
    before = add(store, state=State.UNKNOWN)
    with store.transaction():
        second = assignments.begin_attempt(store, before, Event.RECOVER, make_attempt(2), 200.0, "x")
        after = assignments.set_attempt(store, second, agent="g", lease_expires_at=9.0)
    assert after.attempt == make_attempt(2)._replace(agent="g", lease_expires_at=9.0)
    assert assignments.attempts(store, "a")[0] == before.attempt


def test_columns_that_are_no_state(store: Store) -> None:
    before = add(store)
    with store.transaction():
        after = assignments.set_columns(store, before, onto="x", conflicts=2)
    assert after == before._replace(onto="x", conflicts=2)
    assert log(store) == ["claimed"]


def attempts_of(store: Store, *kinds_and_counted: tuple[str, bool]) -> int:
    """How many of these attempts count, made one after another."""
    add(store)
    with store.transaction():
        store.write("DELETE FROM attempts")
        for number, (kind, counted) in enumerate(kinds_and_counted, 1):
            assignments.add_attempt(store, "a", make_attempt(number, kind=kind, counted=counted))
    return assignments.counted_attempts(store, "a")


@pytest.mark.parametrize(
    ("made", "counted"),
    [
        ([], 0),
        ([("dispatch", False)], 0),
        ([("dispatch", True)], 1),
        ([("dispatch", True), ("recover", False), ("resolve_merge", True)], 2),
        ([("dispatch", True), ("recover", True), ("retry", False)], 0),
        ([("dispatch", True), ("retry", False), ("recover", True), ("recover", True)], 2),
        ([("retry", True)], 1),
        ([("dispatch", True), ("retry", False), ("recover", True), ("retry", False), ("recover", True)], 1),
    ],
)
def test_attempts_are_counted_since_the_last_retry(store: Store, made: list[tuple[str, bool]], counted: int) -> None:
    assert attempts_of(store, *made) == counted


def test_attempts_of_other_assignments_do_not_count(store: Store) -> None:
    add(store, "b", 2, attempt=make_attempt(counted=True))
    assert attempts_of(store, ("dispatch", True)) == 1
    assert assignments.counted_attempts(store, "ghost") == 0
    assert assignments.attempts(store, "ghost") == ()


def test_attempts_come_in_order_beyond_nine(store: Store) -> None:
    attempts_of(store, *[("recover", False)] * 12)
    assert [item.number for item in assignments.attempts(store, "a")] == list(range(1, 13))


def test_tokens_are_not_in_the_history(store: Store) -> None:
    before = add(store, state=State.UNKNOWN, attempt=make_attempt(claim_token="secret-1"))
    with store.transaction():
        after = assignments.begin_attempt(
            store, before, Event.RECOVER, make_attempt(2, claim_token="secret-2"), 1.0, "x"
        )
        assignments.move(store, after, Event.SEAL, 2.0)
    assert "secret" not in repr(events.history(store))
