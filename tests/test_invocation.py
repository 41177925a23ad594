"""How Baton is called again: what stands in prompts, remedies and the environment of agents."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from baton_cli.invocation import launcher, typed


def test_the_launcher_goes_by_its_own_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BATON_LAUNCHER", "/opt/baton/baton")
    assert launcher() == ("/opt/baton/baton",)


def test_a_python_that_was_named_is_named_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BATON_LAUNCHER", "/opt/baton/baton")
    monkeypatch.setenv("BATON_PYTHON", "/opt/python/bin/python3")
    assert launcher() == ("/opt/python/bin/python3", "/opt/baton/baton")


def test_a_person_types_less(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    for folder in (here, elsewhere):
        folder.mkdir()
    program = here / "baton"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(elsewhere))
    monkeypatch.chdir(elsewhere)
    assert typed((str(program),)) == (str(program),)
    monkeypatch.chdir(here)
    assert typed((str(program),)) == ("./baton",)
    (elsewhere / "baton").symlink_to(program)
    assert typed((str(program),)) == ("baton",)
    assert typed((sys.executable, str(program))) == (sys.executable, str(program))
    assert typed((str(here / "gone"),)) == (str(here / "gone"),)
