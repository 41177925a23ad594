"""The life of an assignment: one table of (state, event) pairs. A pair that is not in it changes nothing.

Binding an agent is no state (the agent id is a column), and a ticket's status is derived, never stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from baton_cli.errors import BatonError


class State(str, Enum):
    """Where an assignment stands."""

    CLAIMED = "claimed"
    UNKNOWN = "unknown"
    SEALED = "sealed"
    CONFLICTED = "conflicted"
    REJECTED = "rejected"
    EXHAUSTED = "exhausted"
    INTEGRATED = "integrated"
    ABANDONED = "abandoned"


class Event(str, Enum):
    """What can happen to an assignment."""

    SEAL = "seal"
    NO_RECEIPT = "no_receipt"
    LEASE_EXPIRED = "lease_expired"
    SETUP_FAILED = "setup_failed"
    RECOVER = "recover"
    GIVE_UP = "give_up"
    MERGED = "merged"
    CONFLICT = "conflict"
    GATE_FAILED = "gate_failed"
    EVIDENCE_STALE = "evidence_stale"
    ABANDON = "abandon"
    SUPERSEDE = "supersede"
    RETRY = "retry"


FINAL = frozenset({State.INTEGRATED, State.ABANDONED})
OPEN = tuple(state for state in State if state not in FINAL)
# What no session owns any more and the next `actions` may hand out again.
ORPHANED = (State.UNKNOWN, State.CONFLICTED, State.REJECTED)

_OWN: dict[State, dict[Event, State]] = {
    State.CLAIMED: {
        Event.SEAL: State.SEALED,
        Event.NO_RECEIPT: State.UNKNOWN,
        Event.LEASE_EXPIRED: State.UNKNOWN,
        Event.SETUP_FAILED: State.EXHAUSTED,
    },
    State.UNKNOWN: {
        Event.SEAL: State.SEALED,
        Event.RECOVER: State.CLAIMED,
        Event.GIVE_UP: State.EXHAUSTED,
    },
    State.SEALED: {
        Event.SEAL: State.SEALED,
        Event.MERGED: State.INTEGRATED,
        Event.CONFLICT: State.CONFLICTED,
        Event.GATE_FAILED: State.REJECTED,
        Event.EVIDENCE_STALE: State.UNKNOWN,
    },
    State.CONFLICTED: {
        Event.SEAL: State.SEALED,
        Event.RECOVER: State.CLAIMED,
        Event.GIVE_UP: State.EXHAUSTED,
    },
    State.REJECTED: {
        Event.SEAL: State.SEALED,
        Event.RECOVER: State.CLAIMED,
        Event.GIVE_UP: State.EXHAUSTED,
    },
    State.EXHAUSTED: {Event.SEAL: State.SEALED},
}
_EVERY_OPEN: dict[Event, State] = {
    Event.ABANDON: State.ABANDONED,
    Event.SUPERSEDE: State.ABANDONED,
    Event.RETRY: State.UNKNOWN,
}

TABLE: dict[tuple[State, Event], State] = {
    (state, event): target for state in OPEN for event, target in {**_EVERY_OPEN, **_OWN[state]}.items()
}


def next_state(state: State, event: Event) -> State:
    """The state after `event`; `invalid_transition` when the table has no such pair."""
    try:
        return TABLE[state, event]
    except KeyError:
        raise BatonError(
            "invalid_transition",
            f"{event.value} is not possible for an assignment that is {state.value}",
            "run `baton status` to see where it stands",
        ) from None


class Terminal(str, Enum):
    """How an agent run ended, as its harness told it."""

    COMPLETED = "completed"
    FAILED = "failed"
    STOPPED = "stopped"
    MAX_TOKENS = "max_tokens"
    REFUSED = "refused"
    LOST = "lost"


def counts_as_attempt(ending: str, head_moved: bool) -> bool:
    """Whether an attempt that ended so uses up one of `limits.attempts`.

    `ending` is a terminal, or `lease_expired`, `conflicted`, `rejected`. A person's stop and a merge conflict
    are nobody's failure; a lost agent that committed something was getting somewhere.
    """
    if ending in ("stopped", "conflicted"):
        return False
    if ending in ("lost", "lease_expired"):
        return not head_moved
    return True


def told(attempts: Sequence[Attempt], refused: Mapping[int, str]) -> str:
    """How the last attempts ended; empty when there was one at most, of which all is said elsewhere. `refused` is why Baton
    did not take what one left."""
    ended = []
    for item in attempts:
        if item.batch:
            bad = item.terminal if item.terminal != Terminal.COMPLETED.value else None
            said = bad or refused.get(item.number) or item.terminal or "lost sight of"
            ended.append(f"#{item.number} {said.replace('_', ' ')}")
    return f"attempts so far: {', '.join(ended[-5:])}" if len(ended) > 1 else ""


class Attempt(NamedTuple):
    """The n-th agent run on an assignment. Times are seconds since the epoch."""

    number: int
    session: str
    claim_token: str
    agent: str | None
    claimed_at: float
    lease_expires_at: float
    evidence_at: float
    start_head: str | None
    start_dirty: str | None
    checkout: str | None
    terminal: str | None
    note: str | None
    settled_at: float | None
    counted: bool
    batch: int | None
    kind: str

    @property
    def next_number(self) -> int:
        """The number of the attempt after this one: its own while nobody was sent out on what a `retry` began."""
        return self.number if self.kind == "retry" and self.batch is None else self.number + 1


class Assignment(NamedTuple):
    """A claimed ticket with its worktree, branch, base commit and packet, and its current attempt."""

    id: str
    change: str
    ticket_id: int
    ticket: str
    title: str
    fingerprint: str
    state: State
    reason: str | None
    detail: str | None
    branch: str
    worktree: str
    base: str | None
    packet: str | None
    placed: str | None
    prepared_at: float | None
    sealed_head: str | None
    receipt: str | None
    sealed_at: float | None
    onto: str | None
    refused_head: str | None
    conflicts: int
    integrated_commit: str | None
    removed_at: float | None
    kept: str | None
    created_at: float
    state_since: float
    attempt: Attempt

    @property
    def open(self) -> bool:
        """Whether anything can still happen to it."""
        return self.state not in FINAL
