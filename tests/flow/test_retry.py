"""A person's `retry` starts the count of attempts anew and is none itself; whoever comes next hears what was before."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from baton_cli.core.prompt import PROMPT_LIMIT
from tests import invariants
from tests.kit import World, hand_outs, make_world, only


@pytest.fixture
def world(tmp_path: Path) -> World:
    return make_world(tmp_path / "project", "- [ ] 1.1 Lay a stone\n", config='[verify]\ncommands = ["true"]\n')


def fail(world: World, terminal: str = "failed") -> int:
    """One attempt that ends badly; its number."""
    action = hand_outs(world.actions())[0]
    world.reconcile(action, terminal)
    number: int = action["attempt"]
    return number


def test_a_retry_takes_no_number(world: World) -> None:
    assert [fail(world) for _ in range(3)] == [1, 2, 3]
    assert only(world.actions())["reason"] == "exhausted"
    world.decide("1.1", "retry", None)
    world.decide("1.1", "retry", None)  # twice is once
    assert [fail(world) for _ in range(3)] == [4, 5, 6]
    assert only(world.actions())["reason"] == "exhausted"
    assert world.ticket("1.1")["assignment"]["attempt"] == 6
    invariants.check(world)


def test_a_retry_gives_as_many_attempts_as_the_limit_after_any_number(world: World) -> None:
    fail(world)
    world.decide("1.1", "retry", None)
    assert [fail(world) for _ in range(3)] == [2, 3, 4]
    assert only(world.actions())["reason"] == "exhausted"


def test_the_first_attempt_after_a_retry_has_the_next_number(world: World) -> None:
    fail(world)
    world.decide("1.1", "retry", None)
    action = hand_outs(world.actions("s2"))[0]
    assert (action["attempt"], action["kind"]) == (2, "recover")
    world.finish(action)
    invariants.check(world)


def test_what_was_before_is_told_to_the_next_and_to_the_person(world: World) -> None:
    for terminal in ("failed", "max_tokens"):
        fail(world, terminal)
    prompt = hand_outs(world.actions())[0]["prompt"]
    assert "attempts so far: #1 failed, #2 max tokens" in prompt
    assert len(prompt) <= PROMPT_LIMIT
    world.reconcile(hand_outs(world.actions())[0], "refused")
    blocked = only(world.actions())
    assert blocked["reason"] == "exhausted"
    assert "attempts so far: #1 failed, #2 max tokens, #3 refused" in world.ticket("1.1")["assignment"]["detail"]


MENDED = "- [ ] 1.1 Lay a flat stone\n  - verify: `test -f stone`\n"


def exhausted_by_its_check(world: World) -> None:
    world.tasks.write_text("- [ ] 1.1 Lay a stone\n  - verify: `exit 3`\n")
    for _ in range(3):
        action = hand_outs(world.actions())[0]
        world.work(action, {"stone": str(action["attempt"])})
        world.reconcile(action)
    assert only(world.actions())["reason"] == "exhausted"


def test_a_retry_brings_the_check_that_was_mended_and_the_text_of_now(world: World) -> None:
    exhausted_by_its_check(world)
    world.tasks.write_text(MENDED)
    world.decide("1.1", "retry", None)
    action = hand_outs(world.actions())[0]
    assert "Lay a flat stone" in action["prompt"]
    assert "`exit 3`" not in action["prompt"], "that check is no more"
    packet = json.loads(Path(action["packet"]).with_suffix(".json").read_text())
    assert [check["command"] for check in packet["checks"]] == ["test -f stone"]
    assert world.reconcile(action)["state"] == "unknown"
    world.actions()  # what the earlier attempts left passes now
    assert world.ticket("1.1")["status"] == "integrated"
    invariants.check(world)


def test_without_a_retry_and_without_a_change_the_packet_stays(world: World) -> None:
    first = hand_outs(world.actions())[0]
    frozen = Path(first["packet"]).read_bytes()
    world.tasks.write_text(MENDED)
    world.reconcile(first, "failed")
    assert Path(hand_outs(world.actions())[0]["packet"]).read_bytes() == frozen
    world.tasks.write_text("- [ ] 1.1 Lay a stone\n")
    world.decide("1.1", "retry", None)
    assert Path(hand_outs(world.actions())[0]["packet"]).read_bytes() == frozen
