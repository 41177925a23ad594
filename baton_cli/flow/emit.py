"""The end of an `actions` call: hand-outs, or else what the session waits for, or what stops it, or the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from baton_cli.context import Context
from baton_cli.core import actions
from baton_cli.core.facts import Change
from baton_cli.core.frontier import Status, TicketView, progress
from baton_cli.core.lifecycle import State
from baton_cli.errors import BatonError
from baton_cli.flow.parts import stops
from baton_cli.store import assignments
from baton_cli.store import plans as store_plans


def without_hand_outs(
    context: Context, change: Change, views: Sequence[TicketView], session: str, stopped: BatonError | None
) -> list[dict[str, Any]]:
    """The actions of an answer that hands nothing out."""
    counts = progress(views)
    change = store_plans.get_change(context.store, change.change) or change
    if counts.finished == counts.total and stopped is None:
        return [actions.complete(counts, change, stops.landed(context, change, counts), context.shell())]
    held = [view.assignment for view in views if view.assignment is not None and view.status is Status.IN_FLIGHT]
    running = [item for item in held if item.state is State.CLAIMED or (item.state is State.SEALED and not stopped)]
    # An agent is at work even where an edit of the plan has left its ticket ambiguous for now.
    claimed = assignments.of_change(context.store, change.change, [State.CLAIMED])
    running += [item for item in claimed if all(item.id != other.id for other in running)]
    if running:
        return [actions.wait(session, running, "agents are at work")]
    blocked = _stops(context, change, stopped)
    blocked += actions.blocked_tickets(views, context.shell(), str(context.project.root))
    if blocked:
        return blocked
    everyone = [item for item in assignments.every_open(context.store) if item.state is State.CLAIMED]
    reason = "limits.parallel of the project is used up" if everyone else "another call is settling the rest"
    return [actions.wait(session, everyone or held, reason)]


def _stops(context: Context, change: Change, stopped: BatonError | None) -> list[dict[str, Any]]:
    """What keeps the change as a whole from going on."""
    found = []
    if change.paused is not None:
        remedy = context.shell("resume", change.change)
        found.append(actions.blocked("paused", [], f"paused: {change.paused}", remedy))
    if stopped is not None:
        found.append(actions.blocked(stopped.code, [], stopped.message, stopped.hint))
    return found
