"""`baton land`."""

from __future__ import annotations

from typing import Annotated

import typer

from baton_cli import cli, output


def land(
    change: cli.ChangeArgument = None,
    into: Annotated[
        str | None, typer.Option("--into", metavar="BRANCH", help="By default the branch the change started from.")
    ] = None,
    project: cli.ProjectOption = None,
    json: cli.JsonOption = False,
) -> None:
    """Bring a finished change to the branch it started from. If that has moved, both are merged and checked first.
    A checkout of that branch follows; what is not committed in it stays as it is, or nothing is done."""
    with cli.finisher(project, json_mode=json) as finishes:
        answer = finishes.land(cli.which_change(finishes.context.project, change), into)

    def text() -> str:
        from baton_cli.views.text_end import land_text

        return land_text(answer)

    output.emit(answer, json_mode=json, text=text)
