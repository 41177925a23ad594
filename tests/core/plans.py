"""Plans as the tests of the core write them: keys from ids alone, checks from one place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from baton_cli.core import tasks
from baton_cli.core.plan import CheckSources, Plan, build

PROJECT = CheckSources(change=None, project=("pytest -q",), detected=(), timeout=1800)
NONE = CheckSources(change=None, project=None, detected=(), timeout=1800)


def keys_of(document: tasks.Document, change: str) -> list[str]:
    ids = [ticket.id for ticket in document.tickets]
    return [
        f"{change}#{own}" if own and ids.count(own) == 1 else f"{change}#L{number}" for number, own in enumerate(ids, 1)
    ]


def plan(
    text: str, *, sources: CheckSources = PROJECT, change: str = "c", skipped: Sequence[str] = (), **more: Any
) -> Plan:
    document = tasks.parse(text.encode())
    skips = {f"{change}#{name}" for name in skipped}
    return build(change, document, keys_of(document, change), sources=sources, skipped=skips, **more)
