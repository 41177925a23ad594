"""`baton receipt show` and `baton receipt verify`."""

from __future__ import annotations

from typing import Annotated

import typer

from baton_cli import cli, output

app = typer.Typer(help="Show or verify the evidence of a ticket.", no_args_is_help=True)
TicketArgument = Annotated[
    str, typer.Argument(metavar="TICKET", help="1.2, change#1.2 when there are several changes, or an assignment_id.")
]


@app.command()
def show(ticket: TicketArgument, project: cli.ProjectOption = None, json: cli.JsonOption = False) -> None:
    """Show the receipt: commit, checks and their results."""
    with cli.proof(project, ticket) as (looks, assignment):
        answer = looks.receipt(assignment)

    def text() -> str:
        from baton_cli.views.text import receipt_text

        return receipt_text(answer)

    output.emit(answer, json_mode=json, text=text)


@app.command()
def verify(ticket: TicketArgument, project: cli.ProjectOption = None, json: cli.JsonOption = False) -> None:
    """Check the receipt against its packet, its commit and the copy on disk. Exit code 1 when it does not count."""
    with cli.proof(project, ticket) as (looks, assignment):
        answer = looks.verify_receipt(assignment)
    output.emit(answer, json_mode=json, text=f"the receipt of {answer['ticket']} counts: {answer['receipt']}")
