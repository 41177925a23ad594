"""Stage, director, verdict: the demo as one call."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from baton_cli import context as contexts
from baton_cli import project as projects
from baton_cli.demo import checks, scenario
from baton_cli.demo.director import Director, Say
from baton_cli.demo.stage import stage
from baton_cli.demo.witness import Witness
from baton_cli.errors import BatonError
from baton_cli.observer import Observer

SCHEMA = "baton.demo/1"


def run(say: Say, show: Callable[[dict[str, Any]], None], *, keep: bool) -> dict[str, Any]:
    """The answer, as `baton.demo/1`. `say` hears the story line by line, `show` gets the last `baton.status/1`.

    Error: `demo_unsupported` where drive cannot run."""
    if not hasattr(os, "mkfifo"):
        raise BatonError("demo_unsupported", "the demo needs process groups and pipes with names", "use Linux or macOS")
    begin = time.monotonic()
    with stage(keep) as root:
        witness = Witness(root)
        director = Director(root, witness, say)
        complete = director.play()
        show(_status(root))
        found = [_complete(complete, director.wrong), *checks.judge(witness, root.parent / "tried")]
    return {
        "schema": SCHEMA,
        "passed": all(check.passed for check in found),
        "checks": [asdict(check) for check in found],
        "seconds": round(time.monotonic() - begin, 2),
        "project": str(root) if keep else None,
    }


def _complete(complete: bool, wrong: str) -> checks.Check:
    """What Baton says itself."""
    return checks.Check("complete", complete, "the change is complete" if complete else wrong)


def _status(root: Path) -> dict[str, Any]:
    """What `baton status` shows."""
    with contexts.opened(projects.find(root), create=False) as surroundings:
        return Observer(surroundings).status(scenario.CHANGE)
