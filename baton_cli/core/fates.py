"""What an edit of tasks.md did to each ticket that it touched, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from baton_cli.core.document import Document
from baton_cli.core.identity import KnownTicket, Matching
from baton_cli.core.prompt import shorten
from baton_cli.core.ticket_text import describe

NAMED = 3  # tickets of one kind that a notice names
TITLE = 40  # characters of a title


class Fate(NamedTuple):
    """One ticket's: of what kind, and the sentence."""

    kind: str
    said: str


def fates(
    known: Sequence[KnownTicket], matching: Matching, document: Document, keys: Sequence[str]
) -> tuple[Fate, ...]:
    """All of them, in plan order; removals last."""
    by_id = {ticket.ticket_id: ticket for ticket in known}
    found: list[Fate] = []

    def add(kind: str, said: str, text: str) -> None:
        found.append(Fate(kind, f"{said} ({shorten(describe(text)[1], TITLE)})"))

    for ticket in document.tickets:
        ticket_id, key = matching.ticket_ids[ticket.position], keys[ticket.position]
        if ticket.position in matching.ambiguous:
            add("ambiguous", f"{key} is ambiguous: its text stands several times", ticket.text)
        elif ticket_id is None:
            add("new", f"{key} is new", ticket.text)
        else:
            before = by_id[ticket_id]
            if before.key != key:
                add("renumbered", f"{before.key} is now {key}", ticket.text)
            if before.fingerprint != ticket.fingerprint:
                add("reworded", f"{key} was reworded", ticket.text)
            if before.unsure:
                add("told apart", f"{key} is told apart again", ticket.text)
            elif not before.present:
                add("back", f"{key} is back", ticket.text)
    for ticket_id in matching.removed:
        add("removed", f"{by_id[ticket_id].key} was removed", by_id[ticket_id].text)
    return tuple(found)


def notices(found: Sequence[Fate]) -> tuple[str, ...]:
    """One for each kind: the first few of its tickets, and how many more there are."""
    kinds: dict[str, list[str]] = {}
    for fate in found:
        kinds.setdefault(fate.kind, []).append(fate.said)
    return tuple(
        "; ".join(said[:NAMED]) + (f" and {len(said) - NAMED} more" if len(said) > NAMED else "")
        for said in kinds.values()
    )
