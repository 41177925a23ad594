"""`baton audit`."""

from __future__ import annotations

from typing import Annotated

import typer

from baton_cli import cli, output
from baton_cli.errors import USAGE, BatonError


def audit(
    change: Annotated[
        str | None,
        typer.Argument(help="The change's name, also of an archived one; not needed when there is only one."),
    ] = None,
    allow: Annotated[
        str, typer.Option("--allow", metavar="LEVELS", help="Also accept: attested, external, or both with a comma.")
    ] = "",
    landed: Annotated[
        bool, typer.Option("--landed", help="Also fail where the work is not in what is checked out.")
    ] = False,
    project: cli.ProjectOption = None,
    json: cli.JsonOption = False,
) -> None:
    """Prove from git alone that every ticked box has a merge commit whose receipt fits. Works in any clone with the
    branch. Exit code 1 when a box lacks proof. It proves consistency, not honesty."""
    from baton_cli.core.audit import ALLOWABLE
    from baton_cli.flow.audit import audit as examine

    levels = {level.strip() for level in allow.split(",") if level.strip()}
    if levels - set(ALLOWABLE):
        wrong = ", ".join(sorted(levels - set(ALLOWABLE)))
        raise BatonError("bad_level", f"{wrong!r} is no level that can be allowed", "use attested, external", USAGE)
    place = cli.locate(project)
    answer = examine(place, cli.which_change(place, change, archived=True), levels, landed=landed)

    def text() -> str:
        from baton_cli.views.text_end import audit_text

        return audit_text(answer, output.baton())

    output.emit(answer, json_mode=json, text=text)
    if not answer["passed"]:
        raise typer.Exit(1)
