"""`baton explain`."""

from __future__ import annotations

from baton_cli import cli, output


def explain(ticket: cli.TicketArgument, project: cli.ProjectOption = None, json: cli.JsonOption = False) -> None:
    """Say why a ticket is or is not ready, with its history and its receipt."""
    change, separator, _ = ticket.rpartition("#")
    with cli.observer(project) as looks:
        answer = looks.explain(cli.only_change(looks.context, change if separator else None, ticket), ticket)

    def text() -> str:
        from baton_cli.views.explain import explain_view

        return explain_view(answer, colour=output.colour())

    output.emit(answer, json_mode=json, text=text)
