"""What every git call is given: settings and environment that neither a repository nor a caller can change."""

from __future__ import annotations

import os
from collections.abc import Mapping

CONFIG = (
    f"core.hooksPath={os.devnull}",
    "core.fsmonitor=false",
    "core.pager=cat",
    "core.editor=:",
    "core.askPass=",
    "core.quotePath=false",
    "core.ignoreStat=false",
    "color.ui=false",
    "commit.gpgSign=false",
    "log.showSignature=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "i18n.commitEncoding=UTF-8",
    "i18n.logOutputEncoding=UTF-8",
    "protocol.ext.allow=never",
    "submodule.recurse=false",
    # `worktree remove` asks `status`; a user who hides untracked files there must not lose them
    "status.showUntrackedFiles=normal",
)
ENVIRONMENT = {
    "LC_ALL": "C",
    "LANGUAGE": "",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": ":",
    "GIT_SEQUENCE_EDITOR": ":",
    "GIT_MERGE_AUTOEDIT": "no",
    "GIT_ASKPASS": "",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",  # a plain `git status` would rewrite the user's index
    "GIT_NO_REPLACE_OBJECTS": "1",  # refs/replace would show other commits than the ones that were sealed
}
HINTS = (
    ("dubious ownership", "the repository belongs to another user: git config --global --add safe.directory DIRECTORY"),
    ("No space left", "free some disk space, then run the same command again"),
    (".lock': File exists", "another git process is at work there, or died there: wait, or remove that .lock file"),
    ("Permission denied", "check who owns the files of the repository"),
)


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a git call: the user's without any GIT_*, ours, and what the call itself adds."""
    kept = {name: value for name, value in os.environ.items() if not name.upper().startswith("GIT_")}
    return {**kept, **ENVIRONMENT, **(extra or {})}


def hint(stderr: str) -> str:
    """What to do about a failure that is known by what git said; empty when it is not."""
    return next((hint for symptom, hint in HINTS if symptom in stderr), "")


def reason(code: int, err: str) -> str:
    """What a call that failed says of it: the first line that is an error, else the first, else how git ended."""
    lines = [line.strip() for line in err.splitlines() if line.strip()]
    telling = [line for line in lines if line.startswith(("fatal:", "error:"))]
    if telling or lines:
        return (telling or lines)[0]
    return f"ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
