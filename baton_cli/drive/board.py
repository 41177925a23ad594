"""What a view may show of a running drive: events as they happen, and the frame of this moment. Plain values."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from baton_cli.drive.child import Child

Event = Mapping[str, Any]
Tell = Callable[[Event], None]


class Board:
    """Written by the loop, read by whoever draws, which is another thread."""

    def __init__(self, change: str) -> None:
        self._lock = threading.Lock()
        self._change = change
        self._progress: dict[str, int] = {}
        self._children: dict[str, Child] = {}  # those that run, and those of which it is not certain what they came to
        self._said: dict[str, tuple[object, str]] = {}
        self.doing = ""  # what Baton itself does just now

    def progress(self, counts: Mapping[str, int]) -> None:
        """The counts of the newest answer."""
        with self._lock:
            self._progress = dict(counts)

    def integrated(self) -> None:
        """A ticket was merged since."""
        with self._lock:
            self._progress["in_flight"] = self._progress.get("in_flight", 0) - 1
            self._progress["integrated"] = self._progress.get("integrated", 0) + 1

    def started(self, child: Child) -> None:
        """An agent runs."""
        with self._lock:
            self._children[child.agent] = child

    def decided(self, child: Child) -> None:
        """It is certain what it came to."""
        with self._lock:
            self._children.pop(child.agent, None)
            self._said.pop(child.agent, None)

    def frame(self) -> dict[str, Any]:
        """The picture of this moment. Times are the seconds that each agent runs, or ran."""
        with self._lock:
            children, progress = list(self._children.values()), dict(self._progress)
        running = [child for child in children if child.code is None]
        return {
            "change": self._change,
            "progress": progress,
            "doing": self.doing,
            "running": [{**_pictured(child), "said": self._last_line(child)} for child in running],
            "ended": [{**_pictured(child), "well": child.ended_well} for child in children if child not in running],
        }

    def _last_line(self, child: Child) -> str:
        try:
            facts = child.log.stat()
        except OSError:
            return ""
        version = facts.st_size, facts.st_mtime_ns
        known = self._said.get(child.agent)
        if known is None or known[0] != version:
            known = version, child.said()
            self._said[child.agent] = known
        return known[1]


def _pictured(child: Child) -> dict[str, Any]:
    return {**described(child.action), "slot": child.slot, "seconds": child.seconds}


def described(action: Mapping[str, Any]) -> dict[str, Any]:
    """An action as events and frames name it."""
    return {name: action[name] for name in ("kind", "ticket", "title", "attempt")}
