"""`init`: what the project's own files say about checking and setting it up, written where the user can change it."""

from __future__ import annotations

import json
from typing import Any

from baton_cli.context import Context
from baton_cli.core.detect import Detected
from baton_cli.flow.parts.detection import detected, to_ignore

HEAD = """\
# How Baton checks and sets up this project. Every key is optional; an unknown one is an error.

"""


def init(context: Context) -> dict[str, Any]:
    """Write baton.toml with what is detected. One that is there already stays as it is."""
    path = context.project.root / "baton.toml"
    found = detected(context.project.root)
    written = False
    try:
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text_of(found))
        written = True
    except FileExistsError:
        pass
    return {
        "schema": "baton.init/1",
        "project": str(context.project.root),
        "config": str(path),
        "written": written,
        "commands": list(found.commands),
        "setup": list(found.setup),
        "why": list(found.why),
        "ignore": [item._asdict() for item in to_ignore(context.project.root)],
    }


def text_of(found: Detected) -> str:
    """The file: TOML strings are written as JSON strings, which TOML reads the same."""
    commands = ", ".join(json.dumps(command, ensure_ascii=False) for command in found.commands)
    setup = ", ".join(json.dumps(command, ensure_ascii=False) for command in found.setup)
    lines = [*(f"# {reason}" for reason in found.why), "[verify]"]
    lines.append(f"commands = [{commands}]" if commands else '# commands = ["make test"]')
    lines += ["", "[worktree]", f"setup = [{setup}]" if setup else '# setup = ["npm ci"]']
    return HEAD + "\n".join(lines) + "\n"
