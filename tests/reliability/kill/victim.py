"""One verb in a process of its own, forked from the test and killed with SIGKILL just before its k-th event.

An event is what can leave a trace: a file opened for writing, a rename, unlink, mkdir, rmdir, link, symlink or truncate,
a lock taken, a process started (before and after), an SQL statement. All of the listening is done here, with Python's
audit hook and SQLite's trace: the program knows nothing of it.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import portalocker  # what the program imports late is here before the fork: a victim starts warm
import pytest
import sh

from baton_cli.drive import groups
from baton_cli.errors import BatonError

WARM = (portalocker, sh)

WRITING = os.O_WRONLY | os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC
NAMES = frozenset({
    "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate", "fcntl.flock",
    "os.fork", "os.forkpty", "os.posix_spawn", "subprocess.Popen",
})  # fmt: skip
listens = pytest.mark.skipif(
    not os.path.exists(f"/proc/self/task/{os.getpid()}/children"), reason="finds processes and their children in /proc"
)
LIMIT = 200  # seconds that a victim may take
STARTED = ("forked", "started")
STEP = 0.0002  # seconds that children run between two looks at what they wrote
MARK = "VICTIM_OF_TEST"  # in the environment of everything a victim starts (checks do not see BATON_*)


@dataclass(frozen=True)
class Run:
    """How it ended. Of an undisturbed run: the name of each event, whether a child lived then, and what was on disk."""

    killed: bool
    code: int
    said: str
    events: tuple[str, ...] = ()
    busy: tuple[bool, ...] = ()
    states: tuple[str, ...] = ()


@dataclass(frozen=True)
class Point:
    """Where to kill: at which event (its number from 1, or the first of that name); alone or with all that it started;
    in the second case after these have written so many times."""

    at: int | str
    tree: bool = False
    writes: int = 0

    def __str__(self) -> str:
        how = f"with its children, after {self.writes} writes of theirs" if self.writes else "with its children"
        return f"{how if self.tree else 'alone'} before event {self.at}"


NEVER = Point(0)  # an event that does not happen: the run is neither killed nor recorded


class _Events:
    """Counts, in the victim; at the point it ends there. Without a point it keeps a record."""

    def __init__(self, point: Point | None, watched: Path | None) -> None:
        self.pid, self.point, self.watched = os.getpid(), point, watched
        self.names: list[str] = []
        self.busy: list[bool] = []
        self.states: list[str] = []
        self._inside = False
        self.off = False

    def listen(self) -> None:
        sys.addaudithook(self._audit)
        os.register_at_fork(after_in_parent=lambda: self.happens("forked"))
        execute: Any = subprocess.Popen._execute_child  # type: ignore[attr-defined]

        def started(*args: Any, **more: Any) -> None:
            execute(*args, **more)
            self.happens("started")

        subprocess.Popen._execute_child = started  # type: ignore[attr-defined]
        connect: Any = sqlite3.connect

        def connected(*args: Any, **more: Any) -> sqlite3.Connection:
            connection: sqlite3.Connection = connect(*args, **more)
            connection.set_trace_callback(lambda sql: self.happens(f"sql {sql.split(None, 1)[0]}"))
            return connection

        sqlite3.connect = connected

    def _audit(self, name: str, args: tuple[Any, ...]) -> None:
        if name in NAMES:
            self.happens(name)
        elif name == "open" and _writes(args):
            self.happens(f"open {os.path.basename(os.fsdecode(args[0])) if not isinstance(args[0], int) else ''}")

    def happens(self, name: str) -> None:
        if self.off or self._inside or os.getpid() != self.pid:  # a child that has not become its program yet is none
            return
        self._inside = True
        self.names.append(name)
        if self.point is None:
            self.busy.append(name in STARTED or bool(descendants(self.pid)))
            self.states.append(on_disk(self.watched) if self.watched else "")
        elif self.point.at in (len(self.names), name):
            if self.point.writes and self.watched:
                let_write(self.pid, self.watched, self.point.writes)
            if self.point.tree:
                end_descendants(self.pid)
            os.kill(self.pid, signal.SIGKILL)
        self._inside = False


def _writes(args: tuple[Any, ...]) -> bool:
    flags = args[2] if isinstance(args[2], int) else 0
    return bool(flags & WRITING) or any(letter in (args[1] or "") for letter in "wax+")


def on_disk(folder: Path) -> str:
    """A digest of every file below: name, size, times. Equal digests: nothing was written in between."""
    digest = hashlib.sha256()
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = os.path.join(place, name)
            try:
                facts = os.lstat(path)
            except FileNotFoundError:
                continue
            digest.update(f"{path} {facts.st_ino} {facts.st_mode} {facts.st_size} {facts.st_mtime_ns}\0".encode())
    return digest.hexdigest()


def descendants(pid: int) -> set[int]:
    """What a process started and what that started, in whatever session, and has not ended."""
    found: set[int] = set()
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found |= {child for child in map(int, path.read_text().split()) if _runs(child)}
        except (FileNotFoundError, ProcessLookupError):  # that thread has ended
            continue
    return found.union(*(descendants(child) for child in found))


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def let_write(pid: int, watched: Path, times: int) -> None:
    """Let the children of `pid` go on, in small steps, until something on disk has changed so many times or they ended."""
    seen = on_disk(watched)
    while times and (children := descendants(pid)):
        _signal(children, signal.SIGCONT)
        begun = time.perf_counter()
        while time.perf_counter() - begun < STEP:
            pass
        _signal(descendants(pid), signal.SIGSTOP)
        now = on_disk(watched)
        times, seen = times - (now != seen), now


def end_descendants(pid: int) -> None:
    """Stop them until there are no new ones, then kill them all."""
    known: set[int] = set()
    while new := descendants(pid) - known:
        _signal(new, signal.SIGSTOP)
        known |= new
    _signal(known, signal.SIGKILL)


def _signal(pids: set[int], number: signal.Signals) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


def running(mark: str) -> list[groups.Process]:
    """What victims with this mark left that still runs."""
    return groups.carrying({MARK: mark})


def left_running(mark: str) -> list[groups.Process]:
    """The same, after the time that an orphaned git needs to end by itself."""
    for item in running(mark):
        _await_end(item.pid)
    return running(mark)


def _await_end(pid: int, seconds: float = 20.0) -> None:
    import select

    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return
    try:
        select.select([descriptor], [], [], seconds)
    finally:
        os.close(descriptor)


def run(
    verb: Callable[[], object],
    log: Path,
    mark: str,
    point: Point | None = None,
    watched: Path | None = None,
) -> Run:
    """Run the verb and kill it at that point; without one, keep a record of its events. `watched` is the folder whose
    files count."""
    report = log.with_suffix(".events")
    pid = os.fork()
    if pid == 0:
        _be_victim(verb, log, report, mark, _Events(point, watched))
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    said = log.read_text(errors="replace")
    if status == -signal.SIGKILL:
        return Run(True, status, said)
    return Run(False, status, said, *(tuple(part) for part in json.loads(report.read_text())))


def _be_victim(verb: Callable[[], object], log: Path, report: Path, mark: str, events: _Events) -> None:
    """Never returns: nothing of the test that forked us may go on here."""
    code = 3
    try:
        os.setsid()
        sys.dont_write_bytecode = True  # what is imported late would be an event the first time only
        signal.alarm(LIMIT)
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.environ[MARK] = mark
        events.listen()
        code = _outcome(verb, output)
        events.off = True
        report.write_text(json.dumps([events.names, events.busy, events.states]))
    finally:
        os._exit(code)


def _outcome(verb: Callable[[], object], output: int) -> int:
    try:
        verb()
    except BatonError as error:
        os.write(output, f"{error.code}: {error.message}\n".encode())
        return 1
    except BaseException:
        os.write(output, traceback.format_exc().encode())
        return 3
    return 0
