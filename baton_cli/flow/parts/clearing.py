"""The worktree and branch of work that has ended: what they hold beyond what is kept elsewhere, and their removal when
that is nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

from baton_cli import locks
from baton_cli.context import Context
from baton_cli.core.lifecycle import Assignment, State
from baton_cli.errors import BatonError
from baton_cli.git import repo, worktree
from baton_cli.store import assignments

_PID = re.compile(r"\bpid\W{0,3}(\d{1,9})\b", re.I)


def clear(context: Context, assignment: Assignment) -> str | None:
    """Remove both, or say why not. Either is recorded. The caller holds the assignment's lock."""
    kept, tip = _examined(context, assignment)
    if kept is None:
        kept = _remove(context, assignment, tip)
    with context.store.transaction():
        if kept is None:
            assignments.set_columns(context.store, assignment, removed_at=context.now(), kept=None)
            assignments.log(context.store, assignment, "worktree_removed", context.now())
        elif kept != assignment.kept:
            assignments.set_columns(context.store, assignment, kept=kept)
            assignments.log(context.store, assignment, "worktree_kept", context.now(), detail=kept)
    return kept


def reason_to_keep(context: Context, assignment: Assignment) -> str | None:
    """What worktree or branch hold beyond the integrated commit; None when nothing."""
    return _examined(context, assignment)[0]


def _examined(context: Context, assignment: Assignment) -> tuple[str | None, str | None]:
    """The reason to keep them, if any, and where the branch is."""
    repository, path = context.project.repository, context.worktree(assignment.worktree)
    ref = f"refs/heads/{assignment.branch}"
    tip = repo.refs(repository, ref).get(ref)
    # Of work that was given up, only what was there before it began is safe elsewhere.
    merged = assignment.integrated_commit or assignment.base or ""
    if tip is not None and not merged:
        return "nobody knows where it began", tip
    sealed = assignment.sealed_head if assignment.state is State.INTEGRATED else None
    if tip is not None and tip != sealed and not repo.is_ancestor(repository, tip, merged):
        return f"{assignment.branch} has commits that are not integrated", tip
    if not path.exists():
        return None, tip
    placed: Mapping[str, object] = json.loads(assignment.placed or "{}")
    return in_worktree(repository, path, merged, str(placed.get("digest"))), tip


def in_worktree(repository: Path, path: Path, merged: str, known_ignored: str) -> str | None:
    """What the worktree at `path` holds beyond the commit `merged` and the ignored files of that digest."""
    if called_in(path):
        return "this call was made in it"
    try:
        operation = repo.operation(path)
        if operation is not None:
            return f"a {operation} is in progress"
        state = repo.cleanliness(path)
        if state.branch is None and not repo.is_ancestor(repository, state.head, merged):
            return f"its HEAD {state.head[:12]} is on no branch"
    except BatonError as error:
        return error.message
    if state.changed or state.untracked:
        return f"not committed: {', '.join((*state.changed, *state.untracked)[:3])}"
    if state.ignored_digest != known_ignored:
        return f"ignored files: {', '.join(state.ignored[:3])}" if state.ignored else "ignored files changed"
    reason = worktree.lock_reason(path)
    if reason is not None and not owner_is_dead(reason):
        return f"it is locked: {reason or 'no reason given'}"
    return None


def called_in(path: Path) -> bool:
    """Whether this call was made in there: its caller would stand in a folder that is gone."""
    try:
        return Path.cwd().is_relative_to(path)
    except OSError:  # it stands in such a folder already
        return False


def owner_is_dead(reason: str) -> bool:
    """Whether a worktree's lock names a process ("pid 123") that no longer runs here."""
    found = _PID.search(reason)
    return found is not None and not locks.alive({"pid": int(found[1])})


def remove_worktree(repository: Path, path: Path) -> str | None:
    """Remove a worktree that holds nothing; why git did not, if so."""
    if worktree.lock_reason(path) is not None:
        worktree.unlock(repository, path)
    return None if worktree.remove(repository, path) else "git refused to remove it"


def _remove(context: Context, assignment: Assignment, tip: str | None) -> str | None:
    repository, path = context.project.repository, context.worktree(assignment.worktree)
    kept = None
    if path.exists():
        kept = remove_worktree(repository, path)
    else:
        worktree.forget_removed(repository, path)
    if kept is None and tip is not None:
        repo.delete_ref(repository, f"refs/heads/{assignment.branch}", tip)
    return kept
