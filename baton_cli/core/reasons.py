"""Why a ticket stands where it stands, in one sentence: `explain` for a person who wonders what it waits for."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from baton_cli.core.facts import Change
from baton_cli.core.frontier import FINISHED, Status, TicketView
from baton_cli.core.lifecycle import State

NAMED = 3  # dependencies that are spelt out
BLOCKED = {
    "exhausted": "is exhausted",
    "setup_failed": "could not be set up",
    "manual": "is for a person",
    "no_verification": "has no check",
    "ambiguous_identity": "cannot be told apart from others",
}
STANDING = {
    State.CLAIMED: "is in progress",
    State.SEALED: "is sealed and about to be integrated",
    State.CONFLICTED: "has a merge conflict to be resolved",
    State.REJECTED: "was rejected by the gate and is to be repaired",
    State.UNKNOWN: "is to be taken up again",
    State.EXHAUSTED: "is exhausted",
}


def because(
    view: TicketView,
    views: Mapping[str, TicketView],
    change: Change | None,
    slots: Mapping[str, int],
    stopped: str | None = None,
) -> str:
    """The sentence. `slots` is what all changes use of `limits.parallel`; `stopped` why nothing can be integrated now."""
    if view.status in FINISHED:
        return _finished(view)
    if view.status is Status.WAITING:
        return f"waits for {_dependencies(view, views)}"
    if view.status is Status.READY:
        return f"is ready: {_hindrance(change, slots) or 'it goes to the next session or drive'}"
    said = _standing(view)
    if stopped is not None and view.assignment is not None and view.assignment.state is State.SEALED:
        said = f"is sealed, and nothing is integrated now, since {stopped}"
    if view.assignment is not None:
        attempt = view.assignment.attempt
        who = attempt.agent or f"session {attempt.session}"
        said += f" (attempt {attempt.number}, {who})"
        before = "; before that: " if view.assignment.state is State.CLAIMED else ": "
        said += f"{before}{view.assignment.detail}" if view.assignment.detail else ""
    return said


def _finished(view: TicketView) -> str:
    fact = view.completion
    if fact is None:
        return "was ticked by hand: there is no evidence"
    if view.status is Status.INTEGRATED:
        said = f"is integrated, as {(fact.commit or '?')[:12]}"
        other = fact.fingerprint != view.planned.ticket.fingerprint
        return f"{said}; its text was changed since, so `baton audit` does not count that" if other else said
    why = f": {fact.why}" if fact.why else ""
    return f"was {view.status.value} by {fact.who or 'somebody'}{why}"


def _standing(view: TicketView) -> str:
    if view.status is Status.BLOCKED:
        return BLOCKED.get(view.reason or "", "is blocked")
    return STANDING[view.assignment.state] if view.assignment is not None else f"is {view.status.value}"


def _hindrance(change: Change | None, slots: Mapping[str, int]) -> str:
    if change is not None and change.paused is not None:
        return f"but the change is paused ({change.paused})"
    if slots["used"] >= slots["limit"]:
        return f"but all {slots['limit']} places of the project are taken (limits.parallel)"
    return ""


def _dependencies(view: TicketView, views: Mapping[str, TicketView]) -> str:
    """1.1, which is in progress, and 1.2, which is exhausted; what is stuck comes first."""
    roots = {key: root(key, views) for key in view.waits_for}
    order = sorted(roots, key=lambda key: roots[key].status is not Status.BLOCKED)
    parts = [_one(views[key], roots[key]) for key in order[:NAMED]]
    more = len(order) - NAMED
    if more > 0:
        parts.append(f"{more} more")
    return ", and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def _one(view: TicketView, cause: TicketView) -> str:
    if cause is view:
        return f"{_short(view)}, which {_standing(view)}"
    direct = "" if cause.key in view.waits_for else " in the end"
    return f"{_short(view)}, which{direct} waits for {_short(cause)}, which {_standing(cause)}"


def root(key: str, views: Mapping[str, TicketView]) -> TicketView:
    """Where the waiting for a ticket ends: the nearest one that is stuck, else the nearest that could move."""
    first: TicketView | None = None
    todo, seen = deque([key]), {key}
    while todo:
        view = views[todo.popleft()]
        if view.status is Status.BLOCKED:
            return view
        if view.status is not Status.WAITING:
            first = first or view
            continue
        fresh = [after for after in view.waits_for if after not in seen]
        seen.update(fresh)
        todo.extend(fresh)
    return first or views[key]


def _short(view: TicketView) -> str:
    return view.key.rpartition("#")[2]
