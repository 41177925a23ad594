"""What `doctor` found: one line each, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

SCHEMA = "baton.doctor/1"
OK, NOTE, WARNING, ERROR = "ok", "note", "warning", "error"
PROVES = (
    "A receipt proves that the checks passed on a commit, in a run of Baton's own. It does not prove that they check"
    " enough, nor does it hold against a hostile worker on this machine, who can write what Baton can write."
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding; `fix` is empty where nothing has to be done. `repaired`: it was, just now."""

    level: str
    code: str
    message: str
    fix: str = ""
    repaired: bool = False


def answer(project: str, findings: Sequence[Finding]) -> dict[str, Any]:
    """The findings as `baton.doctor/1`; `healthy` when no error is left."""
    return {
        "schema": SCHEMA,
        "project": project,
        "healthy": all(found.level != ERROR or found.repaired for found in findings),
        "findings": [{name: getattr(found, name) for name in Finding.__slots__} for found in findings],
        "proves": PROVES,
    }
