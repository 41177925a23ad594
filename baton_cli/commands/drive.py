"""`baton drive`."""

from __future__ import annotations

from typing import Annotated

import typer

from baton_cli import cli, output
from baton_cli.errors import INTERRUPTED


def drive(
    agent: Annotated[
        str, typer.Option("--agent", metavar="CMD", help="The agent; it reads its task on standard input.")
    ],
    change: cli.ChangeArgument = None,
    parallel: Annotated[
        int, typer.Option("--parallel", metavar="N", min=1, max=5, help="Most agents at once, 1 to 5.")
    ] = 5,
    time_limit: Annotated[
        str | None, typer.Option("--time-limit", metavar="T", help="End an agent after so long: 90s, 30m, 2h.")
    ] = None,
    session: Annotated[str, typer.Option("--session", metavar="S", help="Continue this session.")] = "new",
    no_wait: Annotated[
        bool, typer.Option("--no-wait", help="End (exit 1) when only other sessions hold tickets.")
    ] = False,
    project: cli.ProjectOption = None,
    json: cli.JsonOption = False,
) -> None:
    """Run a change to its end with a command as the agent, several at once, each in its ticket's worktree. CMD is split
    like a shell and run without one; BATON_* variables tell it its task. Exit 0 only when the change is complete
    and nobody but Baton ticked a box meanwhile; Ctrl-C stops the agents, and the same command goes on from there."""
    from baton_cli.drive import order as orders
    from baton_cli.drive.board import Board
    from baton_cli.drive.loop import Driver
    from baton_cli.views import live
    from baton_cli.views.ending import ending

    words, program = orders.command(agent)
    limit = orders.seconds(time_limit)
    place = cli.locate(project)
    named = cli.which_change(place, change)
    order = orders.Order(named, words, program, session, parallel, limit, wait=not no_wait)
    board = Board(named)
    view = live.silent() if json else live.screen(board.frame) if live.suits() else live.lines()
    with view as tell:
        answer = Driver(place, order, board, tell).run()

    def text() -> str:
        with cli.observer(place.root, typed=True) as looks:
            shown = looks.status(named)["changes"][0] if answer["state"] == "blocked" else None
            return output.as_typed(ending(answer, shown, looks.context.shell()))

    output.emit(answer, json_mode=json, text=text)
    if answer["state"] != "complete" or answer["unproved"]:
        raise typer.Exit(INTERRUPTED if answer["state"] == "interrupted" else 1)
