"""Which checks and set-up a project's files suggest."""

from __future__ import annotations

import json

import pytest

from baton_cli.core.detect import DETECT_FILES, Detected, detect

PLACEHOLDER = 'echo "Error: no test specified" && exit 1'


def package(test: str | None = "vitest", **more: object) -> str:
    return json.dumps({"scripts": {"test": test} if test is not None else {}, **more})


def found(files: dict[str, str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    assert set(files) <= set(DETECT_FILES)
    result = detect(files)
    assert len(result.why) == len(result.commands)
    return result.commands, result.setup


def test_nothing_known_gives_nothing() -> None:
    assert detect({}) == Detected((), (), ())
    assert detect({"pyproject.toml": "[project]\nname = 'x'\n"}) == Detected((), (), ())


@pytest.mark.parametrize(
    "files",
    [
        {"pyproject.toml": "[tool.pytest.ini_options]\n"},
        {"pyproject.toml": "", "tests/": ""},
        {"pyproject.toml": "[dependency-groups]\ndev = ['pytest>=8']\n"},
        {"setup.cfg": "[tool:pytest]\n"},
        {"setup.py": "", "test/": ""},
        {"tox.ini": "[pytest]\n"},
        {"pytest.ini": ""},
        {"conftest.py": ""},
        {"requirements.txt": "pytest==8.0\n"},
    ],
)
def test_visible_tests_or_configuration_make_a_pytest_project(files: dict[str, str]) -> None:
    assert found(files) == (("python3 -m pytest -q",), ())


@pytest.mark.parametrize(
    "files",
    [
        {"tests/": ""},
        {"requirements.txt": "flask\n"},
        {"pyproject.toml": "[tool.ruff.lint.flake8-pytest-style]\n"},
        {"tox.ini": "[tox]\n"},
    ],
)
def test_a_tests_folder_or_a_python_file_alone_is_not_enough(files: dict[str, str]) -> None:
    assert found(files) == ((), ())


@pytest.mark.parametrize(
    ("lock", "command", "setup"),
    [
        ("uv.lock", "uv run pytest -q", "uv sync"),
        ("poetry.lock", "poetry run pytest -q", "poetry install"),
        ("pdm.lock", "pdm run pytest -q", "pdm install"),
        ("Pipfile.lock", "pipenv run pytest -q", "pipenv sync --dev"),
    ],
)
def test_a_python_lock_file_decides_how_pytest_runs(lock: str, command: str, setup: str) -> None:
    assert found({"pyproject.toml": "", "tests/": "", lock: ""}) == ((command,), (setup,))


def test_pytest_as_an_optional_extra_is_set_up_too() -> None:
    text = "[project.optional-dependencies]\ntest = [\n  'pytest>=8',\n]\n[tool.x]\n"
    assert found({"pyproject.toml": text, "uv.lock": ""})[1] == ("uv sync --all-extras",)
    other = "[project.optional-dependencies]\ndocs = ['sphinx']\n[dependency-groups]\ndev = ['pytest']\n"
    assert found({"pyproject.toml": other, "uv.lock": ""})[1] == ("uv sync",)


def test_requirements_are_never_installed_into_the_users_environment() -> None:
    assert found({"requirements.txt": "pytest\nflask\n", "tests/": ""})[1] == ()


@pytest.mark.parametrize(
    ("files", "command", "setup"),
    [
        ({"package-lock.json": ""}, "npm test", ("npm ci",)),
        ({"npm-shrinkwrap.json": ""}, "npm test", ("npm ci",)),
        ({"pnpm-lock.yaml": ""}, "pnpm test", ("pnpm install --frozen-lockfile",)),
        ({"yarn.lock": ""}, "yarn test", ("yarn install --frozen-lockfile",)),
        ({"yarn.lock": "", ".yarnrc.yml": ""}, "yarn test", ("yarn install --immutable",)),
        ({"bun.lock": ""}, "bun run test", ("bun install --frozen-lockfile",)),
        ({"bun.lockb": ""}, "bun run test", ("bun install --frozen-lockfile",)),
        ({}, "npm test", ()),
    ],
)
def test_a_node_lock_file_decides_the_package_manager(
    files: dict[str, str], command: str, setup: tuple[str, ...]
) -> None:
    assert found({"package.json": package(), **files}) == ((command,), setup)


def test_of_several_node_lock_files_the_named_package_manager_wins() -> None:
    files = {"package.json": package(packageManager="pnpm@9.1.0"), "package-lock.json": "", "pnpm-lock.yaml": ""}
    assert found(files)[0] == ("pnpm test",)


def test_without_a_lock_file_the_set_up_makes_none() -> None:
    assert found({"package.json": package(devDependencies={"vitest": "1"})})[1] == ("npm install --no-package-lock",)


@pytest.mark.parametrize(
    "text", [package(None), package(PLACEHOLDER), package("  "), "{", "[]", "", '{"scripts": []}', "[" * 99999]
)
def test_a_package_without_a_real_test_script_has_no_check(text: str) -> None:
    assert found({"package.json": text, "package-lock.json": ""}) == ((), ())


def test_rust_and_go() -> None:
    assert found({"Cargo.toml": "[package]"}) == (("cargo test",), ())
    assert found({"go.mod": "module x"}) == (("go test ./...",), ())


@pytest.mark.parametrize("name", ["Makefile", "makefile", "GNUmakefile"])
@pytest.mark.parametrize("line", ["test:", "test: build", "lint test check:", "test::"])
def test_a_make_target_counts_where_nothing_else_is_found(name: str, line: str) -> None:
    assert found({name: f"all:\n\techo\n{line}\n\tgo\n"}) == (("make test",), ())


@pytest.mark.parametrize("text", ["test := 1\n", ".PHONY: test\n", "tests:\n", "\ttest:\n", "# test:\n", "all: test\n"])
def test_what_only_looks_like_a_make_target_does_not_count(text: str) -> None:
    assert found({"Makefile": text}) == ((), ())


def test_all_ecosystems_count_and_make_only_alone() -> None:
    files = {
        "pytest.ini": "",
        "package.json": package(),
        "package-lock.json": "",
        "Cargo.toml": "",
        "go.mod": "",
        "Makefile": "test:\n",
    }
    assert found(files) == (("python3 -m pytest -q", "npm test", "cargo test", "go test ./..."), ("npm ci",))
