"""Which repository and which project a folder belongs to, read from the files alone: no git process is started.

git's own rules are followed as far as they matter here: `.git` is a folder or a file with `gitdir:`, a linked
worktree's git folder names the shared one in `commondir`, a submodule's does not, and `core.bare` and `core.worktree`
say where the main worktree is.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from baton_cli.core import canonical
from baton_cli.core.listing import named
from baton_cli.core.patterns import late
from baton_cli.errors import BatonError

STATE = ".dsh/baton"
_CORE = late(r"^\s*\[core\]\s*$(.*?)(?=^\s*\[|\Z)", re.M | re.S | re.I)


class Checkout(NamedTuple):
    """One working tree: its top folder and the git folder that all worktrees of the repository share."""

    top: Path
    common_dir: Path
    linked: bool


def checkout(start: Path) -> Checkout:
    """The checkout that `start` (absolute, no symlinks) lies in. Errors: not_a_repository."""
    for folder in (start, *start.parents):
        marker = folder / ".git"
        if marker.is_dir():
            if (marker / "HEAD").is_file():
                return _main(folder, marker)
            # git passes over a `.git` folder that holds no repository, and so do we
        elif marker.is_file():
            return _pointed(folder, marker)
        elif (folder / "HEAD").is_file() and (folder / "objects").is_dir() and folder.name != ".git":
            raise _none(start, f"{_shown(folder)} is a bare repository, without files to work on")
    raise _none(start, "no .git in it or above it")


def main_worktree(common_dir: Path) -> Path | None:
    """The folder of the repository's main worktree; None where it is bare or its place is written nowhere."""
    core = _core(common_dir)
    if "bare" in core:
        return None
    if "worktree" in core:  # a submodule, or set by hand
        return _real(common_dir / core["worktree"])
    return common_dir.parent if common_dir.name == ".git" else None


def digest(common_dir: Path, prefix: str) -> str:
    """8 hex digits that stand for one project: its repository's shared git folder and the sub-folder in it."""
    text = os.fsencode(os.path.realpath(common_dir)) + b"\0" + os.fsencode(prefix)
    return canonical.digest(text)[:8]


def locate(start: Path) -> tuple[Checkout, str]:
    """The checkout and the sub-folder in it ("" at its top) of the project that `start` belongs to.

    The nearest folder that OpenSpec would take for a project counts, in this checkout or, for a linked worktree that
    does not contain it, in the same place of the others. One project has one home whichever worktree the call
    comes from: the place that was used before (named in the shared git folder), else the main worktree, else this one.
    Errors: not_a_repository, no_openspec.
    """
    here = checkout(start)
    mains = main_worktree(here.common_dir) if here.linked else here.top
    for prefix in _prefixes(start, here.top):
        homes = (_recorded(here.common_dir, prefix), mains, here.top)
        for home in homes:
            if home is not None and holds_project(home / prefix, recorded=home is homes[0]):
                return Checkout(home, here.common_dir, linked=home != mains), prefix
    raise BatonError(
        "no_openspec",
        f"no OpenSpec project in {_shown(start)} or above it, up to the repository's top {_shown(here.top)}",
        _below(here.top) or "run `openspec init` at the project's root",
    )


def _below(top: Path) -> str | None:
    """A hint where projects lie in sub-folders of the repository."""
    found = [path.parent for depth in ("*", "*/*") for path in sorted(top.glob(f"{depth}/openspec"))]
    inside = [path.relative_to(top).as_posix() for path in found if holds_project(path)]
    quoted = [shlex.quote(path) for path in inside]
    return f"name one of its projects with --project: {named(quoted, 3)}" if inside else None


def holds_project(root: Path, *, recorded: bool = False) -> bool:
    """Does OpenSpec take this folder for a project? An empty `openspec/` is none. A recorded home may have lost it."""
    folder = root / "openspec"
    names = ("changes", "specs")
    if any((folder / name).is_dir() for name in names):
        return True
    if any((folder / name).is_file() for name in ("config.yaml", "config.yml")):
        return True
    return recorded and (root / STATE).is_dir()


def pointer(common_dir: Path, project_digest: str) -> Path:
    """The file in the shared git folder that names the project's home."""
    return common_dir / "baton" / "projects" / project_digest


def read_path(file: Path) -> Path | None:
    """The absolute path that a pointer file holds; None where it is missing, unreadable or holds something else."""
    try:
        data = file.read_bytes()
    except OSError:
        return None
    data = data[:-1] if data.endswith(b"\n") else data
    if not data or b"\0" in data or len(data) > 8192:
        return None
    path = Path(os.fsdecode(data))
    return path if path.is_absolute() else None


def _main(top: Path, git_dir: Path) -> Checkout:
    common = _common(git_dir)
    if "bare" in _core(common):
        raise _none(top, f"{_shown(git_dir)} is a bare repository; go to one of its worktrees")
    return Checkout(top, common, common != _real(git_dir))


def _pointed(top: Path, marker: Path) -> Checkout:
    try:
        text = os.fsdecode(marker.read_bytes()[:8192]).rstrip("\r\n")
    except OSError as error:
        raise _none(top, f"{_shown(marker)} cannot be read: {error.strerror}") from error
    target = text.removeprefix("gitdir:").strip()
    if not text.startswith("gitdir:") or not target or "\0" in target:
        raise _none(top, f"{_shown(marker)} is a file, but names no git folder")
    git_dir = _real(top / target)
    if not (git_dir / "HEAD").is_file():
        raise _none(top, f"{_shown(marker)} names {_shown(git_dir)}, which is no git folder (a removed worktree?)")
    return Checkout(top, _common(git_dir), (git_dir / "commondir").is_file())


def _common(git_dir: Path) -> Path:
    try:
        text = os.fsdecode((git_dir / "commondir").read_bytes()[:8192]).rstrip("\r\n")
    except OSError:
        return _real(git_dir)
    return _real(git_dir / text)


def _core(common_dir: Path) -> dict[str, str]:
    """`[core]` of the repository's own configuration, as far as `bare` (there only if true) and `worktree` need it."""
    core: dict[str, str] = {}
    for name in ("config", "config.worktree"):  # the second is where git moves both when worktrees have their own
        try:
            text = os.fsdecode((common_dir / name).read_bytes())
        except OSError:
            continue
        for section in _CORE.finditer(text):
            for line in section.group(1).splitlines():
                key, equals, value = line.partition("=")
                if key.strip() and not key.lstrip().startswith(("#", ";")):
                    core[key.strip().lower()] = _unquoted(value.strip()) if equals else "true"
    if core.get("bare", "").lower() in ("false", "no", "off", "0", ""):
        core.pop("bare", None)
    return core


def _unquoted(value: str) -> str:
    if len(value) > 1 and value[0] == value[-1] == '"':
        return value[1:-1].replace('\\"', '"').replace("\\\\", "\\")
    return re.split(r"\s*[#;]", value)[0]


def _prefixes(start: Path, top: Path) -> Iterator[str]:
    """The folders from `start` up to the checkout's top, as posix paths below it; Baton's own folders left out."""
    relative = PurePosixPath(start.relative_to(top).as_posix())
    for folder in (relative, *relative.parents):
        if f"/{STATE}/" not in f"/{folder}/" and not f"/{folder}".endswith(f"/{STATE}"):
            yield "" if str(folder) == "." else str(folder)


def _recorded(common_dir: Path, prefix: str) -> Path | None:
    """The top of the checkout that an earlier call recorded as this project's home, if it still is one of ours."""
    if not pointer(common_dir, "").is_dir():
        return None  # no project of this repository was ever run
    root = read_path(pointer(common_dir, digest(common_dir, prefix)))
    if root is None or not root.is_dir():
        return None
    root = _real(root)
    top = root
    for _ in PurePosixPath(prefix).parts:
        top = top.parent
    try:
        there = checkout(root)
    except BatonError:
        return None
    return top if there.top == top and there.common_dir == common_dir and top / prefix == root else None


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _shown(path: Path) -> str:
    return repr(str(path))


def _none(start: Path, reason: str) -> BatonError:
    message = f"{_shown(start)} is in no usable git repository: {reason}"
    return BatonError("not_a_repository", message, "start Baton in a git project")
