"""Worktree -> receipt: Baton's own run of the packet's checks at a clean, advanced head. Nothing else is evidence."""

from __future__ import annotations

import hmac
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from baton_cli.context import Context
from baton_cli.core import canonical, names, prompt
from baton_cli.core import receipt as receipts
from baton_cli.core.actions import iso
from baton_cli.core.lifecycle import Assignment, Event, State, next_state
from baton_cli.core.listing import named
from baton_cli.core.packet import allows_empty_diff
from baton_cli.core.receipt import Authority
from baton_cli.errors import BatonError
from baton_cli.flow.parts import holding
from baton_cli.flow.parts.proof import Proof, prove, versions
from baton_cli.git import repo, worktree
from baton_cli.private import write_private
from baton_cli.store import assignments, evidence, plans


@dataclass(frozen=True, slots=True)
class Sealed:
    """The answer: the assignment as it is now, and whether this call ran the checks or found them done."""

    assignment: Assignment
    fresh: bool


def seal(context: Context, assignment_id: str, authority: Authority) -> Sealed:
    """Seal, or refuse with the code of the first thing that is wrong. A refusal changes no state and is logged."""
    with holding.assignment(context, assignment_id, wait=False) as held:
        if not held:
            assignments.get(context.store, assignment_id)
            raise BatonError(
                "seal_running",
                f"{assignment_id} is being sealed or integrated just now",
                "wait for it, then look at `baton status`",
            )
        assignment = assignments.get(context.store, assignment_id)
        _authorise(assignment, authority)
        assignment = _heard_of(context, assignment)
        try:
            return _seal(context, assignment, authority)
        except BatonError as refusal:
            if not refusal.verdict:
                raise
            with context.store.transaction():
                detail = refusal.message + (f": {refusal.hint}" if refusal.code in ASTRAY else "")
                if assignment.state is not State.SEALED:
                    assignments.set_columns(context.store, assignment, reason=refusal.code, detail=detail)
                assignments.log(
                    context.store, assignment, "seal_refused", context.now(), cause=refusal.code, detail=detail
                )
            raise


ASTRAY = ("wrong_branch", "detached_head")  # what the next agent needs to hear too, or it commits there again


def assignment_at(context: Context, place: Path) -> str:
    """The assignment in whose worktree `place` lies; one that was given up is refused later. Error: `not_in_worktree`."""
    here = place.resolve()
    known = [
        one
        for change in plans.all_changes(context.store)
        for one in assignments.everything(context.store, change.change)
    ]
    for assignment in sorted(known, key=lambda one: not one.open):
        if here.is_relative_to(context.worktree(assignment.worktree).resolve()):
            return assignment.id
    raise BatonError(
        "not_in_worktree",
        f"{place} is in no worktree of an assignment",
        "name the assignment, or go to its worktree",
    )


def _authorise(assignment: Assignment, authority: Authority) -> None:
    next_state(assignment.state, Event.SEAL)
    if authority.kind == "key":
        expected = prompt.seal_key(assignment.attempt.claim_token)
        if not hmac.compare_digest(expected.encode(), (authority.key or "").encode("utf-8", "surrogateescape")):
            raise BatonError(
                "stale_claim",
                f"the seal key is not that of the current attempt on {assignment.id}",
                "if you copied it exactly, another attempt has this ticket now: stop working on it",
            )


def _heard_of(context: Context, assignment: Assignment) -> Assignment:
    """A seal shows that its batch arrived and that somebody lives: acknowledge and renew the lease."""
    now = context.now()
    with context.store.transaction():
        evidence.acknowledge(context.store, assignment.attempt.batch, now)
        return assignments.set_attempt(
            context.store, assignment, evidence_at=now, lease_expires_at=now + context.config.lease
        )


def _seal(context: Context, assignment: Assignment, authority: Authority) -> Sealed:
    packet = checked_packet(context, assignment)
    path = context.worktree(assignment.worktree)
    head = _right_head(assignment, path)
    if assignment.state is State.SEALED and assignment.sealed_head == head.oid:
        return Sealed(assignment, fresh=False)
    compared = _advanced(assignment, path, head.oid)
    if assignment.onto is not None and authority.kind != "operator":
        _resolved(path, assignment.onto, head.oid)
    started = context.now()
    log = context.project.logs / f"{assignment.id}-{assignment.attempt.number}"
    allow_empty = allows_empty_diff(packet) or authority.kind == "operator"

    def tell(check: str) -> None:
        context.progress(f"checking {assignment.ticket}: {check}")

    proof = prove(path, context.inside(path), packet, compared, head.oid, allow_empty=allow_empty, log=log, tell=tell)
    return Sealed(_record(context, assignment, authority, head.tree, proof, started), fresh=True)


def _resolved(path: Path, onto: str, head: str) -> None:
    """Error: `conflict_markers`, where a merge was committed as git had left it."""
    left = sorted(repo.conflict_markers(path, head) - repo.conflict_markers(path, onto))
    if left:
        raise BatonError(
            "conflict_markers",
            f"conflict markers are committed in {named(left)}",
            "resolve them, commit, then seal again (an operator may seal them as they are)",
        )


def checked_packet(context: Context, assignment: Assignment) -> dict[str, Any]:
    """The packet of an assignment, if it still is the one that was handed out."""
    if assignment.packet is None:
        raise BatonError("not_prepared", f"{assignment.id} was never handed out", "call actions first")
    body = evidence.packet(context.store, assignment.packet)
    copy = context.project.packets / f"{assignment.id}.json"
    if body is None or canonical.digest(body) != assignment.packet:
        raise BatonError(
            "packet_changed",
            f"the stored packet of {assignment.id} is not the one that was handed out",
            "run `baton abandon` on the ticket: the next call makes a new one",
        )
    if not copy.exists():
        write_private(copy, body)
    elif copy.read_bytes() != body:
        raise BatonError(
            "packet_changed", f"{copy} was edited", "delete that file: Baton writes it again from its own record"
        )
    value: dict[str, Any] = json.loads(body)
    return value


def _right_head(assignment: Assignment, path: Path) -> repo.Head:
    if not worktree.sound(path):
        raise BatonError(
            "worktree_missing", f"{path} is no worktree any more", "call actions: it is put back from the branch"
        )
    operation = repo.operation(path)
    if operation is not None:
        raise BatonError(
            "operation_in_progress",
            f"a {operation} is in progress in {path}",
            f"finish the {operation} and commit, then seal again",
        )
    try:
        head = repo.head(path)
    except BatonError as error:
        if error.code != "no_commits":
            raise
        gone = f"{assignment.branch} was deleted"
        raise BatonError("branch_missing", gone, "call actions: it is put back") from None
    if head.branch is None:
        raise BatonError(
            "detached_head", f"HEAD is detached in {path}", f"git switch {assignment.branch}, with your commits on it"
        )
    if head.branch != assignment.branch:
        raise BatonError(
            "wrong_branch", f"{path} is on {head.branch}", f"git switch {assignment.branch}, with your commits on it"
        )
    return head


def _advanced(assignment: Assignment, path: Path, head: str) -> str:
    """The commit that the work is compared with; refuses a head that has not advanced, or not onto what it must contain."""
    base = assignment.base or ""
    if head == base:
        raise BatonError(
            "nothing_committed",
            f"{assignment.branch} has no commit beyond its base",
            "commit the work on this branch (a closing check with nothing to change: --allow-empty), then seal again",
        )
    if not repo.is_ancestor(path, base, head):
        raise BatonError(
            "base_lost",
            f"{assignment.branch} no longer descends from its base {base[:12]}",
            "put the commits back on top of that base",
        )
    onto = assignment.onto
    if onto is None:
        return base
    if head == assignment.refused_head or not repo.is_ancestor(path, onto, head):
        raise BatonError(
            "integration_not_merged",
            f"{assignment.branch} was refused before and does not contain the integration head {onto[:12]}",
            f"git merge {onto[:12]}, make the checks pass, commit, then seal again",
        )
    return onto


def _keep(context: Context, assignment: Assignment, head: str) -> None:
    """Let a ref hold the sealed head, and another one what was sealed before, if it does not lie below."""
    repository, ref = context.project.repository, names.sealed_ref(assignment.id)
    before = repo.refs(repository, ref).get(ref, repo.NO_OID)
    if before and not repo.is_ancestor(repository, before, head):
        repo.update_ref(repository, names.replaced_ref(assignment.id, before), before, repo.NO_OID)
    repo.update_ref(repository, ref, head, before)


def _record(
    context: Context,
    assignment: Assignment,
    authority: Authority,
    tree: str,
    proof: Proof,
    started: float,
) -> Assignment:
    placed = json.loads(assignment.placed or "{}")
    clean_environment = proof.state.ignored_digest == placed.get("digest")
    extra = [name for name in proof.state.ignored if name not in placed.get("ignored", ())]
    now = context.now()
    digest, body = receipts.build(
        assignment_id=assignment.id,
        attempt=assignment.attempt.number,
        packet=assignment.packet or "",
        base=assignment.base or "",
        head=proof.head,
        tree=tree,
        checks=proof.ran,
        ignored=extra[:50],
        clean_environment=clean_environment,
        touched=receipts.touches_checks(proof.changed),
        empty_diff=not proof.changed,
        operator={"why": authority.why or ""} if authority.kind == "operator" else None,
        detached=False,
        versions=versions(),
        started_at=iso(started),
        sealed_at=iso(now),
    )
    _keep(context, assignment, proof.head)
    write_private(context.project.receipts / f"{assignment.id}.json", body)  # first: a row speaks of what is there
    with context.store.transaction():
        evidence.add_receipt(context.store, assignment.id, assignment.attempt.number, digest, body, now)
        return assignments.move(
            context.store,
            assignment,
            Event.SEAL,
            now,
            session=None,
            sealed_head=proof.head,
            receipt=digest,
            sealed_at=now,
        )
