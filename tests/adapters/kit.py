"""A server as clients meet it: through the official client, or as bare lines when the client would get in the way."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters

from tests.kit import MAIN, baton, seal_command

SERVER = [sys.executable, "-I", "-X", "utf8", str(MAIN), "mcp"]
HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "lines", "version": "1"},
}


@asynccontextmanager
async def connected(env: Mapping[str, str] | None = None) -> AsyncIterator[Client]:
    """The official client, connected to a server of its own."""
    parameters = StdioServerParameters(command=SERVER[0], args=SERVER[1:], env={**os.environ, **(env or {})})
    async with Client(parameters) as client:
        yield client


async def call(client: Client, tool: str, **arguments: Any) -> Any:
    """The answer of a tool that does not refuse; one text block, nothing structured."""
    refused, answer = await ask(client, tool, **arguments)
    assert not refused, answer
    return answer


async def ask(client: Client, tool: str, **arguments: Any) -> tuple[bool, Any]:
    """Whether it is an error, and the answer."""
    refused, text = await said(client, tool, **arguments)
    return refused, json.loads(text)


async def said(client: Client, tool: str, **arguments: Any) -> tuple[bool, str]:
    result: Any = await client.call_tool(tool, arguments)
    assert result.structured_content is None
    assert [block.type for block in result.content] == ["text"]
    return bool(result.is_error), result.content[0].text


def printed(root: Path, *words: str, input: str | None = None) -> str:
    """What the command line prints for the same question."""
    return baton(root, *words, "--json", input=input).stdout.removesuffix("\n")


def seal(action: Mapping[str, Any]) -> None:
    """Run the seal command of the prompt, as the worker would."""
    done = subprocess.run(seal_command(action), cwd=action["cwd"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


class Lines:
    """A client of bare lines."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process

    def send(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def request(self, number: int, method: str, params: Mapping[str, Any] | None = None) -> None:
        self.send(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}}).encode())

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        self.send(json.dumps({"jsonrpc": "2.0", "method": method, "params": params or {}}).encode())

    def tool(self, number: int, name: str, arguments: Mapping[str, Any]) -> None:
        self.request(number, "tools/call", {"name": name, "arguments": arguments})

    def answer(self, number: int) -> dict[str, Any]:
        """The response to a request. Every line on the way has to be a message of the protocol."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            message: dict[str, Any] = json.loads(line)
            assert message["jsonrpc"] == "2.0"
            if message.get("id") == number:
                return message
        raise AssertionError(f"the server ended with {self.process.wait()} and no answer to {number}")

    def text(self, number: int) -> Any:
        return json.loads(self.answer(number)["result"]["content"][0]["text"])

    def leave(self) -> None:
        """Go, as a client that ends: both pipes are closed."""
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()


@contextmanager
def lines(env: Mapping[str, str] | None = None) -> Iterator[Lines]:
    """A server that has answered initialize."""
    process = subprocess.Popen(SERVER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, **(env or {})})
    client = Lines(process)
    try:
        client.request(0, "initialize", HELLO)
        assert client.answer(0)["result"]["serverInfo"]["name"] == "baton"
        client.notify("notifications/initialized")
        yield client
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None and not pipe.closed:
                pipe.close()


class Gate:
    """A git that stops at its next call in a project named `slow`, and says which process waits for it."""

    def __init__(self, folder: Path, fifo: Callable[[str], Path]) -> None:
        self.started, self.go, self.armed = fifo("started"), fifo("go"), folder / "armed"
        real = shutil.which("git")
        bin = folder / "bin"
        bin.mkdir()
        (bin / "git").write_text(
            f'#!/bin/sh\ncase "$*" in */slow*) if mv "{self.armed}" "{self.armed}.used" 2>/dev/null; then\n'
            f'echo $PPID > "{self.started}"; read -r _ < "{self.go}"; fi;; esac\nexec "{real}" "$@"\n'
        )
        (bin / "git").chmod(0o755)
        self.env = {"PATH": f"{bin}{os.pathsep}{os.environ['PATH']}"}

    def arm(self) -> None:
        self.armed.write_text("")

    def wait(self) -> int:
        """Wait until a git stands at the gate; the process that called it."""
        return int(self.started.read_text())

    def open(self) -> None:
        self.go.write_text("go\n")


def ended(pid: int) -> Callable[[], None]:
    """Take hold of a process that is not a child of ours; the function waits for its end."""
    handle = os.pidfd_open(pid)

    def wait() -> None:
        assert select.select([handle], [], [], 120)[0], f"process {pid} does not end"
        os.close(handle)

    return wait
