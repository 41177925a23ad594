"""How Baton is called: by a machine from anywhere, and by the person in this folder."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from pathlib import Path


def launcher() -> tuple[str, ...]:
    """How this very Baton can be called again, absolute: the launcher, the console script, or the interpreter."""
    named, python = os.environ.get("BATON_LAUNCHER"), os.environ.get("BATON_PYTHON")
    if named:
        return (python, named) if python else (named,)  # a `python3` on PATH may be missing or too old for its `#!`
    script = Path(sys.argv[0])
    if script.name == "baton" and script.is_file():
        return (str(script.absolute()),)
    return (sys.executable, str(Path(__file__).with_name("__main__.py")))


def typed(command: tuple[str, ...]) -> tuple[str, ...]:
    """The same call as a person in the current folder would type it: `baton` if that is what PATH has, or `./baton`."""
    if len(command) != 1:
        return command
    path, found = Path(command[0]), shutil.which("baton")
    with contextlib.suppress(OSError):
        if found is not None and path.samefile(found):
            return ("baton",)
        if path.parent.samefile("."):
            return (f"./{path.name}",)
    return command
