"""The user's own checkout, as it was at a claim and as it is now: a difference is reported, never repaired."""

from __future__ import annotations

import json
from collections.abc import Container
from pathlib import Path
from typing import Any

from baton_cli import openspec
from baton_cli import project as projects
from baton_cli.context import Context
from baton_cli.core.actions import at_most
from baton_cli.core.lifecycle import Assignment, State
from baton_cli.errors import BatonError
from baton_cli.git import repo
from baton_cli.store import assignments
from baton_cli.store import plans as store_plans


def repo_head(context: Context) -> str:
    """The commit that the user's checkout is at. Error: `no_commits`."""
    return repo.head(context.project.repository).oid


def snapshot(context: Context) -> str:
    """HEAD, branch, dirty paths and stash of the user's checkout, as JSON for the attempt's record."""
    repository = context.project.repository
    condition = repo.condition(repository)
    return json.dumps(
        {
            "head": condition.oid,
            "branch": condition.branch,
            "dirty": list(condition.dirty[:500]),
            "stash": repo.stash(repository),
        }
    )


def leak(before: str | None, after: str, own: Container[str]) -> str | None:
    """What changed in the checkout since the claim, in one line; None when nothing did.

    `own` are the tasks files (relative to the repository): their boxes change by Baton's own hand. It may all be the
    user's work, so this is a notice and nothing else.
    """
    if before is None:
        return None
    then: dict[str, Any] = json.loads(before)
    now: dict[str, Any] = json.loads(after)
    said = []
    if then["head"] != now["head"]:
        said.append(f"HEAD moved from {then['head'][:10]} to {now['head'][:10]}")
    fresh = [path for path in now["dirty"] if path not in then["dirty"] and path not in own]
    if fresh:
        said.append(f"changed: {', '.join(at_most(fresh, 5))}")
    if then["stash"] != now["stash"]:
        said.append("the stash changed")
    if not said:
        return None
    return (
        f"isolation_leak: in the checkout since the claim, {'; '.join(said)} (your own work, or a stray agent's; kept)"
    )


def isolation(context: Context, assignment: Assignment) -> dict[str, str]:
    """The `isolation` part of an answer: what changed in the checkout since the claim, and who was at work then."""
    own = {_tasks_file(context, item.change) for item in store_plans.all_changes(context.store)}
    said = leak(assignment.attempt.checkout, snapshot(context), own)
    if said is None:
        return {}
    claimed = assignments.of_change(context.store, assignment.change, [State.CLAIMED])
    others = [item.ticket for item in claimed if item.id != assignment.id]
    return {"isolation": f"{said}; at work since: {', '.join(at_most([assignment.ticket, *others], 5))}"}


def _tasks_file(context: Context, change: str) -> str:
    """The tasks file of a change, relative to the repository, also of one whose folder is gone by now."""
    project = context.project
    try:
        file = projects.change(project, change).tasks
    except BatonError:
        file = project.root / "openspec" / "changes" / change / openspec.TASKS
    return (Path(project.prefix) / file.relative_to(project.root)).as_posix()
