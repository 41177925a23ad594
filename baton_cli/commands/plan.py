"""`baton plan`."""

from __future__ import annotations

from typing import Annotated

import typer

from baton_cli import cli, output
from baton_cli.errors import USAGE, BatonError


def plan(
    change: Annotated[str | None, typer.Argument(help="The change's folder name.")] = None,
    every: Annotated[bool, typer.Option("--all", help="All changes of the project.")] = False,
    project: cli.ProjectOption = None,
    json: cli.JsonOption = False,
) -> None:
    """Show a change as tickets: what they wait for, what proves them, and what is odd about them."""
    if every == (change is not None):
        raise BatonError("usage", "plan needs a CHANGE or --all", "see `baton plan --help`", USAGE)
    with cli.observer(project) as looks:
        answer = looks.plan(change) if change is not None else looks.plans()

    def text() -> str:
        from baton_cli.views.text import plan_text

        return "\n".join(plan_text(value) for value in (answer if isinstance(answer, list) else [answer]))

    output.emit(answer, json_mode=json, text=text)
