"""Moving a branch that somebody has checked out: its files follow, and nothing that is theirs is touched."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from baton_cli.errors import BatonError
from baton_cli.git.run import encode, git
from baton_cli.git.tree import left_out

ABSENT, SUBMODULE = "000000", "160000"
TRIES, PAUSE = 10, 0.1  # seconds between two tries while another git process holds the index


class _Entry(NamedTuple):
    """A path as one of two commits has it."""

    mode: str
    oid: str
    path: str


def _changes(cwd: Path, old: str, new: str) -> tuple[tuple[_Entry, ...], tuple[_Entry, ...]]:
    """The paths that differ between two commits or trees, as the one and as the other has them."""
    fields = iter(git("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", old, new, "--", cwd=cwd).names)
    before, after = [], []
    for facts in fields:
        old_mode, new_mode, old_oid, new_oid, _ = facts.lstrip(":").split(" ")
        path = next(fields)
        before.append(_Entry(old_mode, old_oid, path))
        after.append(_Entry(new_mode, new_oid, path))
    return tuple(before), tuple(after)


def obstacles(cwd: Path, old: str, new: str) -> tuple[str, ...]:
    """What stands in the way of bringing the checkout at `cwd` (its top) from commit `old` to `new`, sorted.

    A path does when its file, or what is staged of it, is neither as in `old` nor as in `new`. Ignored files count like
    any other: git itself would overwrite them. What is as in `new` is the work of a call that was cut short.
    """
    before, after = _changes(cwd, old, new)
    paths = {entry.path for entry in before}
    files = _differing(cwd, before) & _differing(cwd, after)
    files -= left_out(cwd, frozenset(path for path in files if not os.path.lexists(cwd / path)))
    staged = _staged(cwd, old) & _staged(cwd, new) & paths
    folders = {found for entry in after if entry.mode != ABSENT for found in _in_the_place_of(cwd, entry, paths)}
    return tuple(sorted({*files, *staged, *folders}))


def _staged(cwd: Path, commit: str) -> set[str]:
    return set(git("diff-index", "--cached", "-z", "--name-only", "--no-renames", commit, "--", cwd=cwd).names)


def _differing(cwd: Path, entries: Iterable[_Entry]) -> set[str]:
    """The paths whose files are not as these entries say, by content through git's filters, and by mode."""
    wanted = [entry for entry in entries if entry.mode != SUBMODULE]
    found = {entry.path for entry in wanted if entry.mode == ABSENT and _is_file(cwd / entry.path)}
    present = [entry for entry in wanted if entry.mode != ABSENT]
    if not present:
        return found
    with tempfile.TemporaryDirectory(prefix="baton-index-", ignore_cleanup_errors=True) as scratch:
        env = {"GIT_INDEX_FILE": os.path.join(scratch, "index")}
        git("update-index", "-z", "--index-info", cwd=cwd, env=env, input=_index_info(present))
        git("update-index", "-q", "--refresh", cwd=cwd, env=env, ok=(0, 1))
        return found | set(git("diff-files", "-z", "--name-only", cwd=cwd, env=env).names)


def _index_info(entries: Iterable[_Entry]) -> bytes:
    return b"".join(encode(f"{entry.mode} {entry.oid}\t{entry.path}") + b"\0" for entry in entries)


def _is_file(path: Path) -> bool:
    return os.path.lexists(path) and (path.is_symlink() or not path.is_dir())


def _in_the_place_of(cwd: Path, entry: _Entry, known: set[str]) -> set[str]:
    """Files that are where a folder has to be, and files in a folder that is where a file has to be."""
    found = set()
    parts = entry.path.split("/")
    for length in range(1, len(parts)):
        above = "/".join(parts[:length])
        if above not in known and _is_file(cwd / above):
            found.add(above)
    place = cwd / entry.path
    if entry.mode != SUBMODULE and place.is_dir() and not place.is_symlink():
        inside = (os.path.join(folder, name) for folder, _, names in os.walk(place) for name in names)
        found |= {Path(path).relative_to(cwd).as_posix() for path in inside} - known
    return found


def advance(cwd: Path, old: str, new: str) -> None:
    """Bring index and files of the checkout at `cwd` from commit `old` to `new`; the branch itself is not moved.

    Only after `obstacles` found none; git refuses once more whatever it would lose. Edits, staged or not, of other
    files stay. Can be repeated after a kill: files first, then the index. No hook runs.
    """
    before, after = _changes(cwd, old, new)
    arrived = _differing(cwd, before) - _differing(cwd, after)
    _retry(cwd, "update-index", "-q", "--refresh", ok=(0, 1))
    if arrived:
        info = _index_info(entry for entry in after if entry.path in arrived)
        _retry(cwd, "update-index", "-z", "--index-info", input=info)
    _retry(cwd, "read-tree", "-m", "-u", old, new)


def _retry(cwd: Path, *args: str, ok: tuple[int, ...] = (0,), input: bytes | None = None) -> None:
    for attempt in range(TRIES):
        try:
            git(*args, cwd=cwd, ok=ok, input=input)
            return
        except BatonError as error:
            if ".lock': File exists" not in error.message or attempt == TRIES - 1:
                raise
        time.sleep(PAUSE)
