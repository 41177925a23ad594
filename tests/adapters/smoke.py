"""The MCP server, live: list its tools, carry a small change to complete, compare with the command line. One line."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path


async def live(root: Path) -> str:
    from tests.adapters.kit import call, connected, printed, said, seal
    from tests.kit import hand_outs, make_world

    world = make_world(root / "project")
    project = {"project_path": str(world.root)}
    calls = 0
    async with connected() as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        assert tools == ["actions", "bind_agent", "reconcile", "status"], tools
        session = "new"
        while True:
            answer = await call(client, "actions", **project, feature=world.change, session_id=session)
            calls += 1
            session = answer["session"]
            if answer["state"] == "complete":
                break
            assert hand_outs(answer), answer
            for action in hand_outs(answer):
                held = {name: action[name] for name in ("assignment_id", "claim_token")}
                await call(client, "bind_agent", **held, agent_id=f"child-{action['assignment_id']}")
                world.work(action)
                seal(action)
                settled = await call(client, "reconcile", **held, agent_terminal="completed")
                assert settled["state"] == "integrated", settled
                calls += 2
        refused, text = await said(client, "status", **project)
        assert not refused
        assert text == printed(world.root, "status"), "the tool and the command line differ"
    return f"{len(tools)} tools, {answer['progress']['integrated']} tickets to complete in {calls + 1} calls"


def main() -> int:
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        home.mkdir()
        (home / ".gitconfig").write_text("[user]\n\tname = Smoke\n\temail = smoke@example.invalid\n")
        for name in [name for name in os.environ if name.startswith(("GIT_", "BATON_", "XDG_"))]:
            del os.environ[name]
        os.environ["HOME"] = str(home)
        try:
            told = asyncio.run(asyncio.wait_for(live(Path(folder)), 300))
        except Exception as error:
            while hasattr(error, "exceptions"):  # a group, as task groups raise it
                error = error.exceptions[0]
            sys.stdout.write(f"mcp smoke: FAILED: {error!r}\n")
            return 1
    sys.stdout.write(f"mcp smoke: ok: {told}, text as the command line's, {time.monotonic() - begun:.0f} s\n")
    return 0
