"""`baton drive` as a process of its own, on a pipe or on a pseudo-terminal, with agents that are shell scripts."""

from __future__ import annotations

import contextlib
import os
import pty
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from baton_cli.drive import groups
from tests.conftest import run_git
from tests.kit import MAIN, World

LIMIT = 240.0  # seconds; only a fault takes so long
GOOD = """\
name=${BATON_TICKET##*#}
echo "$name" > "work-$name.txt"
git add -A
git commit -qm "work on $name"
"""


class Drive:
    """A running drive. `text` is all that came to its standard output (and error, on a terminal)."""

    def __init__(self, world: World, agent: Path | str, *words: str, terminal: bool = False, **env: str) -> None:
        command = [sys.executable, str(MAIN), "drive", world.change, "--agent", str(agent), *words]
        environment = {**os.environ, "MARK": str(world.root), **env}
        if terminal:
            self.pid, self._master = pty.fork()
            if self.pid == 0:
                os.chdir(world.root)
                os.execve(command[0], command, {**environment, "TERM": "xterm", "COLUMNS": "100", "LINES": "30"})
        else:
            self._master, write = os.pipe()
            self._process = subprocess.Popen(command, cwd=world.root, stdout=write, stderr=write, env=environment)
            os.close(write)
            self.pid = self._process.pid
        self.terminal = terminal
        self._pieces: list[bytes] = []
        self._more = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with contextlib.suppress(OSError):  # a terminal whose other end is closed
            while piece := os.read(self._master, 65536):
                with self._more:
                    self._pieces.append(piece)
                    self._more.notify_all()
        os.close(self._master)

    @property
    def text(self) -> str:
        return b"".join(self._pieces).decode()

    def says(self, words: str) -> None:
        """Wait until it has said this."""
        with self._more:
            assert self._more.wait_for(lambda: words in self.text, LIMIT), self.text

    def interrupt(self) -> None:
        """Ctrl-C, as it comes there."""
        if self.terminal:
            os.write(self._master, b"\x03")
        else:
            os.kill(self.pid, signal.SIGINT)

    def end(self) -> int:
        """Wait for it; its exit code, negative for a signal."""
        alarm = threading.Timer(LIMIT, os.kill, (self.pid, signal.SIGKILL))
        alarm.start()
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1]) if self.terminal else self._process.wait()
        alarm.cancel()
        self._reader.join(LIMIT)
        return code


def run(world: World, agent: Path | str, *words: str, **env: str) -> tuple[int, str]:
    """A whole drive on a pipe: exit code and output."""
    drive = Drive(world, agent, *words, **env)
    return drive.end(), drive.text


def script(place: Path, body: str = GOOD) -> Path:
    """An agent: it fails with its first failing command, and does not read its task."""
    place.write_text(f"#!/bin/sh\nset -e\n{body}")
    place.chmod(0o755)
    return place


def left_running(world: World) -> list[int]:
    """Processes that agents of this world (or drives) left."""
    return [item.pid for item in groups.carrying({"MARK": str(world.root)})]


def merged(world: World) -> list[str]:
    """The tickets on the integration branch, each as often as it was merged."""
    log = run_git(
        world.root, "log", "--first-parent", "--format=%(trailers:key=Baton-Ticket,valueonly)", world.integration
    )
    return sorted(line.split()[0].rpartition("#")[2] for line in log.split("\n") if line.strip())


def plan(sections: int, tickets: int) -> str:
    """A tasks.md."""
    parts = []
    for section in range(1, sections + 1):
        lines = [f"- [ ] {section}.{number} Part {number} of {section}\n" for number in range(1, tickets + 1)]
        parts.append(f"## {section}. Section {section}\n\n{''.join(lines)}\n")
    return "".join(parts)


def tickets(sections: int, count: int) -> list[str]:
    return sorted(f"{section}.{number}" for section in range(1, sections + 1) for number in range(1, count + 1))


class Gate:
    """Where agents wait: each says its word at `ready`, then waits for a line from `hold` that never comes."""

    def __init__(self, fifo: Callable[[str], Path]) -> None:
        self.ready, self.hold = fifo("ready"), fifo("hold")
        self._file = os.fdopen(os.open(self.ready, os.O_RDWR), "r")

    @property
    def body(self) -> str:
        """The start of a script. It holds only where HOLD is set, a pattern for tickets."""
        return (
            f'case "${{BATON_TICKET##*#}}" in $HOLD) echo "$BATON_TICKET" > {self.ready}; read x < {self.hold};; esac\n'
        )

    def words(self, count: int) -> list[str]:
        """What the next agents said, in order."""
        said: list[str] = []
        reader = threading.Thread(target=lambda: said.extend(self._file.readline().strip() for _ in range(count)))
        reader.daemon = True
        reader.start()
        reader.join(LIMIT)
        assert len(said) == count, said
        return sorted(said)


@contextlib.contextmanager
def nothing_left(world: World) -> Iterator[None]:
    """However the test ends, its processes do not outlive it; if it ends well, there must be none."""
    try:
        yield
        assert not left_running(world)
    finally:
        for pid in left_running(world):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)


def settings(text: str = "", check: str = "test -f README") -> str:
    """A baton.toml."""
    return f'[verify]\ncommands = ["{check}"]\n{text}'


def environment(dump: Path) -> Mapping[str, str]:
    """What `env` wrote."""
    return dict(line.split("=", 1) for line in dump.read_text().splitlines() if line.startswith("BATON_"))
