"""Values of the board, by hand: what `Observer.board` gives, in any size."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from tests.views import samples
from tests.views.samples import held, section, ticket

AT = "2026-11-29T22:45:55Z"


def proof(digest: str, **more: Any) -> dict[str, Any]:
    """What a receipt says."""
    value = {
        "digest": digest,
        "head": digest[:40],
        "sealed_at": AT,
        "attempt": 1,
        "checks": [{"command": "make test", "exit_code": 0, "duration": 12.34}],
        "touches_checks": [],
        "empty_diff": False,
        "clean_environment": True,
        "detached": False,
        "operator": None,
    }
    return value | more


def integrated(name: str, title: str, change: str = "add-dark-mode", **more: Any) -> dict[str, Any]:
    """A finished ticket with the work behind it."""
    digest = hashlib.sha256(f"{change}#{name}".encode()).hexdigest()
    own = {
        "assignment": held("integrated", agent=f"child-{digest[:4]}", receipt=digest, state_since=AT),
        "proof": proof(digest),
        "evidence": {"kind": "integrated", "commit": digest[::-1][:40], "at": AT, "who": "child", "why": None},
    }
    return ticket(name, title, "integrated", change, **{**own, **more})


def change(*sections: dict[str, Any], after: Sequence[Sequence[int]] = (), **more: Any) -> dict[str, Any]:
    """A change with its edges; without `after` each section waits for the one before it."""
    value = samples.change(*sections, **more)
    for at, part in enumerate(value["sections"]):
        part["after"] = list(after[at]) if after else [at - 1] * (at > 0)
    return {"archived": None, **value}


def overview(*changes: dict[str, Any]) -> dict[str, Any]:
    """The whole value."""
    return {"schema": "baton.overview/1", "project": "app", "root": "/home/ada/app", "changes": list(changes)}


def dark_mode(**more: Any) -> dict[str, Any]:
    """The change of the queue view's tests, with receipts behind what is done."""
    value = samples.dark_mode(**more)
    parts = [
        section(part["number"], part["title"], *(
            integrated(one["id"], one["title"]) if one["status"] == "integrated" else one for one in part["tickets"]
        ))
        for part in value["sections"]
    ]  # fmt: skip
    return change(*parts, **more)


def many(changes: int, sections: int, size: int) -> dict[str, Any]:
    """Changes of that many sections of that many tickets, with every status in each."""
    found = []
    for at in range(changes):
        name = f"change-{at}"
        parts = [
            section(str(number), f"Part {number}", *(_one(name, number, place) for place in range(1, size + 1)))
            for number in range(1, sections + 1)
        ]
        found.append(change(*parts, name=name))
    return overview(*found)


def _one(name: str, number: int, place: int) -> dict[str, Any]:
    key, title = f"{number}.{place}", f"Step {place} of the part that is called {number}"
    kind = (number * 7 + place) % 10
    if kind < 6:
        return integrated(key, title, name)
    if kind == 6:
        return ticket(key, title, "in_flight", name, assignment=held())
    if kind == 7:
        return ticket(key, title, "blocked", name, reason="manual")
    if kind == 8:
        return ticket(key, title, "waiting", name, waits_for=[f"{number}.1"])
    return ticket(key, title, "ready", name)
