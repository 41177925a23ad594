"""`baton log`."""

from __future__ import annotations

from typing import Annotated

import typer

from baton_cli import cli, output


def log(
    change: Annotated[str | None, typer.Argument(help="Only this change.")] = None,
    project: cli.ProjectOption = None,
    json: cli.JsonOption = False,
) -> None:
    """Show what happened, event by event, oldest first. Nothing is ever taken out of it."""
    with cli.observer(project) as looks:
        answer = looks.log(change)

    def text() -> str:
        from baton_cli.views.text import log_text

        return log_text(answer)

    output.emit(answer, json_mode=json, text=text)
