"""What is still to be mended about an assignment's work, and how the attempts at it ended."""

from __future__ import annotations

from baton_cli.core.lifecycle import Assignment, State, told
from baton_cli.store import assignments, events
from baton_cli.store.db import Store

# Reasons that say how an attempt ended. All others say what is wrong with the work, and stay until that is mended.
ENDINGS = frozenset({"no_receipt", "left_unsealed", "lease_expired", "taken_over"})
REFUSED = frozenset({"seal_refused", "conflicted", "rejected"})


def standing(assignment: Assignment, reason: str, detail: str | None) -> dict[str, str | None]:
    """Reason and detail of an assignment whose attempt ended: what a gate, a merge or a seal said of its work comes first."""
    if assignment.reason is None or assignment.reason in ENDINGS:
        return {"reason": reason, "detail": detail}
    return {"reason": assignment.reason, "detail": assignment.detail}


def so_far(store: Store, assignment: Assignment) -> str:
    """How the attempts of an assignment ended, for whoever comes next; empty when there was none."""
    refused = {
        event.attempt: event.cause or event.name
        for event in events.history(store, assignment_id=assignment.id)
        if event.name in REFUSED and event.attempt is not None
    }
    return told(assignments.attempts(store, assignment.id), refused)


def with_history(store: Store, assignment: Assignment) -> Assignment:
    """An assignment as people see it: where its attempts are used up, `detail` also tells how they ended."""
    if assignment.state is not State.EXHAUSTED:
        return assignment
    known = (assignment.detail, so_far(store, assignment))
    return assignment._replace(detail="; ".join(part for part in known if part) or None)
