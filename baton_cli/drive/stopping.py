"""Ctrl-C and its kin: the first one asks for an orderly end, the second one does not wait for it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

PATIENCE = 2.0  # seconds that a call in progress gets to end by itself once an end was asked for
SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")


class Interrupted(BaseException):
    """The end was asked for. Not an `Exception`, so that nothing on the way takes it for a failure."""


class Stop:
    """Listens for signals while it is entered (in the main thread; elsewhere only `request` asks).

    `first` is called when an end is asked for the first time, `second` when somebody insists, which also raises
    KeyboardInterrupt. Signals that were ignored before (nohup, a background job) stay ignored.
    """

    def __init__(self, first: Callable[[], None], second: Callable[[], None]) -> None:
        self.requested = False
        self._first = first
        self._second = second
        self._inside = False
        self._poked = False
        self._timer: threading.Timer | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Stop:
        if threading.current_thread() is threading.main_thread():
            for number in (getattr(signal, name) for name in SIGNALS if hasattr(signal, name)):
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._caught)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def request(self) -> None:
        """Ask for an orderly end."""
        if not self.requested:
            self.requested = True
            self._first()
            if self._inside:
                self._arm()

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Around a call that may take long, such as one that runs checks: once an end is asked for it gets `PATIENCE`
        seconds and is then interrupted. (Almost always there is nothing to interrupt, and short calls end as usual.)"""
        self._inside = True
        if self.requested:
            self._arm()
        try:
            yield
        finally:
            self._inside = False
            if self._timer is not None:
                self._timer.cancel()

    def _arm(self) -> None:
        if self._before:
            self._timer = threading.Timer(PATIENCE, self._poke, (threading.get_ident(),))
            self._timer.daemon = True
            self._timer.start()

    def _poke(self, thread: int) -> None:
        # A real signal, because only that ends a wait in the kernel; SIGTERM, because the git calls hold it back
        # while it would do harm.
        self._poked = True
        signal.pthread_kill(thread, signal.SIGTERM)

    def _caught(self, number: int, _frame: FrameType | None) -> None:
        if self._poked and number == signal.SIGTERM:
            self._poked = False
            if self._inside:
                raise Interrupted
        elif not self.requested:
            self.request()
        else:
            self._second()
            raise KeyboardInterrupt
