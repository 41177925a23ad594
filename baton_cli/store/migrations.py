"""Named schema steps. Each is applied and recorded in one transaction, and never edited once released."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3

STATES = "('claimed','unknown','sealed','conflicted','rejected','exhausted','integrated','abandoned')"
OPEN_STATES = "('claimed','unknown','sealed','conflicted','rejected','exhausted')"
KINDS = "('integrated','attested','skipped')"


def m001_initial(connection: sqlite3.Connection) -> None:
    """The tables of the first release."""
    for statement in _M001:
        connection.execute(statement)


_M001 = (
    """CREATE TABLE changes (
            change TEXT PRIMARY KEY, target_branch TEXT, base TEXT NOT NULL, integration_branch TEXT NOT NULL,
            integration_head TEXT NOT NULL, paused TEXT, started_at REAL NOT NULL)""",
    """CREATE TABLE revisions (
            revision INTEGER PRIMARY KEY, change TEXT NOT NULL, number INTEGER NOT NULL, digest TEXT NOT NULL,
            text BLOB NOT NULL, recorded_at REAL NOT NULL, UNIQUE (change, number))""",
    """CREATE TABLE tickets (
            ticket_id INTEGER PRIMARY KEY, change TEXT NOT NULL, key TEXT NOT NULL, id TEXT, fingerprint TEXT NOT NULL,
            title TEXT NOT NULL, text TEXT NOT NULL, section_title TEXT NOT NULL, position INTEGER,
            ambiguous INTEGER NOT NULL DEFAULT 0, label INTEGER)""",
    "CREATE INDEX tickets_of_change ON tickets (change, position)",
    f"""CREATE TABLE completions (
            completion INTEGER PRIMARY KEY, change TEXT NOT NULL, ticket_id INTEGER NOT NULL REFERENCES tickets,
            kind TEXT NOT NULL CHECK (kind IN {KINDS}), fingerprint TEXT NOT NULL, assignment_id TEXT, commit_oid TEXT,
            checks TEXT NOT NULL, who TEXT, why TEXT, at REAL NOT NULL, revoked_at REAL)""",
    "CREATE INDEX completions_of_change ON completions (change, ticket_id)",
    f"""CREATE TABLE assignments (
            id TEXT PRIMARY KEY, change TEXT NOT NULL, ticket_id INTEGER NOT NULL REFERENCES tickets, ticket TEXT NOT NULL,
            title TEXT NOT NULL, fingerprint TEXT NOT NULL, state TEXT NOT NULL CHECK (state IN {STATES}),
            reason TEXT, detail TEXT, branch TEXT NOT NULL, worktree TEXT NOT NULL, base TEXT, packet TEXT, placed TEXT,
            prepared_at REAL, sealed_head TEXT, receipt TEXT, sealed_at REAL, onto TEXT, refused_head TEXT,
            conflicts INTEGER NOT NULL DEFAULT 0, integrated_commit TEXT, removed_at REAL, kept TEXT,
            created_at REAL NOT NULL, state_since REAL NOT NULL, attempt INTEGER NOT NULL)""",
    f"CREATE UNIQUE INDEX one_open_assignment ON assignments (ticket_id) WHERE state IN {OPEN_STATES}",
    "CREATE INDEX assignments_of_change ON assignments (change, state)",
    """CREATE TABLE attempts (
            assignment_id TEXT NOT NULL REFERENCES assignments, number INTEGER NOT NULL, kind TEXT NOT NULL,
            session TEXT NOT NULL, claim_token TEXT NOT NULL, agent TEXT, claimed_at REAL NOT NULL,
            lease_expires_at REAL NOT NULL, evidence_at REAL NOT NULL, start_head TEXT, start_dirty TEXT, checkout TEXT,
            terminal TEXT, note TEXT, settled_at REAL, counted INTEGER NOT NULL DEFAULT 0,
            batch INTEGER REFERENCES batches, PRIMARY KEY (assignment_id, number)) WITHOUT ROWID""",
    """CREATE TABLE packets (
            packet TEXT PRIMARY KEY, assignment_id TEXT NOT NULL, body BLOB NOT NULL, created_at REAL NOT NULL)""",
    """CREATE TABLE receipts (
            receipt TEXT PRIMARY KEY, assignment_id TEXT NOT NULL, attempt INTEGER NOT NULL, body BLOB NOT NULL,
            created_at REAL NOT NULL)""",
    """CREATE TABLE proofs (
            change TEXT NOT NULL, tree TEXT NOT NULL, command TEXT NOT NULL, at REAL NOT NULL,
            PRIMARY KEY (change, tree, command)) WITHOUT ROWID""",
    """CREATE TABLE batches (
            batch INTEGER PRIMARY KEY, change TEXT NOT NULL, session TEXT NOT NULL, body TEXT NOT NULL,
            created_at REAL NOT NULL, acknowledged_at REAL)""",
    "CREATE INDEX batches_of_session ON batches (change, session) WHERE acknowledged_at IS NULL",
    """CREATE TABLE events (
            event INTEGER PRIMARY KEY, at REAL NOT NULL, change TEXT NOT NULL, name TEXT NOT NULL, ticket TEXT,
            assignment_id TEXT, attempt INTEGER, session TEXT, cause TEXT, detail TEXT)""",
    "CREATE INDEX events_of_change ON events (change, event)",
    "CREATE TRIGGER events_are_append_only BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'append only'); END",
    "CREATE TRIGGER events_are_kept BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'append only'); END",
)


MIGRATIONS: tuple[Callable[[sqlite3.Connection], None], ...] = (m001_initial,)
