"""`baton receipt show` and `baton receipt verify`."""

from __future__ import annotations

from typing import Annotated

import typer

from baton_cli import cli, output

app = typer.Typer(help="Show or verify the evidence of an assignment.", no_args_is_help=True)
AssignmentArgument = Annotated[str, typer.Argument(help="The assignment_id.")]


@app.command()
def show(assignment: AssignmentArgument, project: cli.ProjectOption = None, json: cli.JsonOption = False) -> None:
    """Show the receipt: commit, checks and their results."""
    with cli.observer(project, assignment=assignment) as looks:
        answer = looks.receipt(assignment)

    def text() -> str:
        from baton_cli.views.text import receipt_text

        return receipt_text(answer)

    output.emit(answer, json_mode=json, text=text)


@app.command()
def verify(assignment: AssignmentArgument, project: cli.ProjectOption = None, json: cli.JsonOption = False) -> None:
    """Check the receipt against its packet, its commit and the copy on disk. Exit code 1 when it does not count."""
    with cli.observer(project, assignment=assignment) as looks:
        answer = looks.verify_receipt(assignment)
    output.emit(answer, json_mode=json, text=f"the receipt of {answer['ticket']} counts: {answer['receipt']}")
