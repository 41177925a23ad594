"""Takes away what integrated work no longer needs: worktrees, branches, refs. Whatever holds anything else stays, named."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from pathlib import Path

from baton_cli import project as projects
from baton_cli.context import Context
from baton_cli.core import integration, names
from baton_cli.core.actions import iso
from baton_cli.core.facts import Change
from baton_cli.core.lifecycle import Assignment, State
from baton_cli.errors import BatonError
from baton_cli.flow.parts import branch, clearing, holding
from baton_cli.git import history, merge, repo, worktree
from baton_cli.store import assignments, events
from baton_cli.store import plans as store_plans

UNKNOWN = "Baton has no record of it"


@dataclass
class Cleaned:
    """What was removed (or would be) and what was kept, as `{what, name, ...}`."""

    dry_run: bool
    removed: list[dict[str, str]] = field(default_factory=list)
    kept: list[dict[str, str]] = field(default_factory=list)

    def take(self, what: str, name: str) -> bool:
        """Note a removal; whether to do it."""
        self.removed.append({"what": what, "name": name})
        return not self.dry_run

    def keep(self, what: str, name: str, why: str) -> None:
        """Note what stays."""
        self.kept.append({"what": what, "name": name, "why": why})


def clean(context: Context, change: str | None, *, dry_run: bool) -> Cleaned:
    """Remove what is integrated, of one change or of all. Nothing that holds anything else goes, whatever its state."""
    done = Cleaned(dry_run)
    known: set[str] = set()
    branches: set[str | None] = set()
    for row in store_plans.all_changes(context.store):
        every = assignments.everything(context.store, row.change)
        known |= {assignment.id for assignment in every}
        branches |= {row.integration_branch, *(assignment.branch for assignment in every)}
        if change in (None, row.change):
            for assignment in every:
                _assignment(context, assignment, done)
            _sealed_refs(context, row, every, done)
            if not any(assignment.open for assignment in every):
                _own(context, row, done)
    _strangers(context, change, known, branches, done)
    return done


def _assignment(context: Context, assignment: Assignment, done: Cleaned) -> None:
    """The worktree and branch of one assignment."""
    if assignment.removed_at is not None:
        return
    path = context.worktree(assignment.worktree)
    ref = f"refs/heads/{assignment.branch}"
    place_there, branch_there = path.exists(), ref in repo.refs(context.project.repository, ref)
    if not place_there and not branch_there:
        return
    name = f"{assignment.branch} ({assignment.ticket})"
    if assignment.open:
        done.keep("branch", name, f"it is {assignment.state.value}")
        return
    if assignment.attempt.settled_at is None and assignment.attempt.lease_expires_at > context.now():
        done.keep(
            "branch",
            name,
            f"its agent has not ended yet, or nobody said so; its lease ends at {iso(assignment.attempt.lease_expires_at)}",
        )
        return
    with holding.assignment(context, assignment.id, wait=False) as held:
        why = "it is in use just now"
        if held:
            keep = clearing.reason_to_keep if done.dry_run else clearing.clear
            why = keep(context, assignment) or ""
    if why and assignment.state is State.ABANDONED:
        way = _drop(assignment.branch if branch_there else None, path if place_there else None)
        why = f"it was given up, and {why}; if nobody wants it, force git (as it stands it refuses): {way}"
    if why:
        done.keep("branch", name, why)
        return
    for what, named, there in (("branch", name, branch_there), ("worktree", str(path), place_there)):
        if there:
            done.take(what, named)


def _sealed_refs(context: Context, change: Change, every: tuple[Assignment, ...], done: Cleaned) -> None:
    """The refs that kept sealed heads reachable until they were merged, or until another head was sealed."""
    repository = context.project.repository
    integrated = {assignment.id: assignment for assignment in every if assignment.state is State.INTEGRATED}
    for ref, oid in repo.refs(repository, names.SEALED, names.REPLACED).items():
        assignment = integrated.get(names.assignment_of_ref(ref) or "")
        if assignment is None:
            continue
        if repo.held_by(repository, oid):
            if done.take("ref", ref):
                repo.delete_ref(repository, ref, oid)
        elif ref.startswith(names.REPLACED):
            why = f"it was sealed for {assignment.ticket} before another head was; delete the ref by hand if nobody wants it"
            done.keep("ref", ref, why)
        else:
            done.keep(
                "ref", ref, f"nothing else holds the commits of {assignment.ticket}: {change.change} was squashed?"
            )


def _own(context: Context, change: Change, done: Cleaned) -> None:
    """Baton's own worktree of a change that nobody works on, and the integration branch once it has landed."""
    repository = context.project.repository
    path = branch.own_place(context, change)
    with holding.integration(context, wait=False) as held:
        if not held:
            done.keep("branch", change.integration_branch, "something is being integrated just now")
            return
        if path.exists():
            why = _own_worktree(repository, path, change)
            if why is not None:
                done.keep("worktree", str(path), why)
            elif done.take("worktree", str(path)):
                worktree.discard(repository, path)
        tip = repo.refs(repository, change.integration_ref).get(change.integration_ref)
        if tip is None:
            return
        why = _not_landed(context, change, tip)
        if why is not None:
            done.keep("branch", change.integration_branch, why)
        elif done.take("branch", change.integration_branch):
            repo.delete_ref(repository, change.integration_ref, tip)


def _own_worktree(repository: Path, path: Path, change: Change) -> str | None:
    """Why even Baton's own worktree stays: somebody has been in it. What git ignores there comes from set-up and gate."""
    if clearing.called_in(path):
        return "this call was made in it"
    if not worktree.complete(path):
        return None  # cut short while it was made
    head = repo.head(path)
    known = repo.is_ancestor(repository, head.oid, change.integration_head)
    if head.branch is not None or not (
        known or repo.log_subjects(path, f"{head.oid}^", head.oid)[-1] == integration.UNDER_TEST
    ):
        return f"its HEAD {head.oid[:12]} is not Baton's"
    state = repo.cleanliness(path)
    dirty = (*state.changed, *state.untracked)
    return f"not committed: {', '.join(dirty[:3])}" if dirty else None


def _not_landed(context: Context, change: Change, tip: str) -> str | None:
    """Why the integration branch stays; None when another branch of this repository contains it."""
    repository = context.project.repository
    place = repo.checked_out(repository).get(change.integration_branch)
    if place is not None:
        return f"it is checked out in {place}"
    if tip == change.base and events.latest(context.store, change.change, "landed") is None:
        return "nothing has been integrated on it yet"
    prefix = f"refs/heads/{context.config.branch_prefix}/"
    if any(not ref.startswith(prefix) for ref in repo.held_by(repository, tip)):
        return None
    if change.target_branch is not None and merge.brings_nothing(repository, change.target_branch, tip):
        return f"its work is on {change.target_branch}, squashed: this branch holds the only evidence"
    archived = {folder.name for folder in projects.archived(context.project)}
    first = " once its folder is back in openspec/changes" if change.change in archived else ""
    return f"it has not landed: `baton land` brings it home{first}"


def _strangers(context: Context, change: str | None, known: set[str], branches: set[str | None], done: Cleaned) -> None:
    """Worktrees, branches and refs that the store does not know, as after its loss; `known` are assignments.

    Integrated is what a merge of ours names.
    """
    repository = context.project.repository
    slug = None if change is None else names.slug(change)
    refs = repo.refs(repository)
    tips = sorted({oid for ref, oid in refs.items() if ref.startswith("refs/heads/")})
    merged = {
        commit.parents[1]
        for commit in history.mentioning(repository, tips, "Baton-Receipt: ")
        if len(commit.parents) == 2 and integration.read_message(commit.message) is not None
    }
    marks = {assignment_id.rpartition("-")[2] for assignment_id in known}
    registered = worktree.registered(repository)
    for path, name in registered.items():
        if not path.is_relative_to(context.project.worktrees) or path.name in (
            *marks,
            names.INTEGRATION,
            names.BASELINE,
        ):
            continue
        if slug is not None and path.parent.name != slug:
            continue
        _stranger(context, path, name, merged, done)
    _stranger_branches(context, slug, refs, {*branches, *registered.values()}, merged, done)
    for ref, oid in refs.items():
        of = names.assignment_of_ref(ref)
        if of is not None and of not in known and slug is None:
            if oid in merged:
                if done.take("ref", ref):
                    repo.delete_ref(repository, ref, oid)
            else:
                why = f"{UNKNOWN}, and its commits are not integrated; delete the ref by hand if nobody wants them"
                done.keep("ref", ref, why)


def _stranger(context: Context, path: Path, name: str | None, merged: set[str], done: Cleaned) -> None:
    repository = context.project.repository
    if not path.exists():
        return  # `doctor` has a word for it
    head = repo.resolve(path, "HEAD") or ""
    if head not in merged:
        done.keep("worktree", str(path), _unknown(context, head, name, path))
        return
    why = clearing.in_worktree(repository, path, head, repo.NOTHING_IGNORED)
    if why is None and done.take("worktree", str(path)):
        why = clearing.remove_worktree(repository, path)
        if why is not None:
            done.removed.pop()
    if why is not None:
        done.keep(
            "worktree",
            str(path),
            f"{UNKNOWN}: {why}; if nobody wants it, force git (as it stands it refuses): {_drop(name, path)}",
        )
        return
    if name is not None and done.take("branch", name):
        repo.delete_ref(repository, f"refs/heads/{name}", head)


def _stranger_branches(
    context: Context, slug: str | None, refs: dict[str, str], taken: set[str | None], merged: set[str], done: Cleaned
) -> None:
    """Branches of this project's changes that the store does not know and that no worktree has (those are `taken`)."""
    project, ours = context.project, f"refs/heads/{context.config.branch_prefix}/"
    changes = (*projects.changes(project), *(folder.name for folder in projects.archived(project)))
    slugs = {names.slug(change) for change in changes} if slug is None else {slug}
    for ref, oid in refs.items():
        folder, _, last = ref.removeprefix(ours).partition("/")
        name = ref.removeprefix("refs/heads/")
        if not ref.startswith(ours) or folder not in slugs or name in taken:
            continue
        if last == "integration":
            landed = any(not other.startswith(ours) for other in repo.held_by(project.repository, oid))
            way = f"; its work is on another branch too, so if the change is over: {_drop(name)}" if landed else ""
            done.keep("branch", name, f"{UNKNOWN}: the next session or drive of its change goes on with it{way}")
        elif oid not in merged:
            done.keep("branch", name, _unknown(context, oid, name))
        elif done.take("branch", name):
            repo.delete_ref(project.repository, ref, oid)


def _unknown(context: Context, head: str, name: str | None, path: Path | None = None) -> str:
    """Why a branch, or a worktree with it, stays that the store does not know, and how a person removes it."""
    try:
        changed = repo.dirty(path) if path is not None else ()
        others = [ref for ref in repo.held_by(context.project.repository, head) if ref != f"refs/heads/{name}"]
    except BatonError as error:
        return f"{UNKNOWN}: {error.message}"
    holds = [f"files that are not committed ({', '.join(changed[:3])})"] if changed else []
    holds += ["commits that are on no other branch"] if not others else []
    way = _drop(name, path)
    if holds:
        return f"{UNKNOWN}, and it has {' and '.join(holds)}; if nobody wants it, force git (as it stands it refuses): {way}"
    return f"{UNKNOWN}; it has nothing of its own, so if nobody is at work there: {way}"


def _drop(name: str | None, path: Path | None = None) -> str:
    """The commands that remove a worktree and its branch. Never with force: where something would be lost git refuses, and
    says itself how a person insists."""
    remove = f"git worktree remove {shlex.quote(str(path))}" if path is not None else ""
    return " && ".join(part for part in (remove, f"git branch -d {shlex.quote(name)}" if name else "") if part)
