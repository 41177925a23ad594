"""The gate: what the receipt does not already prove of a merged tree runs on a clean checkout before the ref moves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from baton_cli import process
from baton_cli.context import Context
from baton_cli.core import integration
from baton_cli.core.listing import named
from baton_cli.core.prompt import shorten
from baton_cli.git import repo, worktree
from baton_cli.provision import provision


@dataclass(frozen=True, slots=True)
class Gate:
    """The verdict: `record` travels with the commit, `failed` says what was red, `ran` are the commands run now."""

    record: Mapping[str, Any]
    failed: str | None
    ran: tuple[str, ...]
    proved: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked: does `tree`, the merge of `sealed` into `onto`, pass `wanted`? `timeouts` are seconds by command,
    `what` says what is merged."""

    what: str
    tree: str
    onto: str
    sealed: str
    wanted: Sequence[str]
    by_receipt: Sequence[str]
    known: Sequence[str]
    timeouts: Mapping[str, int]


def judge(context: Context, question: Question, place: Callable[[], Path], setup: Sequence[str], log: Path) -> Gate:
    """Run what is still unproved. `place` gives the detached integration worktree, made only if something must run."""
    checks: list[dict[str, Any]] = [
        {"command": command, "exit_code": 0, "proof": "receipt" if command in question.by_receipt else "earlier"}
        for command in (*question.by_receipt, *(item for item in question.known if item not in question.by_receipt))
    ]
    ran: list[str] = []
    failed = None
    if question.wanted:
        path = place()
        commit = repo.commit_tree(path, question.tree, (question.onto, question.sealed), f"{integration.UNDER_TEST}\n")
        worktree.checkout_detached(path, commit)
        failed = _set_up(context, path, setup, log)
    for number, command in enumerate(question.wanted if failed is None else (), 1):
        context.progress(f"merging {question.what}: {command}")
        here = log.with_name(f"{log.stem}-gate-{number}.log")
        run = process.run_check(command, cwd=context.inside(path), log=here, timeout=question.timeouts[command])
        checks.append(
            {
                "command": command,
                "exit_code": run.exit_code,
                "proof": "gate",
                "duration": round(run.duration, 3),
                "output_digest": run.output_digest,
            }
        )
        if not run.passed:
            said = shorten(process.tail(here), 300)
            failed = f"`{command}` is red on the merged tree (log {here})" + (f": {said}" if said else "")
            break
        ran.append(command)
    if ran and failed is None and (edited := repo.against_head(path)[1]):
        failed = f"the checks changed tracked files on the merged tree: {named(edited)}"
    record = integration.gate_record(question.tree, question.onto, checks)
    return Gate(record, failed, tuple(ran), tuple(question.by_receipt))


def _set_up(context: Context, path: Path, setup: Sequence[str], log: Path) -> str | None:
    result = provision(context.project.root, context.inside(path), context.config, setup, log)
    return f"the set-up `{result.failed}` failed on the merged tree (log {result.log})" if result.failed else None
