"""How Baton is called again: what stands in prompts, remedies and the environment of agents."""

from __future__ import annotations

import pytest

from baton_cli.context import launcher


def test_the_launcher_goes_by_its_own_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BATON_LAUNCHER", "/opt/baton/baton")
    assert launcher() == ("/opt/baton/baton",)


def test_a_python_that_was_named_is_named_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BATON_LAUNCHER", "/opt/baton/baton")
    monkeypatch.setenv("BATON_PYTHON", "/opt/python/bin/python3")
    assert launcher() == ("/opt/python/bin/python3", "/opt/baton/baton")
