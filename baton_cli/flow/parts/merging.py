"""Merging two commits in memory, as far as Baton does that by itself."""

from __future__ import annotations

from baton_cli.context import Context
from baton_cli.core.facts import Change
from baton_cli.errors import BatonError
from baton_cli.flow.parts import branch
from baton_cli.git import merge, repo
from baton_cli.git.merge import Merge


def in_memory(context: Context, change: Change, head: str, other: str, remedy: str, tree: str | None = None) -> Merge:
    """What merging `other` (its `tree`, if known) into `head` gives; nothing moves. `remedy` is what to do when it takes a
    merge driver.

    Errors: `unrelated_history`, `merge_driver`.
    """
    repository = context.project.repository
    base = repo.merge_base(repository, head, other)
    if base == head:
        return Merge(tree or repo.tree(repository, other), ())
    if base is None:
        raise BatonError(
            "unrelated_history", f"{other[:12]} has nothing in common with {head[:12]}", "see where it came from"
        )
    both = set(repo.changed_paths(repository, base, head)) & set(repo.changed_paths(repository, base, other))
    place = branch.own_worktree(context, change, head)
    drivers = repo.custom_merge_drivers(place, sorted(both)) if both else ()
    if drivers:
        raise BatonError(
            "merge_driver",
            f"merging needs the custom merge driver {', '.join(drivers)}, which Baton does not run",
            remedy,
        )
    return merge.merge_tree(place, head, other)
