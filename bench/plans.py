"""The pure part: reading a tasks.md, and working out where each ticket stands. CPU time, for nothing else is in it."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Iterator, Sequence

from bench.measure import Cost, Row, at_most, call, in_turns, ratio
from bench.scene import Settings, tasks_text

BOX = re.compile(r"[ \t]*(?:[-*+]|\d+[.)])\s+\[([ xX])\]\s*(.*)")


def bare(text: str) -> list[tuple[int, bool, str]]:
    """The floor: one pattern over all lines, and a tuple for each box."""
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        box = BOX.match(line)
        if box:
            found.append((number, box[1] != " ", box[2]))
    return found


def _repeated(work: Callable[[], object], times: int) -> Callable[[], Cost]:
    """Short work is done several times, for the clock of CPU time is coarse."""

    def measured() -> Cost:
        cost = call(lambda: [work() for _ in range(times)])
        return Cost(cost.wall / times, cost.cpu / times)

    return measured


def _cpu(costs: Sequence[Cost]) -> float:
    return statistics.median(cost.cpu for cost in costs)


def parse(settings: Settings) -> Iterator[Row]:
    """Bytes to sections, tickets and boxes."""
    from baton_cli.core import tasks

    small, big = tasks_text(1000), tasks_text(10_000)
    small_bytes, big_bytes = small.encode(), big.encode()
    taken = in_turns(
        {
            "small": _repeated(lambda: tasks.parse(small_bytes), 10),
            "small bare": _repeated(lambda: bare(small), 10),
            "big": _repeated(lambda: tasks.parse(big_bytes), 1),
            "big bare": _repeated(lambda: bare(big), 1),
        },
        settings.rounds(21),
    )
    for size, name in (("1,000", "small"), ("10,000", "big")):
        _, cpu = ratio(taken[name], taken[f"{name} bare"])
        note = f"{_cpu(taken[name]) * 1000:.3g} ms of CPU against {_cpu(taken[f'{name} bare']) * 1000:.3g}"
        yield at_most(Row("parse", f"{size} tasks / a bare regex loop", cpu, "x", cpu=cpu, note=note), 8)
    _, cpu = ratio(taken["big"], taken["small"])
    _, floor = ratio(taken["big bare"], taken["small bare"])
    row = Row("parse", "10,000 / 1,000 tasks", cpu, "x", cpu=cpu, note=f"the bare loop grows {floor:.3g} x")
    yield at_most(row, 12)


def plan(settings: Settings) -> Iterator[Row]:
    """Plan and frontier of a document that has been read."""
    sizes = (10_000, 40_000)
    taken = in_turns({str(size): _repeated(_planned(size), 1) for size in sizes}, settings.rounds(9))
    cost = _cpu(taken["10000"]) * 1000
    note = f"40,000: {_cpu(taken['40000']) * 1000:.4g} ms"
    yield at_most(Row("plan", "plan and frontier, 10,000 tickets, CPU", cost, "ms", note=note), 100)
    _, cpu = ratio(taken["40000"], taken["10000"])
    yield at_most(Row("plan", "40,000 / 10,000 tickets", cpu, "x", cpu=cpu), 6)


def _planned(tickets: int) -> Callable[[], object]:
    from baton_cli.core import frontier, plan, tasks
    from baton_cli.core.checks import CheckSources

    document = tasks.parse(tasks_text(tickets).encode())
    keys = [f"grow#{ticket.id}" for ticket in document.tickets]
    ids = {key: number for number, key in enumerate(keys)}
    sources = CheckSources(change=None, project=("true",), detected=(), timeout=60)
    for ticket in document.tickets:
        assert ticket.fingerprint  # computed once and kept, by whoever needs it first
    return lambda: frontier.claimable(frontier.survey(plan.build("grow", document, keys, sources=sources), ids, (), ()))
