"""A person's decisions happen whole or not at all, and no store waits for a git call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from baton_cli import context as contexts
from baton_cli.errors import BatonError
from baton_cli.finisher import Finisher
from baton_cli.flow import tick
from baton_cli.git import run
from baton_cli.operator import Operator
from baton_cli.store.db import Store
from tests import invariants
from tests.conftest import run_git
from tests.kit import World, baton, hand_outs, make_world


@pytest.fixture
def world(tmp_path: Path) -> World:
    return make_world(tmp_path / "project")


def refused(call: Callable[[], object]) -> str:
    with pytest.raises(BatonError) as caught:
        call()
    assert caught.value.hint
    return caught.value.code


@pytest.mark.parametrize("decision", ["done", "skip"])
def test_a_decision_that_is_refused_leaves_the_agent_its_ticket(world: World, tmp_path: Path, decision: str) -> None:
    action = hand_outs(world.actions(capacity=1))[0]
    run_git(world.root, "worktree", "add", "-q", str(tmp_path / "mine"), world.integration)
    assert refused(lambda: world.decide("1.1", decision)) == "integration_checked_out"
    assert world.ticket("1.1")["assignment"]["state"] == "claimed"
    run_git(world.root, "worktree", "remove", str(tmp_path / "mine"))
    assert world.finish(action)["state"] == "integrated"
    invariants.check(world)


@pytest.mark.parametrize("decision", ["done", "skip"])
def test_a_decision_ends_the_work_that_it_replaces(world: World, decision: str) -> None:
    action = hand_outs(world.actions(capacity=1))[0]
    head = world.work(action)
    world.decide("1.1", decision)
    assert refused(lambda: world.seal(action)) == "invalid_transition"
    assert run_git(world.root, "rev-parse", action["branch"]) == head
    invariants.check(world)


def test_what_was_given_up_can_be_taken_up_again(world: World) -> None:
    action = hand_outs(world.actions(capacity=1))[0]
    assert "git merge" not in baton(world.root, "abandon", "1.1", "--why", "no").stdout
    world.clock.seconds += 60
    action = hand_outs(world.actions(capacity=1))[0]
    world.work(action)
    said = baton(world.root, "abandon", "1.1", "--why", "no").stdout
    again = hand_outs(world.actions(capacity=1))[0]
    words = said.partition("next worktree of this ticket: ")[2].splitlines()[0].split(" ")
    run_git(Path(again["cwd"]), *words[1:])
    world.seal(again)
    assert world.reconcile(again)["state"] == "integrated"


def test_a_box_that_cannot_be_unticked_stays_finished(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.finish(hand_outs(world.actions(capacity=1))[0])
    with monkeypatch.context() as patched:
        patched.setattr(tick, "_once", lambda *_: (False, None))
        assert refused(lambda: world.decide("1.1", "reopen")) == "not_unticked"
    assert world.ticket("1.1")["status"] == "integrated"
    world.decide("1.1", "reopen")
    assert world.ticket("1.1")["status"] == "ready"
    assert "- [ ] 1.1" in world.tasks.read_text()
    invariants.check(world)


def test_a_tick_that_another_call_made_meanwhile_is_taken_back(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the decision is recorded, the ticket is finished for everybody else, who tick its box."""
    world.finish(hand_outs(world.actions(capacity=1))[0])
    from baton_cli.flow import decide

    real = decide.reopen

    def meanwhile(*args: Any) -> None:
        world.actions("other", capacity=1)
        assert "- [x] 1.1" in world.tasks.read_text()
        real(*args)

    monkeypatch.setattr(decide, "reopen", meanwhile)
    world.decide("1.1", "reopen")
    assert world.ticket("1.1")["status"] == "ready"


def test_done_says_when_its_box_could_not_be_ticked(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.actions(capacity=1)
    with monkeypatch.context() as patched:
        patched.setattr(tick, "_once", lambda *_: (False, None))
        assert "the next call ticks it" in world.decide("1.1", "done")["notice"]
    world.actions(capacity=1)
    assert "- [x] 1.1" in world.tasks.read_text()


def test_no_git_call_inside_a_write_transaction(world: World) -> None:
    open_now: list[bool] = []
    transaction, execute, calls = Store.transaction, run._execute, []

    @contextmanager
    def watched(self: Store) -> Iterator[None]:
        with transaction(self):
            open_now.append(True)
            try:
                yield
            finally:
                open_now.pop()

    def guarded(argv: Any, *args: Any, **more: Any) -> Any:
        calls.append((bool(open_now), list(argv)))
        return execute(argv, *args, **more)

    with mock.patch.object(Store, "transaction", watched), mock.patch.object(run, "_execute", guarded):
        _every_verb_that_writes(world)
    assert len(calls) > 100
    assert [argv for inside, argv in calls if inside] == []


def _every_verb_that_writes(world: World) -> None:
    first = hand_outs(world.actions(capacity=2))
    world.bind(first[0], "a")
    world.reconcile(first[0], "failed")
    world.decide("1.1", "retry", None)
    world.decide("1.1", "abandon")
    world.decide("1.2", "skip")
    with contexts.opened(world.project, create=True, clock=world.clock) as surroundings:
        Operator(surroundings).pause(world.change, "lunch")
        Operator(surroundings).resume(world.change)
    world.decide("1.2", "reopen")
    world.decide("1.2", "done")
    world.run_to_end()
    (world.root / "apart").write_text("x")
    run_git(world.root, "add", "apart")
    run_git(world.root, "commit", "-q", "-m", "meanwhile")
    with contexts.opened(world.project, create=True, clock=world.clock) as surroundings:
        assert Finisher(surroundings).land(world.change)["merged"]
