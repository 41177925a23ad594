"""Beside the real OpenSpec: after each integration it counts exactly the boxes that Baton ticked."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from tests.kit import hand_outs, make_world


def counted(openspec: Path, root: Path, change: str) -> tuple[int, int]:
    """What `openspec list --json` says of a change: boxes done, boxes in all."""
    env = {**os.environ, "OPENSPEC_TELEMETRY": "0", "DO_NOT_TRACK": "1", "CI": "1"}
    done = subprocess.run(
        [str(openspec), "list", "--json"], cwd=root, capture_output=True, text=True, env=env, check=True
    )
    found = next(item for item in json.loads(done.stdout)["changes"] if item["name"] == change)
    return found["completedTasks"], found["totalTasks"]


def test_openspec_counts_exactly_the_boxes_of_what_is_integrated(openspec: Path, tmp_path: Path) -> None:
    lines = "## 1. A\r\n- [ ] 1.1 One\r\n  - [ ] part\r\n  - [ ] part\r\n- [] 1.2 Two\r\n## 2. B\r\n+ [ ] 2.1 Three\r\n2) [x] 4"
    world = make_world(tmp_path / "p", lines.encode())
    assert counted(openspec, world.root, world.change) == (1, 6)
    boxes = {"1.1": 3, "1.2": 1, "2.1": 1}
    done = 1
    for _ in range(2):
        for action in hand_outs(world.actions()):
            world.bind(action, "agent")
            world.work(action)
            world.seal(action)
            assert counted(openspec, world.root, world.change) == (done, 6)
            world.reconcile(action)
            done += boxes[action["ticket"].rpartition("#")[2]]
            assert counted(openspec, world.root, world.change) == (done, 6)
    assert done == 6
    assert world.actions()["state"] == "complete"
