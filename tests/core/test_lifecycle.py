"""The life of an assignment: every (state, event) pair against a table of its own, and the store's lists."""

from __future__ import annotations

import itertools
import re

import pytest

from baton_cli.core import lifecycle
from baton_cli.core.frontier import FINISHED, Status
from baton_cli.core.lifecycle import (
    FINAL,
    OPEN,
    ORPHANED,
    TABLE,
    Event,
    State,
    Terminal,
    counts_as_attempt,
    next_state,
)
from baton_cli.errors import BatonError
from baton_cli.store import migrations
from tests.stand_ins import make_assignment

# Written from the protocol, not from the code: state -> event -> next state.
OWN = {
    "claimed": {
        "seal": "sealed",
        "no_receipt": "unknown",
        "lease_expired": "unknown",
        "setup_failed": "exhausted",
    },
    "unknown": {"seal": "sealed", "recover": "claimed", "give_up": "exhausted"},
    "sealed": {
        "seal": "sealed",
        "merged": "integrated",
        "conflict": "conflicted",
        "gate_failed": "rejected",
        "evidence_stale": "unknown",
    },
    "conflicted": {"seal": "sealed", "recover": "claimed", "give_up": "exhausted"},
    "rejected": {"seal": "sealed", "recover": "claimed", "give_up": "exhausted"},
    "exhausted": {"seal": "sealed"},
    "integrated": {},
    "abandoned": {},
}
FROM_ANY_OPEN = {"abandon": "abandoned", "supersede": "abandoned", "retry": "unknown"}
EVENTS = {event for events in OWN.values() for event in events} | set(FROM_ANY_OPEN)


def expected(state: str, event: str) -> str | None:
    if state in ("integrated", "abandoned"):
        return None
    return OWN[state].get(event, FROM_ANY_OPEN.get(event))


PAIRS = list(itertools.product(OWN, sorted(EVENTS)))


def test_states_and_events_are_those_of_the_protocol() -> None:
    assert [state.value for state in State] == list(OWN)
    assert {event.value for event in Event} == EVENTS


@pytest.mark.parametrize(("state", "event"), PAIRS)
def test_each_pair_does_what_the_protocol_says(state: str, event: str) -> None:
    target = expected(state, event)
    if target is not None:
        assert next_state(State(state), Event(event)) is State(target)
        return
    with pytest.raises(BatonError) as caught:
        next_state(State(state), Event(event))
    assert caught.value.code == "invalid_transition"
    assert state in caught.value.message
    assert event in caught.value.message
    assert caught.value.hint


def test_the_table_holds_nothing_else() -> None:
    pairs = {(state.value, event.value): target.value for (state, event), target in lifecycle.TABLE.items()}
    assert pairs == {pair: target for pair in PAIRS if (target := expected(*pair))}


def test_nothing_leaves_a_final_state_and_everything_open_can_be_ended() -> None:
    assert {state.value for state in FINAL} == {"integrated", "abandoned"}
    assert set(OPEN) | FINAL == set(State)
    assert not set(OPEN) & FINAL
    for state in OPEN:
        assert (state, Event.ABANDON) in TABLE
        assert (state, Event.SEAL) in TABLE


def test_only_what_can_be_recovered_is_orphaned() -> None:
    assert set(ORPHANED) == {state for state in State if (state, Event.RECOVER) in TABLE}


def test_no_way_leads_to_integrated_but_through_a_seal() -> None:
    assert {state for (state, _), target in lifecycle.TABLE.items() if target is State.INTEGRATED} == {State.SEALED}
    assert {event for (_, event), target in lifecycle.TABLE.items() if target is State.SEALED} == {Event.SEAL}


@pytest.mark.parametrize("state", list(State))
def test_an_assignment_is_open_until_it_is_final(state: State) -> None:
    assert make_assignment(state=state).open is (state.value not in ("integrated", "abandoned"))


def sql_list(text: str) -> list[str]:
    return re.findall(r"'([^']*)'", text)


def test_the_lists_in_the_schema_are_the_enumerations() -> None:
    assert sql_list(migrations.STATES) == [state.value for state in State]
    assert sql_list(migrations.OPEN_STATES) == [state.value for state in OPEN]
    facts = {status.value for status in FINISHED} - {Status.EXTERNAL.value}  # a ticked box is no fact of the store
    assert set(sql_list(migrations.KINDS)) == facts


@pytest.mark.parametrize(
    ("ending", "still", "moved"),
    [
        ("completed", True, True),
        ("failed", True, True),
        ("max_tokens", True, True),
        ("refused", True, True),
        ("rejected", True, True),
        ("stopped", False, False),
        ("conflicted", False, False),
        ("lost", True, False),
        ("lease_expired", True, False),
    ],
)
def test_which_endings_use_up_an_attempt(ending: str, still: bool, moved: bool) -> None:
    assert counts_as_attempt(ending, head_moved=False) is still
    assert counts_as_attempt(ending, head_moved=True) is moved


def test_the_endings_of_a_harness_are_those_of_the_protocol() -> None:
    assert [ending.value for ending in Terminal] == ["completed", "failed", "stopped", "max_tokens", "refused", "lost"]
