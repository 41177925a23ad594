"""A receipt, checked against packet, branch and the copies on disk: what an integration accepts, and `receipt verify` says."""

from __future__ import annotations

import json
from typing import Any

from baton_cli.context import Context
from baton_cli.core import receipt as receipts
from baton_cli.core.lifecycle import Assignment
from baton_cli.core.receipt import SealedReceipt, verify
from baton_cli.errors import BatonError
from baton_cli.git import repo
from baton_cli.store import assignments
from baton_cli.store import evidence as stored


def check(context: Context, assignment: Assignment) -> SealedReceipt:
    """The receipt, checked against packet, branch and the copy on disk. Every refusal names its code."""
    body = stored.receipt(context.store, assignment.receipt or "")
    packet = stored.packet(context.store, assignment.packet or "")
    if body is None or packet is None:
        raise BatonError("receipt_missing", f"the receipt of {assignment.id} is gone", "seal again")
    for copy, original, code in (
        (context.project.receipts / f"{assignment.id}.json", body, "receipt_edited"),
        (context.project.packets / f"{assignment.id}.json", packet, "packet_changed"),
    ):
        if copy.exists() and copy.read_bytes() != original:
            raise BatonError(code, f"{copy} is not what Baton wrote", "seal again")
    try:
        value = json.loads(packet)
    except ValueError:
        raise BatonError(
            "packet_changed", f"the packet of {assignment.id} is not readable", "abandon the assignment"
        ) from None
    sealed = verify(
        body,
        assignment_id=assignment.id,
        base=assignment.base or "",
        sealed_head=assignment.sealed_head or "",
        receipt_digest=assignment.receipt or "",
        packet_digest=assignment.packet or "",
        packet=value,
    )
    branch = f"refs/heads/{assignment.branch}"
    tip, tree = repo.commits(context.project.repository, branch).get(branch, (None, None))
    # A detached receipt compares commits: where it was made there was no branch of ours.
    if tip is not None and tip != sealed.head and not sealed.value["detached"]:
        raise BatonError("branch_moved", f"{assignment.branch} moved off the sealed commit", "seal again")
    if (tree if tip == sealed.head else repo.tree(context.project.repository, sealed.head)) != sealed.tree:
        raise BatonError("head_mismatch", f"the receipt of {assignment.id} names another tree", "seal again")
    return sealed


def _sealed(context: Context, assignment_id: str) -> Assignment:
    assignment = assignments.get(context.store, assignment_id)
    if assignment.receipt is None:
        raise BatonError(
            "no_receipt",
            f"{assignment_id} ({assignment.ticket}) has no receipt that counts: it is {assignment.state.value}"
            + (
                f"; what was sealed at {assignment.sealed_head[:12]} counts no longer" if assignment.sealed_head else ""
            ),
            "seal it again, with what was wrong mended" if assignment.sealed_head else "seal it first",
        )
    return assignment


def shown(context: Context, assignment_id: str) -> dict[str, Any]:
    """The recorded receipt, as `baton.receipt_view/1`. Error: `no_receipt`."""
    assignment = _sealed(context, assignment_id)
    body = stored.receipt(context.store, assignment.receipt or "") or b""
    return {
        "schema": "baton.receipt_view/1",
        "assignment_id": assignment.id,
        "ticket": assignment.ticket,
        "state": assignment.state.value,
        "receipt": receipts.read(body),
    }


def verified(context: Context, assignment_id: str) -> dict[str, Any]:
    """That the receipt counts, as `baton.receipt_check/1`; else the error that an integration would meet."""
    assignment = _sealed(context, assignment_id)
    sealed = check(context, assignment)
    return {
        "schema": "baton.receipt_check/1",
        "assignment_id": assignment.id,
        "ticket": assignment.ticket,
        "receipt": sealed.digest,
        "head": sealed.head,
        "commands": list(sealed.commands),
    }
