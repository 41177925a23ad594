"""Makes the world agree again: interrupted merges, removed tickets, expired leases, unseen work, worktrees left over."""

from __future__ import annotations

from collections.abc import Container, Sequence

from baton_cli.context import Context
from baton_cli.core import names
from baton_cli.core.facts import Change
from baton_cli.core.frontier import FINISHED, Status, TicketView
from baton_cli.core.lifecycle import Assignment, Event, State, counts_as_attempt
from baton_cli.errors import BatonError
from baton_cli.flow.parts import activity, attempts, branch, clearing, holding, stops, strayed, tickets
from baton_cli.flow.parts.tickets import Loaded
from baton_cli.flow.parts.travelled import Travelled, asked
from baton_cli.git import leftovers, repo
from baton_cli.git.run import version
from baton_cli.store import assignments, events
from baton_cli.store import plans as store_plans

EXTERNAL = Status.EXTERNAL.value


def start(context: Context, loaded: Loaded) -> Change:
    """Record a change that is first run: its integration branch starts at the HEAD of the checkout, and what came with
    the repository below that is recorded as finished.

    With the store gone but the branch there, the rest is read from the branch's own commits. Errors: `change_renamed`,
    `integration_elsewhere`.
    """
    change = loaded.change
    version()  # too old a git is refused before anything is made
    if (wrong := strayed.refusal(context, loaded)) is not None:
        raise wrong
    repository = context.project.repository
    head = repo.head(repository)
    name = names.integration_branch(context.config.branch_prefix, change)
    taken = repo.refs(repository, *_above(name), f"refs/heads/{name}")
    found = taken.get(f"refs/heads/{name}")
    begun = found is not None
    base = head.oid if found is None else repo.merge_base(repository, head.oid, found) or found
    row = Change(change, head.branch, base, name, base, None, context.now())
    _refuse_taken(name, taken)
    if not begun:
        # A first start may have been killed with its git: no lock of Baton's covers a change that is not recorded yet.
        leftovers.clear(context.project.common_dir, (row.integration_ref,), branch.own_place(context, row), sure=False)
        if not repo.update_ref(repository, row.integration_ref, head.oid, repo.NO_OID):
            return store_plans.get_change(context.store, change) or start(context, loaded)  # another process was first
    facts = Travelled(context).facts(change, asked(loaded.plan.document, loaded.ticket_ids), base)
    with context.store.transaction():
        other = store_plans.get_change(context.store, change)
        if other is not None:
            return other
        store_plans.start_change(context.store, row)
        for fact in facts:
            store_plans.complete(context.store, change, fact)
    if begun:
        finish_merges(context, row)
    return store_plans.get_change(context.store, change) or row


def follow(context: Context, change: Change) -> Change:
    """Move the base of a change on which nothing was done yet to where its target branch is by now.

    The ref first, then the row: killed in between, the next call finds a ref on the target's own line and goes on.
    """
    target = f"refs/heads/{change.target_branch}"
    untouched = change.integration_head == change.base and not assignments.of_change(context.store, change.change)
    if change.target_branch is None or not untouched or store_plans.completions(context.store, change.change):
        return change
    repository = context.project.repository
    with holding.integration(context, wait=False) as held:
        found = repo.refs(repository, target, change.integration_ref) if held else {}
        tip, ref = found.get(target), found.get(change.integration_ref, change.base)
        if tip is None or tip == change.base or not repo.is_ancestor(repository, change.base, tip):
            return change
        ours = ref == change.base or (
            repo.is_ancestor(repository, change.base, ref) and repo.is_ancestor(repository, ref, tip)
        )
        old = found.get(change.integration_ref, repo.NO_OID)
        if not ours or not repo.update_ref(repository, change.integration_ref, tip, old):
            return change
        with context.store.transaction():
            store_plans.set_base(context.store, change.change, tip)
            detail = f"from {change.base[:12]} to {tip[:12]}, as {change.target_branch}: nothing was begun yet"
            events.append(context.store, context.now(), change.change, "base moved", detail=detail)
    return change._replace(base=tip, integration_head=tip)


def _above(branch: str) -> list[str]:
    """The refs that must not be there if `branch` is to be made: git keeps a branch where it would need a folder."""
    parts = branch.split("/")
    return ["refs/heads/" + "/".join(parts[: count + 1]) for count in range(len(parts) - 1)]


def _refuse_taken(branch: str, taken: Container[str]) -> None:
    for name in _above(branch):
        if name in taken:
            raise BatonError(
                "branch_name_taken",
                f"the branch {name.removeprefix('refs/heads/')} exists, so {branch} cannot be made",
                "choose another [branches] prefix in baton.toml",
            )


def finish_merges(context: Context, change: Change) -> BatonError | None:
    """Record what a killed integration had already moved. Busy lock: its holder is alive and does it."""
    with holding.integration(context, wait=False) as held:
        if held:
            error = None
            try:
                branch.head(context, store_plans.get_change(context.store, change.change) or change)
            except BatonError as stopped:
                error = stopped
            stops.record(context, change.change, error)
            return error
    return None


def unwanted(context: Context, loaded: Loaded, views: Sequence[TicketView]) -> tuple[tuple[Assignment, str], ...]:
    """The open assignments whose ticket was removed or finished otherwise, and which of it.

    A ticket that may still be one of the ambiguous ones keeps its assignment until a person has told them apart.
    """
    finished = {view.ticket_id: view.status.value for view in views if view.status in FINISHED}
    going_on = {view.ticket_id for view in views if view.status not in FINISHED}
    if any("ambiguous" in view.planned.flags and view.ticket_id in going_on for view in views):
        going_on |= loaded.unsure
    return tuple(
        (assignment, finished.get(assignment.ticket_id, "removed"))
        for assignment in assignments.of_change(context.store, loaded.change)
        if assignment.ticket_id not in going_on
    )


def supersede(context: Context, loaded: Loaded, views: Sequence[TicketView]) -> tuple[str, ...]:
    """End the assignments of tickets that were removed, skipped or done by hand. Their work stays where it is."""
    notices = []
    for assignment, cause in unwanted(context, loaded, views):
        with holding.assignment(context, assignment.id, wait=False) as held:
            if not held:
                continue  # a seal runs; the next call sees to it
            with context.store.transaction():
                current = assignments.get(context.store, assignment.id)
                if current.open:
                    assignments.move(context.store, current, Event.SUPERSEDE, context.now(), reason=f"ticket_{cause}")
                    said = (
                        "was ticked by hand (by you, or by an agent that strayed)"
                        if cause == EXTERNAL
                        else f"is {cause}"
                    )
                    notices.append(
                        f"{current.ticket} {said}: its assignment ended, the work is kept on {current.branch}"
                    )
    return tuple(notices)


def retire(context: Context, loaded: Loaded) -> tuple[str, ...]:
    """The same outside of `actions`, after what is merged already was recorded: that is not to be ended."""
    row, views = store_plans.get_change(context.store, loaded.change), tickets.views(context, loaded)
    if row is None or not unwanted(context, loaded, views):
        return ()
    finish_merges(context, row)
    return supersede(context, loaded, views)


def lapse(context: Context, change: str, take_over: str | None) -> tuple[str, ...]:
    """Expire claims, and say when there was nothing to take over: the name may be mistyped."""
    expired = expire(context, change, take_over)
    if take_over is None or any(one.attempt.session == take_over for one in expired):
        return ()
    return (f"nothing was taken over: session {take_over} holds no claim of this change",)


def expire(context: Context, change: str, take_over: str | None) -> tuple[Assignment, ...]:
    """Claims whose lease ran out, or whose session is taken over, become `unknown`. A locked one never expires."""
    expired = []
    for assignment in assignments.of_change(context.store, change, [State.CLAIMED]):
        attempt = assignment.attempt
        taken = take_over is not None and attempt.session == take_over
        if not taken and attempt.lease_expires_at > context.now():
            continue
        with holding.assignment(context, assignment.id, wait=False) as held:
            if held and (taken or not _renewed(context, assignment)):
                expired.append(_expire(context, assignment, "taken_over" if taken else "lease_expired"))
    return tuple(item for item in expired if item is not None)


def release(context: Context, change: str, session: str) -> int:
    """End the claims of a session that is gone; how many are left, because somebody seals them just now."""
    expire(context, change, session)
    left = assignments.of_change(context.store, change, [State.CLAIMED])
    return sum(1 for assignment in left if assignment.attempt.session == session)


def _renewed(context: Context, assignment: Assignment) -> bool:
    """New commits or changed files since the last evidence renew a lease."""
    seen = activity.last_activity(context, assignment)
    if seen is None or seen <= assignment.attempt.evidence_at:
        return False
    expires = seen + context.config.lease
    if expires <= context.now():
        return False
    with context.store.transaction():
        assignments.set_attempt(context.store, assignment, evidence_at=seen, lease_expires_at=expires)
    return True


def _expire(context: Context, assignment: Assignment, reason: str) -> Assignment | None:
    head = activity.head_of(context, assignment)
    moved = head is not None and head != (assignment.attempt.start_head or assignment.base)
    counted = reason == "lease_expired" and counts_as_attempt("lease_expired", moved)
    store, now = context.store, context.now()
    with store.transaction():
        current = assignments.get(store, assignment.id)
        if current.state is not State.CLAIMED or current.attempt != assignment.attempt:
            return None
        why = attempts.standing(current, reason, None)
        moved_on = assignments.move(store, current, Event.LEASE_EXPIRED, now, logged=(reason, ""), **why)
        return assignments.set_attempt(store, moved_on, counted=int(counted), settled_at=now)


def vouchable(context: Context, change: str) -> tuple[Assignment, ...]:
    """`unknown` assignments whose agent said `completed` and left a clean head beyond what was there: worth a seal by Baton."""
    found = []
    for assignment in assignments.of_change(context.store, change, [State.UNKNOWN]):
        path = context.worktree(assignment.worktree)
        if assignment.attempt.terminal != "completed" or assignment.prepared_at is None or not path.exists():
            continue
        if repo.head(path).oid in (assignment.base, assignment.refused_head) or _tried(context, assignment):
            continue
        found.append(assignment)
    return tuple(found)


def _tried(context: Context, assignment: Assignment) -> bool:
    """Whether a seal was refused since this attempt ended: the same checks on the same work say the same."""
    names_since = [
        event.name
        for event in events.history(context.store, assignment_id=assignment.id)
        if event.attempt == assignment.attempt.number
    ]
    return "seal_refused" in names_since[names_since.index("ended") :] if "ended" in names_since else False


def clear_worktrees(context: Context, change: str) -> tuple[str, ...]:
    """Remove the worktrees and branches of integrated work whose agent has ended; keep and name what holds anything else."""
    notices = []
    for assignment in assignments.with_worktree(context.store, change):
        if assignment.attempt.settled_at is None and assignment.attempt.lease_expires_at > context.now():
            continue
        with holding.assignment(context, assignment.id, wait=False) as held:
            if held:
                kept = clearing.clear(context, assignment)
                if kept and kept != assignment.kept:
                    notices.append(f"the worktree of {assignment.ticket} is kept: {kept}")
    return tuple(notices)
