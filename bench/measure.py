"""Taking times: children with their CPU time and memory, calls in this process, contestants in turns."""

from __future__ import annotations

import gc
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple


class Cost(NamedTuple):
    """Seconds on the clock, seconds of CPU (children included), peak memory in bytes (0 within this process)."""

    wall: float
    cpu: float
    memory: int = 0


class Row(NamedTuple):
    """One line of the table. `met` is None where no goal is set."""

    name: str
    what: str
    value: float
    unit: str
    goal: str = ""
    met: bool | None = None
    cpu: float | None = None  # the same ratio in CPU time, which other work on the machine disturbs less
    note: str = ""


def at_most(row: Row, limit: float) -> Row:
    """The row with its goal: the value is at most `limit`."""
    return row._replace(goal=f"<= {limit:g}", met=row.value <= limit)


def exactly(row: Row, wanted: float) -> Row:
    """The row with its goal: the value is `wanted`."""
    return row._replace(goal=f"= {wanted:g}", met=row.value == wanted)


def child(argv: Sequence[str | Path], cwd: Path, env: Mapping[str, str] | None = None) -> Cost:
    """Run a program to its end; its output is dropped, and a failure is an error."""
    begun = time.perf_counter()
    process = subprocess.Popen(
        [str(word) for word in argv],
        cwd=cwd,
        env=None if env is None else {**os.environ, **env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert process.stderr is not None
    said = process.stderr.read()  # ends with the program, or with the last one that it started
    process.stderr.close()
    used = ended(process)
    wall = time.perf_counter() - begun
    if process.returncode:
        raise RuntimeError(f"{argv}: exit {process.returncode}: {said.decode(errors='replace')[-500:]}")
    return used._replace(wall=wall)


def ended(process: subprocess.Popen[bytes]) -> Cost:
    """Wait for a child; what it used in its whole life, itself and what it waited for (its `wall` is 0)."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    scale = 1 if sys.platform == "darwin" else 1024
    return Cost(0.0, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * scale)


def call(work: Callable[[], object]) -> Cost:
    """Run something in this process. The CPU time of children it waited for counts too."""
    gc.collect()
    cpu, begun = _cpu(), time.perf_counter()
    work()
    return Cost(time.perf_counter() - begun, _cpu() - cpu)


def _cpu() -> float:
    return sum(os.times()[2:4]) + time.process_time()


def in_turns(contestants: Mapping[str, Callable[[], Cost]], rounds: int) -> dict[str, list[Cost]]:
    """Each contestant once a round; every other round in reverse order, so that none always comes first."""
    taken: dict[str, list[Cost]] = {name: [] for name in contestants}
    for number in range(rounds):
        for name in list(contestants)[:: -1 if number % 2 else 1]:
            taken[name].append(contestants[name]())
    return taken


def ratio(over: Sequence[Cost], under: Sequence[Cost]) -> tuple[float, float]:
    """The median of the rounds' ratios: on the clock, and in CPU time."""
    pairs = list(zip(over, under, strict=True))
    return (
        statistics.median(a.wall / b.wall for a, b in pairs),
        statistics.median(a.cpu / max(b.cpu, 1e-6) for a, b in pairs),
    )


def milliseconds(costs: Sequence[Cost]) -> str:
    """A median on the clock, in words."""
    return f"{statistics.median(cost.wall for cost in costs) * 1000:.4g} ms"
