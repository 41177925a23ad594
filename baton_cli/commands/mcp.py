"""`baton mcp`."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import signal
import sys
from json import dumps, loads
from pathlib import Path
from typing import Any

from baton_cli import __version__, cli, output
from baton_cli.errors import REFUSED, BatonError


class Lines(io.BufferedReader):
    """Standard input. A line with half a surrogate pair (a cut emoji) is mended: the SDK would never answer it."""

    def read1(self, _size: int = -1, /) -> bytes:
        """One line, or nothing at the end."""
        line = self.readline()
        if b"\\ud" in line.lower():
            with contextlib.suppress(ValueError, RecursionError):
                return dumps(loads(line), ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        return line


def mcp(json: cli.JsonOption = False) -> None:
    """Serve MCP clients on standard input and output until they leave: the tools actions, bind_agent, reconcile, status."""
    adapters = Path(__file__).parents[2] / "adapters"  # in a checkout; installed, baton_mcp stands beside baton_cli
    sys.path[:0] = [str(adapters)] if (adapters / "baton_mcp").is_dir() else []
    try:
        server = importlib.import_module("baton_mcp.server")
    except ImportError as error:
        hint = "start it with the launcher ./baton, or: pip install 'dsh-openspec-baton[mcp]'"
        raise BatonError("mcp_missing", f"the MCP SDK (package mcp, 2.x) is not installed: {error}", hint) from error
    if output.is_terminal(sys.stdin):
        cli.progress(json)("waiting for an MCP client on standard input; Ctrl-D ends it")
    sys.stdin = io.TextIOWrapper(Lines(io.FileIO(os.dup(0))))
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # at once: an orderly end would wait for one more line
    _serve(server.BatonServer("baton", version=__version__, log_level="WARNING"))


def _serve(server: Any) -> None:
    import asyncio

    async def until_closed() -> None:
        code = REFUSED
        try:
            await server.run_stdio_async()
            code = 0
        except Exception as error:
            output.write(f"error: the MCP connection broke: {output.escape(repr(error))}\n", sys.stderr)
        finally:
            os._exit(code)  # an ordinary end closes asyncio's transports, and that kills children still at work

    asyncio.run(until_closed())
