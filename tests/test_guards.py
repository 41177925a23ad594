"""What can be counted instead of timed: modules of a start, git calls of a verb, SQL statements as a plan grows."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from baton_cli import cli
from baton_cli import context as contexts
from baton_cli.controller import SessionController
from baton_cli.core.lifecycle import Terminal
from baton_cli.errors import BatonError
from baton_cli.observer import Observer
from tests.conftest import ROOT
from tests.kit import World, baton, hand_outs, make_world, only

# What `status --json` needs none of. (Typer itself brings subprocess, so that cannot be kept out.)
NEEDLESS = {
    *("rich", "sh", "mcp", "jinja2", "portalocker", "pydantic", "yaml", "click", "hypothesis", "pytest", "anyio"),
    *(
        "asyncio",
        "logging",
        "secrets",
        "http",
        "email",
        "ssl",
        "concurrent",
        "multiprocessing",
        "unittest",
        "webbrowser",
    ),
}
RECONCILE_CALLS = 15  # of one ticket that integrates at once: its ending, the merge, the removal of its worktree
OF_THE_PROTOCOL = {"controller", "operator", "finisher", "process", "provision", "git", "drive", "demo", "views"}


def tasks(tickets: int) -> str:
    return "## 1. A\n\n" + "".join(f"- [ ] 1.{number} Do the part {number}\n" for number in range(1, tickets + 1))


def loaded_after(cwd: Path, *words: str) -> set[str]:
    """The modules in memory after a verb, in a process of its own."""
    code = (
        f"import sys, io; sys.path.insert(0, {str(ROOT)!r}); out = sys.stdout; sys.stdout = io.StringIO()\n"
        f"from baton_cli.main import run\ncode = run({list(words)!r})\nout.write(' '.join([str(code), *sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], cwd=cwd, capture_output=True, text=True, check=True)
    code_of_exit, *names = done.stdout.split()
    assert code_of_exit == "0"
    return set(names)


def test_status_loads_nothing_that_it_does_not_need(tmp_path: Path) -> None:
    world = make_world(tmp_path / "app")
    world.actions()  # with a store to read, and a ticket in work
    names = loaded_after(world.root, "status", "--json")
    assert not NEEDLESS & {name.partition(".")[0] for name in names}
    assert not OF_THE_PROTOCOL & {name.split(".")[1] for name in names if name.startswith("baton_cli.")}
    assert "baton_cli.observer" in names


def test_a_look_at_a_project_that_was_never_run_does_without_openssl(tmp_path: Path) -> None:
    world = make_world(tmp_path / "app")
    assert not {"hashlib", "_hashlib", "dataclasses"} & loaded_after(world.root, "status", "--json")


@pytest.fixture
def git_calls(tmp_path: Path) -> Iterator[Callable[[], list[str]]]:
    """Puts a `git` in front of the real one that notes its words; gives what was asked since it was last asked."""
    real, place = shutil.which("git"), tmp_path / "counting"
    place.mkdir()
    log = place / "calls"
    program = place / "git"
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" | tr "\\n" " " >> {log}\necho >> {log}\nexec {real} "$@"\n')
    program.chmod(0o755)
    log.write_text("")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{place}{os.pathsep}{os.environ['PATH']}")

        def taken() -> list[str]:
            lines = log.read_text().splitlines()
            log.write_text("")
            return [line.rpartition(" -c ")[2].partition(" ")[2] for line in lines]  # without the fixed settings

        yield taken


def test_looking_asks_git_nothing(tmp_path: Path, git_calls: Callable[[], list[str]]) -> None:
    world = make_world(tmp_path / "app", tasks(3))
    world.finish(hand_outs(world.actions(capacity=2))[0])
    git_calls()
    for words in (["status"], ["status", "--json"], ["board"], ["plan", "grow"], ["log"], ["explain", "1.2"]):
        assert baton(world.root, *words).returncode == 0
        assert git_calls() == [], words
    baton(world.root, "actions", "grow", "--session", "other")
    assert git_calls(), "the counting program is not in use"


@pytest.mark.parametrize("tickets", [1, 3, 5])
def test_handing_out_takes_few_git_calls(tmp_path: Path, git_calls: Callable[[], list[str]], tickets: int) -> None:
    world = make_world(tmp_path / "app", tasks(6))
    git_calls()
    first = world.actions(capacity=tickets)
    assert len(hand_outs(first)) == tickets
    calls = git_calls()
    assert len(calls) <= 7 + tickets, "\n".join(calls)


@pytest.mark.parametrize("tickets", [5, 200])
def test_one_integration_takes_as_many_git_calls_whatever_the_size(
    tmp_path: Path, git_calls: Callable[[], list[str]], tickets: int
) -> None:
    world = make_world(tmp_path / "app", tasks(tickets))
    action = only(world.actions(capacity=1))
    world.work(action)
    world.seal(action)
    git_calls()
    assert world.reconcile(action)["state"] == "integrated"
    calls = git_calls()
    assert len(calls) <= RECONCILE_CALLS, "\n".join(calls)


@contextmanager
def statements(world: World) -> Iterator[tuple[contexts.Context, list[str]]]:
    """An open context, and every SQL statement that it runs."""
    with contexts.opened(world.project, create=True, clock=world.clock) as surroundings:
        seen: list[str] = []
        surroundings.store._connection.set_trace_callback(seen.append)
        yield surroundings, seen


def counts(world: World) -> dict[str, int]:
    """How many statements each verb runs, with one ticket on its way."""
    action = only(world.actions(capacity=1))
    found: dict[str, int] = {}

    def count(verb: str, work: Callable[[contexts.Context], Any]) -> None:
        with statements(world) as (surroundings, seen):
            work(surroundings)
        found[verb] = len(seen)

    count("status", lambda surroundings: Observer(surroundings).status())
    count("explain", lambda surroundings: Observer(surroundings).explain("grow", "1.1"))
    count("board", lambda surroundings: Observer(surroundings).board())
    count("actions again", lambda surroundings: SessionController(surroundings).actions("grow", "s1", 1))
    world.work(action)
    world.seal(action)
    count(
        "reconcile",
        lambda surroundings: SessionController(surroundings).reconcile(
            action["assignment_id"], action["claim_token"], Terminal.COMPLETED
        ),
    )
    count("actions", lambda surroundings: SessionController(surroundings).actions("grow", "s1", 1))
    return found


def test_statements_do_not_grow_with_the_plan(tmp_path: Path) -> None:
    few = counts(make_world(tmp_path / "few", tasks(5)))
    many = counts(make_world(tmp_path / "many", tasks(300)))
    assert all(few.values()), few
    assert few == many


def test_a_look_leaves_the_collector_as_it_was(tmp_path: Path) -> None:
    world = make_world(tmp_path / "app")
    with cli.observer(world.root) as looks:
        assert not gc.isenabled()
        assert looks.status()["changes"]
    assert gc.isenabled()
    with pytest.raises(BatonError, match="nowhere"), cli.observer(world.root) as looks:
        looks.status("nowhere")
    assert gc.isenabled()
