"""One checker for what must always hold: store, git, tasks.md, worktrees and the user's checkout agree."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from baton_cli.core import canonical, integration, receipt, tasks
from baton_cli.core.lifecycle import FINAL, TABLE, State
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


def check(world: World, before: Checkout | None = None, *, edited: bool = False) -> None:
    """Raise AssertionError naming the first thing that does not hold.

    `edited`: a person has been at the boxes, so what they say is only judged by `ticks` and `settled`.
    """
    if before is not None:
        now = checkout(world.root)
        assert now == before, f"the checkout changed: {set(now.files.items()) ^ set(before.files.items())}, {now.head}"
    database = world.project.queue_db
    if not database.exists():
        return
    with _opened(world) as connection:
        refs = _refs(world)
        _branch(world, connection, refs)
        _assignments(world, connection, refs)
        _receipts(connection)
        _history(connection)
        _worktrees(world, connection, refs)
        if not edited:
            _boxes(world, connection)
    _left_overs(world)


def ticks(world: World, before: bytes, *, everything: bool = False, untick: bool = False) -> None:
    """After a call: what it wrote into tasks.md (`before`: the bytes it found).

    Only boxes changed; each new tick is that of a ticket whose very text is finished and which is told apart; nothing
    was un-ticked (but by `reopen`). With `everything` (after `actions`), every such ticket is ticked.
    """
    was, now = tasks.parse(before), tasks.parse(world.tasks.read_bytes())
    assert was.digest == now.digest, "more than boxes was written"
    with _opened(world) as connection:
        latest = _rows(
            connection, "SELECT digest FROM revisions WHERE change = ? ORDER BY number DESC LIMIT 1", world.change
        )
        if not latest or latest[0]["digest"] != now.digest:  # only `actions` and decisions record a revision
            facts = _rows(connection, "SELECT fingerprint FROM completions WHERE revoked_at IS NULL")
            texts = {row["fingerprint"] for row in facts}
            for old, new in zip(was.tickets, now.tickets, strict=True):
                assert old.done or not new.done or new.fingerprint in texts, f"{new.title} was ticked, not finished"
            return
        finished = {
            row["position"]
            for row in _rows(
                connection,
                "SELECT t.position AS position FROM tickets t JOIN completions c ON c.ticket_id = t.ticket_id"
                " AND c.fingerprint = t.fingerprint WHERE t.change = ? AND t.position IS NOT NULL AND t.ambiguous = 0"
                " AND c.revoked_at IS NULL AND c.completion = (SELECT max(d.completion) FROM completions d WHERE"
                " d.ticket_id = c.ticket_id AND d.fingerprint = c.fingerprint AND d.revoked_at IS NULL)"
                " AND c.kind IN ('integrated', 'attested')",
                world.change,
            )
        }
    for old, new in zip(was.tickets, now.tickets, strict=True):
        if new.position in finished:
            assert new.done or not everything, f"{new.id or new.title} is finished and not ticked"
        else:
            for box, other in zip(old.boxes, new.boxes, strict=True):
                assert box.done or not other.done, f"{new.id or new.title} was ticked and is not finished"
        if not untick:
            for box, other in zip(old.boxes, new.boxes, strict=True):
                assert other.done or not box.done, f"{new.id or new.title} was un-ticked"


def settled(world: World) -> None:
    """After an `actions` call: no finished or removed ticket is anybody's current task, and all numbers agree."""
    shown = world.status()
    listed = [ticket for section in shown["sections"] for ticket in section["tickets"]]
    counts: dict[str, int] = {}
    held = set()
    for ticket in listed:
        counts[ticket["status"]] = counts.get(ticket["status"], 0) + 1
        if "assignment" in ticket:
            held.add(ticket["assignment"]["id"])
            assert ticket["status"] in ("in_flight", "blocked"), f"{ticket['key']} is {ticket['status']} and held"
    told = {name: count for name, count in shown["progress"].items() if name != "total" and count}
    assert (told, shown["progress"]["total"]) == (counts, len(listed)), "progress does not add up"
    unsure = any("ambiguous" in ticket["flags"] for ticket in listed)
    with _opened(world) as connection:
        for row in _rows(
            connection,
            "SELECT a.id AS id, a.state AS state, t.ambiguous AS ambiguous FROM assignments a JOIN tickets t ON"
            " t.ticket_id = a.ticket_id WHERE a.change = ?",
            world.change,
        ):
            if State(row["state"]) not in FINAL and row["id"] not in held:
                assert row["ambiguous"], f"{row['id']} is {row['state']} for a ticket that is gone"
                assert unsure, f"{row['id']} waits to be told apart, and nothing is ambiguous"


@contextmanager
def _opened(world: World) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(f"file:{world.project.queue_db}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    try:
        yield connection
    finally:
        connection.close()


def _rows(connection: sqlite3.Connection, sql: str, *parameters: object) -> list[sqlite3.Row]:
    return connection.execute(sql, parameters).fetchall()


def _refs(world: World) -> dict[str, str]:
    listed = run_git(world.root, "for-each-ref", "--format=%(refname) %(objectname)")
    return dict(line.split(" ") for line in listed.splitlines())


def _branch(world: World, connection: sqlite3.Connection, refs: Mapping[str, str]) -> None:
    """Each commit on the integration branch is ours and fits; what was integrated is on it, each assignment once."""
    for change in _rows(connection, "SELECT * FROM changes"):
        head = refs.get(f"refs/heads/{change['integration_branch']}")
        if head is None:  # cleaned after it had landed: what it was is on another branch
            head = change["integration_head"]
            assert run_git(world.root, "for-each-ref", f"--contains={head}", "refs/heads"), "the branch is lost"
        assert head == change["integration_head"], "the branch is not where the store says"
        log = run_git(world.root, "log", "--first-parent", "--reverse", "-z", "--format=%H%x01%T%x01%P%x01%B", head)
        entries = [entry.strip("\n").split("\x01") for entry in filter(None, log.split("\0"))]
        start = [entry[0] for entry in entries].index(change["base"])
        previous, previous_tree = entries[start][:2]
        merged: dict[str, tuple[str, str]] = {}
        for oid, tree, parents, body in entries[start + 1 :]:
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
                assert evidence.assignment_id not in merged, "an assignment is merged twice"
                merged[evidence.assignment_id] = (oid, parents.split()[1])
            previous, previous_tree = oid, tree
        known = _rows(connection, "SELECT * FROM assignments WHERE change = ?", change["change"])
        for row in known:
            if row["state"] == State.INTEGRATED.value:
                found = merged.get(row["id"])
                assert found == (row["integrated_commit"], row["sealed_head"]), f"{row['id']}: {found} is on the branch"
            else:
                assert row["id"] not in merged, f"{row['id']} is merged on the branch and {row['state']} in the store"
        commits = {entry[0] for entry in entries}
        for row in _rows(connection, "SELECT * FROM completions WHERE change = ?", change["change"]):
            assert row["commit_oid"] in commits, f"the commit of a {row['kind']} ticket is lost"


def _assignments(world: World, connection: sqlite3.Connection, refs: Mapping[str, str]) -> None:
    final = {state.value for state in FINAL}
    held = set()
    for row in _rows(connection, "SELECT * FROM assignments"):
        if row["state"] == State.ABANDONED.value and row["sealed_head"]:
            assert refs[f"refs/baton/sealed/{row['id']}"], "sealed work was given up and lost"
        if row["state"] == State.ABANDONED.value and row["prepared_at"] and not row["removed_at"]:
            assert f"refs/heads/{row['branch']}" in refs, "the branch of work that was given up is gone"
        if row["state"] in final:
            continue
        assert row["ticket_id"] not in held, "two open assignments of one ticket"
        held.add(row["ticket_id"])
        if row["state"] == State.SEALED.value:
            assert refs[f"refs/baton/sealed/{row['id']}"] == row["sealed_head"], "the sealed head is not kept"
        place = world.project.worktrees / row["worktree"]
        if row["prepared_at"] is not None and place.exists():
            assert row["packet"] is not None
            assert (place / ".git").is_file(), f"{place} is no worktree"
    attempts = _rows(connection, "SELECT assignment_id, claim_token FROM attempts")
    assert len({row["claim_token"] for row in attempts}) == len(attempts), "a claim token was given twice"


def _receipts(connection: sqlite3.Connection) -> None:
    """What is sealed or integrated has a receipt that holds against its packet."""
    for row in _rows(
        connection,
        "SELECT a.*, r.body AS receipt_body, p.body AS packet_body FROM assignments a"
        " LEFT JOIN receipts r ON r.receipt = a.receipt LEFT JOIN packets p ON p.packet = a.packet"
        " WHERE a.state IN ('sealed', 'integrated')",
    ):
        assert row["receipt_body"], f"{row['id']} is {row['state']} without a receipt"
        assert canonical.digest(row["packet_body"]) == row["packet"]
        value = json.loads(row["packet_body"])
        assert value["ticket"]["fingerprint"] == row["fingerprint"], "the packet is of another text"
        receipt.verify(
            row["receipt_body"],
            assignment_id=row["id"],
            base=row["base"],
            sealed_head=row["sealed_head"],
            receipt_digest=row["receipt"],
            packet_digest=row["packet"],
            packet=value,
        )


def _history(connection: sqlite3.Connection) -> None:
    """The event log tells how each assignment came to be in its state, by steps that the table has."""
    state: dict[str, State] = {}
    by_name = {"recover": State.CLAIMED, "retry": State.UNKNOWN, **{one.value: one for one in State}}
    for row in _rows(connection, "SELECT * FROM events WHERE assignment_id IS NOT NULL ORDER BY event"):
        name, target = row["assignment_id"], by_name.get(row["name"])
        if target is None:
            continue
        if name in state:
            steps = {to for (at, _), to in TABLE.items() if at is state[name]}
            assert target in steps, f"{name}: {row['name']} is no step from {state[name].value}"
        else:
            assert target is State.CLAIMED, f"{name} begins with {row['name']}"
        state[name] = target
    stored = {row["id"]: State(row["state"]) for row in _rows(connection, "SELECT id, state FROM assignments")}
    assert state == stored, "the history and the states differ"


def _worktrees(world: World, connection: sqlite3.Connection, refs: Mapping[str, str]) -> None:
    """Every worktree that git knows in our folder is an assignment's or Baton's own; what was removed is gone."""
    known = {}
    final = {State.INTEGRATED.value, State.ABANDONED.value}
    for row in _rows(connection, "SELECT * FROM assignments"):
        place = world.project.worktrees / row["worktree"]
        if row["removed_at"] is None:
            known[place] = row
        else:
            assert row["state"] in final, "a worktree was removed and its work is not at an end"
            assert not place.exists(), f"{place} was removed and is there"
            assert f"refs/heads/{row['branch']}" not in refs, f"{row['branch']} was removed and is there"
    for admin in (world.project.common_dir / "worktrees").glob("*/gitdir"):
        place = Path(admin.read_text().strip()).parent
        if place.is_relative_to(world.project.worktrees) and place.name not in ("integration", "baseline"):
            assert place in known, f"{place} is nobody's worktree"


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
