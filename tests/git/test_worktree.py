"""Worktrees: parallel and locked adds, husks of killed checkouts, careful removal."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest

from baton_cli.errors import BatonError
from baton_cli.git import repo, run, worktree

Git = Callable[..., str]
Make = Callable[..., Path]
Fifo = Callable[[str], Path]


def in_parallel(calls: Sequence[Callable[[], None]]) -> list[BaseException]:
    failures: list[BaseException] = []

    def run(call: Callable[[], None]) -> None:
        try:
            call()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failures


@pytest.fixture
def clone(tmp_path: Path, make_repository: Make, git: Git) -> Path:
    """A clone with a remote-tracking branch, set up to make new branches track it."""
    origin = make_repository(tmp_path / "origin", {f"f{number}": "x" for number in range(30)})
    git(tmp_path, "clone", "-q", origin, "clone")
    git(tmp_path / "clone", "config", "branch.autoSetupMerge", "always")
    git(tmp_path / "clone", "config", "branch.autoSetupRebase", "always")
    return tmp_path / "clone"


@pytest.mark.parametrize("config_locked", [False, True])
@pytest.mark.parametrize("worktree_config", [False, True])
def test_five_at_once_from_a_remote_branch_all_succeed(
    clone: Path, tmp_path: Path, git: Git, config_locked: bool, worktree_config: bool
) -> None:
    if worktree_config:
        git(clone, "config", "extensions.worktreeConfig", "true")
    before = (clone / ".git" / "config").read_bytes()
    if config_locked:
        (clone / ".git" / "config.lock").touch()
    # the same folder name in different parents, as two changes have it, makes git pick a name for the admin folder
    paths = [tmp_path / "trees" / str(number) / "1" for number in range(5)]
    calls = [partial(worktree.add, clone, path, f"baton/x/{path.parent.name}", "origin/main") for path in paths]
    assert in_parallel(calls) == []
    assert all(worktree.complete(path) for path in paths)
    assert len({repo.head(path).branch for path in paths}) == 5
    assert (clone / ".git" / "config").read_bytes() == before
    assert all(repo.cleanliness(path).changed == () for path in paths)


ODD_NAMES = [
    "with space",
    'it\'s "quoted" $(id) `id`',
    "back\\slash",
    "ünï→",
    "-dash",
    "--force",
    "line\nbreak",
    ":(top)x",
]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_odd_paths_work(repository: Path, tmp_path: Path, name: str) -> None:
    path = tmp_path / "trees" / name
    worktree.add(repository, path, "b", "HEAD")
    assert worktree.complete(path)
    assert worktree.registered(repository)[path] == "b"
    assert worktree.remove(repository, path)
    assert not path.exists()


def test_a_relative_path_is_relative_to_the_process_not_to_the_repository(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    worktree.add(repository, Path("-here"), "b", "HEAD")
    assert worktree.complete(tmp_path / "-here")


def test_hooks_do_not_run(repository: Path, tmp_path: Path) -> None:
    hook = repository / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\nexit 1\n")
    hook.chmod(0o755)
    worktree.add(repository, tmp_path / "tree", "b", "HEAD")
    worktree.checkout_detached(tmp_path / "tree", "HEAD")
    assert not (tmp_path / "ran").exists()


def test_an_existing_branch_is_refused_and_left_alone(repository: Path, tmp_path: Path, git: Git) -> None:
    git(repository, "branch", "taken")
    with pytest.raises(BatonError) as caught:
        worktree.add(repository, tmp_path / "tree", "taken", "HEAD")
    assert caught.value.code == "branch_exists"
    assert not (tmp_path / "tree").exists()


def test_a_folder_with_files_is_refused_and_left_alone(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "work").write_text("mine")
    with pytest.raises(BatonError, match="already exists"):
        worktree.add(repository, tmp_path / "tree", "b", "HEAD")
    assert (tmp_path / "tree" / "work").read_text() == "mine"


def test_a_passing_obstacle_is_waited_for(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = repository / ".git" / "refs" / "heads" / "b.lock"
    lock.touch()
    monkeypatch.setattr("baton_cli.git.worktree.time.sleep", lambda _: lock.unlink(missing_ok=True))
    worktree.add(repository, tmp_path / "tree", "b", "HEAD")
    assert worktree.complete(tmp_path / "tree")


def test_a_lasting_obstacle_is_an_error_after_bounded_tries(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repository / ".git" / "refs" / "heads" / "b.lock").touch()
    pauses: list[float] = []
    monkeypatch.setattr("baton_cli.git.worktree.time.sleep", pauses.append)
    with pytest.raises(BatonError, match=r"b\.lock"):
        worktree.add(repository, tmp_path / "tree", "b", "HEAD")
    assert len(pauses) == worktree.TRIES - 1
    assert sum(pauses) < 3


def test_several_at_once_and_what_is_in_the_way_of_one_stops_no_other(
    repository: Path, tmp_path: Path, git: Git
) -> None:
    git(repository, "branch", "b2")
    (tmp_path / "t3").mkdir()
    (tmp_path / "t3" / "work").write_text("mine")
    wanted = [(tmp_path / f"t{number}", f"b{number}") for number in range(5)]
    assert worktree.add_all(repository, wanted, "HEAD") == [True, True, False, False, True]
    for number in (0, 1, 4):
        assert worktree.complete(tmp_path / f"t{number}")
        assert repo.head(tmp_path / f"t{number}").branch == f"b{number}"
    assert not (tmp_path / "t2").exists()
    assert (tmp_path / "t3" / "work").read_text() == "mine"
    assert run.together([], cwd=repository) == []


def test_existing_branch_and_detached(repository: Path, tmp_path: Path, git: Git) -> None:
    git(repository, "branch", "b")
    worktree.add_existing(repository, tmp_path / "one", "b")
    assert repo.head(tmp_path / "one").branch == "b"
    with pytest.raises(BatonError):
        worktree.add_existing(repository, tmp_path / "two", "b")
    oid = git(repository, "rev-parse", "HEAD")
    worktree.add_detached(repository, tmp_path / "three", oid)
    assert repo.head(tmp_path / "three") == repo.Head(oid, None)
    assert worktree.complete(tmp_path / "three")
    worktree.add_detached(repository, tmp_path / "four", oid, checkout=False)
    assert not worktree.complete(tmp_path / "four")
    worktree.checkout_detached(tmp_path / "four", oid)
    assert worktree.complete(tmp_path / "four")
    assert repo.cleanliness(tmp_path / "four").changed == ()


def test_checkout_detached_leaves_nothing_but_the_commit(repository: Path, tmp_path: Path, git: Git) -> None:
    (repository / ".gitignore").write_text("node_modules/\n")
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "ignore")
    tree = tmp_path / "tree"
    first, second = repo.resolve(repository, "HEAD~1"), repo.resolve(repository, "HEAD")
    assert first is not None
    assert second is not None
    worktree.add_detached(repository, tree, first)
    git(tree, "checkout", "-q", "-b", "by-hand")
    (tree / "README").write_text("edit")
    (tree / ".gitignore").write_text("in the way")
    (tree / "node_modules").mkdir()
    (tree / "node_modules" / "x").write_text("left by an earlier run")
    (tree / "nested").mkdir()
    git(tree / "nested", "init", "-q")
    (tree / "nested" / "x").write_text("")
    git(tree, "merge", "--no-commit", "--no-ff", "main", check=False)
    worktree.checkout_detached(tree, second)
    found = repo.cleanliness(tree)
    assert (found.changed, found.untracked, found.ignored) == ((), (), ())
    assert repo.head(tree) == repo.Head(second, None)
    assert repo.resolve(repository, "by-hand") == first
    assert repo.operation(tree) is None


def test_registered_lists_branches_detached_and_missing_ones(repository: Path, tmp_path: Path, git: Git) -> None:
    worktree.add(repository, tmp_path / "gone", "b", "HEAD")
    worktree.add_detached(repository, tmp_path / "loose", "HEAD")
    (tmp_path / "gone").rename(tmp_path / "elsewhere")
    assert worktree.registered(tmp_path / "loose") == {
        repository: "main", tmp_path / "gone": "b", tmp_path / "loose": None,
    }  # fmt: skip
    worktree.prune(repository)
    assert tmp_path / "gone" not in worktree.registered(repository)


def test_bare_repository_with_worktrees(repository: Path, tmp_path: Path, git: Git) -> None:
    git(tmp_path, "clone", "-q", "--bare", repository, "bare.git")
    bare = tmp_path / "bare.git"
    worktree.add(bare, tmp_path / "tree", "b", "main")
    assert worktree.complete(tmp_path / "tree")
    assert worktree.registered(tmp_path / "tree") == {bare: None, tmp_path / "tree": "b"}


@pytest.mark.parametrize("hide", [False, True])
def test_remove_refuses_a_worktree_with_work_in_it(repository: Path, tmp_path: Path, git: Git, hide: bool) -> None:
    if hide:
        git(repository, "config", "status.showUntrackedFiles", "no")
    tree = tmp_path / "tree"
    worktree.add(repository, tree, "b", "HEAD")
    (tree / "work").write_text("mine")
    assert not worktree.remove(repository, tree)
    assert (tree / "work").read_text() == "mine"
    (tree / "work").unlink()
    (tree / "README").write_text("edit")
    assert not worktree.remove(repository, tree)
    git(tree, "checkout", "-q", "README")
    git(repository, "worktree", "lock", tree)
    assert not worktree.remove(repository, tree)
    git(repository, "worktree", "unlock", tree)
    assert worktree.remove(repository, tree)
    assert not tree.exists()
    assert not worktree.remove(repository, tree)
    assert repo.resolve(repository, "b") is not None


# --- husks --------------------------------------------------------------------------------------------------


@pytest.fixture
def killed(repository: Path, tmp_path: Path, fifo: Fifo, git: Git) -> Path:
    """A worktree whose `git worktree add` was killed with everything it started, in the middle of writing files."""
    started, gate = fifo("started"), fifo("gate")
    for number in range(20):
        (repository / f"a{number}").write_text("x")
    (repository / "m.slow").write_text("x")
    (repository / "z").write_text("x")
    (repository / ".gitattributes").write_text("*.slow filter=slow\n")
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "files")
    git(repository, "config", "filter.slow.smudge", f"exec 3>{started}; echo >&3; cat {gate}")
    tree = tmp_path / "tree"
    child = subprocess.Popen(
        ["git", "-C", repository, "worktree", "add", "-q", "-b", "b", tree], start_new_session=True
    )
    with started.open() as pipe:
        pipe.readline()  # the filter runs: the checkout is half done
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        pipe.read()  # the filter is gone, too
    git(repository, "config", "--unset", "filter.slow.smudge")
    return tree


def test_an_interrupted_checkout_is_a_husk(killed: Path) -> None:
    assert killed.is_dir()
    assert (killed / ".git").is_file()
    assert worktree.husk(killed)
    assert not worktree.complete(killed)


def test_a_husk_is_rebuilt_in_place(repository: Path, killed: Path, git: Git) -> None:
    worktree.rebuild(repository, killed, "b")
    assert worktree.complete(killed)
    found = repo.cleanliness(killed)
    assert (found.changed, found.untracked) == ((), ())
    assert repo.head(killed) == repo.Head(git(repository, "rev-parse", "HEAD"), "b")
    assert worktree.remove(repository, killed)


def test_a_husk_whose_folder_vanished_is_rebuilt(repository: Path, killed: Path) -> None:
    killed.rename(killed.with_name("moved"))
    assert worktree.husk(killed)
    worktree.rebuild(repository, killed, "b")
    assert worktree.complete(killed)
    assert repo.cleanliness(killed).changed == ()


def test_a_husk_that_never_got_its_head_is_rebuilt(repository: Path, killed: Path) -> None:
    admin = repo.git_dir(killed)
    (admin / "HEAD").write_text("0" * 40 + "\n")
    assert not worktree.complete(killed)
    worktree.rebuild(repository, killed, "b")
    assert worktree.complete(killed)
    assert repo.head(killed).branch == "b"


@pytest.mark.parametrize("kept", [(), ("locked",), ("locked", "gitdir")])
def test_a_husk_killed_before_it_was_linked_is_rebuilt(
    repository: Path, tmp_path: Path, git: Git, kept: tuple[str, ...]
) -> None:
    tree = tmp_path / "tree"
    worktree.add(repository, tree, "b", "HEAD")
    admin = repo.git_dir(tree)
    (admin / "locked").write_text("initializing")
    for entry in admin.iterdir():
        if entry.name not in kept and entry.is_file():
            entry.unlink()
    for entry in tree.iterdir():
        entry.unlink()
    assert worktree.husk(tree)
    worktree.rebuild(repository, tree, "b")
    assert worktree.complete(tree)
    assert repo.cleanliness(tree).changed == ()


@pytest.mark.parametrize("lost", [("commondir",), ("commondir", "HEAD")])
@pytest.mark.parametrize("begun", [False, True])
def test_a_husk_killed_while_it_was_linked_is_rebuilt(
    repository: Path, tmp_path: Path, lost: tuple[str, ...], begun: bool
) -> None:
    tree = linked_only(repository, tmp_path)
    admin = repo.git_dir(tree)
    for name in lost:
        (admin / name).unlink()
    if begun:
        (admin / lost[-1]).touch()
    assert worktree.husk(tree)
    worktree.rebuild(repository, tree, "b")
    assert worktree.complete(tree)
    assert repo.cleanliness(tree).changed == ()


def test_a_husk_killed_while_its_link_was_written_is_rebuilt(repository: Path, tmp_path: Path) -> None:
    tree = linked_only(repository, tmp_path)
    (tree / ".git").write_text("")
    worktree.rebuild(repository, tree, "b")
    assert worktree.complete(tree)


def linked_only(repository: Path, tmp_path: Path) -> Path:
    """A worktree of which git was killed before it checked anything out."""
    tree = tmp_path / "tree"
    worktree.add(repository, tree, "b", "HEAD")
    admin = repo.git_dir(tree)
    (admin / "locked").write_text("initializing")
    (admin / "index").unlink()
    for entry in tree.iterdir():
        if entry.name != ".git":
            entry.unlink()
    return tree


def test_other_husks_and_locks_of_the_user_stay(repository: Path, tmp_path: Path, killed: Path, git: Git) -> None:
    worktree.add(repository, tmp_path / "other", "other", "HEAD")
    git(repository, "worktree", "lock", "--reason", "on a stick", tmp_path / "other")
    (tmp_path / "other").rename(tmp_path / "unplugged")
    worktree._forget(repository, tmp_path / "nothing")
    assert {tmp_path / "other", killed} <= set(worktree.registered(repository))


def test_finished_but_still_marked_is_a_husk_and_its_rebuild_finishes_it(repository: Path, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    worktree.add(repository, tree, "b", "HEAD")
    (repo.git_dir(tree) / "locked").write_text("initializing\n")
    assert not worktree.complete(tree)
    worktree.rebuild(repository, tree, "b")
    assert worktree.complete(tree)


def test_a_busy_index_is_incomplete_but_no_husk_and_nothing_is_rebuilt(repository: Path, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    worktree.add(repository, tree, "b", "HEAD")
    (repo.git_dir(tree) / "index.lock").touch()
    (tree / "README").write_text("work")
    assert not worktree.complete(tree)
    assert not worktree.husk(tree)
    with pytest.raises(BatonError) as caught:
        worktree.rebuild(repository, tree, "b")
    assert caught.value.code == "not_a_husk"
    assert (tree / "README").read_text() == "work"


def test_a_worktree_the_user_locked_is_complete(repository: Path, tmp_path: Path, git: Git) -> None:
    worktree.add(repository, tmp_path / "tree", "b", "HEAD")
    git(repository, "worktree", "lock", "--reason", "mine", tmp_path / "tree")
    assert worktree.complete(tmp_path / "tree")


@pytest.mark.parametrize("make", ["missing", "empty", "repository", "admin gone"])
def test_what_is_no_worktree_is_not_complete(repository: Path, tmp_path: Path, git: Git, make: str) -> None:
    path = tmp_path / "path"
    if make == "empty":
        path.mkdir()
    elif make == "repository":
        path = repository
    elif make == "admin gone":
        worktree.add(repository, path, "b", "HEAD")
        admin = repo.git_dir(path)
        admin.rename(tmp_path / "admin")
    assert not worktree.complete(path)


def test_a_removal_that_was_killed_is_ended(repository: Path, git: Git, tmp_path: Path) -> None:
    path = tmp_path / "going"
    worktree.add(repository, path, "b/going", "main")
    half = path.rename(tmp_path / "going.gone")  # as killed after the first step, and while files are deleted
    (half / ".git").unlink()
    worktree.forget_removed(repository, path)
    assert not half.exists()
    assert git(repository, "worktree", "list", "--porcelain").count("worktree ") == 1
