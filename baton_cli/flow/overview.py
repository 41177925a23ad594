"""What the board shows beyond `status`: how sections wait for each other, and the work and receipt behind each ticket."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from baton_cli.context import Context
from baton_cli.core.frontier import Status, TicketView
from baton_cli.core.lifecycle import State
from baton_cli.core.plan import Plan
from baton_cli.flow.parts.work import assignment_value, behind, carried, receipt_value
from baton_cli.store import assignments, evidence

SCHEMA = "baton.overview/1"


def completed(context: Context, change: dict[str, Any], plan: Plan, views: Iterable[TicketView]) -> dict[str, Any]:
    """One change of `baton.status/1`, completed in place: `after` of each section, `assignment` and `proof` of tickets."""
    name = str(change["change"])
    ended = {one.id: one for one in assignments.of_change(context.store, name, (State.INTEGRATED,))}
    bodies = evidence.receipts_of(context.store, name)
    by_key = {view.key: view for view in views}
    elsewhere: dict[str, dict[str, Any]] = {}
    for section in change["sections"]:
        for ticket in section["tickets"]:
            view = by_key[ticket["key"]]
            held = behind(view, ended.get)
            if held is not None:
                ticket["assignment"] = assignment_value(context, held)
                ticket["proof"] = receipt_value(held.receipt, bodies.get(held.receipt)) if held.receipt else None
            elif view.status is Status.INTEGRATED and view.completion is not None and view.completion.commit:
                elsewhere[view.completion.commit] = ticket
    for commit, proof in carried(context, elsewhere).items():
        elsewhere[commit]["proof"] = proof
    _add_edges(change["sections"], plan)
    return change


def _add_edges(sections: list[dict[str, Any]], plan: Plan) -> None:
    """Which sections each one waits for, by position. Tickets that wait for the same share one tuple, looked at once."""
    home = {ticket["key"]: at for at, section in enumerate(sections) for ticket in section["tickets"]}
    known: dict[int, set[int]] = {}
    for at, section in enumerate(sections):
        found: set[int] = set()
        for ticket in section["tickets"]:
            after = plan.by_key[ticket["key"]].after
            if id(after) not in known:
                known[id(after)] = {home[key] for key in after}
            found |= known[id(after)]
        section["after"] = sorted(found - {at})
