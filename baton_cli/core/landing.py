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
    here: bool,
    attested: bool,
    notices: Sequence[str],
    command: str,
) -> dict[str, Any]:
    """What was done and what a person does next; `ticks` is the tasks file with uncommitted boxes, if it has any, `here`
    whether it is in a checkout of the branch, `attested` whether a person vouched for a ticket, `command` how Baton is called."""
    following, allow = [], " --allow attested" if attested else ""
    if ticks is not None:
        run = _commit_ticks(change, ticks, None if here else target, place)
        following.append({"say": f"commit the ticks on {target}", "run": run})
    following += [
        {"say": "check the evidence", "run": f"{command} audit {_quoted(change)}{allow}"},
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


def _commit_ticks(change: str, ticks: str, target: str | None, place: str | None) -> str:
    """The command; with a `target`, from a checkout of something else: that one is checked out at `place`, or nowhere."""
    commit = f"commit -m {_quoted(f'Tick {change}')} -- {_quoted(f':/{ticks}')}"
    if target is None:
        return f"git {commit}"
    if place is None:
        return f"git switch {_quoted(target)} && git {commit}"
    there = f"git -C {_quoted(place)}"
    return f"git diff -- {_quoted(f':/{ticks}')} | {there} apply && {there} {commit}"


def _quoted(text: str) -> str:
    return shlex.quote(text)
