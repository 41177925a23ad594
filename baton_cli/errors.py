"""The one error type. Every refusal a user can meet is a `BatonError`; anything else is a bug in Baton."""

from __future__ import annotations

REFUSED = 1
USAGE = 2
BUG = 3
INTERRUPTED = 130


class BatonError(Exception):
    """A refusal with a stable `code` (snake_case), one line of `message` (what, where) and one line of `hint` (what to do)."""

    def __init__(self, code: str, message: str, hint: str = "", exit_code: int = REFUSED) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.exit_code = exit_code

    def value(self) -> dict[str, str]:
        """The error as JSON answers carry it."""
        return {"code": self.code, "message": self.message, "hint": self.hint}

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"
