"""Changes, plan revisions, tickets and the facts that finish them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from baton_cli.core.facts import Change, Completion, Revision
from baton_cli.core.identity import KnownTicket
from baton_cli.store.db import Store


def get_change(store: Store, change: str) -> Change | None:
    """What is recorded about a change; None before it is first run."""
    row = store.row("SELECT * FROM changes WHERE change = ?", (change,))
    return Change(**dict(row)) if row else None


def all_changes(store: Store) -> tuple[Change, ...]:
    """Every change that was ever run, in name order."""
    return tuple(Change(**dict(row)) for row in store.rows("SELECT * FROM changes ORDER BY change"))


def start_change(store: Store, change: Change) -> None:
    """Record a change that is run for the first time. Inside a transaction."""
    store.insert(
        "changes",
        change=change.change,
        target_branch=change.target_branch,
        base=change.base,
        integration_branch=change.integration_branch,
        integration_head=change.integration_head,
        paused=change.paused,
        started_at=change.started_at,
    )


def set_integration_head(store: Store, change: str, old: str, new: str) -> bool:
    """Move the recorded head from `old` to `new`; False when it was not at `old`. Inside a transaction."""
    sql = "UPDATE changes SET integration_head = ? WHERE change = ? AND integration_head = ?"
    return store.write(sql, (new, change, old)) == 1


def set_base(store: Store, change: str, base: str) -> None:
    """Begin a change, on which nothing is integrated, at another commit. Inside a transaction."""
    store.write("UPDATE changes SET base = ?, integration_head = ? WHERE change = ?", (base, base, change))


def set_paused(store: Store, change: str, paused: str | None) -> None:
    """Pause (who and why) or resume (None) a change. Inside a transaction."""
    store.write("UPDATE changes SET paused = ? WHERE change = ?", (paused, change))


def latest_revision(store: Store, change: str) -> Revision | None:
    """The newest recorded revision."""
    row = store.row(
        "SELECT number, digest, recorded_at FROM revisions WHERE change = ? ORDER BY number DESC LIMIT 1", (change,)
    )
    return Revision(**dict(row)) if row else None


class TicketRow(NamedTuple):
    """A ticket as one revision has it; `ticket_id` is None for a new one, `position` None for a removed one."""

    ticket_id: int | None
    key: str
    id: str | None
    fingerprint: str
    title: str
    text: str
    section_title: str
    position: int | None
    ambiguous: bool
    label: int | None


# What the column `ambiguous` holds: a row for a line that may be one of several tickets (without a position it is
# history), or a ticket that one of those lines may be.
STANDS_IN, UNSURE = 1, 2


def known_tickets(store: Store, change: str) -> tuple[KnownTicket, ...]:
    """Every ticket the change ever had, the present ones in plan order first."""
    rows = store.rows(
        "SELECT * FROM tickets WHERE change = ? AND (ambiguous <> ? OR position IS NOT NULL)"
        " ORDER BY position IS NULL, position, ticket_id",
        (change, STANDS_IN),
    )
    return tuple(
        KnownTicket(
            ticket_id=row["ticket_id"],
            id=row["id"],
            fingerprint=row["fingerprint"],
            section_title=row["section_title"],
            text=row["text"],
            label=row["label"],
            present=row["position"] is not None,
            key=row["key"],
            unsure=row["ambiguous"] == UNSURE,
            stands_in=row["ambiguous"] == STANDS_IN,
        )
        for row in rows
    )


def unsure_tickets(store: Store, change: str) -> frozenset[int]:
    """The tickets that may be one of the ambiguous ones of the latest revision."""
    rows = store.rows("SELECT ticket_id FROM tickets WHERE change = ? AND ambiguous = ?", (change, UNSURE))
    return frozenset(row["ticket_id"] for row in rows)


def next_label(store: Store, change: str) -> int:
    """The next number for a ticket without an id of its own. Numbers are never reused."""
    row = store.row("SELECT coalesce(max(label), 0) + 1 AS label FROM tickets WHERE change = ?", (change,))
    return int(row["label"]) if row else 1


def record_revision(
    store: Store,
    change: str,
    digest: str,
    text: bytes,
    tickets: Sequence[TicketRow],
    at: float,
    unsure: Sequence[int] = (),
) -> tuple[Revision, tuple[int, ...]]:
    """Record a revision and its tickets; the revision and the ticket ids by position. Inside a transaction.

    `unsure` are the known tickets that the ambiguous ones may be.
    """
    row = store.row("SELECT coalesce(max(number), 0) + 1 AS number FROM revisions WHERE change = ?", (change,))
    number = int(row["number"]) if row else 1
    store.insert("revisions", change=change, number=number, digest=digest, text=text, recorded_at=at)
    store.write("UPDATE tickets SET position = NULL WHERE change = ?", (change,))
    store.write("UPDATE tickets SET ambiguous = 0 WHERE change = ? AND ambiguous = ?", (change, UNSURE))
    for ticket_id in unsure:
        store.write("UPDATE tickets SET ambiguous = ? WHERE ticket_id = ?", (UNSURE, ticket_id))
    ticket_ids = []
    for ticket in tickets:
        values = {
            "key": ticket.key,
            "id": ticket.id,
            "fingerprint": ticket.fingerprint,
            "title": ticket.title,
            "text": ticket.text,
            "section_title": ticket.section_title,
            "position": ticket.position,
            "ambiguous": STANDS_IN if ticket.ambiguous else 0,
            "label": ticket.label,
        }
        if ticket.ticket_id is None:
            ticket_ids.append(store.insert("tickets", change=change, **values))
            continue
        names = ", ".join(f"{name} = ?" for name in values)
        store.write(f"UPDATE tickets SET {names} WHERE ticket_id = ?", (*values.values(), ticket.ticket_id))
        ticket_ids.append(ticket.ticket_id)
    return Revision(number, digest, at), tuple(ticket_ids)


class PresentTicket(NamedTuple):
    """Identity of a ticket of the latest revision."""

    ticket_id: int
    key: str
    ambiguous: bool


def present_tickets(store: Store, change: str) -> tuple[PresentTicket, ...]:
    """The tickets of the latest revision, by position."""
    sql = "SELECT ticket_id, key, ambiguous FROM tickets WHERE change = ? AND position IS NOT NULL ORDER BY position"
    return tuple(
        PresentTicket(row["ticket_id"], row["key"], bool(row["ambiguous"])) for row in store.rows(sql, (change,))
    )


def completions(store: Store, change: str) -> tuple[Completion, ...]:
    """The completion facts in force, oldest first."""
    sql = "SELECT * FROM completions WHERE change = ? AND revoked_at IS NULL ORDER BY completion"
    return tuple(
        Completion(
            ticket_id=row["ticket_id"],
            kind=row["kind"],
            fingerprint=row["fingerprint"],
            assignment_id=row["assignment_id"],
            commit=row["commit_oid"],
            checks=tuple(json.loads(row["checks"])),
            who=row["who"],
            why=row["why"],
            at=row["at"],
        )
        for row in store.rows(sql, (change,))
    )


def complete(store: Store, change: str, completion: Completion) -> None:
    """Record that a ticket is finished. Inside a transaction."""
    store.insert(
        "completions",
        change=change,
        ticket_id=completion.ticket_id,
        kind=completion.kind,
        fingerprint=completion.fingerprint,
        assignment_id=completion.assignment_id,
        commit_oid=completion.commit,
        checks=json.dumps(list(completion.checks), ensure_ascii=False),
        who=completion.who,
        why=completion.why,
        at=completion.at,
    )


def revoke_completions(store: Store, ticket_id: int, at: float) -> int:
    """Take back every completion of a ticket (`reopen`); how many there were. Inside a transaction."""
    sql = "UPDATE completions SET revoked_at = ? WHERE ticket_id = ? AND revoked_at IS NULL"
    return store.write(sql, (at, ticket_id))


def proved_commands(store: Store, change: str, tree: str) -> frozenset[str]:
    """The commands that passed on exactly this tree in a clean place."""
    rows = store.rows("SELECT command FROM proofs WHERE change = ? AND tree = ?", (change, tree))
    return frozenset(row["command"] for row in rows)


def record_proofs(store: Store, change: str, tree: str, commands: Sequence[str], at: float) -> None:
    """Record that these commands passed on this tree. Inside a transaction."""
    for command in commands:
        sql = "INSERT OR IGNORE INTO proofs (change, tree, command, at) VALUES (?, ?, ?, ?)"
        store.write(sql, (change, tree, command, at))


def integrated_commands(store: Store, change: str) -> tuple[str, ...]:
    """The check commands of every ticket ever integrated, in order, each once."""
    sql = "SELECT checks FROM completions WHERE change = ? AND kind = 'integrated' ORDER BY completion"
    found = (command for row in store.rows(sql, (change,)) for command in json.loads(row["checks"]))
    return tuple(dict.fromkeys(found))
