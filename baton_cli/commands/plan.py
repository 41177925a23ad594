"""`baton plan`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from baton_cli import cli, output
from baton_cli.errors import USAGE, BatonError


def plan(
    change: cli.ChangeArgument = None,
    every: Annotated[bool, typer.Option("--all", help="All changes of the project.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Also run the checks once, before any work; red is a warning.")
    ] = False,
    project: cli.ProjectOption = None,
    json: cli.JsonOption = False,
) -> None:
    """Show a change as tickets: what they wait for, what proves them, and what is odd about them."""
    if every and change is not None:
        raise BatonError("usage", "plan shows one CHANGE or --all, not both", "leave one of them out", USAGE)
    answer: Any
    with cli.observer(project) as looks:
        name = cli.which_change(looks.context.project, change) if not every else ""
        answer = looks.plans() if every else looks.plan(name)

    if check and not every:
        with cli.operator(project) as person:
            answer["baseline"] = person.baseline(name)
        answer["warnings"] += [
            {"code": "baseline_red", "line": 0, "message": line} for line in answer["baseline"]["red"]
        ]

    def text() -> str:
        from baton_cli.views.text import plan_text

        plans = answer if isinstance(answer, list) else [answer]
        return "\n".join(map(plan_text, plans)) or "there is no change in openspec/changes\n"

    output.emit(answer, json_mode=json, text=text)
