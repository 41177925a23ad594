"""The sums that a full regression run tells."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests import figures


def test_counts_of_all_processes_are_summed_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "FOLDER", str(tmp_path))
    figures.add("kill seal", 7, 0)
    figures.add("race", 200, 1)
    (tmp_path / "other.jsonl").write_text('{"name": "kill seal", "tried": 5, "wrong": 2}\n')
    assert figures.sums(tmp_path) == {"kill seal": (12, 2), "race": (200, 1)}
    done = subprocess.run([sys.executable, figures.__file__, tmp_path], capture_output=True, text=True, check=True)
    assert [line.split() for line in done.stdout.splitlines()] == [
        ["kill", "seal", "12", "tried", "2", "wrong"],
        ["race", "200", "tried", "1", "wrong"],
    ]


def test_nothing_is_written_when_nobody_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(figures, "FOLDER", None)
    figures.add("race", 1, 0)
    assert not list(tmp_path.iterdir())


def test_a_test_counts_as_a_case_and_by_its_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "FOLDER", str(tmp_path))
    said = (
        "  - during generate phase (0.1 seconds):\n    - 95 passing examples, 2 failing examples, 3 invalid examples\n"
    )
    figures.of_test("tests/core/test_tasks.py::test_any", said, failed=True)
    figures.of_test("tests/reliability/test_faults.py::test_one", "", failed=False)
    figures.of_test("tests/core/test_names.py::test_plain", "", failed=True)
    assert figures.sums(tmp_path) == {"faults": (1, 0), "fuzz examples": (100, 1)}
