"""What reaches a person names Baton as that person calls it."""

from __future__ import annotations

from pathlib import Path

import pytest

from baton_cli import output
from baton_cli.errors import BatonError


@pytest.fixture
def called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("BATON_LAUNCHER", str(tmp_path / "baton"))
    monkeypatch.delenv("BATON_PYTHON", raising=False)
    monkeypatch.chdir(tmp_path)
    return "./baton"


def test_a_call_in_a_message_can_be_typed(called: str, capsys: pytest.CaptureFixture[str]) -> None:
    output.report(BatonError("x", "no such ticket", "see `baton plan CHANGE`, or `batons`"), json_mode=False)
    assert capsys.readouterr().err == f"error: no such ticket\nhint: see `{called} plan CHANGE`, or `batons`\n"
    output.emit({}, json_mode=False, text="see `baton status`")
    assert capsys.readouterr().out == f"see `{called} status`\n"


def test_json_says_it_as_it_is(called: str, capsys: pytest.CaptureFixture[str]) -> None:
    output.report(BatonError("x", "m", "see `baton plan`"), json_mode=True)
    output.emit({"next": "see `baton plan`"}, json_mode=True, text="")
    assert capsys.readouterr().out.count("`baton plan`") == 2
