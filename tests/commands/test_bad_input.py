"""What a user can get wrong: one clear line, the right exit code, nothing lost."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path

import pytest

from tests.conftest import run_git, write_files
from tests.kit import World, baton, baton_json, make_world


@pytest.fixture
def world(tmp_path: Path) -> World:
    return make_world(tmp_path / "project")


def refused(root: Path, *words: str, code: int = 1, **more: str) -> dict[str, str]:
    """The error of a call, which must be the same one line each on stderr and in JSON."""
    plain = baton(root, *words, env=more or None)
    assert plain.returncode == code, plain.stdout + plain.stderr
    lines = plain.stderr.splitlines()
    assert 1 <= len(lines) <= 2, plain.stderr
    assert lines[0].startswith("error: ")
    assert all(line.startswith("hint: ") for line in lines[1:])
    assert "Traceback" not in plain.stderr
    told = json.loads(baton(root, *words, "--json", env=more or None).stdout)
    assert told["schema"] == "baton.error/1"
    error: dict[str, str] = told["error"]
    return error


ACTIONS = ("actions", "grow", "--session", "new")


def test_not_a_repository(tmp_path: Path) -> None:
    assert refused(tmp_path, *ACTIONS)["code"] == "not_a_repository"


def test_no_commits(tmp_path: Path) -> None:
    run_git(tmp_path, "init", "-q")
    write_files(
        tmp_path, {"openspec/changes/grow/tasks.md": "- [ ] 1.1 x\n", "baton.toml": '[verify]\ncommands = ["true"]\n'}
    )
    assert refused(tmp_path, *ACTIONS)["code"] == "no_commits"


def test_above_a_project_in_a_sub_folder_its_name_is_said(tmp_path: Path) -> None:
    world = make_world(tmp_path / "one", files={"packages/my app/openspec/changes/x/tasks.md": "- [ ] 1.1 a\n"})
    run_git(world.root, "rm", "-rq", "openspec")
    assert refused(world.root, "status")["hint"] == "name one of its projects with --project: 'packages/my app'"


def test_no_openspec(tmp_path: Path) -> None:
    run_git(tmp_path, "init", "-q")
    assert refused(tmp_path, *ACTIONS)["code"] == "no_openspec"


def test_no_such_change_suggests_the_right_one(world: World) -> None:
    error = refused(world.root, "actions", "gorw", "--session", "new")
    assert error["code"] == "no_such_change"
    assert "grow" in error["message"] + error["hint"]


@pytest.mark.parametrize("name", ["../grow", ".hidden", "archive", "a/b"])
def test_a_change_name_leads_nowhere_else(world: World, name: str) -> None:
    assert refused(world.root, "actions", name, "--session", "new")["code"] in ("bad_change_name", "no_such_change")


def test_no_boxes(world: World) -> None:
    world.tasks.write_text("## 1. Nothing\n\n- just a bullet\n")
    error = refused(world.root, *ACTIONS)
    assert error["code"] == "no_tasks"
    assert "- [ ] 1.1" in error["hint"]
    assert refused(world.root, "plan", "grow")["code"] == "no_tasks"


def test_nothing_to_check_with_blocks_and_says_how_to_go_on(tmp_path: Path) -> None:
    world = make_world(tmp_path / "p", config=None)
    answer = baton_json(world.root, *ACTIONS)
    assert answer["state"] == "blocked"
    assert answer["actions"][0]["reason"] == "no_verification"
    assert str(world.root) in answer["actions"][0]["remedy"]


def test_a_cycle_names_every_ticket_in_it(world: World) -> None:
    world.tasks.write_text("## 1. A\n- [ ] 1.1 One (after 1.2)\n- [ ] 1.2 Two (after 1.1)\n")
    error = refused(world.root, *ACTIONS)
    assert error["code"] == "plan_cycle"
    assert "1.1" in error["message"]
    assert "1.2" in error["message"]
    assert not list((world.project.worktrees).rglob("README"))


def test_invalid_utf8_names_the_place(world: World) -> None:
    world.tasks.write_bytes(b"## 1. A\n- [ ] 1.1 caf\xe9\n")
    error = refused(world.root, *ACTIONS)
    assert error["code"] == "invalid_utf8"
    assert "21" in error["message"]


def test_a_typo_in_baton_toml_is_named_with_the_right_word(world: World) -> None:
    (world.root / "baton.toml").write_text('[verfy]\ncommands = ["true"]\n')
    error = refused(world.root, *ACTIONS)
    assert error["code"] == "bad_config"
    assert "verify" in error["hint"]


@pytest.mark.parametrize("capacity", ["0", "6"])
def test_capacity_out_of_range(world: World, capacity: str) -> None:
    assert refused(world.root, *ACTIONS, "--capacity", capacity, code=2)["code"] == "bad_capacity"


def test_an_unknown_assignment(world: World) -> None:
    baton_json(world.root, *ACTIONS)
    words = ("reconcile", "nobody", "--token", "x", "--terminal", "completed", "--project", str(world.root))
    assert refused(world.root, *words)["code"] == "unknown_assignment"


def test_git_is_missing(world: World, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    assert refused(world.root, *ACTIONS, PATH=str(empty))["code"] == "git_missing"


def test_a_database_of_a_newer_baton_is_left_alone(world: World) -> None:
    baton_json(world.root, *ACTIONS)
    path = world.project.queue_db
    connection = sqlite3.connect(path)
    connection.execute("INSERT INTO migrations VALUES ('m999_future', 0)")
    connection.commit()
    connection.close()
    error = refused(world.root, *ACTIONS)
    assert error["code"] == "store_newer"
    assert "m999_future" in error["message"]


def test_a_corrupt_database_is_named(world: World) -> None:
    baton_json(world.root, *ACTIONS)
    for path in world.project.state.glob("queue.db-*"):
        path.unlink()
    world.project.queue_db.write_bytes(b"this is no database" * 100)
    assert refused(world.root, *ACTIONS)["code"] == "store_corrupt"


def test_bind_without_a_token_on_standard_input(world: World) -> None:
    action = baton_json(world.root, *ACTIONS)["actions"][0]
    assert (
        refused(world.root, "bind", action["assignment_id"], "--token", "-", "--agent", "a", code=2)["code"]
        == "no_token"
    )


def test_a_seal_needs_a_key_or_an_operator_with_a_reason(world: World) -> None:
    assert refused(world.root, "seal", code=2)["code"] == "usage"
    assert refused(world.root, "seal", "--operator", code=2)["code"] == "no_reason"


def test_decisions_need_a_reason_and_a_ticket_that_exists(world: World) -> None:
    assert refused(world.root, "done", "1.1", code=2)["code"] == "no_reason"
    assert refused(world.root, "skip", "9.9", "--why", "x")["code"] == "no_such_ticket"


def test_an_operator_can_seal_from_inside_the_worktree(world: World) -> None:
    action = baton_json(world.root, *ACTIONS)["actions"][0]
    world.work(action)
    done = baton(world.root, "seal", "--operator", "--why", "looked at it", "--json", cwd=Path(action["cwd"]))
    assert json.loads(done.stdout)["state"] == "sealed", done.stdout
    shown = baton_json(world.root, "receipt", "show", action["assignment_id"])
    assert shown["receipt"]["operator"]["why"] == "looked at it"
    assert baton_json(world.root, "receipt", "verify", action["assignment_id"])["ticket"] == "grow#1.1"


def test_status_and_plan_write_nothing(world: World) -> None:
    before = sorted(os.walk(world.root))
    baton_json(world.root, "status")
    baton_json(world.root, "plan", "grow")
    baton_json(world.root, "log")
    assert sorted(os.walk(world.root)) == before
