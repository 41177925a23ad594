"""Which tools have to be told of `.dsh/`."""

from __future__ import annotations

import json

import pytest

from baton_cli.core.ignores import IGNORE_FILES, ignores


def package(*names: str) -> dict[str, str]:
    return {"package.json": json.dumps({"devDependencies": dict.fromkeys(names, "1")})}


def test_nothing_to_say_where_nothing_looks() -> None:
    assert ignores({}) == ()
    assert ignores(package("typescript", "left-pad")) == ()
    assert ignores({"pyproject.toml": "[tool.pytest.ini_options]\ntestpaths = ['tests']\n"}) == ()


@pytest.mark.parametrize(
    ("npm", "settings", "where"),
    [
        ("vitest", "vitest.config.mts", "vitest.config.mts"),
        ("vitest", "vite.config.ts", "vite.config.ts"),
        ("vitest", None, "vitest.config.js"),
        ("jest", None, "package.json"),
        ("eslint", "eslint.config.mjs", "eslint.config.mjs"),
        ("prettier", None, ".prettierignore"),
        ("@biomejs/biome", "biome.jsonc", "biome.jsonc"),
    ],
)
def test_each_tool_is_told_where_its_settings_are(npm: str, settings: str | None, where: str) -> None:
    files = package(npm) | ({settings: "export default {}"} if settings else {})
    (found,) = ignores(files)
    assert found.where == where
    assert ".dsh" in found.line
    assert where in IGNORE_FILES
    assert ignores(files | {where: files.get(where, "") + " .dsh "}) == (), "it has been told"


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("pytest.ini", "[pytest]\nnorecursedirs = build dist\n", False),
        ("pytest.ini", "[pytest]\nnorecursedirs =\n    .*\n    build\n", True),
        ("pyproject.toml", '[tool.pytest.ini_options]\nnorecursedirs = ["build"]\n', False),
        ("pyproject.toml", '[tool.pytest.ini_options]\nnorecursedirs = [\n  "build",\n  ".dsh",\n]\n', True),
        ("setup.cfg", "[tool:pytest]\naddopts = -q\n", True),
    ],
)
def test_pytest_is_named_where_its_default_was_replaced(name: str, text: str, told: bool) -> None:
    found = ignores({name: text})
    assert [item.where for item in found] == ([] if told else [name])


@pytest.mark.parametrize("text", ["", "{", "[]", '"x"', '{"devDependencies": 3}', '{"devDependencies": null}'])
def test_a_broken_package_file_says_nothing(text: str) -> None:
    assert ignores({"package.json": text}) == ()
