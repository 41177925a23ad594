"""What a killed Baton leaves running or locked is ended and cleared by the next call under the same lock."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from baton_cli import locks
from baton_cli.git import leftovers
from tests import invariants
from tests.conftest import run_git
from tests.kit import World, hand_outs, make_world
from tests.reliability.kill import victim
from tests.reliability.kill.scenarios import FILES, SMALL
from tests.reliability.kill.victim import Point

pytestmark = victim.listens
# Ends at once where the file is, and else never: what hangs when its Baton is killed, and what the next call finds well.
HANGS = 'test -e "$HOME/well" || sleep 100000'
Verb = Callable[[], object]


@pytest.fixture
def well(hermetic: Path) -> Path:
    return hermetic / "well"


def world_with(folder: Path, config: str) -> World:
    return make_world(folder / "project", SMALL, config=config, files=FILES)


def sealing(folder: Path, well: Path) -> tuple[World, Verb]:
    world = world_with(folder, f"[verify]\ncommands = ['{HANGS}']\n")
    action = hand_outs(world.actions())[0]
    world.work(action)
    return world, lambda: world.seal(action)


def preparing(folder: Path, well: Path) -> tuple[World, Verb]:
    world = world_with(folder, f"[verify]\ncommands = ['test -f README']\n[worktree]\nsetup = ['{HANGS}']\n")
    return world, world.actions


def judging(folder: Path, well: Path) -> tuple[World, Verb]:
    world = world_with(folder, f"[verify]\ncommands = ['{HANGS}']\n")
    well.touch()
    first, second = hand_outs(world.actions())
    world.finish(first)
    world.work(second)
    world.seal(second)
    return world, lambda: world.reconcile(second)


@pytest.mark.parametrize("begin", [sealing, preparing, judging], ids=["check", "set-up", "gate"])
def test_what_hangs_when_its_baton_is_killed_is_ended_by_the_next_call(
    tmp_path: Path, well: Path, begin: Callable[[Path, Path], tuple[World, Verb]]
) -> None:
    world, verb = begin(tmp_path, well)
    before = invariants.checkout(world.root)
    well.unlink(missing_ok=True)
    assert victim.run(verb, tmp_path / "log", str(tmp_path), Point("started")).killed
    left = victim.running(str(tmp_path))
    assert left, "it outlives its Baton"
    well.touch()
    verb()
    assert not victim.running(str(tmp_path))
    invariants.check(world, before)


def killed_in_seal(folder: Path) -> tuple[World, Any, Verb]:
    """A seal that was killed with all its children while it held its lock."""
    world = world_with(folder, "[verify]\ncommands = ['test -f README']\n")
    action = hand_outs(world.actions())[0]
    world.work(action)

    def verb() -> object:
        return world.seal(action)

    assert victim.run(verb, folder / "log", str(folder), Point("forked", tree=True)).killed
    assert locks.holder(locks.assignment_path(world.project, action["assignment_id"])), "killed while it held the lock"
    return world, action, verb


def lock_files(world: World, action: Any) -> list[Path]:
    """Those that git makes when it works for this assignment."""
    common, place = world.project.common_dir, Path(action["cwd"])
    admin = place / run_git(place, "rev-parse", "--git-dir")
    branch, name = action["branch"], action["assignment_id"]
    return [common / f"refs/heads/{branch}.lock", common / f"refs/baton/sealed/{name}.lock",
            common / f"refs/baton/replaced/{name}-0123456789ab.lock", admin / "index.lock", admin / "HEAD.lock"]  # fmt: skip


def test_lock_files_of_a_killed_git_are_cleared(tmp_path: Path) -> None:
    world, action, verb = killed_in_seal(tmp_path)
    foreign = [world.project.common_dir / "packed-refs.lock", world.project.common_dir / "refs/heads/main.lock"]
    ours = lock_files(world, action)
    for path in (*ours, *foreign):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    verb()
    assert not [path for path in ours if path.exists()]
    assert [path for path in foreign if path.exists()] == foreign, "what is not ours stays"


def test_lock_files_of_a_killed_integration_are_cleared(tmp_path: Path, well: Path) -> None:
    world, verb = judging(tmp_path, well)
    assert victim.run(verb, tmp_path / "log", str(tmp_path), Point("started", tree=True)).killed
    place = world.project.worktrees / world.change / "integration"
    admin = place / run_git(place, "rev-parse", "--git-dir")
    left = [
        world.project.common_dir / f"refs/heads/{world.integration}.lock",
        admin / "index.lock",
        admin / "HEAD.lock",
    ]
    for path in left:
        path.touch()
    before = world.integration, run_git(world.root, "rev-parse", world.integration)
    verb()
    assert not [path for path in left if path.exists()]
    assert run_git(world.root, "rev-parse", world.integration) != before[1], "it was integrated"
    invariants.check(world)


def test_a_first_start_that_was_killed_with_its_git_is_made_good(tmp_path: Path) -> None:
    """The change is not recorded yet: nobody holds a lock for it, and its branch is not there."""
    world = world_with(tmp_path, "[verify]\ncommands = ['test -f README']\n")
    left = world.project.common_dir / f"refs/heads/{world.integration}.lock"
    left.parent.mkdir(parents=True)
    left.touch()
    os.utime(left, (time.time() - leftovers.LIMIT,) * 2)
    world.actions()
    assert not left.exists()
    invariants.check(world)


def test_a_lock_file_of_an_unknown_owner_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The killed holder is of another machine: nobody can see its children."""
    world, action, verb = killed_in_seal(tmp_path)
    path = locks.assignment_path(world.project, action["assignment_id"])
    path.write_text(path.read_text().replace('"host": "', '"host": "not-'))
    young, old = lock_files(world, action)[-2:]
    young.touch()
    old.touch()
    os.utime(old, (time.time() - leftovers.LIMIT,) * 2)
    waited: list[float] = []

    def pause(seconds: float) -> None:
        assert young.exists()
        waited.append(seconds)
        os.utime(young, (time.time() - leftovers.LIMIT,) * 2)

    # its own clock only: others sleep meanwhile, too
    monkeypatch.setattr(leftovers, "time", SimpleNamespace(sleep=pause, time=time.time))
    verb()
    assert waited == [leftovers.PAUSE]
    assert not young.exists()
    assert not old.exists()
