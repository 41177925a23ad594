"""`baton explain`."""

from __future__ import annotations

from baton_cli import cli, output


def explain(ticket: cli.TicketArgument, project: cli.ProjectOption = None, json: cli.JsonOption = False) -> None:
    """Say why a ticket is or is not ready, with its history and its receipt."""
    with cli.observer(project, typed=not json) as looks:
        answer = looks.explain(cli.change_of(looks.context, ticket), ticket)

    def text() -> str:
        from baton_cli.views.explain import explain_view

        return explain_view(answer, colour=output.colour())

    output.emit(answer, json_mode=json, text=text)
