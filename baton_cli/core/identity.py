"""Which ticket of a new revision is which known one, and what each is called.

Texts change under their ids and ids change above their texts, so neither decides alone. Every step looks only at what
the steps before left, and only pairs what is left without a choice; a choice that is left at the end is ambiguous.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import NamedTuple, TypeVar

from baton_cli.core.document import Document, Ticket
from baton_cli.core.ticket_text import words

_ENOUGH_WORDS = 4
_SMALL_GROUP = 8
_T = TypeVar("_T")


class KnownTicket(NamedTuple):
    """A ticket of earlier revisions. `present`: it was in the latest one. `ticket_id` never changes, `key` may.

    `unsure`: it may be one of the ambiguous tickets of the latest revision. `stands_in`: it is such an ambiguous one,
    so it is no ticket of its own yet, and only lends its number to the place until that is told apart.
    """

    ticket_id: int
    id: str | None
    fingerprint: str
    section_title: str
    text: str
    label: int | None
    present: bool
    key: str
    unsure: bool = False
    stands_in: bool = False


class Matching(NamedTuple):
    """By position the known `ticket_id`, or None for a new one; the ambiguous positions; what is gone.

    An ambiguous position has None, or what stood in for it before. `unsure` are the tickets that it may be.
    """

    ticket_ids: tuple[int | None, ...]
    ambiguous: tuple[int, ...]
    removed: tuple[int, ...]
    unsure: tuple[int, ...] = ()


def match(known: Sequence[KnownTicket], document: Document) -> Matching:
    """Recognise the known tickets (in plan order) in a document. Deterministic, and near linear in both.

    1. Same id and same text. 2. Same text. 3. Same text and section title (with the same id first): equal numbers pair
    in order; so do those of one section that became another as a whole. 4. The same for tickets that were no longer
    present, if the text has four words or the id or section agrees ("Run tests" somewhere else is another ticket).
    5. Same id and half of the words. Then a text that is still left on both sides (of present tickets: of several absent
    ones none comes back) is ambiguous, and so is an id for which several fit; a known ticket that one of these may be is
    not reported as removed, and stays a candidate of every later matching. So what is ambiguous stays so until the texts
    tell it apart, or all copies of a text got new ids of their own: then they are new tickets, and the known ones gone.
    """
    matcher = _Matcher(known, document)
    present = [index for index, one in enumerate(known) if (one.present or one.unsure) and not one.stands_in]
    absent = [index for index, one in enumerate(known) if not (one.present or one.unsure or one.stands_in)]
    matcher.same_text(present)
    matcher.same_text_again(present, absent)
    doubts = matcher.same_id(present)
    matcher.same_text(present)
    maybe, unsure = matcher.several(present)
    for index, place in doubts:
        if matcher.found[place] is None and index not in matcher.taken:
            maybe.add(index)
            unsure.add(place)
    left = matcher.left(present)
    ambiguous = tuple(sorted(unsure))
    matcher.stand_ins(ambiguous)
    return Matching(
        ticket_ids=tuple(None if index is None else known[index].ticket_id for index in matcher.found),
        ambiguous=ambiguous,
        removed=tuple(known[index].ticket_id for index in left if index not in maybe),
        unsure=tuple(sorted(known[index].ticket_id for index in left if index in maybe)),
    )


def keys(
    change: str, document: Document, labels: Sequence[int | None], next_label: int
) -> tuple[tuple[str, ...], tuple[int | None, ...]]:
    """The key and the label by position. `labels` holds those given before; new numbers start at `next_label`.

    The key is `<change>#<id>` when the id is unique, else `<change>#L<n>`. A label once given stays with its ticket,
    even while an id is in use. An id that reads like a label (`L3`) is never a key.
    """
    count = Counter(ticket.id for ticket in document.tickets)
    names, given = [], []
    for ticket, label in zip(document.tickets, labels, strict=True):
        unique = (
            ticket.id is not None and count[ticket.id] == 1 and not (ticket.id[0] == "L" and ticket.id[1:].isdigit())
        )
        if not unique and label is None:
            label, next_label = next_label, next_label + 1
        names.append(f"{change}#{ticket.id}" if unique else f"{change}#L{label}")
        given.append(label)
    return tuple(names), tuple(given)


class _Matcher:
    """The state of one matching: for each position the index of its known ticket, and which of those are taken."""

    def __init__(self, known: Sequence[KnownTicket], document: Document) -> None:
        self.known = known
        self.tickets = document.tickets
        self.titles = [section.title for section in document.sections]
        self.found: list[int | None] = [None] * len(self.tickets)
        self.taken: set[int] = set()

    def left(self, indices: Iterable[int]) -> list[int]:
        """Those of the known tickets that have no position yet."""
        return [index for index in indices if index not in self.taken]

    def title(self, ticket: Ticket) -> str:
        return self.titles[ticket.section]

    def pair(self, index: int, place: int) -> None:
        self.found[place] = index
        self.taken.add(index)

    def groups(
        self,
        indices: Iterable[int],
        of_known: Callable[[KnownTicket], Hashable],
        of_ticket: Callable[[Ticket], Hashable],
    ) -> list[tuple[list[int], list[int]]]:
        """What is left of both, grouped by equal values; only groups that have members on both sides."""
        found: defaultdict[Hashable, list[int]] = defaultdict(list)
        for index in self.left(indices):
            found[of_known(self.known[index])].append(index)
        if not found:
            return []
        places: defaultdict[Hashable, list[int]] = defaultdict(list)
        for ticket in self.tickets:
            if self.found[ticket.position] is None:
                places[of_ticket(ticket)].append(ticket.position)
        return [(members, places[value]) for value, members in found.items() if value in places]

    def same_text(self, indices: Sequence[int]) -> None:
        """Steps 1 to 3; step 2 once more at the end, for what step 3 left without a choice."""
        for members, places in self.groups(
            indices, lambda one: (one.id, one.fingerprint), lambda one: (one.id, one.fingerprint)
        ):
            self._if_single(members, places)
        if not self.left(indices):
            return
        for members, places in self.groups(
            indices,
            lambda one: (one.id, one.fingerprint, one.section_title),
            lambda one: (one.id, one.fingerprint, self.title(one)),
        ):
            self._in_order(members, places)
        self._single_texts(indices)
        for members, places in self.groups(
            indices,
            lambda one: (one.fingerprint, one.section_title),
            lambda one: (one.fingerprint, self.title(one)),
        ):
            self._in_order(members, places)
        self._single_texts(indices)
        for members, places in self.groups(indices, lambda one: one.fingerprint, lambda one: one.fingerprint):
            before = {self.known[index].section_title for index in members}
            after = {self.title(self.tickets[place]) for place in places}
            if len(before) == len(after) == 1:
                self._in_order(members, places)

    def same_text_again(self, present: Sequence[int], absent: Sequence[int]) -> None:
        """Step 4: texts that are back, unless a present ticket still has a claim on them, or they were ambiguous."""
        if not absent:
            return
        claimed = {self.known[index].fingerprint for index in self.left(present)}
        claimed |= {one.fingerprint for one in self.known if one.stands_in}
        wanted = {
            ticket.fingerprint
            for ticket in self.tickets
            if self.found[ticket.position] is None and ticket.fingerprint not in claimed
        }
        if not wanted:
            return
        ids = {(one.fingerprint, one.id) for one in self.tickets if one.id is not None}
        titles = {(one.fingerprint, self.title(one)) for one in self.tickets}
        self.same_text(
            [
                index
                for index in absent
                if (one := self.known[index]).fingerprint in wanted
                and (
                    (one.fingerprint, one.id) in ids
                    or (one.fingerprint, one.section_title) in titles
                    or len(words(one.text)) >= _ENOUGH_WORDS
                )
            ]
        )

    def same_id(self, indices: Sequence[int]) -> list[tuple[int, int]]:
        """Step 5. Returns the known tickets with the positions that they may be, where more than one fits."""
        doubts: list[tuple[int, int]] = []
        for members, places in self.groups(indices, lambda one: one.id, lambda one: one.id):
            if self.tickets[places[0]].id is None:
                continue
            if len(members) * len(places) > _SMALL_GROUP**2:
                fits = [(index, place) for index in members for place in places[:1]] + [
                    (index, place) for index in members[:1] for place in places
                ]
            else:
                fits = [(index, place) for index in members for place in places if self._half_of_words(index, place)]
            by_known = Counter(index for index, _ in fits)
            by_place = Counter(place for _, place in fits)
            for index, place in fits:
                if by_known[index] == by_place[place] == 1:
                    self.pair(index, place)
                else:
                    doubts.append((index, place))
        return doubts

    def several(self, indices: Iterable[int]) -> tuple[set[int], set[int]]:
        """The known tickets and the positions that have the same text and are still left."""
        unsure_known: set[int] = set()
        unsure: set[int] = set()
        for members, places in self.groups(indices, lambda one: one.fingerprint, lambda one: one.fingerprint):
            if all(self.known[index].unsure for index in members) and self._named_since(places):
                continue
            unsure_known.update(members)
            unsure.update(places)
        return unsure_known, unsure

    def stand_ins(self, places: Iterable[int]) -> None:
        """An ambiguous place keeps what stood in for its text before, in order."""
        spare: defaultdict[str, list[int]] = defaultdict(list)
        for index, one in enumerate(self.known):
            if one.stands_in:
                spare[one.fingerprint].append(index)
        for place in places:
            waiting = spare[self.tickets[place].fingerprint]
            if waiting:
                self.pair(waiting.pop(0), place)

    def _named_since(self, places: Iterable[int]) -> bool:
        """Whether all of these ambiguous places have ids of their own that none of them had before."""
        count = Counter(ticket.id for ticket in self.tickets)
        before = {(one.id, one.fingerprint) for one in self.known if one.stands_in}
        found = [self.tickets[place] for place in places]
        return all(
            ticket.id is not None and count[ticket.id] == 1 and (ticket.id, ticket.fingerprint) not in before
            for ticket in found
        )

    def _single_texts(self, indices: Sequence[int]) -> None:
        for members, places in self.groups(indices, lambda one: one.fingerprint, lambda one: one.fingerprint):
            self._if_single(members, places)

    def _if_single(self, members: Sequence[int], places: Sequence[int]) -> None:
        if len(members) == len(places) == 1:
            self.pair(members[0], places[0])

    def _in_order(self, members: Sequence[int], places: Sequence[int]) -> None:
        if len(members) == len(places):
            for index, place in zip(members, places, strict=True):
                self.pair(index, place)

    def _half_of_words(self, index: int, place: int) -> bool:
        """Half of the words that the two texts have on average."""
        old, new = words(self.known[index].text), words(self.tickets[place].text)
        return 4 * len(old & new) >= len(old) + len(new)
