"""One agent: a process in a session of its own, its prompt on stdin, its output in a private log."""

from __future__ import annotations

import contextlib
import os
import shlex
import stat
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from baton_cli import process, slots
from baton_cli.core import prompt
from baton_cli.core.lifecycle import Terminal
from baton_cli.drive import groups
from baton_cli.drive.order import Order
from baton_cli.drive.records import Records
from baton_cli.invocation import launcher
from baton_cli.project import Project

KEPT = ("BATON_PYTHON", "BATON_CACHE")  # with these the seal command finds its environment
# Set where drive is called from a git hook; they would send the agent's git to another place.
MISLEADING = (
    "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR", "GIT_PREFIX", "GIT_NAMESPACE",
)  # fmt: skip


class Child:
    """An agent run. `on_end` is called from a thread of its own when it and all that belonged to it are gone."""

    def __init__(
        self, action: Mapping[str, Any], *, agent: str, slot: int, log: Path, on_end: Callable[[Child], None]
    ) -> None:
        self.action = action
        self.agent = agent
        self.slot = slot
        self.log = log
        self.begun = time.monotonic()
        self._ended: float | None = None
        self.failure = ""  # why it could not be started
        self.code: int | None = None
        self._on_end = on_end
        self._stopped: tuple[Terminal, str] | None = None
        self._ender: threading.Thread | None = None
        self._hurry = threading.Event()
        self._lock = threading.RLock()  # a signal may come while it is held
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def assignment(self) -> str:
        return str(self.action["assignment_id"])

    @property
    def token(self) -> str:
        return str(self.action["claim_token"])

    @property
    def seconds(self) -> float:
        """How long it runs, or ran."""
        return (time.monotonic() if self._ended is None else self._ended) - self.begun

    @property
    def ended_well(self) -> bool:
        """Whether it says that its task is done."""
        return self._stopped is None and self.code == 0

    @property
    def failed_with(self) -> int | str:
        """What it failed with by itself, to be compared: its exit code, or why it could not be started; 0 if it did not."""
        return self.failure or (0 if self._stopped else self.code or 0)

    def start(self, project: Project, order: Order, records: Records) -> None:
        """Start it. Errors: OSError when the program, the folder or the log is unusable."""
        own = variables(project, order.change, self.action, self.slot)
        mark = {name: own[name] for name in ("BATON_ASSIGNMENT", "BATON_ATTEMPT")}
        records.starting(self.agent, mark)
        try:
            with open(_open_log(self.log), "wb") as output:
                child = subprocess.Popen(
                    order.command,
                    executable=order.program,
                    cwd=self.action["cwd"],
                    env={**inherited(), **own},
                    stdin=subprocess.PIPE,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                )
        except (OSError, ValueError):
            records.ended(self.agent)
            raise
        self._process = child
        records.starting(self.agent, mark, child.pid)
        with contextlib.suppress(OSError):  # it does not read: its own affair. A prompt fits into the pipe.
            if child.stdin is not None:
                child.stdin.write(str(self.action["prompt"]).encode("utf-8", "backslashreplace") + b"\n")
                child.stdin.close()
        threading.Thread(target=self._watch, args=(child, records), name=self.agent, daemon=True).start()

    def stop(self, terminal: Terminal, why: str) -> None:
        """Begin to end it, unless it has ended already; how, is said by `ending` then. Returns at once."""
        with self._lock:
            if self._process is None or self._stopped is not None or _has_exited(self._process):
                return
            self._stopped = terminal, why
            ender = threading.Thread(
                target=groups.end, args=(self._process.pid,), kwargs={"hurry": self._hurry.is_set}, daemon=True
            )
            self._ender = ender
            ender.start()

    def kill(self) -> None:
        """End it by force, at once."""
        self._hurry.set()
        if self._process is not None and self.code is None:
            groups.kill(self._process.pid)

    def ending(self) -> tuple[Terminal, str]:
        """How it ended, as `reconcile` wants to hear it, and a sentence."""
        if self.failure:
            return Terminal.FAILED, self.failure
        if self._stopped is not None:
            return self._stopped
        if self.ended_well:
            return Terminal.COMPLETED, ""
        last = self.said()
        said = f": {last}" if last else ""
        if self.code is not None and self.code < 0:
            return Terminal.FAILED, f"the agent was ended by signal {-self.code}{said}"
        return Terminal.FAILED, f"the agent ended with exit code {self.code}{said}"

    def said(self) -> str:
        """The last line of its log."""
        return process.tail(self.log, lines=1, chars=200)

    def _watch(self, child: subprocess.Popen[bytes], records: Records) -> None:
        _wait_unreaped(child)
        self._ended = time.monotonic()
        with self._lock:  # `stop` either began before this or finds that it has ended
            ender = self._ender
        if ender is None:
            groups.end(child.pid, hurry=self._hurry.is_set)  # what it left running
        else:
            ender.join()
        self.code = child.wait()  # only now may its number be given to another process
        records.ended(self.agent)
        self._on_end(self)


def variables(project: Project, change: str, action: Mapping[str, Any], slot: int) -> dict[str, str]:
    """What an agent finds in its environment. The seal key is among it, the claim token is not."""
    key = prompt.seal_key(action["claim_token"])
    return {
        "BATON_ASSIGNMENT": action["assignment_id"],
        "BATON_TICKET": action["ticket"],
        "BATON_CHANGE": change,
        "BATON_PROJECT": str(project.root),
        "BATON_ATTEMPT": str(action["attempt"]),
        "BATON_KIND": action["kind"],
        "BATON_PACKET": action["packet"],
        **slots.variables(slot),
        "BATON_SEAL": shlex.join((*launcher(), "seal", action["assignment_id"], "--key", key)),
    }


def inherited() -> dict[str, str]:
    """The user's environment, without what belongs to this call of Baton or to a git that called us."""
    return {
        name: value
        for name, value in os.environ.items()
        if name in KEPT or not (name.startswith("BATON_") or name in MISLEADING)
    }


def _open_log(log: Path) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
    descriptor = os.open(log, flags, 0o600)
    os.fchmod(descriptor, stat.S_IRUSR | stat.S_IWUSR)
    return descriptor


def _has_exited(child: subprocess.Popen[bytes]) -> bool:
    if child.returncode is not None or not hasattr(os, "waitid"):
        return child.returncode is not None
    try:
        return os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None
    except ChildProcessError:
        return True


def _wait_unreaped(child: subprocess.Popen[bytes]) -> None:
    """Wait until it has ended; where the system allows, leave it unreaped, so that its number stays its own."""
    if hasattr(os, "waitid"):
        with contextlib.suppress(ChildProcessError):
            os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    else:
        child.wait()
