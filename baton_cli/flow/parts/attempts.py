"""What is still to be mended about an assignment's work, and how the attempts at it ended."""

from __future__ import annotations

from baton_cli.core.lifecycle import Assignment, told
from baton_cli.store import assignments, events
from baton_cli.store.db import Store

# Reasons that say how an attempt ended. All others say what is wrong with the work, and stay until that is mended.
ENDINGS = frozenset({"no_receipt", "lease_expired", "taken_over"})
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
