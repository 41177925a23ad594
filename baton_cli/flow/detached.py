"""Seals made on another machine: a packet goes out, a receipt comes back, and commits are all that is compared."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from baton_cli.context import Context
from baton_cli.core import canonical, names
from baton_cli.core import packet as packets
from baton_cli.core import receipt as receipts
from baton_cli.core.actions import iso
from baton_cli.core.lifecycle import Assignment, Event, next_state
from baton_cli.errors import BatonError
from baton_cli.flow.parts import holding
from baton_cli.flow.parts.proof import Proof, prove, versions
from baton_cli.git import repo
from baton_cli.private import write_private
from baton_cli.store import assignments, evidence


def export(context: Context, assignment_id: str, out: Path) -> Assignment:
    """Write the packet of an assignment to `out`, byte for byte. Errors: `not_prepared`, `output_exists`."""
    assignment = assignments.get(context.store, assignment_id)
    body = evidence.packet(context.store, assignment.packet or "")
    if body is None:
        raise BatonError(
            "not_prepared", f"{assignment_id} has no packet yet", "the next session or drive makes it: wait for that"
        )
    _write(out, body)
    return assignment


def _write(out: Path, body: bytes) -> None:
    try:
        with out.open("xb") as file:
            file.write(body)
    except FileExistsError:
        raise BatonError("output_exists", f"{out} exists already", "name another file") from None
    except OSError as error:
        raise BatonError("output_failed", f"{out}: {error.strerror}", "name a file that can be written") from None


def _read(path: Path, code: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BatonError(code, f"{path}: {error.strerror}", "name a file that can be read") from None


def seal_packet(repository: Path, packet_file: Path, out: Path, now: float) -> dict[str, Any]:
    """Run a packet's checks on the clean checkout at `repository` and write the receipt. No store, no worktree of ours.

    Runs the commands that the packet names: use it on packets of your own project. Errors: those of `seal`.
    """
    body = _read(packet_file, "no_packet")
    packet = _packet(body, packet_file)
    base, head = packet["base"], repo.head(repository).oid
    if repo.resolve(repository, base) is None or head == base or not repo.is_ancestor(repository, base, head):
        raise BatonError(
            "base_lost",
            f"HEAD {head[:12]} is not beyond the packet's base {base[:12]}",
            "check out the pushed work, with its history",
        )
    with tempfile.TemporaryDirectory(prefix="baton-seal-") as logs:
        proof = prove(
            repository,
            repository / packet["prefix"],
            packet,
            base,
            head,
            allow_empty=packets.allows_empty_diff(packet),
            log=Path(logs) / "detached",
            tell=lambda _text: None,
        )
    digest, receipt = _receipt(canonical.digest(body), packet, repo.tree(repository, head), proof, now)
    _write(out, receipt)
    return {
        "schema": "baton.seal/1",
        "assignment_id": packet["assignment_id"],
        "ticket": packet["ticket"]["key"],
        "state": "sealed",
        "reason": None,
        "next": "bring commit and receipt home, then: baton reconcile ASSIGNMENT --receipt FILE",
        "head": head,
        "receipt": digest,
        "detached": True,
    }


def _packet(body: bytes, packet_file: Path) -> dict[str, Any]:
    try:
        packet: dict[str, Any] = json.loads(body)
        if packet["schema"] == packets.SCHEMA and packet["checks"] and packet["base"] and packet["ticket"]["key"]:
            return packet
    except (ValueError, KeyError, TypeError):
        pass
    raise BatonError("packet_changed", f"{packet_file} is no task packet", "export it again with `baton packet export`")


def _receipt(packet_digest: str, packet: dict[str, Any], tree: str, proof: Proof, now: float) -> tuple[str, bytes]:
    return receipts.build(
        assignment_id=packet["assignment_id"],
        attempt=0,
        packet=packet_digest,
        base=packet["base"],
        head=proof.head,
        tree=tree,
        checks=proof.ran,
        ignored=proof.state.ignored[:50],
        clean_environment=False,
        touched=receipts.touches_checks(proof.changed),
        empty_diff=not proof.changed,
        operator=None,
        detached=True,
        versions=versions(),
        started_at=iso(now),
        sealed_at=iso(now),
    )


def accept(context: Context, assignment: Assignment, receipt_file: Path) -> Assignment:
    """Seal an assignment with a receipt made elsewhere, if the project allows it. It still goes through the gate.

    Errors: `detached_not_accepted`, those of a receipt that does not fit, `commit_missing`, `integration_not_merged`.
    """
    if not context.config.accept_detached:
        raise BatonError(
            "detached_not_accepted",
            "receipts from other machines are not accepted in this project",
            "allow them with accept_detached = true under [seal] in baton.toml",
        )
    body = _read(receipt_file, "no_receipt")
    value = receipts.read(body)
    with holding.assignment(context, assignment.id, wait=True):
        assignment = assignments.get(context.store, assignment.id)
        if assignment.receipt == value["digest"]:  # told before
            return assignment
        next_state(assignment.state, Event.SEAL)
        packet = json.loads(evidence.packet(context.store, assignment.packet or "") or b"{}")
        receipts.verify(
            body,
            assignment_id=assignment.id,
            base=assignment.base or "",
            sealed_head=value["head"],
            receipt_digest=value["digest"],
            packet_digest=assignment.packet or "",
            packet=packet,
        )
        _here(context, assignment, value)
        return _record(context, assignment, value, body)


def _here(context: Context, assignment: Assignment, value: dict[str, Any]) -> None:
    """The sealed commit must be in this repository, on top of what it was given."""
    repository, head = context.project.repository, value["head"]
    if not value.get("detached"):
        raise BatonError(
            "not_detached",
            f"the receipt of {assignment.ticket} was not made by a seal of its packet on another machine",
            "a receipt of this store needs no --receipt: call reconcile without it",
        )
    if repo.resolve(repository, head) != head:
        raise BatonError(
            "commit_missing", f"the sealed commit {head[:12]} is not in this repository", "fetch it, then call again"
        )
    for needed, code in ((assignment.base, "base_lost"), (assignment.onto, "integration_not_merged")):
        if needed and not repo.is_ancestor(repository, needed, head):
            raise BatonError(code, f"{head[:12]} does not contain {needed[:12]}", "merge that commit, seal again")
    if head in (assignment.base, assignment.refused_head):
        raise BatonError("nothing_committed", f"{head[:12]} is not new", "commit the work, seal again")


def _record(context: Context, assignment: Assignment, value: dict[str, Any], body: bytes) -> Assignment:
    repository, now, digest = context.project.repository, context.now(), value["digest"]
    ref = names.sealed_ref(assignment.id)
    repo.update_ref(repository, ref, value["head"], repo.refs(repository, ref).get(ref, repo.NO_OID))
    write_private(context.project.receipts / f"{assignment.id}.json", body)  # first: a row speaks of what is there
    with context.store.transaction():
        evidence.add_receipt(context.store, assignment.id, assignment.attempt.number, digest, body, now)
        columns = {"sealed_head": value["head"], "receipt": digest, "sealed_at": now}
        return assignments.move(context.store, assignment, Event.SEAL, now, detail="detached", **columns)
