"""The machine fails, or somebody meddles: a clear error, nothing lost, and it goes on when the cause is gone."""

from __future__ import annotations

import json
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from baton_cli.errors import BatonError, of_system
from tests import invariants
from tests.conftest import run_git, write_files
from tests.kit import MAIN, World, hand_outs, make_world, seal_key
from tests.reliability.git_faults import told_well

NOBODY = 65534
PLAN = "## 1. Ground\n\n- [ ] 1.1 Lay the first stone\n- [ ] 1.2 Lay the second stone\n"
pytestmark = pytest.mark.usefixtures("swift_git")


def mostly(usual: object, *others: object) -> list[object]:
    """The first in every run, the others in the full one."""
    return [usual, *(pytest.param(other, marks=pytest.mark.full) for other in others)]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return make_world(tmp_path / "project", PLAN)


def error_of(done: subprocess.CompletedProcess[str]) -> str:
    """The code of a refusal: two lines at most, JSON alike, no traceback."""
    assert done.returncode == 1, (done.returncode, done.stdout, done.stderr)
    assert "Traceback" not in done.stdout + done.stderr
    error = json.loads(done.stdout)["error"]
    assert error["message"]
    assert error["hint"]
    return str(error["code"])


def refused(call: Callable[[], object]) -> str | None:
    """The code of a refusal, None when there was none. Anything but a BatonError with all its parts is a bug."""
    try:
        call()
    except BatonError as error:
        return told_well(error)
    return None


def to_the_end(world: World, session: str = "s2", *, known: bool = True) -> None:
    """Good agents, and time for leases to run out, until everything is integrated. Not `known`: the store is a new one."""
    for _ in range(20):
        answer = world.actions(session)
        if answer["state"] == "complete":
            if known:
                invariants.check(world)
            assert world.tasks.read_text().count("[x]") == 2
            return
        for action in hand_outs(answer):
            if (Path(action["cwd"]) / ".git").exists() and run_git(Path(action["cwd"]), "diff", "--name-only", "HEAD"):
                run_git(Path(action["cwd"]), "commit", "-q", "-a", "-m", "what was left")
            world.finish(action, {f"{action['ticket'].rpartition('#')[2]}-{action['attempt']}.txt": "again\n"})
        world.clock.seconds += 3 * 3600 if not hand_outs(answer) else 0
    raise AssertionError(answer["actions"])


# -- what the system refuses ----------------------------------------------------------------------------------------


def limited(size: int) -> Callable[[], None]:
    """No file may grow beyond so many bytes: what a full disk looks like, for root as well."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def call(world: World, *words: str, size: int | None = None, token: str = "") -> Any:
    return subprocess.run(
        [sys.executable, str(MAIN), *words, "--project", str(world.root), "--json"],
        cwd=world.root, input=token, capture_output=True, text=True, timeout=240, check=False,
        preexec_fn=limited(size) if size is not None else None,
    )  # fmt: skip


SIZES = (0, 200, 5_000, 60_000)


@pytest.mark.parametrize("size", [SIZES[1], *(pytest.param(size, marks=pytest.mark.full) for size in (0, *SIZES[2:]))])
def test_a_full_disk_stops_every_verb_and_costs_nothing(world: World, size: int) -> None:
    before = invariants.checkout(world.root)
    text = world.tasks.read_bytes()
    told = call(world, "actions", "grow", "--session", "s1", size=size)
    assert told.returncode == 0 or error_of(told) in ("store_unusable", "file_unusable", "git_failed", "state_unusable")
    assert invariants.checkout(world.root) == before
    action = hand_outs(json.loads(call(world, "actions", "grow", "--session", "s1", "--capacity", "1").stdout))[0]
    head = world.work(action)
    seal = ("seal", action["assignment_id"], "--key", seal_key(action))
    told = call(world, *seal, size=size)
    assert told.returncode == 0 or error_of(told) in ("store_unusable", "file_unusable", "git_failed", "log_unwritable")
    assert run_git(world.root, "rev-parse", action["branch"]) == head
    assert call(world, *seal).returncode == 0
    ended = ("reconcile", action["assignment_id"], "--token", "-", "--terminal", "completed")
    told = call(world, *ended, size=size, token=action["claim_token"])
    assert told.returncode == 0 or error_of(told) in ("store_unusable", "file_unusable", "git_failed")
    assert world.tasks.read_bytes().replace(b"[x]", b"[ ]") == text
    invariants.check(world, before)
    told = call(world, *ended, token=action["claim_token"])
    assert json.loads(told.stdout)["state"] == "integrated", told.stdout
    to_the_end(world, "s1")


@pytest.fixture
def others(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home and a folder for a user without special rights: root may write anywhere."""
    folder = Path(tempfile.mkdtemp(prefix="baton-others-"))  # pytest's own folders are closed to others
    folder.chmod(0o755)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    write_files(folder, {".gitconfig": "[safe]\n\tdirectory = *\n[user]\n\tname = O\n\temail = o@example.invalid\n"})
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(folder / ".gitconfig"))
    yield folder
    for path in [folder, *folder.rglob("*")]:
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o755)
    shutil.rmtree(folder)


UNWRITABLE: dict[str, tuple[str, ...]] = {
    ".dsh/baton/queue.db": ("store_unusable",),
    ".dsh/baton": ("state_unusable", "store_unusable", "file_unusable"),
    ".dsh/baton/packets": ("file_unusable",),
    ".dsh/baton/worktrees/grow": ("git_failed", "file_unusable"),
    ".dsh/baton/tmp": ("file_unusable",),
    ".dsh/baton/locks": ("lock_unusable",),
    ".git/refs/heads/baton/grow": ("git_failed",),
}


def as_another(call: Callable[[], str]) -> str:
    """What a call says to a user without special rights, or the code of its refusal. In a fork of ours."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            if os.geteuid() == 0:
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            said = call()
        except BatonError as error:
            said = told_well(error)
        except OSError as error:
            told = of_system(error)  # as the command line does
            said = told.code if told else traceback.format_exc()
        except BaseException:
            said = traceback.format_exc()
        os.write(write, said.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        said = pipe.read()
    assert os.waitpid(pid, 0)[1] == 0
    return said


def handed(world: World, session: str) -> Callable[[], str]:
    return lambda: " ".join(action["ticket"] for action in hand_outs(world.actions(session, capacity=1)))


def given_to(path: Path, user: int) -> None:
    """Make it all another user's, if we are somebody who can."""
    if os.geteuid() == 0:
        subprocess.run(["chown", "-R", f"{user}:{user}", path], check=True)


@pytest.mark.parametrize("name", mostly(*UNWRITABLE))
def test_what_cannot_be_written_is_named(others: Path, name: str) -> None:
    world = make_world(others / "project", PLAN)
    world.actions("s1", capacity=1)  # (another user may not read our Python: from now on everything is imported)
    given_to(others, NOBODY)
    place = world.root / name
    mode = place.stat().st_mode & 0o777
    place.chmod(0o500 if place.is_dir() else 0o400)
    assert as_another(handed(world, "s2")) in UNWRITABLE[name]
    for healed in place.parent.glob(f"{place.name}*"):  # SQLite gives its other files the mode of the database
        healed.chmod(mode)
    assert as_another(handed(world, "s2")) == "grow#1.2"
    given_to(others, os.geteuid())
    to_the_end(world, "s3")


def test_who_may_only_read_can_look(others: Path) -> None:
    world = make_world(others / "project", PLAN)
    world.actions("s1", capacity=1)
    before = world.status()
    subprocess.run(["chmod", "-R", "a+rX", world.root], check=True)
    files = sorted(world.root.rglob("*"))
    for path in [world.root, *files]:  # for a user who is not root and so stays the owner
        path.chmod(path.stat().st_mode & 0o555)
    assert json.loads(as_another(lambda: json.dumps(world.status()))) == before
    assert sorted(world.root.rglob("*")) == files


# -- the store -------------------------------------------------------------------------------------------------------


def overwritten(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[100:] = b"\xa5" * (len(data) - 100)
    path.write_bytes(data)


def newer(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("INSERT INTO migrations VALUES ('m999_future', 0)")
    connection.close()


SPOILED: list[tuple[Callable[[Path], object], str]] = [
    (overwritten, "store_corrupt"),
    (lambda path: os.truncate(path, 5000), "store_corrupt"),
    (lambda path: path.write_bytes(b"no database at all\n" * 99), "store_corrupt"),
    (newer, "store_newer"),
]


@pytest.mark.parametrize(("spoil", "code"), SPOILED, ids=["overwritten", "truncated", "text", "newer"])
def test_a_spoiled_store_is_named_by_every_verb_and_left_as_it_is(
    world: World, spoil: Callable[[Path], object], code: str
) -> None:
    action = hand_outs(world.actions(capacity=1))[0]
    world.work(action)
    store = world.project.queue_db
    good = store.read_bytes()
    assert not store.with_name("queue.db-wal").exists(), "the last call has closed it"
    spoil(store)
    spoiled = store.read_bytes()
    calls = (world.actions, world.status, lambda: world.seal(action), lambda: world.reconcile(action))
    assert {refused(call) for call in calls} == {code}
    assert store.read_bytes() == spoiled
    store.write_bytes(good)
    assert world.seal(action)["state"] == "sealed"
    assert world.reconcile(action)["state"] == "integrated"
    to_the_end(world)


def claimed(world: World) -> dict[str, Any]:
    return hand_outs(world.actions(capacity=1))[0]


def worked(world: World) -> dict[str, Any]:
    action = claimed(world)
    world.work(action)
    return action


def sealed(world: World) -> dict[str, Any]:
    action = worked(world)
    world.seal(action)
    return action


def integrated(world: World) -> dict[str, Any]:
    action = sealed(world)
    world.reconcile(action)
    return action


@pytest.mark.parametrize("stage", mostly(sealed, claimed, worked, integrated))
def test_the_store_is_deleted(world: World, stage: Callable[[World], dict[str, Any]]) -> None:
    action = stage(world)
    kept = {name: oid for name, oid in invariants._refs(world).items() if "baton" in name}
    for path in world.project.state.glob("queue.db*"):
        path.unlink()
    for call in (lambda: world.seal(action), lambda: world.reconcile(action)):
        assert refused(call) == "unknown_assignment"
    to_the_end(world, known=False)
    now = invariants._refs(world)
    assert all(name in now for name in kept), "a branch of work that Baton knows nothing of is gone"
    assert all(now[name] == oid for name, oid in kept.items() if not name.endswith("/integration"))


# -- packets, receipts, locks ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("folder", mostly("packets", "receipts", "logs", "locks", "tmp"))
@pytest.mark.parametrize("stage", mostly(sealed, worked))
def test_a_folder_of_the_state_is_deleted(world: World, stage: Callable[[World], dict[str, Any]], folder: str) -> None:
    action = stage(world)
    shutil.rmtree(world.project.state / folder)
    world.seal(action)
    assert world.reconcile(action)["state"] == "integrated"
    to_the_end(world)


@pytest.mark.parametrize("name", ["packets", "receipts"])
@pytest.mark.parametrize("spoil", [lambda path: path.write_bytes(b""), lambda path: path.write_bytes(b"\xff{]")])
def test_an_edited_copy_is_named_and_its_deletion_heals(
    world: World, name: str, spoil: Callable[[Path], object]
) -> None:
    action = sealed(world)
    copy = world.project.state / name / f"{action['assignment_id']}.json"
    copy.chmod(0o600)
    spoil(copy)
    code = {"packets": "packet_changed", "receipts": "receipt_edited"}[name]
    settled = world.reconcile(action)
    assert (settled["state"], settled["reason"]) == ("unknown", code)
    copy.unlink()
    to_the_end(world)


def test_a_folder_where_a_lock_belongs_is_named(world: World) -> None:
    action = worked(world)
    place = world.project.state / "locks" / f"{action['assignment_id']}.lock"
    place.unlink()
    place.mkdir()
    assert refused(lambda: world.seal(action)) == "lock_unusable"
    assert refused(lambda: world.reconcile(action)) == "lock_unusable"
    place.rmdir()
    world.seal(action)
    assert world.reconcile(action)["state"] == "integrated"
    to_the_end(world)


# -- worktrees and branches ---------------------------------------------------------------------------------------------


def deleted(world: World, action: dict[str, Any]) -> None:
    shutil.rmtree(action["cwd"])


def moved_by_git(world: World, action: dict[str, Any]) -> None:
    run_git(world.root, "worktree", "move", action["cwd"], world.root.parent / "elsewhere")


def moved_by_hand(world: World, action: dict[str, Any]) -> None:
    Path(action["cwd"]).rename(world.root.parent / "elsewhere")


def branch_deleted(world: World, action: dict[str, Any]) -> None:
    run_git(world.root, "update-ref", "-d", f"refs/heads/{action['branch']}")


def both_deleted(world: World, action: dict[str, Any]) -> None:
    deleted(world, action)
    run_git(world.root, "worktree", "prune")
    run_git(world.root, "branch", "-q", "-D", action["branch"])


def branch_moved(world: World, action: dict[str, Any]) -> None:
    run_git(world.root, "update-ref", f"refs/heads/{action['branch']}", "main")
    run_git(Path(action["cwd"]), "reset", "-q", "--hard")


def git_file_spoiled(world: World, action: dict[str, Any]) -> None:
    (Path(action["cwd"]) / ".git").write_text("gitdir: /nowhere/at/all\n")


def admin_deleted(world: World, action: dict[str, Any]) -> None:
    shutil.rmtree(run_git(Path(action["cwd"]), "rev-parse", "--absolute-git-dir"))


MEDDLING = (
    deleted, moved_by_git, moved_by_hand, branch_deleted, both_deleted, branch_moved, git_file_spoiled, admin_deleted,
)  # fmt: skip


@pytest.mark.parametrize("meddle", [*MEDDLING[:4], *mostly(*MEDDLING[4:])])
@pytest.mark.parametrize("stage", mostly(worked, claimed, sealed))
def test_somebody_meddles_with_worktree_or_branch(
    world: World, stage: Callable[[World], dict[str, Any]], meddle: Callable[[World, dict[str, Any]], None]
) -> None:
    before = invariants.checkout(world.root)
    action = stage(world)
    head = run_git(Path(action["cwd"]), "rev-parse", "HEAD")
    meddle(world, action)
    calls = (lambda: world.seal(action), lambda: world.reconcile(action, "completed"), world.status, world.actions)
    for call in calls:
        refused(call)
        now = invariants.checkout(world.root)
        assert now == before
    to_the_end(world, "s1")
    if stage is sealed or meddle not in (branch_deleted, both_deleted, branch_moved):
        assert run_git(world.root, "for-each-ref", "--contains", head), "work that was committed is lost"


@pytest.mark.parametrize("stage", mostly(worked, claimed, sealed, integrated))
def test_the_repository_is_moved(world: World, stage: Callable[[World], dict[str, Any]]) -> None:
    action = stage(world)
    elsewhere = World(world.root.rename(world.root.with_name("moved")), clock=world.clock)
    if stage is not integrated:
        head = run_git(elsewhere.root, "rev-parse", action["branch"])
    to_the_end(elsewhere)
    if stage is not integrated:
        assert run_git(elsewhere.root, "for-each-ref", "--contains", head), "work that was committed is lost"


def test_a_worktree_of_the_users_that_took_the_branch_is_left_alone(tmp_path: Path) -> None:
    world = make_world(tmp_path / "p")
    action = hand_outs(world.actions(capacity=1))[0]
    world.bind(action, "agent")
    world.work(action)
    shutil.rmtree(action["cwd"])
    run_git(world.root, "worktree", "prune")
    look = tmp_path / "look"
    run_git(world.root, "worktree", "add", "-q", look, action["branch"])
    answer = world.actions()
    assert any(f"{look} has its branch checked out" in notice for notice in answer["notices"]), answer
    assert (look / "1.1.txt").exists()
    assert not Path(action["cwd"]).exists()
    assert [ticket["ticket"] for ticket in hand_outs(answer)] == ["grow#1.2"], "the others go on"
    run_git(look, "switch", "-q", "--detach")
    world.actions()
    assert world.seal(action)["state"] == "sealed"
