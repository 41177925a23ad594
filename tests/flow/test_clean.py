"""What integrated work no longer needs goes; whatever holds anything else stays, in every state and from everywhere."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from baton_cli import context as contexts
from baton_cli import locks
from baton_cli.finisher import Finisher
from baton_cli.store import assignments
from tests import invariants
from tests.conftest import run_git, write_files
from tests.kit import World, baton, baton_json, hand_outs, kinds, make_world

ONE = "- [ ] 1.1 Lay the first stone\n"
BRANCH = "baton/grow/integration"


def clean(world: World, change: str | None = None, *, dry_run: bool = False) -> dict[str, Any]:
    with contexts.opened(world.project, create=True, clock=world.clock) as surroundings:
        return Finisher(surroundings).clean(change, dry_run=dry_run)


def land(world: World) -> None:
    with contexts.opened(world.project, create=True, clock=world.clock) as surroundings:
        Finisher(surroundings).land("grow")


def everything(root: Path) -> tuple[str, str, dict[str, bytes]]:
    """All refs, all worktrees, and the files of the tickets' worktrees."""
    place = root / ".dsh" / "baton" / "worktrees"
    files = {str(path): path.read_bytes() for path in sorted(place.rglob("*")) if path.is_file()}
    return run_git(root, "for-each-ref"), run_git(root, "worktree", "list"), files


def why(answer: dict[str, Any], part: str = "") -> str:
    return "; ".join(item["why"] for item in answer["kept"] if part in item["name"])


def gone(answer: dict[str, Any], what: str) -> list[str]:
    return [item["name"] for item in answer["removed"] if item["what"] == what]


def left_behind(root: Path, spoil: Callable[[Path], object] = lambda _place: None) -> tuple[World, Path]:
    """A world with one integrated ticket whose worktree is still there, and what somebody did in it since."""
    world = make_world(root, ONE, files={".gitignore": "*.log\n"})
    action = hand_outs(world.actions())[0]
    place = Path(action["cwd"])
    world.work(action)
    world.seal(action)
    write_files(place, {"note.txt": "mine\n"})
    assert world.reconcile(action)["state"] == "integrated"
    (place / "note.txt").unlink()
    spoil(place)
    return world, place


def untracked(place: Path) -> None:
    write_files(place, {"note.txt": "mine\n"})


def ignored(place: Path) -> None:
    write_files(place, {"made.log": "mine\n"})


def committed(place: Path) -> None:
    write_files(place, {"more.txt": "more\n"})
    run_git(place, "add", "-A")
    run_git(place, "commit", "-q", "-m", "more")


def detached(place: Path) -> None:
    run_git(place, "checkout", "-q", "--detach")
    committed(place)


def in_a_merge(place: Path) -> None:
    run_git(place, "checkout", "-q", "--detach")
    run_git(place, "bisect", "start")


KEPT: list[tuple[Callable[[Path], object], str]] = [
    (untracked, "note.txt"),
    (lambda place: write_files(place, {"README": "edited\n"}), "README"),
    (ignored, "ignored files: made.log"),
    (committed, "not integrated"),
    (detached, "on no branch"),
    (in_a_merge, "bisect is in progress"),
    (lambda place: run_git(place, "worktree", "lock", "--reason", "look at it", str(place)), "locked: look at it"),
    (lambda place: run_git(place, "worktree", "lock", "--reason", f"agent (pid {os.getpid()})", str(place)), "locked"),
]


@pytest.mark.parametrize(("spoil", "what"), KEPT, ids=[
    "untracked", "edited", "ignored", "committed", "detached", "bisect", "locked", "locked by a living process",
])  # fmt: skip
def test_what_holds_anything_else_is_kept_and_named(tmp_path: Path, spoil: Callable[[Path], object], what: str) -> None:
    world, place = left_behind(tmp_path / "project", spoil)
    before = everything(world.root)
    for change in (None, "grow"):
        answer = clean(world, change)
        assert what in why(answer, "1.1"), answer
        assert "not landed" in why(answer, BRANCH)
    worktree_files = {name: data for name, data in before[2].items() if name.startswith(str(place))}
    assert {name: data for name, data in everything(world.root)[2].items() if name in worktree_files} == worktree_files
    refs = {line for line in before[0].splitlines() if "refs/baton/sealed" not in line}
    assert refs == set(run_git(world.root, "for-each-ref").splitlines())
    invariants.check(world)


def test_what_was_in_the_way_is_gone_and_so_is_the_worktree(tmp_path: Path) -> None:
    world, place = left_behind(tmp_path / "project")
    told = clean(world, dry_run=True)
    assert place.exists()
    answer = clean(world)
    assert {**told, "dry_run": False} == answer
    assert (gone(answer, "worktree")[0], len(gone(answer, "ref"))) == (str(place), 1)
    assert not place.exists()
    assert run_git(world.root, "for-each-ref", "--format=%(refname)").split("\n") == [
        f"refs/heads/{BRANCH}", "refs/heads/main",
    ]  # fmt: skip
    assert [item["name"] for item in clean(world)["kept"]] == [BRANCH]
    assert clean(world)["removed"] == []
    invariants.check(world)


def test_after_landing_the_integration_branch_goes_too(tmp_path: Path) -> None:
    world = make_world(tmp_path / "project")
    assert kinds(world.run_to_end()) == ["complete"]
    assert "baton land" in why(clean(world), BRANCH)
    land(world)
    before = invariants.checkout(world.root)
    answer = clean(world)
    assert (gone(answer, "branch"), answer["kept"]) == ([BRANCH], [])
    assert run_git(world.root, "for-each-ref", "--format=%(refname)") == "refs/heads/main"
    assert len(run_git(world.root, "worktree", "list").splitlines()) == 1
    invariants.check(world, before)
    assert clean(world) == {**answer, "removed": []}
    assert kinds(world.actions()) == ["complete"]  # and the change can still be asked for
    invariants.check(world, before)


def test_a_worktree_locked_by_a_dead_process_is_reclaimed(tmp_path: Path) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    world, place = left_behind(
        tmp_path / "project",
        lambda place: run_git(place, "worktree", "lock", "--reason", f"an agent (pid {dead.pid})", str(place)),
    )
    assert gone(clean(world), "worktree")[0] == str(place)
    assert not place.exists()
    invariants.check(world)


def test_a_squash_merge_is_known_from_the_record_and_no_commit_is_lost(tmp_path: Path) -> None:
    world, place = left_behind(tmp_path / "project")
    head = run_git(place, "rev-parse", "HEAD")
    run_git(world.root, "merge", "--squash", BRANCH)
    run_git(world.root, "commit", "-q", "-m", "all of it")
    answer = clean(world)
    assert not place.exists()
    assert "squashed: this branch holds the only evidence" in why(answer, BRANCH)
    run_git(world.root, "branch", "-D", BRANCH)
    run_git(world.root, "update-ref", "refs/baton/sealed/x-00000000", head)
    assert "not integrated" in why(clean(world), "refs/baton/sealed")
    assert run_git(world.root, "rev-parse", "refs/baton/sealed/x-00000000") == head


def test_a_squash_after_which_the_branch_was_deleted(tmp_path: Path) -> None:
    world, place = left_behind(tmp_path / "project")
    run_git(world.root, "merge", "--squash", BRANCH)
    run_git(world.root, "commit", "-q", "-m", "all of it")
    run_git(world.root, "branch", "-D", BRANCH)
    answer = clean(world)
    assert not place.exists()
    assert "nothing else holds the commits" in why(answer, "refs/baton/sealed")


@pytest.mark.parametrize("state", ["claimed", "dirty", "sealed", "unknown", "exhausted", "abandoned", "skipped"])
def test_no_state_loses_work(tmp_path: Path, state: str) -> None:
    world = make_world(tmp_path / "project", ONE)
    action = hand_outs(world.actions())[0]
    if state == "dirty":
        untracked(Path(action["cwd"]))
    elif state != "claimed":
        world.work(action)
    if state == "sealed":
        world.seal(action)
    if state == "unknown":
        world.reconcile(action, "failed")
    if state == "exhausted":
        with contexts.opened(world.project, create=True) as surroundings, surroundings.store.transaction():
            surroundings.store.write("UPDATE assignments SET state = 'exhausted'")
    if state == "abandoned":
        world.decide("1.1", "abandon")
    if state == "skipped":
        world.decide("1.1", "skip")
    before = everything(world.root)
    answer = clean(world)
    assert answer["removed"] == []
    assert everything(world.root) == before
    assert why(answer, "1.1")
    if state != "exhausted":
        invariants.check(world)


@pytest.mark.parametrize("decision", ["skip", "abandon"])
def test_what_was_given_up_goes_when_it_holds_nothing(tmp_path: Path, decision: str) -> None:
    world = make_world(tmp_path / "project", ONE)
    action = hand_outs(world.actions())[0]
    world.decide("1.1", decision)
    assert "has not ended" in why(clean(world), "1.1")
    world.clock.seconds += 10_000
    place = Path(action["cwd"])
    untracked(place)
    assert "not committed: note.txt" in why(clean(world), "1.1")
    (place / "note.txt").unlink()
    answer = clean(world)
    assert (gone(answer, "worktree"), why(answer, "1.1")) == ([str(place)], "")
    assert not place.exists()
    assert run_git(world.root, "branch", "--list", action["branch"]) == ""
    invariants.check(world)


def test_what_was_given_up_with_work_in_it_names_the_way_to_drop_it(tmp_path: Path) -> None:
    world = make_world(tmp_path / "project", ONE)
    action = hand_outs(world.actions())[0]
    world.work(action)
    world.decide("1.1", "skip")
    world.clock.seconds += 10_000
    said = why(clean(world), "1.1")
    assert said.startswith(f"it was given up, and {action['branch']} has commits that are not integrated")
    way = said.rpartition("force git (as it stands it refuses): ")[2]
    assert way == f"git worktree remove {action['cwd']} && git branch -d {action['branch']}"
    refused = subprocess.run(way, shell=True, cwd=world.root, capture_output=True, text=True)
    assert "not fully merged" in refused.stderr  # git keeps what would be lost
    run_git(world.root, "branch", "-D", action["branch"])
    assert not Path(action["cwd"]).exists()
    assert why(clean(world), "1.1") == ""


def test_an_integrated_worktree_whose_agent_still_runs_stays(tmp_path: Path) -> None:
    world = make_world(tmp_path / "project", ONE)
    action = hand_outs(world.actions())[0]
    world.work(action)
    world.seal(action)
    world.actions()  # integrates it, unreconciled
    assert "has not ended" in why(clean(world), "1.1")
    assert Path(action["cwd"]).exists()
    world.clock.seconds += 10_000
    assert clean(world)["removed"]


def test_a_locked_assignment_and_a_running_integration_are_left_alone(tmp_path: Path) -> None:
    world, place = left_behind(tmp_path / "project")
    with contexts.opened(world.project, create=True) as surroundings:
        held = assignments.everything(surroundings.store, "grow")[0]
    with locks.assignment_lock(world.project, held.id, wait=False), locks.integration_lock(world.project, wait=False):
        answer = clean(world)
    assert "in use" in why(answer, "1.1")
    assert "just now" in why(answer, BRANCH)
    assert place.exists()


@pytest.mark.parametrize("where", ["root", "sub-folder", "feature branch", "linked worktree", "its own worktree"])
def test_from_every_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    world, place = left_behind(tmp_path / "project")
    here = world.root
    if where == "sub-folder":
        here = world.root / "openspec" / "changes"
    elif where == "feature branch":
        run_git(world.root, "switch", "-q", "-c", "feature")
        write_files(world.root, {"wip.txt": "wip\n"})
    elif where == "linked worktree":
        here = tmp_path / "linked"
        run_git(world.root, "worktree", "add", "-q", "-b", "other", str(here))
        write_files(here, {"wip.txt": "wip\n"})
    elif where == "its own worktree":
        here = place
    before, files = invariants.checkout(world.root), sorted(world.root.glob("*"))
    told = baton_json(here, "clean", "grow")
    if where == "its own worktree":
        assert "this call was made in it" in why(told, "1.1")
        assert place.exists()
    else:
        assert not place.exists()
    if where == "linked worktree":
        assert (here / "wip.txt").read_text() == "wip\n"
    assert sorted(world.root.glob("*")) == files
    invariants.check(world, before)


def test_with_the_store_gone_only_merged_heads_count(tmp_path: Path) -> None:
    world, place = left_behind(tmp_path / "project")
    world.tasks.write_text(world.tasks.read_text() + "- [ ] 1.2 Lay another\n")
    other = Path(hand_outs(world.actions())[0]["cwd"])
    run_git(world.root, "worktree", "add", "-q", "-b", "again", str(place.with_name("ffffffff")), f"{BRANCH}^2")
    shutil.rmtree(place, ignore_errors=True)
    for path in world.project.state.glob("queue.db*"):
        path.unlink()
    answer = clean(world)
    assert why(answer, str(other)).startswith("Baton has no record of it; it has nothing of its own")
    assert other.exists()
    assert gone(answer, "worktree") == [str(place.with_name("ffffffff"))]
    assert not place.with_name("ffffffff").exists()
    assert run_git(world.root, "rev-parse", f"refs/heads/{BRANCH}")


def test_what_the_record_does_not_know_is_kept_with_the_way_to_drop_it(tmp_path: Path) -> None:
    """Worktrees with work, branches without a worktree, and the integration branch: nothing is passed over in silence."""
    plan = "".join(f"- [ ] 1.{n} Lay stone {n}\n" for n in range(1, 5))
    world = make_world(tmp_path / "project", plan)
    merged, dirty, bare, lone = hand_outs(world.actions())
    world.finish(merged)
    write_files(Path(dirty["cwd"]), {"half.txt": "half\n"})
    world.work(bare)
    world.work(lone)
    run_git(world.root, "worktree", "remove", lone["cwd"])
    run_git(world.root, "branch", merged["branch"], f"{BRANCH}^2")
    for path in world.project.state.glob("queue.db*"):
        path.unlink()
    before = everything(world.root)
    clean(world, dry_run=True)
    assert everything(world.root) == before
    answer = clean(world)
    assert gone(answer, "branch") == [merged["branch"]]
    assert why(answer, dirty["cwd"]).startswith(
        "Baton has no record of it, and it has files that are not committed (half.txt); if nobody wants it, "
    )
    assert "and it has commits that are on no other branch" in why(answer, bare["cwd"])
    assert "and it has commits that are on no other branch" in why(answer, lone["branch"])
    assert "the next session or drive of its change goes on with it" in why(answer, BRANCH)
    for name in (dirty["cwd"], bare["cwd"], lone["branch"]):
        way = why(answer, name).rpartition("force git (as it stands it refuses): ")[2]
        assert way.startswith(("git worktree remove /", "git branch -d "))
        assert subprocess.run(way, shell=True, cwd=world.root, capture_output=True).returncode
        insisted = way.replace("remove", "remove --force").replace(" -d ", " -D ").replace("&&", ";")
        subprocess.run(insisted, shell=True, cwd=world.root, check=True)
    assert [item["name"] for item in clean(world)["kept"]] == [BRANCH]
    run_git(world.root, "merge", "-q", "--no-edit", BRANCH)
    way = why(clean(world), BRANCH).rpartition("if the change is over: ")[2]
    subprocess.run(way, shell=True, cwd=world.root, check=True)
    assert clean(world)["kept"] == []


def test_branches_that_are_of_no_change_here_are_nobodys_business(tmp_path: Path) -> None:
    world, _place = left_behind(tmp_path / "project")
    for name in ("baton/other/1.1-abcdef", "baton/mine", "grow/1.1-abcdef"):
        run_git(world.root, "branch", name)
    assert not [item for item in clean(world)["kept"] if item["name"] != BRANCH]


def test_somebody_worked_in_batons_own_worktree(tmp_path: Path) -> None:
    world = make_world(tmp_path / "project")
    world.run_to_end()
    land(world)
    own = world.project.worktrees / "grow" / "integration"
    assert own.exists()
    write_files(own, {"mine.txt": "mine\n"})
    assert "mine.txt" in why(clean(world), "worktrees")
    run_git(own, "add", "-A")
    run_git(own, "commit", "-q", "-m", "mine")
    assert "is not Baton's" in why(clean(world), "worktrees")
    assert (own / "mine.txt").exists()


def test_the_command_says_each_thing_on_a_line(tmp_path: Path) -> None:
    world, place = left_behind(tmp_path / "project", untracked)
    kept = baton(world.root, "clean", "--dry-run")
    assert kept.returncode == 0
    assert "kept          branch    baton/grow/1.1-" in kept.stdout
    assert "not committed: note.txt" in kept.stdout
    (place / "note.txt").unlink()
    assert f"would remove  worktree  {place}\n" in baton(world.root, "clean", "--dry-run").stdout
    assert f"removed  worktree  {place}\n" in baton(world.root, "clean").stdout
    assert baton(world.root, "clean", "shrink").returncode == 1
    fresh = make_world(tmp_path / "fresh")
    assert baton(fresh.root, "clean").stdout == "nothing to remove\n"


def test_a_cache_that_a_check_left_keeps_no_worktree(tmp_path: Path) -> None:
    """Nothing in the repository ignores it, and it is no work."""
    check = "mkdir -p a/__pycache__ && touch a/__pycache__/x.pyc"
    world = make_world(tmp_path / "project", config=f'[verify]\ncommands = ["{check}"]\n')
    action = hand_outs(world.actions(capacity=1))[0]
    settled = world.finish(action)
    assert settled["state"] == "integrated"
    assert settled.get("notices", []) == []
    assert not Path(action["cwd"]).exists()
