"""A history as a whole: every commit that some tips reach, and what messages say. Two git calls at any length."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from baton_cli.git.refs import Commit
from baton_cli.git.run import decode, git


class Node(NamedTuple):
    """A commit without its message."""

    tree: str
    parents: tuple[str, ...]


def graph(cwd: Path, tips: Sequence[str]) -> dict[str, Node]:
    """Every commit that the tips reach, parents after their children. At a shallow end parents are missing."""
    if not tips:
        return {}
    out = git("log", "--topo-order", "--no-patch", "--format=%H %T %P", *tips, "--", cwd=cwd).text
    found = {}
    for line in out.splitlines():
        oid, tree, *parents = line.split(" ")
        found[oid] = Node(tree, tuple(parent for parent in parents if parent))
    return found


def mentioning(cwd: Path, tips: Sequence[str], text: str) -> tuple[Commit, ...]:
    """The commits that the tips reach with `text` in a line of their message."""
    if not tips:
        return ()
    shape = "--format=%H%x00%T%x00%P%x00%B"
    out = git("log", "-z", "--no-patch", "--fixed-strings", f"--grep={text}", shape, *tips, "--", cwd=cwd).out
    fields = [decode(field) for field in out.split(b"\0")]
    groups = (fields[start : start + 4] for start in range(0, len(fields) - 1, 4))
    return tuple(Commit(oid, tree, tuple(parents.split()), message) for oid, tree, parents, message in groups)


def cut_off(common_dir: Path) -> frozenset[str]:
    """The commits at which a shallow clone ends; nothing in a whole one."""
    try:
        return frozenset((common_dir / "shallow").read_text(encoding="ascii").split())
    except (OSError, ValueError):
        return frozenset()
