"""git fails at its n-th call, for every n: a clear error, nothing lost, and the next call ends where it would have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from baton_cli.errors import BatonError
from tests import figures, invariants
from tests.conftest import without_sh
from tests.kit import World
from tests.reliability.git_faults import EARLY, HANG, LATE, MISSING, BadDay, told_well
from tests.reliability.kill.scenarios import REFUSALS, SCENARIOS, Scenario, refused
from tests.reliability.kill.stage import Stage, entered, shape

CODES = {EARLY: "git_failed", LATE: "git_failed", HANG: "git_timeout", MISSING: "git_missing"}
# What changes something, so that it matters whether a failed call had done its work.
WRITERS = {
    "update-ref", "worktree add", "worktree remove", "worktree prune", "merge", "checkout", "reset", "clean", "commit-tree",
}  # fmt: skip
# Where nothing can be integrated now, the conflict is handed out all the same, with the head as it is.
EXCUSED = {"actions-busy": ("worktrees",)}

_plain: dict[str, tuple[list[str], dict[str, Any]]] = {}


@pytest.fixture
def stage(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Stage:
    return entered(tmp_path_factory.getbasetemp() / "bad-days", monkeypatch)


@pytest.fixture
def day(tmp_path: Path) -> BadDay:
    return BadDay(tmp_path)


def make_good(stage: Stage, scenario: Scenario, world: World) -> None:
    with without_sh():
        refused(scenario.verb, world, stage.notes, REFUSALS.get(scenario.name, ()))
        scenario.after(world, stage.notes)


def undisturbed(stage: Stage, day: BadDay, scenario: Scenario) -> tuple[list[str], dict[str, Any]]:
    """What the verb asks of git, and where it and the next call lead."""
    if scenario.name not in _plain:
        stage.begin(scenario.name, scenario.make)
        world = World(stage.root)
        with day.at(0, EARLY):
            refused(scenario.verb, world, stage.notes, REFUSALS.get(scenario.name, ()))
        calls = day.calls
        make_good(stage, scenario, world)
        _plain[scenario.name] = calls, shape(world)
    return _plain[scenario.name]


def wrong_at(stage: Stage, day: BadDay, scenario: Scenario, number: int, how: str) -> str | None:
    """What is wrong when that happens to that call, if anything."""
    _, wanted = undisturbed(stage, day, scenario)
    stage.begin(scenario.name, scenario.make)
    world = World(stage.root)
    code = None
    try:
        try:
            with day.at(number, how):
                scenario.verb(world, stage.notes)
        except BatonError as error:
            code = told_well(error)
        assert code in (None, CODES[how], *REFUSALS.get(scenario.name, ())), code
        invariants.check(world, stage.checkout(scenario.name))
        make_good(stage, scenario, world)
        reached = shape(world)
        odd = [part for part in wanted if reached[part] != wanted[part] and part not in EXCUSED.get(scenario.name, ())]
        assert not odd, "; ".join(f"{part}: {reached[part]} instead of {wanted[part]}" for part in odd)
    except Exception as error:
        return f"{type(error).__name__} {error}"[:600]
    return None


def none_matters(stage: Stage, day: BadDay, scenario: Scenario, how: str, step: int) -> None:
    calls, _ = undisturbed(stage, day, scenario)
    numbers = range(1, len(calls) + 1)
    chosen = [number for number in numbers if how != LATE or calls[number - 1] in WRITERS][::step]
    wrong = [
        f"{how} at call {number} of {len(calls)} ({calls[number - 1]}): {said}"
        for number in chosen
        if (said := wrong_at(stage, day, scenario, number, how))
    ]
    figures.add(f"git {how}", len(chosen), len(wrong))
    assert not wrong, f"{len(wrong)} of {len(chosen)}\n" + "\n".join(wrong)


MAIN = [scenario for scenario in SCENARIOS if scenario.name in ("actions", "seal", "reconcile")]
REST = [scenario for scenario in SCENARIOS if scenario not in MAIN]


@pytest.mark.parametrize(("how", "step"), [(EARLY, 9), (LATE, 4), (HANG, 20), (MISSING, 20)])
@pytest.mark.parametrize("scenario", MAIN, ids=lambda scenario: scenario.name)
def test_git_fails_here_and_there(stage: Stage, day: BadDay, scenario: Scenario, how: str, step: int) -> None:
    none_matters(stage, day, scenario, how, step)


@pytest.mark.full
@pytest.mark.timeout(1500)
@pytest.mark.parametrize(("how", "step"), [(EARLY, 1), (LATE, 1), (HANG, 7), (MISSING, 7)])
@pytest.mark.parametrize("scenario", MAIN, ids=lambda scenario: scenario.name)
def test_git_fails_at_every_call(stage: Stage, day: BadDay, scenario: Scenario, how: str, step: int) -> None:
    none_matters(stage, day, scenario, how, step)


@pytest.mark.full
@pytest.mark.timeout(1500)
@pytest.mark.parametrize(("how", "step"), [(EARLY, 4), (LATE, 4), (HANG, 20), (MISSING, 20)])
@pytest.mark.parametrize("scenario", REST, ids=lambda scenario: scenario.name)
def test_git_fails_in_other_calls(stage: Stage, day: BadDay, scenario: Scenario, how: str, step: int) -> None:
    none_matters(stage, day, scenario, how, step)
