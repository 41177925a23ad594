"""A view that stays: drawn again when something has changed, line by line, so that nothing flickers."""

from __future__ import annotations

import re
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Any, NoReturn

from baton_cli import output
from baton_cli.errors import BatonError

POLL = 0.5  # seconds between two looks at the stamp and the size of the terminal
REST = 25  # times as long as a picture took, before the next change is drawn: so a watch takes 4 % of a core at most
TICK = 1.0  # seconds after which the ages are drawn again, where that costs little
BEAT = 10.0  # seconds after which they are drawn again whatever it costs
# Another screen without cursor and without line wrap, and back again: the terminal is left as it was found.
ENTER, LEAVE = "\x1b[?1049h\x1b[?25l\x1b[?7l", "\x1b[?7h\x1b[?25h\x1b[?1049l"
TOGETHER = ("\x1b[?2026h", "\x1b[?2026l")  # a terminal that knows these shows what is between them at once
_LENGTHS = re.compile(r"\b\d+ (?:s|min|h|d)\b(?: \d+ [mh]\b)?|[ ]+")  # as `words.span` writes them
Size = tuple[int, int]  # columns, rows
Draw = Callable[[Size], str]


def on_screen(draw: Draw, stamp: Callable[[], Any], wait: Callable[[float], None] = time.sleep) -> None:
    """Show what `draw` gives until Ctrl-C, which is how a watch ends; then the last picture stays on the terminal.

    `stamp` is cheap and differs after every change. What `draw` refuses at first is raised; later it is shown.
    """
    picture = _Picture()
    begun, stamped = time.monotonic(), stamp()  # before reading: what changes meanwhile is seen at the next look
    text, cost = draw(picture.size), 0.0  # the first one pays for imports, and says nothing about the next
    with _ended_softly(), _another_screen():
        try:
            picture.show(text.splitlines())
            while True:
                wait(POLL)
                now, rested = stamp(), time.monotonic() - begun
                rested_enough = rested >= REST * cost
                if picture.resized() or rested >= BEAT or (rested_enough and (now != stamped or rested >= TICK)):
                    begun, stamped = time.monotonic(), now
                    text = _read(partial(draw, picture.size))
                    cost = time.monotonic() - begun
                    picture.show(text.splitlines())
        except KeyboardInterrupt:
            pass
    output.write(text)


def as_stream(
    read: Callable[[], str],
    stamp: Callable[[], Any],
    wait: Callable[[float], None] = time.sleep,
    *,
    pages: bool = False,
) -> None:
    """Print the answer now and after each change, for a pipe or a program, until Ctrl-C or until nobody reads.

    With `pages` it is a page for people: one that differs only in how long ago things were is not printed again, and
    above each further one stands the time.
    """
    stamped = stamp()
    said = read()  # what it refuses at first is raised; later it is shown
    output.write(said)
    try:
        while True:
            wait(POLL)
            if (now := stamp()) != stamped:
                stamped = now
                before, said = said, _read(read, json_mode=not pages)
                if pages and _ageless(said) != _ageless(before):
                    output.write(time.strftime("\n%Y-%m-%d %H:%M:%SZ\n", time.gmtime()) + said)
                elif not pages and said != before:
                    output.write(said)
    except KeyboardInterrupt:
        return


def _ageless(page: str) -> str:
    """The page without lengths of time, and without the blanks that line it up."""
    return _LENGTHS.sub(" ", page)


def _read(read: Callable[[], str], *, json_mode: bool = False) -> str:
    try:
        return read()
    except BatonError as error:  # the project may come back
        return output.refusal(error, json_mode=json_mode)


class _Picture:
    """What is on the screen, to write only what differs."""

    def __init__(self) -> None:
        self.size = _size()
        self._lines: list[str] | None = None

    def resized(self) -> bool:
        """Whether the terminal has another size than at the last look. Then nothing on it is taken for granted."""
        before, self.size = self.size, _size()
        if before != self.size:
            self._lines = None
        return before != self.size

    def show(self, lines: Sequence[str]) -> None:
        """Bring the screen to these lines."""
        rows = self.size[1]
        fitting = list(lines if len(lines) <= rows else [*lines[: rows - 1], f"and {len(lines) - rows + 1} more lines"])
        known, fresh = self._lines or [], self._lines is None
        changed = [
            f"\x1b[{at + 1};1H\x1b[0m\x1b[K{line}\x1b[0m"  # erased first: in the last column it would take the last character
            for at, line in enumerate(fitting)
            if at >= len(known) or known[at] != line
        ]
        if fresh or len(fitting) < len(known):
            changed.append(f"\x1b[{len(fitting) + 1};1H\x1b[J" if len(fitting) < rows else "")
        if changed:
            output.write("".join((TOGETHER[0], *changed, TOGETHER[1])))
        self._lines = fitting


def _size() -> Size:
    size = shutil.get_terminal_size()
    return size.columns, max(2, size.lines)


@contextmanager
def _another_screen() -> Iterator[None]:
    output.write(ENTER)
    try:
        yield
    finally:
        output.write(LEAVE)


@contextmanager
def _ended_softly() -> Iterator[None]:
    """SIGTERM puts the terminal back too."""

    def stop(number: int, _frame: FrameType | None) -> NoReturn:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
