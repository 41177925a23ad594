"""The plan by section: finished and waiting sections in one line each, the others ticket by ticket, as far as it fits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from baton_cli.core.prompt import shorten
from baton_cli.views.grid import DONE, Grid
from baton_cli.views.page import Line, cells
from baton_cli.views.words import count, listed, plain, short, shown, unproved

Section = Mapping[str, Any]
Ticket = Mapping[str, Any]
CAPS = (20, 12, 8, 5, 3, 2, 1, 0)  # tickets listed of one section; the first that fits is taken
WAITING = 4  # of more waiting sections in a row than this and two, only so many have a line of their own
NOTES = 2  # reasons that are told of one wait
LISTED = {"ready": ("ready", ""), "waiting": ("waiting", "dim")}


@dataclass(frozen=True, slots=True)
class Waits:
    """What the sections' unfinished tickets are, to say "section 3" where all of them are meant."""

    of_section: tuple[tuple[str, ...], ...]
    names: tuple[str, ...]
    home: Mapping[str, int]  # a ticket's key -> the position of its section
    stuck: Mapping[str, str]  # the key of a ticket that needs a person -> why

    @staticmethod
    def read(sections: Sequence[Section]) -> Waits:
        """From all sections of a change."""
        unfinished = tuple(
            tuple(str(ticket["key"]) for ticket in section["tickets"] if ticket["status"] not in DONE)
            for section in sections
        )
        home = {key: at for at, keys in enumerate(unfinished) for key in keys}
        blocked = (ticket for section in sections for ticket in section["tickets"] if ticket["status"] == "blocked")
        stuck = {str(ticket["key"]): plain(ticket["reason"] or "blocked") for ticket in blocked}
        return Waits(unfinished, tuple(_name(section) for section in sections), home, stuck)

    def phrase(self, ticket: Ticket) -> str:
        """`section 3` for all that is unfinished of one, else the tickets; with why one of them is stuck."""
        keys, more, own = ticket["waits_for"], int(ticket["waits_for_more"]), str(ticket["key"])
        stuck = self._hindered(keys)
        closing = ["closing check"] if "closing_check" in ticket.get("flags", ()) else []
        at = self.home.get(keys[0]) if keys else None
        if at is not None and len(keys) + more > 1:
            whole = tuple(key for key in self.of_section[at] if key != own)
            if len(whole) == len(keys) + more and whole[: len(keys)] == tuple(keys):
                name = "the others" if own in self.of_section[at] else self.names[at]
                return name + _notes(stuck or closing)
        texts = [f"{short(key)} ({self.stuck[key]})" if key in self.stuck else short(key) for key in keys]
        return (f"{' '.join(texts)} and {more} more" if more else listed(texts, 8)) + _notes(closing)

    def outside(self, section: int, tickets: Sequence[Ticket]) -> str:
        """What a whole waiting section waits for: the others it names, in plan order."""
        places: dict[int, None] = {}
        stuck: dict[str, None] = {}
        single: dict[str, None] = {}
        for ticket in tickets:
            keys = ticket["waits_for"]
            stuck.update(dict.fromkeys(self._hindered(keys)))
            foreign = [key for key in keys if self.home.get(key, section) != section]
            places.update((self.home[key], None) for key in foreign)
            single.update(dict.fromkeys(foreign))
        if not places:
            return ""
        whys = _notes(list(stuck))
        if len(single) == 1:
            return short(next(iter(single))) + whys
        return listed([self.names[at] for at in sorted(places)], 3) + whys

    def _hindered(self, keys: Sequence[str]) -> list[str]:
        """Those of the tickets that need a person, each with why."""
        return [f"{short(key)} {self.stuck[key]}" for key in keys if key in self.stuck]


def plan(change: Mapping[str, Any], grid: Grid, room: int) -> list[Line]:
    """The sections in at most about `room` lines."""
    sections = list(change.get("sections", ()))
    waits = Waits.read(sections)
    for cap in CAPS:
        blocks = list(_blocks(sections, waits, grid, cap))
        if sum(len(lines) for _, lines in blocks) <= room:
            break
    lines: list[Line] = []
    for at, (_, block) in enumerate(blocks):
        if len(lines) + len(block) >= room and at + 1 < len(blocks):
            rest = [section for part, _ in blocks[at:] for section in part]
            return [*lines, grid.more(_more_sections(rest))]
        lines += block
    return lines


def _blocks(
    sections: Sequence[Section], waits: Waits, grid: Grid, cap: int
) -> Iterator[tuple[list[Section], list[Line]]]:
    """The sections that stand together, and their lines."""
    for kind, group in groupby(enumerate(sections), key=lambda pair: _kind(pair[1])):
        pairs = list(group)
        if kind == "done":
            run = [section for _, section in pairs]
            yield run, [_finished(run, grid)]
            continue
        most = WAITING if kind == "waiting" and len(pairs) > WAITING + 2 else len(pairs)
        for at, section in pairs[:most]:
            yield (
                [section],
                [_waiting(at, section, waits, grid)] if kind == "waiting" else _open(section, waits, grid, cap),
            )
        if rest := [section for _, section in pairs[most:]]:
            yield rest, [grid.more(_more_sections(rest))]


def _kind(section: Section) -> str:
    """done, waiting, or open: something happens in it."""
    standings = {str(ticket["status"]) for ticket in section["tickets"]} - DONE
    return "done" if not standings else "waiting" if standings == {"waiting"} else "open"


def _finished(sections: Sequence[Section], grid: Grid) -> Line:
    numbers = [shown(section["number"]) for section in sections if section.get("number")]
    ends = list(dict.fromkeys((numbers[0], numbers[-1]))) if numbers else []
    titles = [shown(section["title"]) for section in sections]
    title = ", ".join(titles)
    for most in range(len(titles) - 1, 0, -1) if len(titles) < 100 else (2, 1):
        if cells(title) <= grid.title_width:
            break
        title = f"{', '.join(titles[:most])} and {len(titles) - most} more"
    tickets = [ticket for section in sections for ticket in section["tickets"]]
    label = "-".join(ends) if len(numbers) == len(sections) else ""
    return grid.row(("done", "green"), label, (title, "dim"), [(_done(tickets), "green")])


def _done(tickets: Sequence[Ticket]) -> str:
    """11 done, and what of it nothing was proved for."""
    said = f"{sum(1 for ticket in tickets if ticket['status'] in DONE)} done"
    other = unproved(Counter(ticket["status"] for ticket in tickets))
    return f"{said} ({other})" if other else said


def _waiting(at: int, section: Section, waits: Waits, grid: Grid) -> Line:
    left = [ticket for ticket in section["tickets"] if ticket["status"] not in DONE]
    verb = "waits" if len(left) == 1 else "wait"
    cause = waits.outside(at, left)
    said = f"{count(len(left), 'ticket')} {verb}" + (f" for {cause}" if cause else " for each other")
    label, title = shown(section.get("number")), shown(section["title"])
    return grid.row(("waiting", "dim"), label, (title, "dim"), [(said, "dim")])


def _open(section: Section, waits: Waits, grid: Grid, cap: int) -> list[Line]:
    tickets = section["tickets"]
    done = sum(1 for ticket in tickets if ticket["status"] in DONE)
    told: Line = [(f"{done} of {len(tickets)} done", "green" if done else "dim")]
    for status, word, style in (("blocked", "blocked", "red"), ("in_flight", "in flight", "yellow")):
        number = sum(1 for ticket in tickets if ticket["status"] == status)
        if number:
            told += [(", ", "dim"), (f"{number} {word}", style)]
    label, title = shown(section.get("number")), shown(section["title"])
    lines = [grid.row(("rest", ""), label, (title, "bold"), told)]
    queue = [ticket for ticket in tickets if ticket["status"] in LISTED]
    chosen = sorted(queue, key=lambda ticket: ticket["status"] != "ready")[:cap]
    kept = {id(ticket) for ticket in chosen}
    for ticket in queue:
        if id(ticket) in kept:
            sign, style = LISTED[ticket["status"]]
            said = "ready" if sign == "ready" else f"waits for {waits.phrase(ticket)}"
            lines.append(
                grid.row((sign, style), short(ticket["key"]), (shown(ticket["title"]), style), [(said, style)])
            )
    rest = [ticket for ticket in queue if id(ticket) not in kept]
    if rest:
        lines.append(grid.more(f"and {_more(rest)}"))
    return lines


def _more(tickets: Sequence[Ticket]) -> str:
    """23 more ready, 4 more waiting."""
    numbers = {status: sum(1 for ticket in tickets if ticket["status"] == status) for status in LISTED}
    return ", ".join(f"{number} more {status}" for status, number in numbers.items() if number)


def _more_sections(sections: Sequence[Section]) -> str:
    counts: dict[str, int] = {}
    for section in sections:
        for ticket in section["tickets"]:
            status = "done" if ticket["status"] in DONE else str(ticket["status"]).replace("_", " ")
            counts[status] = counts.get(status, 0) + 1
    said = ", ".join(f"{number} {status}" for status, number in counts.items())
    return f"and {count(len(sections), 'more section')}: {said}"


def _notes(notes: Sequence[str]) -> str:
    """Why, in brackets: two of it, and how many more there are."""
    more = [f"{len(notes) - NOTES} more"] if len(notes) > NOTES else []
    return f" ({'; '.join([*notes[:NOTES], *more])})" if notes else ""


def _name(section: Section) -> str:
    number = shown(section.get("number"))
    return f"section {number}" if number else f'"{shown(shorten(section["title"], 30))}"'
