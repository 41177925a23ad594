"""Values that the store hands to the pure core: what is recorded about a change and its tickets."""

from __future__ import annotations

from typing import NamedTuple


class Change(NamedTuple):
    """A change that was run at least once. Times are seconds since the epoch; `paused` holds who and why."""

    change: str
    target_branch: str | None
    base: str
    integration_branch: str
    integration_head: str
    paused: str | None
    started_at: float

    @property
    def integration_ref(self) -> str:
        """The full name of the integration branch."""
        return f"refs/heads/{self.integration_branch}"


class Revision(NamedTuple):
    """One immutable parse of tasks.md, named by its digest (box states masked)."""

    number: int
    digest: str
    recorded_at: float


# What an operator decided -> how the ticket counts from then on.
DECIDED = {"done": "attested", "skip": "skipped"}


class Completion(NamedTuple):
    """Why a ticket counts as finished: `integrated`, `attested` (an operator's `done`) or `skipped`.

    It holds for the text it was made about; a reworded ticket is a new question.
    """

    ticket_id: int
    kind: str
    fingerprint: str
    assignment_id: str | None
    commit: str | None
    checks: tuple[str, ...]
    who: str | None
    why: str | None
    at: float


class LoggedEvent(NamedTuple):
    """One line of the append-only history."""

    event: int
    at: float
    change: str
    name: str
    ticket: str | None
    assignment_id: str | None
    attempt: int | None
    session: str | None
    cause: str | None
    detail: str | None


class Batch(NamedTuple):
    """The hand-outs of one answer, kept as they were given."""

    batch: int
    change: str
    session: str
    body: str
