"""Whole runs on the real DSH: the skill's loop, its subagents, its notices, and what is left in the repository."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import run_git
from tests.dsh.kit import LIMIT, Home, waiting
from tests.dsh.model import Model
from tests.dsh.session import Job, Script, good_work, tool_results
from tests.kit import World, make_world

pytestmark = pytest.mark.timeout(2 * LIMIT)

TASKS = """\
## 1. Ground

- [ ] 1.1 Lay the first stone
- [ ] 1.2 Lay the second stone
- [ ] 1.3 Lay the third stone

## 2. Walls

- [ ] 2.1 Raise the wall
"""


def complete(script: Script) -> dict[str, object]:
    assert script.final is not None
    word, _, rest = script.final.partition(" ")
    assert word == "COMPLETE", script.final
    value: dict[str, object] = json.loads(rest)
    return value


def test_headless_with_foreground_children(linked: Home, tmp_path: Path) -> None:
    world = make_world(tmp_path / "project", TASKS)
    script = Script()
    with Model(script) as model:
        done = linked.headless(model.url, f"headless: run baton on {world.root} {world.change}", world.root)
    assert done.returncode == 0, done.stderr
    assert not model.errors
    assert complete(script)["integrated"] == 4, (done.stdout, done.stderr)
    print(done.stdout, done.stderr)
