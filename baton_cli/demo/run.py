"""Stage, session, verdict: the demo as one call."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from baton_cli.demo import checks
from baton_cli.demo.session import Say, Session
from baton_cli.demo.stage import stage
from baton_cli.demo.witness import Witness

SCHEMA = "baton.demo/1"


def run(say: Say, show: Callable[[dict[str, Any]], None], *, keep: bool) -> dict[str, Any]:
    """The answer, as `baton.demo/1`. `say` hears the story line by line, `show` gets each `baton.status/1`."""
    begin = time.monotonic()
    with stage(keep) as root:
        witness = Witness(root)
        complete = Session(root, witness, say, show).play()
        found = [_complete(complete, witness), *checks.judge(witness, root.parent / "clone")]
    return {
        "schema": SCHEMA,
        "passed": all(check.passed for check in found),
        "checks": [asdict(check) for check in found],
        "seconds": round(time.monotonic() - begin, 2),
        "project": str(root) if keep else None,
    }


def _complete(complete: bool, witness: Witness) -> checks.Check:
    """What Baton says itself, with what it does not know: an agent that failed without being meant to."""
    said = "the change is complete" if complete else "the change is not complete"
    failed = [f"; the agent of {ended.ticket} failed: {ended.complaint}" for ended in witness.ended if ended.complaint]
    return checks.Check("complete", complete, said + "".join(failed))
