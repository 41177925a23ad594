"""The one error type. Every refusal a user can meet is a `BatonError`; anything else is a bug in Baton."""

from __future__ import annotations

import errno

REFUSED = 1
USAGE = 2
BUG = 3
INTERRUPTED = 130
# The machine failed: that is no verdict on the work, and no state may change because of it.
MACHINE = frozenset(
    {
        "file_unusable", "git_failed", "git_missing", "git_timeout", "git_too_old", "lock_unusable", "log_unwritable",
        "no_process", "store_corrupt", "store_newer", "store_unusable",
    }
)  # fmt: skip
_SPACE = "free some disk space, or raise the limit, then run the same command again"
_RIGHTS = "check who owns it and what its mode is, then run the same command again"
_FILES = "close some programs, then run the same command again"
# What the system refuses for reasons of its own. Anything else that it refuses is a bug of ours.
_SYSTEM = {
    errno.ENOSPC: _SPACE, errno.EDQUOT: _SPACE, errno.EFBIG: _SPACE, errno.EACCES: _RIGHTS, errno.EPERM: _RIGHTS,
    errno.EROFS: _RIGHTS, errno.EMFILE: _FILES, errno.ENFILE: _FILES, errno.ENOMEM: _FILES,
    errno.EIO: "the disk fails: look at the system's log",
    errno.ENAMETOOLONG: "use shorter names, or another [worktree] root in baton.toml",
}  # fmt: skip


class BatonError(Exception):
    """A refusal with a stable `code` (snake_case), one line of `message` (what, where) and one line of `hint` (what to do)."""

    def __init__(self, code: str, message: str, hint: str = "", exit_code: int = REFUSED) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.exit_code = exit_code

    @property
    def verdict(self) -> bool:
        """Whether this says something about the work, not about the machine that looked at it."""
        return self.code not in MACHINE

    def value(self) -> dict[str, str]:
        """The error as JSON answers carry it."""
        return {"code": self.code, "message": self.message, "hint": self.hint}

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


def of_system(error: OSError) -> BatonError | None:
    """`file_unusable`, for what the system refused (no space, no right, a disk that fails); None for anything else."""
    hint = _SYSTEM.get(error.errno or 0)
    if hint is None:
        return None
    where = next((str(name) for name in (error.filename2, error.filename) if isinstance(name, str) and name), "a file")
    return BatonError("file_unusable", f"{where} cannot be read or written: {error.strerror}", hint)
