"""The queue view: what needs a person first, then what runs, then the plan. A value in, text out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from baton_cli.views import queue_head, queue_now, queue_plan
from baton_cli.views.grid import Grid
from baton_cli.views.page import Line, Page, cells, page, paint
from baton_cli.views.words import count, finished, prose, shown

LINES = 60  # about so many in all, however large the plans
LEAST = 10  # but each change gets so many if it needs them
FEW = 6  # changes that are all shown in full; of more than these, quiet ones take a line each
QUIET = 20  # such lines


def queue_view(
    answer: Mapping[str, Any],
    *,
    now: float,
    colour: bool,
    width: int | None = None,
    unicode: bool | None = None,
    lines: int | None = None,
    command: str = "baton",
) -> str:
    """`baton.status/1` for a person. `now` is in seconds since the epoch; width and unicode are the terminal's own;
    `command` is how Baton is called there.

    It takes about `lines` lines, if what needs a person and what runs leave it the choice.
    """
    paper = page(width, unicode, command)
    changes = list(answer.get("changes", ()))
    drawn = _attention(answer, paper)
    if not changes:
        return paint([*drawn, *([[]] if drawn else []), *_nothing(answer, paper)], colour, paper.width)
    most = (lines or LINES) - len(drawn)
    quiet: list[Line] = []
    if len(changes) > FEW:
        drawn += [*([[]] if drawn else []), paper.clip(_all(changes), paper.width)]
        quiet = _quiet([change for change in changes if _is_quiet(change)], paper)
        changes = [change for change in changes if not _is_quiet(change)]
        most -= len(quiet) + 2
    blocks = [_block(change, paper, now, most) for change in changes]
    share = _share([len(block) + 1 for block in blocks], most)
    for change, block in zip(changes, blocks, strict=True):
        drawn += [[]] if drawn else []
        drawn += block if len(block) < share else _block(change, paper, now, share - 1)
    return paint([*drawn, *([[], *quiet] if quiet else [])], colour, paper.width)


def _attention(answer: Mapping[str, Any], paper: Page) -> list[Line]:
    """What needs a person and belongs to no open change."""
    lines: list[Line] = []
    for action in answer.get("attention", ()):
        said = paper.wrap(prose(action["detail"]), paper.width - 2, 3)
        lines += [[("  " if at else "! ", "bold red"), (part, "")] for at, part in enumerate(said)]
        ways = paper.wrap(prose(action["remedy"]), paper.width - 5, 4)
        lines += [[("     " if at else "  -> ", "red"), (part, "")] for at, part in enumerate(ways)]
    return lines


def _is_quiet(change: Mapping[str, Any]) -> bool:
    """Nothing runs, and nobody is waited for."""
    counts = change.get("progress", {})
    return "error" not in change and change.get("paused") is None and not (counts["blocked"] or counts["in_flight"])


def _all(changes: Sequence[Mapping[str, Any]]) -> Line:
    """All changes in one line."""
    sums: dict[str, int] = {}
    for change in changes:
        for name, number in change.get("progress", {}).items():
            sums[name] = sums.get(name, 0) + number
    first = f"{count(len(changes), 'change')}  {finished(sums)} of {count(sums.get('total', 0), 'ticket')} done"
    sums["blocked"] = sums.get("blocked", 0) + sum(1 for change in changes if "error" in change)
    counts = queue_head.told({"progress": sums})
    return [(first, "bold"), *([("  ", ""), *counts] if counts else [])]


def _quiet(changes: Sequence[Mapping[str, Any]], paper: Page) -> list[Line]:
    """Changes in which nothing happens, a line each: those that are not complete first."""
    order = sorted(changes, key=lambda change: change["state"] == "complete")
    width = min(40, max((cells(shown(change["change"], 41)) for change in order), default=0))
    lines: list[Line] = []
    for change in order[:QUIET]:
        done, total = finished(change["progress"]), change["progress"]["total"]
        name = paper.pad(shown(change["change"]), width)
        line: Line = [
            (f"  {name}", ""),
            (f"  {done:>4} of {total:<4}  ", "dim"),
            *paper.bar(done, total, 10),
            ("  ", ""),
        ]
        complete: Line = [("complete", "green")]
        lines.append(
            paper.clip(line + (complete if change["state"] == "complete" else queue_head.told(change)), paper.width)
        )
    if len(order) > QUIET:
        rest = sum(1 for change in order[QUIET:] if change["state"] == "complete")
        lines.append([(f"  and {len(order) - QUIET} more" + (f", {rest} of them complete" if rest else ""), "dim")])
    return lines


def _share(needs: Sequence[int], most: int) -> int:
    """How many lines one change may have, so that those that need less leave the rest to the others."""
    return next((share for share in range(most + 1, LEAST, -1) if sum(min(n, share) for n in needs) <= most), LEAST)


def _block(change: Mapping[str, Any], paper: Page, now: float, share: int) -> list[Line]:
    return _broken(change, paper) if "error" in change else _change(change, paper, now, share)


def _nothing(answer: Mapping[str, Any], paper: Page) -> list[Line]:
    return [
        [("no change in openspec/changes", "bold")],
        [(f"  project {shown(answer.get('project'))}", "dim")] if answer.get("project") else [],
        [
            (
                f"  write one with OpenSpec first (openspec/changes/NAME/tasks.md), then: {paper.command} plan NAME",
                "dim",
            )
        ],
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
