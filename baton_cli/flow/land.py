"""Finished change -> the branch it started from. That branch only ever moves forward, to a tree that the gate has passed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from baton_cli.context import Context
from baton_cli.core import integration, names
from baton_cli.core.facts import Change
from baton_cli.core.listing import named
from baton_cli.errors import USAGE, BatonError
from baton_cli.flow.parts import branch, gate, holding, merging
from baton_cli.flow.parts.person import who
from baton_cli.git import landing, repo, worktree
from baton_cli.store import events
from baton_cli.store import plans as store_plans

TRIES = 3


@dataclass(frozen=True, slots=True)
class Landed:
    """Where the change is now. `before` is where `target` was (None: the change was on it already), `merged` the merge of
    `target` into the integration branch if one was needed, `place` the checkout whose files moved along."""

    target: str
    head: str
    before: str | None = None
    merged: str | None = None
    place: Path | None = None


def land(context: Context, change: Change, into: str | None, setup: Sequence[str]) -> Landed:
    """Bring the integration branch to `into`, by default where the change started. Nothing to do when it is there.

    Errors: `detached_start`, `no_such_branch`, `bad_target`, `land_conflict`, `land_rejected`, `would_lose`,
    `operation_in_progress`, `target_moved`, those of the integration branch.
    """
    target = _target(change, into)
    with holding.integration(context, wait=True):
        for _ in range(TRIES):
            done = _once(context, store_plans.get_change(context.store, change.change) or change, target, setup)
            if done is not None:
                return done
    raise BatonError("target_moved", f"{target} keeps being moved by somebody else", "stop that, then call again")


def _target(change: Change, into: str | None) -> str:
    target = into if into is not None else change.target_branch
    if target is None:
        raise BatonError(
            "detached_start",
            f"{change.change} was started on a detached HEAD, so there is no branch to land on",
            "name one with --into BRANCH",
            USAGE,
        )
    if target == change.integration_branch:
        raise BatonError("bad_target", f"{target} is the integration branch itself", "name another branch", USAGE)
    return target


def _once(context: Context, change: Change, target: str, setup: Sequence[str]) -> Landed | None:
    """One try; None when somebody moved a branch meanwhile."""
    repository, ref = context.project.repository, f"refs/heads/{target}"
    head = branch.head(context, change)
    tip = repo.refs(repository, ref).get(ref)
    if tip is None:
        raise BatonError("no_such_branch", f"there is no branch {target!r}", "name one with --into BRANCH")
    if repo.is_ancestor(repository, head, tip):
        _record(context, change, target, head)
        return Landed(target, head)
    place = _place(repository, target)
    merged = None
    if not repo.is_ancestor(repository, tip, head):
        tree = _merged(context, change, target, head, tip)
        _ask(place, tip, tree)  # before the gate, which may take long
        merged = _merge_target(context, change, target, (head, tip), tree, setup)
        if merged is None:
            return None
        head = merged
    if place is not None:
        if repo.head(place).oid != tip:
            return None
        _ask(place, tip, head)
        landing.advance(place, tip, head)
    # The branch last: a checkout ahead of its branch holds what is to come, one behind it would seem to undo it.
    if not repo.update_ref(place or repository, ref, head, tip):
        return None
    _record(context, change, target, head)
    return Landed(target, head, tip, merged, place)


def _record(context: Context, change: Change, target: str, head: str) -> None:
    """That the branch has it, once: also of a landing that was killed before it was recorded, or made elsewhere."""
    last, detail = events.latest(context.store, change.change, "landed"), f"{target} at {head}"
    if last is None or last.detail != detail:
        by = who(context)
        with context.store.transaction():
            events.append(context.store, context.now(), change.change, "landed", cause=by, detail=detail)


def _place(repository: Path, target: str) -> Path | None:
    """The checkout that has the branch checked out, if any. Errors: `operation_in_progress`, `checked_out_twice`."""
    places = [path for path, name in worktree.registered(repository).items() if name == target and path.exists()]
    if len(places) > 1:
        shown = " and ".join(map(str, places[:3]))
        raise BatonError("checked_out_twice", f"{target} is checked out in {shown}", "leave it in one of them")
    for place in places:
        operation = repo.operation(place)
        if operation is not None:
            raise BatonError(
                "operation_in_progress", f"a {operation} is in progress in {place}", "finish it, then call again"
            )
        return place
    return None


def _ask(place: Path | None, old: str, new: str) -> None:
    """Refuse when the checkout would lose anything. Error: `would_lose`."""
    found = landing.obstacles(place, old, new) if place is not None else ()
    if found:
        raise BatonError(
            "would_lose",
            f"landing would overwrite what is not committed in {place}: {named(found)}",
            "commit these files or put them elsewhere, then call again",
        )


def _merged(context: Context, change: Change, target: str, head: str, tip: str) -> str:
    """The tree of the branch to land on merged into the integration branch. Error: `land_conflict`."""
    by_hand = f"merge {change.integration_branch} into {target} by hand"
    result = merging.in_memory(context, change, head, tip, by_hand)
    if result.conflicts:
        raise BatonError(
            "land_conflict",
            f"{target} has moved to {tip[:12]} and conflicts with {change.integration_branch} in "
            f"{named(result.conflicts)}; nothing was changed",
            f"add a ticket to tasks.md that merges {target} and resolves this (so it passes the gate), or {by_hand}",
        )
    return result.tree


def _merge_target(
    context: Context, change: Change, target: str, parents: tuple[str, str], tree: str, setup: Sequence[str]
) -> str | None:
    """The branch to land on, merged into the integration branch through the gate. None when somebody moved that first.

    Error: `land_rejected`.
    """
    head, tip = parents
    store, repository = context.store, context.project.repository
    commands = store_plans.integrated_commands(store, change.change)
    known = store_plans.proved_commands(store, change.change, tree)
    question = gate.Question(
        what=target,
        tree=tree,
        onto=head,
        sealed=tip,
        wanted=[command for command in commands if command not in known],
        by_receipt=(),
        known=[command for command in commands if command in known],
        timeouts=dict.fromkeys(commands, context.config.verify_timeout),
    )
    log = context.project.logs / f"land-{names.slug(change.change)}.log"
    verdict = gate.judge(context, question, lambda: branch.own_worktree(context, change, head), setup, log)
    if verdict.failed is not None:
        raise BatonError(
            "land_rejected",
            f"{change.change} and what {target} has gained do not go together: {verdict.failed}",
            f"add a ticket to tasks.md that repairs it (it has to merge {target}), or repair {target}; then call again",
        )
    record = {**verdict.record, "target": tip}
    message = integration.target_message(
        target=target, change=change.change, branch=change.integration_branch, gate=record
    )
    commit = repo.commit_tree(repository, tree, parents, message)
    if not repo.update_ref(repository, change.integration_ref, commit, head):
        return None
    by, detail = who(context), f"{target} at {tip}"
    with store.transaction():
        store_plans.set_integration_head(store, change.change, head, commit)
        store_plans.record_proofs(store, change.change, tree, verdict.ran, context.now())
        events.append(store, context.now(), change.change, "target_merged", cause=by, detail=detail)
    return commit
