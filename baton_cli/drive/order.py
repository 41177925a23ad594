"""What `drive` is asked to do, checked before anything is claimed."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from dataclasses import dataclass

from baton_cli.core import durations
from baton_cli.errors import USAGE, BatonError


@dataclass(frozen=True, slots=True)
class Order:
    """One run of `drive`. `time_limit` is in seconds for each agent; `session` is `new` or one to continue."""

    change: str
    command: tuple[str, ...]
    program: str  # the absolute path of command[0]
    session: str = "new"
    parallel: int = 5
    time_limit: float | None = None
    wait: bool = True


def command(line: str) -> tuple[tuple[str, ...], str]:
    """The words of an agent command line and the program it starts. Split like a shell, run without one.

    A program given as a path is meant from the current folder, not from a worktree. Errors: `bad_agent`, exit 2.
    """
    if sys.platform == "win32":
        raise BatonError(
            "bad_agent", "drive needs process groups, which Windows has not", "use an agent session", USAGE
        )
    try:
        words = tuple(shlex.split(line))
    except ValueError as error:
        raise _bad(f"{line!r} cannot be split into words: {error}") from None
    if not words or not words[0]:
        raise _bad("the agent command is empty")
    if any("\0" in word for word in words):
        raise _bad("the agent command holds a NUL")
    found = shutil.which(words[0])
    if found is None:
        raise _bad(f"there is no program {words[0]!r} that can be run")
    return words, os.path.abspath(found)


def seconds(text: str | None) -> float | None:
    """A duration such as `90s`, `30m`, `1h30m` or a number of seconds. Errors: `bad_duration`, exit 2."""
    if text is None:
        return None
    total = durations.seconds(f"{text}s" if text.strip().isdecimal() else text)
    if total is None or not 0 < total <= durations.MOST:
        raise BatonError("bad_duration", f"{text!r} is no time limit", "give one such as 90s, 30m or 1h30m", USAGE)
    return float(total)


def _bad(message: str) -> BatonError:
    return BatonError("bad_agent", message, "give --agent a command that reads its task on standard input", USAGE)
