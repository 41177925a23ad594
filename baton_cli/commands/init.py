"""`baton init`."""

from __future__ import annotations

from baton_cli import cli, output


def init(project: cli.ProjectOption = None, json: cli.JsonOption = False) -> None:
    """Write baton.toml with the checks and the set-up found in this project, and say what was found."""
    with cli.operator(project) as person:
        answer = person.init()

    def text() -> str:
        from baton_cli.views.text import init_text

        return init_text(answer, output.baton())

    output.emit(answer, json_mode=json, text=text)
