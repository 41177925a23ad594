"""Which of a project's tools would look into `.dsh/`, where Baton's worktrees are, and the line that stops each.

Most tools pass over folders whose names begin with a dot, or over what git ignores: go, cargo, ruff, black, mypy, TypeScript
and pytest's defaults among them. Only those that do neither are named.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import NamedTuple


class Ignore(NamedTuple):
    """A tool, the file to change and what to add there."""

    tool: str
    where: str
    line: str


_SCRIPTS = ("js", "mjs", "cjs", "ts", "mts", "cts")


def _config(name: str) -> tuple[str, ...]:
    return tuple(f"{name}.config.{ending}" for ending in _SCRIPTS)


# package on npm -> the tool, its settings (the first that is there is named, else the first), what to add
_NODE = (
    ("jest", "jest", (*_config("jest"), "package.json"), 'modulePathIgnorePatterns: ["<rootDir>/\\\\.dsh/"]'),
    (
        "vitest",
        "vitest",
        (*_config("vitest"), *_config("vite")),
        "test.exclude: [...configDefaults.exclude, '.dsh/**']",
    ),
    ("eslint", "eslint", _config("eslint"), '{ ignores: [".dsh/**"] }'),
    ("prettier", "prettier", (".prettierignore",), ".dsh/"),
    ("@biomejs/biome", "biome", ("biome.json", "biome.jsonc"), 'files.includes: ["**", "!.dsh/**"]'),
)
_PYTEST = ("pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
_NORECURSE = re.compile(r"^\s*norecursedirs\s*=\s*(\[[^\]]*\]|.*(?:\n[ \t]+\S.*)*)", re.MULTILINE)
IGNORE_FILES: tuple[str, ...] = tuple(
    dict.fromkeys(["package.json", *_PYTEST, *(name for _, _, names, _ in _NODE for name in names)])
)


def ignores(files: Mapping[str, str]) -> tuple[Ignore, ...]:
    """What to add, from `files` (name at the project's root -> text; see `IGNORE_FILES`). Settings that name `.dsh` are
    taken to be right."""
    return (*_pytest(files), *_node(files))


def _pytest(files: Mapping[str, str]) -> tuple[Ignore, ...]:
    for name in _PYTEST:
        found = _NORECURSE.search(files.get(name, ""))
        if found is not None:  # it replaces the default, which has every name that begins with a dot
            value = found[1]
            return () if ".*" in value or ".dsh" in value else (Ignore("pytest", name, "norecursedirs: .dsh too"),)
    return ()


def _node(files: Mapping[str, str]) -> tuple[Ignore, ...]:
    try:
        package = json.loads(files.get("package.json", ""))
        named = {name for kind in ("dependencies", "devDependencies") for name in package.get(kind, ())}
    except (ValueError, AttributeError, TypeError):
        return ()
    found = []
    for npm, tool, names, line in _NODE:
        there = [name for name in names if name in files]
        if npm in named and not any(".dsh" in files[name] for name in there):
            found.append(Ignore(tool, there[0] if there else names[0], line))
    return tuple(found)
