"""`baton demo`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from baton_cli import cli, output


def demo(
    keep: Annotated[bool, typer.Option("--keep", help="Leave the project there and say where.")] = False,
    json: cli.JsonOption = False,
) -> None:
    """Drive a real change to complete in a throwaway project, with scripted agents, one of which lies and one of which
    dies, while the plan is edited and Baton itself is killed. Then check every promise with git and the files alone.
    Exit 0 only when all held."""
    from baton_cli.demo.run import run
    from baton_cli.demo.story import ending, folded, opening, verdict

    def say(text: str) -> None:
        if not json:
            output.write(f"{text}\n")

    def show(status: dict[str, Any]) -> None:
        if not json:
            from baton_cli.views.queue import queue_view

            say("\n" + queue_view(status, now=time.time(), colour=output.colour()))
            if keep:
                say(f"board: {output.escape(str(_board(Path(status['project']))))}\n")

    say(opening())
    answer = run(lambda text: say(folded(text)), show, keep=keep)
    output.emit(answer, json_mode=json, text=lambda: verdict(answer, colour=output.colour()) + ending(answer))
    if not answer["passed"]:
        raise typer.Exit(1)


def _board(root: Path) -> Path:
    """Write the project's board; where it is."""
    from baton_cli.views.board import board_page

    with cli.observer(root) as looks:
        return cli.write_page(looks.context.project, None, board_page(looks.board()).encode())
