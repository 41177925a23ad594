"""`baton doctor`."""

from __future__ import annotations

from typing import Annotated

import typer

from baton_cli import cli, output


def doctor(
    repair: Annotated[bool, typer.Option("--repair", help="Mend what is safe to mend; work is never deleted.")] = False,
    project: cli.ProjectOption = None,
    json: cli.JsonOption = False,
) -> None:
    """Say what is wrong with git, its settings, folders, locks, worktrees, refs and the store, and the fix for each. Exit
    code 1 when an error is left."""
    from baton_cli.core.findings import answer as told
    from baton_cli.flow.doctor import examine

    where = cli.locate(project)
    answer = told(str(where.root), examine(where, repair=repair))

    def text() -> str:
        from baton_cli.views.text_end import doctor_text

        return doctor_text(answer)

    output.emit(answer, json_mode=json, text=text)
    if not answer["healthy"]:
        raise typer.Exit(1)
