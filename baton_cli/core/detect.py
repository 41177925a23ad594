"""Checks and set-up read off a project's files, for projects without a `baton.toml`. Names and text in, commands out.

Several ecosystems at one root: the checks of all of them count, in the fixed order Python, Node, Rust, Go, because a
ticket that breaks one half of a repository is not finished. A Makefile's `test` target counts only where nothing else
was found: it nearly always calls the very same tools, and would run everything twice.
Set-up is only named together with a check that needs it, and never installs into the user's own environment:
`requirements.txt` and a `pyproject.toml` without a lock file get none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import NamedTuple

from baton_cli.core.patterns import late

# What is looked at, at the project's root. A trailing "/" is a folder; of lock files only the presence counts.
DETECT_FILES: tuple[str, ...] = (
    "pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "pytest.ini", ".pytest.ini", "tox.ini",
    "conftest.py", "tests/", "test/", "uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock",
    "package.json", "package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "yarn.lock", ".yarnrc.yml",
    "bun.lock", "bun.lockb",
    "Cargo.toml", "go.mod", "GNUmakefile", "makefile", "Makefile",
)  # fmt: skip
TEST_FOLDERS = ("tests/", "test/", "")  # where Python's tests may be
TEST_FILES = 8  # of each of them so many are looked at


class Detected(NamedTuple):
    """Shell commands that check the project, the set-up they need, and for each command the reason it was chosen."""

    commands: tuple[str, ...]
    setup: tuple[str, ...]
    why: tuple[str, ...]


class _Found(NamedTuple):
    command: str
    why: str
    setup: str | None = None


def detect(files: Mapping[str, str]) -> Detected:
    """What `files` (name below the project's root -> text; see `DETECT_FILES` and `telling_tests`) says. Nothing found:
    three empty tuples.

    pytest ends with 5 when it collects no test, so a project whose tests are all still to be written starts out red.
    """
    found = [hit for hit in (_python(files), _node(files), _rust(files), _go(files)) if hit is not None]
    if not found:
        found = [hit for hit in (_make(files),) if hit is not None]
    return Detected(
        commands=tuple(hit.command for hit in found),
        setup=tuple(hit.setup for hit in found if hit.setup is not None),
        why=tuple(hit.why for hit in found),
    )


def telling_tests(folder: str, names: Collection[str]) -> list[str]:
    """Of the names in one of the `TEST_FOLDERS`, those that say how its tests are run."""
    tests = sorted(name for name in names if name.startswith("test") and name.endswith(".py"))[:TEST_FILES]
    return [folder + name for name in (*tests, *(name for name in ("conftest.py", "__init__.py") if name in names))]


# lock file -> how it runs a program, how it sets up, and what it adds when pytest is an optional extra
_PYTHON_LOCKS = (
    ("uv.lock", "uv run", "uv sync", " --all-extras"),
    ("poetry.lock", "poetry run", "poetry install", " --all-extras"),
    ("pdm.lock", "pdm run", "pdm install", " -G :all"),
    ("Pipfile.lock", "pipenv run", "pipenv sync --dev", ""),
)
_PYTEST_CONFIG = (
    ("pyproject.toml", late(r"^\s*\[tool\.pytest\b", re.M)),
    ("setup.cfg", late(r"^\s*\[tool:pytest\]", re.M)),
    ("tox.ini", late(r"^\s*\[pytest\]", re.M)),
)
_PROJECT = ("pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "tox.ini")
_IMPORTS_PYTEST = late(r"^\s*(?:from|import(?:\s+[\w.]+\s*,)*)\s*\bpytest\b", re.M)
_IMPORTS_UNITTEST = late(r"^\s*(?:from|import(?:\s+[\w.]+\s*,)*)\s*\bunittest\b", re.M)
_TEST_CASE = late(r"^\s*class\s+\w+\s*\([^)]*TestCase\b", re.M)
_PYTEST_NEEDED = late(r"(?<![\w.-])pytest(?![\w.-])")
_EXTRA = late(r"^\s*\[project\.optional-dependencies\](.*?)(?=^\s*\[(?!\[)[\w.\"-]+\]\s*$|\Z)", re.M | re.S)


def _python(files: Mapping[str, str]) -> _Found | None:
    seen, run, module = _pytest_evidence(files), "pytest -q", "pytest -q"
    if seen is None and (unittest := _unittest_evidence(files)) is not None:
        seen, module = unittest
        run = f"python -m {module}"
    if seen is None and (seen := _tests_folder(files)) is None:
        return None
    for lock, prefix, setup, extras in _PYTHON_LOCKS:
        if lock in files:
            extra = _EXTRA.search(files.get("pyproject.toml", ""))
            if extra is not None and _PYTEST_NEEDED.search(extra.group(1)):
                setup += extras
            return _Found(f"{prefix} {run}", f"{seen}; {lock} names the environment", setup)
    # `python3 -m` puts the worktree itself first on the import path, so its code is tested and not an installed copy of
    # another checkout; and it uses the Python that is active, where a bare `pytest` may be a tool installed on its own.
    return _Found(f"python3 -m {module}", f"{seen}; run as a module so that the worktree's own code is imported")


def pytest_settings(files: Mapping[str, str]) -> bool:
    """Whether one of these files configures pytest, which makes its folder the root of the test run."""
    named = "pytest.ini" in files or ".pytest.ini" in files
    return named or any(shape.search(files.get(name, "")) for name, shape in _PYTEST_CONFIG)


def _pytest_evidence(files: Mapping[str, str]) -> str | None:
    """Why this is a project tested with pytest, or None."""
    for name in ("pytest.ini", ".pytest.ini"):
        if name in files:
            return name
    for name, pattern in _PYTEST_CONFIG:
        if pattern.search(files.get(name, "")):
            return f"pytest is configured in {name}"
    for name in _PROJECT:
        if _PYTEST_NEEDED.search(files.get(name, "")):
            return f"{name} asks for pytest"
    conftest = next((f"{folder}conftest.py" for folder in TEST_FOLDERS if f"{folder}conftest.py" in files), None)
    return conftest or next(
        (f"{name} imports pytest" for name in _tests(files) if _IMPORTS_PYTEST.search(files[name])), None
    )


def _tests(files: Mapping[str, str]) -> list[str]:
    return [name for name in files if name.endswith(".py") and name.rpartition("/")[2].startswith("test")]


def _unittest_evidence(files: Mapping[str, str]) -> tuple[str, str] | None:
    """Why this is a project tested with Python's own unittest, and the module that runs it; None where no file says so.

    Tests for pytest often import `unittest.mock`, so there has to be a test case.
    """
    cases = [name for name in _tests(files) if _IMPORTS_UNITTEST.search(files[name]) and _TEST_CASE.search(files[name])]
    for folder in TEST_FOLDERS:
        first = next((name for name in cases if name.rpartition("/")[0] == folder.rstrip("/")), None)
        if first is not None:
            # without __init__.py it is no package, and a search that begins above it passes it over
            start = f" -s {folder.rstrip('/')}" if folder and f"{folder}__init__.py" not in files else ""
            return f"{first} uses unittest", f"unittest discover{start}"
    return None


def _tests_folder(files: Mapping[str, str]) -> str | None:
    """A Python project with a folder for tests that says nothing of how they run; beside a package.json alone it is none."""
    project = next((name for name in _PROJECT if name in files), None)
    folder = next((name for name in ("tests/", "test/") if name in files), None)
    return f"{project} and {folder}" if project and folder else None


def _node(files: Mapping[str, str]) -> _Found | None:
    package = _json(files.get("package.json", ""))
    scripts = package.get("scripts")
    script = scripts.get("test") if isinstance(scripts, dict) else None
    # npm's own placeholder: echo "Error: no test specified" && exit 1
    if not isinstance(script, str) or not script.strip() or "no test specified" in script:
        return None
    tool = _node_tool(files, package)
    why = 'package.json has a "test" script'
    if tool == "pnpm":
        return _Found("pnpm test", why, "pnpm install --frozen-lockfile")
    if tool == "yarn":
        frozen = "--immutable" if ".yarnrc.yml" in files else "--frozen-lockfile"
        return _Found("yarn test", why, f"yarn install {frozen}")
    if tool == "bun":
        return _Found("bun run test", why, "bun install --frozen-lockfile")
    if "package-lock.json" in files or "npm-shrinkwrap.json" in files:
        return _Found("npm test", why, "npm ci")
    if package.get("dependencies") or package.get("devDependencies"):
        # without the option a lock file would appear, and a worktree with a new file in it is not clean
        return _Found("npm test", why, "npm install --no-package-lock")
    return _Found("npm test", why)


def _node_tool(files: Mapping[str, str], package: Mapping[str, object]) -> str:
    """The package manager: the one that `packageManager` names, if its lock file is there; else the first lock file."""
    locks = {
        "npm": "package-lock.json" in files or "npm-shrinkwrap.json" in files,
        "pnpm": "pnpm-lock.yaml" in files,
        "yarn": "yarn.lock" in files,
        "bun": "bun.lock" in files or "bun.lockb" in files,
    }
    named = str(package.get("packageManager", "")).split("@")[0]
    if locks.get(named):
        return named
    return next((tool for tool, present in locks.items() if present), "npm")


def _rust(files: Mapping[str, str]) -> _Found | None:
    return _Found("cargo test", "Cargo.toml") if "Cargo.toml" in files else None


def _go(files: Mapping[str, str]) -> _Found | None:
    return _Found("go test ./...", "go.mod") if "go.mod" in files else None


_TARGETS = late(r"^(?![\t#.])([^:=#\n]+?)\s*::?(?!=)", re.M)


def _make(files: Mapping[str, str]) -> _Found | None:
    name = next((name for name in ("GNUmakefile", "makefile", "Makefile") if name in files), None)  # make's own order
    if name is not None and any("test" in match.group(1).split() for match in _TARGETS.finditer(files[name])):
        return _Found("make test", f'{name} has a "test" target')
    return None


def _json(text: str) -> dict[str, object]:
    try:
        value = json.loads(text.removeprefix("\ufeff") or "{}")
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
