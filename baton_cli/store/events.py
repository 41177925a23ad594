"""The append-only history. `append` runs inside the transaction of the change it tells of."""

from __future__ import annotations

from baton_cli.core.facts import LoggedEvent
from baton_cli.store.db import Store


def append(
    store: Store,
    at: float,
    change: str,
    name: str,
    *,
    ticket: str | None = None,
    assignment_id: str | None = None,
    attempt: int | None = None,
    session: str | None = None,
    cause: str | None = None,
    detail: str | None = None,
) -> None:
    """Add one event; `at` is seconds since the epoch."""
    store.insert(
        "events",
        at=at,
        change=change,
        name=name,
        ticket=ticket,
        assignment_id=assignment_id,
        attempt=attempt,
        session=session,
        cause=cause,
        detail=detail,
    )


def latest(store: Store, change: str, name: str) -> LoggedEvent | None:
    """The last event of that name about a change."""
    sql = "SELECT * FROM events WHERE change = ? AND name = ? ORDER BY event DESC LIMIT 1"
    return next((LoggedEvent(**dict(row)) for row in store.rows(sql, (change, name))), None)


def of_ticket(store: Store, change: str, ticket_id: int, key: str) -> tuple[LoggedEvent, ...]:
    """What happened to a ticket, oldest first: to its assignments whatever it was called then, and decisions about it."""
    sql = """SELECT * FROM events WHERE change = ? AND (
        assignment_id IN (SELECT id FROM assignments WHERE ticket_id = ?) OR (assignment_id IS NULL AND ticket = ?))
        ORDER BY event"""
    return tuple(LoggedEvent(**dict(row)) for row in store.rows(sql, (change, ticket_id, key)))


def history(store: Store, change: str | None = None, *, assignment_id: str | None = None) -> tuple[LoggedEvent, ...]:
    """All events, oldest first, of one change or one assignment when named."""
    where, parameters = ["1=1"], []
    for column, value in (("change", change), ("assignment_id", assignment_id)):
        if value is not None:
            where.append(f"{column} = ?")
            parameters.append(value)
    found = store.rows(f"SELECT * FROM events WHERE {' AND '.join(where)} ORDER BY event", parameters)
    return tuple(LoggedEvent(**dict(row)) for row in found)
