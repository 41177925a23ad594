"""Verification commands and set-up: run to an end that is certain, output in a private log, nothing left running."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import select
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from baton_cli import locks, slots
from baton_cli.errors import BatonError

KERNEL = b"2"  # the parent of the kernel's own threads, which have no environment
EXEC_LOOKS, EXEC_PAUSE = 20, 0.001  # seconds
MARKER = "BATON_CHECK_ID"  # in the environment of all that Baton or a check starts: whose it is, outermost first
GRACE = 2.0  # seconds between asking and forcing
SWEEP_LIMIT = 10.0  # seconds until a process that cannot be killed (stuck in the kernel) is given up
PAUSE = 0.02  # seconds
NO_GROUP = -1
NOT_FOUND = 127  # what a shell answers for a command that it cannot find
TAIL_BYTES = 65536
ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True)
class CheckRun:
    """How a command ended. `duration` in seconds, `output_digest` sha256 hex over the whole log; `exit_code` is None
    when a signal or the time limit ended it; `reason` says why it is no ordinary exit: timeout, killed, not_found."""

    command: str
    exit_code: int | None
    duration: float
    output_digest: str
    log: Path
    reason: str | None

    @property
    def passed(self) -> bool:
        return self.exit_code == 0 and self.reason is None


def run_check(
    command: str,
    *,
    cwd: Path,
    log: Path,
    timeout: float,
    env: Mapping[str, str] | None = None,
    on_start: Callable[[int], None] | None = None,
) -> CheckRun:
    """Run a shell command in `cwd` with both outputs in `log` (0600, replaced), for at most `timeout` seconds.

    It gets its own session, no stdin, `CI=1` and a slot (see `slots`); `env` is added last. `on_start` is told the process
    id, which is also the group's; the time limit begins after it. When the command ends, whatever it left running is ended
    too: its process group and, where /proc exists, all that inherited `MARKER`. (What changed its session *and* emptied
    its environment gets away.) An interrupt ends it likewise.
    Errors: `check_not_started`, `no_process`, `log_unwritable`.
    """
    identity = secrets.token_hex(8)
    with _open_log(log) as output, slots.taken() as slot:
        environment = _environment(os.environ, identity, {**slot, **(env or {})})
        started = time.monotonic()
        child = None
        try:
            child = _start(command, cwd, output.fileno(), environment)
            if on_start is not None:
                on_start(child.pid)
            ended = _wait(child, timeout)
        finally:
            # The dead child is reaped only after this, so its id cannot belong to another group meanwhile. An interrupt
            # may come before the child is known: then the marker finds it.
            _sweep(child.pid if child else NO_GROUP, identity)
            if child:
                child.wait()
        duration = time.monotonic() - started
    exit_code, reason = _verdict(child.returncode, ended)
    return CheckRun(command, exit_code, duration, _digest(log), log, reason)


def mark_children() -> None:
    """From now on everything that this process starts says in its environment whose it is: see `end_children_of`.

    The environment is the kernel's own record of them: no write that a kill could come before.
    """
    outer, own = os.environ.get(MARKER, ""), _mark(os.getpid(), locks.start_time(os.getpid()))
    if own not in outer.split("."):
        os.environ[MARKER] = f"{outer}.{own}" if outer else own


def end_children_of(pid: int, started: int | None) -> bool:
    """End all that a dead process started: git calls, checks and set-up with what these started. True when it is certain
    that none is left; False where /proc cannot tell, or for what cannot be killed."""
    if started is None or not os.path.isdir("/proc/self"):
        return False
    _sweep(NO_GROUP, _mark(pid, started))
    return not _survivors(NO_GROUP, _mark(pid, started))


def _mark(pid: int, started: int | None) -> str:
    return f"{pid}-{started}"


def tail(log: Path, lines: int = 12, chars: int = 600) -> str:
    """The last lines of a log as plain text, at most `chars` characters: no colours, no control characters, progress
    bars in their last state. Empty when there is no log."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ""
    states = (line.rstrip("\r").rpartition("\r")[2] for line in ESCAPES.sub("", text).split("\n"))
    shown = (CONTROLS.sub("", state).rstrip() for state in states)
    last = "\n".join([line for line in shown if line][-lines:]) if lines > 0 else ""
    return last if len(last) <= chars else "…" + last[len(last) - chars + 1 :]


def _environment(base: Mapping[str, str], identity: str, extra: Mapping[str, str]) -> dict[str, str]:
    """What a check sees: the user's environment without Baton's, git's (a hook's, say) and the launcher's own parts."""
    kept = {name: value for name, value in base.items() if not name.upper().startswith(("BATON_", "GIT_"))}
    launcher = base.get("BATON_VENV", "")
    if launcher:
        _strip_launcher(kept, os.path.realpath(launcher))
    outer = base.get(MARKER, "")  # a check of a Baton that is itself being checked belongs to both
    return {**kept, "CI": "1", MARKER: f"{outer}.{identity}" if outer else identity, **extra}


def _strip_launcher(env: dict[str, str], venv: str) -> None:
    def inside(path: str) -> bool:
        real = os.path.realpath(path)
        return real == venv or real.startswith(venv + os.sep)

    for name in ("PATH", "PYTHONPATH"):
        entries = env.get(name, "").split(os.pathsep)
        kept = [entry for entry in entries if not (entry and inside(entry))]
        if len(kept) < len(entries):
            env[name] = os.pathsep.join(kept)
            if not env[name]:
                del env[name]
    for name in ("VIRTUAL_ENV", "PYTHONHOME", "__PYVENV_LAUNCHER__"):
        if env.get(name) and inside(env[name]):
            del env[name]


def _open_log(log: Path) -> IO[bytes]:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0)
    try:
        log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(log, flags, 0o600)
        os.chmod(log, stat.S_IRUSR | stat.S_IWUSR)  # it may have been there with another mode
    except OSError as error:
        raise BatonError("log_unwritable", f"{log}: {error.strerror}", "check the folder and the free space") from error
    return os.fdopen(descriptor, "wb")


def _start(command: str, cwd: Path, output: int, env: dict[str, str]) -> subprocess.Popen[bytes]:
    shell = ["cmd", "/d", "/s", "/c", command] if sys.platform == "win32" else ["/bin/sh", "-c", command]
    try:
        return subprocess.Popen(
            shell, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        said = f"could not start `{command[:80]!s}` in {cwd}: {reason}"
        if isinstance(error, ValueError) or not cwd.is_dir():
            raise BatonError("check_not_started", said, "check the command and the folder") from error
        raise BatonError("no_process", said, "close some programs, then run the same command again") from error


def _wait(child: subprocess.Popen[bytes], timeout: float) -> bool:
    """Wait, where the system allows it without reaping; False when the time is over first."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):  # a kernel before 5.3, or a sandbox without it
            descriptor = os.pidfd_open(child.pid)
            try:
                poll = select.poll()
                poll.register(descriptor, select.POLLIN)
                return bool(poll.poll(min(max(0.0, timeout), 1e6) * 1000))
            finally:
                os.close(descriptor)
    return _wait_portably(child, timeout)


def _wait_portably(child: subprocess.Popen[bytes], timeout: float) -> bool:
    try:
        child.wait(timeout)
    except subprocess.TimeoutExpired:
        return False
    return True


def _verdict(code: int, ended: bool) -> tuple[int | None, str | None]:
    if not ended:
        return None, "timeout"
    if code < 0:
        return None, "killed"
    return code, "not_found" if code == NOT_FOUND else None


def _sweep(group: int, identity: str) -> None:
    """End what is left of a check: ask (SIGTERM), wait `GRACE`, force (SIGKILL) until nothing is found."""
    if sys.platform == "win32":
        subprocess.run(["taskkill", "/T", "/F", "/PID", str(group)], capture_output=True, check=False)
    else:
        begin = time.monotonic()
        asked: set[int] = set()
        while (left := _survivors(group, identity)) and (spent := time.monotonic() - begin) < SWEEP_LIMIT:
            for pid in left:
                if spent > GRACE or pid not in asked:
                    with contextlib.suppress(OSError):
                        os.kill(pid, signal.SIGKILL if spent > GRACE else signal.SIGTERM)
            asked |= left
            time.sleep(PAUSE)


def _survivors(group: int, identity: str) -> set[int]:
    """Processes of the group, or with the check's marker in their environment, that have not ended."""
    if not os.path.isdir("/proc/self"):
        return _group_without_proc(group)
    needle = identity.encode()
    marker = MARKER.encode() + b"="
    end = len(marker)
    found: set[int] = set()
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            facts = _read(f"/proc/{name}/stat").rpartition(b")")[2].split()
            if facts[0] in (b"Z", b"X"):
                continue
            variables = _variables(name, facts[1]) if int(facts[2]) != group else []
        except (OSError, IndexError):  # ended meanwhile, or another user's
            continue
        if int(facts[2]) == group or any(i.startswith(marker) and needle in i[end:].split(b".") for i in variables):
            found.add(int(name))
    return found


def _variables(name: str, parent: bytes) -> list[bytes]:
    """The environment of a process. It reads as empty for a moment while a process is being replaced by `exec`."""
    for _ in range(EXEC_LOOKS if parent != KERNEL and name.encode() != KERNEL else 1):
        if found := _read(f"/proc/{name}/environ"):
            return found.split(b"\0")
        time.sleep(EXEC_PAUSE)
    return []


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _group_without_proc(group: int) -> set[int]:
    # Negative: os.kill then reaches the whole group. A group of zombies only cannot be signalled on macOS.
    if sys.platform != "win32" and group != NO_GROUP:
        with contextlib.suppress(OSError):
            os.killpg(group, 0)
            return {-group}
    return set()


def _digest(log: Path) -> str:
    digest = hashlib.sha256()
    with log.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
