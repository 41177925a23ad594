"""A hermetic world for every test: its own home, no inherited git or Baton settings, and a guard on the real home."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import hypothesis
import pytest

# How long an example takes says something about the machine and what else it does, and nothing about what is tried.
hypothesis.settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("any machine")

# A shell that starts the suite in the background makes it, and all it starts, deaf to Ctrl-C: tests about Ctrl-C need ears.
with contextlib.suppress(ValueError):  # not in the main thread
    signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parent.parent
REAL_HOME = os.path.realpath(os.path.expanduser("~"))
# Never to be touched, not even read; everything else below the real home may be read (Python itself may live there).
PRIVATE = tuple(os.path.join(REAL_HOME, *parts) for parts in (
    (".local", "state", "baton"), (".config", "baton"), (".gitconfig",), (".config", "git"),
))  # fmt: skip
PYTHON = tuple({os.path.realpath(path) for path in (sys.prefix, sys.base_prefix, sys.exec_prefix)})
WRITING = os.O_WRONLY | os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC

sys.path.insert(0, str(ROOT))  # however pytest was called

from tests import figures  # noqa: E402

_allowed: list[str] = [os.path.realpath(ROOT)]
_guard_on = False


def _below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + os.sep)


def _guard(event: str, args: tuple[Any, ...]) -> None:
    """Raise when code under test opens Baton's or git's files of the real home, or writes anything there."""
    if not _guard_on or event != "open" or not isinstance(args[0], (str, bytes)):
        return
    path = os.path.abspath(os.fsdecode(args[0]))
    if not _below(path, REAL_HOME):
        return
    flags = args[2] if isinstance(args[2], int) else 0
    writes = bool(flags & WRITING) or any(letter in (args[1] or "") for letter in "wax+")
    excused = any(_below(path, folder) for folder in (*PYTHON, *_allowed)) or "__pycache__" in path
    if any(_below(path, folder) for folder in PRIVATE) or (writes and not excused):
        raise AssertionError(f"a test reached the real home: {path}")


sys.addaudithook(_guard)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", default=False, help="also run the slow forms (or BATON_FULL=1)")


# Read now: the environment of the tests is emptied of BATON_*.
_FAILED = os.environ.get("BATON_FAILED", "")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Where BATON_FAILED names a file, add each test that failed, for regression.sh to try it once more by itself."""
    if _FAILED and report.failed and "PYTEST_XDIST_WORKER" not in os.environ:
        with open(_FAILED, "a", encoding="utf-8") as file:
            file.write(f"{report.nodeid}\n")


def pytest_configure(config: pytest.Config) -> None:
    # Read before the environment of the tests is emptied of BATON_*.
    config.stash[_FULL] = bool(config.getoption("--full")) or os.environ.get("BATON_FULL", "") not in ("", "0")
    config.stash[_CORPUS] = Path(os.environ.get("BATON_CORPUS") or ROOT.parent / "shared" / "corpus")


_FULL = pytest.StashKey[bool]()
_CORPUS = pytest.StashKey[Path]()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.stash[_FULL]:
        items[:] = _long_ones_first(items, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))
        return
    skip = pytest.mark.skip(reason="slow form: run with --full or BATON_FULL=1")
    for item in items:
        if "full" in item.keywords:
            item.add_marker(skip)


def _long_ones_first(items: list[pytest.Item], workers: int) -> list[pytest.Item]:
    """Each worker begins with its share of the slow forms, or the last one of these would run alone at the end. The first
    one has the tests on the real DSH before that: nobody else waits while DSH is installed.

    (`--dist worksteal` gives each worker as many tests in a row.)
    """
    dsh, others = (
        [item for item in items if ("dsh" in item.path.relative_to(ROOT).parts) is it] for it in (True, False)
    )
    slow, rest = ([item for item in others if ("full" in item.keywords) is wanted] for wanted in (True, False))
    shares = [slow[at::workers] for at in range(workers)]
    shares[0] = [*dsh, *shares[0]]
    ordered, start = [], 0
    for at, share in enumerate(shares):
        end = len(items) * (at + 1) // workers - sum(map(len, shares[: at + 1]))
        ordered += [*share, *rest[start : max(start, end)]]
        start = max(start, end)
    return [*ordered, *rest[start:]]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Count what the long tests tried, where somebody wants to know."""
    report = yield
    if call.when == "call" and report.outcome != "skipped":
        figures.of_test(item.nodeid, getattr(item, "hypothesis_statistics", ""), report.outcome == "failed")
    return report


@pytest.fixture(autouse=True)
def hermetic(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The home of this test. Baton drops every GIT_* variable, so git's user file has to be the home's own."""
    global _guard_on
    home = tmp_path_factory.mktemp("home")
    for name in list(os.environ):
        if name.startswith(("GIT_", "BATON_", "XDG_")) or name in ("NO_COLOR", "FORCE_COLOR", "EMAIL", "CI"):
            monkeypatch.delenv(name)
    settings = home / ".gitconfig"
    settings.write_text("[user]\n\tname = Test User\n\temail = test@example.invalid\n[init]\n\tdefaultBranch = main\n")
    values = {
        "HOME": home,
        "USERPROFILE": home,
        "XDG_STATE_HOME": home / "state",
        "XDG_CONFIG_HOME": home / "config",
        "XDG_CACHE_HOME": home / "cache",
        "XDG_DATA_HOME": home / "data",
        "GIT_CONFIG_GLOBAL": settings,
        "GIT_CONFIG_NOSYSTEM": "1",
        "TZ": "UTC",
        "PYTHONPATH": ROOT,  # for the processes that tests start
        "LC_ALL": "C.UTF-8",
    }
    for name, value in values.items():
        monkeypatch.setenv(name, str(value))
    # Temporary folders may be configured to be inside the home.
    allowed = os.path.realpath(tmp_path_factory.getbasetemp().parent)
    if allowed not in _allowed:
        _allowed.append(allowed)
    _guard_on = True
    try:
        yield home
    finally:
        _guard_on = False


Git = Callable[..., str]


def run_git(cwd: Path, *args: str | Path, input: str | None = None, check: bool = True) -> str:
    """Plain git, independent of the code under test; stdout without the last newline."""
    done = subprocess.run(
        ["git", "-C", str(cwd), *map(str, args)], input=input, capture_output=True, text=True, errors="surrogateescape",
        stdin=subprocess.DEVNULL if input is None else None,
    )  # fmt: skip
    if check and done.returncode:
        raise AssertionError(f"git {' '.join(map(str, args))}: exit {done.returncode}\n{done.stderr}")
    return done.stdout.removesuffix("\n")


def write_files(folder: Path, files: Mapping[str, str | bytes]) -> None:
    """Write name -> content below folder, making folders as needed."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


@pytest.fixture
def git() -> Git:
    """`git(cwd, *args) -> stdout`."""
    return run_git


@pytest.fixture
def make_repository() -> Callable[..., Path]:
    """`make_repository(folder, files) -> folder`: a repository on `main` with one commit holding the files."""

    def make(folder: Path, files: Mapping[str, str | bytes] | None = None) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        run_git(folder, "init", "-q", "-b", "main")
        write_files(folder, files if files is not None else {"README": "hello\n"})
        run_git(folder, "add", "-A")
        run_git(folder, "commit", "-q", "--allow-empty", "-m", "first")
        return folder

    return make


@pytest.fixture
def repository(tmp_path: Path, make_repository: Callable[..., Path]) -> Path:
    """A fresh repository `repo` with one commit that holds README."""
    return make_repository(tmp_path / "repo")


@pytest.fixture
def corpus(request: pytest.FixtureRequest) -> Path:
    """The folder with real-world task lists; not part of the project, so its absence skips the test."""
    folder = request.config.stash[_CORPUS]
    if not folder.is_dir():
        pytest.skip(f"no corpus of task lists at {folder}: set BATON_CORPUS to its folder")
    return folder


@pytest.fixture
def without_identity(hermetic: Path) -> Path:
    """A user who never told git a name or an address, on a machine where git may not guess them."""
    (hermetic / ".gitconfig").write_text("[user]\n\tuseConfigOnly = true\n[init]\n\tdefaultBranch = main\n")
    return hermetic


@pytest.fixture
def fifo(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """`fifo(name)` makes a named pipe: what tests use to wait for another process without sleeping."""
    made: list[Path] = []

    def make(name: str) -> Path:
        path = tmp_path / name
        os.mkfifo(path)
        made.append(path)
        return path

    yield make
    for path in made:  # let go of any process still waiting at the other end
        for flags in (os.O_RDONLY | os.O_NONBLOCK, os.O_WRONLY | os.O_NONBLOCK):
            with contextlib.suppress(OSError):
                os.close(os.open(path, flags))


@contextlib.contextmanager
def without_sh() -> Iterator[None]:
    """Call git as on a system without `sh`: the same calls, three times as fast. For what makes thousands of them in this
    process; processes of their own, and the tests of git itself, do it properly."""
    from baton_cli.git import run as git_run

    def one_by_one(jobs: Sequence[Any], timeout: float) -> list[tuple[int, bool]]:
        return [git_run._execute_windows(*job, timeout) for job in jobs]

    with (
        mock.patch.object(git_run, "_execute", git_run._execute_windows),
        mock.patch.object(git_run, "_execute_each", one_by_one),
    ):
        yield


@pytest.fixture
def swift_git() -> Iterator[None]:
    """A whole test without `sh`."""
    with without_sh():
        yield
