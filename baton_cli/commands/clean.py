"""`baton clean`."""

from __future__ import annotations

from typing import Annotated

import typer

from baton_cli import cli, output


def clean(
    change: Annotated[str | None, typer.Argument(help="Only this change.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would go, and remove nothing.")] = False,
    project: cli.ProjectOption = None,
    json: cli.JsonOption = False,
) -> None:
    """Remove the worktrees, branches and refs of integrated work, and the integration branch once it has landed. What
    holds commits that are not integrated, or files that are not committed, is kept and named."""
    with cli.finisher(project, json_mode=json) as finishes:
        answer = finishes.clean(change, dry_run=dry_run)

    def text() -> str:
        from baton_cli.views.text_end import clean_text

        return clean_text(answer)

    output.emit(answer, json_mode=json, text=text)
