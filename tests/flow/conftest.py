"""The flows make thousands of git calls in this process."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _swift(swift_git: None) -> None:
    """All of them use it."""
