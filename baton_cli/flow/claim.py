"""Frontier -> claim, in one transaction, so that any number of processes give each ticket one owner."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from baton_cli.context import Context
from baton_cli.core import names
from baton_cli.core.frontier import TicketView, claimable, room, survey
from baton_cli.core.lifecycle import Assignment, Attempt, Event, State
from baton_cli.core.plan import Plan
from baton_cli.errors import USAGE, BatonError
from baton_cli.flow.parts import holding, tokens
from baton_cli.store import assignments
from baton_cli.store import plans as store_plans


def refuse_agents(context: Context, session: str) -> None:
    """A subagent sees the same tools as its parent but must not claim; an assignment's id is a slip of the pen. Errors:
    `agent_session`, `bad_session`."""
    for assignment in assignments.every_open(context.store):
        if assignment.id == session:
            raise BatonError(
                "bad_session",
                f"{session!r} is the assignment of {assignment.ticket}, not a session",
                f"pass the session of your last answer ({assignment.attempt.session} has this one), or `new`",
                USAGE,
            )
        if assignment.attempt.agent == session and assignment.attempt.terminal is None:
            raise BatonError(
                "agent_session",
                f"{session!r} is the agent that works on {assignment.ticket}: a worker must not claim tickets",
                "finish the ticket and run its seal command",
            )


def claim(
    context: Context, plan: Plan, ticket_ids: dict[str, int], *, session: str, capacity: int, checkout: str
) -> tuple[Assignment, ...]:
    """Claim what fits: orphaned assignments first, then the frontier, both in plan order. Losing a race is no error."""
    store, now = context.store, context.now()
    most = _places(context, session, capacity)
    if not most:
        return ()

    def offered() -> tuple[TicketView, ...]:
        facts, held = store_plans.completions(store, plan.change), assignments.of_change(store, plan.change)
        return claimable(survey(plan, ticket_ids, facts, held))

    orphans = [view.assignment for view in offered() if view.assignment is not None]
    with _unlocked(context, orphans, most) as free:
        with store.transaction():
            places = min(most, _places(context, session, capacity))
            claimed: list[Assignment] = []
            for view in offered():
                if len(claimed) >= places:
                    break
                if view.assignment is None:
                    fresh = _new(context, plan.change, view, session, checkout, now)
                    assignments.add(store, fresh)
                    claimed.append(fresh)
                elif view.assignment.id in free:
                    again = _again(context, view.assignment, session, checkout, now)
                    if again is not None:
                        claimed.append(again)
        return tuple(claimed)


def _places(context: Context, session: str, capacity: int) -> int:
    return room(session, capacity, context.config.parallel, assignments.every_open(context.store)).free


@contextmanager
def _unlocked(context: Context, orphans: Sequence[Assignment], places: int) -> Iterator[frozenset[str]]:
    """Hold the locks of orphans that nobody works on just now (file lock before database): of as many as can be taken,
    so that another claimer finds the rest free, and of those before them that are to be given up."""
    free: set[str] = set()
    with ExitStack() as stack:
        for item in orphans:
            if places <= 0:
                break
            if stack.enter_context(holding.assignment(context, item.id, wait=False)):
                free.add(item.id)
                places -= not _used_up(context, item)
        yield frozenset(free)


def _used_up(context: Context, assignment: Assignment) -> bool:
    return assignments.counted_attempts(context.store, assignment.id) >= context.config.attempts


def _new(context: Context, change: str, view: TicketView, session: str, checkout: str, now: float) -> Assignment:
    mark = tokens.new_mark()
    branch = names.ticket_branch(
        context.config.branch_prefix, change, view.planned.ticket.id or view.key.rpartition("#")[2], mark
    )
    return Assignment(
        id=f"{context.project.digest}-{mark}",
        change=change,
        ticket_id=view.ticket_id,
        ticket=view.key,
        title=view.planned.ticket.title,
        fingerprint=view.planned.ticket.fingerprint,
        state=State.CLAIMED,
        reason=None,
        detail=None,
        branch=branch,
        worktree=context.worktree_name(f"{names.slug(change)}/{mark}"),
        base=None,
        packet=None,
        placed=None,
        prepared_at=None,
        sealed_head=None,
        receipt=None,
        sealed_at=None,
        onto=None,
        refused_head=None,
        conflicts=0,
        integrated_commit=None,
        removed_at=None,
        kept=None,
        created_at=now,
        state_since=now,
        attempt=_attempt(context, 1, session, checkout, now, "dispatch"),
    )


def _attempt(context: Context, number: int, session: str, checkout: str, now: float, kind: str) -> Attempt:
    """A fresh attempt with a token of its own and a whole lease."""
    return Attempt(
        number=number,
        session=session,
        claim_token=tokens.new_token(),
        agent=None,
        claimed_at=now,
        lease_expires_at=now + context.config.lease,
        evidence_at=now,
        start_head=None,
        start_dirty=None,
        checkout=checkout,
        terminal=None,
        note=None,
        settled_at=None,
        counted=False,
        batch=None,
        kind=kind,
    )


def _again(context: Context, assignment: Assignment, session: str, checkout: str, now: float) -> Assignment | None:
    """Take over an orphaned assignment, or give it up when its attempts are used up."""
    store = context.store
    if _used_up(context, assignment):
        reason, detail = assignment.reason or "exhausted", assignment.detail
        assignments.move(store, assignment, Event.GIVE_UP, now, reason=reason, detail=detail)
        return None
    number = assignment.attempt.next_number
    kind = "recover" if number > assignment.attempt.number else "retry"  # from which the limit is counted
    attempt = _attempt(context, number, session, checkout, now, kind)
    return assignments.begin_attempt(store, assignment, Event.RECOVER, attempt, now, cause=assignment.state.value)
