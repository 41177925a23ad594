"""Everything that can be shown of a change, as one value. Reads the store and tasks.md; asks git at most whether a stop is over,
writes nothing."""

from __future__ import annotations

import os
from typing import Any

from baton_cli.context import Context
from baton_cli.core import actions, names
from baton_cli.core.actions import iso
from baton_cli.core.frontier import FINISHED, Progress, TicketView, progress
from baton_cli.flow.parts import stops, strayed, work
from baton_cli.flow.parts.tickets import Loaded
from baton_cli.store import plans as store_plans

SCHEMA = "baton.status/1"


def snapshot(context: Context, loaded: Loaded, views: tuple[TicketView, ...]) -> dict[str, Any]:
    """One change of `baton.status/1`. Times are ISO 8601 in UTC."""
    change = store_plans.get_change(context.store, loaded.change)
    counts = progress(views)
    command = context.shell()
    stopped = stops.current(context, loaded.change) if change else _before(context, loaded)
    return {
        "change": loaded.change,
        "state": state_of(counts, stopped=bool(stopped)),
        "revision": loaded.revision.number,
        "paused": change.paused if change else None,
        "target_branch": change.target_branch if change else None,
        "integration_branch": change.integration_branch if change else None,
        "integration_head": change.integration_head if change else None,
        "landed": stops.landed(context, change, counts) if change else None,
        "progress": counts._asdict(),
        "boxes": {"total": loaded.plan.document.total, "done": loaded.plan.document.done},
        "slots": work.slots(context),
        "attention": [
            *stopped,
            *actions.blocked_tickets(views, command, str(context.project.root), steps=True),
        ],
        "sections": _sections(context, loaded, views),
    }


def archived_early(context: Context) -> list[dict[str, Any]]:
    """What a person should know of changes that are archived, though their work is not where it belongs."""
    return [stops.blocked("archived_early", *strayed.early_advice(change)) for change in strayed.early(context)]


def _before(context: Context, loaded: Loaded) -> list[dict[str, Any]]:
    """What a person should know of a change before it is begun."""
    error = strayed.refusal(context, loaded)
    return (
        _forgotten(context, loaded.change) if error is None else [stops.blocked(error.code, error.message, error.hint)]
    )


def _forgotten(context: Context, change: str) -> list[dict[str, Any]]:
    """A word where worktrees of a change are there and no record of it: the store was deleted, or is another one's."""
    folder = context.worktree(context.worktree_name(names.slug(change)))
    try:
        number = sum(1 for _ in os.scandir(folder))
    except OSError:
        return []
    if not number:
        return []
    detail = f"{folder} holds {number} worktrees of this change, but {context.project.queue_db} knows nothing of it"
    hint = "put that file back; without it Baton starts anew from what is merged, and leaves those folders alone"
    return [stops.blocked("record_lost", detail, hint)]


def state_of(counts: Progress, *, stopped: bool) -> str:
    """complete, blocked (only a person can go on) or active; `stopped`: so is the change as a whole."""
    if counts.finished == counts.total:
        return "blocked" if stopped else "complete"
    return "active" if counts.in_flight or counts.ready else "blocked"


def _sections(context: Context, loaded: Loaded, views: tuple[TicketView, ...]) -> list[dict[str, Any]]:
    sections: list[dict[str, Any]] = [
        {"number": section.number, "title": section.title, "tickets": []} for section in loaded.plan.document.sections
    ]
    for view in views:
        sections[view.planned.ticket.section]["tickets"].append(_ticket(context, view))
    return [section for section in sections if section["tickets"]]


def _ticket(context: Context, view: TicketView) -> dict[str, Any]:
    ticket, completion, waits_for = view.planned.ticket, view.completion, view.waits_for
    value: dict[str, Any] = {
        "key": view.key,
        "id": ticket.id,
        "title": ticket.title,
        "line": ticket.line,
        "ticked": ticket.done,
        "status": view.status.value,
        "reason": view.reason,
        "waits_for": list(waits_for[: actions.LIST_LIMIT]),  # a closing check of a large section waits for hundreds
        "waits_for_more": max(0, len(waits_for) - actions.LIST_LIMIT),
        "flags": list(view.planned.flags),
    }
    if completion is not None and view.status in FINISHED:
        value["evidence"] = {
            "kind": completion.kind,
            "commit": completion.commit,
            "at": iso(completion.at),
            "who": completion.who,
            "why": completion.why,
            "reworded": completion.fingerprint != ticket.fingerprint,
        }
    if view.assignment is not None:
        value["assignment"] = work.assignment_value(context, view.assignment)
        value["assignment"]["busy"] = work.busy(context, view.assignment)
    return value
