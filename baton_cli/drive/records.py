"""What a running drive leaves on disk for the case that it is killed: who it is, and which agents it started.

One small file each in `<state>/drive/`. No token is in them. A later drive reads those whose drive is dead.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from baton_cli import locks
from baton_cli.drive import groups
from baton_cli.errors import USAGE, BatonError
from baton_cli.private import write_private
from baton_cli.project import Project

SUFFIX = ".json"


class Records:
    """The files of one drive, which is this process. `name` is unique on this machine for ever: host, pid, start."""

    def __init__(self, project: Project) -> None:
        self.folder = project.drives
        self.pid = os.getpid()
        self._me = {"host": socket.gethostname(), "pid": self.pid, "start_time": locks.start_time(self.pid)}
        host = re.sub(r"[^A-Za-z0-9_-]+", "-", str(self._me["host"]))[:40]
        self.name = f"drive-{host}-{self.pid}-{self._me['start_time'] or 0}"

    def announce(self, change: str, session: str) -> None:
        """Write who drives, before anything is claimed. Errors: `session_driven` when another live drive is that session."""
        self.folder.mkdir(mode=0o700, exist_ok=True)
        self._write(f"{self.name}.session", {"change": change, "session": session})
        for path, other in self._all("session"):
            if (
                other["session"] == session
                and path.stem != f"{self.name}.session"
                and not locks.certainly_gone(other["drive"])
            ):
                self.retire()
                raise BatonError(
                    "session_driven",
                    f"session {session!r} is driven by process {other['drive']['pid']} on {other['drive']['host']}",
                    "wait for it, or leave --session out: sessions share the tickets of a change",
                    USAGE,
                )

    def retire(self) -> None:
        """Nothing of this drive is left to settle."""
        self._path(f"{self.name}.session").unlink(missing_ok=True)

    def starting(self, agent: str, variables: Mapping[str, str], pid: int | None = None) -> None:
        """Keep how an agent can be found again: before its start by its environment, then by its pid as well."""
        start = locks.start_time(pid) if pid is not None else None
        with contextlib.suppress(OSError):
            self._write(f"{self.name}.{agent}", {"pid": pid, "start_time": start, "variables": dict(variables)})

    def ended(self, agent: str) -> None:
        """The agent and all that belonged to it are gone."""
        with contextlib.suppress(OSError):
            self._path(f"{self.name}.{agent}").unlink(missing_ok=True)

    def end_orphans(self) -> list[str]:
        """End the agents that a killed drive left running; what could not be ended for certain, in words."""
        left = []
        for path, found in self._all("drive-*"):
            if not locks.certainly_gone(found["drive"]):
                continue
            if _end_orphan(found):
                path.unlink(missing_ok=True)
            else:
                left.append(f"process {found['pid']} may be an agent of a killed drive: look at it ({path})")
        return left

    def dead_sessions(self) -> list[tuple[Path, str, str]]:
        """File, change and session of each drive that is dead."""
        found = self._all("session")
        return [(path, item["change"], item["session"]) for path, item in found if locks.certainly_gone(item["drive"])]

    def _all(self, kind: str) -> list[tuple[Path, dict[str, Any]]]:
        found = []
        for path in sorted(self.folder.glob(f"drive-*.{kind}{SUFFIX}")) if self.folder.is_dir() else ():
            with contextlib.suppress(OSError, ValueError):  # removed meanwhile, or not ours
                value = json.loads(path.read_bytes())
                if isinstance(value, dict) and isinstance(value.get("drive"), dict):
                    found.append((path, value))
        return found

    def _write(self, name: str, value: Mapping[str, Any]) -> None:
        write_private(self._path(name), json.dumps({"drive": self._me, **value}).encode())

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}{SUFFIX}"


def _end_orphan(found: Mapping[str, Any]) -> bool:
    """End what pid *and* start time, or the environment it was started with, show to be that agent's. False: not sure."""
    pid, start = found.get("pid"), found.get("start_time")
    if not os.path.isdir("/proc/self"):
        return pid is None or not locks.alive({"pid": pid})
    if pid is not None and start is not None and locks.start_time(pid) == start:
        groups.end(pid)
    for item in groups.carrying(found.get("variables") or {"BATON_ASSIGNMENT": ""}):
        if pid in (None, item.group, item.session):  # its leader is gone, its group is not
            groups.end(item.session if pid is None else pid)
    return True
