"""`baton plan`."""

from __future__ import annotations

from typing import Annotated

import typer

from baton_cli import cli, output
from baton_cli.errors import USAGE, BatonError


def plan(
    change: Annotated[str | None, typer.Argument(help="The change's folder name.")] = None,
    every: Annotated[bool, typer.Option("--all", help="All changes of the project.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Also run the checks once, before any work; red is a warning.")
    ] = False,
    project: cli.ProjectOption = None,
    json: cli.JsonOption = False,
) -> None:
    """Show a change as tickets: what they wait for, what proves them, and what is odd about them."""
    if every == (change is not None):
        raise BatonError("usage", "plan needs a CHANGE or --all", "see `baton plan --help`", USAGE)
    with cli.observer(project) as looks:
        answer = looks.plan(change) if change is not None else looks.plans()

    if check and isinstance(answer, dict) and change is not None:
        with cli.operator(project) as person:
            answer["baseline"] = person.baseline(change)
        answer["warnings"] += [
            {"code": "baseline_red", "line": 0, "message": line} for line in answer["baseline"]["red"]
        ]

    def text() -> str:
        from baton_cli.views.text import plan_text

        plans = answer if isinstance(answer, list) else [answer]
        return "\n".join(map(plan_text, plans)) or "there is no change in openspec/changes\n"

    output.emit(answer, json_mode=json, text=text)
