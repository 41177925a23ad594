"""Packets, receipts and batches: bodies that are kept exactly as they were made."""

from __future__ import annotations

import json

from baton_cli.core.canonical import digest
from baton_cli.core.facts import Batch
from baton_cli.store.db import Store


def add_packet(store: Store, assignment_id: str, body: bytes, at: float) -> str:
    """Keep a packet; its digest. Inside a transaction."""
    name = digest(body)
    sql = "INSERT OR IGNORE INTO packets (packet, assignment_id, body, created_at) VALUES (?, ?, ?, ?)"
    store.write(sql, (name, assignment_id, body, at))
    return name


def packet(store: Store, name: str) -> bytes | None:
    """The bytes of a packet."""
    row = store.row("SELECT body FROM packets WHERE packet = ?", (name,))
    return bytes(row["body"]) if row else None


def add_receipt(store: Store, assignment_id: str, attempt: int, name: str, body: bytes, at: float) -> None:
    """Keep a receipt under its digest. Inside a transaction."""
    sql = "INSERT OR IGNORE INTO receipts (receipt, assignment_id, attempt, body, created_at) VALUES (?, ?, ?, ?, ?)"
    store.write(sql, (name, assignment_id, attempt, body, at))


def receipt(store: Store, name: str) -> bytes | None:
    """The bytes of a receipt."""
    row = store.row("SELECT body FROM receipts WHERE receipt = ?", (name,))
    return bytes(row["body"]) if row else None


def receipts_of(store: Store, change: str) -> dict[str, bytes]:
    """The receipts in which a change's assignments ended so far, by digest."""
    sql = """SELECT DISTINCT r.receipt AS receipt, r.body AS body FROM receipts r
        JOIN assignments a ON a.receipt = r.receipt WHERE a.change = ?"""
    return {row["receipt"]: bytes(row["body"]) for row in store.rows(sql, (change,))}


def open_batch(store: Store, change: str, session: str) -> Batch | None:
    """The newest batch of the session that nothing has acknowledged."""
    sql = """SELECT batch, change, session, body FROM batches
        WHERE change = ? AND session = ? AND acknowledged_at IS NULL ORDER BY batch DESC LIMIT 1"""
    row = store.row(sql, (change, session))
    return Batch(**dict(row)) if row else None


def add_batch(store: Store, change: str, session: str, at: float) -> int:
    """Begin a batch; its number. Inside a transaction."""
    return store.insert("batches", change=change, session=session, body="[]", created_at=at)


def fill_batch(store: Store, batch: int, body: str) -> None:
    """Keep the text of a batch. Inside a transaction."""
    store.write("UPDATE batches SET body = ? WHERE batch = ?", (body, batch))


def acknowledge(store: Store, batch: int | None, at: float) -> None:
    """Somebody showed that the batch arrived. Inside a transaction."""
    if batch is not None:
        sql = "UPDATE batches SET acknowledged_at = ? WHERE batch = ? AND acknowledged_at IS NULL"
        store.write(sql, (at, batch))


def earlier_work(store: Store, ticket_id: int, fingerprint: str) -> dict[str, str] | None:
    """The newest integrated work on another text of this ticket: its commit and that text."""
    row = store.row(
        """SELECT c.commit_oid AS commit_oid, p.body AS body FROM completions c
        LEFT JOIN assignments a ON a.id = c.assignment_id LEFT JOIN packets p ON p.packet = a.packet
        WHERE c.ticket_id = ? AND c.kind = 'integrated' AND c.fingerprint <> ? AND c.revoked_at IS NULL
        ORDER BY c.completion DESC LIMIT 1""",
        (ticket_id, fingerprint),
    )
    if row is None:
        return None
    return {"commit": row["commit_oid"], "text": json.loads(row["body"])["ticket"]["text"] if row["body"] else ""}
