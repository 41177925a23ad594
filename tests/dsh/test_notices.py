"""What comes after the end: a second notice of a subagent that has ended, or a notice for an attempt that is over."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.dsh.kit import LIMIT, Home
from tests.dsh.model import Call, Exchange, Model, Reply
from tests.dsh.session import Job, Script, good_work, main_session, read, text_of
from tests.dsh.test_runs import ONE, complete, run_web, tree
from tests.kit import World, baton_json, make_world

pytestmark = pytest.mark.timeout(2 * LIMIT)


def reconciled(model: Model, session: str) -> list[tuple[dict[str, Any], str]]:
    """What the session reconciled, and what it was told, in order."""
    messages = max((exchange.messages for exchange in model.asked if exchange.session == session), key=len)
    turns = read(messages).turns
    return [(turn.arguments, turn.result or "") for turn in turns if turn.name == "mcp__baton__reconcile"]


def endings(world: World) -> list[str]:
    """The ends of agents in the history."""
    log = baton_json(world.root, "log", world.change)["events"]
    return [item["cause"] for item in log if item["name"] == "ended"]


def wakes_the_first(exchange: Exchange, after: str) -> Reply:
    """The skill's next step; but once, when the conversation has got to `after`, more is said to the first subagent."""
    reply = main_session(exchange)
    history = read(exchange.messages)
    names = [turn.name for turn in history.turns]
    if "send_message" in names:
        last = history.last[0].name if history.last else ""
        return "Waiting for the subagents." if last == "send_message" and not history.notices else reply
    if after in text_of(exchange.messages[-1]):
        first = next(turn.arguments["agent_id"] for turn in history.turns if turn.name == "mcp__baton__reconcile")
        return [Call("send_message", {"subagent_id": first, "message": "Say again that you are done."})]
    return reply


def test_a_second_notice_after_the_merge(linked: Callable[..., Home], tmp_path: Path) -> None:
    world = make_world(tmp_path / "project", ONE)
    script = Script(session=lambda exchange: wakes_the_first(exchange, '"state":"integrated"'))
    model, _ = run_web(linked("web"), world, script)
    assert complete(script, model)["integrated"] == 1
    (first, told), (second, again) = reconciled(model, *script.parents)
    assert first == second, "two notices of one subagent"
    assert told == again
    assert json.loads(told)["state"] == "integrated"
    assert endings(world) == ["completed"]


def test_a_second_notice_after_the_next_attempt_began(linked: Callable[..., Home], tmp_path: Path) -> None:
    world, over = make_world(tmp_path / "project", ONE), threading.Event()

    def work(job: Job) -> list[str]:
        if not job.again:
            return ["true"]
        assert over.wait(LIMIT), "the second notice never came"
        return good_work(job)

    def session(exchange: Exchange) -> Reply:
        if "stale_claim" in text_of(exchange.messages[-1]):
            over.set()
        return wakes_the_first(exchange, '"agent":')

    script = Script(work, session=session)
    model, _ = run_web(linked("web"), world, script)
    assert complete(script, model)["integrated"] == 1
    (first, told), (second, refused), (third, merged) = reconciled(model, *script.parents)
    assert first == second, "two notices of one subagent"
    assert json.loads(told)["state"] == "unknown"
    assert '"code":"stale_claim"' in refused, "and the attempt that runs now is left alone"
    assert third["agent_id"] != first["agent_id"]
    assert json.loads(merged)["state"] == "integrated"
    assert tree(world) == {"1.1.txt"}
    assert endings(world) == ["completed", "completed"]
