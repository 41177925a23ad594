"""Work on a ticket as it is shown: the assignment, and the receipt that it ended in. No token is among the values."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from baton_cli.context import Context
from baton_cli.core import names
from baton_cli.core.actions import iso
from baton_cli.core.frontier import FINISHED, TicketView
from baton_cli.core.lifecycle import Assignment, State
from baton_cli.core.prompt import shorten
from baton_cli.errors import BatonError
from baton_cli.store import assignments

NOTE = 200  # characters of what was noted of an agent's end


def slots(context: Context) -> dict[str, int]:
    """How much of `limits.parallel` all changes of the project use together."""
    held = sum(1 for assignment in assignments.every_open(context.store) if assignment.state is State.CLAIMED)
    return {"used": held, "limit": context.config.parallel}


def busy(context: Context, assignment: Assignment) -> dict[str, str] | None:
    """What Baton itself does with an assignment just now (prepare, seal or integrate), and since when; None: nothing."""
    from baton_cli import locks

    found = locks.at_work(locks.assignment_path(context.project, assignment.id))
    if found is None:
        return None
    made = assignment.state is not State.CLAIMED or assignment.prepared_at is not None
    with_it = "prepare" if not made else "integrate" if assignment.state is State.SEALED else "seal"
    return {"with": with_it, "since": str(found.get("since"))}


def _last_sign(context: Context, assignment: Assignment) -> float:
    """When the agent was heard of last: what was recorded, or the last commit in the worktree since. Asks git nothing."""
    attempt = assignment.attempt
    if assignment.state is not State.CLAIMED or assignment.prepared_at is None:
        return attempt.evidence_at
    log = context.project.common_dir / "worktrees" / context.worktree(assignment.worktree).name / "logs" / "HEAD"
    try:
        moved = log.stat().st_mtime
    except OSError:  # no reflog is kept there, or the worktree is gone
        return attempt.evidence_at
    return max(attempt.evidence_at, moved) if moved > assignment.prepared_at else attempt.evidence_at


def _gone(context: Context, assignment: Assignment) -> str | None:
    """Who of a `drive` is gone: its `agent` (it has ended, and the drive is busy with what others left), or the `drive`
    itself (it was killed)."""
    agent = assignment.attempt.agent
    if assignment.state is not State.CLAIMED or agent is None or not names.is_driven(agent):
        return None
    file = next(context.project.drives.glob(f"*.{agent}.json"), None)
    if file is None:
        return "agent"
    from baton_cli import locks

    try:
        found = json.loads(file.read_bytes())["drive"]
        return "drive" if locks.certainly_gone(found) else None
    except (OSError, ValueError, LookupError, TypeError):
        return None


def behind(view: TicketView, find: Callable[[str], Assignment | None]) -> Assignment | None:
    """The assignment of a ticket: the open one, or the one that finished it, which `find` gives by its id."""
    if view.assignment is not None or view.status not in FINISHED or view.completion is None:
        return view.assignment
    found = find(view.completion.assignment_id) if view.completion.assignment_id else None
    return found if found is not None and found.state is State.INTEGRATED else None


def assignment_value(context: Context, assignment: Assignment) -> dict[str, Any]:
    """An assignment with its current attempt. Times are ISO 8601 in UTC."""
    attempt = assignment.attempt
    return {
        "id": assignment.id,
        "state": assignment.state.value,
        "reason": assignment.reason,
        "detail": assignment.detail,
        "attempt": attempt.number,
        "agent": attempt.agent,
        "session": attempt.session,
        "ended": attempt.terminal,
        "note": shorten(attempt.note, NOTE) if attempt.note else None,
        "gone": _gone(context, assignment),
        "state_since": iso(assignment.state_since),
        "since": iso(attempt.claimed_at),
        "last_evidence_at": iso(_last_sign(context, assignment)),
        "lease_expires_at": iso(attempt.lease_expires_at) if assignment.state is State.CLAIMED else None,
        "branch": assignment.branch,
        "worktree": assignment.worktree,
        "receipt": assignment.receipt,
    }


def receipt_value(digest: str, body: bytes | None) -> dict[str, Any] | None:
    """What a receipt says, for a reader; None where it is gone or is no receipt any more."""
    from baton_cli.core import receipt as receipts  # `status` shows none

    try:
        value = receipts.read(body or b"")
        checks = [{name: check.get(name) for name in ("command", "exit_code", "duration")} for check in value["checks"]]
        return {
            "digest": digest,
            "head": value["head"],
            "sealed_at": value["sealed_at"],
            "attempt": value["attempt"],
            "checks": checks,
            "touches_checks": value.get("touches_checks", []),
            "empty_diff": bool(value.get("empty_diff")),
            "clean_environment": bool(value.get("clean_environment", True)),
            "detached": bool(value.get("detached")),
            "operator": value.get("operator"),
        }
    except (BatonError, LookupError, TypeError, AttributeError):
        return None


def carried(context: Context, commits: Iterable[str]) -> dict[str, Any]:
    """What the receipts say that merge commits of ours carry, by commit: for work that this store does not know."""
    wanted = sorted(set(commits))
    if not wanted:
        return {}
    from baton_cli.core import canonical, integration
    from baton_cli.git import history  # most looks ask git nothing

    try:
        told = history.mentioning(context.project.repository, wanted, "Baton-Receipt: ")
    except BatonError:
        return {}  # a view without these receipts is better than none
    found = {}
    for commit in told:
        evidence = integration.read_message(commit.message) if commit.oid in wanted else None
        if evidence is not None and evidence.receipt is not None and evidence.receipt_digest is not None:
            found[commit.oid] = receipt_value(evidence.receipt_digest, canonical.encode(evidence.receipt))
    return found
