"""A list of names in a sentence: the first few, and how many more there are."""

from __future__ import annotations

from collections.abc import Sequence


def named(names: Sequence[str], most: int = 5) -> str:
    """The names with commas between them."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
