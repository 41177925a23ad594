"""Signs of life in a worktree: when something last happened there, and what is in it."""

from __future__ import annotations

import hashlib
from pathlib import Path

from baton_cli.context import Context
from baton_cli.core.lifecycle import Assignment
from baton_cli.git import repo, worktree


def head_of(context: Context, assignment: Assignment) -> str | None:
    """The head of an assignment's worktree; None when the worktree or its branch is not there."""
    path = context.worktree(assignment.worktree)
    return repo.resolve(path, "HEAD") if worktree.sound(path) else None


def mark(context: Context, assignment: Assignment) -> tuple[str | None, str]:
    """The head of the worktree and a digest of what is uncommitted in it ("" when nothing is)."""
    path = context.worktree(assignment.worktree)
    if not worktree.sound(path):
        return None, ""
    condition = repo.condition(path)
    digest = hashlib.sha256()
    for name in condition.dirty:
        digest.update(name.encode("utf-8", "surrogateescape") + b"\0")
        time, size = _stat(path / name)
        digest.update(f"{size} {time}\0".encode())
    return condition.oid, digest.hexdigest() if condition.dirty else ""


def has_moved(context: Context, assignment: Assignment) -> bool:
    """Whether the worktree has a commit or a changed file that it had not when this attempt was handed out.

    One that is gone shows no life: somebody deleted it, which may have been anybody.
    """
    attempt = assignment.attempt
    head, dirty = mark(context, assignment)
    return head is not None and (head != attempt.start_head or dirty != (attempt.start_dirty or ""))


def last_activity(context: Context, assignment: Assignment) -> float | None:
    """When the worktree last changed since the attempt was handed out (seconds since the epoch); None: it did not."""
    if not has_moved(context, assignment):
        return None
    path = context.worktree(assignment.worktree)
    times = [_stat(path / name)[0] for name in repo.dirty(path)]
    times.append(int(repo.committed_at(path) * 1e9))
    return max(times) / 1e9


def _stat(path: Path) -> tuple[int, int]:
    try:
        found = path.lstat()
    except OSError:
        return 0, -1
    return found.st_mtime_ns, found.st_size
