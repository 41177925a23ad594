"""`baton resume`."""

from __future__ import annotations

from baton_cli import cli, output


def resume(
    change: cli.ChangeArgument = None,
    project: cli.ProjectOption = None,
    json: cli.JsonOption = False,
) -> None:
    """Hand tickets out again after a pause."""
    with cli.operator(project) as person:
        answer = person.resume(cli.which_change(person.context.project, change))
    said = f"{output.escape(answer['change'])} goes on with the next session or drive"
    output.emit(answer, json_mode=json, text=said)
