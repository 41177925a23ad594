"""An answer as JSON that a model's harness keeps whole: what nobody waits for goes first, then long lists are cut."""

from __future__ import annotations

from typing import Any

from baton_cli.core.actions import ANSWER_LIMIT
from baton_cli.core.frontier import FINISHED, Status
from baton_cli.core.prompt import shorten
from baton_cli.output import to_json

LEFT_OUT = "what is empty, finished or waiting tickets (counted), ends of lists: `baton status CHANGE --json` has all"
FOLDS = (FINISHED, FINISHED | {Status.WAITING, Status.READY})
SIZES = ((100, 300), (40, 200), (20, 160), (10, 120), (5, 80), (3, 60), (2, 40), (1, 20))  # items of a list, characters


def brief(answer: dict[str, Any]) -> str:
    """The answer as it is if it is short enough, else the most of it that is."""
    text = to_json(answer)
    if len(text) < ANSWER_LIMIT:
        return text
    short = {**answer, "left_out": LEFT_OUT}
    for fold in FOLDS:
        if "changes" in answer:
            short["changes"] = [_folded(change, fold) for change in answer["changes"]]
        text = to_json(cut(short, *SIZES[0]))
        if len(text) < ANSWER_LIMIT:
            return text
    for items, characters in SIZES:
        text = to_json(cut(short, items, characters))
        if len(text) < ANSWER_LIMIT:
            break
    return text


def _folded(change: dict[str, Any], fold: frozenset[Status]) -> dict[str, Any]:
    """A change of `status` in which tickets with these statuses are only counted; one that cannot be read as it is."""
    if "sections" not in change:
        return change
    sections = []
    for section in change["sections"]:
        tickets = [ticket for ticket in section["tickets"] if ticket["status"] not in fold]
        counted: dict[str, int] = {}
        for ticket in section["tickets"]:
            if ticket["status"] in fold:
                counted[ticket["status"]] = counted.get(ticket["status"], 0) + 1
        sections.append({**section, "tickets": tickets, "counted": counted})
    return {**change, "sections": sections}


def cut(value: Any, items: int, characters: int) -> Any:
    """The value without what is empty, its lists and texts cut."""
    if isinstance(value, dict):
        inside = {key: cut(inner, items, characters) for key, inner in value.items()}
        return {key: inner for key, inner in inside.items() if inner is not False and inner not in (None, "", [], {})}
    if isinstance(value, list):
        more = [f"and {len(value) - items} more"] if len(value) > items else []
        return [cut(inner, items, characters) for inner in value[:items]] + more
    return shorten(value, characters) if isinstance(value, str) else value
