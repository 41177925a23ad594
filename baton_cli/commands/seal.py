"""`baton seal`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from baton_cli import cli, output
from baton_cli.core.receipt import Authority
from baton_cli.errors import USAGE, BatonError


def seal(
    assignment: Annotated[
        str | None,
        typer.Argument(help="The assignment; inside its worktree it is found from there."),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option("--key", metavar="K", help="The seal key of the prompt; - reads it from standard input."),
    ] = None,
    operator: Annotated[bool, typer.Option("--operator", help="Seal as a person, without the key.")] = False,
    why: Annotated[str | None, typer.Option("--why", metavar="W", help="An operator's reason.")] = None,
    project: cli.ProjectOption = None,
    json: cli.JsonOption = False,
) -> None:
    """Run the assignment's checks at its committed head and write the receipt. Only this counts as success."""
    if operator == (key is not None):
        raise BatonError("usage", "seal needs either --key or --operator", "copy the seal command of the prompt", USAGE)
    if operator and not (why and why.strip()):
        raise BatonError("no_reason", "an operator's seal needs a reason", "add --why 'the reason'", USAGE)
    with cli.controller(project, assignment=assignment, json_mode=json) as controls:
        named = assignment or controls.assignment_at(Path.cwd())
        authority = Authority("operator", why=why) if operator else Authority("key", key=cli.token(key or ""))
        answer = controls.seal(named, authority)
    output.emit(answer, json_mode=json, text=f"sealed {answer['ticket']} at {str(answer['head'])[:12]}")
