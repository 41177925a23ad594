"""The columns that all rows of one change share: sign, ticket, title, and what is to be said about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from baton_cli.core.frontier import FINISHED
from baton_cli.views.page import GAP, INDENT, Line, Page, cells
from baton_cli.views.words import short, shown

DONE = frozenset(status.value for status in FINISHED)
ID_MOST, TITLE_MOST, TITLE_LEAST, TITLE_PART = 12, 80, 16, 0.45


@dataclass(frozen=True, slots=True)
class Grid:
    """Widths in cells."""

    page: Page
    id_width: int
    title_width: int

    @staticmethod
    def of(change: Mapping[str, Any], page: Page) -> Grid:
        """As wide as the longest id and title need, within reason."""
        ids, titles = ["1"], [" " * TITLE_LEAST]
        row: list[str] = []
        numbers: list[str] = []  # finished sections in a row share one line
        for section in change.get("sections", ()):
            title = shown(section.get("title"), TITLE_MOST + 1)
            open_ones = [ticket for ticket in section["tickets"] if ticket["status"] not in DONE]
            row = [] if open_ones else [*row, title]
            numbers = [] if open_ones else [*numbers, shown(section.get("number"))]
            ids.append("-".join(dict.fromkeys((numbers[0], numbers[-1]))) if numbers else shown(section.get("number")))
            ids += [short(ticket["key"]) for ticket in open_ones]
            titles.append(", ".join(row[:5]) or title)
            titles += [shown(ticket["title"], TITLE_MOST + 1) for ticket in open_ones]
        id_width = min(ID_MOST, max(map(cells, ids)))
        most = min(TITLE_MOST, int((page.width - id_width - 6) * TITLE_PART))
        return Grid(page, id_width, min(max(map(cells, titles)), max(TITLE_LEAST, most)))

    @property
    def indent(self) -> int:
        """Where the titles begin."""
        return len(INDENT) + 2 + self.id_width + len(GAP)

    @property
    def room(self) -> int:
        """The cells that are left to the right of the titles."""
        return self.page.width - self.indent - self.title_width - len(GAP)

    def row(self, sign: tuple[str, str], name: str, title: tuple[str, str], right: Line) -> Line:
        """One row; `sign` is a glyph's name and its style, `title` a text and its style. `right` is cut to the page."""
        glyph, style = sign
        return [
            (INDENT + self.page.glyph(glyph), style),
            (" " + self.page.pad(name, self.id_width) + GAP, title[1]),
            (self.page.pad(title[0], self.title_width) + GAP, title[1]),
            *self.page.clip(right, self.room),
        ]

    def below(self, text: str, style: str, most: int = 3) -> list[Line]:
        """More about the row above, under its title."""
        room = max(20, self.page.width - self.indent)
        return [[(" " * self.indent + part, style)] for part in self.page.wrap(text, room, most)]

    def more(self, text: str) -> Line:
        """What is not shown, in a line of its own."""
        return [(" " * self.indent + self.page.cut(text, self.page.width - self.indent), "dim")]
