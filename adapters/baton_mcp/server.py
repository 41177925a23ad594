"""Baton's tools for MCP clients. A call is one `baton VERB --json` in a process of its own; what it prints is the result.

Nothing here ends a child: a client that gives up, or goes, loses no work, and asking again gives the settled outcome.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.types import CallToolResult, TextContent, Tool, ToolAnnotations

import baton_cli
from baton_cli.core.lifecycle import Terminal
from baton_cli.output import to_json
from baton_cli.views.brief import brief

MAIN = os.path.join(os.path.dirname(os.path.abspath(baton_cli.__file__)), "__main__.py")
PYTHON = (sys.executable, "-I", "-X", "utf8", *(["-B"] if sys.flags.dont_write_bytecode else []), MAIN)
AGAIN = "nothing is lost: ask again"
RUNNING: set[asyncio.Task[CallToolResult]] = set()  # the event loop itself holds tasks but weakly
LONGEST = 4_000  # characters of an argument (Baton keeps so many of a note)
FIELDS: dict[str, tuple[str, str, dict[str, Any]]] = {  # name -> option of the command line, description, schema
    "project_path": ("--project", "Absolute path of the project, the folder that holds openspec/.", {}),
    "feature": ("", "Id of the change: its folder name below openspec/changes/.", {}),
    "session_id": ("--session", '"new" in the first call, then `session` of the last answer, unchanged.', {}),
    "capacity": ("--capacity", "Most tickets at once.", {"type": "integer", "minimum": 1, "maximum": 5, "default": 5}),
    "assignment_id": ("", "Copy it from the action.", {}),
    "claim_token": ("", "Copy it from the same action.", {}),
    "agent_id": ("--agent", "The subagent's id, as in `started subagent <id>`.", {}),
    "agent_terminal": (
        "--terminal",
        "From the notice: finished = completed, failed = failed, was stopped = stopped, ran out of room = max_tokens, "
        "declined = refused, ended abnormally = lost. Never started, or gone: lost.",
        {"enum": [terminal.value for terminal in Terminal]},
    ),
    "note": ("--note", "The closing message; kept, never taken as evidence.", {"minLength": 0}),
}
TOOLS = {  # name -> verb, required arguments, optional ones, description
    "actions": ("actions", "project_path feature session_id", "capacity",
        "Main session only, never a subagent: what to do next for an OpenSpec change. Next: give each action's `prompt`, "
        "word by word, to a subagent of its own, bind_agent each, and do what `next` of the answer says."),
    "bind_agent": ("bind", "assignment_id claim_token agent_id", "project_path",
        "Record which subagent works on an assignment, right after starting it in the background. Next: wait for its "
        "completion notice, without polling, then reconcile."),
    "reconcile": ("reconcile", "assignment_id claim_token agent_terminal", "agent_id note project_path",
        "Settle an assignment once its subagent has ended, however it ended. Next: actions, with the same session_id."),
    "status": ("status", "project_path", "feature",
        "Read only, for the user's questions: where the changes stand, what needs a person. Next: actions goes on."),
}  # fmt: skip


def published(name: str) -> Tool:
    """A tool as clients see it."""
    _, needed, more, text = TOOLS[name]
    fields = {f: {"type": "string", "description": FIELDS[f][1], **FIELDS[f][2]} for f in f"{needed} {more}".split()}
    schema = {"type": "object", "properties": fields, "required": needed.split(), "additionalProperties": False}
    hints = ToolAnnotations(read_only_hint=name == "status", destructive_hint=False, open_world_hint=False)
    return Tool(name=name, description=text, input_schema=schema, annotations=hints)


def wrong(value: Any, rule: dict[str, Any]) -> str:
    """Why an argument cannot be right, or nothing. The value is not repeated: it may be a token."""
    if "maximum" in rule:
        return "" if type(value) is int and 1 <= value <= rule["maximum"] else "must be a whole number from 1 to 5"
    if not isinstance(value, str):
        return "must be a string"
    if value not in rule.get("enum", [value]):
        return f"must be one of {', '.join(rule['enum'])}"
    if not value.strip() and "minLength" not in rule:
        return "is empty"
    if "\0" in value or len(value) > LONGEST:
        return f"holds a NUL or more than {LONGEST} characters"
    return ""


class BatonServer(MCPServer[Any]):
    """Four tools, and nothing else that could decide anything."""

    async def list_tools(self) -> list[Tool]:
        return [published(name) for name in TOOLS]

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> CallToolResult:  # noqa: ARG002
        """The answer of the verb; every refusal is a `baton.error/1` too."""
        if name not in TOOLS:
            return refused("unknown_tool", f"there is no tool {name[:80]!r}", f"there are {', '.join(TOOLS)}")
        given = {field: value for field, value in arguments.items() if value is not None}
        if isinstance(given.get("note"), str):  # somebody else's words: taken as they come
            given["note"] = given["note"].replace("\0", "\ufffd")[:LONGEST]
        schema = published(name).input_schema
        for field in [*schema["required"], *given]:
            rule = schema["properties"].get(field)
            said = "is no argument" if rule is None else wrong(given[field], rule) if field in given else "is missing"
            if said:
                hint = rule["description"] if rule else f"{name} takes {', '.join(schema['properties'])}"
                return refused("bad_argument", f"{field[:80]} {said}", hint)
        options = [f"{FIELDS[field][0]}={value}" for field, value in given.items() if FIELDS[field][0]]
        options += ["--token=-"] * ("claim_token" in given)
        names = [given[field] for field in ("feature", "assignment_id") if field in given]
        child = asyncio.create_task(
            run([TOOLS[name][0], *options, "--json", "--", *names], given.get("claim_token", ""))
        )
        RUNNING.add(child)
        child.add_done_callback(RUNNING.discard)
        return await asyncio.shield(child)  # a call that is cancelled leaves its child at work


async def run(words: list[str], token: str) -> CallToolResult:
    """Run a verb to its end, in a session of its own; the token waits in its standard input before it starts."""
    reading, writing = os.pipe()
    os.write(writing, token.encode(errors="replace") + b"\n")
    os.close(writing)
    try:
        child = await asyncio.create_subprocess_exec(
            *PYTHON, *words, stdin=reading, stdout=asyncio.subprocess.PIPE, start_new_session=True
        )
    except (OSError, ValueError) as error:
        return refused("child_failed", f"baton {words[0]} could not be started: {error}", AGAIN)
    finally:
        os.close(reading)
    printed, _ = await child.communicate()
    try:
        return result(json.loads(printed), child.returncode)
    except ValueError:
        return refused("child_failed", f"baton {words[0]} ended with {child.returncode} and gave no answer", AGAIN)


def result(answer: dict[str, Any], code: int | None) -> CallToolResult:
    text = to_json(answer) if "actions" in answer else brief(answer)
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=code != 0)


def refused(code: str, message: str, hint: str) -> CallToolResult:
    return result({"schema": "baton.error/1", "error": {"code": code, "message": message, "hint": hint}}, 1)
