"""`baton packet export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from baton_cli import cli, output

app = typer.Typer(help="Task packets outside the project.", no_args_is_help=True)


@app.callback()
def _packet() -> None:
    """Task packets outside the project."""


@app.command()
def export(
    assignment: Annotated[str, typer.Argument(help="The assignment_id.")],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The file to write; it must not exist yet.")],
    project: cli.ProjectOption = None,
    json: cli.JsonOption = False,
) -> None:
    """Write the packet, for `baton seal --packet FILE` where the work is checked out."""
    with cli.operator(project, assignment=assignment) as person:
        answer = person.export_packet(assignment, out)
    output.emit(answer, json_mode=json, text=f"the packet of {answer['ticket']} is in {output.escape(str(out))}")
