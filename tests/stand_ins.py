"""Small values for tests of the core and the store, with everything that does not matter filled in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from baton_cli.core import canonical, packet, receipt, tasks
from baton_cli.core.facts import Change, Completion
from baton_cli.core.lifecycle import Assignment, Attempt, State
from baton_cli.core.plan import CheckSources, Plan, build
from baton_cli.core.receipt import SealedReceipt, verify
from baton_cli.store.db import Store
from baton_cli.store.plans import TicketRow, record_revision, start_change

CHANGE = "grow"
BASE, HEAD, TREE = "a" * 40, "b" * 40, "c" * 40
CHECKED = CheckSources(change=None, project=("pytest -q",), detected=(), timeout=1800)
UNCHECKED = CheckSources(change=None, project=None, detected=(), timeout=1800)


def make_attempt(number: int = 1, **more: Any) -> Attempt:
    values: dict[str, Any] = {
        "number": number,
        "session": "s-1",
        "claim_token": f"token-{number}",
        "agent": None,
        "claimed_at": 100.0,
        "lease_expires_at": 7300.0,
        "evidence_at": 100.0,
        "start_head": None,
        "start_dirty": None,
        "checkout": None,
        "terminal": None,
        "note": None,
        "settled_at": None,
        "counted": False,
        "batch": None,
        "kind": "dispatch",
    }
    return Attempt(**{**values, **more})


def make_assignment(id: str = "0a1b2c3d-00000001", *, attempt: Attempt | None = None, **more: Any) -> Assignment:
    values: dict[str, Any] = {
        "id": id,
        "change": CHANGE,
        "ticket_id": 1,
        "ticket": f"{CHANGE}#1.1",
        "title": "Lay the first stone",
        "fingerprint": "f" * 16,
        "state": State.CLAIMED,
        "reason": None,
        "detail": None,
        "branch": f"baton/{CHANGE}/1.1-00000001",
        "worktree": f"{CHANGE}/00000001",
        "base": None,
        "packet": None,
        "placed": None,
        "prepared_at": None,
        "sealed_head": None,
        "receipt": None,
        "sealed_at": None,
        "onto": None,
        "refused_head": None,
        "conflicts": 0,
        "integrated_commit": None,
        "removed_at": None,
        "kept": None,
        "created_at": 100.0,
        "state_since": 100.0,
        "attempt": attempt or make_attempt(),
    }
    return Assignment(**{**values, **more})


def make_completion(ticket_id: int = 1, kind: str = "integrated", **more: Any) -> Completion:
    values: dict[str, Any] = {
        "ticket_id": ticket_id,
        "kind": kind,
        "fingerprint": "f" * 16,
        "assignment_id": None,
        "commit": None,
        "checks": (),
        "who": None,
        "why": None,
        "at": 100.0,
    }
    return Completion(**{**values, **more})


def make_plan(text: str, change: str = CHANGE, sources: CheckSources = CHECKED, **more: Any) -> Plan:
    """A plan of a tasks.md in which every ticket has an id of its own."""
    document = tasks.parse(text.encode())
    return build(change, document, [f"{change}#{ticket.id}" for ticket in document.tickets], sources=sources, **more)


def ids_of(plan: Plan) -> dict[str, int]:
    """Ticket ids as the store would give them: 1, 2, 3 ... in plan order."""
    return {planned.key: number for number, planned in enumerate(plan.tickets, 1)}


def make_packet(plan: Plan | None = None, key: str | None = None, **more: Any) -> dict[str, Any]:
    plan = plan or make_plan("## 1. Ground\n- [ ] 1.1 Lay the first stone\n")
    planned = plan.by_key[key] if key else plan.tickets[0]
    values: dict[str, Any] = {
        "assignment_id": "0a1b2c3d-00000001",
        "change": plan.change,
        "planned": planned,
        "section": plan.document.sections[planned.ticket.section].title,
        "base": BASE,
        "branch": "baton/grow/1.1-00000001",
        "worktree": "/p/.dsh/baton/worktrees/grow/00000001",
        "cwd": "/p/.dsh/baton/worktrees/grow/00000001",
        "prefix": "",
        "dependencies": [],
        "earlier": None,
        "documents": [],
        "protected": ["openspec/changes/grow", "baton.toml"],
        "created_at": "2026-01-01T00:00:00Z",
    }
    return packet.build(**{**values, **more})


def passed(*commands: str) -> list[dict[str, Any]]:
    """The records of checks that exited with 0."""
    return [{"command": command, "exit_code": 0, "duration": 1.5, "output_digest": "d" * 64} for command in commands]


def receipt_bytes(task_packet: dict[str, Any], **more: Any) -> tuple[str, bytes]:
    """The digest and bytes of a receipt that fits the packet."""
    values: dict[str, Any] = {
        "assignment_id": task_packet["assignment_id"],
        "attempt": 1,
        "packet": canonical.digest_of(task_packet),
        "base": task_packet["base"],
        "head": HEAD,
        "tree": TREE,
        "checks": passed(*(check["command"] for check in task_packet["checks"])),
        "ignored": [],
        "clean_environment": True,
        "touched": [],
        "empty_diff": False,
        "operator": None,
        "detached": False,
        "versions": {"baton": "5", "git": "2.39", "python": "3.11"},
        "started_at": "2026-01-01T00:00:00Z",
        "sealed_at": "2026-01-01T00:01:00Z",
    }
    return receipt.build(**{**values, **more})


def sealed_receipt(task_packet: dict[str, Any] | None = None, **more: Any) -> SealedReceipt:
    """A receipt that went through `verify`, the only way to get one."""
    task_packet = task_packet or make_packet()
    name, body = receipt_bytes(task_packet, **more)
    return verify(
        body,
        assignment_id=task_packet["assignment_id"],
        base=task_packet["base"],
        sealed_head=more.get("head", HEAD),
        receipt_digest=name,
        packet_digest=canonical.digest_of(task_packet),
        packet=task_packet,
    )


def ticket_rows(plan: Plan, known: Sequence[int | None] = ()) -> list[TicketRow]:
    """The tickets of a plan as one revision has them; `known` are their ids by position."""
    return [
        TicketRow(
            ticket_id=known[position] if position < len(known) else None,
            key=planned.key,
            id=planned.ticket.id,
            fingerprint=planned.ticket.fingerprint,
            title=planned.ticket.title,
            text=planned.ticket.text,
            section_title=plan.document.sections[planned.ticket.section].title,
            position=position,
            ambiguous="ambiguous" in planned.flags,
            label=None,
        )
        for position, planned in enumerate(plan.tickets)
    ]


def record(store: Store, plan: Plan, known: Sequence[int | None] = (), at: float = 100.0) -> dict[str, int]:
    """Record a plan as a revision, and its change when it is new; ticket ids by key."""
    with store.transaction():
        if store.row("SELECT 1 FROM changes WHERE change = ?", (plan.change,)) is None:
            start_change(store, make_change(plan.change))
        data = plan.document.data
        _, ids = record_revision(store, plan.change, plan.document.digest, data, ticket_rows(plan, known), at)
    return {planned.key: ticket_id for planned, ticket_id in zip(plan.tickets, ids, strict=True)}


def make_change(change: str = CHANGE, **more: Any) -> Change:
    values: dict[str, Any] = {
        "change": change,
        "target_branch": "main",
        "base": BASE,
        "integration_branch": f"baton/{change}/integration",
        "integration_head": BASE,
        "paused": None,
        "started_at": 100.0,
    }
    return Change(**{**values, **more})
