"""`baton status`."""

from __future__ import annotations

from typing import Annotated

import typer

from baton_cli import cli, output


def status(
    change: Annotated[str | None, typer.Argument(help="Only this change.")] = None,
    project: cli.ProjectOption = None,
    json: cli.JsonOption = False,
) -> None:
    """Show where each change stands: what needs a person, what runs, what waits for what."""
    with cli.observer(project) as looks:
        answer = looks.status(change)

    def text() -> str:
        from baton_cli.views.queue import queue_view

        return queue_view(answer, now=looks.context.now(), colour=output.colour())

    output.emit(answer, json_mode=json, text=text)
