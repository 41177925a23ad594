"""Worktree -> receipt: Baton's own run of the packet's checks at a clean, advanced head. Nothing else is evidence."""

from __future__ import annotations

import hmac
import json
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import baton_cli
from baton_cli import locks, process
from baton_cli.context import Context
from baton_cli.core import canonical, names, prompt
from baton_cli.core import receipt as receipts
from baton_cli.core.actions import iso
from baton_cli.core.globs import matching
from baton_cli.core.lifecycle import Assignment, Event, State, next_state
from baton_cli.core.packet import allows_empty_diff
from baton_cli.core.receipt import Authority
from baton_cli.errors import BatonError
from baton_cli.git import repo
from baton_cli.git.run import version
from baton_cli.private import write_private
from baton_cli.store import assignments, evidence


@dataclass(frozen=True, slots=True)
class Sealed:
    """The answer: the assignment as it is now, and whether this call ran the checks or found them done."""

    assignment: Assignment
    fresh: bool


def seal(context: Context, assignment_id: str, authority: Authority) -> Sealed:
    """Seal, or refuse with the code of the first thing that is wrong. A refusal changes no state and is logged."""
    with locks.assignment_lock(context.project, assignment_id, wait=False) as held:
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
            with context.store.transaction():
                detail = refusal.message
                if assignment.state is not State.SEALED:
                    assignments.set_columns(context.store, assignment, reason=refusal.code, detail=detail)
                assignments.log(
                    context.store, assignment, "seal_refused", context.now(), cause=refusal.code, detail=detail
                )
            raise


def assignment_at(context: Context, place: Path) -> str:
    """The open assignment in whose worktree `place` lies. Error: `not_in_worktree`."""
    here = place.resolve()
    for assignment in assignments.every_open(context.store):
        if here.is_relative_to(context.worktree(assignment.worktree).resolve()):
            return assignment.id
    raise BatonError(
        "not_in_worktree",
        f"{place} is in no worktree of an open assignment",
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
                "another attempt has this ticket now: stop working on it",
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
    if assignment.state is State.SEALED and assignment.sealed_head == head:
        return Sealed(assignment, fresh=False)
    compared = _advanced(assignment, path, head)
    changed = repo.changed_paths(path, compared, head)
    if not changed and not allows_empty_diff(packet) and authority.kind != "operator":
        raise BatonError(
            "nothing_changed",
            f"{assignment.branch} changes no file",
            "do the task and commit it; an operator may seal an empty change",
        )
    _unprotected(packet, changed)
    state = _clean(path)
    started = context.now()
    ran = run_checks(
        context.inside(path),
        packet["checks"],
        context.project.logs / f"{assignment.id}-{assignment.attempt.number}",
        context.progress,
    )
    if repo.head(path).oid != head or repo.changed(path):
        raise BatonError(
            "checks_changed_files",
            "the checks changed HEAD or tracked files",
            "make the checks leave the tree alone, or commit what they write",
        )
    return Sealed(_record(context, assignment, authority, path, head, changed, state, ran, started), fresh=True)


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


def _right_head(assignment: Assignment, path: Path) -> str:
    if not path.exists():
        raise BatonError("worktree_missing", f"{path} is gone", "call actions: it is rebuilt from the branch")
    operation = repo.operation(path)
    if operation is not None:
        raise BatonError(
            "operation_in_progress",
            f"a {operation} is in progress in {path}",
            f"finish the {operation} and commit, then seal again",
        )
    head = repo.head(path)
    if head.branch is None:
        raise BatonError(
            "detached_head", f"HEAD is detached in {path}", f"git switch {assignment.branch}, with your commits on it"
        )
    if head.branch != assignment.branch:
        raise BatonError(
            "wrong_branch", f"{path} is on {head.branch}", f"git switch {assignment.branch}, with your commits on it"
        )
    return head.oid


def _advanced(assignment: Assignment, path: Path, head: str) -> str:
    """The commit that the work is compared with; refuses a head that has not advanced, or not onto what it must contain."""
    base = assignment.base or ""
    if head == base:
        raise BatonError(
            "nothing_committed",
            f"{assignment.branch} has no commit beyond its base",
            "commit the work on this branch, then seal again",
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


def _unprotected(packet: Mapping[str, Any], changed: Sequence[str]) -> None:
    touched = matching(changed, packet["protected"])
    if touched:
        raise BatonError(
            "protected_path",
            f"the branch changes {', '.join(touched[:5])}",
            "take that change out of the branch: Baton ticks tasks.md itself",
        )


def _clean(path: Path) -> repo.Cleanliness:
    state = repo.cleanliness(path)
    dirty = (*state.changed, *state.untracked)
    if dirty:
        shown = ", ".join(dirty[:8]) + (f" and {len(dirty) - 8} more" if len(dirty) > 8 else "")
        raise BatonError(
            "dirty_worktree",
            f"not committed: {shown}",
            "commit these files (or delete or .gitignore what does not belong), then seal again",
        )
    return state


def run_checks(
    cwd: Path, checks: Sequence[Mapping[str, Any]], log: Path, tell: Callable[[str], None]
) -> list[dict[str, Any]]:
    """Run checks one after another; their records. Error: `check_failed`, with the end of the log in the hint."""
    ran = []
    for number, check in enumerate(checks, 1):
        tell(f"running {check['command']}")
        here = log.with_name(f"{log.name}-check-{number}.log")
        run = process.run_check(check["command"], cwd=cwd, log=here, timeout=check["timeout"])
        if not run.passed:
            how = {"timeout": f"took longer than {check['timeout']} s", "not_found": "was not found"}.get(
                run.reason or "", f"exited with {run.exit_code}" if run.exit_code is not None else "was killed"
            )
            raise BatonError(
                "check_failed",
                f"`{check['command']}` {how} (log {here})",
                f"make it pass, commit, seal again. It said: {prompt.shorten(process.tail(here), 400)}",
            )
        ran.append(
            {
                "command": run.command,
                "exit_code": run.exit_code,
                "duration": round(run.duration, 3),
                "output_digest": run.output_digest,
            }
        )
    return ran


def _record(
    context: Context,
    assignment: Assignment,
    authority: Authority,
    path: Path,
    head: str,
    changed: Sequence[str],
    state: repo.Cleanliness,
    ran: Sequence[Mapping[str, Any]],
    started: float,
) -> Assignment:
    placed = json.loads(assignment.placed or "{}")
    clean_environment = state.ignored_digest == placed.get("digest")
    extra = [name for name in state.ignored if name not in placed.get("ignored", ())]
    now = context.now()
    digest, body = receipts.build(
        assignment_id=assignment.id,
        attempt=assignment.attempt.number,
        packet=assignment.packet or "",
        base=assignment.base or "",
        head=head,
        tree=repo.tree(path, head),
        checks=ran,
        ignored=extra[:50],
        clean_environment=clean_environment,
        touched=receipts.touches_checks(changed),
        empty_diff=not changed,
        operator={"why": authority.why or ""} if authority.kind == "operator" else None,
        versions={
            "baton": baton_cli.__version__,
            "git": ".".join(map(str, version())),
            "python": platform.python_version(),
        },
        started_at=iso(started),
        sealed_at=iso(now),
    )
    repository = context.project.repository
    ref = names.sealed_ref(assignment.id)
    repo.update_ref(repository, ref, head, repo.refs(repository, ref).get(ref, "0" * 40))
    with context.store.transaction():
        evidence.add_receipt(context.store, assignment.id, assignment.attempt.number, digest, body, now)
        assignment = assignments.move(
            context.store, assignment, Event.SEAL, now, session=None, sealed_head=head, receipt=digest, sealed_at=now
        )
    write_private(context.project.receipts / f"{assignment.id}.json", body)
    return assignment
