"""The heart of a seal: a committed, clean head that passes the packet's checks, wherever it is checked out."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import baton_cli
from baton_cli import process
from baton_cli.core import prompt
from baton_cli.core.globs import matching
from baton_cli.core.listing import named
from baton_cli.errors import BatonError
from baton_cli.git import repo
from baton_cli.git.run import version


@dataclass(frozen=True, slots=True)
class Proof:
    """What was proved: the head, the files it changes, how clean the place was, and each check's record."""

    head: str
    changed: tuple[str, ...]
    state: repo.Cleanliness
    ran: tuple[Mapping[str, Any], ...]


def versions() -> dict[str, str]:
    """The programs that took part."""
    return {
        "baton": baton_cli.__version__,
        "git": ".".join(map(str, version())),
        "python": platform.python_version(),
    }


def prove(
    path: Path,
    cwd: Path,
    packet: Mapping[str, Any],
    compared: str,
    head: str,
    *,
    allow_empty: bool,
    log: Path,
    tell: Callable[[str], None],
) -> Proof:
    """Prove the checkout at `path`, whose HEAD is `head`; its checks run in `cwd`. The first thing wrong is raised.

    `tell` hears of each check before it runs.
    """
    changed = repo.changed_paths(path, compared, head)
    if not changed and not allow_empty:
        raise BatonError(
            "nothing_changed",
            f"{packet['branch']} changes no file",
            "do the task and commit it; an operator may seal an empty change",
        )
    _unprotected(packet, changed)
    state = _clean(path)
    ran = run_checks(cwd, packet["checks"], log, tell)
    now, edited = repo.against_head(path)
    if (now, edited) != (head, ()):
        raise BatonError(
            "checks_changed_files",
            f"the checks changed tracked files: {named(edited)}" if edited else f"the checks moved HEAD to {now[:12]}",
            "make the checks leave the tree alone, or commit what they write",
        )
    return Proof(head, changed, state, tuple(ran))


def _unprotected(packet: Mapping[str, Any], changed: Sequence[str]) -> None:
    touched = matching(changed, packet["protected"])
    if touched:
        raise BatonError(
            "protected_path",
            f"the branch changes {named(touched)}",
            "take that change out of the branch: Baton ticks tasks.md itself",
        )


def _clean(path: Path) -> repo.Cleanliness:
    state = repo.cleanliness(path)
    dirty = (*state.changed, *state.untracked)
    if dirty:
        raise BatonError(
            "dirty_worktree",
            f"not committed: {named(dirty, 8)}",
            "commit these files (or delete or .gitignore what does not belong), then seal again",
        )
    return state


def run_checks(
    cwd: Path, checks: Sequence[Mapping[str, Any]], log: Path, tell: Callable[[str], None]
) -> list[dict[str, Any]]:
    """Run checks one after another; their records. Error: `check_failed`, with the end of the log in the hint."""
    ran = []
    for number, check in enumerate(checks, 1):
        tell(check["command"])
        here = log.with_name(f"{log.name}-check-{number}.log")
        run = process.run_check(check["command"], cwd=cwd, log=here, timeout=check["timeout"])
        if not run.passed:
            how = {"timeout": f"took longer than {check['timeout']} s", "not_found": "was not found"}.get(
                run.reason or "", f"exited with {run.exit_code}" if run.exit_code is not None else "was killed"
            )
            raise BatonError(
                "check_failed",
                f"`{check['command']}` {how} (log {here})",
                "make it pass, commit, seal again."
                + (f" It said: {said}" if (said := prompt.shorten(process.tail(here), 400)) else ""),
            )
        ran.append(
            {
                "command": run.command,
                "exit_code": run.exit_code,
                "duration": round(run.duration, 3),
                "output_digest": run.output_digest,
            }
        )
    return ran
