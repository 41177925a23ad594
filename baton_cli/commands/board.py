"""`baton board`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from baton_cli import cli, output


def board(
    out: Annotated[
        Path | None, typer.Option("--out", metavar="F", help="Write it there; by default .dsh/baton/board.html.")
    ] = None,
    open_it: Annotated[bool, typer.Option("--open", help="Show it in the browser.")] = False,
    archived: Annotated[bool, typer.Option("--archived", help="With the changes that OpenSpec has archived.")] = False,
    project: cli.ProjectOption = None,
    json: cli.JsonOption = False,
) -> None:
    """Write all changes of the project as a Kanban board: one HTML file, without script and without network. The same
    state gives the same bytes."""
    from baton_cli.views.board import board_page, tickets_of

    with cli.observer(project) as looks:
        value = looks.board(archived)
        page = board_page(value).encode()
        path = cli.write_page(looks.context.project, out, page)
    answer = {
        "schema": "baton.board/1",
        "path": str(path),
        "url": path.as_uri(),
        "changes": len(value["changes"]),
        "tickets": tickets_of(value),
        "bytes": len(page),
    }
    shown = output.escape(str(path))
    output.emit(answer, json_mode=json, text=f"{shown}\n{path.as_uri()}" if output.is_terminal() else shown)
    if open_it:
        import webbrowser

        if not webbrowser.open(path.as_uri()):
            output.write("note: no browser was found to open it with\n", sys.stderr)
