"""tasks.md, read: bytes in, sections, tickets and boxes out. Nothing here writes, and nothing is ever re-serialised.

Which lines are tasks and which are done is OpenSpec's decision (`markdown.TASK`), anywhere in the file. What belongs
together is decided here: a ticket is a box that is not nested under another one; a box indented more than the
ticket's is part of its checklist, unless a heading or a plain list item at the ticket's own level came between.
"""

from __future__ import annotations

from collections.abc import Iterable

from baton_cli.core.document import Box, Bullet, Document, PlanWarning, Section, Ticket
from baton_cli.core.markdown import LEADING_NUMBER, SPACES
from baton_cli.core.reader import Reader
from baton_cli.core.ticket_text import id_of, normalise, words
from baton_cli.errors import BatonError

__all__ = ["Box", "Bullet", "Document", "PlanWarning", "Section", "Ticket", "normalise", "parse", "words"]


def parse(data: bytes) -> Document:
    """Read the bytes of a tasks.md in linear time. Raises `BatonError("invalid_utf8")` and nothing else."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise BatonError(
            "invalid_utf8",
            f"tasks.md is not UTF-8: line {line}, byte offset {error.start}",
            "save the file as UTF-8",
        ) from None
    reader = Reader(text)
    reader.read(len if len(text) == len(data) else _size)
    tickets = _tickets(reader)
    boxes = tuple(reader.boxes)
    return Document(
        data=data,
        sections=tuple(reader.sections),
        tickets=tickets,
        boxes=boxes,
        warnings=_warnings(reader, tickets),
        total=len(boxes),
        done=sum([box.done for box in boxes]),
    )


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _tickets(reader: Reader) -> tuple[Ticket, ...]:
    tickets, make = [], tuple.__new__
    bullets: tuple[Bullet, ...]
    checklist: tuple[Box, ...]
    places = zip(reader.heads, reader.homes, reader.starts, reader.ends, strict=True)
    for position, (box, section, start, end) in enumerate(places):
        text, body, bullets, checklist = box.text, "", (), ()
        if start < end:
            body = _without_blank_end(reader.text[start:end])
            bullets = tuple(reader.bullets.get(position, ()))
            checklist = tuple(reader.checklists.get(position, ()))
        # As `Ticket(...)`, whose own constructor takes twice as long.
        values = (id_of(text), text, body, box.line, section, position, box, checklist, bullets)
        tickets.append(make(Ticket, values))
    return tuple(tickets)


def _without_blank_end(text: str) -> str:
    filled = text.rstrip(SPACES + "\n")
    end = text.find("\n", len(filled))
    return "" if not filled else text if end < 0 else text[:end]


def _warnings(reader: Reader, tickets: Iterable[Ticket]) -> tuple[PlanWarning, ...]:
    found = []
    for box in reader.boxes:
        if box.in_fence:
            found.append(PlanWarning("box_in_fence", box.line, "box inside a code fence; OpenSpec counts it as a task"))
        elif box.in_comment:
            found.append(PlanWarning("box_in_comment", box.line, "box inside a comment; OpenSpec counts it as a task"))
    first: dict[str, int] = {}
    starts = [f"{section.number}." for section in reader.sections]
    for ticket in tickets:
        name, line = ticket.id, ticket.line
        if name is None:
            continue
        before = first.setdefault(name, line)
        if before != line:
            message = f'id "{name}" is used twice; it was first used on line {before}'
            found.append(PlanWarning("duplicate_id", line, message))
        if name.startswith(starts[ticket.section]):
            continue
        number, group = reader.sections[ticket.section].number, LEADING_NUMBER.match(name)
        if number is not None and group and int(group[1]) != int(number):
            message = f'id "{name}" is in section {number}, but its number belongs to section {group[1]}'
            found.append(PlanWarning("id_section_mismatch", line, message))
    return tuple(sorted(found, key=lambda one: one.line))
