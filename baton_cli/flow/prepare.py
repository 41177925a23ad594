"""Claim -> worktree and packet. Every step can be repeated: what a killed call left is adopted, or rebuilt if unusable."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from baton_cli.context import Context
from baton_cli.core import canonical, names
from baton_cli.core import packet as packets
from baton_cli.core.actions import iso
from baton_cli.core.facts import Change
from baton_cli.core.frontier import TicketView
from baton_cli.core.lifecycle import Assignment, Event
from baton_cli.errors import BatonError
from baton_cli.flow.parts import holding
from baton_cli.flow.parts.tickets import Loaded
from baton_cli.git import leftovers, repo, worktree
from baton_cli.private import write_private
from baton_cli.project import ChangeFolder
from baton_cli.provision import provision
from baton_cli.store import assignments, evidence
from baton_cli.store import plans as store_plans


def place_all(context: Context, change: Change, claims: Sequence[Assignment]) -> dict[str, str]:
    """Worktrees for claims that have none yet, all made at once; the base commit of each that was, by assignment.

    Whatever does not succeed is left to `prepare`, which makes one after the other and knows what can be in the way.
    """
    repository = context.project.repository
    with ExitStack() as locks:
        fresh = [
            item
            for item in (_relocated(context, claim) for claim in claims)
            if item.prepared_at is None
            and not context.worktree(item.worktree).exists()
            and locks.enter_context(holding.assignment(context, item.id, wait=False))
        ]
        if len(fresh) < 2:
            return {}
        for item in fresh:
            worktree.make_room(context.worktree(item.worktree))
        context.progress(f"making {len(fresh)} worktrees")
        head = (store_plans.get_change(context.store, change.change) or change).integration_head
        made = worktree.add_all(repository, [(context.worktree(item.worktree), item.branch) for item in fresh], head)
        return {item.id: head for item, done in zip(fresh, made, strict=True) if done}


def _relocated(context: Context, assignment: Assignment) -> Assignment:
    """With its worktree where the configuration of now has it, as long as none was made."""
    if assignment.prepared_at is not None or context.worktree(assignment.worktree).exists():
        return assignment
    place = context.worktree_name(f"{names.slug(assignment.change)}/{assignment.id.rpartition('-')[2]}")
    if place == assignment.worktree:
        return assignment
    with context.store.transaction():
        return assignments.set_columns(context.store, assignment, worktree=place)


def prepare(
    context: Context,
    change: Change,
    loaded: Loaded,
    assignment: Assignment,
    views: Sequence[TicketView],
    setup: Sequence[str],
    placed: Mapping[str, str],
) -> Assignment:
    """Give a claim its worktree, set-up and packet, under its lock. What is prepared already stays as it is; only a person's
    `retry` brings a new packet, where the ticket or its checks were changed since.

    `placed` are the base commits of the worktrees that were made just now, by assignment.
    """
    with holding.assignment(context, assignment.id, wait=True):
        assignment = assignments.get(context.store, assignment.id)
        path = context.worktree(assignment.worktree)
        view = next((view for view in views if view.ticket_id == assignment.ticket_id), None)
        if assignment.prepared_at is not None:
            # Its last agent may have been killed while its git held a lock that nobody recorded.
            leftovers.clear(context.project.common_dir, (f"refs/heads/{assignment.branch}",), path, sure=False)
            if assignment.attempt.kind != "retry" or view is None:
                return assignment
            return _repacked(context, loaded, assignment, view, views)
        if view is None:
            raise BatonError("ticket_gone", f"{assignment.ticket} is no longer in the plan", "call actions again")
        base = placed.get(assignment.id) or _place(context, change, assignment, path)
        result = provision(context.project.root, context.inside(path), context.config, setup, _log(context, assignment))
        if result.failed is not None:
            with context.store.transaction():
                return assignments.move(
                    context.store,
                    assignment,
                    Event.SETUP_FAILED,
                    context.now(),
                    reason="setup_failed",
                    detail=f"`{result.failed}` failed (log {result.log})",
                )
        ignored, digest = _placed(path) if result.anything else ((), repo.NOTHING_IGNORED)
        left = json.dumps({"ignored": list(ignored), "digest": digest})
        columns = {"base": base, "prepared_at": context.now(), "placed": left}
        value = _packet(context, loaded, assignment, view, views, base)
        return _keep(context, assignment, view, value, columns, str(path))


def _placed(path: Path) -> tuple[tuple[str, ...], str]:
    """What the set-up left in the worktree that git ignores."""
    state = repo.cleanliness(path)
    return state.ignored, state.ignored_digest


def _log(context: Context, assignment: Assignment) -> Path:
    return context.project.logs / f"{assignment.id}-{assignment.attempt.number}.log"


def _place(context: Context, change: Change, assignment: Assignment, path: Path) -> str:
    """The worktree on its branch at the integration head; its base commit. Nobody has been sent there yet."""
    repository = context.project.repository
    worktree.make_room(path)
    if not path.exists():
        head = (store_plans.get_change(context.store, change.change) or change).integration_head
        try:
            worktree.add(repository, path, assignment.branch, head)
            return head
        except BatonError as error:
            if error.code != "branch_exists":
                raise
    ref = f"refs/heads/{assignment.branch}"
    tip = repo.refs(repository, ref).get(ref)
    if tip is None:
        worktree.discard(repository, path)
        return _place(context, change, assignment, path)
    if not path.exists():
        worktree.add_existing(repository, path, assignment.branch)
    elif worktree.husk(path):  # its making was cut short: nobody was ever sent there
        worktree.rebuild(repository, path, assignment.branch)
    return tip


def _repacked(
    context: Context, loaded: Loaded, assignment: Assignment, view: TicketView, views: Sequence[TicketView]
) -> Assignment:
    """With a packet of the ticket as it is now, on the base that it has."""
    before: dict[str, Any] = json.loads(evidence.packet(context.store, assignment.packet or "") or b"{}")
    if assignment.base is None or not before:
        return assignment
    value = _packet(context, loaded, assignment, view, views, assignment.base)
    if {**json.loads(canonical.encode(value)), "created_at": None} == {**before, "created_at": None}:
        return assignment
    # A check that failed was one of the old packet's; what a merge or a gate said of the work still counts.
    forget = {"reason": None, "detail": None} if assignment.reason == "check_failed" else {}
    said = "a new packet: the ticket, its checks or its documents were changed"
    return _keep(context, assignment, view, value, forget, said)


def _keep(
    context: Context,
    assignment: Assignment,
    view: TicketView,
    value: Mapping[str, Any],
    columns: Mapping[str, Any],
    detail: str,
) -> Assignment:
    """Store a packet. It is of the text as it is now, which may be newer than the claim; so is what its integration
    finishes."""
    ticket = view.planned.ticket
    now_called = {"ticket": view.key, "title": ticket.title, "fingerprint": ticket.fingerprint}
    body = canonical.encode(value)
    store, now = context.store, context.now()
    write_private(
        context.project.packets / f"{assignment.id}.md", packets.page(value).encode("utf-8", "backslashreplace")
    )
    write_private(packet_path(context, assignment.id), body)
    with store.transaction():
        name = evidence.add_packet(store, assignment.id, body, now)
        assignment = assignments.set_columns(store, assignment, **now_called, packet=name, **columns)
        assignments.log(store, assignment, "prepared", now, detail=detail)
    return assignment


def packet_path(context: Context, assignment_id: str) -> Path:
    """Where the packet's read-only copy is."""
    return context.project.packets / f"{assignment_id}.json"


def _packet(
    context: Context, loaded: Loaded, assignment: Assignment, view: TicketView, views: Sequence[TicketView], base: str
) -> dict[str, Any]:
    ticket, folder, path = view.planned.ticket, loaded.folder, context.worktree(assignment.worktree)
    known = {other.key: other for other in views}
    return packets.build(
        assignment_id=assignment.id,
        change=assignment.change,
        planned=view.planned,
        section=loaded.plan.document.sections[ticket.section].title,
        base=base,
        branch=assignment.branch,
        worktree=str(path),
        cwd=str(context.inside(path)),
        prefix=context.project.prefix,
        dependencies=[_dependency(known[key]) for key in view.planned.after if key in known],
        earlier=evidence.earlier_work(context.store, assignment.ticket_id, ticket.fingerprint),
        documents=[_document(folder, item) for item in folder.documents],
        protected=protected_paths(context, folder),
        created_at=iso(context.now()),
    )


def _dependency(view: TicketView) -> Mapping[str, Any]:
    return {
        "key": view.key,
        "title": view.planned.ticket.title,
        "evidence": view.status.value,
        "commit": view.completion.commit if view.completion else None,
    }


def _document(folder: ChangeFolder, path: Path) -> Mapping[str, Any]:
    data = path.read_bytes()
    return packets.document(str(path.relative_to(folder.path)), data.decode("utf-8", "replace"), canonical.digest(data))


def protected_paths(context: Context, folder: ChangeFolder) -> tuple[str, ...]:
    """What a worker may not change, as paths or globs relative to the repository."""
    prefix = f"{context.project.prefix}/" if context.project.prefix else ""
    change = folder.path.relative_to(context.project.root).as_posix()
    tasks_file = folder.tasks.relative_to(context.project.root).as_posix()
    own = (tasks_file, f"{change}/**", "baton.toml")
    return tuple(dict.fromkeys(prefix + path for path in (*own, *context.config.protect)))
