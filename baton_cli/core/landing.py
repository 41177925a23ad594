"""The answer of `land`."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

SCHEMA = "baton.land/1"


def answer(
    *,
    change: str,
    branch: str,
    target: str,
    head: str,
    before: str | None,
    merged: str | None,
    place: str | None,
    ticks: str | None,
    notices: Sequence[str],
    command: str,
) -> dict[str, Any]:
    """What was done and what a person does next; `ticks` is the tasks file with uncommitted boxes, if it has any, `command`
    how Baton is called."""
    following = []
    if ticks is not None:
        following.append(
            {
                "say": f"commit the ticks on {target}",
                "run": f"git commit -m {_quoted(f'Tick {change}')} -- {_quoted(f':/{ticks}')}",
            }
        )
    following += [
        {"say": "check the evidence", "run": f"{command} audit {_quoted(change)}"},
        {"say": "archive the change", "run": f"openspec archive {_quoted(change)}"},
        {"say": "remove what is not needed any more", "run": f"{command} clean {_quoted(change)}"},
    ]
    value: dict[str, Any] = {
        "schema": SCHEMA,
        "change": change,
        "state": "landed" if before is not None else "already_landed",
        "integration_branch": branch,
        "target_branch": target,
        "head": head,
        "before": before,
        "merged": merged,
        "checkout": place,
        "next": following,
    }
    return {**value, "notices": list(notices)} if notices else value


def _quoted(text: str) -> str:
    return shlex.quote(text)
