"""Chaos with real processes: `baton drive`, killed now and then, with agents in bad company and a person who meddles."""

from __future__ import annotations

import os
import random
import shlex
import sys
from pathlib import Path

import pytest

from tests import figures, invariants
from tests.drive.kit import Drive, merged, nothing_left, plan
from tests.kit import World, baton, make_world

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="looks for left-over processes in /proc")
CONFIG = """\
[verify]
commands = ["test ! -e red && { test ! -e left || test ! -e right; }"]
"""
AGENT = Path(__file__).with_name("bad_company.py")
RUNS = 12  # of drive, until it is complete


@pytest.mark.full
@pytest.mark.timeout(1500)
@pytest.mark.parametrize(("seed", "sections", "each"), [(1, 6, 10), (2, 3, 4)])
def test_chaos_with_real_processes(tmp_path: Path, seed: int, sections: int, each: int) -> None:
    world = make_world(tmp_path / "my project", plan(sections, each), config=CONFIG)
    figures.add("chaos runs of drive", 1, 1)
    with nothing_left(world):
        code, text = _to_the_end(
            world, random.Random(seed), f"{shlex.quote(sys.executable)} {shlex.quote(str(AGENT))} {seed}"
        )
        assert code == 0, text
        invariants.check(world)
        invariants.settled(world)
    found = merged(world)
    assert len(found) == len(set(found)) >= sections * each
    assert b"[ ]" not in world.tasks.read_bytes()
    figures.add("chaos runs of drive", 0, -1)


def _to_the_end(world: World, dice: random.Random, agent: str) -> tuple[int, str]:
    """`drive` again and again: killed, or ended because something needs a person, who then does what helps."""
    texts: list[str] = []
    for run in range(RUNS):
        drive = Drive(world, agent)
        if run < 2:
            drive.says("integrated  " if dice.random() < 0.5 else "not done  ")
            os.kill(drive.pid, 9)
        code = drive.end()
        texts.append(f"-- {code}\n{drive.text}")
        if code == 0:
            break
        status = world.status()
        for section in status["sections"]:
            for ticket in section["tickets"]:
                if ticket["status"] == "blocked" and ticket["reason"] == "exhausted":
                    baton(world.root, "retry", ticket["id"], "--why", "again")
    return code, "\n".join(texts)
