"""`baton pause`."""

from __future__ import annotations

from baton_cli import cli, output


def pause(
    change: cli.ChangeArgument = None,
    why: cli.WhyOption = None,
    project: cli.ProjectOption = None,
    json: cli.JsonOption = False,
) -> None:
    """Hand nothing out any more. Running work goes on, is settled and integrated."""
    with cli.operator(project) as person:
        answer = person.pause(cli.which_change(person.context.project, change), why)
    name = output.escape(answer["change"])
    said = f"{name} is paused: running work goes on, nothing more is handed out"
    said += f"\nnext, when it may go on: {output.baton()} resume {name}"
    output.emit(answer, json_mode=json, text=said)
