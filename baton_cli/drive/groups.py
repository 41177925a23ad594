"""Ends an agent with all that belongs to it: its session, its group, and the children of these wherever they went.

What an agent made a daemon (a build server, say) belongs to nobody here: other agents may be using it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable
from typing import NamedTuple

GRACE = 3.0  # seconds between asking and forcing
LIMIT = 10.0  # seconds until a process that cannot be killed (stuck in the kernel) is given up
PAUSE = 0.05  # seconds between two looks while something is being ended


class Process(NamedTuple):
    """A running process; `start` in clock ticks since boot, which tells a reused pid apart."""

    pid: int
    parent: int
    group: int
    session: int
    start: int


def processes() -> list[Process]:
    """What runs on this machine, zombies left out; nothing where /proc does not exist."""
    found = []
    for name in os.listdir("/proc") if os.path.isdir("/proc/self") else ():
        if not name.isdigit():
            continue
        try:
            facts = _read(f"/proc/{name}/stat").rpartition(b")")[2].split()
            state, parent, group, session, start = facts[0], *(int(facts[place]) for place in (1, 2, 3, 19))
        except (OSError, IndexError, ValueError):  # ended meanwhile
            continue
        if state not in (b"Z", b"X"):
            found.append(Process(int(name), parent, group, session, start))
    return found


def belonging(group: int, known: dict[int, int]) -> dict[int, int]:
    """pid -> start of what belongs to the session or group `group`, of what is `known`, and of their descendants."""
    running = processes()
    ours = {item.pid: item.start for item in running if group in (item.group, item.session)}
    ours |= {item.pid: item.start for item in running if known.get(item.pid) == item.start}
    grown = True
    while grown:
        more = {item.pid: item.start for item in running if item.parent in ours and item.pid not in ours}
        grown = bool(more)
        ours |= more
    return ours


def end(group: int, *, hurry: Callable[[], bool] = lambda: False) -> None:
    """Ask everything of a group to end (SIGTERM), wait `GRACE` seconds at most, then force it (SIGKILL).

    The caller makes sure that the number still is that group's: its leader is not reaped, or was just seen alive.
    """
    if not os.path.isdir("/proc/self"):
        _end_without_proc(group, hurry)
        return
    begun = time.monotonic()
    known: dict[int, int] = {}
    while (left := belonging(group, known)) and (spent := time.monotonic() - begun) < LIMIT:
        force = hurry() or spent > GRACE
        for pid in left:
            if force or pid not in known:
                _signal(pid, signal.SIGKILL if force else signal.SIGTERM)
        known |= left
        time.sleep(PAUSE)


def kill(group: int) -> None:
    """Force everything of a group to end, without waiting."""
    for pid in belonging(group, {}):
        _signal(pid, signal.SIGKILL)
    with contextlib.suppress(OSError):
        os.killpg(group, signal.SIGKILL)


def carrying(variables: dict[str, str]) -> list[Process]:
    """The processes of this user that were started with all these environment variables."""
    wanted = {f"{name}={value}".encode() for name, value in variables.items()}
    found = []
    for item in processes():
        with contextlib.suppress(OSError):
            if wanted <= set(_read(f"/proc/{item.pid}/environ").split(b"\0")):
                found.append(item)
    return found


def _end_without_proc(group: int, hurry: Callable[[], bool]) -> None:
    begun = time.monotonic()
    with contextlib.suppress(OSError):
        os.killpg(group, signal.SIGTERM)
        while time.monotonic() - begun < GRACE and not hurry():
            os.killpg(group, 0)  # raises when the group is gone
            time.sleep(PAUSE)
        os.killpg(group, signal.SIGKILL)


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(OSError):
        os.kill(pid, number)


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()
