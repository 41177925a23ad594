"""The project: where it is, its private state folder, and the pointers by which other calls find it again."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import NamedTuple

from baton_cli import private, repository
from baton_cli.core.patterns import late
from baton_cli.errors import BatonError
from baton_cli.openspec import ChangeFolder, archived_changes, change_folder, change_names

__all__ = [
    "ChangeFolder", "Project", "archived", "change", "changes", "find", "from_assignment", "prepare_state", "user_pointer",
    "user_state",
    "write_board",
]  # fmt: skip

_FOLDERS = ("packets", "receipts", "logs", "worktrees", "locks", private.SCRATCH)
_DIGEST = late(r"(?<![0-9a-f])[0-9a-f]{8}(?![0-9a-f])")


class Project(NamedTuple):
    """One OpenSpec project in one repository; the same value from every sub-folder and every worktree of it."""

    root: Path  # holds openspec/
    repository: Path  # the top of the checkout that root is in
    common_dir: Path  # the git folder that all worktrees share
    prefix: str  # root below repository, posix; "" at the top

    @property
    def digest(self) -> str:
        """8 hex digits that stand for the project."""
        return repository.digest(self.common_dir, self.prefix)

    @property
    def state(self) -> Path:
        """Baton's private folder of this project."""
        return self.root / ".dsh" / "baton"

    @property
    def queue_db(self) -> Path:
        """The store."""
        return self.state / "queue.db"

    @property
    def packets(self) -> Path:
        """Task Packets."""
        return self.state / "packets"

    @property
    def receipts(self) -> Path:
        """Copies of the receipts."""
        return self.state / "receipts"

    @property
    def logs(self) -> Path:
        """Output of checks and set-up."""
        return self.state / "logs"

    @property
    def drives(self) -> Path:
        """What each running `drive` keeps of itself and of the agents that it started: one file each."""
        return self.state / "drive"

    @property
    def board(self) -> Path:
        """Where `baton board` writes unless told otherwise."""
        return self.state / "board.html"

    @property
    def worktrees(self) -> Path:
        """Where worktrees are made unless `[worktree] root` says otherwise."""
        return self.state / "worktrees"


def find(start: Path | None) -> Project:
    """The project that `start` (default: the current folder) lies in. Starts no process and writes nothing.

    Errors: no_such_folder, not_a_repository, no_openspec.
    """
    try:
        place = Path(os.path.realpath(start if start is not None else Path.cwd()))
        is_folder = place.is_dir()
    except (OSError, ValueError):  # a NUL in the name; a current folder that was removed
        is_folder = False
    if not is_folder:
        shown = repr(str(start)) if start is not None else "the current folder"
        raise BatonError("no_such_folder", f"{shown} is no folder that exists", "give the folder of a project")
    home, prefix = repository.locate(place)
    return Project(
        root=home.top / prefix,
        repository=home.top,
        common_dir=home.common_dir,
        prefix=prefix,
    )


def names_assignment(text: str) -> bool:
    """Whether this may be an assignment id, and is no ticket's."""
    return "#" not in text and _DIGEST.search(text) is not None


def from_assignment(assignment_id: str) -> Project:
    """The project an assignment id belongs to: its 8 hex digits name the per-user file. Errors: unknown_assignment."""
    shown = repr(assignment_id[:80])
    for project_digest in _DIGEST.findall(assignment_id):
        root = repository.read_path(user_pointer(project_digest))
        if root is None:
            continue
        try:
            project = find(root)
        except BatonError:
            project = None
        if project is not None and project.digest == project_digest:
            return project
        message = f"assignment {shown} belongs to the project in {str(root)!r}, which is no longer there"
        raise BatonError("unknown_assignment", message, "name the project with --project PATH")
    raise BatonError(
        "unknown_assignment",
        f"no project on this machine is known for assignment {shown}",
        "copy the id from the action it came with, or name the project with --project PATH",
    )


def changes(project: Project) -> tuple[str, ...]:
    """The names of the project's open changes, sorted."""
    return change_names(project.root)


def archived(project: Project) -> tuple[ChangeFolder, ...]:
    """The changes that OpenSpec has archived, by the date in their folder's name."""
    return archived_changes(project.root)


def change(project: Project, name: str) -> ChangeFolder:
    """One change. Errors: bad_change_name, no_such_change, store_pointer, unsupported_tracks, no_tasks."""
    return change_folder(project.root, name)


def user_state() -> Path:
    """The user's own folder of Baton's. As XDG says, only an absolute `$XDG_STATE_HOME` counts."""
    base = os.environ.get("XDG_STATE_HOME", "")
    home = Path(base) if os.path.isabs(base) else Path(os.path.expanduser("~")) / ".local" / "state"
    return home / "baton"


def user_pointer(project_digest: str) -> Path:
    """The per-user file that names a project's folder."""
    return user_state() / "projects" / project_digest


def prepare_state(project: Project) -> None:
    """Makes the state folder (private, ignored by git) and the two pointers to it. Rewrites nothing that is right.

    The pointers and the line in `info/exclude` are conveniences: a home or git folder that cannot be written is no
    error. Errors: state_unusable.
    """
    _folder(project, project.root / ".dsh")
    _folder(project, project.state, mode=0o700)
    for name in _FOLDERS:
        _folder(project, project.state / name, mode=0o700)
    own_ignore = project.state / ".gitignore"
    try:
        _write(own_ignore, b"*\n", 0o600)
    except OSError as error:
        raise _unusable(own_ignore, error.strerror or str(error)) from error
    root = os.fsencode(project.root) + b"\n"
    for file, content in (
        (project.common_dir / "info" / "exclude", None),
        (repository.pointer(project.common_dir, project.digest), root),
        (user_pointer(project.digest), root),
    ):
        try:
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o777 if content is None else 0o700)
            if content is None:
                _exclude(file, project.prefix)
            else:
                _write(file, content, 0o600)
        except OSError:
            continue


def write_board(project: Project, page: bytes) -> None:
    """Writes the board to its place, whole: a browser may be reading it. Raises OSError; errors: state_unusable."""
    prepare_state(project)
    _write(project.board, page, 0o600)


def _folder(project: Project, path: Path, mode: int = 0o777) -> None:
    """Makes one folder; refuses files, and symlinks that lead out of the project."""
    try:
        path.mkdir(mode=mode)
        return
    except FileExistsError:
        pass
    except OSError as error:
        raise _unusable(path, error.strerror or str(error)) from error
    real = Path(os.path.realpath(path))
    if not real.is_relative_to(project.root):
        raise _unusable(path, f"it is a symlink out of the project, to {str(real)!r}")
    if not real.is_dir():
        raise _unusable(path, "it exists and is no folder")
    if mode == 0o700 and path == project.state and stat.S_IMODE(path.stat().st_mode) & 0o077:
        try:
            path.chmod(0o700)
        except OSError as error:
            raise _unusable(path, f"it is open to other users and that cannot be changed: {error.strerror}") from error


def _unusable(path: Path, reason: str) -> BatonError:
    message = f"Baton cannot keep its state in {str(path)!r}: {reason}"
    return BatonError("state_unusable", message, "make that a writable folder of the project")


def _exclude(file: Path, prefix: str) -> None:
    """Adds the state folder to `info/exclude`, once; every byte that was there stays."""
    line = os.fsencode(_pattern(prefix))
    file = Path(os.path.realpath(file))
    try:
        before = file.read_bytes()
        mode = stat.S_IMODE(file.stat().st_mode)
    except FileNotFoundError:
        before, mode = b"", 0o644
    if any(known.rstrip(b"\r") == line for known in before.split(b"\n")):
        return
    gap = b"" if not before or before.endswith(b"\n") else b"\n"
    # written whole and renamed, so that two calls at once cannot both append
    _write(file, before + gap + line + b"\n", mode)


def _pattern(prefix: str) -> str:
    """The ignore pattern for a project's state folder; what git would take for a wildcard is escaped."""
    escaped = re.sub(r"([\\*?\[])", r"\\\1", prefix).replace("\n", "?")
    return f"/{escaped}/.dsh/baton/" if prefix else "/.dsh/baton/"


def _write(file: Path, content: bytes, mode: int) -> None:
    """Writes a small file by renaming, unless it holds just that already."""
    try:
        if file.read_bytes() == content:
            return
    except OSError:
        pass
    prefix = f".{file.name}."
    private.remove_abandoned(file.parent, prefix)
    temporary = file.parent / private.temporary_name(prefix)
    try:
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
            stream.write(content)
        temporary.chmod(mode)
        temporary.replace(file)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
