"""Many processes at once: who gets a ticket, and how soon a lock goes from one to the next."""

from __future__ import annotations

import os
import signal
import statistics
import time
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from bench.measure import Row, at_most, exactly
from bench.scene import Settings, project, tasks_text

CLAIMERS = 32


def fork(work: Callable[[], str]) -> tuple[int, int]:
    """A child that does `work`, and the end of a pipe from which its answer (or its traceback) can be read."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        try:
            answer = work()
        except BaseException:
            answer = traceback.format_exc()
        os.write(writing, answer.encode())
        os._exit(0)
    os.close(writing)
    return pid, reading


def answer_of(pid: int, reading: int) -> str:
    """What a child said, once it has ended."""
    with os.fdopen(reading) as stream:
        said = stream.read()
    os.waitpid(pid, 0)
    return said


def claims(settings: Settings) -> Iterator[Row]:
    """32 processes claim one ticket each, at one moment."""
    from baton_cli import context
    from baton_cli import project as projects
    from baton_cli.flow import claim, load

    text = tasks_text(CLAIMERS * 2, a_section=CLAIMERS * 2)
    root = project(settings.place("claims"), {"grow": text}, more="[limits]\nparallel = 64\n")
    found = projects.find(root)
    with context.opened(found, create=True) as surroundings:
        loaded = load.load(surroundings, "grow")
    start, go = os.pipe()

    def one(name: str) -> str:
        os.close(go)
        os.read(start, 1)  # ends for all of them when the last writing end is closed
        with context.opened(found, create=True) as mine:
            got = claim.claim(mine, loaded.plan, loaded.ticket_ids, session=name, capacity=1, checkout="")
        return " ".join(item.ticket for item in got)

    children = [fork(partial(one, f"s-{name}")) for name in range(CLAIMERS)]
    begun = time.perf_counter()
    os.close(go)
    said = [answer_of(*child) for child in children]
    wall = (time.perf_counter() - begun) * 1000
    os.close(start)
    tickets = {word for answer in said for word in answer.split() if answer.startswith("grow#")}
    note = f"all within {wall:.0f} ms"
    yield exactly(Row("claims", "32 processes at once: distinct tickets", len(tickets), "", note=note), CLAIMERS)
    refused = sum(not answer.startswith("grow#") for answer in said)
    yield exactly(Row("claims", "the same: errors (database is locked ...)", refused, ""), 0)


def locks(settings: Settings) -> Iterator[Row]:
    """From letting go, or from the death of the holder, to the next one's having the integration lock."""
    from baton_cli import project as projects

    root = project(settings.place("locks"), {"grow": tasks_text(2)})
    projects.prepare_state(projects.find(root))
    for what, killed, limit in (
        ("hand-off to a waiting process", False, 100),
        ("after SIGKILL of the holder", True, 1000),
    ):
        times = [_handed_over(root, killed) * 1000 for _ in range(settings.rounds(15))]
        row = Row("locks", what, statistics.median(times), "ms", note=f"longest {max(times):.0f} ms")
        yield at_most(row, limit)


def _handed_over(root: Path, killed: bool) -> float:
    from baton_cli import locks
    from baton_cli import project as projects

    found = projects.find(root)
    order, command = os.pipe()
    has_reading, has = os.pipe()
    waits_reading, waits = os.pipe()

    def hold() -> str:
        os.close(command)
        with locks.integration_lock(found, wait=True):
            os.write(has, b"1")
            os.read(order, 1)
            released = time.monotonic()
        return str(released)

    def take() -> str:
        def told(_holder: dict[str, Any] | None) -> None:
            os.write(waits, b"1")

        with locks.integration_lock(found, wait=True, on_busy=told, clear=lambda _sure: None):
            return str(time.monotonic())

    holder = fork(hold)
    os.read(has_reading, 1)
    taker = fork(take)
    os.read(waits_reading, 1)
    time.sleep(0.05)  # somewhere between two looks of the one that waits
    begun = time.monotonic()
    if killed:
        os.kill(holder[0], signal.SIGKILL)
    else:
        os.write(command, b"1")
    released = answer_of(*holder)
    taken = float(answer_of(*taker))
    for end in (order, command, has_reading, has, waits_reading, waits):
        os.close(end)
    return taken - (begun if killed else float(released))
