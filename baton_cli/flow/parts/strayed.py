"""Changes whose folder went away, renamed or archived, before their work came to where it belongs."""

from __future__ import annotations

import glob
import shlex
from pathlib import Path

from baton_cli import openspec
from baton_cli.context import Context
from baton_cli.core import names
from baton_cli.core.facts import Change
from baton_cli.errors import BatonError
from baton_cli.flow.parts.tickets import Loaded
from baton_cli.store import events, plans

MOST = 3  # changes for which git is asked whether they were squashed


def gone(context: Context) -> tuple[Change, ...]:
    """Begun changes that have no folder, open or archived, and merged work that the checkout's HEAD does not have."""
    closed = _closed(context)
    if not closed:
        return ()
    from baton_cli.git import repo  # most looks ask git nothing

    archived = {folder.name for folder in openspec.archived_changes(context.project.root)}
    lost = [change for change in closed if change.change not in archived]
    try:
        return tuple(
            one for one in lost if not repo.is_ancestor(context.project.repository, one.integration_head, "HEAD")
        )
    except BatonError:
        return ()  # a commit is missing: whoever works with the branch is told


def early(context: Context) -> tuple[Change, ...]:
    """Begun changes that were archived while their work is on Baton's branch alone; the newest `MOST` are looked at."""
    closed = _closed(context)
    if not closed:
        return ()
    archived = {folder.name for folder in openspec.archived_changes(context.project.root)}
    waiting = [
        change
        for change in closed
        if change.change in archived and events.latest(context.store, change.change, "landed") is None
    ]
    if not waiting:
        return ()
    from baton_cli.git import merge, repo  # most looks ask git nothing

    repository = context.project.repository
    try:
        apart = repo.not_merged(repository, [change.integration_ref for change in waiting], "HEAD")
        found = [change for change in reversed(waiting) if change.integration_ref in apart][:MOST]
        return tuple(
            one
            for one in found
            if one.target_branch is None
            or not merge.brings_nothing(repository, one.target_branch, one.integration_head)
        )
    except BatonError:
        return ()


def early_advice(change: Change) -> tuple[str, str]:
    """What is wrong with a change that was archived early, and what to do."""
    where = f"{change.change} was archived before it landed: its work is on {change.integration_branch} alone"
    back = f"move its folder back to openspec/changes/{change.change}, run `baton land {change.change}`, and archive it then"
    return where, f"{back}; if it came home otherwise, that branch may go"


def _closed(context: Context) -> list[Change]:
    """Begun changes with merged work that are no open change any more."""
    begun = plans.all_changes(context.store)
    names = {*openspec.change_names(context.project.root)} if begun else set()
    return [change for change in begun if change.change not in names and change.integration_head != change.base]


def refusal(context: Context, loaded: Loaded) -> BatonError | None:
    """Why this change must not begin: begun now it would lack work that is there, and call the boxes of that work ticked
    by hand."""
    return _fetched(context, loaded.change) or _renamed(context, loaded)


def _fetched(context: Context, change: str) -> BatonError | None:
    """Its integration branch is only in a remote, as it is in a clone."""
    name = names.integration_branch(context.config.branch_prefix, change)
    if not _mentioned(context.project.common_dir, name):
        return None
    from baton_cli.git import repo  # most looks ask git nothing

    repository = context.project.repository
    try:
        if f"refs/heads/{name}" in repo.refs(repository, f"refs/heads/{name}"):
            return None
        found = sorted(repo.not_merged(repository, [f"refs/remotes/*/{name}"], "HEAD"))
    except BatonError:
        return None
    if not found:
        return None
    remote = found[0].removeprefix("refs/remotes/")
    return BatonError(
        "integration_elsewhere",
        f"the work on {change} is on {remote}, and there is no {name} here to go on with",
        f"take it: git branch --no-track {shlex.quote(name)} {shlex.quote(remote)}, then call again",
    )


def _mentioned(common_dir: Path, name: str) -> bool:
    """Whether a remote may have a branch of this name: what git's files say without a process of its own."""
    if any(common_dir.glob(f"refs/remotes/*/{glob.escape(name)}")):
        return True
    try:
        return f"/{name}\n".encode() in (common_dir / "packed-refs").read_bytes()
    except OSError:
        return False


def _renamed(context: Context, loaded: Loaded) -> BatonError | None:
    """Its ticked boxes were ticked for the merged work of a change whose folder is gone."""
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
