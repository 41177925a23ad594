"""The record of an integration: head, completion and state in one breath."""

from __future__ import annotations

from collections.abc import Sequence

from baton_cli.core.facts import Completion
from baton_cli.core.lifecycle import Assignment, Event
from baton_cli.errors import BatonError
from baton_cli.store import assignments, plans
from baton_cli.store.db import Store


def record_merge(
    store: Store,
    assignment: Assignment,
    commit: str,
    previous: str,
    tree: str,
    proved: Sequence[str],
    commands: Sequence[str],
    at: float,
) -> Assignment:
    """The integration branch has moved from `previous` to `commit`. Inside a transaction. Error: `changed_meanwhile`.

    `commands` are the ticket's checks, `proved` those known to pass on this very tree in a clean place.
    """
    if not plans.set_integration_head(store, assignment.change, previous, commit):
        raise BatonError(
            "changed_meanwhile",
            f"the recorded head of {assignment.change} is no longer {previous[:12]}",
            "call again: the answer will show where it stands",
        )
    plans.record_proofs(store, assignment.change, tree, proved, at)
    completion = Completion(
        ticket_id=assignment.ticket_id,
        kind="integrated",
        fingerprint=assignment.fingerprint,
        assignment_id=assignment.id,
        commit=commit,
        checks=tuple(commands),
        who=assignment.attempt.agent,
        why=None,
        at=at,
    )
    plans.complete(store, assignment.change, completion)
    return assignments.move(store, assignment, Event.MERGED, at, detail=commit, integrated_commit=commit)
