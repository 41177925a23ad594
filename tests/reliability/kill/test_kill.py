"""Killed anywhere: the next call reaches what an undisturbed run reaches, with nothing lost, doubled or left over."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from baton_cli.git import run as git_run
from tests import figures, invariants
from tests.kit import World
from tests.reliability.kill import victim
from tests.reliability.kill.scenarios import DRIVE, REFUSALS, SCENARIOS, Scenario, refused
from tests.reliability.kill.stage import Stage, left_overs, shape

pytestmark = victim.listens
CHUNKS = 4
SOME = 7  # points of the quick form, each way of killing

_stages: dict[Path, Stage] = {}
_plain: dict[str, tuple[victim.Run, dict[str, Any]]] = {}


@pytest.fixture
def stage(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """This process's stage: beginnings that were made stay for its other tests."""
    base = tmp_path_factory.getbasetemp() / "stage"
    found = _stages.setdefault(base, Stage(base))
    monkeypatch.setenv("XDG_STATE_HOME", str(found.live / "state"))
    monkeypatch.setenv("TMPDIR", str(found.temporary))
    monkeypatch.setattr(tempfile, "tempdir", str(found.temporary))
    return found


def undisturbed(stage: Stage, scenario: Scenario) -> tuple[victim.Run, dict[str, Any]]:
    """The run that nothing happens to: its events, and what it reaches."""
    if scenario.name not in _plain:
        stage.begin(scenario.name, scenario.make)
        world = World(stage.root)
        run = victim.run(lambda: scenario.verb(world, stage.notes), stage.log, mark(stage), watched=stage.live)
        assert run.code == (1 if scenario.name == "seal-red" else 0), run.said
        make_good(stage, scenario, world)
        _plain[scenario.name] = run, shape(world)
    return _plain[scenario.name]


def mark(stage: Stage) -> str:
    return str(stage.base)


def make_good(stage: Stage, scenario: Scenario, world: World) -> None:
    """The next calls. (git is called as on a system without `sh`: three times as fast.)"""
    if scenario is DRIVE:  # it listens for signals: in a process of its own, too
        run = victim.run(lambda: scenario.verb(world, stage.notes), stage.log, mark(stage), at=victim.NEVER)
        assert run.code == 0, run.said
        return
    with mock.patch.object(git_run, "_execute", git_run._execute_windows):
        refused(scenario.verb, world, stage.notes, REFUSALS.get(scenario.name, ()))
        scenario.after(world, stage.notes)


def killed_at(stage: Stage, scenario: Scenario, at: int, tree: bool) -> str | None:
    """Kill there, make good, compare. What is wrong then, if anything."""
    _, wanted = undisturbed(stage, scenario)
    stage.begin(scenario.name, scenario.make)
    world = World(stage.root)
    victim.run(lambda: scenario.verb(world, stage.notes), stage.log, mark(stage), at=at, tree=tree)
    try:
        make_good(stage, scenario, world)
        invariants.check(world, stage.checkout(scenario.name))
        reached = shape(world)
        parts = scenario.compared or tuple(wanted)
        odd = [f"{part}: {reached[part]} instead of {wanted[part]}" for part in parts if reached[part] != wanted[part]]
        assert not odd, "; ".join(odd)
        assert not victim.left_running(mark(stage)), "processes are left"
        assert not left_overs(stage), f"left over: {left_overs(stage)}"
    except Exception as error:
        return f"{type(error).__name__} {error}"
    return None


def points(stage: Stage, scenario: Scenario) -> list[tuple[int, bool]]:
    """Every event at which something is other than at the one before: files, or a child that lives.

    (A killed process leaves nothing else, so points between which nothing was written are one.) First with Baton alone
    killed; then, where it has children, with all of them.
    """
    run, _ = undisturbed(stage, scenario)
    chosen, last = [], ""
    for number, (busy, state) in enumerate(zip(run.busy, run.states, strict=True), 1):
        if busy:
            chosen += [(number, False), (number, True)]
        elif state != last:
            chosen.append((number, False))
            last = state
    return chosen


def none_is_lost(stage: Stage, scenario: Scenario, chosen: Sequence[tuple[int, bool]]) -> None:
    names = undisturbed(stage, scenario)[0].events
    lost = []
    for at, tree in chosen:
        wrong = killed_at(stage, scenario, at, tree)
        if wrong is not None:
            lost.append(f"{'all' if tree else 'alone'} before event {at} ({names[at - 1]}): {wrong}")
    figures.add(f"kill {scenario.name}", len(chosen), len(lost))
    assert not lost, f"{len(lost)} of {len(chosen)} lost\n" + "\n".join(lost)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_killed_here_and_there(stage: Stage, scenario: Scenario) -> None:
    found = points(stage, scenario)
    none_is_lost(stage, scenario, found[len(found) // SOME // 2 :: max(1, len(found) // SOME)])


@pytest.mark.full
@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_killed_everywhere(stage: Stage, scenario: Scenario, chunk: int) -> None:
    none_is_lost(stage, scenario, points(stage, scenario)[chunk::CHUNKS])


def test_a_drive_killed_here_and_there(stage: Stage) -> None:
    found = points(stage, DRIVE)
    none_is_lost(stage, DRIVE, found[len(found) // 4 :: max(1, len(found) // 3)])


@pytest.mark.full
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_a_drive_killed_everywhere(stage: Stage, chunk: int) -> None:
    none_is_lost(stage, DRIVE, points(stage, DRIVE)[chunk::CHUNKS])
