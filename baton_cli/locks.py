"""File locks: one per repository for integration, one per assignment.

The lock is the kernel's (flock), so a holder that dies, however it dies, lets go; the file is never deleted and its
content says who holds it. Descriptors are not inherited (PEP 446, and `sh` closes what it forked with), so a check or a
git call that outlives a killed Baton holds nothing. A second lock in the same process is as busy as one in another
process. Never hold a database transaction while waiting here.

Whoever lets go empties the file. A name in a free lock file is that of a holder that was killed: the next holder first
ends what that process started, then lets its caller `clear` what these left. A caller that cannot clear leaves the name
there for one that can.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from baton_cli.errors import BatonError

CHECK_INTERVAL = 0.02  # seconds between two looks at a busy lock: the hand-off takes no longer
WAIT_LIMIT = 600.0  # seconds
FORK_LIMIT = 5.0  # seconds that a child of a killed holder may take to become its own program
READ_LIMIT = 65536  # bytes of a lock file that are looked at; a real one has about 150

Busy = Callable[[dict[str, Any] | None], None]
# Removes what the children of a killed holder left behind. Told whether it is certain that none of them lives.
Clear = Callable[[bool], None]


class LockPlaces(Protocol):
    """What is needed of a project: where its locks are."""

    @property
    def common_dir(self) -> Path: ...
    @property
    def state(self) -> Path: ...


def integration_path(project: LockPlaces) -> Path:
    """The lock file of all integration in a repository: one for every project, change and worktree of it."""
    return project.common_dir / "baton" / "integration.lock"


def assignment_path(project: LockPlaces, assignment_id: str) -> Path:
    """The lock file of one assignment. Error `bad_assignment_id` for an id that is no plain file name."""
    if not assignment_id or assignment_id.startswith(".") or set("/\\:\0") & set(assignment_id):
        raise BatonError("bad_assignment_id", f"{assignment_id!r} is no assignment id", "copy it from `baton status`")
    return project.state / "locks" / f"{assignment_id}.lock"


def integration_lock(
    project: LockPlaces,
    *,
    wait: bool,
    session: str = "",
    timeout: float = WAIT_LIMIT,
    on_busy: Busy | None = None,
    clear: Clear | None = None,
) -> AbstractContextManager[bool]:
    """Hold the repository's integration lock; gives False, without it, when it is busy and `wait` is False.

    With `wait`, `on_busy(holder)` is called for each holder waited for, and `integration_busy`, naming the holder, is
    raised after `timeout` seconds. Error `lock_unusable` when the file cannot be locked at all.
    """
    return _hold(integration_path(project), _Wish("integration", wait, session, timeout, on_busy, clear))


def assignment_lock(
    project: LockPlaces,
    assignment_id: str,
    *,
    wait: bool,
    session: str = "",
    timeout: float = WAIT_LIMIT,
    on_busy: Busy | None = None,
    clear: Clear | None = None,
) -> AbstractContextManager[bool]:
    """Hold one assignment's lock, like `integration_lock`; the error after `timeout` is `assignment_busy`."""
    return _hold(assignment_path(project, assignment_id), _Wish("assignment", wait, session, timeout, on_busy, clear))


def slot_lock(path: Path) -> AbstractContextManager[bool]:
    """Hold a file that stands for a slot (see `slots`); gives False, without it, when another one has it."""
    return _hold(path, _Wish("slot", False, "", 0.0, None, lambda _sure: None))


def holder(path: Path) -> dict[str, Any] | None:
    """Who is written in a lock file: {pid, start_time, host, session, since}; None for nobody, or nothing legible.

    A killed holder stays written there: whether the lock is held only trying it can tell.
    """
    try:
        with path.open("rb") as file:
            found = json.loads(file.read(READ_LIMIT))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and isinstance(found.get("pid"), int) else None


def at_work(path: Path) -> dict[str, Any] | None:
    """The holder that is written in a lock file, if its process runs on this machine. Takes no lock."""
    found = holder(path)
    return found if found is not None and found.get("host") == _host() and alive(found) else None


def describe(found: dict[str, Any] | None) -> str:
    """A holder in words, for messages."""
    if found is None:
        return "another process"
    session = f", session {found['session']}" if found.get("session") else ""
    return f"process {found['pid']} on {found.get('host', '?')} since {found.get('since', '?')}{session}"


def alive(found: dict[str, Any]) -> bool:
    """Whether the process of a holder (or any {pid, start_time}) still runs on this machine. Where /proc exists, a reused
    pid is told apart by its start time, and one that has ended and waits for its parent to notice counts as gone."""
    pid = found["pid"]
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return isinstance(pid, int) and 0 < pid < 2**31
    state, started = _stat(pid)  # Z is a zombie, X is dead, as proc(5) has them
    return state not in tuple("ZXx") and (started is None or found.get("start_time") in (None, started))


def start_time(pid: int) -> int | None:
    """When a process started, in clock ticks since boot; None where that cannot be read."""
    return _stat(pid)[1]


def _stat(pid: int) -> tuple[str, int | None]:
    """State and start time of a process (/proc/PID/stat, fields 3 and 22); empty and None where they cannot be read."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        fields = text.rpartition(")")[2].split()
        return fields[0], int(fields[19])
    except (OSError, ValueError, IndexError):
        return "", None


class _Wish(NamedTuple):
    what: str
    wait: bool
    session: str
    timeout: float
    on_busy: Busy | None
    clear: Clear | None


@contextlib.contextmanager
def _hold(path: Path, wish: _Wish) -> Iterator[bool]:
    from baton_cli import process

    descriptor = _acquire(path, wish)
    if descriptor is None:
        yield False
        return
    left = _written(path)
    try:
        # The killed holder's name stays until all it left is cleared, so that a kill or an error meanwhile changes nothing.
        left = _take_over(path, left, wish.clear)
        process.mark_children()
        _write(descriptor, json.dumps(_myself(wish.session), ensure_ascii=False).encode())
        yield True
    finally:
        _write(descriptor, left)
        os.close(descriptor)  # lets go of the lock


def _written(path: Path) -> bytes:
    with contextlib.suppress(OSError), path.open("rb") as file:
        return file.read(READ_LIMIT)
    return b""


def _take_over(path: Path, written: bytes, clear: Clear | None) -> bytes:
    """After a killed holder; what has to stay written in the file when the lock is let go."""
    if not written:
        return b""
    from baton_cli import process

    killed = holder(path)
    sure = (
        killed is not None
        and certainly_gone(killed)
        and process.end_children_of(killed["pid"], killed.get("start_time"))
    )
    if clear is None:
        return written
    clear(sure)
    return b""


def certainly_gone(found: dict[str, Any]) -> bool:
    """Whether a holder has certainly ended. On another machine nobody can tell from here."""
    return found.get("host") == _host() and not alive(found)


def _host() -> str:
    import socket  # what only looks holds no lock, and starts without it

    return socket.gethostname()


def _acquire(path: Path, wish: _Wish) -> int | None:
    begun = time.monotonic()
    told: list[dict[str, Any] | None] = []
    while True:
        descriptor = _try(path)
        if descriptor is not None:
            return descriptor
        found, spent = holder(path), time.monotonic() - begun
        # Held by a process that is gone: its fork has the descriptor until it becomes git or a shell, in a moment.
        if not wish.wait and (found is None or not certainly_gone(found) or spent > FORK_LIMIT):
            return None
        if wish.on_busy is not None and (not told or (found is not None and found not in told)):
            wish.on_busy(found)
            told.append(found)
        if spent >= wish.timeout:
            raise BatonError(
                f"{wish.what}_busy",
                f"the {wish.what} lock was held for {wish.timeout:g} s by {describe(found)}",
                "it is working, or stuck: look at that process, then run the same command again",
            )
        time.sleep(CHECK_INTERVAL)


def _try(path: Path) -> int | None:
    """An open descriptor that holds the lock, None when someone else does."""
    import portalocker

    descriptor = _open(path)
    try:
        portalocker.lock(descriptor, portalocker.LockFlags.EXCLUSIVE | portalocker.LockFlags.NON_BLOCKING)
        if _same_file(descriptor, path):
            return descriptor
    except portalocker.AlreadyLocked:
        pass
    except portalocker.LockException as error:
        os.close(descriptor)
        raise _unusable(path, error) from error
    os.close(descriptor)
    return None


def _same_file(descriptor: int, path: Path) -> bool:
    # Somebody may have deleted the file between our open and our lock: then ours is not the one others see.
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _open(path: Path) -> int:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return _open_writable(path)
    except OSError as error:
        raise _unusable(path, error) from error


def _open_writable(path: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
    try:
        return os.open(path, flags, 0o600)
    except PermissionError:
        # A read-only lock file can be locked all the same; only our name does not get into it.
        with contextlib.suppress(OSError):
            path.chmod(stat.S_IRUSR | stat.S_IWUSR)
            return os.open(path, flags, 0o600)
        return os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))


def _write(descriptor: int, content: bytes) -> None:
    with contextlib.suppress(OSError):  # read-only, or the disk is full: the lock is held without a name in it
        os.lseek(descriptor, 0, os.SEEK_SET)
        os.write(descriptor, content)
        os.ftruncate(descriptor, len(content))  # last: a kill in between leaves something legible or odd, never nothing


def _myself(session: str) -> dict[str, Any]:
    pid = os.getpid()
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    return {"pid": pid, "start_time": start_time(pid), "host": _host(), "session": session, "since": now}


def _unusable(path: Path, error: Exception) -> BatonError:
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return BatonError("lock_unusable", f"{path} cannot be locked: {reason}", "check who owns that file, or remove it")
