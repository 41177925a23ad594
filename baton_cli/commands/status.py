"""`baton status`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from baton_cli import cli, output


def status(
    change: Annotated[str | None, typer.Argument(help="Only this change.")] = None,
    watch: Annotated[
        bool,
        typer.Option("--watch", help="Stay, and draw again what changes; Ctrl-C ends it. Piped: print each change."),
    ] = False,
    project: cli.ProjectOption = None,
    json: cli.JsonOption = False,
) -> None:
    """Show where each change stands: what needs a person, what runs, what waits for what."""
    if watch:
        from baton_cli.views import live
        from baton_cli.views import watch as watching

        place = cli.locate(project)
        if live.suits() and not json:
            watching.on_screen(lambda size: _text(*_read(change, place.root), size), lambda: cli.stamp(place))
        else:
            watching.as_stream(lambda: _plain(change, place.root, json), lambda: cli.stamp(place), pages=not json)
        return
    answer, now = _read(change, project, json)
    output.emit(answer, json_mode=json, text=lambda: _text(answer, now))


def _read(change: str | None, project: Any, json: bool = False) -> tuple[dict[str, Any], float]:
    with cli.observer(project, typed=not json) as looks:
        return looks.status(change), looks.context.now()


def _text(answer: dict[str, Any], now: float, size: tuple[int, int] | None = None) -> str:
    from baton_cli.views.queue import queue_view

    width, lines = size or (None, None)
    command = output.baton()
    return queue_view(answer, now=now, colour=output.colour(), width=width, lines=lines, command=command)


def _plain(change: str | None, project: Any, json: bool) -> str:
    answer, now = _read(change, project, json)
    return f"{output.to_json(answer)}\n" if json else f"{_text(answer, now)}\n"
