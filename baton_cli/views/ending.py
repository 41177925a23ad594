"""How a drive ended, for a person: how the change stands, what this run did, then what is to be done, and the details last."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from baton_cli import output
from baton_cli.views import queue_now
from baton_cli.views.grid import Grid
from baton_cli.views.live import stands
from baton_cli.views.page import page, paint
from baton_cli.views.words import count, joined, listed, plain, prose, short, shown, span, standing_why

Value = Mapping[str, Any]
DETAILS, NAMED = 6, 4  # details that are shown, and tickets named in front of one


def ending(answer: Value, change: Value | None = None, command: str = "baton") -> str:
    """`baton.drive/1` as text. `change` is how `status` shows the change, where it is blocked."""
    did = joined(
        (
            f"{answer['integrated']} integrated",
            count(answer["attempts"], "agent run")
            + (f" on {count(answer['started'], 'ticket')}" if answer["started"] != answer["attempts"] else ""),
            span(answer["seconds"]),
        )
    )
    said = [f"{plain(answer['state'])}: {stands(answer['progress'])}", f"  this run: {did}"]
    for action in answer["actions"]:
        if action["kind"] == "complete":
            said.append(f"  on {shown(action['integration_branch'])} at {shown(action['integration_head'])[:12]}")
            if action.get("external"):
                said.append(
                    f"  {action['external']} ticked by hand: nothing of that is proved, and audit does not count it"
                )
            if answer.get("unproved"):
                said.append(
                    f"  {answer['unproved']} of them during this run, by you or by an agent that strayed: so this ends with 1"
                )
            said.append(f"  -> {prose(action['then'])}")
    if answer["state"] == "interrupted":
        said.append("  everything is kept: the same command goes on from here")
    text = "".join(f"{line}\n" for line in said)
    return text + (_blocked(answer, change, command) if change is not None else "")


def _blocked(answer: Value, change: Value, command: str) -> str:
    """A line for each ticket that needs a person, what to do about it, and only then what was said of it."""
    paper = page(None, None, command)
    grid = Grid.of(change, paper)
    known = {"paused", *(action["reason"] for action in change["attention"])}  # `person` says both
    others = [action for action in answer["actions"] if action["kind"] == "blocked" and action["reason"] not in known]
    whole = {**change, "attention": [*others, *change["attention"]]}
    lines = [[], *queue_now.person(_brief(whole), grid)]
    details = _details(change)
    if details:
        lines.append([])
    for detail, keys in list(details.items())[:DETAILS]:
        parts = paper.wrap(f"{listed(keys, NAMED)}: {detail}", paper.width - 4, 3)
        lines += [[(("  " if at == 0 else "    ") + part, "dim")] for at, part in enumerate(parts)]
    return paint(lines, output.colour(), paper.width)


def _brief(change: Value) -> Value:
    """The change without the details of its tickets."""

    def ticket(one: Value) -> Value:
        held = one.get("assignment")
        return {**one, "assignment": {**held, "detail": None, "note": None}} if held else one

    sections = [{**section, "tickets": [ticket(one) for one in section["tickets"]]} for section in change["sections"]]
    return {**change, "sections": sections}


def _details(change: Value) -> dict[str, list[str]]:
    """What was said of the tickets that need a person; several may have the same."""
    found: dict[str, list[str]] = {}
    for section in change["sections"]:
        for ticket in section["tickets"]:
            detail = standing_why(ticket.get("assignment") or {})
            if ticket["status"] == "blocked" and detail:
                found.setdefault(detail, []).append(short(ticket["key"]))
    return found
