"""The one place where git is called: fixed options, a filtered environment, exact bytes, a time limit.

A repository (and whoever started Baton) must not be able to change what our calls do, so every `GIT_*` variable is
dropped and hooks, pager, editor, fsmonitor, signing and background maintenance are switched off on the command line.
What belongs to the user stays: identity, clean/smudge filters (LFS), attributes, merge and ignore settings.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import IO, Any

from baton_cli.errors import BatonError
from baton_cli.git.settings import CONFIG, environment, hint, reason

MINIMUM_GIT = (2, 38)  # `merge-tree --write-tree` appeared there

# `sh` forks and passes descriptors by hand; one start at a time keeps threads from handing each other's pipes on.
_start_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class GitResult:
    """What one git call gave: exit code, stdout as exact bytes, stderr as text."""

    code: int
    out: bytes
    err: str

    @property
    def text(self) -> str:
        """stdout as text (UTF-8, other bytes kept as surrogates) without one trailing newline."""
        text = decode(self.out)
        return text[:-1] if text.endswith("\n") else text

    @property
    def names(self) -> tuple[str, ...]:
        """stdout of a `-z` call, split at the NULs."""
        return tuple(decode(part) for part in self.out.split(b"\0") if part)


class _Argument(str):
    """An argument that `sh` encodes without failing on file names that are not UTF-8."""

    __slots__ = ()

    def encode(self, encoding: str = "utf-8", errors: str = "strict") -> bytes:  # noqa: ARG002
        return encode(self)


def encode(text: str) -> bytes:
    """The bytes git knows a name by: UTF-8, surrogates back to the bytes they stand for."""
    return str.encode(text, "utf-8", "surrogateescape")


def decode(data: bytes) -> str:
    """The inverse of `encode`; never fails."""
    return data.decode("utf-8", "surrogateescape")


def git(
    *args: str | Path,
    cwd: Path,
    input: bytes | None = None,
    env: Mapping[str, str] | None = None,
    ok: Container[int] = (0,),
    timeout: float = 600.0,
) -> GitResult:
    """Run `git -C cwd ARGS` (argv, never a shell) and return its result; exit codes outside `ok` are an error.

    `input` is what git reads (nothing otherwise), `env` is added to the filtered environment, `timeout` is in seconds
    and ends git together with everything it started. Errors: `git_missing`, `git_failed`, `git_timeout`,
    `bad_git_argument`.
    """
    verb, variables = _verb([str(argument) for argument in args]), environment(env)
    argv = _argv(args, cwd)
    _refuse_nul(verb, [*argv, *variables, *variables.values()])
    with _scratch(b"") as out, _scratch(b"") as err, _scratch(input) as source:
        code, timed_out = _execute(argv, source, out, err, variables, timeout)
        result = GitResult(code, _content(out), decode(_content(err)))
    if timed_out:
        raise BatonError(
            "git_timeout",
            f"git {verb}: stopped after {timeout:g} s in {cwd}",
            "a filter, a slow disk or another git process may be blocking it; run the same command again",
        )
    if code not in ok:
        advice = hint(result.err) or f"git was called in {cwd}"
        raise BatonError("git_failed", f"git {verb}: {reason(result.code, result.err)}", advice)
    return result


def together(calls: Sequence[Sequence[str]], *, cwd: Path, timeout: float = 600.0) -> list[GitResult]:
    """Run several calls at once. Their results, in order, whatever their exit codes. Error: `git_missing`."""
    variables = environment(None)
    with contextlib.ExitStack() as stack:
        jobs: list[_Job] = []
        for args in calls:
            source, out, err = (stack.enter_context(_scratch(b"")) for _ in range(3))
            jobs.append((_argv(args, cwd), source, out, err, variables))
        codes = _execute_each(jobs, timeout)
        return [
            GitResult(code, _content(job[2]), decode(_content(job[3])))
            for (code, _), job in zip(codes, jobs, strict=True)
        ]


def _argv(args: Sequence[str | Path], cwd: Path) -> list[str]:
    settings = [part for setting in CONFIG for part in ("-c", setting)]
    return ["-C", str(cwd), *settings, *map(str, args)]


def version() -> tuple[int, int]:
    """The installed git's (major, minor). Errors: `git_missing`, `git_too_old` when it is below `MINIMUM_GIT`."""
    text = git("version", cwd=Path(os.sep)).text
    numbers = [part for part in text.split()[-1 if "(" not in text else 2].split(".") if part.isdigit()]
    found = (int(numbers[0]), int(numbers[1])) if len(numbers) > 1 else (0, 0)
    if found < MINIMUM_GIT:
        wanted = ".".join(map(str, MINIMUM_GIT))
        raise BatonError("git_too_old", f"{text} is installed, {wanted} or newer is needed", "install a newer git")
    return found


def _verb(arguments: list[str]) -> str:
    while arguments and arguments[0] == "-c":
        arguments = arguments[2:]
    return arguments[0] if arguments else ""


def _refuse_nul(verb: str, texts: list[str]) -> None:
    if any("\0" in text for text in texts):
        raise BatonError(
            "bad_git_argument", f"git {verb}: an argument contains a NUL character", "no name or text may contain one"
        )


@contextlib.contextmanager
def _scratch(content: bytes | None) -> Iterator[IO[bytes]]:
    """A private file git reads from or writes to: a real descriptor gives exact output of any size, and a helper that
    git left running cannot hold us up by keeping a pipe open. None gives a closed stdin."""
    if content is None:
        file: IO[bytes] = open(os.devnull, "rb")  # noqa: SIM115
    elif sys.platform == "linux":
        file = os.fdopen(os.memfd_create("git"), "w+b")  # in memory: works when the disk is full, too
    else:
        file = tempfile.TemporaryFile()  # noqa: SIM115
    with file:
        if content:
            file.write(content)
            file.seek(0)
        yield file


def _content(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()


def _execute(
    argv: list[str], source: IO[bytes], out: IO[bytes], err: IO[bytes], env: dict[str, str], timeout: float
) -> tuple[int, bool]:
    """(exit code, negative for a signal; whether the time limit ended it)."""
    if sys.platform == "win32":
        return _execute_windows(argv, source, out, err, env, timeout)
    else:  # noqa: RET505  (a type checker follows platforms by branches only)
        with _running([(argv, source, out, err, env)]) as started:
            return _wait(started[0], timeout)


_Job = tuple[list[str], IO[bytes], IO[bytes], IO[bytes], dict[str, str]]  # what `_execute` takes, without the limit


def _execute_each(jobs: Sequence[_Job], timeout: float) -> list[tuple[int, bool]]:
    """The same for several at once."""
    if sys.platform == "win32":
        return [_execute(*job, timeout) for job in jobs]
    else:  # noqa: RET505
        with _running(jobs) as started:
            return [_wait(process, timeout) for process in started]


@contextlib.contextmanager
def _running(jobs: Sequence[_Job]) -> Iterator[list[Any]]:
    """The processes of these jobs, all started. None is left when an exception passes."""
    started: list[Any] = []
    try:
        with _interrupts_held() as held:
            for job in jobs:
                started.append(_start(*job))
        for number in held:
            signal.raise_signal(number)
        yield started
    except BaseException:
        for process in started:
            _kill_group(process.pid)
            with contextlib.suppress(ChildProcessError):  # reaped just before the interrupt came
                process.wait()
        raise


@contextlib.contextmanager
def _interrupts_held() -> Iterator[list[int]]:
    """Collect interrupts instead of raising: one that is raised inside `sh`, between its fork and its return, would leave
    a git running that nobody knows."""
    held: list[int] = []
    handlers = {}
    if threading.current_thread() is threading.main_thread():  # handlers run, and can be set, only there
        handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    handlers = {number: handler for number, handler in handlers.items() if callable(handler)}
    for number in handlers:
        signal.signal(number, lambda caught, _frame: held.append(caught))
    try:
        yield held
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _start(argv: list[str], source: IO[bytes], out: IO[bytes], err: IO[bytes], env: dict[str, str]) -> Any:
    """The running process as `sh` keeps it: `pid`, `wait()`."""
    import sh

    try:
        command: Any = sh.Command("git")
        with _start_lock:
            return command(
                [_Argument(argument) for argument in argv],
                _in=source,
                _out=out,
                _err=err,
                _env=env,
                _tty_in=False,
                _tty_out=False,
                _truncate_exc=False,
                _new_session=True,  # a group of its own to end, and no terminal to ask for passwords on
                _bg=True,
                _bg_exc=False,
                _ok_code=range(-128, 256),
            ).process
    except sh.CommandNotFound as error:
        raise _missing() from error
    except (sh.ForkException, OSError) as error:
        line = str(error).strip().splitlines()[-1].strip()
        raise BatonError(
            "git_failed", f"git could not be started: {line}", "free memory, or fewer names at once"
        ) from error


def _wait(process: Any, timeout: float) -> tuple[int, bool]:
    # sh's own time limit ends the direct child only; git's helpers (filters, transports) would go on.
    expired = threading.Event()

    def expire() -> None:
        expired.set()
        _kill_group(process.pid)

    timer = Timer(timeout, expire)
    timer.daemon = True
    timer.start()
    try:
        return int(process.wait()), expired.is_set()
    finally:
        timer.cancel()


def _kill_group(pid: int) -> None:
    if sys.platform != "win32":
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)


def _execute_windows(
    argv: list[str], source: IO[bytes], out: IO[bytes], err: IO[bytes], env: dict[str, str], timeout: float
) -> tuple[int, bool]:
    import subprocess

    try:
        done = subprocess.run(
            ["git", *argv], stdin=source, stdout=out, stderr=err, env=env, timeout=timeout, check=False
        )
    except FileNotFoundError as error:
        raise _missing() from error
    except subprocess.TimeoutExpired:
        return -1, True
    return done.returncode, False


def _missing() -> BatonError:
    return BatonError("git_missing", "the program git is not on the PATH", "install git 2.38 or newer, or fix the PATH")
