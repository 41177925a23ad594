"""Small phrases that every view shares: spans of time, short names, counts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from baton_cli.output import escape

TEXT_LIMIT = 4_000  # characters of one text that are looked at; nothing longer is ever shown on one line
_FOLD = re.compile(r"(?:\r?\n|[ \t])+")


def shown(value: Any, limit: int = TEXT_LIMIT) -> str:
    """Any value as one safe line; nothing for None."""
    return "" if value is None else escape(str(value)[:limit])


def prose(value: Any) -> str:
    """A sentence that may have come over several lines, on one."""
    return "" if value is None else escape(_FOLD.sub(" ", str(value)[:TEXT_LIMIT]).strip())


def seconds(moment: Any) -> float | None:
    """ISO 8601 as seconds since the epoch; None for what is no such time."""
    try:
        read = datetime.fromisoformat(str(moment).replace("Z", "+00:00"))
    except ValueError:
        return None
    return (read if read.tzinfo else read.replace(tzinfo=timezone.utc)).timestamp()


def span(length: float) -> str:
    """A length of time in seconds, in the two largest units that say something: 40 s, 12 min, 1 h 48 m, 3 d 4 h."""
    whole = max(0, int(length))
    if whole < 60:
        return f"{whole} s"
    minutes = whole // 60
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h {minutes} m" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if hours else f"{days} d"


def age(moment: Any, now: float) -> str:
    """How long ago a moment was; nothing if it is unknown."""
    then = seconds(moment)
    return "" if then is None else span(now - then)


def short(key: Any) -> str:
    """A ticket as people call it inside its change: `1.2` of `change#1.2`. What follows the key stays."""
    return shown(str(key).rpartition("#")[2])


def count(number: int, noun: str) -> str:
    """1 ticket, 2 tickets."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def finished(progress: Any) -> int:
    """Tickets that nothing more is owed for."""
    return sum(int(progress.get(name, 0)) for name in ("integrated", "external", "attested", "skipped"))


def plain(code: Any) -> str:
    """A reason code or a state as words."""
    return shown(str(code).replace("_", " "))


def listed(names: Sequence[str], most: int) -> str:
    """Names, the first few of them, and how many more there are."""
    more = len(names) - most
    return " ".join(names) if more <= 0 else f"{' '.join(names[:most])} and {more} more"


def joined(parts: Iterable[str]) -> str:
    """What there is to say, with commas."""
    return ", ".join(part for part in parts if part)


# How a ticket counts as finished without a receipt of Baton's.
UNPROVED = {"external": "ticked by hand", "attested": "attested", "skipped": "skipped"}


def unproved(counts: Mapping[str, int]) -> str:
    """How many of what is finished nothing was proved for, in words."""
    return joined(f"{counts[status]} {word}" for status, word in UNPROVED.items() if counts.get(status))


def moment(written: Any) -> str:
    """ISO 8601 in UTC as people read it; the zone stays visible."""
    return shown(written).replace("T", " ", 1) if written else "?"


def standing_why(held: Mapping[str, Any]) -> str:
    """What is said of unfinished work; what somebody noted of its agent's bad end comes last, as a quotation."""
    note = f"noted: {prose(held['note'])}" if held.get("note") and held.get("ended") not in (None, "completed") else ""
    return "; ".join(part for part in (prose(held.get("detail")), note) if part)


def happened(event: Mapping[str, Any]) -> str:
    """What an event is called for a person: `unknown` after a good end is no alarm."""
    left = event["name"] == "unknown" and event.get("cause") == "left_unsealed"
    return "to be checked" if left else plain(event["name"])
