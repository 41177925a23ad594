"""tasks.md -> plan: parse, recognise the tickets that are already known, record a revision when the text is new."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from baton_cli import config as configuration
from baton_cli import project as projects
from baton_cli.context import Context
from baton_cli.core import identity, tasks
from baton_cli.core import plan as plans
from baton_cli.core.facts import Completion, Revision
from baton_cli.core.identity import KnownTicket, Matching
from baton_cli.core.plan import CheckSources, Plan
from baton_cli.core.tasks import Document
from baton_cli.errors import BatonError
from baton_cli.flow.parts.tickets import Loaded
from baton_cli.project import ChangeFolder
from baton_cli.store import assignments, events
from baton_cli.store import plans as store_plans
from baton_cli.store.db import Store
from baton_cli.store.plans import TicketRow

if TYPE_CHECKING:
    from baton_cli.flow.parts.travelled import Travelled  # brings git along


def read_document(folder: ChangeFolder) -> Document:
    """Parse the tasks file. Errors: `unreadable_tasks`, `invalid_utf8`, `no_tasks` when it has no box at all."""
    try:
        data = folder.tasks.read_bytes()
    except OSError as error:
        raise BatonError(
            "unreadable_tasks", f"{folder.tasks}: {error.strerror}", "repair the file, then call again"
        ) from None
    document = tasks.parse(data)
    if not document.boxes:
        raise BatonError(
            "no_tasks",
            f"{folder.tasks} has no task line",
            "write each task as `- [ ] 1.1 Description` under a `## 1. Section`",
        )
    return document


def check_sources(context: Context, folder: ChangeFolder) -> CheckSources:
    """Where a ticket without checks of its own gets them from."""
    own = configuration.load_verify(folder.path / "baton.toml")
    config = context.config
    need = (own is None or own[0] is None) and config.verify is None
    if need:
        from baton_cli.flow.parts.detection import detected  # brings patterns for many kinds of projects
    return CheckSources(
        change=own[0] if own else None,
        project=config.verify,
        detected=detected(context.project.root).commands if need else (),
        timeout=(own[1] if own else None) or config.verify_timeout,
    )


def _build(
    context: Context,
    folder: ChangeFolder,
    document: Document,
    keys: Sequence[str],
    skipped: set[str],
    ambiguous: Sequence[int],
) -> Plan:
    return plans.build(
        folder.name,
        document,
        keys,
        sources=check_sources(context, folder),
        within_section=context.config.within_section,
        closing_check=context.config.closing_check,
        skipped=skipped,
        ambiguous=ambiguous,
    )


def _skipped(
    store: Store,
    change: str,
    document: Document,
    ticket_ids: Sequence[int | None],
    keys: Sequence[str],
    came: Sequence[Completion] = (),
) -> set[str]:
    facts = (*store_plans.completions(store, change), *came)
    skips = {(fact.ticket_id, fact.fingerprint) for fact in facts if fact.kind == "skipped"}
    if not skips:
        return set()
    return {
        key
        for ticket, ticket_id, key in zip(document.tickets, ticket_ids, keys, strict=True)
        if (ticket_id, ticket.fingerprint) in skips
    }


def _recognise(
    store: Store, change: str, document: Document
) -> tuple[tuple[KnownTicket, ...], Matching, tuple[str, ...], tuple[int | None, ...]]:
    known = store_plans.known_tickets(store, change)
    matching = identity.match(known, document)
    by_id = {ticket.ticket_id: ticket for ticket in known}
    labels = [by_id[ticket_id].label if ticket_id is not None else None for ticket_id in matching.ticket_ids]
    keys, labels_now = identity.keys(change, document, labels, store_plans.next_label(store, change))
    return known, matching, keys, labels_now


def look(context: Context, change: str, travelled: Callable[[], Travelled] | None = None) -> Loaded:
    """The plan as it is now, recording nothing. A ticket that was never recorded gets a negative id of its own.

    `travelled` is asked for facts where this store never ran the change.
    """
    return look_at(context, projects.change(context.project, change), travelled)


def look_at(context: Context, folder: ChangeFolder, travelled: Callable[[], Travelled] | None = None) -> Loaded:
    """The same for a folder that need not be among the open changes."""
    change = folder.name
    document = read_document(folder)
    latest = store_plans.latest_revision(context.store, change)
    if latest is not None and latest.digest == document.digest:
        return _known(context, folder, document, latest, travelled)
    _, matching, keys, _ = _recognise(context.store, change, document)
    ids = [-1 - place if ticket_id is None else ticket_id for place, ticket_id in enumerate(matching.ticket_ids)]
    came = _came(context, travelled, document, change, keys, ids)
    skipped = _skipped(context.store, change, document, ids, keys, came)
    plan = _build(context, folder, document, keys, skipped, matching.ambiguous)
    revision = latest or Revision(0, "", 0.0)
    ticket_ids = dict(zip(keys, ids, strict=True))
    return Loaded(folder, plan, ticket_ids, revision, unsure=frozenset(matching.unsure), came=came)


def _came(
    context: Context,
    travelled: Callable[[], Travelled] | None,
    document: Document,
    change: str,
    keys: Sequence[str],
    ids: Sequence[int],
) -> tuple[Completion, ...]:
    """The facts that came with the repository, about a change that was never run here."""
    if travelled is None or not document.done or store_plans.get_change(context.store, change) is not None:
        return ()
    from baton_cli.flow.parts.travelled import asked

    return travelled().facts(change, asked(document, dict(zip(keys, ids, strict=True))))


def plan_or_error(context: Context, change: str) -> dict[str, Any]:
    """`baton.plan/1` of a change, or its error with the box counts if the file can be read."""
    try:
        return plans.to_json(look(context, change).plan)
    except BatonError as error:
        value: dict[str, Any] = {
            "schema": plans.SCHEMA,
            "change": change,
            "total": None,
            "done": None,
            "error": error.value(),
        }
        try:
            document = tasks.parse(projects.change(context.project, change).tasks.read_bytes())
        except (BatonError, OSError):
            return value
        return {**value, "total": document.total, "done": document.done}


def load(context: Context, change: str) -> Loaded:
    """The plan, with its revision recorded if the text is new. A plan error is raised before anything is recorded."""
    while True:
        folder = projects.change(context.project, change)
        latest = store_plans.latest_revision(context.store, change)
        document = read_document(folder)
        if latest is not None and latest.digest == document.digest:
            return _known(context, folder, document, latest)
        recorded = _record(context, folder, document, latest)
        if recorded is not None:
            return recorded


def _known(
    context: Context,
    folder: ChangeFolder,
    document: Document,
    latest: Revision,
    travelled: Callable[[], Travelled] | None = None,
) -> Loaded:
    """The recorded revision itself: keys and ids are what the store has."""
    store, change = context.store, folder.name
    present = store_plans.present_tickets(store, change)
    keys = [ticket.key for ticket in present]
    ticket_ids = [ticket.ticket_id for ticket in present]
    ambiguous = [position for position, ticket in enumerate(present) if ticket.ambiguous]
    came = _came(context, travelled, document, change, keys, ticket_ids)
    skipped = _skipped(store, change, document, ticket_ids, keys, came)
    plan = _build(context, folder, document, keys, skipped, ambiguous)
    unsure = store_plans.unsure_tickets(store, change)
    return Loaded(folder, plan, dict(zip(keys, ticket_ids, strict=True)), latest, unsure=unsure, came=came)


def _record(context: Context, folder: ChangeFolder, document: Document, latest: Revision | None) -> Loaded | None:
    """Record the revision that follows `latest`; None when another process has recorded one since."""
    from baton_cli.core import fates  # most calls find the text as it was

    store, change = context.store, folder.name
    known, matching, keys, labels = _recognise(store, change, document)
    skipped = _skipped(store, change, document, matching.ticket_ids, keys)
    plan = _build(context, folder, document, keys, skipped, matching.ambiguous)
    found = fates.fates(known, matching, document, keys) if latest is not None else ()
    with store.transaction():
        if store_plans.latest_revision(store, change) != latest:
            return None
        revision, ticket_ids = store_plans.record_revision(
            store,
            change,
            document.digest,
            document.data,
            _rows(document, matching, keys, labels),
            context.now(),
            matching.unsure,
        )
        assignments.renumber(store, change)
        detail = "; ".join(fate.said for fate in found) or f"{len(document.tickets)} tickets"
        events.append(store, context.now(), change, "revision", cause=f"revision {revision.number}", detail=detail)
    ids = dict(zip(keys, ticket_ids, strict=True))
    return Loaded(folder, plan, ids, revision, fates.notices(found), frozenset(matching.unsure))


def _rows(document: Document, matching: Matching, keys: Sequence[str], labels: Sequence[int | None]) -> list[TicketRow]:
    ambiguous = set(matching.ambiguous)
    return [
        TicketRow(
            ticket_id=matching.ticket_ids[ticket.position],
            key=keys[ticket.position],
            id=ticket.id,
            fingerprint=ticket.fingerprint,
            title=ticket.title,
            text=ticket.text,
            section_title=document.sections[ticket.section].title,
            position=ticket.position,
            ambiguous=ticket.position in ambiguous,
            label=labels[ticket.position],
        )
        for ticket in document.tickets
    ]
