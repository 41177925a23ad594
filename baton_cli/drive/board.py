"""What a view may show of a running drive: events as they happen, and the frame of this moment. Plain values."""

from __future__ import annotations

import threading
import time
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
        self._running: dict[str, Child] = {}
        self._said: dict[str, tuple[object, str]] = {}
        self.doing = ""  # what Baton itself does just now
        self.results: dict[str, int] = {}  # state -> how many agent runs came to it

    def progress(self, counts: Mapping[str, int]) -> None:
        """The counts of the newest answer."""
        with self._lock:
            self._progress = dict(counts)

    def started(self, child: Child) -> None:
        """An agent runs."""
        with self._lock:
            self._running[child.agent] = child

    def ended(self, child: Child) -> None:
        """It does no more."""
        with self._lock:
            self._running.pop(child.agent, None)
            self._said.pop(child.agent, None)

    def result(self, state: str) -> None:
        """An agent run came to this."""
        with self._lock:
            self.results[state] = self.results.get(state, 0) + 1

    def frame(self) -> dict[str, Any]:
        """The picture of this moment. Times are seconds that each agent runs."""
        with self._lock:
            running, progress, results = list(self._running.values()), dict(self._progress), dict(self.results)
        return {
            "change": self._change,
            "progress": progress,
            "results": results,
            "doing": self.doing,
            "running": [
                {
                    **described(child.action),
                    "slot": child.slot,
                    "seconds": time.monotonic() - child.begun,
                    "said": self._last_line(child),
                }
                for child in running
            ],
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


def described(action: Mapping[str, Any]) -> dict[str, Any]:
    """An action as events and frames name it."""
    return {name: action[name] for name in ("kind", "ticket", "title", "attempt")}
