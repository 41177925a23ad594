"""Packets, receipts and batches are kept exactly as they were made."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from baton_cli.core import canonical
from baton_cli.core.facts import Batch
from baton_cli.store import assignments, evidence, plans
from baton_cli.store.db import Store, open_store
from tests.stand_ins import CHANGE, make_assignment, make_completion, make_packet, make_plan, receipt_bytes, record


@pytest.fixture
def store() -> Iterator[Store]:
    opened = open_store(None)
    record(opened, make_plan("- [ ] 1.1 Lay the first stone\n"))
    yield opened
    opened.close()


# Packets and receipts


@pytest.mark.parametrize(
    "body", [b"", b"{}", b"\0\xff\xfe", "日本\u2028".encode(), canonical.encode(make_packet()), b"x" * 3_000_000]
)
def test_a_packet_keeps_its_bytes_under_their_digest(store: Store, body: bytes) -> None:
    with store.transaction():
        name = evidence.add_packet(store, "a", body, 1.0)
    assert name == canonical.digest(body)
    assert evidence.packet(store, name) == body


def test_the_same_packet_twice_is_one(store: Store) -> None:
    with store.transaction():
        assert evidence.add_packet(store, "a", b"x", 1.0) == evidence.add_packet(store, "a", b"x", 2.0)
    assert store.rows("SELECT count(*) FROM packets")[0][0] == 1


def test_what_was_never_kept_is_none(store: Store) -> None:
    assert evidence.packet(store, "") is None
    assert evidence.receipt(store, "0" * 64) is None


def test_a_receipt_keeps_its_bytes_and_is_never_replaced(store: Store) -> None:
    name, body = receipt_bytes(make_packet())
    with store.transaction():
        evidence.add_receipt(store, "a", 1, name, body, 1.0)
        evidence.add_receipt(store, "b", 2, name, b"other", 2.0)
    assert evidence.receipt(store, name) == body
    assert store.rows("SELECT assignment_id, attempt FROM receipts")[0]["assignment_id"] == "a"


def test_a_receipt_that_replaces_another_leaves_it_there(store: Store) -> None:
    first, second = receipt_bytes(make_packet()), receipt_bytes(make_packet(), head="9" * 40)
    with store.transaction():
        for attempt, (name, body) in enumerate((first, second), 1):
            evidence.add_receipt(store, "a", attempt, name, body, 1.0)
    assert evidence.receipt(store, first[0]) == first[1]
    assert evidence.receipt(store, second[0]) == second[1]


# Batches


def batch(store: Store, session: str = "s-1", change: str = CHANGE, body: str = "[]") -> int:
    with store.transaction():
        number = evidence.add_batch(store, change, session, 1.0)
        evidence.fill_batch(store, number, body)
    return number


def test_a_batch_comes_back_as_it_was_until_it_is_acknowledged(store: Store) -> None:
    assert evidence.open_batch(store, CHANGE, "s-1") is None
    body = '[{"prompt":"日本\\n\u2028"}]'
    number = batch(store, body=body)
    assert evidence.open_batch(store, CHANGE, "s-1") == Batch(number, CHANGE, "s-1", body)
    assert evidence.open_batch(store, CHANGE, "s-1") == Batch(number, CHANGE, "s-1", body)
    with store.transaction():
        evidence.acknowledge(store, number, 2.0)
    assert evidence.open_batch(store, CHANGE, "s-1") is None


def test_a_batch_belongs_to_one_session_and_one_change(store: Store) -> None:
    mine, yours, elsewhere = batch(store), batch(store, "s-2"), batch(store, change="other")
    found = [
        evidence.open_batch(store, change, session)
        for change, session in ((CHANGE, "s-1"), (CHANGE, "s-2"), ("other", "s-1"))
    ]
    assert [one.batch for one in found if one] == [mine, yours, elsewhere]
    with store.transaction():
        evidence.acknowledge(store, mine, 2.0)
    assert evidence.open_batch(store, CHANGE, "s-1") is None
    assert evidence.open_batch(store, CHANGE, "s-2") is not None


def test_the_newest_open_batch_counts(store: Store) -> None:
    first, second = batch(store), batch(store)
    assert evidence.open_batch(store, CHANGE, "s-1").batch == second  # type: ignore[union-attr]
    with store.transaction():
        evidence.acknowledge(store, second, 2.0)
    assert evidence.open_batch(store, CHANGE, "s-1").batch == first  # type: ignore[union-attr]


def test_acknowledging_again_or_nothing_changes_nothing(store: Store) -> None:
    number = batch(store)
    with store.transaction():
        evidence.acknowledge(store, number, 2.0)
        evidence.acknowledge(store, number, 3.0)
        evidence.acknowledge(store, None, 3.0)
        evidence.acknowledge(store, 999, 3.0)
    assert [row["acknowledged_at"] for row in store.rows("SELECT acknowledged_at FROM batches")] == [2.0]


# Earlier work on another text


def integrated(
    store: Store, name: str, text: str, commit: str, fingerprint: str, kind: str = "integrated", keep: bool = True
) -> None:
    packet = make_packet(make_plan(f"- [ ] 1.1 {text}\n"))
    with store.transaction():
        digest = evidence.add_packet(store, name, canonical.encode(packet), 1.0) if keep else None
        row = make_assignment(name, ticket_id=1, packet=digest)
        store.insert(
            "assignments", **{key: getattr(row, key) for key in row._fields if key not in ("attempt", "state")},
            state="integrated", attempt=1,
        )  # fmt: skip
        assignments.add_attempt(store, name, row.attempt)
        plans.complete(
            store, CHANGE, make_completion(1, kind, fingerprint=fingerprint, assignment_id=name, commit=commit)
        )


def test_the_newest_integrated_work_on_another_text_is_named(store: Store) -> None:
    assert evidence.earlier_work(store, 1, "now") is None
    integrated(store, "a", "Lay a stone", "1" * 40, "old")
    integrated(store, "b", "Lay two stones", "2" * 40, "older")
    assert evidence.earlier_work(store, 1, "now") == {"commit": "2" * 40, "text": "1.1 Lay two stones"}
    assert evidence.earlier_work(store, 1, "older") == {"commit": "1" * 40, "text": "1.1 Lay a stone"}
    assert evidence.earlier_work(store, 2, "now") is None


def test_only_integrated_work_that_stands_counts_as_earlier(store: Store) -> None:
    integrated(store, "a", "x", "1" * 40, "old", kind="attested")
    assert evidence.earlier_work(store, 1, "now") is None
    integrated(store, "b", "x", "2" * 40, "old")
    with store.transaction():
        plans.revoke_completions(store, 1, 2.0)
    assert evidence.earlier_work(store, 1, "now") is None


def test_earlier_work_whose_packet_is_gone_still_names_its_commit(store: Store) -> None:
    integrated(store, "a", "x", "1" * 40, "old", keep=False)
    assert evidence.earlier_work(store, 1, "now") == {"commit": "1" * 40, "text": ""}
