"""The locks as every stage takes them: first what a killed holder left in git is cleared."""

from __future__ import annotations

from contextlib import AbstractContextManager

from baton_cli import locks
from baton_cli.context import Context
from baton_cli.core import names
from baton_cli.flow.parts import branch
from baton_cli.git import leftovers
from baton_cli.store import assignments
from baton_cli.store import plans as store_plans


def integration(context: Context, *, wait: bool) -> AbstractContextManager[bool]:
    """Hold the repository's integration lock; gives False when it is busy and `wait` is False."""

    def clear(sure: bool) -> None:
        for change in store_plans.all_changes(context.store):
            place = branch.own_place(context, change)
            leftovers.clear(context.project.common_dir, (change.integration_ref,), place, sure=sure)

    return locks.integration_lock(
        context.project, wait=wait, session=context.session, on_busy=_telling(context, "to integrate"), clear=clear
    )


def assignment(context: Context, assignment_id: str, *, wait: bool) -> AbstractContextManager[bool]:
    """Hold one assignment's lock; gives False when it is busy and `wait` is False."""

    def clear(sure: bool) -> None:
        found = assignments.find(context.store, assignment_id)
        if found is not None:
            kept = names.sealed_ref(assignment_id), names.replaced_ref(assignment_id, "*")
            refs = (f"refs/heads/{found.branch}", *kept)
            leftovers.clear(context.project.common_dir, refs, context.worktree(found.worktree), sure=sure)

    return locks.assignment_lock(
        context.project,
        assignment_id,
        wait=wait,
        session=context.session,
        on_busy=_telling(context, f"for {assignment_id}"),
        clear=clear,
    )


def _telling(context: Context, what: str) -> locks.Busy:
    """Say whom a call waits for."""
    return lambda holder: context.progress(f"waiting {what}: {locks.describe(holder)} is at work")
