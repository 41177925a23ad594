"""tasks.md and git history -> is every ticked box proved? Nothing else is asked: no store, no worktree, no state folder."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from baton_cli import config as configuration
from baton_cli import project as projects
from baton_cli.core import audit as audits
from baton_cli.core import chain, identity, names, tasks
from baton_cli.errors import BatonError
from baton_cli.flow.parts import travelled
from baton_cli.git import repo
from baton_cli.project import ChangeFolder, Project


def audit(project: Project, change: str, allow: Collection[str], *, landed: bool = False) -> dict[str, Any]:
    """The audit of a change, open or archived, as `baton.audit/1`. With `landed` its work has to be in what is checked out.
    Errors: `no_such_change`, `unreadable_tasks`."""
    folder, archived = _folder(project, change)
    document = tasks.parse(_bytes(folder.tasks))
    keys, _ = identity.keys(change, document, [None] * len(document.tickets), 1)
    repository = project.repository
    refs = repo.refs(repository)
    tips = _tips(project, change, refs)
    found, shallow = _follow(project, change, refs, tips)
    if not found.links:  # perhaps on a branch that is not checked out
        everywhere = {name: oid for name, oid in refs.items() if name.startswith(("refs/heads/", "refs/remotes/"))}
        elsewhere, _ = _follow(project, change, refs, everywhere)
        if elsewhere.links:
            tips, found = everywhere, elsewhere
    here = {"HEAD": repo.head(repository).oid}
    if tips == here or all(repo.is_ancestor(repository, tip, here["HEAD"]) for tip in tips.values()):
        apart = frozenset[str]()
    else:
        apart = frozenset(link.oid for link in found.links) - {
            link.oid for link in _follow(project, change, refs, here)[0].links
        }
    where = audits.Where(
        change=change,
        tasks=folder.tasks.relative_to(project.repository).as_posix(),
        archived=archived,
        branches=tuple(_short(name) for name in tips)[:5],
        shallow=shallow,
        apart=apart,
        landed=landed,
    )
    return audits.audit(where, document, keys, found, allow)


def _follow(project: Project, change: str, refs: dict[str, str], tips: dict[str, str]) -> tuple[chain.Chain, bool]:
    """What is found from these tips, and whether the history ends before its beginning."""
    history = travelled.History(project, refs, tips.values())
    return history.chain(change, tips.values()), history.shallow


def _folder(project: Project, change: str) -> tuple[ChangeFolder, bool]:
    try:
        return projects.change(project, change), False
    except BatonError as error:
        if error.code != "no_such_change":
            raise
        same = [folder for folder in projects.archived(project) if folder.name == change]
        if not same:
            raise
        return same[-1], True


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BatonError("unreadable_tasks", f"{path}: {error.strerror}", "repair the file, then call again") from None


def _tips(project: Project, change: str, refs: dict[str, str]) -> dict[str, str]:
    """Where to begin: what is checked out, and the integration branch as it is here, else as it was fetched."""
    name = names.integration_branch(_prefix(project), change)
    own = f"refs/heads/{name}"
    found = {"HEAD": repo.head(project.repository).oid}
    if own in refs:
        return {**found, own: refs[own]}
    remote = {ref: oid for ref, oid in refs.items() if ref.startswith("refs/remotes/") and ref.endswith(f"/{name}")}
    return {**found, **remote}


def _prefix(project: Project) -> str:
    """How Baton's branches begin. A proof from git alone does not hang on a mistake elsewhere in the settings."""
    try:
        return configuration.load(project.root).branch_prefix
    except BatonError:
        return configuration.Config().branch_prefix


def _short(ref: str) -> str:
    return ref.removeprefix("refs/heads/").removeprefix("refs/remotes/")
