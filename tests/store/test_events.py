"""The history: append only, in order, and never half of a change."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import pytest

from baton_cli.core.facts import LoggedEvent
from baton_cli.store import events
from baton_cli.store.db import Store, open_store


@pytest.fixture
def store() -> Iterator[Store]:
    opened = open_store(None)
    with opened.transaction():
        events.append(opened, 3.0, "grow", "revision", cause="revision 1", detail="2 tickets")
        events.append(
            opened,
            1.0,
            "grow",
            "claimed",
            ticket="grow#1.1",
            assignment_id="a-1",
            attempt=1,
            session="s",
            cause="frontier",
        )
        events.append(opened, 2.0, "other", "revision")
    yield opened
    opened.close()


def test_events_come_in_the_order_of_writing_not_of_the_clock(store: Store) -> None:
    assert [(item.event, item.at, item.change, item.name) for item in events.history(store)] == [
        (1, 3.0, "grow", "revision"),
        (2, 1.0, "grow", "claimed"),
        (3, 2.0, "other", "revision"),
    ]


def test_an_event_keeps_all_that_was_said(store: Store) -> None:
    assert events.history(store, assignment_id="a-1") == (
        LoggedEvent(2, 1.0, "grow", "claimed", "grow#1.1", "a-1", 1, "s", "frontier", None),
    )


def test_history_can_be_narrowed(store: Store) -> None:
    assert len(events.history(store, "grow")) == 2
    assert len(events.history(store, "other")) == 1
    assert events.history(store, "other", assignment_id="a-1") == ()
    assert events.history(store, "grow' OR '1'='1") == ()


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE events SET name = 'x'",
        "UPDATE events SET at = 0 WHERE event = 1",
        "DELETE FROM events",
        "DELETE FROM events WHERE event = 1",
        "REPLACE INTO events (event, at, change, name) VALUES (1, 0, 'x', 'x')",
    ],
)
def test_nobody_can_change_or_remove_an_event(store: Store, sql: str) -> None:
    before = events.history(store)
    with pytest.raises(sqlite3.IntegrityError, match="append only"), store.transaction():
        store.write(sql)
    assert events.history(store) == before


def test_an_event_goes_with_the_change_it_tells_of(store: Store) -> None:
    before = events.history(store)

    def undone() -> None:
        with store.transaction():
            events.append(store, 4.0, "grow", "integrated")
            raise ValueError("undone")

    with pytest.raises(ValueError, match="undone"):
        undone()
    assert events.history(store) == before


def test_numbers_go_on_after_a_rollback(store: Store) -> None:
    with store.transaction():
        events.append(store, 4.0, "grow", "x")
    assert events.history(store)[-1].event == 4
