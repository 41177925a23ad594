"""Which bytes of a tasks.md to change so that OpenSpec counts a ticket as done, or no longer.

One byte per box, in place, wherever that can be: `[ ]` and `[x]`, a mark such as `[~]`, and one of the blanks in
`[  ]`. A character of several bytes (`[✅]`, a no-break space) is overwritten by `x` and as many spaces as keep its
length, which OpenSpec counts as done. Two forms have no room and get an insertion: `[]`, and a blank box with a bracket
right behind it (`[ ](text)` would become a link: `[x] (text)`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from baton_cli.core.document import Box, Document, Ticket
from baton_cli.core.markdown import SPACES, TASK


@dataclass(frozen=True, slots=True)
class Edit:
    """`new` for `old` at byte offset `slot` of the file as it was; of equal length, or an insertion (`old` is empty)."""

    slot: int
    old: bytes
    new: bytes


def edits(document: Document, ticket: Ticket, done: bool = True) -> tuple[Edit, ...]:
    """The edits that tick (or un-tick) all boxes of a ticket, children first; nothing for a box that is so already."""
    found: list[Edit] = []
    for box in (*ticket.checklist, ticket.box):
        if box.done != done:
            found += _tick(document.data, box) if done else _untick(document.data, box)
    return tuple(found)


def apply(data: bytes, edits: Iterable[Edit]) -> bytes:
    """The bytes after the edits, whose offsets all refer to `data`. Raises ValueError where the old bytes are not there."""
    parts: list[bytes] = []
    last = 0
    for edit in sorted(edits, key=lambda one: one.slot):
        end = edit.slot + len(edit.old)
        if edit.slot < last or data[edit.slot : end] != edit.old:
            raise ValueError(f"byte {edit.slot} does not hold {edit.old!r}")
        parts += (data[last : edit.slot], edit.new)
        last = end
    return b"".join((*parts, data[last:]))


def is_slot(data: bytes, slot: int) -> bool:
    """Whether this byte offset lies between the brackets of a task box (for `[]`, whether it is where a mark would go)."""
    if not 0 <= slot < len(data):
        return False
    start = data.rfind(b"\n", 0, slot) + 1
    end = data.find(b"\n", slot)
    try:
        line = data[start : end if end >= 0 else len(data)].decode()
    except UnicodeDecodeError:
        return False
    found = TASK.match(line)
    if found is None:
        return False
    first = start + len(found[1].encode())
    return first <= slot < first + max(len(found[2].encode()), 1)


def _tick(data: bytes, box: Box) -> list[Edit]:
    content = data[box.slot : box.slot + box.width].decode()
    at, char = _place(content)
    slot, old = box.slot + len(content[:at].encode()), char.encode()
    found = [Edit(slot, old, b"x" if not old else b"x".ljust(len(old)))]
    after = box.slot + box.width + 1
    if data[after : after + 1] in (b"(", b"["):
        found.append(Edit(after, b"", b" "))
    return found


def _untick(data: bytes, box: Box) -> list[Edit]:
    content = data[box.slot : box.slot + box.width]
    mark = content.strip(SPACES.encode()) if content.isascii() else content.decode().strip(SPACES).encode()
    return [Edit(box.slot + content.index(mark), mark, b" ")]


def _place(content: str) -> tuple[int, str]:
    """The character that a tick replaces, and where it is: the mark, else the middle blank of one byte, else any blank."""
    mark = content.strip(SPACES)
    if mark or not content:
        return content.find(mark), mark
    places = [index for index, char in enumerate(content) if char.isascii()] or [0]
    at = places[(len(places) - 1) // 2]
    return at, content[at]
