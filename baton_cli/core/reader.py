"""One pass over the lines of a tasks.md: where sections and tickets begin and end, and what lies in them."""

from __future__ import annotations

from collections.abc import Callable

from baton_cli.core import markdown
from baton_cli.core.document import Box, Bullet, Section
from baton_cli.core.markdown import BULLET, HEADING, SECTION_NUMBER, SPACES, TASKS, columns, indent_of
from baton_cli.core.ticket_text import heading_title

_DONE = frozenset("xX")
_AROUND_MARKER = SPACES + "["
_BLOCK = 1 << 15  # characters at a time: what one split makes should stay in the processor's cache
_NEVER = 1 << 30  # deeper than any indentation


class Reader:
    """The result of `read`: boxes, sections and, for each ticket by its position, what belongs to it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.boxes: list[Box] = []
        self.sections: list[Section] = []
        self.heads: list[Box] = []  # each ticket's own box
        self.homes: list[int] = []  # and the index of its section
        self.starts: list[int] = []  # where its further lines start in the text, in characters,
        self.ends: list[int] = []  # and where the next ticket or heading does
        self.checklists: dict[int, list[Box]] = {}
        self.bullets: dict[int, list[Bullet]] = {}
        self._fences = markdown.Fences() if "```" in text or "~~~" in text else None
        self._comment = False
        # The number of the last line that closes a comment; 0 when the text has no comment at all.
        self._last_close = text.count("\n", 0, max(text.rfind("-->"), 0)) + 1 if "<!--" in text else 0
        self._heading: tuple[str | None, str, int] | None = None
        self._leading: list[Bullet] = []
        self._directly = True  # under the section's heading: no box and no further heading yet
        self._open = False  # lines still go to the last ticket
        self._limit = _NEVER  # boxes and bullets indented more are nested under the last ticket
        self._direct = _NEVER  # indent of the last list item directly under the ticket or heading

    def read(self, size: Callable[[str], int]) -> None:
        """Read everything; `size` says how many bytes a piece of the text has, to count the slots."""
        text, start = self.text, 0
        place = (1, 0, 0)
        while start <= len(text):
            end = text.find("\n", start + _BLOCK)
            end = len(text) if end < 0 else end
            place = self._block(text[start:end], place, size)
            start = end + 1
        self._end(len(text))
        self._close_section()

    def _block(self, block: str, place: tuple[int, int, int], size: Callable[[str], int]) -> tuple[int, int, int]:
        """Some whole lines. `place` is the number of the first, and where it starts in characters and in bytes."""
        # One split finds all task lines. Every piece but the first is followed by the four of the next task line:
        # all up to the bracket, the content, the mark, and what follows up to the next task line.
        pieces = iter(TASKS.split("\n" + block))
        before = next(pieces)
        number, at, offset = place
        if before and not before.isspace():
            self._between(number, at, before[1:])
        number, at, offset = number + before.count("\n"), at + len(before), offset + size(before)
        add, head, home, begin = self.boxes.append, self.heads.append, self.homes.append, self.starts.append
        make, plain, fenced = tuple.__new__, self._fences is None and self._last_close == 0, False
        for prefix, content, mark, rest in zip(pieces, pieces, pieces, pieces):  # noqa: B905 (an iterator, four times)
            own, _, more = rest.partition("\n")
            indent = 0 if prefix[0] in "-*+" else indent_of(prefix)
            if not plain:
                fenced = self._fenced(f"{prefix}{content}]{own}", indent, prefix.strip(_AROUND_MARKER))
            start, width, end = offset + size(prefix), size(content), at + len(prefix) + len(content) + 2
            # As `Box(...)`, whose own constructor takes twice as long.
            values = (number, start, width, mark in _DONE, indent, own.strip(SPACES), fenced, self._comment)
            box, body = make(Box, values), end + len(own)
            add(box)
            if indent > self._limit:
                self._child(box)
            else:
                if self._open:
                    self.ends.append(at)
                self._open, self._directly, self._limit, self._direct = True, False, indent, _NEVER
                head(box)
                home(len(self.sections))
                begin(body)
            if not plain and not fenced:
                self._follow_comment(number, f"{prefix}{content}]{own}")
            if more and not more.isspace():
                self._between(number + 1, body, more)
            number, at, offset = number + 1 + rest.count("\n"), end + len(rest), start + width + size(rest) + 2
        return number, at, offset

    def _between(self, first: int, at: int, text: str) -> None:
        """Lines without a task; `first` is the number of the first one and `at` where it starts."""
        fences, comments = self._fences, self._last_close > 0
        for number, line in enumerate(text.split("\n"), first):
            if not (fences and fences.inside and fences.line(line)):
                start = line.lstrip(SPACES)
                if start and start[0] in "#`~-+*0123456789":
                    self._other(number, at, line, start)
                if comments:
                    self._follow_comment(number, line)
            at += len(line) + 1

    def _fenced(self, line: str, indent: int, marker: str) -> bool:
        fences = self._fences
        if fences is None:
            return False
        if fences.inside and fences.line(line):
            return True
        fences.item(indent, marker)
        return False

    def _follow_comment(self, number: int, line: str) -> None:
        self._comment = markdown.comment_goes_on(line, self._comment, number < self._last_close)

    def _child(self, box: Box) -> None:
        self.checklists.setdefault(len(self.heads) - 1, []).append(box)
        self._direct = min(self._direct, box.indent)

    def _other(self, number: int, at: int, line: str, text: str) -> None:
        """A line that begins like a heading, a fence or a list item."""
        if text[0] == "#":
            # A byte order mark before the first heading does not hide it.
            found = HEADING.match(line.lstrip("\ufeff") if number == 1 else line)
            if found:
                self._take_heading(number, at, len(found[1]), text)
        elif self._comment:
            return
        elif text[0] in "`~":
            if self._fences:
                self._fences.opens(text, indent_of(line))
        elif found := BULLET.match(line):
            self._bullet(number, columns(found[1]), found[2], line[found.end() :].strip(SPACES))

    def _take_heading(self, number: int, at: int, level: int, text: str) -> None:
        if self._fences:
            self._fences.heading()
        self._end(at)
        self._directly = level == 2
        if level != 2:
            return
        self._close_section()
        title = text[level:].strip(SPACES)
        found = SECTION_NUMBER.match(title)
        if found and not title[found.end() : found.end() + 1].strip(SPACES):
            title = title[found.end() :]
        self._heading = (found[1] if found else None, heading_title(title), number)

    def _bullet(self, number: int, indent: int, marker: str, text: str) -> None:
        if self._fences:
            self._fences.item(indent, marker)
            if text.startswith(("```", "~~~")):
                self._fences.opens(text, indent + len(marker) + 1)
        if not self._open:
            if not self._directly:
                return
            bullets = self._leading
        elif indent > self._limit:
            bullets = self.bullets.setdefault(len(self.heads) - 1, [])
        else:
            # A plain item at the ticket's own level: what is indented below it is no part of the ticket.
            self._limit = _NEVER
            return
        if indent <= self._direct:
            self._direct = indent
            bullets.append(Bullet(number, indent, text))

    def _end(self, at: int) -> None:
        if self._open:
            self.ends.append(at)
        self._open, self._limit, self._direct = False, _NEVER, _NEVER

    def _close_section(self) -> None:
        bullets = tuple(self._leading)
        self._leading.clear()
        if self._heading is not None:
            number, title, line = self._heading
            self.sections.append(Section(number, title, line, bullets, implicit=False))
        elif self.heads:
            self.sections.append(Section(None, "", 0, bullets, implicit=True))
