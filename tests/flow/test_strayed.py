"""A change whose folder got another name: nothing of its work is forgotten, and no box counts as ticked by hand for it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from baton_cli.errors import BatonError
from baton_cli.flow.doctor import examine
from baton_cli.project import find
from tests import invariants
from tests.conftest import run_git
from tests.kit import World, baton, baton_json, hand_outs, make_world


def renamed(folder: Path, name: str = "bloom") -> World:
    """One ticket of `grow` is integrated; then its folder gets another name."""
    world = make_world(folder / "project")
    world.finish(hand_outs(world.actions(capacity=1))[0])
    world.tasks.parent.rename(world.tasks.parent.parent / name)
    return World(world.root, name, world.clock)


def said(world: World) -> set[str]:
    return {finding.code for finding in examine(find(world.root), repair=False)}


def test_it_is_not_begun_without_the_work_that_its_ticks_stand_for(tmp_path: Path) -> None:
    world = renamed(tmp_path)
    (shown,) = world.status()["attention"]
    assert shown["reason"] == "change_renamed"
    with pytest.raises(BatonError) as refused:
        world.actions()
    assert refused.value.code == "change_renamed"
    assert "give it back the name openspec/changes/grow" in refused.value.hint
    assert "! change renamed" in baton(world.root, "status").stdout
    assert "change_gone" in said(world)
    assert not run_git(world.root, "for-each-ref", "refs/heads/baton/bloom"), "nothing was made"


def test_the_old_name_goes_on_where_it_was(tmp_path: Path) -> None:
    world = renamed(tmp_path)
    world.tasks.parent.rename(world.tasks.parent.parent / "grow")
    before = World(world.root, "grow", world.clock)
    assert before.status()["attention"] == []
    assert "change_gone" not in said(before)
    before.run_to_end()
    invariants.check(before)


def test_without_its_ticks_it_begins_anew(tmp_path: Path) -> None:
    world = renamed(tmp_path)
    world.tasks.write_text(world.tasks.read_text().replace("[x]", "[ ]"))
    assert world.status()["attention"] == []
    assert hand_outs(world.actions())


def test_with_its_work_in_the_checkout_it_goes_on(tmp_path: Path) -> None:
    world = renamed(tmp_path)
    run_git(world.root, "merge", "-q", "baton/grow/integration")
    assert world.status()["attention"] == []
    assert "change_gone" not in said(world)
    assert hand_outs(world.actions())


def test_an_archived_change_is_not_gone(tmp_path: Path) -> None:
    world = renamed(tmp_path, "other")
    (world.tasks.parent.parent / "archive").mkdir()
    world.tasks.parent.rename(world.tasks.parent.parent / "archive" / "2026-01-01-grow")
    assert "change_gone" not in said(world)


def archived(world: World) -> None:
    """What `openspec archive` does to the folder."""
    place = world.tasks.parent.parent / "archive"
    place.mkdir(exist_ok=True)
    world.tasks.parent.rename(place / f"2026-01-01-{world.change}")


def early(world: World) -> list[str]:
    answer = baton_json(world.root, "status")
    return [action["reason"] for action in answer.get("attention", ())]


def test_archived_before_it_landed_is_said_until_its_work_is_home(tmp_path: Path) -> None:
    world = make_world(tmp_path / "project")
    world.run_to_end()
    archived(world)
    assert early(world) == ["archived_early"]
    assert "archived_early" in said(world)
    text = baton(world.root, "status").stdout
    assert "! grow was archived before it landed" in text
    assert "land grow`" in text
    run_git(world.root, "merge", "-q", world.integration)
    assert early(world) == []
    assert "archived_early" not in said(world)


@pytest.mark.parametrize("how", ["squashed", "landed", "nothing merged"])
def test_what_came_home_before_it_was_archived_is_not_early(tmp_path: Path, how: str) -> None:
    world = make_world(tmp_path / "project")
    if how == "nothing merged":
        world.actions()
    else:
        world.run_to_end()
    if how == "squashed":
        run_git(world.root, "merge", "-q", "--squash", world.integration)
        run_git(world.root, "commit", "-q", "-m", "Grow", "--", ":/", ":!openspec")
    elif how == "landed":
        assert baton(world.root, "land").returncode == 0
    archived(world)
    assert early(world) == []
    assert "archived_early" not in said(world)


def test_an_archived_change_is_called_by_its_name(tmp_path: Path) -> None:
    world = make_world(tmp_path / "project")
    world.run_to_end()
    archived(world)
    refused = baton_json(world.root, "audit", "2026-01-01-grow", code=1)["error"]
    assert "`baton audit grow` shows its evidence" in refused["hint"]
    assert "openspec/changes/grow," in refused["hint"]


# A clone, where the integration branch is a remote's


def clone(world: World, place: Path) -> World:
    run_git(world.root, "add", "openspec")
    run_git(world.root, "commit", "-q", "-m", "ticks")
    run_git(place.parent, "clone", "-q", world.root.as_uri(), str(place))
    return World(place, world.change, world.clock)


@pytest.mark.parametrize("packed", [False, True])
def test_a_clone_does_not_begin_without_the_work_that_a_remote_has(tmp_path: Path, packed: bool) -> None:
    world = make_world(tmp_path / "project")
    world.finish(hand_outs(world.actions(capacity=1))[0])
    there = clone(world, tmp_path / "clone")
    if packed:
        run_git(there.root, "pack-refs", "--all")
    (shown,) = there.status()["attention"]
    assert shown["reason"] == "integration_elsewhere"
    with pytest.raises(BatonError) as refused:
        there.actions()
    assert refused.value.code == "integration_elsewhere"
    words = refused.value.hint.removeprefix("take it: ").removesuffix(", then call again").split(" ")
    assert words[0] == "git"
    run_git(there.root, *words[1:])
    assert there.status()["attention"] == []
    assert there.ticket("1.1")["status"] == "integrated"
    assert there.run_to_end()["state"] == "complete"
    assert sorted(path.name for path in there.root.glob("*.txt")) == []
    assert baton(there.root, "land").returncode == 0
    assert sorted(path.name for path in there.root.glob("*.txt")) == ["1.1.txt", "1.2.txt", "2.1.txt"]


def test_a_clone_of_what_has_landed_needs_no_branch(tmp_path: Path) -> None:
    world = make_world(tmp_path / "project")
    world.finish(hand_outs(world.actions(capacity=1))[0])
    run_git(world.root, "merge", "-q", world.integration)
    there = clone(world, tmp_path / "clone")
    assert there.status()["attention"] == []
    assert hand_outs(there.actions())


def test_a_copy_with_work_in_flight_is_refused_before_it_commits_into_the_original(tmp_path: Path) -> None:
    world = make_world(tmp_path / "project")
    action = hand_outs(world.actions(capacity=1))[0]
    shutil.copytree(world.root, tmp_path / "copy", symlinks=True)
    before = run_git(world.root, "for-each-ref")
    with pytest.raises(BatonError) as refused:
        World(tmp_path / "copy", world.change, world.clock).actions()
    assert refused.value.code == "foreign_worktree"
    assert run_git(world.root, "for-each-ref") == before
    assert world.finish(action)["state"] == "integrated"
