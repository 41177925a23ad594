"""Which paths a list of paths and globs covers. `**` spans folders; a folder covers everything below it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


def _pattern(glob: str) -> re.Pattern[str]:
    parts = []
    for piece in re.split(r"(\*\*/|\*\*|\*|\?)", glob.removeprefix("./").strip("/")):
        parts.append({"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}.get(piece, re.escape(piece)))
    return re.compile("".join(parts) + "(?:/.*)?", re.DOTALL)


def matching(paths: Iterable[str], globs: Sequence[str]) -> tuple[str, ...]:
    """Those of the paths that one of the globs covers, in order. Paths are relative to the repository."""
    patterns = [_pattern(glob) for glob in globs]
    return tuple(path for path in paths if any(pattern.fullmatch(path) for pattern in patterns))
