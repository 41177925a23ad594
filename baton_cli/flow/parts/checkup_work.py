"""Locks, worktrees and refs as they are on disk, against what the store knows."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from baton_cli import locks
from baton_cli.context import Context
from baton_cli.core import names
from baton_cli.core.findings import ERROR, NOTE, OK, WARNING, Finding
from baton_cli.core.lifecycle import Assignment
from baton_cli.errors import BatonError
from baton_cli.flow.parts import branch, clearing
from baton_cli.git import inspect, repo, worktree
from baton_cli.project import Project
from baton_cli.store import assignments
from baton_cli.store import plans as store_plans

OWN = (names.INTEGRATION, names.BASELINE)


def held_locks(project: Project) -> Iterator[Finding]:
    """Who holds what, and who died with it. Nothing is made where no lock file is."""
    found = [(locks.integration_path(project), "the integration lock")]
    found += [(path, f"the lock of {path.stem}") for path in sorted((project.state / "locks").glob("*.lock"))]
    free = True
    for path, what in found:
        if not path.exists():
            continue
        holder = locks.holder(path)
        try:
            first = path == found[0][0]
            lock = locks.integration_lock if first else partial(locks.assignment_lock, assignment_id=path.stem)
            with lock(project, wait=False) as ours:
                busy = not ours
        except BatonError as error:
            yield Finding(ERROR, error.code, error.message, error.hint)
            free = False
            continue
        if busy:
            yield Finding(NOTE, "lock_held", f"{what} is held by {locks.describe(holder)}, which is at work")
        elif holder is not None and not locks.alive(holder):
            dead = f"process {holder['pid']} died while it held {what}: the next call takes that over"
            yield Finding(NOTE, "lock_of_dead", dead)
        else:
            continue
        free = False
    if free:
        yield Finding(OK, "locks", "no lock is held")


def worktrees(
    project: Project, known: Mapping[str, Assignment] | None, open_places: frozenset[Path], *, repair: bool
) -> Iterator[Finding]:
    """Worktrees in Baton's folder. `known` are the assignments by their mark; None when the store cannot be read."""
    registered = worktree.registered(project.repository)
    ours = {path: name for path, name in registered.items() if path.is_relative_to(project.worktrees)}
    odd = [
        *(
            _unlinked(project, path, repair=repair)
            for path in sorted(project.worktrees.glob("*/*"))
            if path not in ours and path.parent not in ours and path.is_dir()
        ),
        *_listed(project, ours, known, open_places, repair=repair),
    ]
    yield from odd
    if ours and not odd:
        yield Finding(OK, "worktrees", f"worktrees in {project.worktrees}, all in order: {len(ours)}")


def _listed(
    project: Project,
    ours: Mapping[Path, str | None],
    known: Mapping[str, Assignment] | None,
    open_places: frozenset[Path],
    *,
    repair: bool,
) -> Iterator[Finding]:
    """What is odd about the worktrees of ours that git lists, by their paths and branches."""
    for path, name in sorted(ours.items()):
        mark = path.name
        stranger = known is not None and mark not in known and mark not in OWN
        if not path.exists():
            yield _gone(project, path, path in open_places, repair=repair)
        elif worktree.husk(path):
            yield Finding(NOTE, "husk", f"the making of {path} was cut short: the next call makes it anew")
        elif (reason := worktree.lock_reason(path)) is not None:
            dead = clearing.owner_is_dead(reason)
            said = f"{path} is locked{' by a dead process' if dead else ''}: {reason or 'no reason given'}"
            fix = (
                "`baton clean` removes it all the same, once its work is merged"
                if dead
                else f"if nobody is at work in it: git worktree unlock {shlex.quote(str(path))}"
            )
            yield Finding(WARNING, "worktree_locked", said, fix)
        elif stranger or (known is None and mark not in OWN):
            yield _stranger(path, name)


def _gone(project: Project, path: Path, is_open: bool, *, repair: bool) -> Finding:
    if is_open:
        return Finding(NOTE, "worktree_gone", f"{path} is gone: the next call makes it again from its branch")
    said, fix = f"{path} is gone, and git still lists it", "`baton doctor --repair` takes it off the list"
    repaired = repair and inspect.unlist(project.repository, path)
    return Finding(WARNING, "worktree_gone", said, fix, repaired)


def _unlinked(project: Project, path: Path, *, repair: bool) -> Finding:
    """A folder of ours that this repository does not list: moved, or a copy of another project's."""
    named = inspect.admin_name(path)
    if named is None:
        fix = "see what is in it, and move it away: Baton does not use it"
        return Finding(WARNING, "no_worktree", f"{path} is no worktree of git's", fix)
    admin = project.common_dir / "worktrees" / named[0]
    if named[1].is_dir() and not inspect.belongs(path, project.common_dir):
        return Finding(
            ERROR,
            "foreign_worktree",
            f"{path} belongs to another repository, {named[1].parent.parent}: this project is a copy",
            f"move {project.worktrees} away before Baton is used in the copy: its work is the original's",
        )
    said = f"git does not find {path} any more (was the project moved?)"
    if not admin.is_dir() and path.name in OWN:
        return Finding(NOTE, "husk", f"{path} is Baton's own and git has no record of it: the next call makes it anew")
    if not admin.is_dir():
        said, fix = f"git has no record of {path} any more", "take what you need from its files, then move it away"
        return Finding(ERROR, "worktree_lost", said, fix)
    repaired = repair and inspect.repair_worktree(project.repository, path)
    return Finding(ERROR, "worktree_moved", said, "`baton doctor --repair` links them again", repaired)


def _stranger(path: Path, name: str | None) -> Finding:
    """A worktree that the store does not know, as after its loss, and whether anybody's work is in it."""
    try:
        dirty = repo.dirty(path)
    except BatonError as error:
        return Finding(ERROR, error.code, f"{path}: {error.message}", error.hint)
    on = f"on branch {name}" if name else "on no branch"
    holds = f"files that are not committed: {', '.join(dirty[:3])}" if dirty else "no uncommitted file"
    said = f"Baton has no record of {path} ({on}, {holds})"
    look = f"git log {shlex.quote(name)}" if name else f"git -C {shlex.quote(str(path))} log"
    fix = f"see `{look}` and take what you need; `baton clean` removes it if it is merged, and else names the command"
    return Finding(WARNING, "orphaned_worktree", said, fix)


def refs(context: Context) -> Iterator[Finding]:
    """Refs that lead nowhere, and integration branches that are not where Baton left them."""
    repository = context.project.repository
    for ref in inspect.broken_refs(repository):
        yield Finding(
            ERROR, "broken_ref", f"{ref} names no commit of this repository", "restore it from a clone or reflog"
        )
    known: set[str] = set()
    heads: dict[str, str] = {}
    for change in store_plans.all_changes(context.store):
        every = assignments.everything(context.store, change.change)
        known |= {assignment.id for assignment in every}
        heads[change.integration_head] = f"the integration head of {change.change}"
        heads |= {
            item.sealed_head: f"the sealed head of {item.ticket}" for item in every if item.open and item.sealed_head
        }
        found = repo.refs(repository, change.integration_ref).get(change.integration_ref)
        if found is None or found == change.integration_head:
            continue
        try:
            commits = len(tuple(branch.unrecorded(context, change, found)))
        except BatonError as error:
            yield Finding(ERROR, error.code, error.message, error.hint)
        else:
            said = f"commits on {change.integration_branch} that the next call records: {commits}"
            yield Finding(NOTE, "unrecorded", said)
    for oid in sorted(inspect.missing_objects(repository, heads)):
        fix = "fetch it from a clone; without it the change cannot go on"
        yield Finding(ERROR, "commit_missing", f"{heads[oid]} ({oid[:12]}) is not in the repository", fix)
    kept = repo.refs(repository, names.SEALED, names.REPLACED)
    sealed = [ref for ref in kept if names.assignment_of_ref(ref) not in known]
    if sealed:
        said = f"refs in refs/baton/ of which Baton has no record: {len(sealed)}"
        yield Finding(
            NOTE, "unknown_refs", said, "`baton clean` removes those whose work is merged, and names the others"
        )
