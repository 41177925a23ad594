"""Assignments and their attempts. Each update names the state and attempt it expects and checks the row count."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from baton_cli.core.lifecycle import OPEN, Assignment, Attempt, Event, State, next_state
from baton_cli.errors import BatonError
from baton_cli.store import events
from baton_cli.store.db import Store

if TYPE_CHECKING:
    import sqlite3

_ATTEMPT = tuple(name for name in Attempt._fields)
_OWN = tuple(name for name in Assignment._fields if name != "attempt")
_SELECT = (
    "SELECT "
    + ", ".join(f"a.{name} AS {name}" for name in _OWN)
    + ", "
    + ", ".join(f"t.{name} AS attempt_{name}" for name in _ATTEMPT)
    + " FROM assignments a JOIN attempts t ON t.assignment_id = a.id AND t.number = a.attempt"
)


def _assignment(row: sqlite3.Row) -> Assignment:
    values = {name: row[name] for name in _OWN}
    values["state"] = State(values["state"])
    return Assignment(**values, attempt=_attempt(row, "attempt_"))


def _attempt(row: sqlite3.Row, prefix: str = "") -> Attempt:
    values = {name: row[f"{prefix}{name}"] for name in _ATTEMPT}
    return Attempt(**{**values, "counted": bool(values["counted"])})


def find(store: Store, assignment_id: str) -> Assignment | None:
    """One assignment with its current attempt."""
    row = store.row(f"{_SELECT} WHERE a.id = ?", (assignment_id,))
    return _assignment(row) if row else None


def get(store: Store, assignment_id: str) -> Assignment:
    """One assignment; `unknown_assignment` when there is none of that id."""
    found = find(store, assignment_id)
    if found is None:
        raise BatonError(
            "unknown_assignment",
            f"there is no assignment {assignment_id!r} in {store.path}",
            "take the assignment_id from `baton actions` or `baton status`",
        )
    return found


def of_change(store: Store, change: str, states: Sequence[State] = OPEN) -> tuple[Assignment, ...]:
    """The assignments of a change in these states, oldest first."""
    marks = ", ".join("?" * len(states))
    sql = f"{_SELECT} WHERE a.change = ? AND a.state IN ({marks}) ORDER BY a.created_at, a.id"
    return tuple(_assignment(row) for row in store.rows(sql, (change, *(state.value for state in states))))


def every_open(store: Store) -> tuple[Assignment, ...]:
    """The open assignments of all changes, oldest first."""
    marks = ", ".join("?" * len(OPEN))
    sql = f"{_SELECT} WHERE a.state IN ({marks}) ORDER BY a.created_at, a.id"
    return tuple(_assignment(row) for row in store.rows(sql, tuple(state.value for state in OPEN)))


def everything(store: Store, change: str) -> tuple[Assignment, ...]:
    """Every assignment that a change ever had, oldest first."""
    return of_change(store, change, tuple(State))


def with_worktree(store: Store, change: str) -> tuple[Assignment, ...]:
    """Integrated assignments whose worktree was not removed yet."""
    sql = (
        f"{_SELECT} WHERE a.change = ? AND a.state = 'integrated' AND a.removed_at IS NULL ORDER BY a.created_at, a.id"
    )
    return tuple(_assignment(row) for row in store.rows(sql, (change,)))


def add(store: Store, assignment: Assignment) -> None:
    """Record a new claim (assignment and first attempt) and its event. Inside a transaction."""
    values = {name: getattr(assignment, name) for name in _OWN}
    values["state"] = assignment.state.value
    store.insert("assignments", **values, attempt=assignment.attempt.number)
    add_attempt(store, assignment.id, assignment.attempt)
    log(store, assignment, "claimed", assignment.created_at, cause="frontier", detail=assignment.title)


def add_attempt(store: Store, assignment_id: str, attempt: Attempt) -> None:
    """Record one attempt. Inside a transaction."""
    values = {name: getattr(attempt, name) for name in _ATTEMPT}
    values["counted"] = int(attempt.counted)
    store.insert("attempts", assignment_id=assignment_id, **values)


def log(
    store: Store,
    assignment: Assignment,
    name: str,
    at: float,
    *,
    cause: str | None = None,
    detail: str | None = None,
    session: str | None = None,
) -> None:
    """One event about this assignment. Inside a transaction."""
    events.append(
        store,
        at,
        assignment.change,
        name,
        ticket=assignment.ticket,
        assignment_id=assignment.id,
        attempt=assignment.attempt.number,
        session=session or assignment.attempt.session,
        cause=cause,
        detail=detail,
    )


def move(
    store: Store,
    assignment: Assignment,
    event: Event,
    at: float,
    *,
    reason: str | None = None,
    detail: str | None = None,
    session: str | None = None,
    logged: tuple[str, str] | None = None,
    **columns: Any,
) -> Assignment:
    """Apply a lifecycle event, with the columns that go with it, and log it. Inside a transaction.

    `logged` are cause and detail of the event where these are not the assignment's reason and detail.

    Errors: `invalid_transition`; `changed_meanwhile` when the row no longer is what `assignment` says.
    """
    target = next_state(assignment.state, event)
    values: dict[str, Any] = {"state": target.value, "reason": reason, "detail": detail, "state_since": at, **columns}
    _update(store, assignment, values)
    cause, told = logged or (reason or event.value, detail)
    log(store, assignment, target.value, at, cause=cause, detail=told, session=session)
    return get(store, assignment.id)


def begin_attempt(
    store: Store,
    assignment: Assignment,
    event: Event,
    attempt: Attempt,
    at: float,
    cause: str,
    detail: str | None = None,
) -> Assignment:
    """A new attempt with a new token: by `recover` (somebody works on it) or `retry`. Inside a transaction.

    One with the current number takes the place of an attempt on which nobody was sent out.
    """
    target = next_state(assignment.state, event)
    if attempt.number == assignment.attempt.number:
        sql = "DELETE FROM attempts WHERE assignment_id = ? AND number = ? AND kind = 'retry' AND batch IS NULL"
        store.write(sql, (assignment.id, attempt.number))
    add_attempt(store, assignment.id, attempt)
    values = {"state": target.value, "attempt": attempt.number, "state_since": at}
    _update(store, assignment, values)
    fresh = get(store, assignment.id)
    log(store, fresh, event.value, at, cause=cause, detail=detail)
    return fresh


def renumber(store: Store, change: str) -> None:
    """Call what is in flight as its tickets are called now. Inside a transaction."""
    marks = ", ".join("?" * len(OPEN))
    sql = f"""UPDATE assignments SET ticket = (SELECT key FROM tickets t WHERE t.ticket_id = assignments.ticket_id)
        WHERE change = ? AND state IN ({marks})
        AND ticket_id IN (SELECT ticket_id FROM tickets WHERE change = ? AND position IS NOT NULL AND ambiguous = 0)"""
    store.write(sql, (change, *(state.value for state in OPEN), change))


def set_columns(store: Store, assignment: Assignment, **columns: Any) -> Assignment:
    """Change columns that are no state. Inside a transaction. Error: `changed_meanwhile`."""
    _update(store, assignment, columns)
    return get(store, assignment.id)


def set_attempt(store: Store, assignment: Assignment, **columns: Any) -> Assignment:
    """Change columns of the attempt that `assignment` shows. Inside a transaction. Error: `changed_meanwhile`."""
    names = ", ".join(f"{name} = ?" for name in columns)
    sql = f"UPDATE attempts SET {names} WHERE assignment_id = ? AND number = ?"
    fresh = None
    if store.write(sql, (*columns.values(), assignment.id, assignment.attempt.number)) == 1:
        fresh = get(store, assignment.id)
    if fresh is None or fresh.attempt.number != assignment.attempt.number:
        raise _changed(assignment)
    return fresh


def _update(store: Store, assignment: Assignment, values: dict[str, Any]) -> None:
    names = ", ".join(f"{name} = ?" for name in values)
    sql = f"UPDATE assignments SET {names} WHERE id = ? AND state = ? AND attempt = ?"
    expected = (assignment.id, assignment.state.value, assignment.attempt.number)
    if store.write(sql, (*values.values(), *expected)) != 1:
        raise _changed(assignment)


def _changed(assignment: Assignment) -> BatonError:
    return BatonError(
        "changed_meanwhile",
        f"assignment {assignment.id} was changed by another process",
        "call again: the answer will show where it stands",
    )


def counted_attempts(store: Store, assignment_id: str) -> int:
    """How many attempts used up the limit since the last operator `retry`."""
    sql = """SELECT count(*) AS n FROM attempts WHERE assignment_id = ? AND counted = 1 AND number >= (
        SELECT coalesce(max(number), 0) FROM attempts WHERE assignment_id = ? AND kind = 'retry')"""
    row = store.row(sql, (assignment_id, assignment_id))
    return int(row["n"]) if row else 0


def attempts(store: Store, assignment_id: str) -> tuple[Attempt, ...]:
    """All attempts of an assignment, first to last."""
    rows = store.rows("SELECT * FROM attempts WHERE assignment_id = ? ORDER BY number", (assignment_id,))
    return tuple(_attempt(row) for row in rows)
