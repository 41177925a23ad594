"""What a person does outside the loop: pause, look into a worktree, seal elsewhere, check the ground first."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from baton_cli import output
from tests import invariants
from tests.conftest import run_git, write_files
from tests.kit import World, baton, baton_json, hand_outs, kinds, make_world, only, seal_command


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
    assert f"baseline: 1 of 1 check passes at {head[:12]}" in told.splitlines()
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


def told(world: World, *words: str) -> list[str]:
    done = baton(world.root, *words)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_decision_says_what_is_so_now_and_what_comes_next(world: World) -> None:
    first, second = hand_outs(world.actions())
    stays, busy = (
        "its branch and worktree are kept: ",
        "an agent may still be at work on it: what it does counts no longer",
    )
    assert told(world, "abandon", "1.1", "--why", "wrong way") == [
        "1.1 is free again: the work on it is given up", stays + first["branch"], busy,
        "next: it goes to the next session or drive",
    ]  # fmt: skip
    assert told(world, "retry", "1.2") == [
        "1.2 begins its attempts anew, with the work that is there",
        "notice: an agent of session s1 may be at work on it: its token and seal key count no longer",
        "next: it goes to the next session or drive",
    ]
    assert told(world, "done", "1.2", "--why", "by hand") == [
        "1.2 counts as done by hand, and its box is ticked", stays + second["branch"],
        "next: the rest goes on with the next session or drive",
    ]  # fmt: skip
    assert told(world, "pause", "--why", "lunch") == [
        "grow is paused: running work goes on, nothing more is handed out",
        f"next, when it may go on: {output.baton()} resume grow",
    ]
    paused = told(world, "reopen", "1.2", "--why", "not quite")
    assert paused[0] == "1.2 is open again, and its box is not ticked"
    assert paused[1].startswith("next: the change is paused: ")
    assert paused[1].endswith(" resume grow")
    assert told(world, "resume") == ["grow goes on with the next session or drive"]
    assert told(world, "skip", "1.1", "--why", "no")[0] == "1.1 is left out of the change; its box stays as it is"
    told(world, "skip", "2.1", "--why", "no")
    assert told(world, "reopen", "2.1", "--why", "yes")[-1] == "next: it waits for 1.2"
    told(world, "skip", "2.1", "--why", "no")
    last = told(world, "skip", "1.2", "--why", "no")[-1]
    assert last.startswith("next: every ticket is finished: ")
    assert last.endswith(" land grow")
    invariants.check(world)


def test_an_operators_seal_says_who_merges_it(world: World) -> None:
    action = hand_outs(world.actions(capacity=1))[0]
    world.work(action)
    done = baton(world.root, "seal", "--operator", "--why", "looked at it", cwd=Path(action["cwd"]))
    assert re.fullmatch(
        r"sealed grow#1\.1 at [0-9a-f]{12}\nnext: the next session or drive merges it\n", done.stdout
    ), done.stdout
    world.actions()
    assert world.ticket("1.1")["status"] == "integrated"


def test_an_operators_seal_takes_the_ticket_from_anywhere_in_the_project(world: World) -> None:
    world.work(hand_outs(world.actions(capacity=1))[0])
    assert told(world, "seal", "1.1", "--operator", "--why", "looked at it")[0].startswith("sealed grow#1.1 at ")
    assert (
        baton_json(world.root, "seal", "9.9", "--operator", "--why", "no", code=1)["error"]["code"] == "no_such_ticket"
    )


def test_the_only_change_need_not_be_named(world: World) -> None:
    assert baton(world.root, "plan").stdout == baton(world.root, "plan", "grow").stdout
    world.run_to_end()
    assert told(world, "audit") == told(world, "audit", "grow")
    assert told(world, "land")[0].startswith("grow is landed: ")
    archive = world.root / "openspec" / "changes" / "archive" / "2026-11-29-grow"
    archive.parent.mkdir()
    world.tasks.parent.rename(archive)
    assert told(world, "audit")[0].startswith("grow (archived in ")
    none = "error: there is no change in openspec/changes\nhint: write one with OpenSpec\n"
    for words in (("plan",), ("land",), ("pause", "--why", "x"), ("resume",), ("explain", "1.1")):
        assert baton(world.root, *words).stderr == none, words
    for name in ("birds", "bees"):
        write_files(world.root, {f"openspec/changes/{name}/tasks.md": "- [ ] 1.1 Fly\n"})
    several = "error: this project has 2 changes: bees, birds\nhint: name one of them, such as bees\n"
    for words in (("plan",), ("audit",), ("land",), ("pause", "--why", "x"), ("resume",)):
        done = baton(world.root, *words)
        assert (done.returncode, done.stderr) == (2, several), words
    assert baton(world.root, "plan", "bees", "--all").returncode == 2


@pytest.mark.parametrize("verb", ["done", "skip", "reopen", "abandon", "pause"])
def test_a_reason_is_required_and_help_says_so(world: World, verb: str) -> None:
    assert re.search(r"--why W .*\[required\]", baton(world.root, verb, "--help").stdout)
    done = baton(world.root, verb, "1.1" if verb != "pause" else "grow")
    assert (done.returncode, done.stderr) == (
        2, "error: this decision needs a reason\nhint: add --why 'the reason'\n",
    )  # fmt: skip
    assert world.status()["integration_branch"] is None, "nothing was begun before it was refused"


def test_unittest_is_found_at_the_claim_and_runs_in_the_seal(tmp_path: Path) -> None:
    case = (
        "import unittest\nfrom words import hi\n\nclass Hi(unittest.TestCase):\n    def test_it(self):\n        hi()\n"
    )
    files = {"words.py": "def hi(): ...\n", "tests/test_words.py": case, ".gitignore": "__pycache__/\n"}
    world = make_world(tmp_path / "project", "- [ ] 1.1 Say more\n", config=None, files=files)
    action = hand_outs(world.actions())[0]
    packet = json.loads(Path(action["packet"]).with_suffix(".json").read_text())
    command = "python3 -m unittest discover -s tests"
    assert [check["command"] for check in packet["checks"]] == [command]
    assert baton_json(world.root, "init")["commands"] == [command]
    world.work(action, {"words.py": "def hi(): raise KeyError\n"})
    assert baton(Path(action["cwd"]), *seal_command(action)[-4:]).returncode == 1
    world.work(action, {"words.py": "def hi(): return 1\n"})
    assert world.seal(action)["state"] == "sealed"
