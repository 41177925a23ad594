"""Random names. Claim tokens are secrets; marks only keep names apart."""

from __future__ import annotations

import secrets


def new_token() -> str:
    """A claim token: 128 random bits."""
    return secrets.token_urlsafe(16)


def new_mark() -> str:
    """What keeps the branch, worktree and id of an assignment apart from all others."""
    return secrets.token_hex(4)


def new_session() -> str:
    """A session id for a caller that has none."""
    return f"s-{secrets.token_hex(4)}"
