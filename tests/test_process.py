"""Checks: certain ends, private logs, a clean environment, nothing left running."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from baton_cli import process
from baton_cli.errors import BatonError
from baton_cli.process import CheckRun, run_check, tail

Fifo = Callable[[str], Path]


@pytest.fixture
def check(tmp_path: Path) -> Callable[..., CheckRun]:
    def run(command: str, timeout: float = 60, **options: object) -> CheckRun:
        return run_check(command, cwd=tmp_path, log=tmp_path / "logs" / "check.log", timeout=timeout, **options)  # type: ignore[arg-type]

    return run


def test_a_passing_check(check: Callable[..., CheckRun], tmp_path: Path) -> None:
    run = check("echo out; echo err >&2; pwd")
    assert run.passed
    assert (run.exit_code, run.reason) == (0, None)
    assert run.log.read_text() == f"out\nerr\n{tmp_path}\n"
    assert run.output_digest == hashlib.sha256(run.log.read_bytes()).hexdigest()
    assert 0 < run.duration < 60


def test_the_log_is_private_and_replaced(check: Callable[..., CheckRun], tmp_path: Path) -> None:
    check("echo a much longer output")
    log = tmp_path / "logs" / "check.log"
    log.chmod(0o644)
    check("echo b")
    assert log.read_text() == "b\n"
    assert log.stat().st_mode & 0o777 == 0o600


def test_a_log_that_is_a_link_is_not_followed(check: Callable[..., CheckRun], tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "logs" / "check.log").symlink_to(tmp_path / "victim")
    with pytest.raises(BatonError) as caught:
        check("echo x")
    assert caught.value.code == "log_unwritable"
    assert (tmp_path / "victim").read_text() == "precious"


@pytest.mark.parametrize(
    ("command", "code", "reason"),
    [
        ("exit 3", 3, None),
        ("false", 1, None),
        ("no-such-program-here --flag", 127, "not_found"),
        ("kill -9 $$", None, "killed"),
        ("kill -TERM $$", None, "killed"),
        ("exit 255", 255, None),
    ],
)
def test_failures_have_a_code_and_a_reason(
    check: Callable[..., CheckRun], command: str, code: int | None, reason: str | None
) -> None:
    run = check(command)
    assert not run.passed
    assert (run.exit_code, run.reason) == (code, reason)


def test_stdin_is_closed_and_there_is_no_terminal(check: Callable[..., CheckRun]) -> None:
    run = check("cat; test ! -t 0 && (exec 3</dev/tty) 2>/dev/null || echo no terminal")
    assert run.log.read_text() == "no terminal\n"


def test_large_output_is_kept_whole(check: Callable[..., CheckRun]) -> None:
    run = check(f"'{sys.executable}' -c \"import sys; sys.stdout.write('x' * 6000000)\"")
    assert run.log.stat().st_size == 6_000_000
    assert run.output_digest == hashlib.sha256(b"x" * 6_000_000).hexdigest()


class Watch:
    """Watches a named pipe: `opened` once somebody writes to it, `ended` when nobody has it open any more."""

    def __init__(self, pipe: Path) -> None:
        self.opened, self.ended = threading.Event(), threading.Event()
        threading.Thread(target=self._read, args=(pipe,), daemon=True).start()

    def _read(self, pipe: Path) -> None:
        with pipe.open("rb") as file:
            self.opened.set()
            file.read()
        self.ended.set()

    def wait_until_opened(self, _pid: int) -> None:
        """For `on_start`: the time limit begins after it."""
        assert self.opened.wait(30)


ESCAPES = {
    "group": "sh -c 'exec 3>{alive}; cat {gate}' &",
    "own session": "setsid sh -c 'exec 3>{alive}; cat {gate}' &",
    "orphan in its own session": "(setsid sh -c 'exec 3>{alive}; cat {gate}' &) &",
    "deaf": "sh -c 'trap \"\" TERM; exec 3>{alive}; cat {gate}; cat {gate}' &",
}


@pytest.mark.parametrize("kind", ESCAPES)
def test_what_a_check_leaves_running_is_ended(
    check: Callable[..., CheckRun], fifo: Fifo, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "GRACE", 0.2)
    alive, gate, ready = fifo("alive"), fifo("gate"), fifo("ready")
    watch = Watch(alive)
    # the check ends only after what it left is surely there: the other end of `ready` is opened by the test's thread
    command = ESCAPES[kind].format(alive=f"{alive}; echo >&3; echo > {ready}", gate=gate)
    run = check(f"{command}\nread line < {ready}; exit 0")
    assert run.passed
    assert watch.ended.wait(30), "something still runs"


@pytest.mark.parametrize("kind", ESCAPES)
def test_the_time_limit_ends_everything_and_keeps_the_output(
    check: Callable[..., CheckRun], fifo: Fifo, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "GRACE", 0.2)
    alive, gate = fifo("alive"), fifo("gate")
    watch = Watch(alive)
    command = f"echo begun\n{ESCAPES[kind].format(alive=alive, gate=gate)}\ncat {gate}"
    run = check(command, timeout=0.05, on_start=watch.wait_until_opened)
    assert (run.exit_code, run.reason, run.passed) == (None, "timeout", False)
    assert run.log.read_text().startswith("begun\n")  # some shells add "Terminated"
    assert run.output_digest == hashlib.sha256(run.log.read_bytes()).hexdigest()
    assert watch.ended.wait(30), "something still runs"


def test_a_check_may_clean_up_when_it_is_asked_to_end(
    check: Callable[..., CheckRun], fifo: Fifo, tmp_path: Path
) -> None:
    ready = fifo("ready")
    (tmp_path / "polite.py").write_text(
        "import signal, sys\n"
        "def end(*_): print('cleaned'); sys.exit()\n"
        "signal.signal(signal.SIGTERM, end)\n"
        "open('ready', 'w').close()\n"
        "signal.pause()\n"
    )
    command = f"exec '{sys.executable}' polite.py"
    run = check(command, timeout=0.05, on_start=lambda _: ready.read_text() and None)
    assert run.reason == "timeout"
    assert run.log.read_text() == "cleaned\n"


@pytest.mark.parametrize("kind", ["group", "own session"])
def test_an_interrupt_ends_the_check(tmp_path: Path, fifo: Fifo, kind: str) -> None:
    alive, gate = fifo("alive"), fifo("gate")
    command = ESCAPES[kind].format(alive=f"{alive}; echo >&3", gate=gate) + f"\ncat {gate}"
    code = (
        "import pathlib, sys; from baton_cli.process import run_check\n"
        "try: run_check(sys.argv[1], cwd=pathlib.Path('.'), log=pathlib.Path('log'), timeout=60)\n"
        "except KeyboardInterrupt: print('interrupted')"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code, command], cwd=tmp_path, stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(process.__file__).parent.parent)},
    )  # fmt: skip
    with alive.open() as pipe:
        pipe.readline()
        child.send_signal(signal.SIGINT)
        assert child.communicate(timeout=30)[0] == b"interrupted\n"
        assert pipe.read() == ""


def test_the_start_is_announced_with_the_process_group(check: Callable[..., CheckRun]) -> None:
    pids: list[int] = []
    run = check("echo $$", on_start=pids.append)
    assert run.log.read_text() == f"{pids[0]}\n"


def test_what_cannot_be_started_is_an_error(check: Callable[..., CheckRun], tmp_path: Path) -> None:
    with pytest.raises(BatonError) as caught:
        run_check("true", cwd=tmp_path / "gone", log=tmp_path / "log", timeout=1)
    assert caught.value.code == "check_not_started"
    with pytest.raises(BatonError) as caught:
        check("echo \0")
    assert caught.value.code == "check_not_started"


def environment(run: CheckRun) -> dict[str, str]:
    return dict(item.split("=", 1) for item in run.log.read_text().split("\0") if item)


def test_the_environment_is_the_users_without_batons_and_gits(
    check: Callable[..., CheckRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("BATON_SEAL_KEY", "BATON_ANYTHING", "GIT_DIR", "GIT_INDEX_FILE", "GIT_AUTHOR_DATE"):
        monkeypatch.setenv(name, "leak")
    monkeypatch.setenv("MINE", "kept")
    seen = environment(check("env -0", env={"EXTRA": "1", "PORT": "80"}))
    assert (seen["CI"], seen["MINE"], seen["EXTRA"], seen["PORT"]) == ("1", "kept", "1", "80")
    kept = {process.MARKER, "BATON_SLOT", "BATON_PORT_BASE"}
    assert {name for name in seen if name.startswith(("BATON_", "GIT_"))} == kept


def test_the_launchers_python_is_taken_out(
    check: Callable[..., CheckRun], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    venv, mine = tmp_path / "launcher", tmp_path / "mine"
    (venv / "bin").mkdir(parents=True)
    (tmp_path / "alias").symlink_to(venv)
    monkeypatch.setenv("BATON_VENV", str(venv))
    monkeypatch.setenv("PATH", os.pathsep.join([f"{tmp_path}/alias/bin", str(mine / "bin"), os.environ["PATH"]]))
    monkeypatch.setenv("VIRTUAL_ENV", str(venv))
    monkeypatch.setenv("PYTHONHOME", str(venv))
    monkeypatch.setenv("PYTHONPATH", f"{venv}/lib{os.pathsep}{mine}/lib")
    seen = environment(check("env -0"))
    assert seen["PATH"].startswith(f"{mine}/bin{os.pathsep}")
    assert seen["PYTHONPATH"] == f"{mine}/lib"
    assert not {"VIRTUAL_ENV", "PYTHONHOME", "BATON_VENV"} & set(seen)


def test_the_users_own_python_environment_stays(
    check: Callable[..., CheckRun], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BATON_VENV", str(tmp_path / "launcher"))
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "launcher-of-mine"))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "lib"))
    seen = environment(check("env -0"))
    assert seen["VIRTUAL_ENV"] == str(tmp_path / "launcher-of-mine")
    assert seen["PYTHONPATH"] == str(tmp_path / "lib")


def test_a_check_within_a_check_belongs_to_both(
    check: Callable[..., CheckRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(process.MARKER, "outer")
    assert environment(check("env -0"))[process.MARKER].startswith("outer.")


# --- tail ----------------------------------------------------------------------------------------------------


def test_tail_gives_the_last_lines(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("\n".join(str(number) for number in range(100)) + "\n\n")
    assert tail(log, lines=3) == "97\n98\n99"
    assert len(tail(log, lines=100, chars=20)) == 20
    assert tail(log, lines=100, chars=20).startswith("…")
    assert tail(log, lines=100, chars=20).endswith("98\n99")


def test_tail_of_nothing_is_empty(tmp_path: Path) -> None:
    assert tail(tmp_path / "none") == ""
    (tmp_path / "log").write_text("")
    assert tail(tmp_path / "log") == ""


def test_tail_is_plain_text(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(
        b"\x1b[31mred\x1b[0m\r\n 10%\r 50%\r100%\n\x1b]0;title\x07bell\x07\xff\x00\n\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\n"
    )
    assert tail(log) == "red\n100%\nbell\ufffd\nlink"


def test_tail_reads_only_the_end_of_a_large_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("wb") as file:
        file.truncate(3_000_000_000)
        file.seek(0, os.SEEK_END)
        file.write(b"\nthe end\n")
    assert tail(log, lines=1) == "the end"
