"""`doctor`: each thing that can be wrong is put wrong, named with its fix, and mended where that is safe."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from baton_cli import locks
from baton_cli.core.findings import ERROR, NOTE, OK, WARNING, Finding
from baton_cli.flow.doctor import examine
from baton_cli.project import find
from tests import invariants
from tests.conftest import run_git, write_files
from tests.kit import World, baton, baton_json, hand_outs, kinds, make_world

BRANCH = "baton/grow/integration"


@pytest.fixture
def world(tmp_path: Path) -> World:
    """One ticket integrated, one handed out, one waiting."""
    made = make_world(tmp_path / "project")
    first, _second = hand_outs(made.actions())
    made.finish(first)
    return made


def look(root: Path, *, repair: bool = False) -> dict[str, Finding]:
    """The findings by code; the healthy ones left out."""
    return {found.code: found for found in examine(find(root), repair=repair) if found.level != OK}


def test_a_sound_project_is_well(world: World) -> None:
    before = invariants.checkout(world.root)
    assert look(world.root) == {}
    told = baton(world.root, "doctor")
    assert told.returncode == 0
    assert "  ✓ git 2." in told.stdout
    assert "  ✓ no lock is held\n  ✓ Baton's record .dsh/baton/queue.db is sound, and holds 1 change\n" in told.stdout
    assert "  ✓ worktrees in .dsh/baton/worktrees, all in order: 1\n" in told.stdout
    assert "\nall is well\n" in told.stdout
    assert "does not prove that they check enough" in told.stdout
    assert "hostile worker" in told.stdout
    invariants.check(world, before)


def test_a_mistake_in_the_settings_is_said_once_and_no_worktree_is_a_stranger_for_it(world: World) -> None:
    (world.root / "baton.toml").write_text("[verfy]\n")
    assert [found.code for found in examine(find(world.root), repair=False) if found.level != OK] == ["bad_config"]


def test_a_project_that_baton_never_ran_in_is_left_as_it_is(tmp_path: Path) -> None:
    world = make_world(tmp_path / "project")
    assert list(look(world.root, repair=True)) == ["no_store"]
    assert (
        "  · Baton has no record here yet: .dsh/baton/queue.db is made when it first runs\nall is well, 1 note\n"
        in (baton(world.root, "doctor").stdout)
    )
    assert not (world.root / ".dsh").exists()
    assert not (world.root / ".git" / "baton").exists()


# git and its settings


def test_no_git_and_an_old_git(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    assert look(world.root)["git_missing"].fix
    (folder / "git").write_text("#!/bin/sh\necho git version 2.30.1\n")
    (folder / "git").chmod(0o755)
    found = look(world.root)
    assert list(found) == ["git_too_old"]
    assert "2.30" in found["git_too_old"].message


def hook(world: World) -> None:
    folder = world.root / ".git" / "hooks"
    folder.mkdir(exist_ok=True)
    (folder / "pre-commit").write_text("#!/bin/sh\nexit 0\n")
    (folder / "pre-commit").chmod(0o755)
    (folder / "commit-msg.sample").touch(0o755)


def hooks_path(world: World) -> None:
    run_git(world.root, "config", "core.hooksPath", ".husky")
    write_files(world.root, {".husky/pre-push": "#!/bin/sh\n"})
    (world.root / ".husky/pre-push").chmod(0o755)


def attributes(world: World, text: str) -> None:
    write_files(world.root, {"sub/.gitattributes": text})
    run_git(world.root, "add", "sub/.gitattributes")


def broken_filter(world: World) -> None:
    run_git(world.root, "config", "filter.shade.clean", "no-such-program-anywhere --clean")
    attributes(world, "*.bin filter=shade\n")


def nobody(world: World) -> None:
    Path(os.environ["GIT_CONFIG_GLOBAL"]).write_text("")


SETTINGS: list[tuple[Callable[[World], object], str, str, str]] = [
    (hook, "hooks", NOTE, "pre-commit"),
    (hooks_path, "hooks", NOTE, "pre-push"),
    (lambda world: run_git(world.root, "config", "core.fsmonitor", "true"), "fsmonitor", NOTE, "fsmonitor"),
    (lambda world: run_git(world.root, "config", "merge.odd.driver", "true"), "merge_driver", WARNING, "odd"),
    (lambda world: attributes(world, "*.bin filter=lfs -text\n"), "filter_missing", ERROR, "filter lfs"),
    (broken_filter, "filter_missing", ERROR, "no-such-program-anywhere"),
    (lambda world: write_files(world.root, {".gitmodules": ""}), "submodules", WARNING, "empty in the worktrees"),
    (nobody, "no_identity", NOTE, "no name and address"),
    (lambda world: write_files(world.root, {"baton.toml": "[verfy]\n"}), "bad_config", ERROR, "verfy"),
]


@pytest.mark.parametrize(("spoil", "code", "level", "said"), SETTINGS, ids=[
    "hook", "hooksPath", "fsmonitor", "merge driver", "lfs", "filter program", "submodules", "identity", "baton.toml",
])  # fmt: skip
def test_settings(world: World, spoil: Callable[[World], object], code: str, level: str, said: str) -> None:
    spoil(world)
    found = {finding for finding in look(world.root).values() if said in finding.message}
    assert len(found) == 1, look(world.root)
    finding = found.pop()
    assert finding.level == level
    assert finding.fix or code == "fsmonitor"
    assert finding.code == code
    assert baton(world.root, "doctor").returncode == (1 if level == ERROR else 0)


def test_a_filter_that_works_is_no_finding(world: World) -> None:
    run_git(world.root, "config", "filter.shade.clean", "cat")
    attributes(world, "*.bin filter=shade\n# a comment\n")
    assert look(world.root) == {}


# Folders


def test_git_outside_of_the_project(tmp_path: Path) -> None:
    world = make_world(tmp_path / "outer")
    shutil.copytree(world.root / "openspec", world.root / "inner" / "openspec")
    found = look(world.root / "inner")["workspace_too_small"]
    assert found.fix.endswith(str(world.root))


def test_a_folder_that_cannot_be_written(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != world.project.state and access(path, mode))
    found = look(world.root)["unwritable"]
    assert str(world.project.state) in found.message


def test_a_state_folder_open_to_others_is_closed(world: World) -> None:
    world.project.state.chmod(0o755)
    assert look(world.root)["not_private"].level == WARNING
    assert "closes" in look(world.root)["not_private"].fix
    assert look(world.root, repair=True)["not_private"].repaired
    assert look(world.root) == {}
    assert world.project.state.stat().st_mode & 0o777 == 0o700


def test_a_lost_pointer_is_written_again(world: World) -> None:
    from baton_cli.project import user_pointer

    user_pointer(world.project.digest).unlink()
    assert look(world.root)["pointer_missing"].level == NOTE
    assert look(world.root, repair=True)["pointer_missing"].repaired
    assert look(world.root) == {}


# Locks


@pytest.fixture
def dead() -> int:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


def test_a_lock_that_is_held_and_one_whose_holder_died(world: World, dead: int) -> None:
    path = locks.integration_path(world.project)
    with locks.integration_lock(world.project, wait=False, session="s7"):
        found = look(world.root)["lock_held"]
    assert f"process {os.getpid()}" in found.message
    assert "s7" in found.message
    path.write_text(json.dumps({"pid": dead, "start_time": 1, "host": "here", "session": "", "since": "then"}))
    assert look(world.root)["lock_of_dead"].message == (
        f"process {dead} died while it held the integration lock: the next call takes that over"
    )
    assert "no lock is held" not in baton(world.root, "doctor").stdout
    path.write_bytes(b"garbage")
    assert look(world.root) == {}
    path.unlink()
    path.mkdir()
    assert look(world.root)["lock_unusable"].level == ERROR


# The store


def test_a_corrupted_store_is_named_and_left(world: World) -> None:
    text = b"no database" * 1000
    world.project.queue_db.write_bytes(text)
    found = look(world.root, repair=True)
    assert found["store_corrupt"].level == ERROR
    assert "move the file away" in found["store_corrupt"].fix
    assert "orphaned_worktree" in found
    assert world.project.queue_db.read_bytes() == text
    told = baton(world.root, "doctor")
    assert told.returncode == 1
    assert "  ✗ " in told.stdout
    assert "Traceback" not in told.stdout + told.stderr


def test_a_damaged_page_deep_inside_is_found(world: World) -> None:
    for path in world.project.state.glob("queue.db-*"):
        path.unlink()
    with sqlite3.connect(world.project.queue_db) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        size = connection.execute("PRAGMA page_size").fetchone()[0]
        page = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'packets'").fetchone()[0]
    connection.close()
    data = bytearray(world.project.queue_db.read_bytes())
    data[(page - 1) * size : (page - 1) * size + 64] = b"\xff" * 64
    world.project.queue_db.write_bytes(data)
    assert look(world.root)["store_corrupt"].level == ERROR


def test_a_store_of_a_newer_baton(world: World) -> None:
    with sqlite3.connect(world.project.queue_db) as connection:
        connection.execute("INSERT INTO migrations VALUES ('m999_later', 0)")
    connection.close()
    assert look(world.root)["store_newer"].fix.startswith("update Baton")


def test_with_the_store_gone_the_worktrees_with_work_are_listed(world: World) -> None:
    place = next(
        path
        for path in (world.project.worktrees / "grow").iterdir()
        if (path / ".git").exists() and path.name != "integration"
    )
    write_files(place, {"work.txt": "half done\n"})
    for path in world.project.state.glob("queue.db*"):
        path.unlink()
    found = look(world.root, repair=True)
    assert set(found) == {"no_store", "orphaned_worktree"}
    assert "work.txt" in found["orphaned_worktree"].message
    assert "baton/grow/1.2-" in found["orphaned_worktree"].message
    assert found["no_store"].level == WARNING
    assert found["no_store"].fix.startswith("put the file back")
    told = baton(world.root, "doctor").stdout
    assert "  ! Baton's record .dsh/baton/queue.db is gone, and worktrees from before are there\n" in told
    assert told.count("worktrees in") == 0, "what is listed one by one is not counted once more"
    assert (place / "work.txt").exists()


# Worktrees and refs


def ticket_worktree(world: World) -> Path:
    return next(
        path
        for path in (world.project.worktrees / "grow").iterdir()
        if (path / ".git").exists() and path.name != "integration"
    )


def test_a_moved_project_is_linked_again(world: World, tmp_path: Path) -> None:
    write_files(ticket_worktree(world), {"work.txt": "half done\n"})
    world.root.rename(tmp_path / "moved")
    moved = World(tmp_path / "moved")
    found = look(moved.root)
    assert found["worktree_moved"].level == ERROR
    assert found["project_moved"].level == WARNING
    assert found["project_moved"].fix.endswith(f"--project {moved.root}")
    mended = look(moved.root, repair=True)
    assert mended["worktree_moved"].repaired
    assert set(look(moved.root)) == {"project_moved"}
    assert run_git(ticket_worktree(moved), "status", "--porcelain") == "?? work.txt"
    assert kinds(moved.actions()) == ["wait"]


def test_a_copy_of_a_project_is_not_linked_to_anything(world: World, tmp_path: Path) -> None:
    shutil.copytree(world.root, tmp_path / "copy", symlinks=True)
    before = {path: path.read_bytes() for path in (world.root / ".git" / "worktrees").rglob("gitdir")}
    found = look(tmp_path / "copy", repair=True)["foreign_worktree"]
    assert (found.level, found.repaired) == (ERROR, False)
    assert {path: path.read_bytes() for path in before} == before


def test_a_deleted_worktree_of_open_work_comes_back_by_itself(world: World) -> None:
    place = ticket_worktree(world)
    shutil.rmtree(place)
    assert look(world.root, repair=True)["worktree_gone"].level == NOTE
    assert str(place) in run_git(world.root, "worktree", "list")


def test_a_deleted_worktree_of_nobody_is_taken_off_the_list(world: World) -> None:
    place = world.project.worktrees / "grow" / "ffffffff"
    run_git(world.root, "worktree", "add", "-q", "-b", "extra", str(place))
    assert "no record of" in look(world.root)["orphaned_worktree"].message
    shutil.rmtree(place)
    assert look(world.root)["worktree_gone"].level == WARNING
    assert look(world.root, repair=True)["worktree_gone"].repaired
    assert look(world.root) == {}
    assert run_git(world.root, "rev-parse", "--verify", "extra")


def test_a_lock_on_a_worktree_is_explained(world: World, dead: int) -> None:
    place = ticket_worktree(world)
    run_git(world.root, "worktree", "lock", "--reason", f"agent (pid {dead})", str(place))
    found = look(world.root)["worktree_locked"]
    assert "locked by a dead process" in found.message
    assert "baton clean" in found.fix


def test_a_worktree_whose_making_was_cut_short(world: World) -> None:
    place = ticket_worktree(world)
    admin = Path((place / ".git").read_text().removeprefix("gitdir: ").strip())
    (admin / "locked").write_text("initializing")
    assert look(world.root)["husk"].level == NOTE


def test_a_stray_folder_and_a_worktree_without_its_record(world: World) -> None:
    write_files(world.project.worktrees, {"grow/stray/file": "x\n"})
    assert look(world.root)["no_worktree"].level == WARNING
    place = ticket_worktree(world)
    admin = Path((place / ".git").read_text().removeprefix("gitdir: ").strip())
    shutil.rmtree(admin)
    assert look(world.root, repair=True)["worktree_lost"].level == ERROR
    assert place.exists()


def test_refs_that_lead_nowhere(world: World) -> None:
    (world.root / ".git/refs/heads/odd").write_text("1" * 40 + "\n")
    (world.root / ".git/refs/heads/torn").write_text("")
    found = [finding for finding in examine(find(world.root), repair=True) if finding.code == "broken_ref"]
    assert [finding.message.split(" ")[0] for finding in found] == ["refs/heads/odd", "refs/heads/torn"]


def test_an_integration_branch_that_was_moved(world: World) -> None:
    run_git(world.root, "update-ref", f"refs/heads/{BRANCH}", "main")
    found = look(world.root)["integration_moved"]
    assert found.level == ERROR
    assert found.fix


def test_commits_of_ours_that_were_not_recorded_are_no_fault(world: World) -> None:
    with sqlite3.connect(world.project.queue_db) as connection:
        connection.execute("UPDATE changes SET integration_head = base")
    connection.close()
    found = look(world.root)["unrecorded"]
    assert found.level == NOTE
    assert found.message == f"commits on {BRANCH} that the next call records: 1"


def test_a_head_that_is_missing(world: World) -> None:
    with sqlite3.connect(world.project.queue_db) as connection:
        connection.execute(f"UPDATE changes SET integration_head = '{'1' * 40}'")
    connection.close()
    run_git(world.root, "update-ref", "-d", f"refs/heads/{BRANCH}")
    assert "integration head of grow" in look(world.root)["commit_missing"].message


def test_sealed_refs_that_nobody_knows(world: World) -> None:
    run_git(world.root, "update-ref", "refs/baton/sealed/00000000-00000000", "main")
    assert look(world.root)["unknown_refs"].level == NOTE


def test_the_answer_as_json(world: World) -> None:
    world.project.state.chmod(0o755)
    told = baton_json(world.root, "doctor", "--repair")
    assert (told["schema"], told["healthy"]) == ("baton.doctor/1", True)
    assert [item["code"] for item in told["findings"] if item["repaired"]] == ["not_private"]
    assert "proves" in told
    nowhere = baton(world.root.parent, "doctor")
    assert (nowhere.returncode, nowhere.stderr.startswith("error: ")) == (1, True)
