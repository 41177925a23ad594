"""The benchmark runs, says what it was run on but not on which machine, and knows every row. No time is judged here."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from pathlib import Path

from bench.__main__ import line, rows
from bench.measure import Cost, Row, at_most, call, child, exactly, in_turns, ratio
from tests.conftest import ROOT
from tests.test_layers import too_long

ROWS = "start modules growth actions integrate claims plan parse board mcp locks peers"


def bench(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "bench", *words], cwd=ROOT, capture_output=True, text=True)


def test_rows_can_be_chosen_and_are_written_as_json(tmp_path: Path) -> None:
    done = bench("modules", "--quick", "--json", str(tmp_path / "out.json"), "--tmp", str(tmp_path))
    assert done.returncode == 0, done.stderr
    value = json.loads((tmp_path / "out.json").read_text())
    assert value["schema"] == "baton.bench/1"
    assert {row["name"] for row in value["rows"]} == {"modules"}
    assert value["rows"][0]["goal"] == "= 0"
    assert {"kernel", "cores", "python", "git"} <= value["machine"].keys()
    assert platform.node() not in value["machine"].values()
    assert "needless packages" in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"], "the repositories are removed"


def test_every_row_has_its_name_and_a_wrong_one_is_refused() -> None:
    assert list(rows()) == ROWS.split()
    assert bench("nonsense").returncode == 2


def test_a_row_says_whether_its_goal_is_met() -> None:
    row = Row("start", "status / NOOP", 1.4, "x")
    assert line(row).split()[-2:] == ["1.4", "x"]
    assert "MISSED" in line(at_most(row, 1.35))
    assert "met" in line(at_most(row, 1.4))
    assert exactly(row, 1.4).met is True
    assert exactly(row, 1.0).met is False


def test_contestants_take_turns_and_ratios_are_taken_round_by_round() -> None:
    order: list[str] = []

    left = {"a": [2.0, 30.0, 4.0], "b": [1.0, 10.0, 2.0]}

    def turn(name: str) -> Cost:
        order.append(name)
        return Cost(left[name].pop(0), 1.0)

    taken = in_turns({"a": lambda: turn("a"), "b": lambda: turn("b")}, 3)
    assert order == ["a", "b", "b", "a", "a", "b"]
    assert ratio(taken["a"], taken["b"]) == (2.0, 1.0)


def test_a_child_tells_its_memory_and_the_cpu_time_of_what_it_waited_for(tmp_path: Path) -> None:
    burn = "import time\nwhile time.process_time() < 0.2: pass"
    cost = child(
        [sys.executable, "-c", f"import subprocess, sys; subprocess.run([sys.executable, '-c', {burn!r}])"], tmp_path
    )
    assert cost.cpu >= 0.2
    assert cost.memory > 2**20
    assert call(lambda: None).memory == 0


def test_files_and_functions_are_short() -> None:
    assert not [wrong for path in sorted((ROOT / "bench").glob("*.py")) for wrong in too_long(path)]
