"""Makes a fresh worktree usable: copies and links what git does not carry, then runs the set-up commands."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from baton_cli import process
from baton_cli.config import Config
from baton_cli.errors import BatonError
from baton_cli.git.run import git

INCLUDE_FILE = ".worktreeinclude"
SETUP_TIMEOUT = 30 * 60


@dataclass(frozen=True, slots=True)
class Provisioned:
    """What was done; `failed` names the set-up command that did not exit with 0, `log` holds its output.

    `anything` is False when there was nothing to copy, link or run: the worktree is as git made it.
    """

    anything: bool
    failed: str | None
    log: Path | None


def provision(source: Path, target: Path, config: Config, setup: Sequence[str], log: Path) -> Provisioned:
    """Bring `target` (the project folder in a worktree) to a usable state from `source` (the user's project folder)."""
    copied = (*_expand(source, config.copy), *_included(source))
    linked = _expand(source, config.link)
    for relative in copied:
        _place(source, target, relative, link=False)
    for relative in linked:
        _place(source, target, relative, link=True)
    for number, command in enumerate(setup, 1):
        here = log.with_name(f"{log.stem}-setup-{number}.log")
        run = process.run_check(command, cwd=target, log=here, timeout=SETUP_TIMEOUT)
        if not run.passed:
            return Provisioned(True, command, here)
    return Provisioned(bool(copied or linked or setup), None, None)


def _expand(source: Path, patterns: Sequence[str]) -> tuple[str, ...]:
    """The files and folders that configured patterns name, relative to the project. None may lead out of it."""
    found: list[str] = []
    for pattern in patterns:
        if Path(pattern).is_absolute() or ".." in Path(pattern).parts:
            raise BatonError(
                "bad_config", f"baton.toml: {pattern!r} leads out of the project", "name a path inside the project"
            )
        found.extend(str(path.relative_to(source)) for path in sorted(source.glob(pattern)))
    return tuple(dict.fromkeys(found))


def _included(source: Path) -> tuple[str, ...]:
    """Ignored files that `.worktreeinclude` (patterns as in .gitignore) asks to copy."""
    if not (source / INCLUDE_FILE).is_file():
        return ()
    listing = ("ls-files", "--others", "--ignored", "-z")
    wanted = git(*listing, f"--exclude-from={INCLUDE_FILE}", cwd=source).out.split(b"\0")
    ignored = set(git(*listing, "--exclude-standard", cwd=source).out.split(b"\0"))
    names = (os.fsdecode(name) for name in wanted if name and name in ignored)
    return tuple(name for name in names if not name.startswith(".dsh/"))


def _place(source: Path, target: Path, relative: str, *, link: bool) -> None:
    """Put one file or folder there; whatever is there already (tracked files above all) stays as it is."""
    origin, place = source / relative, target / relative
    if os.path.lexists(place) and not (place.is_dir() and origin.is_dir() and not link):
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    if link:
        place.symlink_to(origin.absolute(), target_is_directory=origin.is_dir())
    elif origin.is_dir():
        for child in sorted(origin.iterdir()):
            _place(source, target, os.path.join(relative, child.name), link=False)
    else:
        shutil.copy2(origin, place, follow_symlinks=False)
