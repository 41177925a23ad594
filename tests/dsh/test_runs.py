"""Whole runs on the real DSH: the skill's loop, its subagents, its notices, and what is left in the repository."""

from __future__ import annotations

import json
import os
import shlex
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT, run_git
from tests.dsh.kit import LIMIT, Home, Web
from tests.dsh.model import Call, Exchange, Model, Refused, Reply
from tests.dsh.session import STARTED, Job, Script, good_work, main_session, text_of, tool_results
from tests.kit import World, baton_json, make_world

pytestmark = pytest.mark.timeout(2 * LIMIT)

TASKS = """\
## 1. Ground

- [ ] 1.1 Lay the first stone
- [ ] 1.2 Lay the second stone
- [ ] 1.3 Lay the third stone

## 2. Walls

- [ ] 2.1 Raise the wall
"""
ONE = "## 1. Ground\n\n- [ ] 1.1 Lay the first stone\n"
TWO = ONE + "- [ ] 1.2 Lay the second stone\n"
Linked = Callable[..., Home]


def complete(script: Script, model: Model) -> dict[str, Any]:
    """The last word of the session, which has to be `complete`."""
    assert not model.errors
    assert script.final is not None
    word, _, rest = script.final.partition(" ")
    assert word == "COMPLETE", script.final
    value: dict[str, Any] = json.loads(rest)
    return value


def request(world: World, more: str = "") -> str:
    return f"run baton on {world.root} {world.change}{more}"


def tree(world: World) -> set[str]:
    """The work on the integration branch."""
    names = run_git(world.root, "ls-tree", "--name-only", world.integration).splitlines()
    return {name for name in names if name.endswith(".txt")}


def run_web(
    home: Home, world: World, script: Script, during: Callable[[Web], None] = lambda _web: None
) -> tuple[Model, str]:
    """One request in a web session, until the session says that it is at an end. The model and what DSH printed."""
    ended = threading.Event()
    script.on_final = ended.set
    with Model(script) as model, home.web(model.url, world.root) as web:
        during(web)
        web.prompt(web.session(world.root), request(world))
        assert ended.wait(LIMIT), (model.errors, [exchange.reply for exchange in model.asked], web.log.read_text())
    return model, web.log.read_text(errors="replace")


def run_headless(home: Home, world: World, script: Script, more: str = "", cwd: Path | None = None) -> Model:
    with Model(script) as model:
        done = home.headless(model.url, "headless: " + request(world, more), cwd or world.root)
    assert done.returncode == 0, (done.stdout, done.stderr, [exchange.reply for exchange in model.asked])
    assert "baton:" not in done.stderr
    return model


def test_background_children_in_parallel(linked: Linked, tmp_path: Path) -> None:
    world = make_world(tmp_path / "project", TASKS)
    head, at_work = run_git(world.root, "rev-parse", "HEAD"), threading.Barrier(3, timeout=LIMIT / 2)
    met: set[str] = set()

    def work(job: Job) -> list[str]:
        if job.ticket < "grow#2" and job.ticket not in met:
            met.add(job.ticket)
            at_work.wait()  # passes only when all three are at work at once
        return ["echo from $OLDPWD in $PWD", *good_work(job)]

    script = Script(work)
    model, _ = run_web(linked("web"), world, script)

    assert complete(script, model)["integrated"] == 4
    assert tree(world) == {"1.1.txt", "1.2.txt", "1.3.txt", "2.1.txt"}
    started = [match[1] for result in tool_results(model, "subagent") if (match := STARTED.match(result))]
    assert sorted(started) == sorted(script.jobs), "the id that DSH returns is the child's session"
    bound = [json.loads(result)["agent"] for result in tool_results(model, "mcp__baton__bind_agent")]
    assert sorted(bound) == sorted(started)
    assert len(bound) == 4
    # Every child was told where to go, since DSH starts it in the project's folder.
    places = [
        line for result in tool_results(model, "bash") for line in result.splitlines() if line.startswith("from ")
    ]
    assert sorted(places) == sorted(f"from {world.root} in {job.cwd}" for job in script.jobs.values())
    # Nothing of it shows in the user's checkout but the ticked boxes.
    assert run_git(world.root, "rev-parse", "HEAD") == head
    assert run_git(world.root, "status", "--porcelain").split() == ["M", "openspec/changes/grow/tasks.md"]
    assert world.tasks.read_text() == TASKS.replace("[ ]", "[x]")
    # A child has the tools of the session, and the skill is offered to it, too.
    children = [exchange for exchange in model.asked if exchange.session in script.jobs]
    assert all("mcp__baton__actions" in exchange.tools for exchange in children)
    assert all(json.loads(result)["state"] == "integrated" for result in tool_results(model, "mcp__baton__reconcile"))


def test_headless_with_foreground_children(linked: Linked, tmp_path: Path) -> None:
    world, script = make_world(tmp_path / "project", TWO + "\n## 2. Walls\n\n- [ ] 2.1 Raise the wall\n"), Script()
    model = run_headless(linked("headless"), world, script)
    assert complete(script, model)["integrated"] == 3
    assert tree(world) == {"1.1.txt", "1.2.txt", "2.1.txt"}
    assert "run_in_background" not in json.dumps(tool_results(model, "subagent"))
    assert not [result for result in tool_results(model, "subagent") if STARTED.match(result)]
    assert not tool_results(model, "mcp__baton__bind_agent")


def test_failed_and_unsealed_children_are_recovered(linked: Linked, tmp_path: Path) -> None:
    world = make_world(tmp_path / "project", TWO)

    def work(job: Job) -> list[str]:
        if job.again:
            return good_work(job)
        if job.ticket == "grow#1.1":
            raise Refused("this conversation is not served")
        return ["true"]  # says that it is done, and is not

    script = Script(work)
    model, _ = run_web(linked("web"), world, script)
    assert complete(script, model)["integrated"] == 2
    terminals = [
        (call["function"]["name"], json.loads(call["function"]["arguments"]).get("agent_terminal"))
        for exchange in model.asked[-1:]
        for message in exchange.messages
        for call in message.get("tool_calls") or ()
    ]
    named = [terminal for name, terminal in terminals if name == "mcp__baton__reconcile"]
    assert sorted(named) == ["completed", "completed", "completed", "failed"]
    assert tree(world) == {"1.1.txt", "1.2.txt"}


def test_a_conflict_goes_to_a_child(linked: Linked, tmp_path: Path) -> None:
    world, merged = make_world(tmp_path / "project", TWO), set()

    def work(job: Job) -> list[str]:
        if job.merging:
            merged.add(job.ticket)
            return ["printf 'both\\n' > README && git add -A && git commit -qm both", job.seal]
        return [f"echo {shlex.quote(job.ticket)} > README && git add -A && git commit -qm mine", job.seal]

    script = Script(work)
    model = run_headless(linked("headless"), world, script)
    assert complete(script, model)["integrated"] == 2
    assert len(merged) == 1, "the one that came second"
    assert run_git(world.root, "show", f"{world.integration}:README") == "both"


def test_the_server_is_killed(linked: Linked, tmp_path: Path) -> None:
    world, killed, running = make_world(tmp_path / "project", ONE), [], []

    def session(exchange: Exchange) -> Reply:
        reply = main_session(exchange)
        if isinstance(reply, str) or reply[0].name != "mcp__baton__reconcile":
            return reply
        if not killed:
            killed.extend(running[0].servers())
            for pid in killed:
                os.kill(pid, signal.SIGKILL)
        else:  # a language model takes its time as well
            until = time.monotonic() + 30
            while not set(running[0].servers()) - set(killed) and time.monotonic() < until:
                time.sleep(0.2)
        return reply

    script = Script(session=session)
    model, _ = run_web(linked("web"), world, script, running.append)
    assert len(killed) == 1, "one server for all sessions of a DSH"
    assert complete(script, model)["integrated"] == 1
    results = tool_results(model, "mcp__baton__reconcile")
    assert results[0].startswith("Error: "), results
    assert json.loads(results[-1])["state"] == "integrated"


def test_a_second_session_goes_on(linked: Linked, tmp_path: Path) -> None:
    world, working = make_world(tmp_path / "project", TWO), threading.Event()
    home = linked("web")

    def hang(job: Job) -> list[str]:
        if job.ticket == "grow#1.2":
            return good_work(job)
        working.set()
        return ["echo begun > 1.1.txt", "sleep 100"]

    first = Script(hang)
    with Model(first) as model, home.web(model.url, world.root) as web:
        web.prompt(web.session(world.root), request(world))
        assert working.wait(LIMIT), model.errors
        until = time.monotonic() + LIMIT
        while world.ticket("1.2")["status"] != "integrated" or not list(
            world.root.glob(".dsh/baton/worktrees/*/*/1.1.txt")
        ):
            assert time.monotonic() < until, world.status()
            time.sleep(0.3)
        os.killpg(web.process.pid, signal.SIGKILL)
        web.process.wait()

    # Another session sees who has the ticket; told that it is dead, it goes on in its name.
    seen = baton_json(world.root, "actions", world.change, "--session", "new")["actions"][0]
    assert seen["kind"] == "wait"
    home.plugin("headless", "add", str(ROOT))
    second = Script()
    model = run_headless(home, world, second, f" as session {seen['in_flight'][0]['session']}")
    assert complete(second, model)["integrated"] == 2
    assert any("Earlier work is in it" in job.prompt for job in second.jobs.values())


def test_what_a_model_can_find(linked: Linked, tmp_path: Path) -> None:
    world = make_world(tmp_path / "project", ONE)

    def session(exchange: Exchange) -> Reply:
        if exchange.messages[-1]["role"] == "tool":
            return text_of(exchange.messages[-1])
        return [Call("bash", {"command": "echo id=$DSH_SESSION_ID", "description": "Show the session"})]

    home = linked("headless")
    with Model(Script(session=session)) as model:
        done = home.headless(model.url, "who are you", world.root)
    assert done.returncode == 0, done.stderr
    assert f"id={model.asked[0].session}" in done.stdout
    shown = "".join(text_of(message) for message in model.asked[0].messages)
    assert "baton" in shown, "the catalogue of skills names it"
    ours = {name.removeprefix("mcp__baton__") for name in model.asked[0].tools if name.startswith("mcp__baton__")}
    assert ours == {"actions", "bind_agent", "reconcile", "status"}
