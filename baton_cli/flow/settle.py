"""What a session tells of its agents: which one works on an assignment, and how its run ended. Recorded, never believed."""

from __future__ import annotations

import hmac

from baton_cli.context import Context
from baton_cli.core.lifecycle import Assignment, Event, State, Terminal, counts_as_attempt
from baton_cli.errors import USAGE, BatonError
from baton_cli.flow.parts import activity, attempts, holding
from baton_cli.store import assignments, evidence

NOTE_LIMIT = 4_000


def current(context: Context, assignment_id: str, claim_token: str) -> Assignment:
    """The assignment, if the token is that of its current attempt. Errors: `unknown_assignment`, `stale_claim`."""
    assignment = assignments.get(context.store, assignment_id)
    given = claim_token.encode("utf-8", "surrogateescape")
    if not hmac.compare_digest(assignment.attempt.claim_token.encode(), given):
        raise BatonError(
            "stale_claim",
            f"the token is not that of the current attempt on {assignment_id} ({assignment.ticket})",
            "if you copied it exactly, another attempt has taken this ticket over: drop it and call actions",
        )
    return assignment


def bind(context: Context, assignment_id: str, claim_token: str, agent: str) -> Assignment:
    """Record which agent works on an assignment. Idempotent; another agent is refused (`bound`)."""
    if not agent.strip():
        raise BatonError("no_agent", "the agent id is empty", "pass the id that the harness gave the subagent", USAGE)
    store, now = context.store, context.now()
    with store.transaction():
        assignment = current(context, assignment_id, claim_token)
        attempt = assignment.attempt
        if agent == attempt.session:
            raise BatonError(
                "agent_is_session",
                f"{agent!r} is the session itself, not its subagent",
                "pass the id of the subagent, or leave bind out",
                USAGE,
            )
        if attempt.agent not in (None, agent):
            raise BatonError(
                "bound",
                f"{assignment_id} is bound to agent {attempt.agent!r}",
                "one attempt has one agent; reconcile it before another starts",
            )
        if not assignment.open:
            return assignment
        evidence.acknowledge(store, attempt.batch, now)
        lease = {"lease_expires_at": now + context.config.lease, "evidence_at": now}
        assignment = assignments.set_attempt(store, assignment, agent=agent, **lease)
        if attempt.agent is None:
            assignments.log(store, assignment, "bound", now, cause=agent)
        return assignment


def renew(context: Context, assignment_id: str, claim_token: str) -> Assignment:
    """The agent of a claim lives: prolong its lease, once a quarter of it is over. Any other state is left as it is."""
    assignment = current(context, assignment_id, claim_token)
    store, now, lease = context.store, context.now(), context.config.lease
    if assignment.state is not State.CLAIMED or assignment.attempt.lease_expires_at > now + 0.75 * lease:
        return assignment
    with store.transaction():
        assignment = current(context, assignment_id, claim_token)
        if assignment.state is not State.CLAIMED:
            return assignment
        return assignments.set_attempt(store, assignment, lease_expires_at=now + lease)


def record_ending(
    context: Context, assignment_id: str, claim_token: str, terminal: Terminal, agent: str | None, note: str | None
) -> Assignment:
    """Record a completion notice once. A claim without a seal becomes `unknown`; a second notice changes nothing.

    Waits for a seal that runs just now: the notice of a child may overtake the end of its own seal.
    """
    current(context, assignment_id, claim_token)
    with holding.assignment(context, assignment_id, wait=True):
        assignment = current(context, assignment_id, claim_token)
        if assignment.attempt.terminal is not None:
            return assignment
        head = activity.head_of(context, assignment) if assignment.state is State.CLAIMED else None
        store, now = context.store, context.now()
        with store.transaction():
            assignment = current(context, assignment_id, claim_token)
            attempt = assignment.attempt
            if agent is not None and attempt.agent not in (None, agent):
                raise BatonError(
                    "bound",
                    f"{assignment_id} is bound to agent {attempt.agent!r}, not {agent!r}",
                    "reconcile with the agent's own assignment",
                )
            evidence.acknowledge(store, attempt.batch, now)
            moved = head is not None and head != (attempt.start_head or assignment.base)
            unsealed = assignment.state is State.CLAIMED
            assignment = assignments.set_attempt(
                store,
                assignment,
                terminal=terminal.value,
                note=(note or "")[:NOTE_LIMIT] or None,
                agent=agent or attempt.agent,
                settled_at=now,
                counted=int(attempt.counted or (unsealed and counts_as_attempt(terminal.value, moved))),
            )
            assignments.log(store, assignment, "ended", now, cause=terminal.value)
            if unsealed:
                reason = "left_unsealed" if moved and terminal is Terminal.COMPLETED else "no_receipt"
                left = _left_behind(terminal, head, moved, assignment.base)
                ended = reason, f"its agent ended ({terminal.value.replace('_', ' ')}) {left}"
                why = attempts.standing(assignment, *ended)
                assignment = assignments.move(store, assignment, Event.NO_RECEIPT, now, logged=ended, **why)
        return assignment


def _left_behind(terminal: Terminal, head: str | None, moved: bool, base: str | None) -> str:
    if head is None:
        return "and its worktree is gone; what is committed on its branch is kept"
    if not moved:
        return "with nothing new committed" if head != base else "with nothing committed"
    return "and left the seal to Baton" if terminal is Terminal.COMPLETED else "without a sealed receipt"
