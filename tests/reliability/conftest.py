"""What long tests share."""

from __future__ import annotations

import pytest

from baton_cli.git import run as git_run


@pytest.fixture
def swift_git(monkeypatch: pytest.MonkeyPatch) -> None:
    """Call git as on a system without `sh`: the same calls, three times as fast. Processes of their own do it properly."""
    monkeypatch.setattr(git_run, "_execute", git_run._execute_windows)
