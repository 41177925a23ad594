"""The answers of the verbs at the end of a change, for a person."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from baton_cli.views.words import prose, shown

Value = Mapping[str, Any]
HASH = 12  # characters of a commit


def land_text(answer: Value) -> str:
    """Where the change is now, and what comes next."""
    target, head = shown(answer["target_branch"]), shown(answer["head"])[:HASH]
    change = shown(answer["change"])
    if answer["state"] == "already_landed":
        lines = [f"{change} is on {target} already: nothing to do"]
    else:
        lines = [f"{change} is landed: {target} moved from {shown(answer['before'])[:HASH]} to {head}"]
        if answer["merged"]:
            lines.append(f"  {target} had moved: it was merged first, and the merged tree passed the checks")
        if answer["checkout"]:
            lines.append(f"  the files in {shown(answer['checkout'])} moved along")
    lines += [f"notice: {prose(notice)}" for notice in answer.get("notices", ())]
    width = max(len(step["say"]) for step in answer["next"])
    lines += ["next:", *(f"  {prose(step['say']).ljust(width)}  {shown(step['run'])}" for step in answer["next"])]
    return "".join(f"{line}\n" for line in lines)
