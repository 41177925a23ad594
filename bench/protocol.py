"""The protocol's expensive half: worktrees handed out, and branches integrated, in repositories of many files."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from bench.measure import Cost, Row, at_most, call, child, milliseconds, ratio
from bench.scene import BATON, Settings, counted_git, git, project, tasks_text

TICKETS = 5
WIDE = "[limits]\nparallel = 64\n"
WITHOUT = " without gate"
# The base is still the head; no longer, and Baton's own worktree has to be made; no longer, and it is there.
KINDS = {"ancestor": 0.6, "first diverged": None, "diverged without gate": 0.6, "diverged": None}
ACTIONS = (*BATON, "actions", "grow", "--session", "s", "--json")


def sizes(settings: Settings, small: int, big: int) -> dict[int, int]:
    """How many rounds for which number of files."""
    return {5000: settings.rounds(small)} if settings.quick else {5000: small, 50_000: big}


def total(costs: list[Cost]) -> Cost:
    """Several things one after the other."""
    return Cost(sum(cost.wall for cost in costs), sum(cost.cpu for cost in costs), max(cost.memory for cost in costs))


def actions(settings: Settings) -> Iterator[Row]:
    """Five tickets handed out, against five raw `git worktree add`; a fresh repository each round."""
    for files, rounds in sizes(settings, 5, 2).items():
        taken: dict[str, list[Cost]] = {"baton": [], "raw": [], "noop": []}
        for number in range(rounds):
            root = project(settings.place("actions"), {"grow": tasks_text(10)}, files)
            for name in ("baton", "raw", "noop")[:: -1 if number % 2 else 1]:
                taken[name].append(_hand_out(name, root, settings))
        over = [
            Cost(baton.wall - noop.wall, baton.cpu - noop.cpu)
            for baton, noop in zip(taken["baton"], taken["noop"], strict=True)
        ]
        note = f"{milliseconds(taken['baton'])} against {milliseconds(taken['raw'])}"
        wall, cpu = ratio(over, taken["raw"])
        row = Row("actions", f"{files:,} files: (actions - 3 NOOP) / 5 worktree add", wall, "x", cpu=cpu, note=note)
        yield at_most(row, 1.1) if files == 5000 else row
        wall, cpu = ratio(taken["baton"], taken["raw"])
        row = Row("actions", f"{files:,} files: actions / 5 worktree add", wall, "x", cpu=cpu)
        yield at_most(row, 1.15) if files == 50_000 else row
    memory = statistics.median(cost.memory for cost in taken["baton"])
    yield Row("actions", "the same, peak memory of any process", memory / 2**20, "MiB")
    root = project(settings.place("calls"), {"grow": tasks_text(10)})
    with counted_git(settings.folder) as (env, log):
        child(ACTIONS, root, env)
        calls = len(log.read_text().splitlines())
    yield at_most(Row("actions", "git calls for 5 tickets", calls, "calls"), 6 + 2 * TICKETS)


def _hand_out(name: str, root: Path, settings: Settings) -> Cost:
    if name == "baton":
        return child(ACTIONS, root)
    if name == "noop":
        return total([child(settings.noop, root) for _ in range(3)])
    places = [root / ".dsh" / "raw" / str(number) for number in range(TICKETS)]
    words = ("git", "-C", str(root), "worktree", "add", "-q", "--no-track", "-b")
    return total([child([*words, f"raw-{place.name}", place, "main"], root) for place in places])


def integrate(settings: Settings) -> Iterator[Row]:
    """One sealed branch, against `git merge --no-ff` of the same branch in a checkout. In this process; no check of
    the project takes time (it is `true`), what the gate does about it is told apart."""
    clean: dict[int, dict[str, list[Cost]]] = {}
    for files, rounds in sizes(settings, 5, 2).items():
        taken = clean[files] = _integrations(settings, files, rounds)
        for what, goal in KINDS.items():
            raw = taken[f"merge {what.removesuffix(WITHOUT)}"]
            wall, cpu = ratio(taken[what], raw)
            note = f"{milliseconds(taken[what])} against {milliseconds(raw)}"
            row = Row("integrate", f"{files:,} files, {what} / merge --no-ff", wall, "x", cpu=cpu, note=note)
            yield at_most(row, goal) if goal else row
    if len(clean) == 2:
        for what in ("ancestor", "diverged without gate"):
            small, big = (statistics.median(cost.wall for cost in clean[files][what]) for files in clean)
            cpu = statistics.median(c.cpu for c in clean[50_000][what]) / statistics.median(
                c.cpu for c in clean[5000][what]
            )
            yield at_most(Row("integrate", f"50,000 / 5,000 files, {what}", big / small, "x", cpu=cpu), 1.5)
    yield Row(
        "integrate", "git calls for one, ancestor", statistics.median(c.wall for c in taken["ancestor calls"]), "calls"
    )


def _integrations(settings: Settings, files: int, rounds: int) -> dict[str, list[Cost]]:
    """Each round is a change of its own with a ticket for each kind."""
    names = [f"change-{number}" for number in range(rounds)]
    root = project(settings.place("integrate"), {name: tasks_text(3) for name in names}, files, WIDE)
    raw = settings.place("raw")
    git(root, "worktree", "add", "-q", "--detach", raw, "main")
    taken: dict[str, list[Cost]] = {}
    for number, name in enumerate(names):
        git(raw, "checkout", "-q", "--detach", "main")
        _one_change(root, raw, name, taken, merge_first=bool(number % 2))
    return taken


def _one_change(root: Path, raw: Path, name: str, taken: dict[str, list[Cost]], *, merge_first: bool) -> None:
    from baton_cli import context
    from baton_cli import project as projects
    from baton_cli.controller import SessionController
    from baton_cli.core.receipt import Authority

    with context.opened(projects.find(root), create=True) as surroundings:
        controls = SessionController(surroundings)
        handed = controls.actions(name, "s", 3)["actions"]
        for action, what in zip(handed, ("ancestor", "first diverged", "diverged"), strict=True):
            place = Path(action["cwd"])
            (place / f"{what.replace(' ', '-')}.txt").write_text(f"done in {name}\n")
            git(place, "add", "-A")
            git(place, "commit", "-q", "-m", "work")
            controls.seal(action["assignment_id"], Authority("operator", why="to be measured"))
            head = git(place, "rev-parse", "HEAD")
            works: list[Callable[[], dict[str, Cost]]] = [
                partial(_merged, raw, head, what),
                partial(_integrated, surroundings, name, what),
            ]
            for work in works[:: 1 if merge_first else -1]:
                for kind, cost in work().items():
                    taken.setdefault(kind, []).append(cost)


def _merged(raw: Path, head: str, what: str) -> dict[str, Cost]:
    return {f"merge {what}": child(("git", "-C", str(raw), "merge", "-q", "--no-ff", "-m", "merge", head), raw)}


def _integrated(surroundings: Any, name: str, what: str) -> dict[str, Cost]:
    """The cost of one integration, of the same without its gate, and how many git calls it took."""
    from baton_cli.flow import integrate as flow
    from baton_cli.flow import load
    from baton_cli.flow.parts import detection, gate, tickets
    from baton_cli.git import run

    gates: list[Cost] = []
    calls: list[object] = []

    def timed(*words: Any) -> Any:
        found: list[Any] = []
        gates.append(call(lambda: found.append(judge(*words))))
        return found[0]

    def counted(*words: Any) -> Any:
        calls.append(words)
        return execute(*words)

    def wanted(change: str) -> frozenset[int]:
        views = tickets.views(surroundings, load.look(surroundings, change))
        return frozenset(view.ticket_id for view in views)

    setup = detection.setup(surroundings)
    done: list[Any] = []
    judge, execute = gate.judge, run._execute
    with patch.object(gate, "judge", timed), patch.object(run, "_execute", counted):
        cost = call(lambda: done.append(flow.integrate(surroundings, name, setup, wait=False, wanted=wanted)))
    if [item.state.value for item in done[0].moved] != ["integrated"]:
        raise RuntimeError(f"not integrated: {done[0]}")
    bare = Cost(cost.wall - sum(item.wall for item in gates), cost.cpu - sum(item.cpu for item in gates))
    return {what: cost, f"{what}{WITHOUT}": bare, f"{what} calls": Cost(len(calls), 0.0)}
