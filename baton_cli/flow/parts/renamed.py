"""Changes whose folder is gone while their work is still on a branch of Baton's only: most likely renamed by somebody."""

from __future__ import annotations

from baton_cli import openspec
from baton_cli.context import Context
from baton_cli.core.facts import Change
from baton_cli.errors import BatonError
from baton_cli.flow.parts.tickets import Loaded
from baton_cli.store import plans


def gone(context: Context) -> tuple[Change, ...]:
    """Begun changes that have no folder, open or archived, and merged work that the checkout's HEAD does not have."""
    root = context.project.root
    begun = plans.all_changes(context.store)
    names = {*openspec.change_names(root)}
    if all(change.change in names for change in begun):
        return ()
    from baton_cli.git import repo  # most looks ask git nothing

    names |= {folder.name for folder in openspec.archived_changes(root)}
    lost = [one for one in begun if one.change not in names and one.integration_head != one.base]
    try:
        return tuple(
            one for one in lost if not repo.is_ancestor(context.project.repository, one.integration_head, "HEAD")
        )
    except BatonError:
        return ()  # a commit is missing: whoever works with the branch is told


def refusal(context: Context, loaded: Loaded) -> BatonError | None:
    """Why this change must not begin: its ticked boxes were ticked for the merged work of a change that is gone.

    Begun all the same it would lack that work, and call those boxes ticked by hand.
    """
    ticked = {ticket.fingerprint for ticket in loaded.plan.document.tickets if ticket.done}
    if not ticked:
        return None
    for change in gone(context):
        merged = {
            fact.fingerprint for fact in plans.completions(context.store, change.change) if fact.commit is not None
        }
        if merged & ticked:
            return BatonError(
                "change_renamed",
                f"{loaded.change} has ticked boxes of {change.change}, whose folder is gone: their work is merged on"
                f" {change.integration_branch} alone",
                f"if it was renamed, give it back the name openspec/changes/{change.change}; to begin anew without that work,"
                " untick those boxes",
            )
    return None
