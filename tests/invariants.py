"""One checker for what must always hold: store, git, tasks.md, worktrees and the user's checkout agree."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from baton_cli.core import integration, tasks
from baton_cli.core.lifecycle import FINAL, State
from tests.conftest import run_git
from tests.kit import World


@dataclass(frozen=True)
class Checkout:
    """What no command may change: HEAD, branch, index bytes and files (boxes of tasks.md aside)."""

    head: str
    symbolic: str
    index: str
    files: dict[str, str]


def checkout(root: Path) -> Checkout:
    """The user's checkout as it is. Reads files only, so that the index is not even refreshed."""
    common = root / ".git"
    symbolic = (common / "HEAD").read_text()
    index = hashlib.sha256((common / "index").read_bytes()).hexdigest()
    files = {}
    for path in sorted(root.rglob("*")):
        relative = path.relative_to(root)
        if relative.parts[0] in (".git", ".dsh") or not path.is_file():
            continue
        data = path.read_bytes()
        if path.name == "tasks.md":
            data = tasks.parse(data).digest.encode()
        files[relative.as_posix()] = f"{oct(path.stat().st_mode)} {hashlib.sha256(data).hexdigest()}"
    return Checkout(run_git(root, "rev-parse", "HEAD"), symbolic, index, files)


def check(world: World, before: Checkout | None = None) -> None:
    """Raise AssertionError naming the first thing that does not hold."""
    if before is not None:
        now = checkout(world.root)
        assert now == before, f"the checkout changed: {set(now.files.items()) ^ set(before.files.items())}, {now.head}"
    database = world.project.queue_db
    if not database.exists():
        return
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    try:
        _branch(world, connection)
        _assignments(world, connection)
        _boxes(world, connection)
    finally:
        connection.close()
    _left_overs(world)


def _rows(connection: sqlite3.Connection, sql: str, *parameters: object) -> list[sqlite3.Row]:
    return connection.execute(sql, parameters).fetchall()


def _branch(world: World, connection: sqlite3.Connection) -> None:
    """Each commit on the integration branch is ours, fits, and merges an assignment that no other commit merges."""
    for change in _rows(connection, "SELECT * FROM changes"):
        head = run_git(world.root, "rev-parse", f"refs/heads/{change['integration_branch']}")
        assert head == change["integration_head"], "the branch is not where the store says"
        log = run_git(
            world.root,
            "log",
            "--first-parent",
            "--reverse",
            "-z",
            "--format=%H%x01%T%x01%P%x01%B",
            f"{change['base']}..{head}",
        )
        previous, previous_tree = change["base"], run_git(world.root, "rev-parse", f"{change['base']}^{{tree}}")
        merged = []
        for entry in filter(None, log.split("\0")):
            oid, tree, parents, body = entry.strip("\n").split("\x01")
            evidence = integration.read_message(body)
            wrong = integration.fault(
                evidence,
                change=change["change"],
                tree=tree,
                parents=parents.split(),
                previous=previous,
                previous_tree=previous_tree,
            )
            assert wrong is None, f"{oid}: {wrong}"
            assert evidence is not None
            if evidence.assignment_id:
                merged.append(evidence.assignment_id)
            previous, previous_tree = oid, tree
        assert len(merged) == len(set(merged)), "an assignment is merged twice"
        recorded = {
            row["id"]
            for row in _rows(
                connection, "SELECT id FROM assignments WHERE change = ? AND state = 'integrated'", change["change"]
            )
        }
        assert recorded <= set(merged), f"integrated in the store, not on the branch: {recorded - set(merged)}"
        known = {row["id"] for row in _rows(connection, "SELECT id FROM assignments")}
        assert set(merged) & known <= recorded, "merged on the branch, open in the store"


def _assignments(world: World, connection: sqlite3.Connection) -> None:
    final = {state.value for state in FINAL}
    held = set()
    for row in _rows(connection, "SELECT * FROM assignments"):
        if row["state"] in final:
            continue
        assert row["ticket_id"] not in held, "two open assignments of one ticket"
        held.add(row["ticket_id"])
        if row["state"] == State.SEALED.value:
            kept = run_git(world.root, "rev-parse", f"refs/baton/sealed/{row['id']}")
            assert kept == row["sealed_head"], "the sealed head is not kept"
            body = _rows(connection, "SELECT body FROM receipts WHERE receipt = ?", row["receipt"])
            assert body, "sealed without a receipt"
            assert json.loads(body[0]["body"])["head"] == row["sealed_head"]
        place = world.project.worktrees / row["worktree"]
        if row["prepared_at"] is not None and place.exists():
            assert row["packet"] is not None
            assert (place / ".git").is_file(), f"{place} is no worktree"
    attempts = _rows(connection, "SELECT assignment_id, claim_token FROM attempts")
    assert len({row["claim_token"] for row in attempts}) == len(attempts), "a claim token was given twice"


def _boxes(world: World, connection: sqlite3.Connection) -> None:
    """No box is ticked for work that is not finished; who unticked what is the user's own affair."""
    document = tasks.parse(world.tasks.read_bytes())
    open_tickets = {
        row["fingerprint"]
        for row in _rows(
            connection,
            "SELECT a.fingerprint AS fingerprint FROM assignments a WHERE a.change = ? AND a.state IN ('claimed','sealed',"
            "'unknown','conflicted','rejected','exhausted')",
            world.change,
        )
    }
    finished = {
        row["fingerprint"] for row in _rows(connection, "SELECT fingerprint FROM completions WHERE revoked_at IS NULL")
    }
    for ticket in document.tickets:
        if ticket.done and ticket.fingerprint in open_tickets:
            assert ticket.fingerprint in finished, f"{ticket.id} is ticked while somebody works on it"


def _left_overs(world: World) -> None:
    state = world.project.state
    odd = [path for folder in ("packets", "receipts") for path in (state / folder).glob(".*")]
    assert not odd, f"half-written files: {odd}"
    locks = list((world.root / ".git" / "refs").rglob("*.lock"))
    assert not locks, f"lock files left: {locks}"
    for path in (state, *(state / folder for folder in ("packets", "receipts", "logs"))):
        if path.exists():
            assert path.stat().st_mode & 0o077 == 0, f"{path} is not private"
