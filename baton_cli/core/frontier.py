"""Where every ticket stands, and which ones can be claimed. Derived each time from plan, boxes and facts; never stored."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import Enum
from typing import NamedTuple

from baton_cli.core.facts import Completion
from baton_cli.core.lifecycle import ORPHANED, Assignment, State
from baton_cli.core.plan import Plan, PlannedTicket


class Status(str, Enum):
    """A ticket's status, as people see it."""

    INTEGRATED = "integrated"
    EXTERNAL = "external"
    ATTESTED = "attested"
    SKIPPED = "skipped"
    IN_FLIGHT = "in_flight"
    READY = "ready"
    WAITING = "waiting"
    BLOCKED = "blocked"


FINISHED = frozenset({Status.INTEGRATED, Status.EXTERNAL, Status.ATTESTED, Status.SKIPPED})
# Why a ticket that depends on nothing open is still not handed out.
BLOCKING_FLAGS = (("ambiguous", "ambiguous_identity"), ("manual", "manual"), ("no_verification", "no_verification"))


class TicketView(NamedTuple):
    """One ticket with its derived status. `waits_for` are the unfinished keys it waits for; `reason` says why blocked."""

    planned: PlannedTicket
    ticket_id: int
    status: Status
    reason: str | None
    waits_for: tuple[str, ...]
    assignment: Assignment | None
    completion: Completion | None

    @property
    def key(self) -> str:
        """The ticket's current key."""
        return self.planned.key


class Progress(NamedTuple):
    """How many tickets stand where."""

    total: int
    integrated: int
    external: int
    attested: int
    skipped: int
    in_flight: int
    ready: int
    waiting: int
    blocked: int

    @property
    def finished(self) -> int:
        """Tickets that nothing more is owed for."""
        return self.integrated + self.external + self.attested + self.skipped


def finished_as(planned: PlannedTicket, facts: Iterable[Completion]) -> tuple[Status | None, Completion | None]:
    """What finished this ticket, if anything: a fact about exactly this text, or a ticked box."""
    ticket, known = planned.ticket, tuple(facts)
    exact = [fact for fact in known if fact.fingerprint == ticket.fingerprint] if known else ()
    if exact:
        return Status(exact[-1].kind), exact[-1]
    if ticket.done:  # reworded, but its box is ticked: earlier evidence, where there is some, still explains the tick
        return (Status(known[-1].kind), known[-1]) if known else (Status.EXTERNAL, None)
    return None, None


def survey(
    plan: Plan,
    ticket_ids: Mapping[str, int],
    completions: Iterable[Completion],
    open_assignments: Iterable[Assignment],
) -> tuple[TicketView, ...]:
    """Every ticket's status, in plan order. Linear in tickets plus distinct dependency lists."""
    facts: dict[int, list[Completion]] = {}
    for completion in completions:
        facts.setdefault(completion.ticket_id, []).append(completion)
    held = {assignment.ticket_id: assignment for assignment in open_assignments}
    ended = {planned.key: finished_as(planned, facts.get(ticket_ids[planned.key], ())) for planned in plan.tickets}
    unfinished = _Unfinished({key for key, (status, _) in ended.items() if status is not None})
    views = []
    for planned in plan.tickets:
        ticket_id = ticket_ids[planned.key]
        status, fact = ended[planned.key]
        assignment = held.get(ticket_id)
        waits_for = unfinished.of(planned.after) if status is None else ()
        reason = None
        if status is None:
            status, reason = _unfinished_status(planned, assignment, waits_for)
        views.append(TicketView(planned, ticket_id, status, reason, waits_for, assignment, fact))
    return tuple(views)


class _Unfinished:
    """Tickets of a section share one dependency tuple, so each tuple is looked through once."""

    def __init__(self, finished: Collection[str]) -> None:
        self._finished = finished
        self._known: dict[int, tuple[str, ...]] = {}

    def of(self, after: tuple[str, ...]) -> tuple[str, ...]:
        found = self._known.get(id(after))
        if found is None:
            found = tuple(key for key in after if key not in self._finished)
            self._known[id(after)] = found
        return found


def _unfinished_status(
    planned: PlannedTicket, assignment: Assignment | None, waits_for: tuple[str, ...]
) -> tuple[Status, str | None]:
    if assignment is not None and assignment.state is State.EXHAUSTED:
        return Status.BLOCKED, "setup_failed" if assignment.reason == "setup_failed" else "exhausted"
    if "ambiguous" in planned.flags:
        return Status.BLOCKED, "ambiguous_identity"
    if assignment is not None:
        return Status.IN_FLIGHT, None
    if waits_for:
        return Status.WAITING, None
    for flag, reason in BLOCKING_FLAGS:
        if flag in planned.flags:
            return Status.BLOCKED, reason
    return Status.READY, None


def progress(views: Iterable[TicketView]) -> Progress:
    """The counts over all tickets."""
    counts = dict.fromkeys(Status, 0)
    for view in views:
        counts[view.status] += 1
    return Progress(total=sum(counts.values()), **{status.value: count for status, count in counts.items()})


class Room(NamedTuple):
    """How many more assignments may become `claimed`."""

    session: int
    project: int

    @property
    def free(self) -> int:
        """The smaller of both bounds, at least 0."""
        return max(0, min(self.session, self.project))


def room(session: str, capacity: int, parallel: int, every_open: Iterable[Assignment]) -> Room:
    """What `capacity` leaves to the session and `limits.parallel` to the project."""
    claimed = [assignment for assignment in every_open if assignment.state is State.CLAIMED]
    own = sum(1 for assignment in claimed if assignment.attempt.session == session)
    return Room(session=capacity - own, project=parallel - len(claimed))


def claimable(views: Iterable[TicketView]) -> tuple[TicketView, ...]:
    """What may be claimed now: orphaned assignments in plan order, then the frontier in plan order."""
    views = tuple(views)
    orphaned = tuple(
        view
        for view in views
        if view.assignment is not None and view.assignment.state in ORPHANED and view.status is Status.IN_FLIGHT
    )
    return orphaned + tuple(view for view in views if view.status is Status.READY)


def fresh_claims(views: Iterable[TicketView], session: str) -> tuple[Assignment, ...]:
    """What was claimed for a session and never handed out, in plan order."""
    held = (view.assignment for view in views if view.assignment is not None)
    return tuple(
        one for one in held if one.state is State.CLAIMED and one.attempt.session == session and not one.attempt.batch
    )
