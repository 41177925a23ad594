"""Locks: exclusive, handed on at once, never held by the dead."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from baton_cli import locks
from baton_cli.errors import BatonError


@dataclass(frozen=True)
class Places:
    common_dir: Path
    state: Path


@pytest.fixture
def places(tmp_path: Path) -> Places:
    (tmp_path / "git").mkdir()
    return Places(tmp_path / "git", tmp_path / "state")


HOLDER = """
import sys, pathlib, types
from baton_cli import locks
place = types.SimpleNamespace(common_dir=pathlib.Path(sys.argv[1]), state=pathlib.Path(sys.argv[2]))
with locks.integration_lock(place, wait=False, session="s-1") as held:
    print("held" if held else "busy", flush=True)
    {inside}
"""


def other_process(places: Places, inside: str = "sys.stdin.read()") -> subprocess.Popen[str]:
    """A process that takes the integration lock and, by default, keeps it until its stdin is closed."""
    code = HOLDER.format(inside=inside)
    child = subprocess.Popen(
        [sys.executable, "-c", code, str(places.common_dir), str(places.state)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert child.stdout is not None
    assert child.stdout.readline() == "held\n"
    return child


def test_the_holder_is_named_while_it_holds(places: Places) -> None:
    path = locks.integration_path(places)
    assert locks.holder(path) is None
    with locks.integration_lock(places, wait=False, session="abc") as held:
        assert held
        found = locks.holder(path)
        assert found is not None
        assert found["pid"] == os.getpid()
        assert found["session"] == "abc"
        assert set(found) == {"pid", "start_time", "host", "session", "since"}
        assert locks.alive(found)
        assert f"process {os.getpid()} on " in locks.describe(found)
    assert locks.holder(path) is None
    assert path.exists(), "a lock file is never deleted"


def test_files_and_folders_are_private(places: Places) -> None:
    with locks.assignment_lock(places, "a-1", wait=False):
        path = locks.assignment_path(places, "a-1")
        assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_a_second_lock_in_the_same_process_is_busy(places: Places) -> None:
    with locks.assignment_lock(places, "a-1", wait=False) as first:
        with locks.assignment_lock(places, "a-1", wait=False) as second:
            assert (first, second) == (True, False)
        with (
            locks.assignment_lock(places, "a-1", wait=False) as third,
            locks.assignment_lock(places, "a-2", wait=False) as other,
        ):
            assert (third, other) == (False, True)
        assert locks.holder(locks.assignment_path(places, "a-1")) is not None
    with locks.assignment_lock(places, "a-1", wait=False) as again:
        assert again


def test_the_lock_is_let_go_when_the_work_fails(places: Places) -> None:
    with pytest.raises(ZeroDivisionError), locks.integration_lock(places, wait=False):
        1 / 0  # noqa: B018
    assert locks.holder(locks.integration_path(places)) is None
    with locks.integration_lock(places, wait=False) as held:
        assert held


def test_another_process_is_seen_and_waited_for(places: Places) -> None:
    child = other_process(places)
    with locks.integration_lock(places, wait=False) as held:
        assert not held
    heard: list[Any] = []

    def on_busy(found: dict[str, Any] | None) -> None:
        heard.append(found)
        assert child.stdin is not None
        child.stdin.close()

    with locks.integration_lock(places, wait=True, on_busy=on_busy) as held:
        assert held
    child.wait()
    assert [(found["pid"], found["session"]) for found in heard] == [(child.pid, "s-1")]


def test_waiting_ends_with_an_error_that_names_the_holder(places: Places) -> None:
    child = other_process(places)
    with pytest.raises(BatonError) as caught, locks.integration_lock(places, wait=True, timeout=0.05):
        pass
    assert caught.value.code == "integration_busy"
    assert f"process {child.pid} on " in caught.value.message
    assert "session s-1" in caught.value.message
    child.communicate()
    with (
        locks.assignment_lock(places, "x", wait=True),
        pytest.raises(BatonError) as caught,
        locks.assignment_lock(places, "x", wait=True, timeout=0),
    ):
        pass
    assert caught.value.code == "assignment_busy"


def test_a_waiter_gets_the_lock_after_its_release(places: Places) -> None:
    got: list[bool] = []
    ready = threading.Event()

    def wait_for_it() -> None:
        with locks.integration_lock(places, wait=True, on_busy=lambda _: ready.set()) as held:
            got.append(held)

    waiter = threading.Thread(target=wait_for_it)
    with locks.integration_lock(places, wait=False):
        waiter.start()
        assert ready.wait(10)
        assert got == []
    waiter.join()
    assert got == [True]


def test_a_killed_holder_does_not_block(places: Places) -> None:
    child = other_process(places)
    child.send_signal(signal.SIGKILL)
    child.wait()
    stale = locks.holder(locks.integration_path(places))
    assert stale is not None
    assert stale["pid"] == child.pid
    assert not locks.alive(stale)
    with locks.integration_lock(places, wait=False) as held:
        assert held


@pytest.mark.parametrize("kind", ["check", "git"])
def test_children_of_a_killed_holder_are_ended_by_the_next(
    places: Places, tmp_path: Path, repository: Path, fifo: Callable[[str], Path], kind: str
) -> None:
    started, gate = fifo("started"), fifo("gate")
    script = f"exec 3>{started}; echo >&3; cat {gate}"
    subprocess.run(["git", "-C", repository, "config", "filter.slow.clean", script], check=True)
    (repository / ".gitattributes").write_text("*.slow filter=slow\n")
    (repository / "a.slow").write_text("x")
    inside = {
        "check": "from baton_cli.process import run_check; "
        f"run_check({script!r}, cwd=pathlib.Path('/'), log=pathlib.Path({str(tmp_path / 'log')!r}), timeout=60)",
        "git": f"from baton_cli.git.run import git; git('add', 'a.slow', cwd=pathlib.Path({str(repository)!r}))",
    }[kind]
    child = other_process(places, inside)
    with started.open() as pipe:
        pipe.readline()
        child.kill()
        child.wait()
        sure: list[bool] = []
        with locks.integration_lock(places, wait=False, clear=sure.append) as held:
            assert held
            assert pipe.read() == "", "the other end is closed by the end of its last holder"
        assert sure == [True]


def test_a_killed_holder_stays_written_until_somebody_clears_up(places: Places) -> None:
    child = other_process(places)
    child.kill()
    child.wait()
    path, told = locks.integration_path(places), list[bool]()
    with locks.integration_lock(places, wait=False):
        assert (locks.holder(path) or {})["pid"] == os.getpid()
    assert (locks.holder(path) or {})["pid"] == child.pid
    with locks.integration_lock(places, wait=False, clear=told.append):
        pass
    with locks.integration_lock(places, wait=False, clear=told.append):
        pass
    assert told == [True], "once"
    assert path.read_bytes() == b""


@pytest.mark.parametrize("written", ["garbage", '{"pid": 4000000, "start_time": 1, "host": "elsewhere"}'])
def test_nothing_is_certain_about_a_holder_that_cannot_be_seen(places: Places, written: str) -> None:
    path, told = locks.integration_path(places), list[bool]()
    path.parent.mkdir()
    path.write_text(written)
    with locks.integration_lock(places, wait=False, clear=told.append) as held:
        assert held
    assert told == [False]


@pytest.mark.parametrize(
    "content", [b"", b"garbage", b"\xff\0" * 99, b'{"pid": "x"}', b"[1]", b'{"pid": 99999999}', b"{" * 9999]
)
def test_whatever_a_lock_file_holds_it_is_recovered(places: Places, content: bytes) -> None:
    path = locks.integration_path(places)
    path.parent.mkdir()
    path.write_bytes(content)
    found = locks.holder(path)
    assert found is None or not locks.alive(found)
    assert locks.describe(found)
    with locks.integration_lock(places, wait=False) as held:
        assert held
        assert json.loads(path.read_text())["pid"] == os.getpid()


def test_a_read_only_lock_file_is_recovered(places: Places, tmp_path: Path) -> None:
    path = locks.integration_path(places)
    path.parent.mkdir()
    path.write_text("")
    path.chmod(0o444)
    with locks.integration_lock(places, wait=False) as held:
        assert held


def test_a_read_only_lock_file_of_another_user_is_recovered(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    path = locks.integration_path(places)
    path.parent.mkdir()
    path.write_text("")
    really = os.open

    def refuse_writing(file: Any, flags: int, *args: Any, **kwargs: Any) -> int:
        if flags & os.O_RDWR and str(file).endswith(".lock"):
            raise PermissionError(13, "Permission denied")
        return really(file, flags, *args, **kwargs)

    monkeypatch.setattr(os, "open", refuse_writing)
    with locks.integration_lock(places, wait=False) as held, locks.integration_lock(places, wait=False) as second:
        assert (held, second) == (True, False)


@pytest.mark.parametrize("obstacle", ["folder", "link", "file as folder"])
def test_what_cannot_be_a_lock_file_is_named(places: Places, tmp_path: Path, obstacle: str) -> None:
    path = locks.integration_path(places)
    if obstacle == "folder":
        path.mkdir(parents=True)
    elif obstacle == "link":
        path.parent.mkdir()
        path.symlink_to(tmp_path / "elsewhere")
    else:
        path.parent.write_text("")
    with pytest.raises(BatonError) as caught, locks.integration_lock(places, wait=False):
        pass
    assert caught.value.code == "lock_unusable"
    assert str(path) in caught.value.message
    assert not (tmp_path / "elsewhere").exists()


def test_a_lock_file_deleted_by_hand_is_not_held_twice(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    import portalocker

    path = locks.integration_path(places)
    really = portalocker.lock
    removed: list[bool] = []

    def delete_first(file: Any, flags: Any) -> None:
        if not removed:
            removed.append(True)
            path.unlink()
        really(file, flags)

    monkeypatch.setattr(portalocker, "lock", delete_first)
    with locks.integration_lock(places, wait=True, timeout=5) as held:
        assert held
        assert locks.holder(path) is not None


@pytest.mark.parametrize("bad", ["", "../x", "a/b", "a\\b", "a\0b", ".", "..", "c:x"])
def test_ids_that_are_no_file_name_are_refused(places: Places, bad: str) -> None:
    with pytest.raises(BatonError) as caught, locks.assignment_lock(places, bad, wait=False):
        pass
    assert caught.value.code == "bad_assignment_id"


def test_a_reused_pid_is_told_apart() -> None:
    mine = {"pid": os.getpid(), "start_time": locks.start_time(os.getpid())}
    assert locks.alive(mine)
    if mine["start_time"] is None:
        pytest.skip("no /proc here")
    assert not locks.alive({**mine, "start_time": 1})


def test_one_of_many_processes_gets_it_at_a_time(places: Places, tmp_path: Path) -> None:
    counter = tmp_path / "counter"
    counter.write_text("0")
    code = (
        "import sys, pathlib, types; from baton_cli import locks\n"
        "place = types.SimpleNamespace(common_dir=pathlib.Path(sys.argv[1]), state=pathlib.Path(sys.argv[2]))\n"
        "counter = pathlib.Path(sys.argv[3])\n"
        "for _ in range(20):\n"
        "    with locks.integration_lock(place, wait=True): counter.write_text(str(int(counter.read_text()) + 1))\n"
    )
    argv = [sys.executable, "-c", code, str(places.common_dir), str(places.state), str(counter)]
    children = [subprocess.Popen(argv) for _ in range(4)]
    assert [child.wait() for child in children] == [0] * 4
    assert counter.read_text() == "80"


def test_the_name_of_a_killed_holder_stays_when_what_it_left_could_not_be_cleared(places: Places) -> None:
    path = locks.integration_path(places)
    path.parent.mkdir(parents=True, exist_ok=True)
    killed = json.dumps({"pid": 2**22 + 5, "start_time": 1, "host": socket.gethostname(), "session": "s"}).encode()
    path.write_bytes(killed)

    def clear(_sure: bool) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), locks.integration_lock(places, wait=True, clear=clear):
        pass
    assert path.read_bytes() == killed
    cleared: list[bool] = []
    with locks.integration_lock(places, wait=True, clear=cleared.append) as held:
        assert held
    assert len(cleared) == 1
    assert path.read_bytes() == b""


def test_portalocker_is_imported_only_when_a_lock_is_taken() -> None:
    code = "import sys, baton_cli.locks; print('portalocker' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "False"


def test_one_that_has_ended_and_was_not_waited_for_is_not_alive() -> None:
    """In a container whose first process reaps nobody, killed processes stay as zombies."""
    with subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE) as child:
        found = {"pid": child.pid, "start_time": locks.start_time(child.pid)}
        if found["start_time"] is None:
            pytest.skip("no /proc here")
        assert locks.alive(found)
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert locks.start_time(child.pid) == found["start_time"], "it is a zombie"
        assert not locks.alive(found)
