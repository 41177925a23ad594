"""A random walk: a person edits the plan while two sessions and their agents, good and bad, work on it.

Hypothesis throws the dice, from a fixed seed for each case, and shortens a walk that fails. At the end good agents finish
what is left, and each box is ticked or what stops it is named.
"""

from __future__ import annotations

import random
import time
from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies

from baton_cli.flow.parts import tokens
from tests import figures
from tests.flow.walk import CONFIG, PLAN, Walk, driven_to_the_end
from tests.kit import make_world

CASES = [*range(5), *(pytest.param(seed, marks=pytest.mark.full) for seed in range(5, 13))]
STEPS = {True: 50, False: 30}
WALKS = {True: 4, False: 2}  # of each case; the first is hypothesis's dullest: it only lets time go by


@pytest.mark.parametrize("seed", CASES)
def test_any_walk_keeps_every_promise(
    tmp_path: Path, seed: int, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = "full" in request.keywords
    folders = (tmp_path / str(number) for number in range(1 << 20))

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=WALKS[full], deadline=None, database=None, print_blob=False,
        suppress_health_check=list(hypothesis.HealthCheck),
    )  # fmt: skip
    @hypothesis.given(strategies.randoms(use_true_random=False))
    def walks(dice: random.Random) -> None:
        marks = (f"{number:08x}" for number in range(1 << 20))
        monkeypatch.setattr(tokens, "new_mark", lambda: next(marks))  # equal times are told apart by these
        walk = Walk(make_world(next(folders), PLAN, config=CONFIG, files={"shared": "0\n"}), dice)
        _take(walk, STEPS[full])

    walks()


def _take(walk: Walk, steps: int) -> None:
    began = time.monotonic()
    try:
        for _ in range(steps):
            walk.step()
        driven_to_the_end(walk)
    except BaseException:
        figures.add("walk steps", len(walk.log), 1)
        print(*walk.log, walk.world.tasks.read_text(), sep="\n")
        raise
    figures.add("walk steps", len(walk.log), 0)
    seconds = (time.monotonic() - began) / len(walk.log)
    print(f"{len(walk.log)} steps, {seconds:.2f} s each, {dict(walk.seen)}, refused {dict(walk.refused)}")
