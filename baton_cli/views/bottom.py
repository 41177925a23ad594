"""A picture at the bottom of the terminal, drawn again and again; what is said meanwhile stays above it."""

from __future__ import annotations

import contextlib
import shutil
import threading
from collections.abc import Callable
from typing import Any

from baton_cli import output
from baton_cli.errors import BatonError
from baton_cli.views.page import Line, Page, cells, page, paint
from baton_cli.views.watch import TOGETHER

BEAT = 0.25  # seconds between two pictures
HIDE, SHOW = "\x1b[?25l", "\x1b[?25h"  # the cursor


class Bottom:
    """It is there while this is entered. `draw` makes the picture for a page, from a thread of its own."""

    def __init__(self, draw: Callable[[Page], list[Line]]) -> None:
        self._draw = draw
        self._widths: list[int] = []  # cells of each line that is drawn now
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="picture", daemon=True)

    def __enter__(self) -> Bottom:
        output.write(HIDE)
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._over.set()
        try:
            self._thread.join()
        finally:
            with contextlib.suppress(
                output.ReaderGone, BatonError
            ):  # the terminal is gone: whoever said something knows
                output.write(erased(self._widths, shutil.get_terminal_size().columns) + SHOW)

    def say(self, line: Line) -> None:
        """Say something that stays. Errors: those of `output.write`."""
        self._show([line])

    def _run(self) -> None:
        with contextlib.suppress(output.ReaderGone, BatonError):
            self._show([])
            while not self._over.wait(BEAT):
                self._show([])

    def _show(self, above: list[Line]) -> None:
        with self._lock:
            size = shutil.get_terminal_size()
            colour = output.colour()
            lines = self._draw(page(size.columns, None))[: max(1, size.lines - 2)]
            said, drawn = (paint(part, colour, size.columns) for part in (above, lines))
            output.write(f"{TOGETHER[0]}{erased(self._widths, size.columns)}{said}{drawn}{TOGETHER[1]}")
            self._widths = [cells("".join(text for text, _ in line)) for line in lines]


def erased(widths: list[int], columns: int) -> str:
    """What erases lines of these widths, with the cursor on the empty line below them, where ^C is echoed.

    Where the terminal has become narrower since they were drawn, it has broken them over several rows. Row by row: some
    terminals keep what is erased to the end of the screen, four times a second, for scrolling back.
    """
    rows = sum(max(1, -(-width // columns)) for width in widths)
    return "\r\x1b[2K" + "\x1b[1A\x1b[2K" * rows if widths else ""
