"""`baton actions`."""

from __future__ import annotations

from typing import Annotated

import typer

from baton_cli import cli, output


def actions(
    session: Annotated[str, typer.Option("--session", metavar="S", help="`new`, then the id each answer repeats.")],
    change: cli.ChangeArgument = None,
    capacity: Annotated[int, typer.Option("--capacity", metavar="N", help="Most tickets to hold at once, 1 to 5.")] = 5,
    take_over: Annotated[
        str | None,
        typer.Option("--take-over", metavar="SESSION", help="Hand out what that session had claimed (operators)."),
    ] = None,
    project: cli.ProjectOption = None,
    json: cli.JsonOption = False,
) -> None:
    """Say what the session has to do next: settle what has ended, integrate what is sealed, claim what is ready."""
    with cli.controller(project, json_mode=json) as controls:
        named = cli.which_change(controls.context.project, change)
        answer = controls.actions(named, session, capacity, take_over)

    def text() -> str:
        from baton_cli.views.text import actions_text

        return actions_text(answer)

    output.emit(answer, json_mode=json, text=text)
