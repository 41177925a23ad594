"""Lock files that a killed git leaves: removed by whoever holds Baton's lock over the same refs and worktree, or (where
nothing is recorded yet, so that there is no lock) when they are older than any git of Baton's would keep them.

Only those of our own refs and worktrees. What all of git shares (`packed-refs.lock`, `config.lock`) is not ours.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from baton_cli.git.tree import git_dir

LIMIT = 60.0  # seconds that a lock file of an unknown owner may stand
PAUSE = 0.05  # seconds


def clear(common_dir: Path, refs: Sequence[str], worktree: Path, *, sure: bool) -> None:
    """Remove the lock files of these refs (full names, `*` as in a shell) and of the linked worktree's own git folder.

    `sure`: nobody is left who could own one. Else each is waited for until it is `LIMIT` seconds old.
    """
    found = [path for ref in refs for path in sorted(common_dir.glob(f"{ref}.lock"))]
    if (worktree / ".git").is_file():
        found += sorted(git_dir(worktree).glob("*.lock"))
    for path in found:
        while not sure and 0 <= _age(path) < LIMIT:
            time.sleep(PAUSE)
        path.unlink(missing_ok=True)


def _age(path: Path) -> float:
    """Seconds since it was made; negative when it is gone."""
    try:
        return max(0.0, time.time() - path.lstat().st_mtime)
    except FileNotFoundError:
        return -1.0
