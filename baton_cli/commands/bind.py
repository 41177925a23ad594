"""`baton bind`."""

from __future__ import annotations

from typing import Annotated

import typer

from baton_cli import cli, output


def bind(
    assignment: Annotated[str, typer.Argument(help="The assignment_id of the action.")],
    token: cli.TokenOption,
    agent: Annotated[str, typer.Option("--agent", metavar="A", help="The id that the harness gave the subagent.")],
    project: cli.ProjectOption = None,
    json: cli.JsonOption = False,
) -> None:
    """Record which agent works on an assignment, and renew its lease."""
    with cli.controller(project, assignment=assignment, json_mode=json) as controls:
        answer = controls.bind(assignment, cli.token(token), agent)
    output.emit(answer, json_mode=json, text=f"bound {answer['ticket']} to {output.escape(agent)}")
