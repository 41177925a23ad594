"""A throwaway project with a change, driven as a session drives it: what the protocol tests are written in."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from baton_cli import context as contexts
from baton_cli import project as projects
from baton_cli.controller import SessionController
from baton_cli.core.lifecycle import Terminal
from baton_cli.core.receipt import Authority
from baton_cli.observer import Observer
from baton_cli.operator import Operator
from tests.conftest import ROOT, run_git, write_files

TASKS = """\
## 1. Ground

- [ ] 1.1 Lay the first stone
- [ ] 1.2 Lay the second stone

## 2. Walls

- [ ] 2.1 Raise the wall
"""
CHECK = '[verify]\ncommands = ["test -f README"]\n'
MAIN = ROOT / "baton_cli" / "__main__.py"


@dataclass
class Clock:
    """Time that moves only when told to. Seconds since the epoch; starts at the real time, which git also uses."""

    seconds: float

    def __call__(self) -> float:
        return self.seconds


@dataclass
class World:
    """A project, its one change, and the time."""

    root: Path
    change: str = "grow"
    clock: Clock = field(default_factory=lambda: Clock(1_900_000_000.0))

    @property
    def tasks(self) -> Path:
        return self.root / "openspec" / "changes" / self.change / "tasks.md"

    @property
    def project(self) -> projects.Project:
        return projects.find(self.root)

    @contextmanager
    def controller(self) -> Iterator[SessionController]:
        with contexts.opened(self.project, create=True, clock=self.clock) as surroundings:
            yield SessionController(surroundings)

    def actions(self, session: str = "s1", capacity: int = 5, take_over: str | None = None) -> dict[str, Any]:
        with self.controller() as controls:
            return controls.actions(self.change, session, capacity, take_over)

    def bind(self, action: Mapping[str, Any], agent: str) -> dict[str, Any]:
        with self.controller() as controls:
            return controls.bind(action["assignment_id"], action["claim_token"], agent)

    def seal(self, action: Mapping[str, Any]) -> dict[str, Any]:
        with self.controller() as controls:
            return controls.seal(action["assignment_id"], Authority("key", key=seal_key(action)))

    def reconcile(self, action: Mapping[str, Any], terminal: str = "completed", **more: Any) -> dict[str, Any]:
        with self.controller() as controls:
            return controls.reconcile(action["assignment_id"], action["claim_token"], Terminal(terminal), **more)

    def decide(self, ticket: str, decision: str, why: str | None = "because") -> dict[str, Any]:
        with contexts.opened(self.project, create=True, clock=self.clock) as surroundings:
            return Operator(surroundings).decide(self.change, ticket, decision, why)

    def status(self) -> dict[str, Any]:
        with contexts.opened(self.project, create=False, clock=self.clock) as surroundings:
            answer: dict[str, Any] = Observer(surroundings).status(self.change)["changes"][0]
            return answer

    def ticket(self, name: str) -> dict[str, Any]:
        """One ticket as `status` shows it."""
        found = [item for section in self.status()["sections"] for item in section["tickets"]]
        return next(item for item in found if name in (item["id"], item["key"]))

    def work(self, action: Mapping[str, Any], files: Mapping[str, str | bytes] | None = None) -> str:
        """Do the task: write the files and commit them on the assignment's branch. The new head."""
        place = Path(action["cwd"])
        write_files(place, files if files is not None else {f"{action['ticket'].rpartition('#')[2]}.txt": "done\n"})
        run_git(place, "add", "-A")
        run_git(place, "commit", "-q", "-m", f"work on {action['ticket']}")
        return run_git(place, "rev-parse", "HEAD")

    def finish(self, action: Mapping[str, Any], files: Mapping[str, str | bytes] | None = None) -> dict[str, Any]:
        """The whole life of a good agent: bind, work, seal, reconcile."""
        self.bind(action, f"agent-{action['assignment_id']}")
        self.work(action, files)
        self.seal(action)
        return self.reconcile(action)

    def run_to_end(self, session: str = "s1", most: int = 50) -> dict[str, Any]:
        """Good agents until nothing is handed out any more."""
        for _ in range(most):
            answer = self.actions(session)
            handed = hand_outs(answer)
            if not handed:
                return answer
            for action in handed:
                self.finish(action)
        raise AssertionError(f"not at an end after {most} rounds")

    @property
    def integration(self) -> str:
        return f"baton/{self.change}/integration"


def make_world(
    root: Path,
    tasks: str | bytes = TASKS,
    *,
    change: str = "grow",
    config: str | None = CHECK,
    files: Mapping[str, str] | None = None,
) -> World:
    """A repository at `root` with one change, its tasks file committed."""
    root.mkdir(parents=True, exist_ok=True)
    run_git(root, "init", "-q", "-b", "main")
    contents: dict[str, str | bytes] = {"README": "ground\n", **(files or {})}
    contents[f"openspec/changes/{change}/tasks.md"] = tasks
    contents[f"openspec/changes/{change}/proposal.md"] = "# Why\n\nTo see it grow.\n"
    if config is not None:
        contents["baton.toml"] = config
    write_files(root, contents)
    run_git(root, "add", "-A")
    run_git(root, "commit", "-q", "-m", "begin")
    return World(root, change)


def hand_outs(answer: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The actions of an answer that go to agents."""
    return [item for item in answer["actions"] if item["kind"] in ("dispatch", "recover", "resolve_merge")]


def only(answer: Mapping[str, Any]) -> dict[str, Any]:
    """The single action of an answer."""
    assert len(answer["actions"]) == 1, answer["actions"]
    action: dict[str, Any] = answer["actions"][0]
    return action


def seal_command(action: Mapping[str, Any]) -> list[str]:
    """The seal command, which stands on a line of its own in the prompt."""
    lines = [line for line in action["prompt"].split("\n") if " seal " in line and " --key " in line]
    assert len(lines) == 1, action["prompt"]
    return shlex.split(lines[0])


def seal_key(action: Mapping[str, Any]) -> str:
    return seal_command(action)[-1]


def baton(
    root: Path, *words: str, input: str | None = None, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """The real command line as a process of its own, from this source tree."""
    return subprocess.run(
        [sys.executable, str(MAIN), *words],
        cwd=cwd or root,
        input=input or "",
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, **(env or {})},
        timeout=240,
        check=False,
    )


def baton_json(root: Path, *words: str, input: str | None = None, code: int = 0) -> Any:
    """One verb with --json; its parsed answer."""
    done = baton(root, *words, "--json", input=input)
    assert done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
    assert done.stdout.count("\n") == 1, done.stdout
    return json.loads(done.stdout)


def kinds(answer: Mapping[str, Any]) -> list[str]:
    return [item["kind"] for item in answer["actions"]]


def names(actions: Sequence[Mapping[str, Any]]) -> list[str]:
    """The short ids of the actions' tickets."""
    return [item["ticket"].rpartition("#")[2] for item in actions]
