"""An operator's decisions. Each records who and why; none deletes work."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from baton_cli.context import Context
from baton_cli.core import integration
from baton_cli.core.actions import iso
from baton_cli.core.facts import DECIDED, Change, Completion
from baton_cli.core.frontier import FINISHED, Status, TicketView
from baton_cli.core.lifecycle import Assignment, Event, State
from baton_cli.errors import USAGE, BatonError
from baton_cli.flow.parts import branch, holding, tickets, tokens
from baton_cli.flow.parts.person import who
from baton_cli.git import repo
from baton_cli.invocation import typed
from baton_cli.store import assignments, events
from baton_cli.store import plans as store_plans

ENDING = (*DECIDED, "abandon")  # after which nobody goes on with what was begun
SAID = {
    "done": "counts as done by hand, and its box is {box}",
    "skip": "is left out of the change; its box stays as it is",
    "reopen": "is open again, and its box is {box}",
    "retry": "begins its attempts anew, with the work that is there",
    "abandon": "is free again: the work on it is given up",
}


def need_why(why: str | None) -> str:
    """The reason of a decision. Error: `no_reason`."""
    if why is None or not why.strip():
        raise BatonError("no_reason", "this decision needs a reason", "add --why 'the reason'", USAGE)
    return why.strip()


def finish(context: Context, change: Change, view: TicketView, decision: str, why: str) -> None:
    """`done` or `skip`: recorded on the integration branch, so that it travels, then in the store."""
    if view.status in FINISHED:
        raise BatonError(
            "already_finished",
            f"{view.key} is {view.status.value} already",
            "`baton reopen` takes it back into the plan",
        )
    held, by = view.assignment, who(context)
    with _on_branch(context, change, view, decision, by, why) as commit:
        if held is not None:
            current = assignments.get(context.store, held.id)
            reason = f"ticket_{DECIDED[decision]}"
            assignments.move(context.store, current, Event.SUPERSEDE, context.now(), reason=reason)
        fact = Completion(
            ticket_id=view.ticket_id,
            kind=DECIDED[decision],
            fingerprint=view.planned.ticket.fingerprint,
            assignment_id=None,
            commit=commit,
            checks=(),
            who=by,
            why=why,
            at=context.now(),
        )
        store_plans.complete(context.store, change.change, fact)


def outcome(context: Context, views: Sequence[TicketView], key: str, decision: str) -> Iterator[str]:
    """What is so after a decision, and what comes next, for the person who made it: one sentence each."""
    view = tickets.find(views, key)
    change, _, name = view.key.rpartition("#")
    said = SAID[decision].format(box="ticked" if view.planned.ticket.done else "not ticked")
    yield f"{name} {said}"
    ended = assignments.of_change(context.store, change, (State.ABANDONED,)) if decision in ENDING else ()
    begun = [one for one in ended if one.ticket_id == view.ticket_id and one.removed_at is None]
    if begun:
        yield f"its branch and worktree are kept: {begun[-1].branch}"
        if begun[-1].attempt.settled_at is None:
            yield "an agent may still be at work on it: what it does counts no longer"
        tip = repo.resolve(context.project.repository, f"refs/heads/{begun[-1].branch}")
        if decision == "abandon" and tip not in (None, begun[-1].base):
            yield f"to go on with it, merge it into the next worktree of this ticket: git merge {shlex.quote(begun[-1].branch)}"
    done = assignments.of_change(context.store, change, (State.INTEGRATED,)) if decision == "reopen" else ()
    if any(one.ticket_id == view.ticket_id for one in done):
        yield "what was merged for it stays merged"
    row, command = store_plans.get_change(context.store, change), typed(context.command)
    if all(one.status in FINISHED for one in views):
        yield f"next: every ticket is finished: {shlex.join((*command, 'land', change))}"
    elif row is not None and row.paused is not None:
        yield f"next: the change is paused: {shlex.join((*command, 'resume', change))}"
    elif decision in DECIDED:
        yield "next: the rest goes on with the next session or drive"
    elif view.status is Status.WAITING:
        yield f"next: it waits for {', '.join(one.rpartition('#')[2] for one in view.waits_for[:5])}"
    elif view.status is Status.BLOCKED:
        yield f"next: it needs a person: {shlex.join((*command, 'explain', view.key))}"
    else:
        yield "next: it goes to the next session or drive"


@contextmanager
def _on_branch(context: Context, change: Change, view: TicketView, decision: str, by: str, why: str) -> Iterator[str]:
    """A commit that says the decision and changes no file, then one transaction for what the caller records with it.

    Nobody seals or integrates the ticket's assignment meanwhile. Error: `seal_running`.
    """
    with holding.integration(context, wait=True), _quiet(context, view.assignment):
        change = store_plans.get_change(context.store, change.change) or change
        head = branch.head(context, change)
        repository, now, ticket = context.project.repository, context.now(), view.planned.ticket
        message = integration.decision_message(
            decision=decision,
            title=ticket.title,
            change=change.change,
            key=view.key,
            fingerprint=ticket.fingerprint,
            who=by,
            why=why,
            at=iso(now),
        )
        commit = repo.commit_tree(repository, repo.tree(repository, head), (head,), message)
        if not repo.update_ref(repository, change.integration_ref, commit, head):
            raise BatonError("integration_moved", f"{change.integration_branch} was moved just now", "call again")
        with context.store.transaction():
            store_plans.set_integration_head(context.store, change.change, head, commit)
            yield commit
            events.append(context.store, now, change.change, decision, ticket=view.key, cause=by, detail=why)


def reopen(context: Context, change: Change, view: TicketView, why: str) -> None:
    """Take back whatever finished a ticket. The integrated commit stays; the next work builds on it."""
    if view.status not in FINISHED:
        raise BatonError("not_finished", f"{view.key} is {view.status.value}", "only a finished ticket can be reopened")
    with _on_branch(context, change, view, "reopen", who(context), why):
        store_plans.revoke_completions(context.store, view.ticket_id, context.now())


def pause(context: Context, change: Change, why: str | None) -> None:
    """Hand nothing out until `resume` (`why` None); what runs goes on, and is settled and integrated.

    Error: `not_paused`.
    """
    name, by = "resume" if why is None else "pause", who(context)
    if why is None and change.paused is None:
        raise BatonError("not_paused", f"{change.change} is not paused", "see `baton status`")
    with context.store.transaction():
        store_plans.set_paused(context.store, change.change, None if why is None else f"{by}: {why}")
        events.append(context.store, context.now(), change.change, name, cause=by, detail=why)


@contextmanager
def _quiet(context: Context, assignment: Assignment | None) -> Iterator[None]:
    """While nobody seals or integrates an assignment; None: there is none. Error: `seal_running`."""
    if assignment is None:
        yield
        return
    with holding.assignment(context, assignment.id, wait=False) as held:
        if not held:
            raise BatonError(
                "seal_running",
                f"{assignment.ticket} is being sealed or integrated just now",
                "wait for it, then call again",
            )
        yield


def abandon(context: Context, view: TicketView, why: str) -> Assignment:
    """Give up the assignment. Branch and worktree stay; the ticket is free for a new assignment."""
    store, held, logged = context.store, tickets.assignment_of(view), (who(context), why)
    with _quiet(context, held), store.transaction():
        current = assignments.get(store, held.id)
        return assignments.move(store, current, Event.ABANDON, context.now(), reason="abandoned", logged=logged)


def retry(context: Context, view: TicketView, why: str | None) -> Assignment:
    """Count the attempts from zero and free the assignment, under a new token, for the next `actions`."""
    store, now, held, by = context.store, context.now(), tickets.assignment_of(view), who(context)
    with _quiet(context, held), store.transaction():
        assignment = assignments.get(store, held.id)
        attempt = assignment.attempt._replace(
            number=assignment.attempt.next_number,
            claim_token=tokens.new_token(),
            kind="retry",
            agent=None,
            terminal=None,
            note=None,
            settled_at=now,
            counted=False,
            batch=None,
        )
        fresh = assignments.begin_attempt(store, assignment, Event.RETRY, attempt, now, by, why)
        return assignments.set_columns(store, fresh, receipt=None) if assignment.state is State.SEALED else fresh
