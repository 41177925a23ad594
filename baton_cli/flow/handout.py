"""Prepared claims -> the actions of one answer, kept as a batch so that a repeated call cannot start a ticket twice."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from baton_cli.context import Context
from baton_cli.core import actions, prompt
from baton_cli.core import packet as packets
from baton_cli.core.facts import Change
from baton_cli.core.lifecycle import Assignment, State
from baton_cli.errors import BatonError
from baton_cli.flow.parts import activity, attempts, branch
from baton_cli.git import merge, repo
from baton_cli.store import assignments, evidence

# What the seal does besides the checks, in seconds: a fresh index, digests, the store.
SEAL_MARGIN = 120


def pending(context: Context, change: str, session: str) -> list[dict[str, Any]]:
    """The session's last batch, as it was, if nothing shows yet that it arrived; else nothing."""
    batch = evidence.open_batch(context.store, change, session)
    if batch is None:
        return []
    current: list[dict[str, Any]] = []
    for action in json.loads(batch.body):
        assignment = assignments.find(context.store, action["assignment_id"])
        if assignment is None or assignment.attempt.claim_token != action["claim_token"]:
            continue
        if assignment.state is not State.CLAIMED:
            continue  # ended, or free for anybody, without the session: that says nothing about the others
        if activity.has_moved(context, assignment):
            current = []
            break
        current.append(action)
    if not current:
        with context.store.transaction():
            evidence.acknowledge(context.store, batch.batch, context.now())
    return current


def hand_out(
    context: Context, change: Change, prepared: Sequence[Assignment], frame: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Make the actions of these claims and keep those that fit into the answer as one batch. The rest come next."""
    made = [_action(context, change, assignment) for assignment in prepared]
    held = actions.fit(made, frame) if made else 0
    if not held:
        return []
    store, now = context.store, context.now()
    session = prepared[0].attempt.session
    with store.transaction():
        batch = evidence.add_batch(store, change.change, session, now)
        for assignment in prepared[:held]:
            assignments.set_attempt(store, assignment, batch=batch)
        evidence.fill_batch(store, batch, json.dumps(made[:held], ensure_ascii=False))
    return made[:held]


def _action(context: Context, change: Change, assignment: Assignment) -> dict[str, Any]:
    body = evidence.packet(context.store, assignment.packet or "")
    packet: dict[str, Any] = json.loads(body or b"{}")
    kind, why = "dispatch", ""
    extra: dict[str, Any] = {}
    conflicts: tuple[str, ...] = ()
    handed = [item for item in assignments.attempts(context.store, assignment.id) if item.batch is not None]
    if handed:  # somebody was sent there before
        kind, extra, why, conflicts = _recovery(context, change, assignment, handed[-1].agent)
    head, dirty = activity.mark(context, assignment) if handed else (assignment.base, "")
    begun = "retry" if assignment.attempt.kind == "retry" else kind
    with context.store.transaction():
        assignment = assignments.set_attempt(context.store, assignment, kind=begun, start_head=head, start_dirty=dirty)
    ticket = packet["ticket"]
    cwd = str(context.inside(context.worktree(assignment.worktree)))
    page = context.project.packets / f"{assignment.id}.md"
    common = {
        "key": assignment.ticket,
        "text": "\n".join(part for part in (ticket["text"], ticket["body"]) if part),
        "cwd": cwd,
        "packet": str(page),
        "seal_command": context.shell("seal", assignment.id, "--key", prompt.seal_key(assignment.attempt.claim_token)),
        "seconds": sum(check["timeout"] for check in packet["checks"]) + SEAL_MARGIN,
    }
    closing = packets.allows_empty_diff(packet)
    if kind == "dispatch":
        text = prompt.dispatch(**common, closing_check=closing)
    elif kind == "recover":
        text = prompt.recover(**common, closing_check=closing, why=why)
    else:
        text = prompt.resolve_merge(**common, files=conflicts, others=extra.get("others", ()))
    return actions.hand_out(
        kind, assignment, title=ticket["title"], cwd=cwd, packet=str(page), prompt=text, extra=extra
    )


def _recovery(
    context: Context, change: Change, assignment: Assignment, previous_agent: str | None
) -> tuple[str, dict[str, Any], str, tuple[str, ...]]:
    """What the next agent meets in the worktree: a merge to resolve, a merged tree that is red, or unfinished work."""
    path = context.worktree(assignment.worktree)
    reason = assignment.reason or "unknown"
    before = attempts.so_far(context.store, assignment)
    why = "; ".join(part for part in (assignment.detail or reason.replace("_", " "), before) if part)
    extra: dict[str, Any] = {"reason": reason, "previous_agent": previous_agent}
    if (
        assignment.onto is not None
        and repo.operation(path) is None
        and not repo.is_ancestor(path, assignment.onto, "HEAD")
    ):
        try:
            if unsaved := repo.unsaved(path):
                left = ", ".join(actions.at_most(unsaved, 3))
                why = f"commit or remove what lies there ({left}), then merge {change.integration_branch}; {why}"
            else:
                assignment = _merge_head(context, change, assignment)
        except BatonError as error:
            if error.code != "git_failed":  # what git will not overwrite is the worker's to put away
                raise
            why = f"merge {change.integration_branch}, to which git says: {error.message}; {why}"
    conflicts = repo.unmerged(path)
    if conflicts or repo.operation(path) == "merge":
        extra |= {"files": actions.at_most(conflicts), "others": _others(context, change, assignment)}
        return "resolve_merge", extra, why, conflicts
    return "recover", extra, why, ()


def _merge_head(context: Context, change: Change, assignment: Assignment) -> Assignment:
    """Bring the integration head into the worker's own tree, committed if it merges, else left there with its conflicts."""
    path = context.worktree(assignment.worktree)
    onto = repo.refs(context.project.repository, change.integration_ref).get(
        change.integration_ref, change.integration_head
    )
    with context.store.transaction():
        assignment = assignments.set_columns(context.store, assignment, onto=onto)
    merge.start_committed(path, onto, f"Merge {change.integration_branch} into {assignment.branch}")
    return assignment


def _others(context: Context, change: Change, assignment: Assignment) -> list[str]:
    onto = assignment.onto or change.integration_head
    return actions.at_most(branch.merged_since(context, assignment.base or onto, onto, assignment.ticket), 5)
