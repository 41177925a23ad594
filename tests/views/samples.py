"""Values as `baton status` makes them, by hand."""

from __future__ import annotations

from collections import Counter
from typing import Any

from baton_cli.core.actions import iso, remedy, remedy_text

NOW = 1_790_000_000.0
STATUSES = ("integrated", "external", "attested", "skipped", "in_flight", "ready", "waiting", "blocked")


def held(state: str = "claimed", **more: Any) -> dict[str, Any]:
    """An assignment as the snapshot shows it."""
    value = {
        "id": "a1b2-7",
        "state": state,
        "reason": None,
        "detail": None,
        "attempt": 1,
        "agent": "child-7b3f",
        "session": "s-20",
        "since": iso(NOW - 12 * 60),
        "last_evidence_at": iso(NOW - 40),
        "lease_expires_at": iso(NOW + 108 * 60) if state == "claimed" else None,
        "branch": "baton/x/1",
        "worktree": "x/1",
        "receipt": None,
    }
    return value | more


def ticket(name: str, title: str, status: str, change: str = "add-dark-mode", **more: Any) -> dict[str, Any]:
    """One ticket; what it waits for is given in short form."""
    waits = [f"{change}#{key}" for key in more.pop("waits_for", ())]
    value = {
        "key": f"{change}#{name}",
        "id": name,
        "title": title,
        "line": 3,
        "ticked": status in STATUSES[:3],
        "status": status,
        "reason": None,
        "waits_for": waits,
        "waits_for_more": 0,
        "flags": [],
    }
    return value | more


def section(number: str | None, title: str, *tickets: dict[str, Any]) -> dict[str, Any]:
    """A section of a change."""
    return {"number": number, "title": title, "tickets": list(tickets)}


def change(*sections: dict[str, Any], name: str = "add-dark-mode", started: bool = True, **more: Any) -> dict[str, Any]:
    """A change with its counts and its attention list."""
    tickets = [one for part in sections for one in part["tickets"]]
    counts = Counter(one["status"] for one in tickets)
    progress = {"total": len(tickets), **{status: counts[status] for status in STATUSES}}
    done = sum(counts[status] for status in STATUSES[:4])
    state = "complete" if done == len(tickets) else "active" if counts["in_flight"] + counts["ready"] else "blocked"
    groups: dict[str, list[dict[str, Any]]] = {}
    for one in tickets:
        if one["status"] == "blocked":
            groups.setdefault(one["reason"], []).append(one)
    attention = [
        {
            "kind": "blocked",
            "reason": reason,
            "tickets": [one["key"] for one in members],
            "detail": f"{members[0]['key']}: {members[0]['title']}",
            "remedy": remedy_text(steps),
            "steps": steps,
        }
        for reason, members in groups.items()
        for steps in [remedy(reason, [one["key"] for one in members], "baton", "/home/ada/app")]
    ]
    value = {
        "change": name,
        "state": state,
        "revision": 1,
        "paused": None,
        "target_branch": "main" if started else None,
        "integration_branch": f"baton/{name}/integration" if started else None,
        "integration_head": "4f2a91c0d3e8b7a6" if started else None,
        "progress": progress,
        "boxes": {"total": len(tickets), "done": done},
        "attention": attention,
        "sections": list(sections),
    }
    return value | more


def status(*changes: dict[str, Any]) -> dict[str, Any]:
    """The whole answer."""
    return {"schema": "baton.status/1", "project": "/home/ada/app", "changes": list(changes)}


def dark_mode(**more: Any) -> dict[str, Any]:
    """A change in the middle of its way."""
    return change(
        section("1", "Foundations", *(ticket(f"1.{n}", f"Lay stone {n}", "integrated") for n in range(1, 7))),
        section("2", "Tokens", *(ticket(f"2.{n}", f"Colour token {n}", "integrated") for n in range(1, 6))),
        section(
            "3",
            "Settings",
            ticket("3.1", "Persist the choice", "in_flight", assignment=held(attempt=2)),
            ticket(
                "3.2",
                "Document the flag",
                "blocked",
                reason="exhausted",
                assignment=held("exhausted", attempt=3, detail="`pytest -q` exited with 1 (log logs/3.2-3.log)"),
            ),
            ticket("3.3", "Toggle in settings", "in_flight", assignment=held("sealed", agent="child-91aa")),
            ticket("3.4", "Keyboard short cut", "ready"),
            ticket(
                "3.5",
                "Verify both themes",
                "waiting",
                waits_for=["3.1", "3.2", "3.3", "3.4"],
                flags=["closing_check"],
            ),
        ),
        section(
            "4",
            "Rollout",
            *(
                ticket(f"4.{n}", f"Roll out step {n}", "waiting", waits_for=["3.1", "3.2", "3.3", "3.4", "3.5"])
                for n in (1, 2)
            ),
        ),
        **more,
    )


def large(sections: int = 10, size: int = 30) -> dict[str, Any]:
    """A plan of 300 tickets: two sections done, one under way with many ready tickets, the rest waits."""
    parts = []
    for at in range(1, sections + 1):
        tickets = []
        for n in range(1, size + 1):
            where = "integrated" if at < 3 else "ready" if at == 3 else "waiting"
            before = [f"{at - 1}.{k}" for k in range(1, 11)] + [f"and {size - 10} more"] if where == "waiting" else []
            tickets.append(ticket(f"{at}.{n}", f"Step {n} of the part that is called {at}", where, waits_for=before))
        parts.append(section(str(at), f"Part {at}", *tickets))
    for n in range(3):
        parts[2]["tickets"][n] |= {"status": "in_flight", "assignment": held(agent=f"child-{n}")}
    return change(*parts)
