"""`baton reconcile`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from baton_cli import cli, output
from baton_cli.core.lifecycle import Terminal


def reconcile(
    assignment: Annotated[str, typer.Argument(help="The assignment_id of the action.")],
    token: cli.TokenOption,
    terminal: Annotated[Terminal, typer.Option("--terminal", help="How the agent ended, as its harness says.")],
    agent: Annotated[str | None, typer.Option("--agent", metavar="A", help="The agent that ended.")] = None,
    note: Annotated[str | None, typer.Option("--note", metavar="N", help="Its last words; kept, never read.")] = None,
    receipt: Annotated[
        Path | None, typer.Option("--receipt", metavar="FILE", help="A receipt sealed on another machine.")
    ] = None,
    project: cli.ProjectOption = None,
    json: cli.JsonOption = False,
) -> None:
    """Settle an attempt after its agent has ended: integrate it if it is sealed, else keep it for recovery."""
    with cli.controller(project, assignment=assignment, json_mode=json) as controls:
        answer = controls.reconcile(assignment, cli.token(token), terminal, agent, note, receipt)

    def text() -> str:
        from baton_cli.views.text import settled_text

        return settled_text(answer)

    output.emit(answer, json_mode=json, text=text)
