"""The first start: two at once, what can be missing or broken, and an interpreter that is not the one on PATH."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.dsh.kit import LIMIT, Home, Web, without
from tests.dsh.model import Call, Exchange, Model, Reply
from tests.dsh.session import Script, main_session, text_of, tool_results
from tests.dsh.test_runs import ONE, complete, request, run_headless
from tests.kit import make_world

pytestmark = pytest.mark.timeout(2 * LIMIT)
Linked = Callable[..., Home]
READY = "The tools are there."
RUN = "; del sys.argv[0]; runpy.run_path(sys.argv[0], run_name='__main__')"  # in Python: the launcher, as it is called


def complaints(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("baton:")]


def script(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    path.chmod(0o755)
    return path


def environment(home: Home) -> Path:
    """The environment that is there for these tests."""
    command = [home.env["BATON_PYTHON"], str(ROOT / "baton"), "--environment=mcp"]
    return Path(subprocess.run(command, env=home.env, capture_output=True, text=True, check=True).stdout).parent.parent


def until(true: Callable[[], bool], what: Callable[[], str]) -> None:
    end = time.monotonic() + LIMIT
    while not true():
        assert time.monotonic() < end, what()
        time.sleep(0.05)


def test_two_at_once_on_an_empty_cache(linked: Linked, tmp_path: Path) -> None:
    """One makes the environment, the other waits for it, and both have their tools."""
    home = linked("web")
    real, ready, go = home.env["BATON_PYTHON"], environment(home), tmp_path / "go"
    # Takes the part of a slow `python -m venv`: waits for the word, then copies an environment that has everything, in
    # which pip finds nothing to do. It names itself as the interpreter, so that the launcher makes the environment by it.
    python = tmp_path / "python"
    named = f"import runpy, sys; sys.executable = {str(python)!r}{RUN}"
    script(
        python,
        f'case "$*" in "-I -m venv "*) echo made >> {tmp_path}/made; until [ -e {go} ]; do sleep 0.1; done',
        f'  exec cp -a {ready} "$4" ;; esac',
        f'exec {real} -c {shlex.quote(named)} "$@"',
    )
    env = {"BATON_PYTHON": str(python), "BATON_CACHE": str(tmp_path / "cache"), "PIP_NO_INDEX": "1"}

    def session(exchange: Exchange) -> Reply:
        return READY if "mcp__baton__actions" in exchange.tools else [Call("mcp__baton__why", {})]

    def booted() -> int:
        return sum(exchange.reply == READY for exchange in model.asked)

    def web(model: Model) -> AbstractContextManager[Web]:
        return home.web(model.url, tmp_path, **env)

    with Model(Script(session=session)) as model, web(model) as one, web(model) as two:
        logs = one.log, two.log
        until(lambda: all(complaints(log.read_text()) for log in logs), lambda: str([log.read_text() for log in logs]))
        go.touch()
        for dsh in (one, two):
            dsh.prompt(dsh.session(tmp_path), "who are you")
        until(lambda: booted() == 2, lambda: str([log.read_text() for log in logs]))
    assert sorted(complaints(log.read_text()) for log in logs) == [
        ["baton: preparing its environment (once) ..."],
        ["baton: waiting for another start that prepares its environment ..."],
    ]
    assert (tmp_path / "made").read_text() == "made\n"
    assert len([path for path in (tmp_path / "cache").iterdir() if path.is_dir()]) == 1


def test_without_python_dsh_boots_and_says_so(linked: Linked, tmp_path: Path) -> None:
    home = linked("headless", BATON_PYTHON="")
    path = without("python", tmp_path / "bin", home.env["PATH"])
    world, session = make_world(tmp_path / "project", ONE), Script()
    with Model(session) as model:
        done = home.headless(model.url, "headless: " + request(world), world.root, PATH=path)
    assert done.returncode == 0, done.stderr
    fix = "install Python 3.10 or newer, or name one with BATON_PYTHON, and restart DSH"
    assert complaints(done.stderr) == [f"baton: its tools are not available: python3 does not start (ENOENT); {fix}"]
    assert session.final is not None
    assert "Baton is not available: python3 does not start" in session.final


def test_what_is_wrong_is_said_and_looked_at_again(linked: Linked, tmp_path: Path) -> None:
    """One DSH, whose Python is repaired step by step: each time the session learns what is wrong now."""
    home = linked("headless")
    real, ready, python = home.env["BATON_PYTHON"], environment(home), tmp_path / "python"
    torn = tmp_path / "torn" / ready.name  # as a full disk or a cleaner of caches leaves it
    shutil.copytree(ready / "bin", torn / "bin", symlinks=True)
    shutil.copy(ready / "pyvenv.cfg", torn)
    (tmp_path / "dead" / ready.name / "bin").mkdir(parents=True)
    script(tmp_path / "dead" / ready.name / "bin" / "python").write_text("#!/nowhere/python\n")
    old = f"import runpy, sys; sys.version_info = (3, 9, 18, 'final', 0){RUN}"
    steps = [
        (f'BATON_CACHE=/dev/null/none exec {real} "$@"', "cannot keep an environment in /dev/null/none"),
        (f'exec {real} -c {shlex.quote(old)} "$@"', "needs Python 3.10 or newer and this is 3.9"),
        (
            f'PIP_NO_INDEX=1 BATON_CACHE={tmp_path}/new exec {real} "$@"',
            "connect to the network or point pip to a mirror",
        ),
        (f'BATON_CACHE={tmp_path}/dead exec {real} "$@"', "name a new BATON_CACHE folder"),
        (f'BATON_CACHE={tmp_path}/torn exec {real} "$@"', f"is missing; move {torn} away and start again"),
        (f'exec {real} "$@"', ""),
    ]
    script(python, steps[0][0])
    told: list[str] = []
    world = make_world(tmp_path / "project", ONE)

    def session(exchange: Exchange) -> Reply:
        reply = main_session(exchange)
        if isinstance(reply, str) and "not available" in reply:
            told.append([text_of(message) for message in exchange.messages if message["role"] == "tool"][-1])
            script(python, steps[len(told)][0])
            return [Call("mcp__baton__why", {})]
        return reply

    played = Script(session=session)
    with Model(played) as model:
        done = home.headless(model.url, "headless: " + request(world), world.root, BATON_PYTHON=str(python))
    assert done.returncode == 0, (done.stderr, told)
    assert complete(played, model)["integrated"] == 1
    for text, (_, word) in zip(told, steps[:-1], strict=True):
        assert word in text
        assert text.count("\n") == 0
    said = complaints(done.stderr)
    assert [line for line in said if "not available" in line] == said[:1]
    assert steps[0][1] in said[0]


def test_the_python_on_path_is_not_needed(linked: Linked, tmp_path: Path) -> None:
    """BATON_PYTHON is enough, also in a subagent's shell, where `python3` is none that could run Baton."""
    home = linked("headless")
    path = without("python", tmp_path / "bin", home.env["PATH"])
    script(tmp_path / "bin" / "python3", f"echo used >> {tmp_path}/used; exit 1")
    world, played = make_world(tmp_path / "project", ONE), Script()
    home.env["PATH"] = path
    model = run_headless(home, world, played)
    assert complete(played, model)["integrated"] == 1
    assert [text for text in tool_results(model, "bash") if text.startswith("sealed grow#1.1 at ")]
    assert not (tmp_path / "used").exists()
