"""The person who decides something."""

from __future__ import annotations

import getpass
import os


def who() -> str:
    """The person at the keyboard, as the system knows them."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}" if hasattr(os, "getuid") else "unknown"
