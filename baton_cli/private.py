"""Files that are complete or not there at all: written under another name, then renamed into place.

The other name says who writes, so that what a killed process left is told from what another one is writing just now.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from baton_cli import locks

SCRATCH = "tmp"  # in the state folder: where its files are before they are complete


def write_private(path: Path, body: bytes) -> None:
    """Write `path`, in a folder of the state folder: read-only, for the user alone."""
    beside = path.parent.parent / SCRATCH / temporary_name()
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o400)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(body)
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def temporary_name(prefix: str = "") -> str:
    """A name for a file of this process that is about to be renamed."""
    import secrets

    pid = os.getpid()
    return f"{prefix}{pid}-{locks.start_time(pid) or 0}-{secrets.token_hex(4)}"


def remove_abandoned(folder: Path, prefix: str = "") -> None:
    """Remove the files of that name whose process is gone. What cannot be removed or looked at stays."""
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            pid, _, rest = name.removeprefix(prefix).partition("-")
            started = rest.partition("-")[0]
            if not (name.startswith(prefix) and pid.isdecimal() and started.isdecimal()):
                continue
            if not locks.alive({"pid": int(pid), "start_time": int(started) or None}):
                (folder / name).unlink(missing_ok=True)
