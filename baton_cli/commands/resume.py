"""`baton resume`."""

from __future__ import annotations

from typing import Annotated

import typer

from baton_cli import cli, output


def resume(
    change: Annotated[str, typer.Argument(help="The change's folder name.")],
    project: cli.ProjectOption = None,
    json: cli.JsonOption = False,
) -> None:
    """Hand tickets out again after a pause."""
    with cli.operator(project) as person:
        answer = person.resume(change)
    output.emit(answer, json_mode=json, text=f"resumed: {output.escape(answer['change'])}")
