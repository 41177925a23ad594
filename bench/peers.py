"""Other tools with a list of tasks, asked what is next or how things stand: the same plan for each, in one run."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from bench.measure import Cost, Row, at_most, child, in_turns, milliseconds, ratio
from bench.scene import BATON, Settings, git, project, tasks_text

NPM = ("task-master-ai", "backlog.md", "@fission-ai/openspec")
PYPI = ("mergetrain",)


def install(folder: Path) -> None:
    """Put all peers into a new folder, through npm and pip."""
    folder.mkdir(parents=True)
    npm = ["npm", "install", "--prefix", folder, "--ignore-scripts", "--no-audit", "--no-fund", *NPM]
    python = folder / "venv" / "bin" / "python"
    for command in (
        npm,
        [sys.executable, "-m", "venv", folder / "venv"],
        [python, "-m", "pip", "install", "-q", *PYPI],
    ):
        done = subprocess.run([str(word) for word in command], stdout=subprocess.DEVNULL, check=False)
        if done.returncode:
            sys.stderr.write(f"bench: {command[0]} ended with {done.returncode}, so some peers are missing\n")


def peers(settings: Settings) -> Iterator[Row]:
    """Baton's `status --json` against each peer's nearest command; all open tasks, none depends on another."""
    folder = settings.peers
    if folder is None:
        sys.stderr.write("bench: no --peers DIR, so no peer is measured\n")
        return
    if not folder.exists():
        install(folder)
    for tasks in (100, 1000):
        root = project(settings.place("peers"), {"grow": tasks_text(tasks)})
        for name, (program, words, scene) in PEERS.items():
            path = next((path for path in _places(folder, program) if path.exists()), None)
            if path is None:
                sys.stderr.write(f"bench: {name} is not in {folder}\n")
                continue
            try:
                scene(root, tasks, path)
                yield _against(settings, root, tasks, name, [path, *words])
            except (RuntimeError, OSError, subprocess.CalledProcessError) as error:
                sys.stderr.write(f"bench: {name} cannot be measured: {str(error)[-300:]}\n")


def _places(folder: Path, program: str) -> Iterator[Path]:
    yield folder / "node_modules" / ".bin" / program
    yield folder / "venv" / "bin" / program


def _against(settings: Settings, root: Path, tasks: int, name: str, command: Sequence[str | Path]) -> Row:
    def peer() -> Cost:
        return child(command, root)

    peer()
    taken = in_turns({"baton": lambda: child((*BATON, "status", "--json"), root), "peer": peer}, settings.rounds(9))
    wall, cpu = ratio(taken["baton"], taken["peer"])
    memory = [statistics.median(cost.memory for cost in taken[who]) / 2**20 for who in ("baton", "peer")]
    note = f"{milliseconds(taken['baton'])} against {milliseconds(taken['peer'])}, {memory[0]:.0f} against {memory[1]:.0f} MiB"
    return at_most(Row("peers", f"status, {tasks:,} tasks / {name}", wall, "x", cpu=cpu, note=note), 1)


def _task_master(root: Path, tasks: int, _path: Path) -> None:
    place = root / ".taskmaster" / "tasks"
    place.mkdir(parents=True)
    listed = [
        {
            "id": number,
            "title": f"Write the module number {number}",
            "description": "and the test for it",
            "status": "pending",
            "dependencies": [],
            "priority": "medium",
            "details": "",
            "testStrategy": "",
            "subtasks": [],
        }
        for number in range(1, tasks + 1)
    ]
    (place / "tasks.json").write_text(json.dumps({"master": {"tasks": listed, "metadata": {}}}))


def _backlog(root: Path, tasks: int, path: Path) -> None:
    words = ("init", "bench", "--defaults", "--integration-mode", "none")
    subprocess.run([path, *words], cwd=root, stdin=subprocess.DEVNULL, capture_output=True, check=True)
    place = root / "backlog" / "tasks"
    place.mkdir(parents=True, exist_ok=True)
    for number in range(1, tasks + 1):
        head = f"id: task-{number}\ntitle: Write the module number {number}\nstatus: To Do\nassignee: []\n"
        head += "created_date: '2026-01-01'\nlabels: []\ndependencies: []\n"
        text = f"---\n{head}---\n\n## Description\n\nand the test for it\n"
        (place / f"task-{number} - Write-the-module-number-{number}.md").write_text(text)
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "backlog")


def _openspec(_root: Path, _tasks: int, _path: Path) -> None:
    """It reads the same plan as Baton."""


def _mergetrain(root: Path, _tasks: int, _path: Path) -> None:
    """It has a queue of branches instead of tasks: that of a fresh repository, empty, which is its best case."""
    os.environ.setdefault("MERGETRAIN_HOME", str(root / ".mergetrain"))


Scene = Callable[[Path, int, Path], None]
PEERS: dict[str, tuple[str, tuple[str, ...], Scene]] = {  # name -> program, its words, what it finds in the project
    "task-master next": ("task-master", ("next",), _task_master),
    "backlog task list --ready": ("backlog", ("task", "list", "--ready", "--plain"), _backlog),
    "openspec list": ("openspec", ("list",), _openspec),
    "mergetrain status --json": ("mergetrain", ("status", "--json"), _mergetrain),
}
