"""`baton status --watch` on a real terminal and in a pipe."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

from tests.kit import MAIN, hand_outs, make_world

DEADLINE = 60.0


class Watching:
    """The command on a pseudo-terminal."""

    def __init__(self, root: Path) -> None:
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, str(MAIN), "status", "--watch"], cwd=root, stdin=slave, stdout=slave, stderr=slave,
            env={**os.environ, "TERM": "xterm-256color"}, start_new_session=True,
        )  # fmt: skip
        os.close(slave)
        self.seen = ""

    def until(self, text: str) -> None:
        """Read on until this is written; what came before is forgotten."""
        end = time.monotonic() + DEADLINE
        while text not in self.seen:
            assert time.monotonic() < end, self.seen[-2000:]
            if select.select([self.master], [], [], 1.0)[0]:
                try:
                    self.seen += os.read(self.master, 65536).decode("utf-8", "replace")
                except OSError:  # the other side is closed
                    assert text in self.seen, self.seen[-2000:]
        self.seen = self.seen.partition(text)[2]


def test_it_follows_the_work_and_restores_the_terminal(tmp_path: Path) -> None:
    world = make_world(tmp_path / "repo")
    watching = Watching(world.root)
    try:
        watching.until("\x1b[?1049h")
        watching.until("not started")
        action = hand_outs(world.actions())[0]
        watching.until("no sign yet")
        world.bind(action, "agent-7")
        watching.until("agent-7")
        store = world.root / ".dsh" / "baton" / "queue.db"
        aside = [path.rename(path.with_name(f"aside-{path.name}")) for path in store.parent.glob("queue.db*")]
        watching.until("record lost")
        for path in aside:
            path.rename(path.with_name(path.name.removeprefix("aside-")))
        watching.until("agent-7")
        watching.process.send_signal(signal.SIGINT)
        watching.until("\x1b[?25h\x1b[?1049l")
        watching.until("agent-7")  # the last picture stays
        assert watching.process.wait(DEADLINE) == 0
    finally:
        watching.process.kill()
        watching.process.wait()
        os.close(watching.master)


def test_piped_it_prints_each_change(tmp_path: Path) -> None:
    world = make_world(tmp_path / "repo")
    command = [sys.executable, str(MAIN), "status", "--watch", "--json"]
    with subprocess.Popen(command, cwd=world.root, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            assert json.loads(process.stdout.readline())["changes"][0]["progress"]["ready"] == 2
            world.actions()
            counts = json.loads(process.stdout.readline())["changes"][0]["progress"]
            while counts["in_flight"] < 2:
                counts = json.loads(process.stdout.readline())["changes"][0]["progress"]
            process.send_signal(signal.SIGINT)
            assert process.wait(DEADLINE) == 0
        finally:
            process.kill()


def test_a_change_that_is_not_there_is_refused(tmp_path: Path) -> None:
    world = make_world(tmp_path / "repo")
    done = subprocess.run(
        [sys.executable, str(MAIN), "status", "nothing", "--watch"], cwd=world.root, capture_output=True, text=True,
        timeout=DEADLINE,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.startswith("error: no change 'nothing'")
