"""Which checks and set-up a project's files suggest."""

from __future__ import annotations

import json

import pytest

from baton_cli.core.detect import DETECT_FILES, TEST_FILES, Detected, detect, telling_tests

PLACEHOLDER = 'echo "Error: no test specified" && exit 1'


def package(test: str | None = "vitest", **more: object) -> str:
    return json.dumps({"scripts": {"test": test} if test is not None else {}, **more})


def looked_at(name: str) -> list[str]:
    folder, _, file = name.rpartition("/")
    return telling_tests(f"{folder}/" if folder else "", [file])


def found(files: dict[str, str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    assert all(name in DETECT_FILES or name in looked_at(name) for name in files)
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


CASE = "import unittest\n\nclass Greeting(unittest.TestCase):\n    def test_it(self): ...\n"
ALONE = "from unittest import IsolatedAsyncioTestCase, mock\nclass A(Mixin, IsolatedAsyncioTestCase):\n    pass\n"
WITH_MOCK = "from unittest import mock\n\ndef test_it(): ...\n"
DISCOVER = "python3 -m unittest discover"


@pytest.mark.parametrize(
    ("files", "command"),
    [
        ({"tests/": "", "tests/test_words.py": CASE}, f"{DISCOVER} -s tests"),
        ({"tests/": "", "tests/test_words.py": CASE, "tests/__init__.py": ""}, DISCOVER),
        ({"test/": "", "test/test_words.py": ALONE}, f"{DISCOVER} -s test"),
        ({"test_words.py": CASE}, DISCOVER),
        ({"pyproject.toml": "[project]\n", "tests/": "", "tests/tests.py": CASE}, f"{DISCOVER} -s tests"),
        ({"pyproject.toml": "", "uv.lock": "", "test_words.py": CASE}, "uv run python -m unittest discover"),
        # what speaks of pytest has the last word, and mocks alone say nothing
        ({"pyproject.toml": "dev = ['pytest']\n", "tests/": "", "tests/test_words.py": CASE}, "python3 -m pytest -q"),
        ({"tests/": "", "tests/conftest.py": "", "tests/test_words.py": CASE}, "python3 -m pytest -q"),
        ({"tests/test_a.py": CASE, "tests/test_b.py": "import pytest\n"}, "python3 -m pytest -q"),
        ({"setup.py": "", "tests/": "", "tests/test_words.py": WITH_MOCK}, "python3 -m pytest -q"),
        ({"tests/": "", "tests/test_words.py": WITH_MOCK}, None),
        ({"tests/": "", "tests/test_words.py": "from django.test import TestCase\nclass A(TestCase): ...\n"}, None),
    ],
)
def test_a_project_without_pytest_is_tested_with_unittest(files: dict[str, str], command: str | None) -> None:
    assert found(files)[0] == (() if command is None else (command,))


def test_a_few_test_files_are_looked_at() -> None:
    names = [*(f"test_{n:03}.py" for n in range(99)), "helper.py", "conftest.py", "__init__.py", "test.txt", "data"]
    few = [f"tests/test_{n:03}.py" for n in range(TEST_FILES)]
    assert telling_tests("tests/", names[::-1]) == [*few, "tests/conftest.py", "tests/__init__.py"]


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
