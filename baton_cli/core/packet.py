"""The Task Packet: the frozen, hashed input of an assignment, and the page that a worker reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from baton_cli.core.plan import Check, PlannedTicket

SCHEMA = "baton.packet/1"
# A folder with hundreds of specs must not make packets of megabytes; the digest still names what was left out.
DOCUMENT_LIMIT = 200_000


def build(
    *,
    assignment_id: str,
    change: str,
    planned: PlannedTicket,
    section: str,
    base: str,
    branch: str,
    worktree: str,
    cwd: str,
    prefix: str,
    dependencies: Sequence[Mapping[str, Any]],
    earlier: Mapping[str, Any] | None,
    documents: Sequence[Mapping[str, Any]],
    protected: Sequence[str],
    created_at: str,
) -> dict[str, Any]:
    """The packet as a value. No token and no value of any secret file goes in."""
    ticket = planned.ticket
    return {
        "schema": SCHEMA,
        "assignment_id": assignment_id,
        "change": change,
        "ticket": {
            "key": planned.key,
            "id": ticket.id,
            "fingerprint": ticket.fingerprint,
            "title": ticket.title,
            "text": ticket.text,
            "body": ticket.body,
            "section": section,
            "flags": list(planned.flags),
            "checklist": [box.text for box in ticket.checklist],
        },
        "dependencies": list(dependencies),
        "earlier": dict(earlier) if earlier else None,
        "base": base,
        "branch": branch,
        "worktree": worktree,
        "cwd": cwd,
        "prefix": prefix,
        "documents": list(documents),
        "checks": [check_value(check) for check in planned.checks],
        "protected": list(protected),
        "created_at": created_at,
    }


def check_value(check: Check) -> dict[str, Any]:
    """A check as packets and plans show it; the time limit is in seconds."""
    return {"command": check.command, "timeout": check.timeout, "source": check.source}


def document(name: str, text: str, digest: str) -> dict[str, Any]:
    """One document of the change, cut at a size that still reads well."""
    cut = len(text) > DOCUMENT_LIMIT
    return {"name": name, "digest": digest, "text": text[:DOCUMENT_LIMIT], "cut": cut}


def allows_empty_diff(packet: Mapping[str, Any]) -> bool:
    """A ticket that only verifies others may have nothing to change."""
    return "closing_check" in packet["ticket"]["flags"]


def page(packet: Mapping[str, Any]) -> str:
    """The packet as Markdown for the worker."""
    ticket = packet["ticket"]
    lines = [
        f"# {ticket['key']}: {ticket['title']}",
        "",
        f"- change: {packet['change']}, section: {ticket['section']}",
        f"- work in: {packet['cwd']}",
        f"- branch: {packet['branch']}, based on {packet['base']}",
        "",
        "## Task",
        "",
        ticket["text"],
    ]
    if ticket["body"]:
        lines += ["", ticket["body"]]
    lines += ["", "## Checks that must pass", ""]
    lines += [
        f"- `{check['command']}` (limit {check['timeout']} s, from {check['source']})" for check in packet["checks"]
    ]
    if packet["protected"]:
        lines += ["", "## Do not change", ""] + [f"- {path}" for path in packet["protected"]]
    if packet["earlier"]:
        earlier = packet["earlier"]
        lines += [
            "",
            "## Earlier work",
            "",
            f"This ticket was integrated before as {earlier['commit']}, with another text:",
        ]
        lines += ["", earlier["text"]]
    if packet["dependencies"]:
        lines += ["", "## Already integrated", ""]
        lines += [
            f"- {item['key']}: {item['title']} ({item['commit'] or item['evidence']})"
            for item in packet["dependencies"]
        ]
    for item in packet["documents"]:
        lines += ["", f"## {item['name']}", "", item["text"]]
        if item["cut"]:
            lines += ["", f"(cut after {DOCUMENT_LIMIT} characters)"]
    return "\n".join(lines) + "\n"
