"""What happens in the user's checkout while agents work is told at seal and reconcile, and left as it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests import invariants
from tests.conftest import run_git, write_files
from tests.kit import World, hand_outs, make_world

pytestmark = pytest.mark.usefixtures("swift_git")


def commits(root: Path) -> None:
    write_files(root, {"mine.txt": "committed in the wrong place\n"})
    run_git(root, "add", "mine.txt")
    run_git(root, "commit", "-q", "-m", "stray")


def edits(root: Path) -> None:
    write_files(root, {"README": "edited in the wrong place\n"})


def stages(root: Path) -> None:
    write_files(root, {"staged.txt": "x\n"})
    run_git(root, "add", "staged.txt")


def stashes(root: Path) -> None:
    """Worktrees share one stash: an agent that stashes in its own may take another's."""
    write_files(root, {"README": "put away\n"})
    run_git(root, "stash", "-q")


STRAY = [(commits, "HEAD moved"), (edits, "README"), (stages, "staged.txt"), (stashes, "the stash changed")]


@pytest.mark.parametrize(("stray", "said"), STRAY, ids=[stray.__name__ for stray, _ in STRAY])
def test_a_stray_agent_is_told_with_who_was_at_work(tmp_path: Path, stray: Callable[[Path], None], said: str) -> None:
    world: World = make_world(tmp_path / "project")
    action = hand_outs(world.actions())[0]
    world.work(action)
    stray(world.root)
    left = invariants.checkout(world.root)
    for answer in (world.seal(action), world.reconcile(action)):
        assert answer["isolation"].startswith("isolation_leak: ")
        assert said in answer["isolation"]
        assert "grow#1.2" in answer["isolation"], "the other ticket that is in flight"
    assert invariants.checkout(world.root) == left
    assert world.ticket("1.1")["status"] == "integrated"


def test_what_was_so_before_and_what_baton_ticks_is_no_leak(tmp_path: Path) -> None:
    world = make_world(tmp_path / "project")
    write_files(world.root, {"README": "the user's edit\n", "new.txt": "the user's file\n"})
    one, two = hand_outs(world.actions())
    for action in (one, two):
        world.work(action)
        assert "isolation" not in world.seal(action)
        assert "isolation" not in world.reconcile(action)
