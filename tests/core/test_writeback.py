"""Write-back: which bytes change so that exactly these boxes count as done."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from baton_cli.core.tasks import parse
from baton_cli.core.writeback import Edit, apply, edits, is_slot
from tests.core.test_tasks import TEXTS


def flip(text: str, done: bool = True) -> str:
    document = parse(text.encode())
    return apply(document.data, edits(document, document.tickets[0], done)).decode()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("- [ ] a", "- [x] a"),
        ("- [] a", "- [x] a"),
        ("- [  ] a", "- [x ] a"),
        ("- [   ] a", "- [ x ] a"),
        ("- [~] a", "- [x] a"),
        ("- [ ~ ] a", "- [ x ] a"),
        ("- [✅] a", "- [x  ] a"),
        ("- [\u00a0] a", "- [x ] a"),
        ("- [\u00a0 ] a", "- [\u00a0x] a"),
        ("- [\t] a", "- [x] a"),
        ("- [ ](u) a", "- [x] (u) a"),
        ("- [ ][u] a", "- [x] [u] a"),
        ("- [x] a", "- [x] a"),
        ("- [X] a", "- [X] a"),
    ],
)
def test_tick(before: str, after: str) -> None:
    assert flip(before) == after
    assert parse(after.encode()).done == 1


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("- [x] a", "- [ ] a"),
        ("- [X] a", "- [ ] a"),
        ("- [ x ] a", "- [   ] a"),
        ("- [\u00a0x] a", "- [\u00a0 ] a"),
        ("- [~] a", "- [~] a"),
    ],
)
def test_untick(before: str, after: str) -> None:
    assert flip(before, done=False) == after


def test_children_first_then_the_parent_and_only_what_needs_it() -> None:
    document = parse("é\n- [ ] a\n  - [x] b\n  - [ ] c\n- [ ] d\n".encode())
    first = document.tickets[0]
    assert edits(document, first) == (
        Edit(first.checklist[1].slot, b" ", b"x"),
        Edit(first.box.slot, b" ", b"x"),
    )
    assert edits(document, first, done=False) == (Edit(first.checklist[0].slot, b"x", b" "),)


def test_apply_refuses_bytes_that_are_not_there() -> None:
    with pytest.raises(ValueError, match="byte 3 does not hold"):
        apply(b"- [x] a", [Edit(3, b" ", b"x")])


def test_is_slot() -> None:
    data = "é\n- [ ] a\n- [] b\n- [🚧] c\n- [✅] d\n  [ ] e".encode()
    slots = [place for place in range(-3, len(data) + 3) if is_slot(data, place)]
    first, empty, wide = data.index(b"[ ]") + 1, data.index(b"[]") + 1, data.index("[✅]".encode()) + 1
    assert slots == [first, empty, wide, wide + 1, wide + 2]
    assert not is_slot(b"- [ \xff] a", 3)


@given(TEXTS)
@settings(max_examples=300, deadline=None)
def test_ticking_a_ticket_makes_exactly_its_boxes_done_and_changes_nothing_else(text: str) -> None:
    data = text.encode()
    document = parse(data)
    for ticket in document.tickets:
        found = edits(document, ticket)
        changed = apply(data, found)
        after = parse(changed)
        own = {box.line for box in ticket.boxes}
        assert [box.done for box in after.boxes] == [box.done or box.line in own for box in document.boxes]
        assert [one.text for one in after.tickets] == [one.text for one in document.tickets]
        assert [one.fingerprint for one in after.tickets] == [one.fingerprint for one in document.tickets]
        assert after.sections == document.sections
        bare = all(data[box.slot + box.width + 1 :][:1] not in (b"(", b"[") for box in ticket.boxes)
        if bare:
            assert after.digest == document.digest
        if bare and all(box.width for box in ticket.boxes):
            assert len(changed) == len(data)
        inside = {place for box in ticket.boxes for place in range(box.slot, box.slot + max(box.width, 1))}
        assert all(edit.slot in inside for edit in found if edit.new != b" ")
        assert all(is_slot(changed, edit.slot) for edit in found if len(edit.old) == len(edit.new)) or not bare
        again = parse(apply(changed, edits(after, after.tickets[ticket.position], done=False)))
        assert not any(box.done for box in again.boxes if box.line in own)


def test_all_at_once_is_the_same_as_one_after_the_other() -> None:
    data = "- [ ] é\n  - [] b\n- [ ](u) c\n".encode()
    document = parse(data)
    together = apply(data, [edit for ticket in document.tickets for edit in edits(document, ticket)])
    for position in range(2):
        document = parse(data)
        data = apply(data, edits(document, document.tickets[position]))
    assert together == data == "- [x] é\n  - [x] b\n- [x] (u) c\n".encode()
