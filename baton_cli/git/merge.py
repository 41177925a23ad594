"""Merges: in memory for integration, in a worktree for the agent that has to resolve one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from baton_cli.errors import BatonError
from baton_cli.git.refs import merge_base, resolve, tree, with_identity
from baton_cli.git.run import GitResult, decode, git
from baton_cli.git.tree import operation

# The user's own merge settings must neither change nor stop a merge that Baton starts.
SETTINGS = (
    "merge.autoStash=false",
    "merge.ff=true",
    "merge.verifySignatures=false",
    "merge.conflictStyle=merge",
    "merge.renames=true",
    "rerere.enabled=false",
    "rerere.autoUpdate=false",
    "pull.twohead=ort",
)
OPTIONS = (
    "--no-ff", "--no-squash", "--no-edit", "--no-verify", "--no-verify-signatures", "--no-gpg-sign", "--no-signoff",
    "--no-autostash", "--no-rerere-autoupdate", "--no-log", "--no-stat", "-s", "ort",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Merge:
    """What merging two commits gives: a tree, and the paths in conflict (the tree then holds conflict markers)."""

    tree: str
    conflicts: tuple[str, ...]

    @property
    def clean(self) -> bool:
        return not self.conflicts


def merge_tree(cwd: Path, ours: str, theirs: str) -> Merge:
    """Merge two commits in memory: no ref, index or file changes.

    Exit code 1 counts as a conflict only with a tree on stdout; anything else (unrelated histories, a missing object)
    is the error `git_failed`. A conflict that git pins to no file (a folder renamed two ways) is named ".".
    """
    output = ("--write-tree", "--name-only", "-z", "--no-messages")
    result = git(*_settings(), "merge-tree", *output, ours, theirs, cwd=cwd, ok=(0, 1))
    fields = [decode(field) for field in result.out.split(b"\0") if field]
    if not fields or len(fields[0]) < 40:
        line = next(iter(result.err.splitlines()), f"exit code {result.code} without a result")
        raise BatonError("git_failed", f"git merge-tree: {line}", f"git was called in {cwd}")
    return Merge(fields[0], tuple(dict.fromkeys(fields[1:])) or (".",) if result.code else ())


def brings_nothing(cwd: Path, branch: str, oid: str) -> bool:
    """Whether a branch has all that a commit has: it contains it, or merging it would change nothing, as after a squash."""
    onto = resolve(cwd, f"refs/heads/{branch}")
    if onto is None or merge_base(cwd, onto, oid) is None:
        return False
    merged = merge_tree(cwd, onto, oid)
    return merged.clean and merged.tree == tree(cwd, onto)


def start_committed(cwd: Path, oid: str, message: str) -> bool:
    """Merge `oid` in the worktree at `cwd` and commit (True, also when it is contained already); False when there is a
    conflict, which is left in progress. Error `git_failed` when git refuses."""
    result = _merge(cwd, ("--commit", "-m", message, oid))
    if result.code and operation(cwd) != "merge":
        raise _refused(result, cwd)
    return result.code == 0


def _merge(cwd: Path, args: Sequence[str]) -> GitResult:
    if operation(cwd) is not None:
        raise BatonError("operation_in_progress", f"a {operation(cwd)} is in progress in {cwd}", "finish it there")

    def call(env: Mapping[str, str], ok: Sequence[int]) -> GitResult:
        return git(*_settings(), "merge", *OPTIONS, *args, cwd=cwd, env=env, ok=ok)

    return with_identity(call, ok=(0, 1, 2, 128))


def _settings() -> tuple[str, ...]:
    return tuple(part for setting in SETTINGS for part in ("-c", setting))


def _refused(result: GitResult, cwd: Path) -> BatonError:
    lines = [line.strip() for line in (result.err or decode(result.out)).splitlines() if line.strip()]
    return BatonError("git_failed", f"git merge: {' '.join(lines[:3])}", f"git was called in {cwd}")
