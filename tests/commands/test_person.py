"""What a person does outside the loop: pause, look into a worktree, seal elsewhere, check the ground first."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import invariants
from tests.conftest import run_git, write_files
from tests.kit import World, baton, baton_json, hand_outs, kinds, make_world, only


@pytest.fixture
def world(tmp_path: Path) -> World:
    return make_world(tmp_path / "project")


def test_a_paused_change_hands_nothing_out_and_still_settles(world: World) -> None:
    action = hand_outs(world.actions(capacity=1))[0]
    baton_json(world.root, "pause", "grow", "--why", "release day")
    assert world.finish(action)["state"] == "integrated"
    blocked = only(world.actions())
    assert (blocked["kind"], blocked["reason"]) == ("blocked", "paused")
    assert "release day" in blocked["detail"]
    assert blocked["remedy"].endswith("resume grow")
    baton_json(world.root, "resume", "grow")
    assert kinds(world.actions()) == ["dispatch"]
    assert [
        event["name"]
        for event in baton_json(world.root, "log", "grow")["events"]
        if event["name"] in ("pause", "resume")
    ] == [
        "pause",
        "resume",
    ]
    assert baton(world.root, "pause", "grow").returncode == 2


def test_diff_shows_commits_and_uncommitted_work_without_touching_either(world: World) -> None:
    action = hand_outs(world.actions(capacity=1))[0]
    place = Path(action["cwd"])
    world.work(action, {"made.txt": "committed\n"})
    write_files(place, {"README": "edited\n", "new.txt": "untracked\n"})
    before = run_git(place, "status", "--porcelain")
    told = baton_json(world.root, "diff", "1.1")
    assert told["committed"] == ["made.txt"]
    assert set(told["uncommitted"]) == {"README", "new.txt"}
    assert "+committed" in told["patch"]
    assert "+edited" in told["patch"]
    assert "work on grow#1.1" in baton(world.root, "diff", "1.1").stdout
    assert run_git(place, "status", "--porcelain") == before
    refused = baton(world.root, "diff", "2.1", "--json")
    assert json.loads(refused.stdout)["error"]["code"] == "no_assignment"


def test_diff_of_integrated_work_shows_what_was_merged(world: World) -> None:
    first, second = hand_outs(world.actions(capacity=2))
    world.finish(first, {"one.txt": "from the first\n"})
    world.finish(second, {"two.txt": "from the second\n"})
    told = baton_json(world.root, "diff", "1.2")
    assert (told["state"], told["assignment_id"]) == ("integrated", second["assignment_id"])
    assert (told["committed"], told["uncommitted"]) == (["two.txt"], [])
    assert told["commits"] == ["work on grow#1.2"]
    assert "+from the second" in told["patch"]
    assert "one.txt" not in told["patch"]
    assert told["head"] == run_git(world.root, "rev-parse", world.integration)
    assert baton(world.root, "diff", "1.2").stdout.startswith("1.2  integrated, ")
    (world.root / ".dsh" / "baton" / "queue.db").unlink()
    world.actions()
    assert baton_json(world.root, "diff", "1.1")["committed"] == ["one.txt"]


def test_a_receipt_is_named_by_its_ticket_or_its_assignment(world: World, tmp_path: Path) -> None:
    sealed, _ = hand_outs(world.actions(capacity=2))
    world.finish(sealed)
    by_id = baton_json(world.root, "receipt", "show", sealed["assignment_id"])
    for name in ("1.1", "grow#1.1"):
        assert baton_json(world.root, "receipt", "show", name) == by_id
        assert baton(world.root, "receipt", "verify", name).stdout.startswith("the receipt of grow#1.1 counts: ")
    assert baton_json(world.root, "receipt", "show", "1.2", code=1)["error"]["code"] == "no_receipt"
    assert baton_json(world.root, "receipt", "show", "2.1", code=1)["error"]["code"] == "no_assignment"
    assert baton_json(world.root, "receipt", "verify", "9.9", code=1)["error"]["code"] == "no_such_ticket"
    run_git(world.root, "clone", "-q", "-b", world.integration, ".", str(tmp_path / "clone"))
    write_files(tmp_path / "clone", {"openspec/changes/grow/tasks.md": world.tasks.read_bytes()})
    error = baton_json(tmp_path / "clone", "receipt", "show", "1.1", code=1)["error"]
    commit = run_git(world.root, "rev-parse", world.integration)
    assert (error["code"], error["hint"].endswith(f"git show {commit}")) == ("no_assignment", True)


def sealed_elsewhere(world: World, tmp_path: Path, *, forge: bool = False) -> tuple[dict[str, object], Path]:
    """Export the packet, do and seal the work in a clone, bring the commit home; the action and its receipt."""
    action = hand_outs(world.actions(capacity=1))[0]
    packet, receipt, clone = tmp_path / "packet.json", tmp_path / "receipt.json", tmp_path / "clone"
    baton_json(world.root, "packet", "export", action["assignment_id"], "--out", str(packet))
    run_git(world.root, "clone", "-q", "--no-local", "--branch", action["branch"], str(world.root), str(clone))
    write_files(clone, {"far.txt": "done elsewhere\n"})
    run_git(clone, "add", "-A")
    run_git(clone, "commit", "-q", "-m", "far away")
    done = baton(clone, "seal", "--packet", str(packet), "--out", str(receipt), "--json")
    assert json.loads(done.stdout)["detached"] is True, done.stdout
    if forge:
        receipt.write_text(receipt.read_text().replace('"exit_code":0', '"exit_code":1'))
    run_git(world.root, "fetch", "-q", str(clone), "HEAD")
    return action, receipt


def settle(world: World, action: dict[str, object], receipt: Path) -> dict[str, object]:
    words = (
        "reconcile",
        str(action["assignment_id"]),
        "--token",
        "-",
        "--terminal",
        "completed",
        "--receipt",
        str(receipt),
    )
    done = baton(world.root, *words, "--json", input=str(action["claim_token"]))
    answer: dict[str, object] = json.loads(done.stdout)
    return answer


def allow(world: World) -> None:
    (world.root / "baton.toml").write_text('[verify]\ncommands = ["test -f README"]\n[seal]\naccept_detached = true\n')


def test_a_receipt_from_another_machine_is_taken_only_where_the_project_allows_it(world: World, tmp_path: Path) -> None:
    action, receipt = sealed_elsewhere(world, tmp_path)
    refused = settle(world, action, receipt)
    assert refused["error"]["code"] == "detached_not_accepted"  # type: ignore[index]
    allow(world)
    before = invariants.checkout(world.root)
    settled = settle(world, action, receipt)
    assert settled.get("state") == "integrated", settled
    assert settle(world, action, receipt)["state"] == "integrated"
    assert "- [x] 1.1" in world.tasks.read_text()
    gate = run_git(world.root, "log", "-1", "--format=%B", world.integration)
    assert '"proof":"gate"' in gate, "a detached receipt alone proves nothing: the gate ran"
    invariants.check(world, before)


def test_a_forged_receipt_from_another_machine_is_refused(world: World, tmp_path: Path) -> None:
    allow(world)
    action, receipt = sealed_elsewhere(world, tmp_path, forge=True)
    assert settle(world, action, receipt)["error"]["code"] == "receipt_edited"  # type: ignore[index]
    assert world.ticket("1.1")["status"] == "in_flight"


def test_red_before_any_work_is_a_warning_and_no_block(tmp_path: Path) -> None:
    world = make_world(tmp_path / "p", config=None, files={"Makefile": "test:\n\ttest -f made-later\n"})
    first = world.actions()
    assert kinds(first) == ["dispatch", "dispatch"]
    assert any("baseline_red" in notice and "make test" in notice for notice in first["notices"])
    assert not (world.project.worktrees / "baseline").exists()
    plan = baton_json(world.root, "plan", "grow", "--check")
    assert "baseline_red" in [warning["code"] for warning in plan["warnings"]]
    assert (plan["baseline"]["passed"], len(plan["baseline"]["red"])) == ([], 1)


def test_a_green_baseline_and_a_skipped_ticket_are_said(world: World) -> None:
    head = run_git(world.root, "rev-parse", "HEAD")
    world.decide("1.2", "skip")
    told = baton(world.root, "plan", "grow", "--check").stdout
    assert f"baseline: 1 of 1 check pass at {head[:12]}" in told.splitlines()
    assert "  [-] 1.2  Lay the second stone" in told.splitlines()
    assert baton_json(world.root, "plan", "grow", "--check")["baseline"] == {
        "commit": head, "passed": ["test -f README"], "red": [],
    }  # fmt: skip


def test_a_decision_carries_the_name_that_git_knows(world: World) -> None:
    run_git(world.root, "config", "user.name", "Ada of the Hill")
    world.decide("1.2", "skip")
    assert world.ticket("1.2")["evidence"]["who"] == "Ada of the Hill"
    run_git(world.root, "config", "user.name", "")
    world.decide("1.1", "done")
    assert world.ticket("1.1")["evidence"]["who"] not in ("", "Ada of the Hill")
    invariants.check(world)


def test_what_checks_could_pick_up_around_a_worktree_is_reported(tmp_path: Path) -> None:
    files = {"package.json": "{}", ".gitignore": "node_modules/\n"}
    world = make_world(tmp_path / "p", files=files)
    write_files(world.root, {"node_modules/left/index.js": "1"})
    assert any("environment_leak" in notice and "node_modules" in notice for notice in world.actions()["notices"])


def test_a_session_is_told_which_folder_its_agents_need(tmp_path: Path) -> None:
    outer = make_world(tmp_path / "repository")
    assert not [notice for notice in outer.actions().get("notices", ()) if "workspace" in notice]
    inner = World(outer.root / "packages" / "inner")
    inner.root.mkdir(parents=True)
    for name in ("openspec", "baton.toml", "README"):
        run_git(outer.root, "mv", name, f"packages/inner/{name}")
    run_git(outer.root, "commit", "-qm", "inner")
    notice = next(notice for notice in inner.actions()["notices"] if notice.startswith("workspace_too_small"))
    assert f"in {outer.root}, else" in notice


def test_copies_links_and_include_files_reach_the_worktree_and_no_commit(tmp_path: Path) -> None:
    config = '[verify]\ncommands = ["test -f .env"]\n[worktree]\ncopy = [".env", "README"]\nlink = ["big"]\n'
    files = {".gitignore": ".env\nbig\nlocal/\n", ".worktreeinclude": "local/*.cfg\n"}
    world = make_world(tmp_path / "p", config=config, files=files)
    write_files(
        world.root, {".env": "TOKEN=1\n", "big/data": "x", "local/a.cfg": "a", "local/b.txt": "b", "README": "edited\n"}
    )
    (world.root / ".env").chmod(0o600)
    action = hand_outs(world.actions(capacity=1))[0]
    place = Path(action["cwd"])
    assert (place / ".env").read_text() == "TOKEN=1\n"
    assert (place / ".env").stat().st_mode & 0o777 == 0o600
    assert (place / "README").read_text() == "ground\n", "a tracked file is never overwritten"
    assert (place / "big").is_symlink()
    assert (place / "local" / "a.cfg").exists()
    assert not (place / "local" / "b.txt").exists()
    assert world.finish(action)["state"] == "integrated"
    assert ".env" not in run_git(world.root, "ls-tree", "-r", "--name-only", world.integration)
    for folder in ("packets", "receipts", "logs"):
        for path in (world.project.state / folder).iterdir():
            assert b"TOKEN=1" not in path.read_bytes()
