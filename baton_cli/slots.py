"""Slots: what runs at the same time finds a number, and ports, that nothing else has.

The agents of a `drive` have 0 to 4, and so has what such an agent starts, its seal with the checks above all. Whatever
else Baton runs (gate, set-up, the checks of other seals) takes one beyond these for as long as it runs: a lock file of the
user's, so that it holds for all projects, and a killed holder lets go.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from baton_cli import locks
from baton_cli.errors import BatonError
from baton_cli.project import user_state

AGENTS = 5
MOST = 400
FIRST_PORT = 20_000
PORTS = 100  # for each slot


def variables(slot: int) -> dict[str, str]:
    """How a slot is told."""
    return {"BATON_SLOT": str(slot), "BATON_PORT_BASE": str(FIRST_PORT + PORTS * slot)}


@contextmanager
def taken() -> Iterator[dict[str, str]]:
    """The variables of our own slot if we have been given one, else of one that is ours from here to the end."""
    given = os.environ.get("BATON_SLOT", "")
    if given.isascii() and given.isdecimal() and int(given) < MOST:
        yield variables(int(given))
        return
    for number in range(AGENTS, MOST):
        lock = locks.slot_lock(user_state() / "slots" / str(number))
        try:
            held = lock.__enter__()
        except BatonError:  # the home cannot be written: probably nobody else's
            yield variables(AGENTS + os.getpid() % (MOST - AGENTS))
            return
        try:
            if held:
                yield variables(number)
                return
        finally:
            lock.__exit__(None, None, None)
    yield variables(MOST - 1)
