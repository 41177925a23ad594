"""`baton drive` as processes of their own, started as a person would start them. None outlives the demo."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

from baton_cli.demo import outside, scenario
from baton_cli.demo.switchboard import Switchboard
from baton_cli.invocation import launcher

AGENT = Path(__file__).with_name("agent.py")
GRACE = 10.0  # seconds for a drive to end in an orderly way
LIMIT = "2m"  # for each agent; the story needs a second


class Drive:
    """One of them. What it says comes in at the switchboard."""

    def __init__(self, name: str, root: Path, board: Switchboard) -> None:
        agent = [sys.executable, "-I", "-S", "-X", "utf8", str(AGENT), str(board.folder)]
        words = ["drive", scenario.CHANGE, "--agent", shlex.join(agent), "--parallel", str(scenario.PARALLEL)]
        self.name = name
        self.said: list[str] = []
        self._process = subprocess.Popen(
            [*launcher(), *words, "--time-limit", LIMIT, "--project", str(root)],
            cwd=root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=outside.environment(),
            start_new_session=True,
        )
        assert self._process.stdout is not None
        board.connect(self._process.stdout.fileno(), self)

    @property
    def pid(self) -> int:
        return self._process.pid

    def kill(self) -> int:
        """kill -9, to this process alone. Its exit code: negative for a signal."""
        self._process.kill()
        return self._process.wait()

    def end(self) -> int:
        """Make sure that it is gone; it ends its agents itself if it can. Its exit code."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            if self._process.poll() is None:
                self._process.terminate()
                self._process.wait(GRACE)
        if self._process.stdout is not None:
            self._process.stdout.close()
        return self.kill()


def end_agent(ear: str) -> None:
    """End an agent that a killed drive left running; the name of its fifo holds its process id, which is its group."""
    with contextlib.suppress(OSError):
        os.killpg(int(ear.rpartition("-")[2]), signal.SIGKILL)
