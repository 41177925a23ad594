"""Which ticket of a new revision is which known one, and what each is called."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baton_cli.core.identity import KnownTicket, Matching, keys, match
from baton_cli.core.tasks import Document, parse
from tests.core.test_tasks import TEXTS


def known_from(document: Document, first: int = 0, present: bool = True) -> list[KnownTicket]:
    return [
        KnownTicket(
            ticket_id=first + ticket.position,
            id=ticket.id,
            fingerprint=ticket.fingerprint,
            section_title=document.sections[ticket.section].title,
            text=ticket.text,
            label=None,
            present=present,
            key="",
        )
        for ticket in document.tickets
    ]


def plan(*lines: str) -> str:
    return "".join(f"{line}\n" if line.startswith("#") else f"- [ ] {line}\n" for line in lines)


def step(before: Sequence[str], after: Sequence[str], absent: Sequence[str] = ()) -> Matching:
    """Known: `before` with ids from 0, and `absent` with ids from 100."""
    known = known_from(parse(plan(*before).encode())) + known_from(parse(plan(*absent).encode()), 100, present=False)
    return match(known, parse(plan(*after).encode()))


def ids(matching: Matching) -> list[int | None]:
    return list(matching.ticket_ids)


@settings(deadline=None)
@given(TEXTS)
def test_a_document_matches_itself(text: str) -> None:
    document = parse(text.encode())
    assert match(known_from(document), document) == Matching(tuple(range(len(document.tickets))), (), ())


LINES = st.sampled_from(
    [
        "## One",
        "## Two",
        "1.1 write it",
        "1.2 write it",
        "write it",
        "write it all",
        "1.1 write it all now",
        "2.1 other",
        "run",
    ]
)


@settings(deadline=None)
@given(st.lists(LINES, max_size=12), st.lists(LINES, max_size=12), st.lists(LINES, max_size=4))
def test_pairs_are_one_to_one_and_nothing_is_in_two_places(a: list[str], b: list[str], c: list[str]) -> None:
    found = step(a, b, c)
    taken = [one for one in found.ticket_ids if one is not None]
    assert len(taken) == len(set(taken))
    assert not set(taken) & set(found.removed)
    assert all(found.ticket_ids[place] is None for place in found.ambiguous)
    assert all(one < 100 for one in found.removed)
    assert step(a, b, c) == found


@settings(deadline=None)
@given(
    st.lists(st.integers(0, 30), unique=True, max_size=20).flatmap(
        lambda one: st.tuples(st.just(one), st.permutations(one))
    )
)
def test_different_texts_are_found_wherever_they_go(orders: tuple[list[int], list[int]]) -> None:
    before, after = orders
    found = step(
        [f"1.{i} task number {n}" for i, n in enumerate(before)],
        [f"2.{i} task number {n}" for i, n in enumerate(after)],
    )
    assert [before[one] for one in found.ticket_ids if one is not None] == after


def test_renumbering_follows_the_text() -> None:
    assert ids(step(["1.1 alpha", "1.2 beta"], ["1.1 new thing", "1.2 alpha", "1.3 beta"])) == [None, 0, 1]
    assert ids(step(["1.1 alpha one", "1.2 beta two"], ["1.1 beta two", "1.2 alpha one"])) == [1, 0]


def test_a_changed_text_is_the_same_ticket_while_half_of_the_words_stay() -> None:
    assert ids(step(["1.1 write the parser now"], ["1.1 write the parser with tests"])) == [0]
    other = step(["1.1 write the parser now"], ["1.1 delete an old cache"])
    assert (ids(other), other.removed) == ([None], (0,))
    no_id = step(["write the parser now"], ["write the parser soon"])
    assert (ids(no_id), no_id.removed) == ([None], (0,))


def test_equal_texts_are_told_apart_by_id_then_by_section() -> None:
    assert ids(step(["1.1 run", "1.2 run"], ["1.2 run", "1.1 run"])) == [1, 0]
    assert ids(step(["## A", "run", "## B", "run"], ["## B", "run", "## A", "run"])) == [1, 0]
    # by elimination: one stayed in its section, so the other moved
    assert ids(step(["## A", "run", "## B", "run"], ["## A", "run", "## C", "run"])) == [0, 1]


def test_equal_texts_in_equal_numbers_pair_in_order() -> None:
    assert ids(step(["run", "run"], ["other", "run", "run"])) == [None, 0, 1]
    assert ids(step(["## A", "run", "run"], ["## Renamed", "run", "run"])) == [0, 1]


@pytest.mark.parametrize(
    ("before", "after", "ambiguous"),
    [
        (["run", "run"], ["run"], (0,)),
        (["run"], ["run", "run"], (0, 1)),
        (["run", "run"], ["run", "run", "run"], (0, 1, 2)),
    ],
)
def test_equal_texts_in_unequal_numbers_are_ambiguous_and_not_removed(
    before: list[str], after: list[str], ambiguous: tuple[int, ...]
) -> None:
    found = step(before, after)
    assert (found.ambiguous, found.removed) == (ambiguous, ())
    assert ids(found) == [None] * len(after)


def test_a_copy_beside_the_ticket_with_its_id_is_new() -> None:
    found = step(["1.1 run it"], ["1.1 run it", "1.2 run it"])
    assert (ids(found), found.ambiguous) == ([0, None], ())


def test_an_id_that_several_claim_is_ambiguous() -> None:
    found = step(["1.1 write the parser"], ["1.1 write the parser now", "1.1 write the parser soon"])
    assert (ids(found), found.ambiguous, found.removed) == ([None, None], (0, 1), ())
    apart = step(
        ["1.1 write the parser", "1.1 delete old files"], ["1.1 delete many old files", "1.1 write the big parser"]
    )
    assert ids(apart) == [1, 0]


def test_removed_tickets_are_named_in_order() -> None:
    assert step(["1.1 alpha", "1.2 beta", "1.3 gamma"], ["1.1 beta"]).removed == (0, 2)


def test_a_ticket_that_was_cut_is_found_again_when_pasted() -> None:
    assert ids(step(["1.1 alpha"], ["1.1 alpha", "3.1 the text that was cut"], ["1.2 the text that was cut"])) == [
        0,
        100,
    ]


def test_present_tickets_have_precedence_over_absent_ones() -> None:
    assert ids(
        step(["2.1 write the parser again"], ["3.1 write the parser again"], ["3.1 write the parser again"])
    ) == [0]


def test_a_short_text_comes_back_only_with_its_id_or_section() -> None:
    assert ids(step(["## A", "x"], ["## B", "4.1 Run tests"], ["## C", "1.1 Run tests"])) == [None]
    assert ids(step(["## A", "x"], ["## B", "1.1 Run tests"], ["## C", "1.1 Run tests"])) == [100]
    assert ids(step(["## A", "x"], ["## C", "4.1 Run tests"], ["## C", "1.1 Run tests"])) == [100]


def test_matching_is_near_linear_even_when_all_ids_or_texts_are_equal() -> None:
    for lines in (
        [f"1.1 task number {n} word{n}" for n in range(4000)],
        ["same text"] * 4000,
        [f"1.{n % 999} other{n} text{n}" for n in range(4000)],
    ):
        known = known_from(parse(plan(*lines).encode()))
        changed = parse(plan(*[f"{line} more" for line in lines], "one").encode())
        assert len(match(known, changed).ticket_ids) == 4001  # a quadratic step would take minutes


def test_keys_are_ids_where_unique_and_labels_elsewhere() -> None:
    document = parse(plan("1.1 a", "b", "1.2 c", "1.2 d", "L3: e", "A1 f").encode())
    assert keys("ch", document, [None] * 6, 4) == (
        ("ch#1.1", "ch#L4", "ch#L5", "ch#L6", "ch#L7", "ch#A1"),
        (None, 4, 5, 6, 7, None),
    )


def test_a_label_stays_with_its_ticket() -> None:
    document = parse(plan("1.1 a", "b", "c").encode())
    assert keys("ch", document, [2, 1, None], 3) == (("ch#1.1", "ch#L1", "ch#L3"), (2, 1, 3))


class Book:
    """What the store keeps from revision to revision, without a store."""

    def __init__(self) -> None:
        self.known: list[KnownTicket] = []
        self.next = 0

    def read(self, *lines: str) -> tuple[Matching, list[int]]:
        """Match a revision and record it; the matching and the ticket ids by position."""
        document = parse(plan(*lines).encode())
        found = match(self.known, document)
        rows, given = [], []
        for ticket, known in zip(document.tickets, found.ticket_ids, strict=True):
            given.append(self.next if known is None else known)
            self.next += known is None
            (row,) = known_from(parse(plan(ticket.text).encode()), given[-1])
            title = document.sections[ticket.section].title
            rows.append(row._replace(section_title=title, stands_in=ticket.position in found.ambiguous))
        rest = [one for one in self.known if one.ticket_id not in given and not one.stands_in]
        rest = [one._replace(present=False, unsure=one.ticket_id in found.unsure) for one in rest]
        self.known = rows + sorted(rest, key=lambda one: one.ticket_id)
        return found, given


def test_what_is_ambiguous_stays_so_until_the_texts_tell_it_apart() -> None:
    book = Book()
    book.read("mow the lawn", "sweep")
    found, given = book.read("mow the lawn", "mow the lawn", "sweep")
    assert (found.ambiguous, found.unsure, found.removed, given) == ((0, 1), (0,), (), [2, 3, 1])
    found, given = book.read("mow the lawn", "mow the lawn", "sweep", "dust")
    assert (found.ambiguous, found.unsure, given) == ((0, 1), (0,), [2, 3, 1, 4])
    found, given = book.read("mow the lawn", "mow the small lawn", "sweep", "dust")
    assert (found.ambiguous, found.unsure, given) == ((), (), [0, 5, 1, 4])


def test_a_copy_that_goes_again_leaves_the_ticket_and_one_that_goes_altogether_takes_it_along() -> None:
    book = Book()
    book.read("mow the lawn now")
    book.read("mow the lawn now", "mow the lawn now")
    assert book.read("mow the lawn now")[1] == [0]
    book.read("mow the lawn now", "mow the lawn now")
    assert book.read("sweep")[0].removed == (0,)
    assert book.read("mow the lawn now")[1] == [0]


def test_copies_with_new_ids_of_their_own_are_new_but_not_without_a_look_at_them() -> None:
    book = Book()
    book.read("3.1 mow")
    assert book.read("1.1 mow", "1.2 mow")[0].ambiguous == (0, 1)
    assert book.read("1.1 mow", "1.2 mow", "sweep")[0].ambiguous == (0, 1)
    found, given = book.read("1.3 mow", "1.4 mow", "sweep")
    assert (found.ambiguous, found.removed, given) == ((), (0,), [4, 5, 3])


@settings(deadline=None)
@given(st.lists(st.lists(LINES, max_size=9), min_size=1, max_size=6))
def test_a_revision_read_twice_says_the_same(revisions: list[list[str]]) -> None:
    book = Book()
    for lines in revisions:
        first, given = book.read(*lines)
        again, same = book.read(*lines)
        assert (again.ambiguous, again.unsure, again.removed, same) == (first.ambiguous, first.unsure, (), given)
        assert not {*first.unsure, *first.removed} & {*given}
        assert len(set(given)) == len(given)
