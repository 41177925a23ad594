"""Changes, revisions, tickets, and the facts that finish them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import pytest

from baton_cli.core.lifecycle import State
from baton_cli.errors import BatonError
from baton_cli.store import assignments, merges, plans
from baton_cli.store.db import Store, open_store
from tests.stand_ins import (
    BASE,
    CHANGE,
    HEAD,
    make_assignment,
    make_change,
    make_completion,
    make_plan,
    record,
    ticket_rows,
)

TEXT = "## 1. A\n- [ ] 1.1 Lay the first stone\n- [ ] 1.2 Lay the second stone\n## 2. B\n- [ ] 2.1 Raise the wall\n"


@pytest.fixture
def store() -> Iterator[Store]:
    opened = open_store(None)
    yield opened
    opened.close()


# Changes


def test_a_change_comes_back_as_it_was_recorded(store: Store) -> None:
    changes = [make_change("b", target_branch=None), make_change("a", paused="me: lunch"), make_change("ä b")]
    with store.transaction():
        for change in changes:
            plans.start_change(store, change)
    assert plans.all_changes(store) == (changes[1], changes[0], changes[2])
    assert plans.get_change(store, "ä b") == changes[2]
    assert plans.get_change(store, "c") is None
    assert changes[0].integration_ref == "refs/heads/baton/b/integration"


def test_a_change_is_started_once(store: Store) -> None:
    record(store, make_plan(TEXT))
    with pytest.raises(sqlite3.IntegrityError), store.transaction():
        plans.start_change(store, make_change(base=HEAD))
    assert plans.get_change(store, CHANGE) == make_change()


def test_the_head_moves_only_from_where_it_was(store: Store) -> None:
    record(store, make_plan(TEXT))
    record(store, make_plan(TEXT, change="other"))
    with store.transaction():
        assert plans.set_integration_head(store, CHANGE, HEAD, "1" * 40) is False
        assert plans.set_integration_head(store, CHANGE, BASE, HEAD) is True
        assert plans.set_integration_head(store, CHANGE, BASE, "2" * 40) is False
        assert plans.set_integration_head(store, "nothing", BASE, HEAD) is False
    assert [change.integration_head for change in plans.all_changes(store)] == [HEAD, BASE]


def test_a_change_is_paused_and_resumed_alone(store: Store) -> None:
    record(store, make_plan(TEXT))
    record(store, make_plan(TEXT, change="other"))
    with store.transaction():
        plans.set_paused(store, CHANGE, "me: lunch")
    assert [change.paused for change in plans.all_changes(store)] == ["me: lunch", None]
    with store.transaction():
        plans.set_paused(store, CHANGE, None)
    assert [change.paused for change in plans.all_changes(store)] == [None, None]


# Revisions and tickets


def present(store: Store, change: str = CHANGE) -> list[tuple[int, str, bool]]:
    return [(ticket.ticket_id, ticket.key, ticket.ambiguous) for ticket in plans.present_tickets(store, change)]


def test_the_first_revision_gives_every_ticket_an_id(store: Store) -> None:
    assert plans.latest_revision(store, CHANGE) is None
    plan = make_plan(TEXT)
    ids = record(store, plan)
    assert present(store) == [
        (ids["grow#1.1"], "grow#1.1", False),
        (ids["grow#1.2"], "grow#1.2", False),
        (ids["grow#2.1"], "grow#2.1", False),
    ]
    revision = plans.latest_revision(store, CHANGE)
    assert revision is not None
    assert (revision.number, revision.digest, revision.recorded_at) == (1, plan.document.digest, 100.0)


def test_revisions_are_kept_with_their_bytes_and_counted_by_change(store: Store) -> None:
    record(store, make_plan(TEXT))
    record(store, make_plan(TEXT, change="other"))
    record(store, make_plan(TEXT.replace("wall", "walls")), at=200.0)
    rows = store.rows("SELECT change, number, text FROM revisions ORDER BY revision")
    assert [(row["change"], row["number"]) for row in rows] == [(CHANGE, 1), ("other", 1), (CHANGE, 2)]
    assert [bytes(row["text"]) for row in rows] == [
        TEXT.encode(),
        TEXT.encode(),
        TEXT.replace("wall", "walls").encode(),
    ]
    latest = plans.latest_revision(store, CHANGE)
    assert latest is not None
    assert (latest.number, latest.recorded_at) == (2, 200.0)


def test_a_known_ticket_keeps_its_id_through_order_key_and_text(store: Store) -> None:
    ids = record(store, make_plan(TEXT))
    later = make_plan(
        "## 1. A\n- [ ] 1.1 Lay the second stone\n- [ ] 1.2 New one\n- [ ] 1.3 Lay the very first stone\n"
    )
    again = record(store, later, known=[ids["grow#1.2"], None, ids["grow#1.1"]])
    assert again["grow#1.1"] == ids["grow#1.2"]
    assert again["grow#1.3"] == ids["grow#1.1"]
    assert again["grow#1.2"] not in ids.values()
    assert [key for _, key, _ in present(store)] == ["grow#1.1", "grow#1.2", "grow#1.3"]


def test_a_removed_ticket_is_known_but_not_present_and_can_come_back(store: Store) -> None:
    ids = record(store, make_plan(TEXT))
    record(store, make_plan("- [ ] 1.2 Lay the second stone\n"), known=[ids["grow#1.2"]])
    known = plans.known_tickets(store, CHANGE)
    assert [(ticket.ticket_id, ticket.present) for ticket in known] == [
        (ids["grow#1.2"], True), (ids["grow#1.1"], False), (ids["grow#2.1"], False),
    ]  # fmt: skip
    assert present(store) == [(ids["grow#1.2"], "grow#1.2", False)]
    record(store, make_plan(TEXT), known=[ids["grow#1.1"], ids["grow#1.2"], ids["grow#2.1"]])
    assert [ticket.present for ticket in plans.known_tickets(store, CHANGE)] == [True, True, True]


def test_known_tickets_come_in_plan_order_with_what_they_say(store: Store) -> None:
    plan = make_plan("## 2. B\n- [ ] 2.1 second\n## 1. A\n- [ ] 1.1 first\n")
    record(store, plan)
    known = plans.known_tickets(store, CHANGE)
    assert [(one.key, one.id, one.text, one.section_title, one.label) for one in known] == [
        (
            planned.key,
            planned.ticket.id,
            planned.ticket.text,
            plan.document.sections[planned.ticket.section].title,
            None,
        )
        for planned in plan.tickets
    ]
    assert [one.fingerprint for one in known] == [planned.ticket.fingerprint for planned in plan.tickets]


def test_ambiguity_is_kept_with_the_revision_only(store: Store) -> None:
    ids = record(store, make_plan(TEXT, ambiguous=[1]))
    assert [ambiguous for _, _, ambiguous in present(store)] == [False, True, False]
    record(store, make_plan(TEXT), known=list(ids.values()))
    assert [ambiguous for _, _, ambiguous in present(store)] == [False, False, False]


def test_what_an_ambiguous_line_may_be_is_kept_until_the_next_revision(store: Store) -> None:
    first = list(record(store, make_plan(TEXT)).values())
    plan = make_plan(TEXT, ambiguous=[1])
    rows = ticket_rows(plan, [first[0], None, first[2]])
    with store.transaction():
        _, ids = plans.record_revision(store, CHANGE, "digest", b"text", rows, 1.0, [first[1]])
    assert plans.unsure_tickets(store, CHANGE) == {first[1]}
    known = {one.ticket_id: (one.present, one.unsure, one.stands_in) for one in plans.known_tickets(store, CHANGE)}
    assert known[first[1]] == (False, True, False)
    assert known[ids[1]] == (True, False, True)
    record(store, make_plan(TEXT), first)
    assert plans.unsure_tickets(store, CHANGE) == set()
    assert ids[1] not in {one.ticket_id for one in plans.known_tickets(store, CHANGE)}, "what stood in is no ticket"


def test_labels_are_never_used_twice_even_when_their_tickets_are_gone(store: Store) -> None:
    plan = make_plan(TEXT)
    assert plans.next_label(store, CHANGE) == 1
    rows = [
        row._replace(label=number, key=f"grow#L{number}")
        for number, row in zip((1, 5, 3), ticket_rows(plan), strict=True)
    ]
    with store.transaction():
        plans.record_revision(store, CHANGE, "d1", b"", rows, 1.0)
    assert plans.next_label(store, CHANGE) == 6
    assert plans.next_label(store, "other") == 1
    with store.transaction():
        plans.record_revision(store, CHANGE, "d2", b"", [], 2.0)
    assert present(store) == []
    assert plans.next_label(store, CHANGE) == 6


def test_tickets_of_another_change_are_left_alone(store: Store) -> None:
    record(store, make_plan(TEXT))
    before = present(store)
    record(store, make_plan("- [ ] 1.1 x\n", change="other"))
    assert present(store) == before
    assert [key for _, key, _ in present(store, "other")] == ["other#1.1"]


def test_a_revision_that_cannot_be_recorded_whole_is_not_recorded(store: Store) -> None:
    ids = record(store, make_plan(TEXT))
    before = present(store)
    broken = [row._replace(text=None) for row in ticket_rows(make_plan(TEXT), list(ids.values()))]  # type: ignore[arg-type]
    with pytest.raises(sqlite3.IntegrityError), store.transaction():
        plans.record_revision(store, CHANGE, "d", b"", broken, 1.0)
    assert present(store) == before
    assert plans.latest_revision(store, CHANGE).number == 1  # type: ignore[union-attr]


def test_hostile_texts_are_only_text(store: Store) -> None:
    text = "'); DROP TABLE tickets; -- \x1b[31m \u2028 é"
    record(store, make_plan(f"- [ ] 1.1 {text}\n"))
    assert plans.known_tickets(store, CHANGE)[0].text == f"1.1 {text}"


# Completions


def test_completions_come_back_oldest_first(store: Store) -> None:
    ids = record(store, make_plan(TEXT))
    facts = [
        make_completion(ids["grow#2.1"], "skipped", why="no need", who="me", at=300.0),
        make_completion(
            ids["grow#1.1"], "integrated", checks=("pytest -q", "日本 'x'"), commit=HEAD, assignment_id="a", at=200.0
        ),
        make_completion(ids["grow#1.1"], "attested", fingerprint="0" * 16, at=100.0),
    ]
    with store.transaction():
        for fact in facts:
            plans.complete(store, CHANGE, fact)
    assert plans.completions(store, CHANGE) == tuple(facts)
    assert plans.completions(store, "other") == ()


@pytest.mark.parametrize("kind", ["external", "done", "", "Integrated"])
def test_only_facts_can_be_recorded(store: Store, kind: str) -> None:
    ids = record(store, make_plan(TEXT))
    with pytest.raises(sqlite3.IntegrityError), store.transaction():
        plans.complete(store, CHANGE, make_completion(ids["grow#1.1"], kind))


def test_reopening_takes_back_what_finished_one_ticket(store: Store) -> None:
    ids = record(store, make_plan(TEXT))
    with store.transaction():
        for name in ("1.1", "1.1", "1.2"):
            plans.complete(store, CHANGE, make_completion(ids[f"grow#{name}"]))
    with store.transaction():
        assert plans.revoke_completions(store, ids["grow#1.1"], 200.0) == 2
        assert plans.revoke_completions(store, ids["grow#1.1"], 300.0) == 0
    assert [fact.ticket_id for fact in plans.completions(store, CHANGE)] == [ids["grow#1.2"]]
    with store.transaction():
        plans.complete(store, CHANGE, make_completion(ids["grow#1.1"], "attested"))
    assert [fact.kind for fact in plans.completions(store, CHANGE)] == ["integrated", "attested"]


def test_the_checks_of_all_that_was_ever_integrated_each_once_in_order(store: Store) -> None:
    ids = record(store, make_plan(TEXT))
    with store.transaction():
        plans.complete(store, CHANGE, make_completion(ids["grow#1.1"], checks=("b", "a")))
        plans.complete(store, CHANGE, make_completion(ids["grow#1.2"], "attested", checks=("x",)))
        plans.complete(store, CHANGE, make_completion(ids["grow#2.1"], checks=("a", "c")))
        plans.revoke_completions(store, ids["grow#1.1"], 200.0)  # its commits are on the branch all the same
    assert plans.integrated_commands(store, CHANGE) == ("b", "a", "c")
    assert plans.integrated_commands(store, "other") == ()


# Proofs


def test_a_proof_holds_for_one_tree_of_one_change(store: Store) -> None:
    with store.transaction():
        plans.record_proofs(store, CHANGE, "t1", ["a", "b"], 1.0)
        plans.record_proofs(store, CHANGE, "t1", ["b", "c"], 2.0)
        plans.record_proofs(store, CHANGE, "t2", [], 2.0)
    assert plans.proved_commands(store, CHANGE, "t1") == {"a", "b", "c"}
    assert plans.proved_commands(store, CHANGE, "t2") == plans.proved_commands(store, "other", "t1") == frozenset()


# A merge


def sealed(store: Store) -> None:
    ids = record(store, make_plan(TEXT))
    with store.transaction():
        assignments.add(store, make_assignment("a", ticket_id=ids["grow#1.1"], state=State.SEALED, sealed_head=HEAD))


def test_a_merge_is_head_proofs_completion_and_state_in_one(store: Store) -> None:
    sealed(store)
    with store.transaction():
        done = merges.record_merge(store, assignments.get(store, "a"), "1" * 40, BASE, "t", ["a"], ["a", "b"], 500.0)
    assert (done.state.value, done.integrated_commit) == ("integrated", "1" * 40)
    assert plans.get_change(store, CHANGE).integration_head == "1" * 40  # type: ignore[union-attr]
    assert plans.proved_commands(store, CHANGE, "t") == {"a"}
    (fact,) = plans.completions(store, CHANGE)
    assert (fact.kind, fact.commit, fact.checks, fact.assignment_id) == ("integrated", "1" * 40, ("a", "b"), "a")
    assert fact.fingerprint == done.fingerprint


def test_a_merge_onto_another_head_than_the_recorded_one_is_refused_whole(store: Store) -> None:
    sealed(store)
    with pytest.raises(BatonError) as caught, store.transaction():
        merges.record_merge(store, assignments.get(store, "a"), "1" * 40, "9" * 40, "t", ["a"], ["a"], 500.0)
    assert caught.value.code == "changed_meanwhile"
    assert plans.completions(store, CHANGE) == ()
    assert assignments.get(store, "a").state.value == "sealed"
    assert plans.proved_commands(store, CHANGE, "t") == frozenset()


def test_a_merge_is_recorded_once(store: Store) -> None:
    sealed(store)
    before = assignments.get(store, "a")
    with store.transaction():
        merges.record_merge(store, before, "1" * 40, BASE, "t", [], ["a"], 500.0)
    for stale in (before, assignments.get(store, "a")):
        with pytest.raises(BatonError) as caught, store.transaction():
            merges.record_merge(store, stale, "2" * 40, "1" * 40, "t", [], ["a"], 600.0)
        assert caught.value.code in ("changed_meanwhile", "invalid_transition")
    assert len(plans.completions(store, CHANGE)) == 1
    assert plans.get_change(store, CHANGE).integration_head == "1" * 40  # type: ignore[union-attr]
