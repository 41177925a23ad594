"""The temporary folder: the throwaway project in it, and nothing of Baton's outside of it. Removed at the end."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from baton_cli.demo import outside, scenario

TRIES = 20  # of removing the folder, 50 ms apart: a process that is just ending may still write
ENDING = ("SIGTERM", "SIGHUP")  # being asked to end is like Ctrl-C: nothing is left behind


@contextlib.contextmanager
def stage(keep: bool) -> Iterator[Path]:
    """A new folder with the project in `hello/`. It stays only with `keep`, and only when nothing interrupts."""
    folder = Path(os.path.realpath(tempfile.mkdtemp(prefix="baton-demo-")))
    try:
        with _files_in(folder), _on_signals(ENDING, _interrupt):
            make_project(folder / "hello")
            yield folder / "hello"
    except KeyboardInterrupt:
        keep = False
        raise
    finally:
        if not keep:
            with _on_signals(("SIGINT", *ENDING), _ignore):  # a second Ctrl-C does not leave half of it
                remove(folder)


def make_project(root: Path) -> None:
    """A repository with one commit, whose own configuration says all that git asks of a user's."""
    root.mkdir()
    outside.git(root, "init", "--quiet", "--initial-branch=main", "--template=", "--object-format=sha1")
    with (root / ".git" / "config").open("a", encoding="utf-8", newline="\n") as file:
        file.write(scenario.GIT_CONFIG.format(nothing=os.devnull))
    for name, text in scenario.FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    outside.git(root, "add", "--all")
    outside.git(root, "commit", "--quiet", "--message", "A program that says hello, and an approved change")


@contextlib.contextmanager
def _files_in(folder: Path) -> Iterator[None]:
    """Baton's per-user and temporary files go into the folder too, here and in every process that is started."""
    (folder / "tmp").mkdir()
    wanted = {"XDG_STATE_HOME": str(folder / "state"), "TMPDIR": str(folder / "tmp")}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _on_signals(names: Sequence[str], handler: Callable[[int, object], object]) -> Iterator[None]:
    """Handle these signals so for a while, where that is possible: in the main thread."""
    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for number in (getattr(signal, name) for name in names if hasattr(signal, name)):
            before[number] = signal.signal(number, handler)
    try:
        yield
    finally:
        for number, known in before.items():
            signal.signal(number, known)


def _interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


def _ignore(_number: int, _frame: object) -> None:
    return


def remove(folder: Path) -> None:
    """Remove the whole folder, git's read-only files too."""

    def writable(call: Callable[[str], Any], path: str, _error: object) -> None:
        with contextlib.suppress(OSError):
            os.chmod(path, stat.S_IWRITE | stat.S_IREAD | stat.S_IEXEC)
            call(path)

    for _ in range(TRIES):
        shutil.rmtree(folder, onerror=writable)
        if not folder.exists():
            return
        time.sleep(0.05)
