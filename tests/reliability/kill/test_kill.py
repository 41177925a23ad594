"""Killed anywhere: the next call reaches what an undisturbed run reaches, with nothing lost, doubled or left over."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from baton_cli.git import leftovers
from tests import figures, invariants
from tests.conftest import without_sh
from tests.kit import World
from tests.reliability.kill import victim
from tests.reliability.kill.scenarios import DRIVE, REFUSALS, SCENARIOS, Scenario, refused
from tests.reliability.kill.stage import Stage, entered, left_overs, shape
from tests.reliability.kill.victim import Point

pytestmark = victim.listens
CHUNKS = 8
WRITES = (1, 3)  # of a child, after which it and Baton are killed: by turns
OF_DRIVE = 20  # one of so many points of a drive is tried: it has 500, most of them those of the other verbs
# What has to be the same where git itself was cut short in the middle of its writing: how often a ticket was handed out
# until then, and what its worktree was at meanwhile, follows from where exactly that was.
WORTH = ("tasks", "branch", "completions", "revisions")
SOME = 3  # points of each scenario in the quick form

_plain: dict[tuple[str, bool], tuple[victim.Run, dict[str, Any]]] = {}


@pytest.fixture
def stage(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Stage:
    found = entered(tmp_path_factory.getbasetemp() / "stage", monkeypatch)
    monkeypatch.setattr(leftovers, "LIMIT", 0.0)  # what a killed agent's git locked is old enough at once
    return found


def undisturbed(stage: Stage, scenario: Scenario, *, watched: bool) -> tuple[victim.Run, dict[str, Any]]:
    """The run that nothing happens to: its events (`watched`: with what is on disk at each), and what it reaches."""
    if (scenario.name, watched) not in _plain:
        stage.begin(scenario.name, scenario.make)
        world = World(stage.root)
        folder = stage.live if watched else None
        run = victim.run(lambda: scenario.verb(world, stage.notes), stage.log, mark(stage), watched=folder)
        assert run.code == (1 if scenario.name == "seal-red" else 0), run.said
        make_good(stage, scenario, world)
        _plain[scenario.name, watched] = run, shape(world)
    return _plain[scenario.name, watched]


def mark(stage: Stage) -> str:
    return str(stage.base)


def make_good(stage: Stage, scenario: Scenario, world: World) -> None:
    """The next calls."""
    if scenario is DRIVE:  # it listens for signals: in a process of its own, too
        run = victim.run(lambda: scenario.verb(world, stage.notes), stage.log, mark(stage), victim.NEVER)
        assert run.code == 0, run.said
        return
    with without_sh():
        refused(scenario.verb, world, stage.notes, REFUSALS.get(scenario.name, ()))
        scenario.after(world, stage.notes)


def killed_at(stage: Stage, scenario: Scenario, point: Point, wanted: dict[str, Any]) -> str | None:
    """Kill there, make good, compare with what is wanted. What is wrong then, if anything."""
    stage.begin(scenario.name, scenario.make)
    world = World(stage.root)
    victim.run(lambda: scenario.verb(world, stage.notes), stage.log, mark(stage), point, stage.live)
    try:
        if point.writes:  # what all of git shares is not Baton's to clear: a person is told, and does it
            (world.root / ".git" / "packed-refs.lock").unlink(missing_ok=True)
        make_good(stage, scenario, world)
        invariants.check(world, stage.checkout(scenario.name))
        reached = shape(world)
        parts = scenario.compared or (tuple(wanted) if not point.writes else WORTH)
        odd = [f"{part}: {reached[part]} instead of {wanted[part]}" for part in parts if reached[part] != wanted[part]]
        assert not odd, "; ".join(odd)
        assert not victim.left_running(mark(stage)), "processes are left"
        assert not left_overs(stage), f"left over: {left_overs(stage)}"
    except Exception as error:
        return f"{type(error).__name__} {error}"
    return None


def every_point(run: victim.Run) -> Iterator[Point]:
    """Each event at which something is other than at the one before: files, or a child that lives.

    (A killed process leaves nothing else, so points between which nothing was written are one.) First with Baton alone
    killed; then, where it has children, with all of them; and where a child writes, also between its writes.
    """
    last = ""
    for number, (name, busy, state) in enumerate(zip(run.events, run.busy, run.states, strict=True), 1):
        if busy:
            yield from (Point(number), Point(number, tree=True))
        elif state != last:
            yield Point(number)
            last = state
        if name in victim.STARTED and state != run.states[min(number, len(run.states) - 1)]:
            yield Point(number, tree=True, writes=WRITES[number % 2])


def some_points(run: victim.Run, count: int) -> list[Point]:
    """Spread over the run: all ways of killing, taken from the list of all events."""
    found: list[Point] = []
    for number, busy in enumerate(run.busy, 1):
        found += (
            [Point(number, tree=True), Point(number, tree=True, writes=1), Point(number)] if busy else [Point(number)]
        )
    step = len(found) // count
    return found[step // 2 :: step][:count]


def none_is_lost(stage: Stage, scenario: Scenario, chosen: Sequence[Point], *, watched: bool) -> None:
    run, wanted = undisturbed(stage, scenario, watched=watched)
    lost = []
    for point in chosen:
        wrong = killed_at(stage, scenario, point, wanted)
        if wrong is not None:
            lost.append(f"{point} ({run.events[int(point.at) - 1]}): {wrong}")
    figures.add(f"kill {scenario.name}", len(chosen), len(lost))
    assert not lost, f"{len(lost)} of {len(chosen)} lost\n" + "\n".join(lost)


@pytest.mark.parametrize("scenario", [*SCENARIOS, DRIVE], ids=lambda scenario: scenario.name)
def test_killed_here_and_there(stage: Stage, scenario: Scenario) -> None:
    """The quick form of the next one."""
    run, _ = undisturbed(stage, scenario, watched=False)
    none_is_lost(stage, scenario, some_points(run, 1 if scenario is DRIVE else SOME), watched=False)


@pytest.mark.full
@pytest.mark.timeout(1500)  # a machine that does other things, too
@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.parametrize("scenario", [*SCENARIOS, DRIVE], ids=lambda scenario: scenario.name)
def test_killed_everywhere(stage: Stage, scenario: Scenario, chunk: int) -> None:
    run, _ = undisturbed(stage, scenario, watched=True)
    step = CHUNKS * (OF_DRIVE if scenario is DRIVE else 1)
    none_is_lost(stage, scenario, list(every_point(run))[chunk::step], watched=True)
