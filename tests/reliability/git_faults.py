"""git as it is on a bad day: the n-th call of a verb fails, fails after its work was done, hangs, or finds no git at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any
from unittest import mock

from baton_cli.errors import BatonError
from baton_cli.git import run as git_run

EARLY, LATE, HANG, MISSING = "early", "late", "hang", "missing"
LIMIT = 0.2  # seconds that a call which hangs is given; it would hang for ever
SCRIPT = """\
#!/bin/sh
case "$BAD_DAY" in
early) echo "fatal: bad day" >&2; exit 128;;
late) "{git}" "$@"; echo "fatal: bad day" >&2; exit 128;;
hang) exec sleep 3600;;
esac
exec "{git}" "$@"
"""


class BadDay:
    """A git on PATH in front of the real one. Calls that nothing happens to are made as on a system without `sh`."""

    def __init__(self, folder: Path) -> None:
        self.bin, self.empty = folder / "bin", folder / "empty"
        for made in (self.bin, self.empty):
            made.mkdir(parents=True, exist_ok=True)
        script = self.bin / "git"
        script.write_text(SCRIPT.format(git=shutil.which("git")))
        script.chmod(0o755)
        self.calls: list[str] = []

    @contextmanager
    def at(self, number: int, how: str) -> Iterator[None]:
        """While this holds, `how` happens to the call of that number; 0: to none. `calls` tells what was asked of git."""
        real: Callable[..., tuple[int, bool]] = git_run._execute
        self.calls = []

        def execute(
            argv: list[str], source: IO[bytes], out: IO[bytes], err: IO[bytes], env: Mapping[str, str], timeout: float
        ) -> tuple[int, bool]:
            self.calls.append(verb(argv))
            if len(self.calls) != number and not (how == MISSING and 0 < number < len(self.calls)):
                return git_run._execute_windows(argv, source, out, err, dict(env), timeout)
            path = str(self.empty) if how == MISSING else f"{self.bin}{os.pathsep}{os.environ['PATH']}"
            with mock.patch.dict(os.environ, {"PATH": path}):
                return real(
                    argv, source, out, err, {**env, "BAD_DAY": how, "PATH": path}, LIMIT if how == HANG else timeout
                )

        def one_by_one(jobs: Sequence[Any], timeout: float) -> list[tuple[int, bool]]:
            return [execute(*job, timeout) for job in jobs]

        with (
            mock.patch.object(git_run, "_execute", execute),
            mock.patch.object(git_run, "_execute_each", one_by_one),
        ):
            yield


def told_well(error: BatonError) -> str:
    """The code of a refusal that has all its parts, each on one line."""
    assert error.message
    assert error.hint
    assert "\n" not in error.message + error.hint
    return error.code


def verb(argv: list[str]) -> str:
    """`worktree add` of `-C FOLDER -c ... worktree add -q ...`."""
    rest = argv[2:]
    while rest[0] == "-c":
        rest = rest[2:]
    return " ".join(rest[: 2 if rest[0] == "worktree" else 1])
