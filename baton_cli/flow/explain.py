"""Why a ticket is or is not ready, what became of it so far, and the receipt behind it."""

from __future__ import annotations

from functools import partial
from typing import Any

from baton_cli.context import Context
from baton_cli.core import actions
from baton_cli.core.actions import iso
from baton_cli.core.frontier import Status, TicketView
from baton_cli.core.lifecycle import Assignment
from baton_cli.core.reasons import because
from baton_cli.flow.parts import stops
from baton_cli.flow.parts.tickets import Loaded
from baton_cli.flow.parts.work import assignment_value, behind, carried, receipt_value, slots
from baton_cli.store import assignments, events, evidence
from baton_cli.store import plans as store_plans

SCHEMA = "baton.explain/1"


def explain(context: Context, loaded: Loaded, views: tuple[TicketView, ...], view: TicketView) -> dict[str, Any]:
    """`baton.explain/1`. Reads the store and tasks.md; asks git only for evidence that a merge commit alone has. Times are
    ISO 8601 in UTC."""
    by_key = {one.key: one for one in views}
    planned = view.planned
    section = loaded.plan.document.sections[planned.ticket.section]
    held = behind(view, partial(assignments.find, context.store))
    stuck = view.status is Status.BLOCKED and view.reason
    return {
        "schema": SCHEMA,
        "change": loaded.change,
        "ticket": view.key,
        "title": planned.ticket.title,
        "section": {"number": section.number, "title": section.title},
        "line": planned.ticket.line,
        "status": view.status.value,
        "reason": view.reason,
        "because": because(
            view,
            by_key,
            store_plans.get_change(context.store, loaded.change),
            slots(context),
            next((stop["detail"] for stop in stops.current(context, loaded.change)), None),
        ),
        "steps": actions.remedy(
            view.reason or "",
            [view.key],
            context.shell(),
            str(context.project.root),
            [view.key] if actions.is_late(view) else [],
        )
        if stuck
        else [],
        "waits_for": [_other(by_key[key]) for key in view.waits_for],
        "needed_by": [one.key for one in views if view.key in one.planned.after],
        "checks": [{"command": check.command, "source": check.source} for check in planned.checks],
        "flags": list(planned.flags),
        "assignment": _held(context, held) if held is not None else None,
        "logs": _logs(context, held) if held is not None else [],
        "receipt": _receipt(context, view, held),
        "events": [
            {**event._asdict(), "at": iso(event.at)}
            for event in events.of_ticket(context.store, loaded.change, view.ticket_id, view.key)
        ],
    }


def _receipt(context: Context, view: TicketView, held: Assignment | None) -> dict[str, Any] | None:
    if held is not None:
        return receipt_value(held.receipt, evidence.receipt(context.store, held.receipt)) if held.receipt else None
    commit = view.completion.commit if view.completion is not None and view.status is Status.INTEGRATED else None
    return carried(context, [commit]).get(commit) if commit else None


def _held(context: Context, held: Assignment) -> dict[str, Any]:
    return {**assignment_value(context, held), "worktree": str(context.worktree(held.worktree))}


def _logs(context: Context, held: Assignment) -> list[str]:
    """The logs of its agents and checks that are still there, the newest attempt first."""
    found = [(path, path.name[len(held.id) + 1 :]) for path in context.project.logs.glob(f"{held.id}-*.log")]
    found.sort(key=lambda log: (-int(log[1].partition("-")[0].partition(".")[0]), log[1]))
    return [str(path) for path, _ in found]


def _other(view: TicketView) -> dict[str, Any]:
    return {
        "key": view.key,
        "title": view.planned.ticket.title,
        "status": view.status.value,
        "reason": view.reason,
        "state": view.assignment.state.value if view.assignment is not None else None,
    }
