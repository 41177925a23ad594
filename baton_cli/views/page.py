"""Lines made of styled pieces, measured in terminal cells. Values only; `paint` hands them to Rich at the very end."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass

Span = tuple[str, str]  # text, style
Line = list[Span]

INDENT = "  "
GAP = "  "
NARROWEST, WITHOUT_TERMINAL = 40, 120

_GLYPHS = {"person": "!", "running": "●", "queued": "◐", "ready": "○", "waiting": "◌", "done": "✓", "rest": " "}
_ASCII = {"person": "!", "running": "*", "queued": "~", "ready": "o", "waiting": ".", "done": "+", "rest": " "}


def cells(text: str) -> int:
    """How many terminal cells a text takes."""
    from rich.cells import cell_len

    return cell_len(text)


@dataclass(frozen=True, slots=True)
class Page:
    """How wide it is, whether it may use more than ASCII for its own signs, and how Baton is called in its commands."""

    width: int
    unicode: bool
    command: str = "baton"

    def glyph(self, name: str) -> str:
        """The sign for a ticket's standing; each is one cell wide."""
        return (_GLYPHS if self.unicode else _ASCII)[name]

    def cut(self, text: str, room: int) -> str:
        """The text in at most `room` cells, with an ellipsis where something is missing."""
        from rich.cells import set_cell_size

        text = text[: 4 * room + 40]  # what is cut off anyway need not be measured
        if cells(text) <= room:
            return text
        mark = "…" if self.unicode else "..."
        if room <= len(mark):
            return set_cell_size(text, max(0, room))
        return set_cell_size(text, room - len(mark)).rstrip() + mark

    def pad(self, text: str, room: int) -> str:
        """The text in exactly `room` cells."""
        fitted = self.cut(text, room)
        return fitted + " " * (room - cells(fitted))

    def clip(self, line: Line, room: int) -> Line:
        """The line in at most `room` cells."""
        kept: Line = []
        for text, style in line:
            fitted = self.cut(text, room)
            kept.append((fitted, style))
            room -= cells(fitted)
            if room <= 0 or fitted != text:
                break
        return kept

    def wrap(self, text: str, room: int, most: int) -> list[str]:
        """The text broken between words into at most `most` lines; a word longer than a line stays whole."""
        lines: list[str] = []
        for word in text.split():
            if lines and cells(lines[-1]) + 1 + cells(word) <= room:
                lines[-1] += f" {word}"
            else:
                lines.append(word)
        if len(lines) > most:
            lines = [*lines[: most - 1], self.cut(" ".join(lines[most - 1 :]), room)]
        return lines

    def bar(self, done: int, total: int, room: int) -> Line:
        """A progress bar. Full only when all is done, empty only when nothing is."""
        full, half, rest = ("━", "╸", "─") if self.unicode else ("#", "", ".")
        steps = 2 if half else 1
        filled = room * steps * done // total if total else 0
        if 0 < done < total:
            filled = min(max(filled, 1), room * steps - 1)
        whole, part = divmod(filled, steps)
        return [(full * whole + half * part, "green"), (rest * (room - whole - part), "dim")]


def page(width: int | None, unicode: bool | None, command: str = "baton") -> Page:
    """The page of the terminal we write to, unless told otherwise."""
    wide = shutil.get_terminal_size((WITHOUT_TERMINAL, 24)).columns if width is None else width
    return Page(max(NARROWEST, wide), _speaks_unicode() if unicode is None else unicode, command)


def _speaks_unicode() -> bool:
    """Output is always written as UTF-8, so this asks what its reader makes of it."""
    said = next((os.environ[name] for name in ("LC_ALL", "LC_CTYPE", "LANG") if os.environ.get(name)), "")
    if os.environ.get("TERM") == "dumb" or (said.split(".")[0] in ("C", "POSIX") and "utf" not in said.lower()):
        return False
    return "utf" in (getattr(sys.stdout, "encoding", None) or "utf-8").lower()


def length(line: Line) -> int:
    """The cells that a line takes."""
    return sum(cells(text) for text, _ in line)


def paint(lines: list[Line], colour: bool, width: int) -> str:
    """The lines as text, with escape sequences only where colour is wanted."""
    from io import StringIO

    from rich.console import Console
    from rich.text import Text

    file = StringIO()
    console = Console(
        file=file,
        width=width,
        force_terminal=colour,
        color_system="standard" if colour else None,
        no_color=False,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
    )
    for line in lines:
        text = Text.assemble(*line)
        text.rstrip()
        console.print(text, soft_wrap=True)
    return file.getvalue()
