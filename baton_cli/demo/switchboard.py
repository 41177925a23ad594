"""Where everything that happens comes in, one event at a time: lines that drives say, reports that agents make."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

QUIET = 1.0  # seconds without an event, after which `next` gives none
DESK = "desk"


@dataclass(frozen=True, slots=True)
class Report:
    """What an agent says of itself and its worktree when it begins, in the middle (`halfway`) or at its end."""

    event: str
    ear: str
    ticket: str
    place: str
    drive: int  # the process that started it
    seal: str  # the command of its prompt
    head: str
    loose: Mapping[str, str]  # files that are not committed
    seals: tuple[tuple[str, int], ...]  # head, exit code of the seal command
    conflict: bool
    said: str = ""

    def answer(self, word: str) -> None:
        """Tell the agent, which waits for it, to go on."""
        with contextlib.suppress(OSError):  # it is gone already
            ear = os.open(self.ear, os.O_WRONLY | os.O_NONBLOCK)
            os.write(ear, word.encode())
            os.close(ear)

    @property
    def alive(self) -> bool:
        """Whether its process still runs: only then its fifo has a reader."""
        try:
            os.close(os.open(self.ear, os.O_WRONLY | os.O_NONBLOCK))
        except OSError:
            return False
        return True


@dataclass
class Source:
    """A file that says lines; `owner` is whoever says them, None for the desk of the agents."""

    owner: object
    rest: bytes = b""


@dataclass
class Switchboard:
    """Use as a context."""

    folder: Path
    _selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)
    _waiting: deque[tuple[object, str | None]] = field(default_factory=deque)

    def __enter__(self) -> Switchboard:
        self.folder.mkdir()
        os.mkfifo(self.folder / DESK)
        self._desk = os.open(self.folder / DESK, os.O_RDWR | os.O_NONBLOCK)
        self.connect(self._desk, None)
        return self

    def __exit__(self, *_: object) -> None:
        self._selector.close()
        os.close(self._desk)

    def connect(self, descriptor: int, owner: object) -> None:
        self._selector.register(descriptor, selectors.EVENT_READ, Source(owner))

    def next(self) -> tuple[object, str | None] | None:
        """The next event as (owner, line); the line is None when that source has ended. None: all is quiet."""
        if not self._waiting:
            for key, _ in self._selector.select(QUIET):
                self._take(key.fd, key.data)
        return self._waiting.popleft() if self._waiting else None

    def report(self, name: str) -> Report:
        """The report of that name."""
        value: dict[str, Any] = json.loads((self.folder / name).read_text(encoding="utf-8"))
        return Report(**{**value, "seals": tuple((head, code) for head, code in value["seals"])})

    def _take(self, descriptor: int, source: Source) -> None:
        data = os.read(descriptor, 65536)
        if not data:
            self._selector.unregister(descriptor)
            self._waiting.append((source.owner, None))
            return
        *lines, source.rest = (source.rest + data).split(b"\n")
        self._waiting.extend((source.owner, line.decode("utf-8", "replace")) for line in lines)
