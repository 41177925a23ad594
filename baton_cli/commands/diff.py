"""`baton diff`."""

from __future__ import annotations

from baton_cli import cli, output


def diff(ticket: cli.TicketArgument, project: cli.ProjectOption = None, json: cli.JsonOption = False) -> None:
    """Show what a ticket's worker has done so far, committed and not, or what its merge brought. The worker is not
    disturbed."""
    with cli.observer(project) as looks:
        answer = looks.diff(cli.change_of(looks.context, ticket), ticket)

    def text() -> str:
        from baton_cli.views.text import diff_text

        return diff_text(answer)

    output.emit(answer, json_mode=json, text=text)
