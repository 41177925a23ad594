"""`baton pause`."""

from __future__ import annotations

from typing import Annotated

import typer

from baton_cli import cli, output


def pause(
    change: Annotated[str, typer.Argument(help="The change's folder name.")],
    why: cli.WhyOption = None,
    project: cli.ProjectOption = None,
    json: cli.JsonOption = False,
) -> None:
    """Hand nothing out any more. Running work goes on, is settled and integrated."""
    with cli.operator(project) as person:
        answer = person.pause(change, why)
    output.emit(answer, json_mode=json, text=f"paused: {output.escape(answer['change'])}")
