"""Locks, worktrees and refs as they are on disk, against what the store knows."""

from __future__ import annotations

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

OWN = ("integration", "baseline")


def held_locks(project: Project) -> Iterator[Finding]:
    """Who holds what, and who died with it. Nothing is made where no lock file is."""
    found = [(locks.integration_path(project), "the integration lock")]
    found += [(path, f"the lock of {path.stem}") for path in sorted((project.state / "locks").glob("*.lock"))]
    free = 0
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
            continue
        if busy:
            yield Finding(
                NOTE, "lock_held", f"{what} is held by {locks.describe(holder)}", "it is at work: wait for it"
            )
        elif holder is not None and not locks.alive(holder):
            dead = f"{what} was held by process {holder['pid']}, which is dead"
            yield Finding(NOTE, "lock_of_dead", dead, "nothing: the next call takes it over")
        else:
            free += 1
    if free:
        yield Finding(OK, "locks", f"locks that nobody holds: {free}")


def worktrees(
    project: Project, known: Mapping[str, Assignment] | None, open_places: frozenset[Path], *, repair: bool
) -> Iterator[Finding]:
    """Worktrees in Baton's folder. `known` are the assignments by their mark; None when the store cannot be read."""
    registered = worktree.registered(project.repository)
    ours = {path: name for path, name in registered.items() if path.is_relative_to(project.worktrees)}
    for path in sorted(project.worktrees.glob("*/*")):
        if path not in ours and path.is_dir():
            yield _unlinked(project, path, repair=repair)
    for path, name in sorted(ours.items()):
        mark = path.name
        stranger = known is not None and mark not in known and mark not in OWN
        if not path.exists():
            yield _gone(project, path, path in open_places, repair=repair)
        elif worktree.husk(path):
            yield Finding(NOTE, "husk", f"the making of {path} was cut short", "nothing: the next call makes it anew")
        elif (reason := worktree.lock_reason(path)) is not None:
            dead = clearing.owner_is_dead(reason)
            said = f"{path} is locked{' by a dead process' if dead else ''}: {reason or 'no reason given'}"
            fix = (
                "`baton clean` reclaims it once it is integrated"
                if dead
                else "`git worktree unlock` it if nobody is there"
            )
            yield Finding(WARNING, "worktree_locked", said, fix)
        elif stranger or (known is None and mark not in OWN):
            yield _stranger(path, name)
    if ours:
        yield Finding(OK, "worktrees", f"worktrees in {project.worktrees}: {len(ours)}")


def _gone(project: Project, path: Path, is_open: bool, *, repair: bool) -> Finding:
    if is_open:
        return Finding(
            NOTE, "worktree_gone", f"{path} is gone", "nothing: the next call makes it again from its branch"
        )
    said, fix = f"{path} is gone and git still lists it", "`baton doctor --repair` takes it off the list"
    repaired = repair and inspect.unlist(project.repository, path)
    return Finding(WARNING, "worktree_gone", said, fix, repaired)


def _unlinked(project: Project, path: Path, *, repair: bool) -> Finding:
    """A folder of ours that this repository does not list: moved, or a copy of another project's."""
    named = inspect.admin_name(path)
    if named is None:
        return Finding(WARNING, "no_worktree", f"{path} is no worktree", "look what is in it; Baton does not use it")
    admin = project.common_dir / "worktrees" / named[0]
    if named[1].is_dir() and not inspect.belongs(path, project.common_dir):
        return Finding(
            ERROR,
            "foreign_worktree",
            f"{path} belongs to another repository, {named[1].parent.parent}: this project is a copy",
            f"move {project.worktrees} away before Baton is used in the copy: its work is the original's",
        )
    said = f"{path} and the repository lost each other (was the project moved?)"
    if not admin.is_dir():
        return Finding(ERROR, "worktree_lost", said, "its record in git is gone: save what you need from its files")
    repaired = repair and inspect.repair_worktree(project.repository, path)
    return Finding(ERROR, "worktree_moved", said, "`baton doctor --repair` links them again", repaired)


def _stranger(path: Path, name: str | None) -> Finding:
    """A worktree that the store does not know, as after its loss, and whether anybody's work is in it."""
    try:
        dirty = repo.dirty(path)
    except BatonError as error:
        return Finding(ERROR, error.code, f"{path}: {error.message}", error.hint)
    on = f"on {name}" if name else "on no branch"
    said = f"{path} ({on}) is not in the store, and holds " + (
        f"files that are not committed: {', '.join(dirty[:3])}" if dirty else "no uncommitted file"
    )
    fix = f"see `git log {name}`" if name else "see `git log` there"
    return Finding(
        WARNING, "orphaned_worktree", said, f"{fix}, take what you need; `baton clean` removes integrated ones"
    )


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
            count = len(tuple(branch.unrecorded(context, change, found)))
        except BatonError as error:
            yield Finding(ERROR, error.code, error.message, error.hint)
        else:
            said = f"{change.integration_branch} has {count} commits of Baton's that are not recorded"
            yield Finding(NOTE, "unrecorded", said, "nothing: the next call records them")
    for oid in sorted(inspect.missing_objects(repository, heads)):
        fix = "fetch it from a clone; without it the change cannot go on"
        yield Finding(ERROR, "commit_missing", f"{heads[oid]} ({oid[:12]}) is not in the repository", fix)
    sealed = [ref for ref in repo.refs(repository, "refs/baton/sealed/") if ref.rpartition("/")[2] not in known]
    if sealed:
        said = f"of the refs in {names.sealed_ref('')}, {len(sealed)} are not in the store"
        yield Finding(NOTE, "unknown_refs", said, "`baton clean` removes those whose work is integrated")
