"""The queue view: what needs a person first, then what runs, then the plan. A value in, text out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from baton_cli.views import queue_head, queue_now, queue_plan
from baton_cli.views.grid import Grid
from baton_cli.views.page import Line, Page, page, paint
from baton_cli.views.words import prose, shown

LINES = 60  # about so many in all, however large the plans
LEAST = 10  # but each change gets so many if it needs them


def queue_view(
    answer: Mapping[str, Any], *, now: float, colour: bool, width: int | None = None, unicode: bool | None = None
) -> str:
    """`baton.status/1` for a person. `now` is in seconds since the epoch; width and unicode are the terminal's own."""
    paper = page(width, unicode)
    changes = list(answer.get("changes", ()))
    if not changes:
        return paint(_nothing(answer), colour, paper.width)
    blocks = [_block(change, paper, now, LINES) for change in changes]
    share = _share([len(block) + 1 for block in blocks])
    lines: list[Line] = []
    for change, block in zip(changes, blocks, strict=True):
        lines += [[]] if lines else []
        lines += block if len(block) < share else _block(change, paper, now, share - 1)
    return paint(lines, colour, paper.width)


def _share(needs: Sequence[int]) -> int:
    """How many lines one change may have, so that those that need less leave the rest to the others."""
    return next((share for share in range(LINES + 1, LEAST, -1) if sum(min(n, share) for n in needs) <= LINES), LEAST)


def _block(change: Mapping[str, Any], paper: Page, now: float, share: int) -> list[Line]:
    return _broken(change, paper) if "error" in change else _change(change, paper, now, share)


def _nothing(answer: Mapping[str, Any]) -> list[Line]:
    return [
        [("no change in openspec/changes", "bold")],
        [(f"  project {shown(answer.get('project'))}", "dim")] if answer.get("project") else [],
        [("  write one with OpenSpec first (openspec/changes/NAME/tasks.md), then: baton plan NAME", "dim")],
    ]


def _broken(change: Mapping[str, Any], paper: Page) -> list[Line]:
    error = change["error"]
    lines: list[Line] = [
        [("! ", "bold red"), (shown(change.get("change")), "bold"), ("  its plan cannot be read", "red")]
    ]
    lines += [[("  " + part, "")] for part in paper.wrap(prose(error.get("message")), paper.width - 2, 6)]
    if error.get("hint"):
        lines.append([("  -> ", "red"), (prose(error["hint"]), "bold")])
    return lines


def _change(change: Mapping[str, Any], paper: Page, now: float, share: int) -> list[Line]:
    lines = queue_head.head(change, paper)
    if change.get("state") == "complete":
        return lines
    grid = Grid.of(change, paper)
    for block in (queue_now.person(change, grid), queue_now.running(change, grid, now)):
        if block:
            lines += [[], *block]
    plan = queue_plan.plan(change, grid, max(3, share - len(lines) - 1))
    return [*lines, [], *plan] if plan else lines
