"""How far a change is, and where its work comes together."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from baton_cli.views.page import GAP, INDENT, Line, Page, cells, length
from baton_cli.views.words import count, finished, listed, short, shown

BAR_LEAST, BAR_MOST = 10, 30
HASH = 7  # characters of a commit
NAMED = 6  # tickets in a note


def head(change: Mapping[str, Any], page: Page) -> list[Line]:
    """One line on a wide page, else two or three."""
    progress = change["progress"]
    total, done = progress["total"], finished(progress)
    complete = change.get("state") == "complete"
    name = page.cut(shown(change["change"]), max(12, page.width - 30))
    first: Line = [
        (name, "bold"),
        (
            GAP + (f"{done} of {count(total, 'ticket')} done" if total else "no tickets in tasks.md"),
            "green" if complete else "bold",
        ),
    ]
    counts, place = told(change), _place(change, page)
    free = page.width - length(first) - 2 * len(GAP)
    bar = min(BAR_MOST, free - length(counts) if counts else free)
    if bar < BAR_LEAST:
        bar = min(BAR_MOST, free)
    if bar >= BAR_LEAST and total:
        first += [(GAP, ""), *page.bar(done, total, bar)]
    lines = [first]
    for part in (counts, place):
        if part and length(lines[-1]) + len(GAP) + length(part) <= page.width:
            lines[-1] += [(GAP, ""), *part]
        elif part:
            lines.append([(INDENT, ""), *page.clip(part, page.width - len(INDENT))])
    lines += _reworded(change, page)
    if complete and total:
        lines += _next(change, page)
    return lines


def _reworded(change: Mapping[str, Any], page: Page) -> list[Line]:
    """Work that is counted here and not by `audit`: the text that it was done for is another one now."""
    keys = [
        short(ticket["key"])
        for section in change.get("sections", ())
        for ticket in section["tickets"]
        if ticket["status"] == "integrated" and ticket.get("evidence", {}).get("reworded")
    ]
    if not keys:
        return []
    said = f"{listed(keys, NAMED)} reworded after the merge: {page.command} audit does not count that"
    return [[(INDENT + part, "dim")] for part in page.wrap(said, page.width - len(INDENT), 2)]


def told(change: Mapping[str, Any]) -> Line:
    """The counts of what is not finished."""
    progress = change["progress"]
    person = progress.get("blocked", 0)
    known = (
        (person, "needs a person" if person == 1 else "need a person", "red"),
        (progress.get("in_flight", 0), "in flight", "yellow"),
        (progress.get("ready", 0), "ready", ""),
        (progress.get("waiting", 0), "waiting", "dim"),
        (progress.get("skipped", 0), "skipped", "dim"),
        (progress.get("external", 0), "ticked by hand", "dim"),
    )
    line: Line = []
    if change.get("paused") is not None:
        line.append(("paused", "red"))
    for number, what, style in known:
        if number:
            line += [(", ", "dim")] if line else []
            line.append((f"{number} {what}", style))
    return line


def _place(change: Mapping[str, Any], page: Page) -> Line:
    """The integration branch, its head, and where it will go; nothing once another branch has it all."""
    branch = shown(change.get("integration_branch"))
    if not branch or change.get("landed"):
        return []
    text = branch
    if change.get("integration_head"):
        text += f" {shown(change['integration_head'])[:HASH]}"
    target = shown(change.get("target_branch"))
    if target and cells(text) + cells(target) + 7 <= page.width:
        text += f", for {target}"
    return [(text, "dim")]


def landing(change: Mapping[str, Any], command: str = "baton") -> str:
    """How the finished work gets to where it belongs; nothing where none of it is on a branch of Baton's."""
    if not change.get("integration_branch") or change.get("landed"):
        return ""
    into = "" if change.get("target_branch") else " --into BRANCH"
    return f"{command} land {shown(shlex.quote(str(change['change'])))}{into}"


def _next(change: Mapping[str, Any], page: Page) -> list[Line]:
    land, archive = landing(change, page.command), f"openspec archive {shown(shlex.quote(str(change['change'])))}"
    landed = change.get("landed")
    first: Line = [(f"{INDENT}{f'complete, on {shown(landed)} ' if landed else 'complete '}", "green"), ("-> ", "")]
    if not land:
        return [[*first, ("with the ticks in tasks.md committed: " if landed else "", ""), (archive, "bold")]]
    then: Line = [("commit the ticks, then: ", ""), (archive, "bold")]
    whole: Line = [*first, (land, "bold"), (", ", ""), *then]
    if length(whole) < page.width:
        return [whole]
    return [[*first, (land, "bold")], [(" " * length(first), ""), *then]]
