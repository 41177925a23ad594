"""What became of a change's integration branch, kept as events so that whoever only looks sees it: what keeps it from going
on until a person acts, and where it has landed."""

from __future__ import annotations

from typing import Any

from baton_cli.context import Context
from baton_cli.core import actions
from baton_cli.core.facts import Change
from baton_cli.core.frontier import Progress
from baton_cli.errors import BatonError
from baton_cli.store import events, plans

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
    """The stop that was seen last, as a `blocked` action with its remedy laid out; none when the branch was free since.

    Asks git one thing, and only where a stop was recorded: whether it still is one.
    """
    last = events.latest(context.store, change, NAME)
    if last is None or last.cause in (None, FREE) or _over(context, change):
        return []
    message, _, hint = (last.detail or "").rpartition(ARROW)
    return [blocked(str(last.cause), message, hint)]


def blocked(code: str, message: str, hint: str) -> dict[str, Any]:
    """A `blocked` action about the change as a whole, with its remedy laid out."""
    return {**actions.blocked(code, [], message, hint), "steps": [{"say": hint, "run": []}]}


def landed(context: Context, change: Change, counts: Progress) -> str | None:
    """The branch that has the integration head: since a landing, or because all is finished and nothing was merged."""
    if change.integration_head == change.base:
        return change.target_branch if counts.finished == counts.total else None
    event = events.latest(context.store, change.change, "landed")
    target, _, head = ((event.detail or "") if event else "").rpartition(" at ")
    return target if head == change.integration_head else None


def _over(context: Context, change: str) -> bool:
    from baton_cli.git import repo  # most looks ask git nothing

    row = plans.get_change(context.store, change)
    if row is None:
        return False
    try:
        found, place = repo.standing(context.project.repository, row.integration_ref)
    except BatonError:
        return False  # the one that was recorded says more
    return place is None and found in (None, row.integration_head)
