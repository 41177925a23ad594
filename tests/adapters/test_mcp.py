"""The MCP server over real standard input and output, with the official client."""

from __future__ import annotations

import asyncio
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from baton_cli.core.actions import ANSWER_LIMIT
from baton_cli.views.brief import brief
from tests.conftest import ROOT, run_git
from tests.kit import World, baton, baton_json, hand_outs, make_world, seal_command

sdk = pytest.mark.skipif(
    not __import__("importlib.util").util.find_spec("mcp"),
    reason="the MCP SDK is not installed: pip install 'mcp>=2,<3'",
)
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="named pipes and shell scripts")

LONG = "## 1. Wall\n\n" + "".join(f"- [ ] 1.{n} {'Lay a stone of the long wall, ' * 40}\n" for n in range(1, 7))
SHORT = "## 1. Wall\n\n" + "".join(f"- [ ] 1.{n} Lay a stone\n" for n in range(1, 7))


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(test, 240))


def held(action: dict[str, Any]) -> dict[str, Any]:
    return {name: action[name] for name in ("assignment_id", "claim_token")}


def answered(tool: str, **arguments: Any) -> tuple[bool, Any]:
    """A call of the server's function in this process."""
    from adapters.baton_mcp.server import BatonServer

    result = asyncio.run(BatonServer("baton").call_tool(tool, arguments))
    return bool(result.is_error), json.loads(result.content[0].text)  # type: ignore[union-attr]


@sdk
def test_the_tools_say_what_comes_next_and_promise_no_structure() -> None:
    from adapters.baton_mcp.server import BatonServer

    tools = {tool.name: tool for tool in asyncio.run(BatonServer("baton").list_tools())}
    assert {name: tool.input_schema["required"] for name, tool in tools.items()} == {
        "actions": ["project_path", "feature", "session_id"],
        "bind_agent": ["assignment_id", "claim_token", "agent_id"],
        "reconcile": ["assignment_id", "claim_token", "agent_terminal"],
        "status": ["project_path"],
    }
    assert {name: [*tool.input_schema["properties"]][3:] for name, tool in tools.items()} == {
        "actions": ["capacity"],
        "bind_agent": ["project_path"],
        "reconcile": ["agent_id", "note", "project_path"],
        "status": [],
    }
    for tool in tools.values():
        assert tool.output_schema is None
        assert "Next:" in (tool.description or "")
        assert all(rule["description"] for rule in tool.input_schema["properties"].values())
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint is (tool.name == "status")


@sdk
@pytest.mark.parametrize(
    ("tool", "changed", "said"),
    [
        ("actions", {"project_path": None}, "project_path is missing"),
        ("actions", {"feature": " \n"}, "feature is empty"),
        ("actions", {"feature": 7}, "feature must be a string"),
        ("actions", {"session_id": ["new"]}, "session_id must be a string"),
        ("actions", {"capacity": 0}, "capacity must be a whole number from 1 to 5"),
        ("actions", {"capacity": 6}, "capacity must be a whole number from 1 to 5"),
        ("actions", {"capacity": True}, "capacity must be a whole number from 1 to 5"),
        ("actions", {"capacity": "5"}, "capacity must be a whole number from 1 to 5"),
        ("actions", {"capacity": 10**400}, "capacity must be a whole number from 1 to 5"),
        ("actions", {"take_over": "s1"}, "take_over is no argument"),
        ("actions", {"feature": "a\0b"}, "feature holds a NUL"),
        ("actions", {"project_path": "/" * 4001}, "project_path holds a NUL or more than 4000"),
        ("bind_agent", {"agent_id": ""}, "agent_id is empty"),
        ("bind_agent", {"claim_token": {}}, "claim_token must be a string"),
        ("reconcile", {"agent_terminal": "done"}, "agent_terminal must be one of completed, failed, stopped"),
        ("reconcile", {"agent_terminal": None}, "agent_terminal is missing"),
        ("reconcile", {"note": 1}, "note must be a string"),
        ("reconcile", {"project_path": ""}, "project_path is empty"),
        ("status", {"project_path": False}, "project_path must be a string"),
        ("stop", {}, "there is no tool 'stop'"),
    ],
)
def test_an_argument_that_cannot_be_right_is_named(tool: str, changed: dict[str, Any], said: str) -> None:
    right: dict[str, Any] = {
        "actions": {"project_path": "/p", "feature": "grow", "session_id": "s1"},
        "bind_agent": {"assignment_id": "a", "claim_token": "secret", "agent_id": "c"},
        "reconcile": {"assignment_id": "a", "claim_token": "secret", "agent_terminal": "lost"},
        "status": {"project_path": "/p"},
    }.get(tool, {})
    refused, answer = answered(tool, **{**right, **changed})
    assert refused
    assert answer["schema"] == "baton.error/1"
    assert answer["error"]["code"] == ("unknown_tool" if tool == "stop" else "bad_argument")
    assert answer["error"]["message"].startswith(said)
    assert answer["error"]["hint"]
    assert "secret" not in json.dumps(answer)


@sdk
def test_no_value_is_taken_for_an_option_and_no_token_for_an_argument(monkeypatch: pytest.MonkeyPatch) -> None:
    from adapters.baton_mcp import server

    seen: list[Any] = []

    async def record(words: list[str], token: str) -> Any:
        seen.append((words, token))
        return server.refused("seen", "", "")

    monkeypatch.setattr(server, "run", record)
    answered("actions", project_path="-p", feature="--help", session_id="--json", capacity=3)
    answered("status", project_path="-p", feature=None)
    answered("bind_agent", assignment_id="-i", claim_token="--t", agent_id="--a", project_path=None)
    answered("reconcile", assignment_id="-i", claim_token="t", agent_terminal="lost", note="--n\0" + "x" * 9000)
    assert seen[0] == (["actions", "--project=-p", "--session=--json", "--capacity=3", "--json", "--", "--help"], "")
    assert seen[1] == (["status", "--project=-p", "--json", "--"], "")
    assert seen[2] == (["bind", "--agent=--a", "--token=-", "--json", "--", "-i"], "--t")
    assert seen[3][0][:2] == ["reconcile", "--terminal=lost"]
    assert len(seen[3][0][2]) == len("--note=") + 4000


@sdk
def test_a_child_that_gives_no_answer_is_an_error_that_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from adapters.baton_mcp import server

    monkeypatch.setattr(server, "PYTHON", (sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"))
    refused, answer = answered("status", project_path="/p")
    assert (refused, answer["error"]["code"]) == (True, "child_failed")
    assert "status ended with -9" in answer["error"]["message"]
    monkeypatch.setattr(server, "PYTHON", (str(tmp_path / "nothing"),))
    refused, answer = answered("status", project_path="/p")
    assert (refused, answer["error"]["code"]) == (True, "child_failed")


@sdk
def test_a_change_to_complete_with_the_same_text_as_the_command_line(tmp_path: Path) -> None:
    from tests.adapters.kit import ask, call, connected, printed, said, seal

    world = make_world(tmp_path / "project")
    project = {"project_path": str(world.root), "feature": "grow"}

    async def story() -> None:
        async with connected() as client:
            assert next(tool.name for tool in (await client.list_tools()).tools) == "actions"
            answer = await call(client, "actions", **project, session_id="new")
            session = answer["session"]
            # the batch is unacknowledged, so both ways of asking give it again, word by word
            again = await said(client, "actions", **project, session_id=session)
            assert again == (False, printed(world.root, "actions", "grow", "--session", session))
            assert json.loads(again[1])["actions"] == answer["actions"]
            await refusals(client, answer["actions"][0])
            while hand_outs(answer):
                for action in hand_outs(answer):
                    await call(client, "bind_agent", **held(action), agent_id=f"child-{action['assignment_id']}")
                    world.work(action)
                    seal(action)
                    settled = await call(client, "reconcile", **held(action), agent_terminal="completed", note="done\0")
                    assert settled["state"] == "integrated"
                    _, text = await said(client, "reconcile", **held(action), agent_terminal="completed")
                    words = ["reconcile", action["assignment_id"], "--token", "-", "--terminal", "completed"]
                    assert text == printed(world.root, *words, input=action["claim_token"] + "\n")
                answer = await call(client, "actions", **project, session_id=session, capacity=2)
            assert answer["state"] == "complete"
            assert answer["progress"]["integrated"] == 3
            assert await said(client, "status", **project) == (False, printed(world.root, "status", "grow"))

    async def refusals(client: Any, action: dict[str, Any]) -> None:
        stale = {"assignment_id": action["assignment_id"], "claim_token": "stale", "agent_id": "child"}
        words = ["bind", action["assignment_id"], "--token", "-", "--agent", "child"]
        assert await said(client, "bind_agent", **stale) == (True, printed(world.root, *words, input="stale\n"))
        for tool, arguments, code in (
            ("bind_agent", stale, "stale_claim"),
            ("actions", {**project, "feature": "none", "session_id": "new"}, "no_such_change"),
            ("status", {"project_path": str(tmp_path / "nowhere")}, "no_such_folder"),
            ("reconcile", {**held(action), "assignment_id": "x", "agent_terminal": "lost"}, "unknown_assignment"),
            ("actions", {**project, "session_id": ""}, "bad_argument"),
        ):
            refused, answer = await ask(client, tool, **arguments)
            assert (refused, answer["error"]["code"]) == (True, code)
            assert answer["error"]["message"]
            assert answer["error"]["hint"]

    run(story())


@sdk
def test_five_hand_outs_stay_below_the_limit_and_name_the_launcher(tmp_path: Path) -> None:
    from tests.adapters.kit import connected, said

    launcher = str(ROOT / "baton")
    short = make_world(tmp_path / "short", SHORT)
    long = make_world(tmp_path / ("a-project-in-a-folder-whose-name-goes-on-and-on-" * 2), LONG)

    async def story() -> None:
        async with connected({"BATON_LAUNCHER": launcher}) as client:
            for world, fewest in ((short, 5), (long, 3)):
                _, text = await said(
                    client, "actions", project_path=str(world.root), feature="grow", session_id="s1", capacity=5
                )
                actions = hand_outs(json.loads(text))
                assert len(text) < ANSWER_LIMIT
                assert len(actions) >= fewest
                assert {seal_command(action)[0] for action in actions} == {launcher}

    run(story())


@sdk
def test_a_large_status_is_shortened(tmp_path: Path) -> None:
    many = "".join(
        f"## {n}. Part\n\n- [x] {n}.1 Done\n- [ ] {n}.2 {'To do ' * 20}\n- [ ] {n}.3 More\n" for n in range(1, 60)
    )
    world = make_world(tmp_path / "project", many)
    refused, answer = answered("status", project_path=str(world.root))
    assert not refused
    assert len(json.dumps(answer)) < ANSWER_LIMIT
    change = answer["changes"][0]
    assert change["progress"] == baton_json(world.root, "status")["changes"][0]["progress"]
    assert "baton status CHANGE --json" in answer["left_out"]


def test_what_nobody_waits_for_goes_first() -> None:
    def ticket(status: str) -> dict[str, Any]:
        return {"key": "k", "status": status, "title": "t" * 50, "reason": None, "flags": []}

    def answer(*statuses: str) -> dict[str, Any]:
        section = {"number": "1", "title": "S", "tickets": [ticket(status) for status in statuses]}
        return {"changes": [{"change": "c", "progress": {"total": 0}, "sections": [section]}]}

    broken = {"change": "b", "error": {"code": "plan_cycle", "message": "m", "hint": "h"}}
    some = answer(*["integrated"] * 200)
    some["changes"].append(broken)
    assert json.loads(brief(some))["changes"][1] == broken
    small = answer("integrated", "waiting")
    assert json.loads(brief(small)) == small
    middle = json.loads(brief(answer(*["integrated"] * 90, "waiting", "blocked")))["changes"][0]["sections"][0]
    assert middle["counted"] == {"integrated": 90}
    assert [item["status"] for item in middle["tickets"]] == ["waiting", "blocked"]
    large = json.loads(brief(answer(*["skipped"] * 90, *["waiting"] * 90, "in_flight")))["changes"][0]
    assert large["sections"][0]["counted"] == {"skipped": 90, "waiting": 90}
    assert [item["status"] for item in large["sections"][0]["tickets"]] == ["in_flight"]
    assert large["progress"] == {"total": 0}
    huge = brief({"changes": [answer(*["blocked"] * 500)["changes"][0]] * 500})
    assert len(huge) < ANSWER_LIMIT
    assert "and 499 more" in huge or "more" in json.loads(huge)["changes"][-1]
    assert (
        len(brief({"schema": "baton.error/1", "error": {"code": "c", "message": "\x07" * 9000, "hint": "h"}}))
        < ANSWER_LIMIT
    )


@sdk
def test_a_blocked_git_holds_up_its_own_call_only(tmp_path: Path, fifo: Callable[[str], Path]) -> None:
    from tests.adapters.kit import Gate, call, connected

    slow, quick = make_world(tmp_path / "slow"), make_world(tmp_path / "quick")
    gate = Gate(tmp_path, fifo)

    async def story() -> None:
        async with connected(gate.env) as client:
            gate.arm()
            asked = {"project_path": str(slow.root), "feature": "grow", "session_id": "s1"}
            blocked = asyncio.create_task(call(client, "actions", **asked))
            await asyncio.to_thread(gate.wait)
            others = await asyncio.gather(
                call(client, "actions", project_path=str(quick.root), feature="grow", session_id="s2"),
                call(client, "status", project_path=str(quick.root)),
                call(client, "status", project_path=str(slow.root)),
            )
            assert len(hand_outs(others[0])) == 2
            assert not blocked.done()
            await asyncio.to_thread(gate.open)
            assert len(hand_outs(await blocked)) == 2

    run(story())


def sealed(world: World) -> dict[str, Any]:
    """An assignment that only has to be reconciled."""
    from tests.adapters.kit import seal

    action: dict[str, Any] = hand_outs(baton_json(world.root, "actions", "grow", "--session", "s1"))[0]
    world.work(action)
    seal(action)
    return action


def merges(world: World) -> str:
    return run_git(world.root, "rev-list", "--count", "--merges", "--first-parent", world.integration)


@sdk
@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="cannot wait for a process that is not a child here")
@pytest.mark.parametrize("way", ["leaves", "is killed with the server"])
def test_a_client_that_disappears_leaves_the_child_at_work(
    tmp_path: Path, fifo: Callable[[str], Path], way: str
) -> None:
    from tests.adapters.kit import Gate, ended, lines

    world = make_world(tmp_path / "slow")
    action = sealed(world)
    gate = Gate(tmp_path, fifo)
    with lines(gate.env) as client:
        gate.arm()
        client.tool(1, "reconcile", {**held(action), "agent_terminal": "completed"})
        child = gate.wait()
        assert os.getsid(child) == child
        if Path(f"/proc/{child}/cmdline").exists():
            assert action["claim_token"].encode() not in Path(f"/proc/{child}/cmdline").read_bytes()
        wait = ended(child)
        if way == "leaves":
            client.leave()
        else:
            client.process.kill()
        client.process.wait(60)
    gate.open()
    wait()
    assert world.ticket(action["ticket"])["status"] == "integrated"
    refused, again = answered("reconcile", **held(action), agent_terminal="completed")
    assert (refused, again["state"]) == (False, "integrated")
    assert merges(world) == "1"


@sdk
@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="cannot wait for a process that is not a child here")
def test_a_cancelled_call_goes_on_and_the_server_too(tmp_path: Path, fifo: Callable[[str], Path]) -> None:
    from tests.adapters.kit import Gate, ended, lines

    world = make_world(tmp_path / "slow")
    action = sealed(world)
    gate = Gate(tmp_path, fifo)
    with lines(gate.env) as client:
        gate.arm()
        asked = {**held(action), "agent_terminal": "completed"}
        client.tool(1, "reconcile", asked)
        wait = ended(gate.wait())
        client.notify("notifications/cancelled", {"requestId": 1, "reason": "it takes too long"})
        client.request(2, "ping")
        assert client.answer(2)["result"] == {}
        gate.open()
        wait()
        assert world.ticket(action["ticket"])["status"] == "integrated"
        client.tool(3, "reconcile", asked)
        assert client.text(3)["state"] == "integrated"
    assert merges(world) == "1"


@sdk
def test_what_is_no_protocol_ends_nothing(tmp_path: Path) -> None:
    from tests.adapters.kit import lines

    world = make_world(tmp_path / "project")
    with lines() as client:
        for line in (
            b"", b"hello", b"\xff\xfe\x00", b"[]", b"{}", b"null", b'{"jsonrpc":"2.0","id":1}', b'{"jsonrpc":"1.0"}',
            b'{"jsonrpc":"2.0","id":2,"method":5}', b"[" * 100_000, b'{"a":' * 100_000, b'{"\\ud800":' * 100_000,
            b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77}}',
        ):  # fmt: skip
            client.send(line)
        client.request(3, "tools/stop")
        assert client.answer(3)["error"]["code"] == -32601
        client.request(4, "tools/call", {"name": "actions", "arguments": [1]})
        assert "error" in client.answer(4)
        client.tool(5, "rm", {})
        assert client.text(5)["error"]["code"] == "unknown_tool"
        client.tool(6, "status", {"project_path": "x" * 5_000_000})
        assert client.text(6)["error"]["code"] == "bad_argument"
        note = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"reconcile","arguments":{"assignment_id":"x",'
        client.send(note + b'"claim_token":"t","agent_terminal":"lost","note":"cut \\uD83D"}}}')
        assert client.text(7)["error"]["code"] == "unknown_assignment"
        client.tool(8, "status", {"project_path": str(world.root), "feature": "\ud83d\ude00"})
        assert client.text(8)["error"]["code"] == "no_such_change"
        client.tool(9, "status", {"project_path": str(world.root)})
        assert client.text(9) == baton_json(world.root, "status")


def test_only_half_a_character_is_mended() -> None:
    from baton_cli.commands.mcp import Lines

    whole = [b'{"a":"\\ud83d\\ude00"}\n', b'{"a":"\\\\ud800"}\n', b"not json \\ud800\n", "é\n".encode(), b"\n"]
    reader = Lines(io.BytesIO(b"".join(whole) + b'{"a":"\\ud800"}\n{"b":1}'))  # type: ignore[arg-type]
    assert json.loads(reader.read1()) == {"a": "\U0001f600"}
    assert json.loads(reader.read1()) == {"a": "\\ud800"}
    assert [reader.read1() for _ in range(3)] == whole[2:]
    assert [reader.read1() for _ in range(3)] == [b'{"a": "?"}\n', b'{"b":1}', b""]


@pytest.mark.parametrize("words", [["mcp"], ["mcp", "--json"]])
def test_without_the_sdk_it_says_what_to_do(words: list[str]) -> None:
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); sys.modules['mcp'] = None\n"
    code += f"from baton_cli.main import run; sys.exit(run({words!r}))"
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 1
    if "--json" in words:
        assert json.loads(done.stdout)["error"]["code"] == "mcp_missing"
        return
    assert done.stdout == ""
    assert done.stderr.startswith("error: the MCP SDK (package mcp, 2.x) is not installed: ")
    assert "hint: start it with the launcher ./baton, or: pip install" in done.stderr
    assert done.stderr.count("\n") == 2


def test_its_help_needs_no_sdk(tmp_path: Path) -> None:
    assert baton(tmp_path, "mcp", "-h").stdout.startswith("Usage: baton mcp")
