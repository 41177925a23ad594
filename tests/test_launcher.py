"""`./baton`: the environment it makes once, what it hands on, and the sentence it says when something is missing."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
LAUNCHER = ROOT / "baton"
SHARED_CACHE = os.environ.get("BATON_CACHE")  # read before the environment of the tests is emptied
SHOW = "#!/bin/sh\nprintf 'arg %s\\n' \"$@\"\nexec env\n"  # stands where the environment's python would be

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the launcher is unverified on Windows")


@pytest.fixture
def launcher(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """The launcher as a module, with its cache in a temporary folder."""
    monkeypatch.setenv("BATON_CACHE", str(tmp_path / "cache"))
    loader = SourceFileLoader("baton_launcher", str(LAUNCHER))
    spec = importlib.util.spec_from_loader("baton_launcher", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    dont_write, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = dont_write
    return module


def start(
    *words: str, python: str = sys.executable, launcher: Path = LAUNCHER, cwd: Path | None = None, **env: str
) -> Any:
    """Run the launcher as a user does, in an environment without anything of ours unless given."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("BATON_", "PYTHON"))}
    return subprocess.run(
        [python, launcher, *words],
        capture_output=True,
        text=True,
        env={**clean, **env},
        cwd=cwd,
        stdin=subprocess.DEVNULL,
    )


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def made(launcher: Any, tmp_path: Path) -> str:
    """A cache with an environment that is already there; its python shows its arguments and variables."""
    wanted = launcher.requirements((ROOT / "pyproject.toml").read_text(), ["mcp"])
    script(Path(launcher.python_of(launcher.environment(wanted))), SHOW)
    return str(tmp_path / "cache")


def test_it_reads_the_lists_of_requirements_as_a_toml_reader_does(launcher: Any) -> None:
    text = (ROOT / "pyproject.toml").read_text()
    project = tomllib.loads(text)["project"]
    extras = project["optional-dependencies"]
    assert launcher.requirements(text, []) == project["dependencies"]
    for name in extras:
        assert launcher.requirements(text, [name]) == project["dependencies"] + extras[name]


def test_a_list_that_does_not_exist_is_said(launcher: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        launcher.requirements("[project]\ndependencies = []\n", ["nothing"])
    assert "no list 'nothing'" in capsys.readouterr().err


def test_the_place_follows_the_requirements_and_nothing_else(launcher: Any) -> None:
    assert launcher.environment(["a"]) == launcher.environment(["a"])
    assert len({launcher.environment(wanted) for wanted in (["a"], ["b"], ["a", "b"])}) == 3


def test_it_parses_on_python_2_as_well() -> None:
    new = (ast.JoinedStr, ast.AnnAssign, ast.NamedExpr, ast.AsyncFunctionDef, ast.Nonlocal, ast.Starred, ast.YieldFrom)
    for node in ast.walk(ast.parse(LAUNCHER.read_text())):
        assert not isinstance(node, new), f"line {getattr(node, 'lineno', 0)}"
        assert not (isinstance(node, ast.arg) and node.annotation), f"line {getattr(node, 'lineno', 0)}"
        assert not (isinstance(node, ast.FunctionDef) and (node.returns or node.args.kwonlyargs)), node
        assert not (isinstance(node, ast.Raise) and node.cause), f"line {getattr(node, 'lineno', 0)}"
    assert LAUNCHER.read_text().isascii()  # Python 2 wants a coding line otherwise


def old_pythons() -> Iterator[str]:
    pyenv = sorted(Path(sys.base_prefix).parent.glob("[23].*/bin/python"))
    names = ["python2", "python2.7", "python3.6", "python3.7", "python3.8", "python3.9"]
    for path in [*map(str, pyenv), *filter(None, map(shutil.which, names))]:
        code = "import sys; sys.exit(sys.version_info >= (3, 10))"
        if subprocess.run([path, "-c", code], capture_output=True).returncode == 0:
            yield path


def test_an_old_python_is_told_so_in_one_line() -> None:
    found = list(old_pythons())
    if not found:
        pytest.skip("no Python older than 3.10 on this machine")
    for python in found:
        done = start("status", python=python)
        assert done.returncode == 1
        assert done.stdout == ""
        assert done.stderr.count("\n") == 1
        assert "needs Python 3.10 or newer" in done.stderr
        assert "BATON_PYTHON=" in done.stderr


def test_a_version_that_is_too_old_is_refused(
    launcher: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(launcher, "OLDEST", (99, 0))
    monkeypatch.setattr(sys, "argv", ["baton", "status", "--json"])
    with pytest.raises(SystemExit, match="1"):
        launcher.check_version()
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "python_too_old"


def test_it_hands_on_arguments_and_environment(made: str) -> None:
    done = start("status", "a b", "", "--json", PYTHONPATH="/somewhere", PYTHONWARNINGS="error", BATON_CACHE=made)
    args = [line[4:] for line in done.stdout.splitlines() if line.startswith("arg ")]
    assert args[0] == "-I"
    assert args[-5:] == [str(ROOT / "baton_cli/__main__.py"), "status", "a b", "", "--json"]
    lines = done.stdout.splitlines()
    assert "PYTHONPATH=/somewhere" in lines  # for the checks that Baton runs
    assert "PYTHONWARNINGS=error" in lines
    assert f"BATON_LAUNCHER={LAUNCHER}" in lines
    assert any(line.startswith(f"BATON_VENV={made}/py") for line in lines)
    assert not any(line.startswith(("VIRTUAL_ENV=" + made, "BATON_RELAUNCHED=")) for line in lines)
    assert done.stderr == ""


def test_it_can_be_called_through_a_link(made: str, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/baton").symlink_to(LAUNCHER)
    done = start("status", launcher=tmp_path / "bin/baton", cwd=tmp_path, BATON_CACHE=made)
    assert f"BATON_LAUNCHER={LAUNCHER}\n" in done.stdout


def test_baton_python_names_another_interpreter(tmp_path: Path) -> None:
    other = script(tmp_path / "my python", SHOW)
    for name, path in ((str(other), ""), ("my python", str(tmp_path))):
        done = start("status", BATON_PYTHON=name, PATH=f"{path}:{os.environ['PATH']}")
        assert done.stdout.startswith(f"arg {LAUNCHER}\narg status\n")


def test_baton_python_may_be_a_wrapper_around_the_same_interpreter(made: str, tmp_path: Path) -> None:
    shim = script(tmp_path / "shim", f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    done = start("status", BATON_PYTHON=str(shim), BATON_CACHE=made)
    assert "arg status\n" in done.stdout
    assert "BATON_RELAUNCHED" not in done.stdout


def test_baton_python_is_handed_on_absolute(made: str, tmp_path: Path) -> None:
    script(tmp_path / "bin" / "python", f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    for name, path in (("bin/python", ""), ("python", str(tmp_path / "bin"))):
        done = start("status", cwd=tmp_path, BATON_PYTHON=name, PATH=f"{path}:{os.environ['PATH']}", BATON_CACHE=made)
        assert f"BATON_PYTHON={tmp_path}/bin/python\n" in done.stdout


@pytest.mark.parametrize("text", [None, "#!/nowhere/at/all\n"])
def test_a_baton_python_that_does_not_run_is_said(text: str | None, tmp_path: Path) -> None:
    if text:
        script(tmp_path / "python", text)
    done = start("status", BATON_PYTHON=str(tmp_path / "python"))
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert "BATON_PYTHON" in done.stderr


def test_without_git_it_says_so(tmp_path: Path) -> None:
    done = start("status", PATH=str(tmp_path), BATON_CACHE=str(tmp_path / "cache"))
    assert done.returncode == 1
    assert done.stderr.startswith("error: Baton needs git and there is none on PATH; install git")
    assert done.stderr.count("\n") == 1


def test_a_cache_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = start("status", "--json", BATON_CACHE=str(tmp_path / "file/cache"))
    assert done.returncode == 1
    error = json.loads(done.stdout)["error"]
    assert error["code"] == "cache_unwritable"
    assert "BATON_CACHE" in error["hint"]


@pytest.mark.parametrize(
    ("says", "word"),
    [
        ("No module named venv", "python3-venv"),
        ("ensurepip is not available", "python3-venv"),
        ("No space", "No space"),
    ],
)
def test_a_python_without_venv_is_said(
    says: str,
    word: str,
    launcher: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "executable", str(script(tmp_path / "python", f"#!/bin/sh\necho '{says}'\nexit 1\n")))
    with pytest.raises(SystemExit):
        launcher.make(launcher.environment(["a"]), ["a"])
    first, error = capsys.readouterr().err.splitlines()
    assert first == "baton: preparing its environment (once) ..."
    assert word in error
    assert [path.suffix for path in (tmp_path / "cache").iterdir()] == [".log"]


def fake_python(tmp_path: Path, pip: str) -> str:
    """An interpreter whose `-m venv` makes a folder with another one in it, which takes the part of pip."""
    inner = script(tmp_path / "inner", f"#!/bin/sh\n{pip}\n")
    text = f'#!/bin/sh\nfor last; do :; done\nmkdir -p "$last/bin" && cp {inner} "$last/bin/python"\n'
    return str(script(tmp_path / "python", text))


def test_a_failed_installation_shows_the_last_line_and_the_log(
    launcher: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pip = "echo first; echo 'ERROR: no route to the index' >&2; echo '[notice] new pip'; exit 1"
    monkeypatch.setattr(sys, "executable", fake_python(tmp_path, pip))
    with pytest.raises(SystemExit):
        launcher.make(launcher.environment(["a"]), ["a"])
    error = capsys.readouterr().err.splitlines()[1]
    (log,) = (tmp_path / "cache").iterdir()
    assert "ERROR: no route to the index" in error
    assert "connect to the network" in error
    assert str(log) in error
    assert "first" in log.read_text()


def test_the_requirements_reach_pip(launcher: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", fake_python(tmp_path, f'printf "%s\\n" "$@" > {tmp_path}/asked'))
    folder = launcher.environment(["a>=1", "b; python_version < '3'"])
    launcher.make(folder, ["a>=1", "b; python_version < '3'"])
    assert (tmp_path / "asked").read_text().splitlines()[-2:] == ["a>=1", "b; python_version < '3'"]
    assert os.access(launcher.python_of(folder), os.X_OK)


def building(launcher: Any, monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], object]) -> None:
    def install(folder: str, wanted: list[str], log: str) -> None:
        script(Path(launcher.python_of(folder)), f"#!/bin/sh\necho {wanted[0]}\n")
        meanwhile()

    monkeypatch.setattr(launcher, "install", install)


def test_of_two_starts_at_once_the_first_wins_and_the_other_tidies_up(
    launcher: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = launcher.environment(["a"])
    building(launcher, monkeypatch, lambda: script(Path(launcher.python_of(folder)), "the first one's"))
    launcher.make(folder, ["a"])
    assert Path(launcher.python_of(folder)).read_text() == "the first one's"
    assert {path.name for path in (tmp_path / "cache").iterdir()} == {Path(folder).name, Path(folder).name + ".log"}


def test_two_processes_prepare_it_once(launcher: Any, tmp_path: Path) -> None:
    fcntl = pytest.importorskip("fcntl")
    wanted = launcher.requirements((ROOT / "pyproject.toml").read_text(), ["mcp"])
    folder = launcher.environment(wanted)
    os.makedirs(os.path.dirname(folder))
    with open(folder + ".log", "ab") as held:  # what a start that prepares it holds
        fcntl.flock(held, fcntl.LOCK_EX)
        clean = {key: value for key, value in os.environ.items() if not key.startswith(("BATON_", "PYTHON"))}
        second = subprocess.Popen(
            [sys.executable, LAUNCHER, "status"], env={**clean, "BATON_CACHE": str(tmp_path / "cache")}, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        assert second.stderr is not None
        said = second.stderr.readline()
        script(Path(launcher.python_of(folder)), SHOW)
    shown, rest = second.communicate()
    assert (said, rest) == ("baton: waiting for another start that prepares its environment ...\n", "")
    assert "arg status\n" in shown
    assert {path.name for path in (tmp_path / "cache").iterdir()} == {Path(folder).name, Path(folder).name + ".log"}


def test_an_interrupted_start_leaves_nothing(launcher: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    building(launcher, monkeypatch, interrupt)
    with pytest.raises(KeyboardInterrupt):
        launcher.make(launcher.environment(["a"]), ["a"])
    assert [path.suffix for path in (tmp_path / "cache").iterdir()] == [".log"]


def test_what_a_killed_start_left_is_no_environment_and_goes_in_time(
    launcher: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = launcher.environment(["a"])
    old, new = Path(folder + ".building-1"), Path(folder + ".building-2")
    old.mkdir(parents=True)
    new.mkdir()
    long_ago = time.time() - launcher.STALE - 60
    os.utime(old, (long_ago, long_ago))
    building(launcher, monkeypatch, lambda: None)
    launcher.make(folder, ["a"])
    assert not old.exists()
    assert new.exists()  # it may be alive
    assert os.path.exists(launcher.python_of(folder))


def test_an_environment_whose_interpreter_is_gone_is_made_again(
    launcher: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = launcher.environment(["a"])
    python = Path(launcher.python_of(folder))
    python.parent.mkdir(parents=True)
    python.symlink_to(tmp_path / "uninstalled")
    building(launcher, monkeypatch, lambda: None)
    launcher.make(folder, ["a"])
    assert python.read_text() == "#!/bin/sh\necho a\n"
    assert len(list((tmp_path / "cache").iterdir())) == 2


@pytest.mark.parametrize(("made", "fix"), [("/made", "move /made away and start again"), ("", "install it for ")])
def test_a_package_that_is_missing_is_said_in_one_line(made: str, fix: str) -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-S", ROOT / "baton_cli/__main__.py", "--version"],  # -S: no packages at all
        env={**os.environ, "BATON_VENV": made}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: the Python package typer is missing; {fix}")
    assert done.stderr.count("\n") == 1


def test_the_real_thing(tmp_path: Path) -> None:
    """Made once with pip; then without network, from a folder full of traps. The cache, if one is named, is reused."""
    cache = SHARED_CACHE or str(tmp_path / "cache")
    first = start("--version", BATON_CACHE=cache)
    if "cannot be installed" in first.stderr:
        pytest.skip("pip cannot reach an index: " + first.stderr.strip())
    assert (first.returncode, first.stdout.split()[0]) == (0, "baton"), first.stderr

    traps = tmp_path / "traps"
    for name in ("typing", "rich", "typer", "json", "os", "baton_cli", "sitecustomize"):
        (traps / name).mkdir(parents=True)
        (traps / name / "__init__.py").write_text("raise SystemExit('trapped')\n")
    second = start("--version", cwd=traps, BATON_CACHE=cache, PIP_NO_INDEX="1", PIP_FIND_LINKS="")
    assert (second.stdout, second.stderr) == (first.stdout, "")

    python = start("--environment=mcp", BATON_CACHE=cache).stdout.strip()
    for path in ("", str(traps)):  # the environment's python, on which PYTHONPATH has no hold either
        done = subprocess.run(
            [python, "-I", "-X", "utf8", ROOT / "baton_cli/__main__.py", "--version"],
            env={**os.environ, "PYTHONPATH": path},
            cwd=traps,
            capture_output=True,
            text=True,
        )
        assert (done.stdout, done.stderr) == (first.stdout, "")
    assert subprocess.run([python, "-I", "-c", "import mcp, rich, yaml, portalocker, sh"]).returncode == 0
    assert (
        subprocess.run([python, "-I", "-c", "import baton_cli"], capture_output=True).returncode == 1
    )  # dependencies only
