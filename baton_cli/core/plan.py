"""The plan of one change: every ticket with what it waits for, its checks, and what is special about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property
from typing import Any, Literal, NamedTuple

from baton_cli.core import wording
from baton_cli.core.checks import Check, CheckSources, cannot_fail, checks, inherited, verify_bullets
from baton_cli.core.dependencies import Dependencies, resolve
from baton_cli.core.tasks import Document, PlanWarning, Section, Ticket

__all__ = ["Check", "CheckSources", "Plan", "PlannedTicket", "build", "to_json"]

SCHEMA = "baton.plan/1"


class PlannedTicket(NamedTuple):
    """One ticket of a plan. `after` holds keys in plan order; tickets that wait for the same share one tuple.

    `flags` are among manual, closing_check, no_verification, ambiguous, edits_change_folder, skipped, in
    this order.
    """

    key: str
    ticket: Ticket
    after: tuple[str, ...]
    checks: tuple[Check, ...]
    flags: tuple[str, ...]


class _PlanParts(NamedTuple):
    change: str
    document: Document
    tickets: tuple[PlannedTicket, ...]
    warnings: tuple[PlanWarning, ...]


class Plan(_PlanParts):
    """All tickets in plan order, and what a person should look at."""

    @cached_property
    def by_key(self) -> dict[str, PlannedTicket]:
        """The tickets by their keys."""
        return {planned.key: planned for planned in self.tickets}

    @property
    def guessed(self) -> tuple[str, ...]:
        """The commands of checks that nobody configured."""
        return tuple(
            check.command for planned in self.tickets for check in planned.checks if check.source == "detected"
        )


def build(
    change: str,
    document: Document,
    keys: Sequence[str],
    *,
    sources: CheckSources,
    within_section: Literal["parallel", "sequential"] = "parallel",
    closing_check: bool = True,
    skipped: Collection[str] = (),
    ambiguous: Collection[int] = (),
) -> Plan:
    """The plan of a change. `keys` are the tickets' keys and `ambiguous` their positions, both by position.

    Linear in the tickets. Errors: plan_cycle, plan_dangling, plan_self_reference.
    """
    dependencies = resolve(
        document,
        [key.rsplit("#", 1)[-1] for key in keys],
        sequential=within_section == "sequential",
        closing_check=closing_check,
        skipped=frozenset(at for at, key in enumerate(keys) if key in skipped) if skipped else frozenset(),
    )
    after = _sharing(keys)
    edits = wording.change_folder_edits(change)
    found = _checks(document, sources)
    tickets = tuple(
        PlannedTicket(
            key=key,
            ticket=ticket,
            after=after(dependencies.after[ticket.position]),
            checks=own,
            flags=(*_flags(ticket, dependencies, own, ambiguous, edits), *(("skipped",) if key in skipped else ())),
        )
        for ticket, key, own in zip(document.tickets, keys, found, strict=True)
    )
    warnings = sorted((*document.warnings, *_warnings(document, tickets, sources)), key=lambda warning: warning.line)
    return Plan(change, document, tickets, tuple(warnings))


def _sharing(keys: Sequence[str]) -> Callable[[tuple[int, ...]], tuple[str, ...]]:
    """Positions -> keys; the same tuple of positions always gives the same tuple of keys."""
    made: dict[int, tuple[str, ...]] = {}

    def convert(positions: tuple[int, ...]) -> tuple[str, ...]:
        known = made.get(id(positions))  # all these tuples live as long as the dependencies do
        if known is None:
            known = made[id(positions)] = tuple(keys[position] for position in positions)
        return known

    return convert


def _checks(document: Document, sources: CheckSources) -> Iterator[tuple[Check, ...]]:
    """Each ticket's checks: its own, else its section's, else the change's, the project's, or the detected ones."""
    common = inherited(sources)
    by_section = [
        checks(verify_bullets(section.bullets).commands, "section", sources.timeout) or common
        for section in document.sections
    ]
    for ticket in document.tickets:
        own = verify_bullets(ticket.bullets).commands if ticket.bullets else ()
        yield checks(own, "ticket", sources.timeout) if own else by_section[ticket.section]


def _flags(
    ticket: Ticket,
    dependencies: Dependencies,
    own: tuple[Check, ...],
    ambiguous: Collection[int],
    edits: Callable[[str], bool],
) -> tuple[str, ...]:
    text = wording.sentence(ticket.title, ticket.body)
    flags = []
    if wording.marked_manual(text) or wording.outward(ticket.title):
        flags.append("manual")
    if ticket.position in dependencies.closing:
        flags.append("closing_check")
    if not own:
        flags.append("no_verification")
    if ticket.position in ambiguous:
        flags.append("ambiguous")
    if edits(text):
        flags.append("edits_change_folder")
    return tuple(flags)


def _warnings(document: Document, tickets: Sequence[PlannedTicket], sources: CheckSources) -> Iterator[PlanWarning]:
    """What open tickets give to think about."""
    waiting = [planned for planned in tickets if not planned.ticket.done and "skipped" not in planned.flags]
    if any(check.source == "detected" for planned in waiting for check in planned.checks):
        commands = ", ".join(f"`{_line(command)}`" for command in sources.detected)
        yield PlanWarning("checks_detected", 0, f"no baton.toml; checks found in the project's files: {commands}")
    handed_out = [planned for planned in waiting if "manual" not in planned.flags]
    bare = [planned for planned in handed_out if "no_verification" in planned.flags]
    if bare and len(bare) == len(handed_out):
        yield PlanWarning("no_check", 0, "no ticket has a verification command; set [verify] commands in baton.toml")
        bare = []
    for planned in bare:
        yield PlanWarning("no_check", planned.ticket.line, f"{_name(planned)} has no verification command")
    sizes = Counter(planned.ticket.section for planned in tickets)
    for planned in waiting:
        if planned.flags or wording.sounds_manual(planned.ticket.title):
            yield from _about(planned, alone=sizes[planned.ticket.section] == 1)
    yield from _about_checks(document.sections, waiting)


def _about(planned: PlannedTicket, *, alone: bool) -> Iterator[PlanWarning]:
    name, line, flags = _name(planned), planned.ticket.line, planned.flags
    if "closing_check" in flags and not alone:
        yield PlanWarning(
            "closing_check", line, f"{name} reads like a check of its section, so it waits for the others"
        )
    if "manual" in flags:
        message = (
            f"{name} is for a person (marked so, or it archives, pushes or opens a pull request): never handed out"
        )
        yield PlanWarning("manual", line, message)
    elif wording.sounds_manual(planned.ticket.title):
        message = f"{name} reads as if a person had to do it; mark it (manual) if agents should not get it"
        yield PlanWarning("manual_wording", line, message)
    if "edits_change_folder" in flags:
        message = f"{name} asks to edit the change's own folder, which workers may not touch"
        yield PlanWarning("edits_change_folder", line, message)
    if "ambiguous" in flags:
        message = f"{name}: several earlier tickets could be this one; its text must tell them apart"
        yield PlanWarning("ambiguous_identity", line, message)


def _about_checks(sections: Sequence[Section], waiting: Sequence[PlannedTicket]) -> Iterator[PlanWarning]:
    prose = [line for section in sections if section.bullets for line in verify_bullets(section.bullets).prose]
    prose += [
        line for planned in waiting if planned.ticket.bullets for line in verify_bullets(planned.ticket.bullets).prose
    ]
    for line in prose:
        yield PlanWarning(
            "verify_ignored", line, "this is no command: write only the command behind `verify:`, in back-ticks"
        )
    judged: dict[str, bool] = {}
    told: set[tuple[str, int]] = set()
    seen: set[int] = set()
    for planned in waiting:
        if id(planned.checks) in seen:
            continue
        seen.add(id(planned.checks))
        for check in planned.checks:
            lines = {"ticket": planned.ticket.line, "section": sections[planned.ticket.section].line}
            where = (check.command, lines.get(check.source, 0))
            if judged.setdefault(check.command, cannot_fail(check.command)) and where not in told:
                told.add(where)
                yield PlanWarning("check_cannot_fail", where[1], f"the check `{_line(check.command)}` cannot fail")


def to_json(plan: Plan) -> dict[str, Any]:
    """The plan as `baton.plan/1`. Equal lists of dependencies are one list object: do not change them in place."""
    lists: dict[int, list[str]] = {}
    groups: list[list[dict[str, Any]]] = [[] for _ in plan.document.sections]
    for planned in plan.tickets:
        after = lists.setdefault(id(planned.after), list(planned.after) if id(planned.after) not in lists else [])
        groups[planned.ticket.section].append(_ticket_json(planned, after))
    return {
        "schema": SCHEMA,
        "change": plan.change,
        "total": plan.document.total,
        "done": plan.document.done,
        "sections": [
            {"number": section.number, "title": section.title, "tickets": tickets}
            for section, tickets in zip(plan.document.sections, groups, strict=True)
            if tickets
        ],
        "warnings": [{"code": one.code, "line": one.line, "message": one.message} for one in plan.warnings],
    }


def _ticket_json(planned: PlannedTicket, after: list[str]) -> dict[str, Any]:
    ticket = planned.ticket
    return {
        "key": planned.key,
        "id": ticket.id,
        "title": ticket.title,
        "body": ticket.body,
        "line": ticket.line,
        "done": ticket.done,
        "checklist": [{"line": box.line, "done": box.done, "text": box.text} for box in ticket.checklist],
        "after": after,
        "verify": [check.command for check in planned.checks],
        "source": planned.checks[0].source if planned.checks else None,
        "flags": list(planned.flags),
    }


def _name(planned: PlannedTicket) -> str:
    return planned.key.rsplit("#", 1)[-1]


def _line(command: str) -> str:
    """A command on one line."""
    return " ".join(command.split())
