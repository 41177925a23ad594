"""Processes that the demo starts: agents, and Baton's own command line. None outlives it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from baton_cli.context import launcher
from baton_cli.demo import outside
from baton_cli.errors import BatonError

PAUSE = 0.005  # seconds between two looks at the running children
PATIENCE = 120.0  # seconds for all children of one round
AGENT = Path(__file__).with_name("agent.py")


class Child:
    """One process in a session of its own; what it reads and writes are files, so that nothing can block."""

    def __init__(self, words: Sequence[str], cwd: Path, text: str = "") -> None:
        self._out = tempfile.TemporaryFile()  # noqa: SIM115
        self._err = tempfile.TemporaryFile()  # noqa: SIM115
        with tempfile.TemporaryFile() as source:
            source.write(text.encode("utf-8"))
            source.seek(0)
            self._process = subprocess.Popen(
                words,
                cwd=cwd,
                stdin=source,
                stdout=self._out,
                stderr=self._err,
                env=outside.environment(),
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def ended(self) -> bool:
        return self._process.poll() is not None

    @property
    def code(self) -> int:
        return self._process.wait()

    def said(self) -> dict[str, Any]:
        """Its one line of JSON; nothing from a process that was killed."""
        self._out.seek(0)
        text = self._out.read().decode("utf-8", "replace").strip()
        return dict(json.loads(text)) if text.startswith("{") else {}

    def complaint(self) -> str:
        """The error in its answer, or the last line that it wrote to standard error."""
        self._err.seek(0)
        lines = self._err.read().decode("utf-8", "replace").strip().splitlines()
        said = self.said().get("error", {}).get("message")
        return str(said or (lines[-1] if lines else f"exit {self.code}"))

    def end(self) -> None:
        """Make sure that it and what it started are gone."""
        if hasattr(os, "killpg"):
            with contextlib.suppress(OSError):
                os.killpg(self.pid, signal.SIGKILL)
        elif not self.ended():
            self._process.kill()
        self._process.wait()
        self._out.close()
        self._err.close()


class Group:
    """The processes of one round. All of them are gone when this is left, however it is left."""

    def __init__(self) -> None:
        self._children: list[Child] = []

    def __enter__(self) -> Group:
        return self

    def __exit__(self, *_: object) -> None:
        for child in self._children:
            child.end()

    def agent(self, part: str, place: Path, prompt: str) -> Child:
        """Start an agent in its worktree."""
        return self._start([sys.executable, "-I", "-X", "utf8", str(AGENT), part], place, prompt)

    def baton(self, root: Path, *words: str) -> Child:
        """Start Baton's own command line, just as a session elsewhere would."""
        return self._start([*launcher(), *words, "--project", str(root), "--json"], root)

    def _start(self, words: Sequence[str], cwd: Path, text: str = "") -> Child:
        child = Child(words, cwd, text)
        self._children.append(child)
        return child

    def as_they_end(self) -> Iterator[Child]:
        """Each child when it has ended."""
        left = list(self._children)
        limit = time.monotonic() + PATIENCE
        while left:
            for child in [child for child in left if child.ended()]:
                left.remove(child)
                yield child
            if time.monotonic() > limit:
                raise BatonError("demo_stuck", "a scripted process did not end", "run the demo again")
            time.sleep(PAUSE)
