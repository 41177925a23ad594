"""Counts of the long tests, kept so that their sums can be told: name, how much was tried, how much of it went wrong.

Where `BATON_FIGURES` names a folder, each process that tests adds lines of JSON to a file of its own there. Run as a
program with that folder, this prints the sums.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

# Read when tests are collected: their environment is emptied of BATON_* later.
FOLDER = os.environ.get("BATON_FIGURES")
CASES = {
    "test_faults.py": "faults",
    "test_shapes.py": "repository shapes",
    "test_races.py": "race cases",
    "test_corpus.py": "corpus cases",
}


def add(name: str, tried: int, wrong: int) -> None:
    """Keep one count, if anybody wants to know."""
    if FOLDER:
        with open(Path(FOLDER) / f"{os.getpid()}.jsonl", "a", encoding="utf-8") as file:
            file.write(json.dumps({"name": name, "tried": tried, "wrong": wrong}) + "\n")


def of_test(nodeid: str, statistics: str, failed: bool) -> None:
    """Keep what one test stands for: a case of its kind, and the examples that hypothesis made (`statistics` is its text)."""
    for part, name in CASES.items():
        if part in nodeid:
            add(name, 1, int(failed))
    examples = sum(map(int, re.findall(r"(\d+) (?:passing|failing|invalid)", statistics)))
    if examples:
        add("fuzz examples", examples, int(failed))


def sums(folder: Path) -> dict[str, tuple[int, int]]:
    """name -> (tried, wrong), sorted by name."""
    found: dict[str, tuple[int, int]] = {}
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            value = json.loads(line)
            tried, wrong = found.get(value["name"], (0, 0))
            found[value["name"]] = (tried + value["tried"], wrong + value["wrong"])
    return dict(sorted(found.items()))


if __name__ == "__main__":
    for name, (tried, wrong) in sums(Path(sys.argv[1])).items():
        print(f"{name:<32} {tried:>7} tried {wrong:>5} wrong")
