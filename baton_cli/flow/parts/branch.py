"""The integration branch as it is: whose commits are on it, and Baton's own worktree of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from baton_cli.context import Context
from baton_cli.core import integration, names
from baton_cli.core.facts import Change
from baton_cli.core.integration import Evidence
from baton_cli.core.lifecycle import State
from baton_cli.errors import BatonError
from baton_cli.git import inspect, repo, worktree
from baton_cli.store import assignments, merges
from baton_cli.store import plans as store_plans


def head(context: Context, change: Change) -> str:
    """The integration head, with every commit on it one of ours and recorded. The caller holds the integration lock.

    Finishes what a killed call left between moving the ref and recording it; puts a deleted branch back.
    Errors: `integration_checked_out`, `integration_moved`.
    """
    repository = context.project.repository
    found, place = repo.standing(repository, change.integration_ref)
    if found is None:
        place = repo.checked_out(repository).get(change.integration_branch)  # a branch without a commit can be, too
    if place is not None:
        raise BatonError(
            "integration_checked_out",
            f"{change.integration_branch} is checked out in {place}",
            "switch that worktree to another branch, then call again",
        )
    if found is None:
        repo.update_ref(repository, change.integration_ref, change.integration_head, repo.NO_OID)
        return change.integration_head
    if found != change.integration_head:
        _adopt(context, change, found)
    return found


def _adopt(context: Context, change: Change, found: str) -> None:
    """Record the commits that are on the branch but not in the store, or refuse the first that is not ours."""
    for commit, previous, evidence in unrecorded(context, change, found):
        with context.store.transaction():
            record_commit(context, change.change, commit, previous, evidence)


def unrecorded(context: Context, change: Change, found: str) -> Iterator[tuple[repo.Commit, str, Evidence]]:
    """The commits from the recorded head to `found`, each with the one before it. Error at the first that is not ours."""
    repository = context.project.repository
    recorded = change.integration_head
    if not repo.is_ancestor(repository, recorded, found):
        raise _moved(change, found, "the commit that Baton left there is no longer in its history")
    previous, previous_tree = recorded, repo.tree(repository, recorded)
    for commit in repo.first_parent(repository, recorded, found):
        evidence = integration.read_message(commit.message)
        wrong = integration.fault(
            evidence,
            change=change.change,
            tree=commit.tree,
            parents=commit.parents,
            previous=previous,
            previous_tree=previous_tree,
        )
        if wrong or evidence is None:
            raise _moved(change, commit.oid, wrong or "it is not ours")
        yield commit, previous, evidence
        previous, previous_tree = commit.oid, commit.tree


def record_commit(context: Context, change: str, commit: repo.Commit, previous: str, evidence: Evidence) -> None:
    """Record one valid commit of ours that the store does not know. Inside a transaction."""
    store, now = context.store, context.now()
    assignment = assignments.find(store, evidence.assignment_id) if evidence.assignment_id else None
    if assignment is not None and assignment.state is State.SEALED:
        commands = tuple(check["command"] for check in evidence.receipt["checks"]) if evidence.receipt else ()
        merges.record_merge(store, assignment, commit.oid, previous, commit.tree, (), commands, now)
        return
    if not store_plans.set_integration_head(store, change, previous, commit.oid):
        raise BatonError("changed_meanwhile", f"the head of {change} was moved by another process", "call again")
    if evidence.target is not None:
        return
    same = [ticket for ticket in store_plans.known_tickets(store, change) if ticket.fingerprint == evidence.fingerprint]
    if len(same) > 1:  # renumbering keeps the text; only twins need their number
        same = [ticket for ticket in same if ticket.key == evidence.key]
    if len(same) != 1:
        return
    if evidence.kind is None:
        store_plans.revoke_completions(store, same[0].ticket_id, now)
    else:
        store_plans.complete(store, change, evidence.completion(same[0].ticket_id, commit.oid))


def _moved(change: Change, commit: str, why: str) -> BatonError:
    return BatonError(
        "integration_moved",
        f"{change.integration_branch} was moved to {commit[:12]}, which is not Baton's: {why}",
        f"git branch kept-{commit[:8]} {change.integration_branch} keeps that, then git update-ref"
        f" {change.integration_ref} {change.integration_head} puts Baton's back; then call again",
    )


def own_place(context: Context, change: Change) -> Path:
    """Where Baton's own worktree of a change is, or would be."""
    return context.worktree(context.worktree_name(f"{names.slug(change.change)}/{names.INTEGRATION}"))


def own_worktree(context: Context, change: Change, oid: str) -> Path:
    """Baton's own detached worktree of a change, made when first needed."""
    path = own_place(context, change)
    repository = context.project.repository
    if not path.exists() or not inspect.belongs(path, context.project.common_dir) or not worktree.complete(path):
        worktree.discard(repository, path)
        worktree.make_room(path)
        worktree.add_detached(repository, path, oid)
    return path


def merged_since(context: Context, base: str, oid: str, own: str) -> tuple[str, ...]:
    """What was merged after `base`, newest first: the other side of a conflict or a red merge. Tickets by their keys, and
    the branch that a landing merged."""
    found = []
    for commit in repo.first_parent(context.project.repository, base, oid):
        evidence = integration.read_message(commit.message)
        if evidence is not None and evidence.decision is None and evidence.key != own:
            found.append(evidence.target or evidence.key)
    return tuple(reversed(found))
