"""Sealed branch -> integration branch, one at a time under the repository-wide lock, so that its head is always green."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from baton_cli import locks
from baton_cli.context import Context
from baton_cli.core import integration
from baton_cli.core.facts import Change
from baton_cli.core.lifecycle import Assignment, Event, State
from baton_cli.core.listing import named
from baton_cli.core.receipt import SealedReceipt
from baton_cli.errors import BatonError
from baton_cli.flow.parts import branch, evidence, gate, holding, merging, stops
from baton_cli.git import repo
from baton_cli.store import assignments, merges
from baton_cli.store import evidence as stored
from baton_cli.store import plans as store_plans

TRIES = 3
# The tickets of a change whose work the plan, as it is at this moment, still asks for. Raises its plan error.
Wanted = Callable[[str], Collection[int]]
ONE_TICKET = frozenset({"merge_driver", "unrelated_history"})  # stop that ticket's merge and no other


@dataclass(frozen=True, slots=True)
class Integrated:
    """What one round did: `busy` names who holds the lock, `stopped` is a reason only a person can remove."""

    busy: dict[str, Any] | None = None
    stopped: BatonError | None = None
    moved: tuple[Assignment, ...] = ()


def integrate(context: Context, change: str, setup: Sequence[str], *, wait: bool, wanted: Wanted) -> Integrated:
    """Integrate what is sealed, this change first, then the others of the project, whose callers found the lock busy."""
    moved: list[Assignment] = []
    stopped: BatonError | None = None
    while stopped is None and _sealed(context):
        with holding.integration(context, wait=wait) as held:
            if not held:
                return Integrated(locks.holder(locks.integration_path(context.project)) or {}, stopped, tuple(moved))
            before = len(moved)
            for name in _changes(context, change):
                error = _drain(context, name, setup, wanted, moved)
                if error is not None:
                    stops.record(context, name, error)
                stopped = stopped or (error if name == change else None)
        if len(moved) == before:
            break  # what is still sealed is locked by a seal that runs, or waits for right of way
    return Integrated(None, stopped, tuple(moved))


def _changes(context: Context, first: str) -> tuple[str, ...]:
    rest = [item.change for item in store_plans.all_changes(context.store) if item.change != first]
    return (first, *rest)


def _sealed(context: Context) -> bool:
    return any(item.state is State.SEALED for item in assignments.every_open(context.store))


def _queue(context: Context, change: str, wanted: Wanted) -> tuple[Assignment, ...]:
    """What is sealed, in its order, as far as the plan still asks for it; the rest is ended or held by `actions`."""
    held = assignments.of_change(context.store, change)
    if all(item.state is not State.SEALED for item in held):
        return ()
    asked = wanted(change)
    return integration.queue(item for item in held if item.ticket_id in asked)


def _drain(
    context: Context, change: str, setup: Sequence[str], wanted: Wanted, moved: list[Assignment]
) -> BatonError | None:
    """Integrate the queue of one change until it is empty; what is locked by a running seal is left for later.

    What stops only one ticket (its merge needs a person) is returned at the end and holds up no other.
    """
    left: set[str] = set()
    stopped: BatonError | None = None
    while True:
        row = store_plans.get_change(context.store, change)
        try:
            queue = [item for item in _queue(context, change, wanted) if item.id not in left]
        except BatonError as error:
            return error
        if row is None or not queue:
            return stopped
        with holding.assignment(context, queue[0].id, wait=False) as held:
            if not held:
                left.add(queue[0].id)
                continue
            assignment = assignments.get(context.store, queue[0].id)
            if assignment.state is not State.SEALED:
                continue
            try:
                moved.append(_settle(context, row, assignment, setup))
            except BatonError as error:
                if error.code not in ONE_TICKET:
                    return error
                left.add(assignment.id)
                stopped = error


def _settle(context: Context, change: Change, assignment: Assignment, setup: Sequence[str]) -> Assignment:
    """Bring one sealed assignment to its next state. The ref moves at most once, by compare-and-set."""
    for _ in range(TRIES):
        current = store_plans.get_change(context.store, change.change) or change
        head = branch.head(context, current)
        assignment = assignments.get(context.store, assignment.id)
        if assignment.state is not State.SEALED:
            return assignment  # its merge was interrupted before it was recorded, and is now
        try:
            receipt = evidence.check(context, assignment)
        except BatonError as refusal:
            if not refusal.verdict:
                raise
            return _move(
                context, assignment, Event.EVIDENCE_STALE, reason=refusal.code, detail=refusal.message, receipt=None
            )
        by_hand = f"merge {current.integration_branch} in the ticket's worktree by hand, then seal again"
        merged = merging.in_memory(context, current, head, receipt.head, by_hand, receipt.tree)
        if merged.conflicts:
            files = ", ".join(merged.conflicts[:5])
            return _refuse(context, assignment, Event.CONFLICT, head, "conflict", f"it conflicts in {files}")
        verdict = _judge(context, current, assignment, receipt, head, merged.tree, setup)
        if verdict.failed is not None:
            return _refuse(context, assignment, Event.GATE_FAILED, head, "gate_failed", verdict.failed)
        done = _commit(context, current, assignment, receipt, head, merged.tree, verdict)
        if done is not None:
            return done
    raise BatonError(
        "integration_moved",
        f"{change.integration_branch} keeps being moved by somebody else",
        "stop that, then call again",
    )


def _judge(
    context: Context,
    change: Change,
    assignment: Assignment,
    receipt: SealedReceipt,
    head: str,
    tree: str,
    setup: Sequence[str],
) -> gate.Gate:
    store = context.store
    earlier = store_plans.integrated_commands(store, change.change) if context.config.integrate_verify == "all" else ()
    known = store_plans.proved_commands(store, change.change, tree)
    wanted, by_receipt = integration.unproved(receipt=receipt, merged_tree=tree, earlier=earlier, proved=known)
    own = {
        check["command"]: check["timeout"]
        for check in json.loads(stored.packet(store, receipt.packet) or b"{}")["checks"]
    }
    question = gate.Question(
        what=assignment.ticket,
        tree=tree,
        onto=head,
        sealed=receipt.head,
        wanted=wanted,
        by_receipt=by_receipt,
        known=[command for command in dict.fromkeys((*receipt.commands, *earlier)) if command in known],
        timeouts={command: own.get(command, context.config.verify_timeout) for command in wanted},
    )
    log = context.project.logs / f"{assignment.id}-{assignment.attempt.number}.log"
    return gate.judge(context, question, lambda: branch.own_worktree(context, change, head), setup, log)


def _move(context: Context, assignment: Assignment, event: Event, **columns: Any) -> Assignment:
    with context.store.transaction():
        moved = assignments.move(context.store, assignment, event, context.now(), **columns)
        if event is Event.GATE_FAILED:
            assignments.set_attempt(context.store, moved, counted=1)
        return assignments.get(context.store, moved.id)


def _refuse(context: Context, assignment: Assignment, event: Event, head: str, reason: str, detail: str) -> Assignment:
    """Back to a worker, with the tickets named that it met."""
    conflicts = assignment.conflicts + (event is Event.CONFLICT)
    met = branch.merged_since(context, assignment.base or head, head, assignment.ticket)
    if met:
        detail += f"; merged since its base: {named(met)}"
    return _move(
        context,
        assignment,
        event,
        reason=reason,
        detail=detail,
        onto=head,
        refused_head=assignment.sealed_head,
        receipt=None,
        conflicts=conflicts,
    )


def _commit(
    context: Context,
    change: Change,
    assignment: Assignment,
    receipt: SealedReceipt,
    head: str,
    tree: str,
    verdict: gate.Gate,
) -> Assignment | None:
    """Commit, move the ref, record. None when somebody else moved the ref first."""
    repository, store, now = context.project.repository, context.store, context.now()
    message = integration.merge_message(
        title=assignment.title,
        change=change.change,
        key=assignment.ticket,
        fingerprint=assignment.fingerprint,
        receipt=receipt,
        gate=verdict.record,
    )
    commit = repo.commit_tree(repository, tree, (head, receipt.head), message)
    if not repo.update_ref(repository, change.integration_ref, commit, head):
        return None
    with store.transaction():
        store_plans.record_proofs(store, change.change, tree, verdict.ran, now)
        return merges.record_merge(store, assignment, commit, head, tree, verdict.proved, receipt.commands, now)
