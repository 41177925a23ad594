"""The words around the demo. Text only; whoever calls prints it."""

from __future__ import annotations

import re
import shlex
import textwrap
from collections.abc import Mapping
from typing import Any

from baton_cli import output
from baton_cli.demo import scenario

PROMISES = {
    "complete": "Carried to the end",
    "evidence-only": "Only evidence counts",
    "always-green": "The branch is always green",
    "nothing-lost": "Nobody's work is lost",
    "checkout-untouched": "Your checkout is untouched",
    "exactly-once": "Exactly once under kill -9",
    "claims-exclusive": "One ticket, one owner",
    "plan-live": "The plan is live",
    "tasks-bytes": "tasks.md stays as written",
    "boxes": "Exactly the right boxes",
    "no-left-overs": "Nothing is left over",
}
WIDTH = 79
COLUMN = max(map(len, PROMISES.values())) + 6
GREEN, RED, END = "\x1b[32m", "\x1b[31m", "\x1b[0m"


def opening() -> str:
    """What a newcomer is about to see."""
    tickets = len(re.findall(r"^- \[ \] ", scenario.TASKS, re.M))
    sections = len(re.findall(r"^## ", scenario.TASKS, re.M))
    text = f"""\
A throwaway project with an approved change: {tickets} tickets in {sections} sections, which teach a small program to
greet in more languages. Git, worktrees, checks and merges are real, and so is `baton drive`. The agents are scripted
processes: one lies, one is killed, one is hasty, and some get in each other's way.
"""
    return "\n".join(textwrap.wrap(text, WIDTH)) + "\n"


def folded(text: str) -> str:
    """One line of the story, continued below its own words where it is too long."""
    return "\n".join(
        textwrap.wrap(text, WIDTH, subsequent_indent=" " * 16 if text.startswith(" ") else "", drop_whitespace=True)
    )


def verdict(answer: Mapping[str, Any], *, colour: bool) -> str:
    """Each promise with a tick or a cross."""
    lines = ["Checked from outside, with git and the files alone:"]
    for check in answer["checks"]:
        mark, tint = ("✓", GREEN) if check["passed"] else ("✗", RED)
        name = f"{PROMISES[check['name']]:<{COLUMN - 4}}"
        detail = textwrap.wrap(output.escape(check["detail"]), WIDTH - COLUMN) or [""]
        lines.append(f"  {tint}{mark}{END} {name}{detail[0]}" if colour else f"  {mark} {name}{detail[0]}")
        lines += [" " * COLUMN + part for part in detail[1:]]
    return "\n".join(lines) + "\n"


def ending(answer: Mapping[str, Any]) -> str:
    """How it went, and where to look."""
    broken = [PROMISES[check["name"]] for check in answer["checks"] if not check["passed"]]
    said = f"NOT KEPT: {', '.join(broken)}" if broken else "Every promise held"
    text = f"\n{said}, in {answer['seconds']:.1f} s.\n"
    if answer["project"] is not None:
        path = output.escape(shlex.quote(answer["project"]))
        text += f"The project is in {path}\nLook around: git -C {path} log --graph --oneline --all\n"
    return text
