"""A finished change comes to the branch it started from, and nobody loses a byte by it."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from baton_cli import context as contexts
from baton_cli.core import integration
from baton_cli.errors import BatonError
from baton_cli.finisher import Finisher
from tests import invariants
from tests.conftest import run_git, write_files
from tests.kit import World, baton, baton_json, hand_outs, kinds, make_world

TASKS_FILE = "openspec/changes/grow/tasks.md"


def land(world: World, into: str | None = None) -> dict[str, Any]:
    with contexts.opened(world.project, create=True, clock=world.clock) as surroundings:
        return Finisher(surroundings).land(world.change, into)


def refusal(world: World, into: str | None = None) -> BatonError:
    with pytest.raises(BatonError) as caught:
        land(world, into)
    assert caught.value.hint
    return caught.value


def tip(world: World, branch: str = "main") -> str:
    return run_git(world.root, "rev-parse", f"refs/heads/{branch}")


def complete(root: Path, **more: Any) -> World:
    world = make_world(root, **more)
    assert kinds(world.run_to_end()) == ["complete"]
    return world


def commit_on(place: Path, files: dict[str, str], message: str = "meanwhile") -> str:
    write_files(place, files)
    run_git(place, "add", "--", *files)
    run_git(place, "commit", "-q", "-m", message)
    return run_git(place, "rev-parse", "HEAD")


def bytes_of(world: World) -> dict[str, bytes]:
    """Every file of the checkout, and its index."""
    found = {".index": (world.root / ".git" / "index").read_bytes()}
    for path in sorted(world.root.rglob("*")):
        name = path.relative_to(world.root)
        if name.parts[0] not in (".git", ".dsh") and path.is_file():
            found[name.as_posix()] = path.read_bytes()
    return found


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose change is complete; tests work on copies of it."""
    return tmp_path_factory.mktemp("kept") / "project"


@pytest.fixture
def world(tmp_path: Path, finished: Path) -> World:
    if not finished.exists():  # made inside of a test, where home and git settings are the test's own
        complete(finished)
    shutil.copytree(finished, tmp_path / "project", symlinks=True)
    for links in (".git/worktrees", ".dsh/baton/worktrees"):  # they lead to the original
        shutil.rmtree(tmp_path / "project" / links, ignore_errors=True)
    return World(tmp_path / "project")


# Where the branch is


def test_the_branch_has_not_moved_and_is_checked_out_here(world: World) -> None:
    before, ticked = tip(world), world.tasks.read_bytes()
    answer = land(world)
    assert (answer["state"], answer["before"], answer["merged"]) == ("landed", before, None)
    assert answer["head"] == tip(world) == tip(world, world.integration)
    assert answer["checkout"] == str(world.root)
    assert {path.name for path in world.root.glob("*.txt")} == {"1.1.txt", "1.2.txt", "2.1.txt"}
    assert run_git(world.root, "status", "--porcelain") == f" M {TASKS_FILE}"
    assert world.tasks.read_bytes() == ticked
    assert "- [ ]" in run_git(world.root, "show", f"main:{TASKS_FILE}")
    commit, audit, archive, clean = (step["run"] for step in answer["next"])
    assert commit.startswith("git commit ")
    assert audit.endswith(" audit grow")
    assert archive == "openspec archive grow"
    assert clean.endswith(" clean grow")
    invariants.check(world)
    assert run_git(world.root, "stash", "list") == ""


@pytest.mark.parametrize("elsewhere", [False, True])
def test_the_ticks_are_committed_on_the_branch_that_it_landed_on(world: World, tmp_path: Path, elsewhere: bool) -> None:
    run_git(world.root, "branch", "side")
    if elsewhere:
        run_git(world.root, "worktree", "add", "-q", str(tmp_path / "side of it"), "side")
    before = tip(world)
    first = land(world, "side")["next"][0]
    assert first["say"] == "commit the ticks on side"
    subprocess.run(["/bin/sh", "-c", first["run"]], cwd=world.root, check=True, capture_output=True)
    assert tip(world) == before
    assert "- [ ]" not in run_git(world.root, "show", f"side:{TASKS_FILE}")
    assert "- [ ]" in run_git(world.root, "show", f"main:{TASKS_FILE}")


def test_the_second_time_there_is_nothing_to_do(world: World) -> None:
    land(world)
    before = (tip(world), bytes_of(world))
    again = land(world)
    assert (again["state"], again["before"], again["checkout"]) == ("already_landed", None, None)
    assert (tip(world), bytes_of(world)) == before


def test_the_branch_has_moved_so_both_are_merged_through_the_gate(world: World) -> None:
    theirs, ours = commit_on(world.root, {"other.txt": "theirs\n"}), tip(world, world.integration)
    answer = land(world)
    assert answer["merged"] == answer["head"] == tip(world) == tip(world, world.integration)
    assert run_git(world.root, "log", "-1", "--format=%P", answer["merged"]) == f"{ours} {theirs}"
    evidence = integration.read_message(run_git(world.root, "log", "-1", "--format=%B", answer["merged"]))
    assert evidence is not None
    assert evidence.gate is not None
    assert (evidence.target, evidence.gate["target"]) == ("main", theirs)
    assert [(check["command"], check["proof"]) for check in evidence.gate["checks"]] == [("test -f README", "gate")]
    assert (world.root / "other.txt").read_text() == "theirs\n"
    assert (world.root / "1.1.txt").is_file()
    invariants.check(world)


def test_work_goes_on_after_a_landing_and_lands_again(world: World) -> None:
    commit_on(world.root, {"other.txt": "theirs\n"})
    land(world)
    world.tasks.write_text(world.tasks.read_text() + "- [ ] 2.2 Raise the roof\n")
    run_git(world.root, "commit", "-q", "-am", "ticks and a ticket")
    assert kinds(world.run_to_end()) == ["complete"]
    assert land(world)["merged"] is not None
    assert (world.root / "2.2.txt").is_file()
    assert "- [ ] 2.2" in run_git(world.root, "show", f"main:{TASKS_FILE}")
    invariants.check(world)


def test_a_merge_of_the_target_survives_the_loss_of_the_store(world: World) -> None:
    commit_on(world.root, {"other.txt": "theirs\n"})
    head = land(world)["head"]
    for path in world.project.state.glob("queue.db*"):
        path.unlink()
    assert kinds(world.actions()) == ["complete"]
    assert land(world)["state"] == "already_landed"
    assert tip(world, world.integration) == head
    invariants.check(world)


def test_a_conflict_is_named_and_changes_nothing(world: World) -> None:
    commit_on(world.root, {"1.1.txt": "theirs\n"})
    before = (tip(world), tip(world, world.integration), bytes_of(world))
    error = refusal(world)
    assert error.code == "land_conflict"
    assert "1.1.txt" in error.message
    assert "main has moved" in error.message
    assert (tip(world), tip(world, world.integration), bytes_of(world)) == before
    invariants.check(world)


def test_a_conflict_is_resolved_by_a_ticket_of_its_own(world: World) -> None:
    commit_on(world.root, {"1.1.txt": "theirs\n"})
    refusal(world)
    world.tasks.write_text(world.tasks.read_text() + "- [ ] 2.2 Bring main in\n")
    action = hand_outs(world.actions())[0]
    place = Path(action["cwd"])
    run_git(place, "merge", "main", check=False)
    write_files(place, {"1.1.txt": "both\n"})
    run_git(place, "commit", "-q", "-am", "merge main")
    world.seal(action)
    assert world.reconcile(action)["state"] == "integrated"
    answer = land(world)
    assert (answer["state"], answer["merged"]) == ("landed", None)
    assert (world.root / "1.1.txt").read_text() == "both\n"


def test_a_conflict_merged_by_hand_counts_as_landed(world: World) -> None:
    commit_on(world.root, {"1.1.txt": "theirs\n"})
    refusal(world)
    run_git(world.root, "merge", world.integration, check=False)
    write_files(world.root, {"1.1.txt": "both\n"})
    run_git(world.root, "commit", "-q", "-am", "by hand")
    assert land(world)["state"] == "already_landed"


def test_red_together_is_refused_before_anything_moves(tmp_path: Path) -> None:
    world = complete(
        tmp_path / "project", config='[verify]\ncommands = ["! grep -q x bad.txt"]\n', files={"bad.txt": "\n"}
    )
    commit_on(world.root, {"bad.txt": "x\n"})
    before = (tip(world), tip(world, world.integration), bytes_of(world))
    error = refusal(world)
    assert error.code == "land_rejected"
    assert "grep -q x bad.txt" in error.message
    assert (tip(world), tip(world, world.integration), bytes_of(world)) == before
    invariants.check(world)


def test_a_copy_of_the_project_does_not_touch_the_original(tmp_path: Path) -> None:
    world = complete(tmp_path / "project")
    place = World(tmp_path / "copy")
    shutil.copytree(world.root, place.root, symlinks=True)
    own = world.project.worktrees / "grow" / "integration"
    before = (run_git(own, "rev-parse", "HEAD"), run_git(world.root, "worktree", "list"))
    commit_on(place.root, {"other.txt": "theirs\n"})
    assert land(place)["merged"] == tip(place)
    assert (run_git(own, "rev-parse", "HEAD"), run_git(world.root, "worktree", "list")) == before
    invariants.check(world)


# Where the branch is checked out


def test_it_is_checked_out_in_another_worktree(world: World, tmp_path: Path) -> None:
    run_git(world.root, "switch", "-q", "-c", "elsewhere")
    other = tmp_path / "other"
    run_git(world.root, "worktree", "add", "-q", str(other), "main")
    write_files(other, {"note.txt": "mine\n"})
    before = invariants.checkout(world.root)
    assert land(world)["checkout"] == str(other)
    assert run_git(other, "status", "--porcelain") == "?? note.txt"
    assert (other / "2.1.txt").is_file()
    invariants.check(world, before)


def test_it_is_checked_out_nowhere(world: World) -> None:
    run_git(world.root, "switch", "-q", "-c", "elsewhere")
    before = invariants.checkout(world.root)
    answer = land(world)
    assert (answer["state"], answer["checkout"]) == ("landed", None)
    assert tip(world) == tip(world, world.integration)
    invariants.check(world, before)


def test_the_worktree_that_had_it_is_gone(world: World, tmp_path: Path) -> None:
    run_git(world.root, "switch", "-q", "-c", "elsewhere")
    run_git(world.root, "worktree", "add", "-q", str(tmp_path / "other"), "main")
    shutil.rmtree(tmp_path / "other")
    assert land(world)["checkout"] is None
    assert tip(world) == tip(world, world.integration)


def test_a_detached_start_needs_a_branch(tmp_path: Path) -> None:
    world = make_world(tmp_path / "project")
    run_git(world.root, "checkout", "-q", "--detach")
    world.run_to_end()
    assert refusal(world).code == "detached_start"
    assert refusal(world, "nowhere").code == "no_such_branch"
    assert refusal(world, world.integration).code == "bad_target"
    before = invariants.checkout(world.root)
    assert land(world, "main")["state"] == "landed"
    assert land(world, "main")["state"] == "already_landed"
    invariants.check(world, before)


def test_another_branch_can_be_named(world: World) -> None:
    run_git(world.root, "branch", "release/1.x", "main")
    before = tip(world)
    assert land(world, "release/1.x")["target_branch"] == "release/1.x"
    assert (tip(world), tip(world, "release/1.x")) == (before, tip(world, world.integration))


def test_an_unfinished_change_does_not_land(tmp_path: Path) -> None:
    world = make_world(tmp_path / "project")
    world.finish(hand_outs(world.actions(capacity=1))[0])
    before = tip(world)
    error = refusal(world)
    assert error.code == "not_complete"
    assert "grow#1.2 (ready)" in error.message
    assert tip(world) == before


def test_the_integration_branch_is_checked_out_by_somebody(world: World, tmp_path: Path) -> None:
    run_git(world.root, "worktree", "add", "-q", str(tmp_path / "looking"), world.integration)
    assert refusal(world).code == "integration_checked_out"


# What lies in the checkout


def staged(world: World) -> None:
    write_files(world.root, {"README": "mine\n"})
    run_git(world.root, "add", "README")


def staged_and_put_back(world: World) -> None:
    staged(world)
    write_files(world.root, {"README": "ground\n"})


def deleted(world: World) -> None:
    (world.root / "README").unlink()


def executable(world: World) -> None:
    (world.root / "README").chmod(0o755)


def untracked(world: World) -> None:
    write_files(world.root, {"new/made.txt": "mine\n"})


def ignored(world: World) -> None:
    write_files(world.root, {"new/made.txt": "mine\n"})
    (world.root / ".git" / "info" / "exclude").write_text("made.txt\n.dsh/\n")


def file_for_a_folder(world: World) -> None:
    write_files(world.root, {"new": "mine\n"})


def folder_for_a_file(world: World) -> None:
    write_files(world.root, {"new/made.txt/kept": "mine\n"})
    (world.root / ".git" / "info" / "exclude").write_text("kept\n.dsh/\n")


OVERLAPS: list[tuple[Callable[[World], None], str]] = [
    (lambda world: write_files(world.root, {"README": "mine\n"}), "README"),
    (staged, "README"), (staged_and_put_back, "README"), (deleted, "README"), (executable, "README"),
    (untracked, "new/made.txt"), (ignored, "new/made.txt"), (file_for_a_folder, "new"),
    (folder_for_a_file, "new/made.txt/kept"),
]  # fmt: skip


@pytest.mark.parametrize("moved", [False, True], ids=["unmoved", "moved"])
@pytest.mark.parametrize(("spoil", "named"), OVERLAPS, ids=[
    "edited", "staged", "staged-and-put-back", "deleted", "mode", "untracked", "ignored", "file-for-a-folder",
    "folder-for-a-file",
])  # fmt: skip
def test_what_would_be_lost_is_named_and_nothing_is_done(
    tmp_path: Path, spoil: Callable[[World], None], named: str, moved: bool
) -> None:
    world = make_world(tmp_path / "project", tasks="- [ ] 1.1 Lay the first stone\n")
    world.finish(hand_outs(world.actions())[0], {"README": "ground, and a stone\n", "new/made.txt": "made\n"})
    if moved:
        commit_on(world.root, {"other.txt": "theirs\n"})
    spoil(world)
    before = (tip(world), tip(world, world.integration), bytes_of(world))
    error = refusal(world)
    assert error.code == "would_lose"
    assert error.message.endswith(f": {named}")
    assert (tip(world), tip(world, world.integration), bytes_of(world)) == before
    invariants.check(world)


@pytest.mark.parametrize("moved", [False, True], ids=["unmoved", "moved"])
def test_other_edits_stay_as_they_are(world: World, moved: bool) -> None:
    if moved:
        commit_on(world.root, {"other.txt": "theirs\n"})
    (world.root / ".git" / "info" / "exclude").write_text("*.log\n.dsh/\n")
    write_files(
        world.root, {"README": "staged\n", "added.txt": "added\n", "build.log": "log\n", "loose/note": "loose\n"}
    )
    run_git(world.root, "add", "README", "added.txt")
    write_files(world.root, {"README": "and edited\n"})
    (world.root / "baton.toml").chmod(0o755)
    status = run_git(world.root, "status", "--porcelain")
    mine = {
        name: (world.root / name).read_bytes()
        for name in ("README", "added.txt", "build.log", "loose/note", TASKS_FILE)
    }
    index = run_git(world.root, "ls-files", "-s", "README", "added.txt")
    land(world)
    assert run_git(world.root, "status", "--porcelain") == status
    assert {name: (world.root / name).read_bytes() for name in mine} == mine
    assert run_git(world.root, "ls-files", "-s", "README", "added.txt") == index
    assert (world.root / "baton.toml").stat().st_mode & stat.S_IXUSR


def test_what_is_there_already_is_no_obstacle(world: World) -> None:
    write_files(world.root, {"1.1.txt": "done\n"})
    assert land(world)["state"] == "landed"
    assert run_git(world.root, "status", "--porcelain") == f" M {TASKS_FILE}"


def test_a_merge_in_progress_is_left_alone(world: World) -> None:
    run_git(world.root, "switch", "-q", "-c", "side")
    commit_on(world.root, {"README": "side\n"})
    run_git(world.root, "switch", "-q", "main")
    commit_on(world.root, {"README": "main\n"})
    run_git(world.root, "merge", "side", check=False)
    before = (tip(world), bytes_of(world))
    assert refusal(world).code == "operation_in_progress"
    assert (tip(world), bytes_of(world)) == before


def test_renames_links_and_modes_arrive_and_no_hook_runs(tmp_path: Path) -> None:
    world = make_world(
        tmp_path / "project", tasks="- [ ] 1.1 Move things\n", files={"old/a b.txt": "a\n" * 50, "gone": "x\n"}
    )
    action = hand_outs(world.actions())[0]
    place = Path(action["cwd"])
    run_git(place, "mv", "old/a b.txt", "gäb.txt")
    run_git(place, "rm", "-q", "gone")
    write_files(place, {"gone/deep.sh": "#!/bin/sh\n"})
    (place / "gone/deep.sh").chmod(0o755)
    (place / "link").symlink_to("README")
    world.work(action, {})
    world.seal(action)
    world.reconcile(action)
    hooks = world.root / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("post-checkout", "post-merge", "reference-transaction", "pre-push", "post-index-change"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch '{tmp_path}/hook-ran'\nexit 1\n")
        (hooks / name).chmod(0o755)
    assert land(world)["state"] == "landed"
    assert not (tmp_path / "hook-ran").exists()
    assert run_git(world.root, "status", "--porcelain") == f" M {TASKS_FILE}"
    assert (world.root / "link").is_symlink()
    assert os.access(world.root / "gone/deep.sh", os.X_OK)
    assert not (world.root / "old").exists()


# The command line, and a kill anywhere


def test_the_command_says_what_was_done_and_what_comes_next(world: World) -> None:
    told = baton(world.root, "land", "grow")
    assert told.returncode == 0, told.stderr
    assert told.stdout.startswith("grow is landed: main moved from ")
    assert f"git commit -m 'Tick grow' -- :/{TASKS_FILE}" in told.stdout
    assert "openspec archive grow" in told.stdout
    audit = next(step["run"] for step in baton_json(world.root, "land", "grow")["next"] if " audit " in step["run"])
    assert audit in told.stdout
    assert subprocess.run(audit, shell=True, cwd=world.root, capture_output=True, check=False).returncode == 0
    assert baton_json(world.root, "land", "grow")["schema"] == "baton.land/1"
    assert "nothing to do" in baton(world.root, "land", "grow").stdout
    assert baton(world.root, "land", "grow", "--into", "nowhere").returncode == 1
    assert [event["name"] for event in baton_json(world.root, "log", "grow")["events"]].count("landed") == 1


WRITES = ("commit-tree", "update-ref", "update-index", "read-tree", "checkout")
WRAPPER = """#!/bin/sh
for word; do case " {verbs} " in *" $word "*) verb=$word; break ;; esac; done
if [ -n "$verb" ]; then
  echo "$verb" >>"{count}"
  if [ "$(wc -l <"{count}")" -eq {at} ]; then
    [ {after} = 0 ] || "{git}" "$@"
    kill -9 $PPID
    exit 1
  fi
fi
exec "{git}" "$@"
"""


@pytest.mark.parametrize("after", [pytest.param(0, id="before"), pytest.param(1, id="after", marks=pytest.mark.full)])
def test_a_kill_at_any_writing_git_call_is_finished_by_the_next(tmp_path: Path, after: int) -> None:
    world = complete(tmp_path / "project")
    commit_on(world.root, {"other.txt": "theirs\n"})
    write_files(world.root, {"README": "mine\n"})
    shutil.copytree(world.root, tmp_path / "kept", symlinks=True)
    git = shutil.which("git")
    folder = tmp_path / "bin"
    folder.mkdir()
    killed = 0
    for at in range(1, 40):
        count = tmp_path / "count"
        count.write_text("")
        (folder / "git").write_text(WRAPPER.format(verbs=" ".join(WRITES), count=count, at=at, after=after, git=git))
        (folder / "git").chmod(0o755)
        done = baton(world.root, "land", "grow", env={"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"})
        if done.returncode == 0:
            break
        assert done.returncode == -9, (done.stdout, done.stderr)
        killed += 1
        assert (world.root / "README").read_text() == "mine\n"
        assert land(world)["state"] in ("landed", "already_landed")
        assert tip(world) == tip(world, world.integration)
        assert set(run_git(world.root, "status", "--porcelain").splitlines()) == {f" M {TASKS_FILE}", " M README"}
        assert (
            run_git(world.root, "rev-list", "--count", "--merges", "main", "^main^2") == "4"
        )  # three tickets, one target
        invariants.check(world)
        shutil.rmtree(world.root)
        shutil.copytree(tmp_path / "kept", world.root, symlinks=True)
    assert killed >= 8


def test_the_audit_that_is_named_next_passes(tmp_path: Path) -> None:
    world = make_world(tmp_path / "project")
    world.actions()
    world.decide("1.1", "done", "seen")
    world.run_to_end()
    step = next(step for step in land(world)["next"] if " audit " in step["run"])
    assert step["run"].endswith(" audit grow --allow attested")
    assert baton(world.root, "audit", "grow", "--allow", "attested").returncode == 0
