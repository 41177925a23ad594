"""What a worker has done: so far, against the commit it started from, or what its merge brought to the branch."""

from __future__ import annotations

from typing import Any

from baton_cli.context import Context
from baton_cli.core.facts import Completion
from baton_cli.core.lifecycle import Assignment
from baton_cli.errors import BatonError
from baton_cli.git import repo, worktree


def difference(context: Context, ticket: str, assignment: Assignment) -> dict[str, Any]:
    """`baton.diff/1`; `ticket` is what it is called now. Reads only; the worker is not disturbed. Error: `not_prepared`."""
    if assignment.base is None:
        raise BatonError(
            "not_prepared", f"nobody was sent to work on {ticket} yet", "wait for the next session or drive"
        )
    path = context.worktree(assignment.worktree)
    here = worktree.sound(path)  # a folder that lost its link would be taken for the checkout around it
    place = path if here else context.project.repository
    base = assignment.onto or assignment.base
    dirty = repo.dirty(path) if here else ()
    tip = repo.head(path).oid if here else repo.resolve(place, assignment.branch) or assignment.base
    return {
        "schema": "baton.diff/1",
        "assignment_id": assignment.id,
        "ticket": ticket,
        "state": assignment.state.value,
        "base": base,
        "head": tip,
        "commits": list(repo.log_subjects(place, base, tip)),
        "committed": list(repo.changed_paths(place, base, tip)),
        "uncommitted": list(dirty),
        "patch": repo.patch(place, base, None if here else tip),
    }


def merged(context: Context, ticket: str, fact: Completion) -> dict[str, Any]:
    """The same for integrated work: what came onto the integration branch. Error: `commit_missing`."""
    place, commit = context.project.repository, fact.commit or ""
    before, sealed = (repo.resolve(place, f"{commit}^{number}") if commit else None for number in (1, 2))
    if before is None or sealed is None:
        raise BatonError(
            "commit_missing",
            f"the merge of {ticket} ({commit[:12] or 'unknown'}) is not in {place}",
            "fetch the integration branch, then ask again",
        )
    return {
        "schema": "baton.diff/1",
        "assignment_id": fact.assignment_id,
        "ticket": ticket,
        "state": "integrated",
        "base": before,
        "head": commit,
        "commits": list(repo.log_subjects(place, before, sealed)),
        "committed": list(repo.changed_paths(place, before, commit)),
        "uncommitted": [],
        "patch": repo.patch(place, before, commit),
    }
