"""Files of the user's own below the state folder: read-only, complete or not there at all."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def write_private(path: Path, body: bytes) -> None:
    """Write `path` beside and rename it into place, readable by the user only."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o400)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(body)
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
