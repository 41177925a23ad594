"""Where DSH is started decides what its subagents can write: tried with the sandbox in force, outside of /tmp."""

from __future__ import annotations

import ctypes
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import run_git
from tests.dsh.kit import LIMIT, Home
from tests.dsh.model import Exchange, Reply
from tests.dsh.session import Job, Script, answers, good_work, main_session, read, tool_results
from tests.dsh.test_runs import ONE, complete, run_headless
from tests.kit import World, baton_json, make_world

pytestmark = pytest.mark.timeout(2 * LIMIT)
Linked = Callable[..., Home]
LANDLOCK = 444  # the system call landlock_create_ruleset; asked for its version it changes nothing


@pytest.fixture
def confined() -> Iterator[Path]:
    """A folder that DSH's sandbox on Linux keeps from subagents, unless it is the workspace. The home is in it, too."""
    if not Path("/var/tmp").is_dir() or ctypes.CDLL(None).syscall(LANDLOCK, None, 0, 1) < 1:
        pytest.skip("DSH's sandbox needs Landlock, and the test a /var/tmp")
    folder = Path(tempfile.mkdtemp(prefix="baton-", dir="/var/tmp"))
    try:
        (folder / "home").mkdir()
        yield folder.resolve()
    finally:
        shutil.rmtree(folder)


def in_sub_folder(root: Path) -> tuple[World, World]:
    """A repository, and the project that is one of its sub-folders."""
    outer = make_world(root, ONE)
    inner = World(outer.root / "packages" / "inner", "grow")
    inner.root.mkdir(parents=True)
    for name in ("openspec", "baton.toml", "README"):
        run_git(outer.root, "mv", name, f"packages/inner/{name}")
    run_git(outer.root, "commit", "-qm", "inner")
    return outer, inner


def test_started_at_the_root(linked: Linked, confined: Path) -> None:
    outer, inner = in_sub_folder(confined / "repository")
    forbidden = confined / "forbidden"

    def work(job: Job) -> list[str]:
        return [f"touch {forbidden} || echo kept out", *good_work(job)]

    script = Script(work)
    model = run_headless(linked("headless", HOME=str(confined / "home")), inner, script, cwd=outer.root)
    assert complete(script, model)["integrated"] == 1
    assert "kept out" in tool_results(model, "bash")[0], "the sandbox is in force"
    assert not forbidden.exists()
    assert any(f"to one folder in {outer.root}, else" in text for text in tool_results(model, "mcp__baton__actions"))
    assert "packages/inner/1.1.txt" in run_git(outer.root, "ls-tree", "-r", "--name-only", inner.integration)


def test_started_below_the_root(linked: Linked, confined: Path) -> None:
    """The subagents cannot write git's folder: the user is told where to start, and it ends instead of going round."""
    outer, inner = in_sub_folder(confined / "repository")
    told: list[str] = []

    def session(exchange: Exchange) -> Reply:
        reply = main_session(exchange)
        if isinstance(reply, str):
            told.extend(list(answers(read(exchange.messages)))[-1]["notices"])
        return reply

    script = Script(session=session)
    home = linked("headless", HOME=str(confined / "home"))
    model = run_headless(home, inner, script, cwd=inner.root)
    assert not model.errors
    assert script.final is not None
    word, _, rest = script.final.partition(" ")
    (blocked,) = json.loads(rest)
    assert (word, blocked["reason"], blocked["tickets"]) == ("BLOCKED", "exhausted", ["grow#1.1"])
    (notice,) = told
    assert notice.startswith("workspace_too_small: ")
    assert f" to one folder in {outer.root}, else they cannot commit" in notice
    assert "Permission denied" in tool_results(model, "bash")[0]
    assert len(script.jobs) == 3
    assert "1.1.txt" not in run_git(outer.root, "ls-tree", "-r", "--name-only", inner.integration)

    # Started where the notice says, it goes on with what lies in the worktree.
    baton_json(inner.root, "retry", "1.1")
    again = Script()
    model = run_headless(home, inner, again, cwd=outer.root)
    assert complete(again, model)["integrated"] == 1
