"""Patterns that most calls never need. Compiling all there are takes as long as reading some thousand tasks."""

from __future__ import annotations

import re
from typing import Any, cast


class _Late:
    def __init__(self, text: str, flags: int) -> None:
        self._wanted = (text, flags)

    def __getattr__(self, name: str) -> Any:
        found = getattr(re.compile(*self._wanted), name)  # `re` keeps what it has compiled
        setattr(self, name, found)  # the next call does not come here
        return found


def late(text: str, flags: int = 0) -> re.Pattern[str]:
    """As `re.compile`, but compiled when one of its methods is first used."""
    return cast("re.Pattern[str]", _Late(text, flags))
