"""The MCP server: how soon it answers, and what a call costs beside the same command."""

from __future__ import annotations

import json
import statistics
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.measure import Cost, Row, at_most, child, ended, in_turns, milliseconds, ratio
from bench.scene import BATON, PYTHON, Settings, project, tasks_text

HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}


class Server:
    """A server and its two pipes."""

    def __init__(self, root: Path) -> None:
        self.process = subprocess.Popen(
            [*BATON, "mcp"], cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.number = 0

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """A request and its answer."""
        assert self.process.stdout is not None
        self.number += 1
        self.tell({"id": self.number, "method": method, "params": params})
        answer: dict[str, Any] = {}
        while answer.get("id") != self.number:
            line = self.process.stdout.readline()
            if not line:
                raise RuntimeError("the MCP server ended")
            answer = json.loads(line)
        if "error" in answer or answer["result"].get("isError"):
            raise RuntimeError(f"{method}: {answer}")
        return answer

    def tell(self, message: dict[str, Any]) -> None:
        """A message without an answer."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def end(self) -> Cost:
        """Close its input and wait; CPU time and memory of its whole life."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.read()
        self.process.stdout.close()
        return ended(self.process)


@contextmanager
def connected(root: Path) -> Iterator[Server]:
    """A server that has been greeted."""
    server = Server(root)
    try:
        server.ask("initialize", HELLO)
        server.tell({"method": "notifications/initialized"})
        yield server
    finally:
        server.end()


def spawn(root: Path) -> Cost:
    """From starting the server to its first answer; CPU time of its whole life."""
    begun = time.perf_counter()
    server = Server(root)
    server.ask("initialize", HELLO)
    wall = time.perf_counter() - begun
    return server.end()._replace(wall=wall)


def mcp(settings: Settings) -> Iterator[Row]:
    """Spawn and first answer against importing the SDK; a call against the command."""
    root = project(settings.place("mcp"), {"grow": tasks_text(100)})
    importing = (*PYTHON, "-c", "import mcp.server.mcpserver")
    taken = in_turns({"server": lambda: spawn(root), "sdk": lambda: child(importing, root)}, settings.rounds(9))
    wall, cpu = ratio(taken["server"], taken["sdk"])
    note = f"{milliseconds(taken['server'])} against {milliseconds(taken['sdk'])}"
    yield at_most(Row("mcp", "spawn to first answer / importing the SDK", wall, "x", cpu=cpu, note=note), 1.5)
    memory, floor = (statistics.median(cost.memory for cost in taken[name]) for name in ("server", "sdk"))
    yield Row("mcp", "the same, peak memory", memory / floor, "x", note=f"{memory / 2**20:.0f} MiB")
    with connected(root) as server:

        def ask() -> Cost:
            begun = time.perf_counter()
            server.ask("tools/call", {"name": "status", "arguments": {"project_path": str(root)}})
            return Cost(time.perf_counter() - begun, 0.0)

        command = (*BATON, "status", "--project", str(root), "--json")
        taken = in_turns({"call": ask, "command": lambda: child(command, root)}, settings.rounds(15))
    wall, _ = ratio(taken["call"], taken["command"])
    note = f"{milliseconds(taken['call'])} against {milliseconds(taken['command'])}"
    yield at_most(Row("mcp", "a status call / the command", wall, "x", note=note), 2)
