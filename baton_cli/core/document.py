"""What a tasks.md says, as values. `tasks.parse` makes them.

They are named tuples: a frozen dataclass takes four times as long to make, and a plan is read at every command.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

from baton_cli.core import canonical
from baton_cli.core.ticket_text import describe, normalise


class Box(NamedTuple):
    """One task line. `slot` is the byte offset behind the `[`, `width` the bytes up to the `]`, `line` from 1."""

    line: int
    slot: int
    width: int
    done: bool
    indent: int
    text: str
    in_fence: bool
    in_comment: bool


class Bullet(NamedTuple):
    """A plain list item: one directly under a ticket, or directly under a section's heading before its first box."""

    line: int
    indent: int
    text: str


class _TicketLines(NamedTuple):
    id: str | None
    text: str
    body: str
    line: int
    section: int
    position: int
    box: Box
    checklist: tuple[Box, ...]
    bullets: tuple[Bullet, ...]


class Ticket(_TicketLines):
    """One task, the unit of execution: `text` behind the box and `body`, its further lines, as written.

    Title and fingerprint are worked out when somebody asks: most commands know them from the store.
    """

    @cached_property
    def title(self) -> str:
        """One line without id, marks and `(after ...)`; never empty."""
        return describe(self.text)[1]

    @cached_property
    def fingerprint(self) -> str:
        """16 hex digits of the SHA-256 of what the ticket asks for: its normal text and those of its child boxes."""
        # Line ends cannot occur in a normal form.
        asked = "\n".join([normalise(box.text) for box in self.boxes])
        return canonical.digest(asked.encode())[:16]

    @property
    def boxes(self) -> tuple[Box, ...]:
        """The ticket's own box and those of its checklist."""
        return (self.box, *self.checklist)

    @property
    def done(self) -> bool:
        """Whether all boxes are ticked."""
        return self.box.done and all(box.done for box in self.checklist)


class Section(NamedTuple):
    """One `##` group, with or without tasks. The implicit one (line 0) holds tasks that stand before any heading."""

    number: str | None
    title: str
    line: int
    bullets: tuple[Bullet, ...]
    implicit: bool


class PlanWarning(NamedTuple):
    """Something a person should look at; it stops nothing."""

    code: str
    line: int
    message: str


class _DocumentParts(NamedTuple):
    data: bytes
    sections: tuple[Section, ...]
    tickets: tuple[Ticket, ...]
    boxes: tuple[Box, ...]
    warnings: tuple[PlanWarning, ...]
    total: int
    done: int


class Document(_DocumentParts):
    """One parse. `total` and `done` count boxes as OpenSpec does."""

    @cached_property
    def digest(self) -> str:
        """The same whatever is ticked: SHA-256, hex, of the bytes with a blank for what is in each box."""
        parts, last = [], 0
        for box in self.boxes:
            parts.append(self.data[last : box.slot])
            last = box.slot + box.width
        parts.append(self.data[last:])
        return canonical.digest(b" ".join(parts))
