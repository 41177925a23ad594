"""Worktrees: made without touching shared configuration, told apart from husks, removed only when git agrees."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from baton_cli.errors import BatonError
from baton_cli.git.refs import resolve, worktrees
from baton_cli.git.run import git, together
from baton_cli.git.tree import git_dir, unsaved

# No tracking set up and no hook run: nothing is written to .git/config, so its lock does not matter.
QUIET = ("-c", "branch.autoSetupMerge=false", "-c", "worktree.guessRemote=false", "-c", "checkout.guess=false")
INITIALIZING = "initializing"  # what git itself writes into the admin folder's `locked` until a worktree is finished
# Signs that another git process was in the way for a moment (parallel adds read each other's half-made admin folders).
PASSING = (".lock': File exists", "could not lock", "cannot lock", "failed to read", "could not create", "gitdir file")
TRIES, FIRST_PAUSE = 7, 0.03  # seconds, doubled each time: about 2 s in all


def make_room(path: Path) -> None:
    """Make the folder in which a worktree is to be. Error `worktree_root_unusable`."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise BatonError(
            "worktree_root_unusable",
            f"the folder for worktrees {path.parent} cannot be made: {error.strerror}",
            "see [worktree] root in baton.toml, and whose that folder is; then call again",
        ) from error


def add(cwd: Path, path: Path, branch: str, base: str) -> None:
    """Make `branch` at `base` and check it out in a new worktree at `path`; hooks do not run, no upstream is set.

    Errors: `branch_exists`, else `git_failed` (git has then cleaned up after itself). A process killed in here leaves a
    husk: see `complete` and `rebuild`.
    """
    target = os.path.abspath(path)

    def attempt(first: bool) -> None:
        # A try that failed late has made the branch already; it was not there before, so it is ours.
        made = not first and resolve(cwd, f"refs/heads/{branch}") is not None
        _add(cwd, *((target, branch) if made else ("--no-track", "-b", branch, target, base)))

    try:
        _retry(attempt)
    except BatonError as error:
        if f"'{branch}' already exists" not in error.message:
            raise
        raise BatonError(
            "branch_exists", f"the branch {branch} exists already", "remove it, or set [branches] prefix"
        ) from None


def add_all(cwd: Path, wanted: Sequence[tuple[Path, str]], base: str) -> list[bool]:
    """Several times `add` (path and branch) at once; which of them succeeded at the first try. git's own time is most of
    making a worktree, and on another core it costs nothing."""
    calls = [
        (*QUIET, "worktree", "add", "-q", "--no-track", "-b", branch, os.path.abspath(path), base)
        for path, branch in wanted
    ]
    return [result.code == 0 for result in together(calls, cwd=cwd)]


def add_existing(cwd: Path, path: Path, branch: str) -> None:
    """Check an existing branch out in a new worktree. Error `git_failed`, also when it is checked out elsewhere."""
    _retry(lambda _first: _add(cwd, os.path.abspath(path), branch))


def add_detached(cwd: Path, path: Path, oid: str, checkout: bool = True) -> None:
    """A new worktree at `path` on no branch; without `checkout` its files come with the first `checkout_detached`."""
    options = ("--detach",) if checkout else ("--detach", "--no-checkout")
    _retry(lambda _first: _add(cwd, *options, os.path.abspath(path), oid))


def _retry(attempt: Callable[[bool], None]) -> None:
    """Call `attempt(first)` until it succeeds, fails for a reason that lasts, or `TRIES` are used up."""
    for number in range(TRIES):
        try:
            attempt(number == 0)
            return
        except BatonError as error:
            if number == TRIES - 1 or not any(sign in error.message for sign in PASSING):
                raise
        time.sleep(FIRST_PAUSE * 2**number)


def _add(cwd: Path, *args: str) -> None:
    git(*QUIET, "worktree", "add", "-q", *args, cwd=cwd)


def checkout_detached(cwd: Path, oid: str) -> None:
    """Bring the worktree at `cwd` exactly to commit `oid`, on no branch: edits are undone, and what the commit does not
    hold is deleted, ignored files too. Only for Baton's own integration worktree: nobody's work may be in there."""
    git(*QUIET, "checkout", "-q", "--force", "--detach", oid, "--", cwd=cwd)
    git("clean", "-q", "-ffdx", cwd=cwd)


def complete(path: Path) -> bool:
    """Whether `path` is a finished worktree that no git process is working on: its checkout was not cut short (`husk`),
    its index is not locked and its HEAD resolves."""
    if husk(path):
        return False
    admin = git_dir(path)
    return not (admin / "index.lock").exists() and resolve(path, "HEAD") is not None


def husk(path: Path) -> bool:
    """Whether `path` is no worktree, or one whose making was cut short.

    git marks a worktree in the making as locked, "initializing", and writes the index last. A checkout whose files are
    all there but whose mark was left is a husk, too: it was never handed to anyone. An index.lock alone is not: it may
    be the owner's own git at work, or killed.
    """
    admin = _admin(path)
    return admin is None or not (admin / "index").is_file() or _initializing(admin)


def sound(path: Path) -> bool:
    """Whether git finds its way from `path` to its own folder for it, and so can work there. Starts no process."""
    admin = _admin(path)
    return admin is not None and all(_written(admin / name) for name in ("HEAD", "commondir"))


def _written(file: Path) -> bool:
    try:
        return file.stat().st_size > 0
    except (FileNotFoundError, NotADirectoryError):
        return False


def repair(cwd: Path, path: Path) -> None:
    """Let git connect a worktree and its repository again, as far as it can: see `sound` afterwards."""
    git("worktree", "repair", os.path.abspath(path), cwd=cwd, ok=(0, 1, 128))


def move(cwd: Path, path: Path, target: Path) -> None:
    """Move a worktree. Error `git_failed`, also for the main worktree."""
    make_room(target)
    git("worktree", "move", os.path.abspath(path), os.path.abspath(target), cwd=cwd)


def set_aside(path: Path) -> Path | None:
    """Rename what is no worktree any more, so that one can be made there; None for an empty folder, which goes."""
    with contextlib.suppress(OSError):
        path.rmdir()
        return None
    number = 1
    while os.path.lexists(aside := path.with_name(f"{path.name}-kept-{number}")):
        number += 1
    return path.rename(aside)


def last_head(path: Path) -> str | None:
    """The commit that a worktree was at last, from its reflog, though its branch may be gone; None where none is kept."""
    try:
        lines = (git_dir(path) / "logs" / "HEAD").read_text(encoding="utf-8", errors="replace").splitlines()
        return lines[-1].split(" ")[1]
    except (OSError, IndexError):
        return None


def rebuild(cwd: Path, path: Path, branch: str) -> None:
    """Make a finished worktree of `branch` out of the husk at `path`, when no process is making it any more.

    Error `not_a_husk` for a worktree that somebody may have worked in.
    """
    if not husk(path):
        raise BatonError("not_a_husk", f"{path} is a finished worktree", "it may hold work and is left as it is")
    admin = _admin(path)
    if admin is None or not sound(path):  # killed before git itself could work there: it had no files yet
        (path / ".git").unlink(missing_ok=True)
        _forget(cwd, path)
        add_existing(cwd, path, branch)
        return
    (admin / "index.lock").unlink(missing_ok=True)
    (admin / "HEAD.lock").unlink(missing_ok=True)
    git("symbolic-ref", "HEAD", f"refs/heads/{branch}", cwd=path)
    git("reset", "-q", "--hard", cwd=path)
    if _initializing(admin):
        (admin / "locked").unlink()


def _forget(cwd: Path, path: Path) -> None:
    """Drop the admin folder of a worktree that was killed before it had files; git never prunes it while marked."""
    wanted = os.path.join(os.path.abspath(path), ".git")
    for admin in sorted((_common_dir(cwd) / "worktrees").glob("*")):
        link = admin / "gitdir"
        owner = link.read_text(encoding="utf-8", errors="surrogateescape").strip() if link.is_file() else ""
        if owner in ("", wanted) and _initializing(admin):
            (admin / "locked").unlink()
    prune(cwd)
    with contextlib.suppress(OSError):  # git wants the place free, and refuses a folder with files in it by itself
        path.rmdir()


def _common_dir(cwd: Path) -> Path:
    return Path(git("rev-parse", "--path-format=absolute", "--git-common-dir", cwd=cwd).text)


def _admin(path: Path) -> Path | None:
    """The admin folder of the linked worktree at `path`, None when there is none."""
    if not (path / ".git").is_file():
        return None
    admin = git_dir(path)
    return admin if admin.is_dir() else None


def _initializing(admin: Path) -> bool:
    try:
        return (admin / "locked").read_text(errors="replace").strip() == INITIALIZING
    except FileNotFoundError:
        return False


def registered(cwd: Path) -> dict[Path, str | None]:
    """Every worktree git knows (the main one too, and ones whose folder is gone) -> its branch, None when detached."""
    return worktrees(cwd)


def remove(cwd: Path, path: Path) -> bool:
    """Remove a worktree and its folder; False where `git worktree remove` would refuse, too (edits, untracked files
    other than well-known caches, submodules, locked, not a linked worktree).

    Ignored files go with it: the caller looks at those first. The folder is renamed before anything in it is deleted, so
    that one which a killed call left half-deleted is never taken for a worktree: `forget_removed` ends it.
    """
    admin = _admin(path)
    if admin is None or (admin / "locked").exists() or (admin / "modules").exists() or unsaved(path):
        return False
    path.rename(_going(path))
    forget_removed(cwd, path)
    return True


def forget_removed(cwd: Path, path: Path) -> None:
    """The worktree at `path` is gone: delete what a killed removal left of it, and its registration."""
    shutil.rmtree(_going(path), ignore_errors=True)
    prune(cwd)


def _going(path: Path) -> Path:
    return path.with_name(f"{path.name}.gone")


def lock_reason(path: Path) -> str | None:
    """What `git worktree lock` was told about the worktree at `path` ("" for nothing); None when it is not locked."""
    admin = _admin(path)
    try:
        return None if admin is None else (admin / "locked").read_text(encoding="utf-8", errors="replace").strip()
    except FileNotFoundError:
        return None


def unlock(cwd: Path, path: Path) -> None:
    """Take the lock off a worktree."""
    git("worktree", "unlock", "--", os.path.abspath(path), cwd=cwd, ok=(0, 128))


def prune(cwd: Path) -> None:
    """Forget worktrees whose folders are gone (locked ones excepted)."""
    git("worktree", "prune", cwd=cwd)


def discard(cwd: Path, path: Path) -> None:
    """Delete what a killed call left of a worktree in which nobody has ever worked, and its registration."""
    if path.exists():
        shutil.rmtree(path)
    _forget(cwd, path)
