"""What is wrong here, and what to do: asked of git, the files and the store, each question on its own."""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from baton_cli import config as configuration
from baton_cli import context as contexts
from baton_cli import project as projects
from baton_cli import repository as repositories
from baton_cli.config import Config
from baton_cli.context import Context
from baton_cli.core.findings import ERROR, NOTE, OK, WARNING, Finding
from baton_cli.errors import BatonError
from baton_cli.flow.parts import checkup_git, checkup_work, strayed
from baton_cli.project import Project
from baton_cli.store import assignments, db
from baton_cli.store import plans as store_plans


def examine(project: Project, *, repair: bool) -> tuple[Finding, ...]:
    """Every finding, in a fixed order. With `repair` the safe ones are mended: links, lists and rights, never work."""
    found: list[Finding] = []

    def ask(question: Callable[[], Iterable[Finding]]) -> None:
        try:
            found.extend(question())
        except BatonError as error:
            found.append(Finding(ERROR, error.code, error.message, error.hint))

    ask(checkup_git.tools)
    if any(finding.level == ERROR for finding in found):
        return tuple(found)  # nothing else can be asked
    config = Config()

    def load() -> Iterator[Finding]:
        nonlocal config
        config = configuration.load(project.root)
        yield from ()

    ask(load)
    readable = not any(finding.level == ERROR for finding in found)
    ask(lambda: checkup_git.settings(project, config))
    ask(lambda: _places(project, repair=repair))
    ask(lambda: checkup_work.held_locks(project))
    if readable:  # else nobody knows where the worktrees are
        ask(lambda: _with_store(project, repair=repair))
    return tuple(found)


def _places(project: Project, *, repair: bool) -> Iterator[Finding]:
    """Folders: what a sandbox reaches, what can be written, what is private, who finds the project again."""
    inside = os.path.realpath(project.common_dir).startswith(os.path.join(os.path.realpath(project.root), ""))
    if not inside:
        shared = os.path.commonpath([os.path.realpath(project.root), os.path.realpath(project.common_dir)])
        yield Finding(
            WARNING,
            "workspace_too_small",
            f"git's folder {project.common_dir} is outside of the project: a sandbox for {project.root} keeps it from agents",
            f"start the agents' harness in {shared}",
        )
    written = (project.common_dir, project.common_dir / "objects", project.common_dir / "refs", project.state)
    for folder in (project.root, *(place for place in written if place.exists())):
        if not os.access(folder, os.W_OK | os.X_OK):
            fix = "make it writable for you: see whose it is and how it is mounted"
            yield Finding(ERROR, "unwritable", f"{folder} cannot be written", fix)
    if not project.state.exists():
        return
    if stat.S_IMODE(project.state.stat().st_mode) & 0o077:
        if repair:
            project.state.chmod(0o700)
        said, fix = f"other users can look into {project.state}", "`baton doctor --repair` closes it to them"
        yield Finding(WARNING, "not_private", said, fix, repair)
    pointers = (projects.user_pointer(project.digest), repositories.pointer(project.common_dir, project.digest))
    astray = [pointer for pointer in pointers if repositories.read_path(pointer) != project.root]
    if astray:
        if repair:
            projects.prepare_state(project)
        yield Finding(
            NOTE,
            "pointer_missing",
            f"the id of an assignment does not lead to this project: {astray[0]} does not name it",
            "`baton doctor --repair` writes that file; so does the next session or drive",
            repair and all(repositories.read_path(pointer) == project.root for pointer in pointers),
        )


def _with_store(project: Project, *, repair: bool) -> Iterator[Finding]:
    """The store, and what only makes sense beside it. Without one, worktrees are strangers."""
    if not project.queue_db.exists():
        if any(project.worktrees.glob("*/*")):
            said = f"Baton's record {project.queue_db} is gone, and worktrees from before are there"
            fix = "put the file back if you can; without it Baton starts anew from what is merged"
            yield Finding(WARNING, "no_store", said, fix)
        else:
            yield Finding(
                NOTE, "no_store", f"Baton has no record here yet: {project.queue_db} is made when it first runs"
            )
        yield from checkup_work.worktrees(project, {}, frozenset(), repair=repair)
        return
    try:
        with contexts.opened(project, create=False) as context:
            problem = db.damage(context.store)
            if problem is not None:
                raise BatonError("store_corrupt", f"{project.queue_db}: {problem}", db.CORRUPT_HINT)
            known = len(store_plans.all_changes(context.store))
            held = f"holds {known} change{'' if known == 1 else 's'}" if known else "holds nothing yet"
            yield Finding(OK, "store", f"Baton's record {project.queue_db} is sound, and {held}")
            yield from _beside_store(context, repair=repair)
    except BatonError as error:
        yield Finding(ERROR, error.code, error.message, error.hint)
        yield from checkup_work.worktrees(project, None, frozenset(), repair=repair)


def _beside_store(context: Context, *, repair: bool) -> Iterator[Finding]:
    every = [
        assignment
        for change in store_plans.all_changes(context.store)
        for assignment in assignments.everything(context.store, change.change)
    ]
    moved = {item.id for item in every if item.open and not item.id.startswith(f"{context.project.digest}-")}
    if moved:
        yield Finding(
            WARNING,
            "project_moved",
            f"the project was moved or copied with work in progress ({len(moved)}), whose ids do not lead here",
            f"in bind, seal and reconcile of that work: --project {shlex.quote(str(context.project.root))}",
        )
    for change in strayed.gone(context):
        yield Finding(
            WARNING,
            "change_gone",
            f"{change.change} has no folder any more, and what is merged on {change.integration_branch} has not landed",
            f"if it was renamed, give it back the name openspec/changes/{change.change}; else that branch keeps the work",
        )
    for change in strayed.early(context):
        yield Finding(WARNING, "archived_early", *strayed.early_advice(change))
    places: frozenset[Path] = frozenset(context.worktree(item.worktree) for item in every if item.open)
    known = {Path(item.worktree).name: item for item in every}
    yield from checkup_work.worktrees(context.project, known, places, repair=repair)
    yield from checkup_work.refs(context)
