"""What keeps a change's integration from going on until a person acts: kept as events, so that whoever only looks sees it."""

from __future__ import annotations

from typing import Any

from baton_cli.context import Context
from baton_cli.core import actions
from baton_cli.errors import BatonError
from baton_cli.store import events

NAME, FREE, ARROW = "integration", "free", " -> "
LASTING = frozenset({"integration_moved", "integration_checked_out"})


def record(context: Context, change: str, error: BatonError | None) -> None:
    """What the look at the integration branch has shown: an event when that is news."""
    if error is not None and error.code not in LASTING:
        return
    cause = FREE if error is None else error.code
    detail = None if error is None else f"{error.message}{ARROW}{error.hint}"
    last = events.latest(context.store, change, NAME)
    if (last.cause, last.detail) != (cause, detail) if last is not None else error is not None:
        with context.store.transaction():
            events.append(context.store, context.now(), change, NAME, cause=cause, detail=detail)


def current(context: Context, change: str) -> list[dict[str, Any]]:
    """The stop that was seen last, as a `blocked` action with its remedy laid out; none when the branch was free since."""
    last = events.latest(context.store, change, NAME)
    if last is None or last.cause in (None, FREE):
        return []
    message, _, hint = (last.detail or "").rpartition(ARROW)
    return [{**actions.blocked(str(last.cause), [], message, hint), "steps": [{"say": hint, "run": []}]}]
