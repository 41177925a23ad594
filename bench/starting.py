"""A start of the command line: against a program that does nothing, by modules, by size of the plan."""

from __future__ import annotations

import statistics
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from bench.measure import Row, at_most, child, exactly, in_turns, milliseconds, ratio
from bench.scene import BATON, MAIN, PYTHON, Settings, counted_git, project, tasks_text

# None of these is needed to say where a change stands. (Typer itself brings subprocess.)
NEEDLESS = ("rich", "sh", "mcp", "jinja2", "portalocker", "pydantic", "asyncio", "yaml", "logging")
STATUS = (*BATON, "status", "--json")


def start(settings: Settings) -> Iterator[Row]:
    """`status --json` of 1,000 tickets that were run before, against NOOP."""
    root = project(settings.place("start"), {"grow": tasks_text(1000)})
    child([*BATON, "actions", "grow", "--session", "s", "--json"], root)  # so that there is a store to read
    taken = in_turns(
        {"baton": lambda: child(STATUS, root), "noop": lambda: child(settings.noop, root)}, settings.rounds(21)
    )
    wall, cpu = ratio(taken["baton"], taken["noop"])
    note = f"{milliseconds(taken['baton'])} against {milliseconds(taken['noop'])}"
    yield at_most(Row("start", "status --json, 1,000 tickets / NOOP", wall, "x", cpu=cpu, note=note), 1.35)
    memory, floor = (statistics.median(cost.memory for cost in taken[name]) for name in ("baton", "noop"))
    yield Row("start", "the same, peak memory / NOOP", memory / floor, "x", note=f"{memory / 2**20:.0f} MiB")
    with counted_git(settings.folder) as (env, log):
        child(STATUS, root, env)
        yield at_most(Row("start", "the same, git calls", len(log.read_text().splitlines()), "calls"), 3)


def modules(settings: Settings) -> Iterator[Row]:
    """What is in memory after `status --json`."""
    root = project(settings.place("modules"), {"grow": tasks_text(20)})
    code = (
        f"import sys, io; sys.path.insert(0, {str(MAIN.parent.parent)!r}); out = sys.stdout; sys.stdout = io.StringIO()\n"
        "from baton_cli.main import run\nassert run(['status', '--json']) == 0\nout.write(' '.join(sys.modules))"
    )
    done = subprocess.run([*PYTHON, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    needless = sorted(set(NEEDLESS) & {name.partition(".")[0] for name in loaded})
    row = Row("modules", "needless packages after status --json", len(needless), "", note=" ".join(needless))
    yield exactly(row, 0)
    yield Row("modules", "modules after status --json", len(loaded), "")


def growth(settings: Settings) -> Iterator[Row]:
    """The same command over plans of 1,000, 10,000 and 40,000 tickets, and over 10 and 500 changes."""
    sizes = (1000, 10_000) if settings.quick else (1000, 10_000, 40_000)
    roots = {size: project(settings.place("growth"), {"grow": tasks_text(size)}) for size in sizes}
    taken = in_turns({str(size): partial(child, STATUS, root) for size, root in roots.items()}, settings.rounds(6))
    for size in sizes[1:]:
        wall, cpu = ratio(taken[str(size)], taken["1000"])
        memory = statistics.median(cost.memory for cost in taken[str(size)])
        note = f"{milliseconds(taken[str(size)])}, {memory / 2**20:.0f} MiB"
        row = Row("growth", f"status, {size:,} / 1,000 tickets", wall, "x", cpu=cpu, note=note)
        yield at_most(row, size / 1000)
    few, many = (_changes(settings, number) for number in (10, 500))
    taken = in_turns({"few": lambda: child(STATUS, few), "many": lambda: child(STATUS, many)}, settings.rounds(6))
    wall, cpu = ratio(taken["many"], taken["few"])
    row = Row("growth", "status, 500 / 10 changes", wall, "x", cpu=cpu, note=milliseconds(taken["many"]))
    yield at_most(row, 50)


def _changes(settings: Settings, number: int) -> Path:
    return project(settings.place("changes"), {f"change-{at}": tasks_text(2) for at in range(number)})
