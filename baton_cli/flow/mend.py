"""Worktrees and branches of assignments that somebody moved, deleted or spoiled behind Baton's back: put back, first of all.

Nothing is deleted for that: what stands in the way is moved aside and named.
"""

from __future__ import annotations

from pathlib import Path

from baton_cli.context import Context
from baton_cli.core import names
from baton_cli.core.lifecycle import Assignment
from baton_cli.errors import BatonError
from baton_cli.flow.parts import holding
from baton_cli.git import inspect, repo, worktree
from baton_cli.store import assignments


def mend(context: Context, change: str) -> tuple[str, ...]:
    """Put back what the open assignments of a change need. One that is being sealed just now is left for the next call.

    Error: `foreign_worktree`.
    """
    held = [item for item in assignments.of_change(context.store, change) if item.prepared_at is not None]
    found = repo.refs(context.project.repository, *(f"refs/heads/{item.branch}" for item in held)) if held else {}
    notices = []
    for assignment in held:
        path = context.worktree(assignment.worktree)
        _refuse_copy(context, path)
        if f"refs/heads/{assignment.branch}" in found and worktree.sound(path):
            continue
        with holding.assignment(context, assignment.id, wait=False) as free:
            said = _mend(context, assignment, path) if free else None
        if said is not None:
            notices.append(f"{assignment.ticket}: {said}")
    return tuple(notices)


def _refuse_copy(context: Context, path: Path) -> None:
    """A project that was copied has worktrees that still are the original's: what is committed there goes there."""
    if not worktree.sound(path) or inspect.belongs(path, context.project.common_dir):
        return
    raise BatonError(
        "foreign_worktree",
        f"{path} belongs to another repository: this project is a copy of one with work in flight",
        f"move {context.project.worktrees} away before Baton is used here: its work is the original's",
    )


def _mend(context: Context, assignment: Assignment, path: Path) -> str | None:
    """What a person should know of it, if anything."""
    repository = context.project.repository
    if path.exists() and not worktree.sound(path):
        worktree.repair(repository, path)  # the whole repository was moved, or the worktree's `.git` was edited
    said = _branch(context, assignment, path)
    if worktree.sound(path):
        return said
    if path.exists():
        aside = worktree.set_aside(path)
        said = f"what lay in its worktree is in {aside} now" if aside is not None else said
    worktree.prune(repository)
    elsewhere = repo.checked_out(repository).get(assignment.branch)
    if elsewhere is not None and worktree.sound(elsewhere):
        if repo.git_dir(elsewhere).name != path.name:  # git keeps the name that a worktree was made with
            return (
                f"its worktree is gone, and {elsewhere} has its branch checked out: switch that one to another branch"
            )
        worktree.move(repository, elsewhere, path)
        return f"its worktree was moved to {elsewhere}, and is back in {path}"
    worktree.add_existing(repository, path, assignment.branch)
    return said


def _branch(context: Context, assignment: Assignment, path: Path) -> str | None:
    """The branch, if it was deleted, where it was last seen: in its worktree, at its seal, or at its beginning."""
    repository = context.project.repository
    ref, kept = f"refs/heads/{assignment.branch}", names.sealed_ref(assignment.id)
    found = repo.refs(repository, ref, kept)
    if ref in found:
        return None
    tip = worktree.last_head(path) or found.get(kept) or assignment.base or ""
    repo.update_ref(repository, ref, tip, repo.NO_OID)
    return f"its branch was deleted, and is back at {tip[:12]}"
