"""Lengths of time as people write them."""

from __future__ import annotations

from baton_cli.core.patterns import late

MOST = 365 * 24 * 3600  # seconds
_DURATION = late(r"(?:(\d{1,9})h)?\s*(?:(\d{1,9})m)?\s*(?:(\d{1,9})s)?")


def seconds(text: str) -> int | None:
    """`90s`, `30m`, `2h` or `1h 30m`, in seconds; None for what is no such time."""
    match = _DURATION.fullmatch(text.strip())
    if match is None or not any(match.groups()):
        return None
    hours, minutes, rest = (int(part or 0) for part in match.groups())
    return hours * 3600 + minutes * 60 + rest
