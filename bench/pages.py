"""The board, from its value to the text of the page."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from functools import partial
from typing import Any

from bench.measure import Row, at_most, call, in_turns, ratio
from bench.scene import Settings, project, tasks_text


def board(settings: Settings) -> Iterator[Row]:
    """Rendering only: 1,000 tickets in 10 changes, as many in 500, and four times as many."""
    from baton_cli.views.board import board_page

    values = {
        "1,000 tickets, 10 changes": _value(settings, 10, 100),
        "1,000 tickets, 500 changes": _value(settings, 500, 2),
        "4,000 tickets, 40 changes": _value(settings, 40, 100),
    }
    board_page(values["1,000 tickets, 10 changes"])  # the template engine is there from now on
    taken = in_turns(
        {name: partial(call, partial(board_page, value)) for name, value in values.items()},
        settings.rounds(9),
    )
    first, second, third = values
    for name in (first, second):
        cost = statistics.median(item.cpu for item in taken[name]) * 1000
        yield at_most(Row("board", f"rendering {name}, CPU", cost, "ms"), 100)
    wall, cpu = ratio(taken[third], taken[first])
    yield at_most(Row("board", "rendering 4,000 / 1,000 tickets", wall, "x", cpu=cpu), 5)


def _value(settings: Settings, changes: int, tickets: int) -> dict[str, Any]:
    from baton_cli import context
    from baton_cli import project as projects
    from baton_cli.observer import Observer

    root = project(settings.place("board"), {f"change-{at}": tasks_text(tickets) for at in range(changes)})
    with context.opened(projects.find(root), create=False) as surroundings:
        return Observer(surroundings).board()
