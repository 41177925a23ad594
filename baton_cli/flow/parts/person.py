"""The person who decides something."""

from __future__ import annotations

import getpass
import os

from baton_cli.context import Context
from baton_cli.git import repo


def who(context: Context) -> str:
    """The person at the keyboard: as git knows them, else as the system does."""
    known = os.environ.get("GIT_AUTHOR_NAME", "").strip() or repo.user_name(context.project.repository)
    if known:
        return known
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}" if hasattr(os, "getuid") else "unknown"
