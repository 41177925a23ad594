"""The architecture as a test: which way imports run, where a package may be used, how long things may be."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
FILE_LINES = 300  # a file has fewer
FUNCTION_LINES = 50  # a function has at most so many

GROUND = {"config", "invocation", "process", "openspec", "repository", "project", "private", "locks", "slots"}
VALUES = {"core", "errors"}

# Layer -> what it may import of baton_cli. A layer is a folder or a module directly in the package.
MAY: dict[str, set[str]] = {
    "errors": set(),
    "core": {"core", "errors"},
    "store": {"store", *VALUES},
    "git": {"git", *VALUES},
    **{name: {*GROUND, *VALUES} for name in GROUND},
    "context": {"store", *GROUND, *VALUES},
    "provision": {"git", *GROUND, *VALUES},
    "flow": {"store", "git", "context", "provision", *GROUND, *VALUES},
    "controller": {"flow", "store", "git", "context", "provision", *GROUND, *VALUES},
    "observer": {"flow", "store", "context", *GROUND, *VALUES},
    "operator": {"controller", "flow", "store", "context", *GROUND, *VALUES},
    "finisher": {"controller", "flow", "store", "git", "context", *GROUND, *VALUES},
    "cli": {
        "controller",
        "finisher",
        "observer",
        "operator",
        "flow",
        "context",
        "invocation",
        "project",
        "repository",
        "output",
        *VALUES,
    },  # what the command files share
    "output": {"invocation", *VALUES},
    "views": {"views", "output", *VALUES},
    "demo": {"controller", "observer", "context", "invocation", "project", "output", *VALUES},
    "drive": {
        "controller",
        "observer",
        "context",
        "invocation",
        "project",
        "output",
        "process",
        "slots",
        "locks",
        "private",
        *VALUES,
    },
    "commands": {
        "demo",
        "drive",
        "cli",
        "controller",
        "observer",
        "operator",
        "flow",
        "context",
        "config",
        "project",
        "views",
        "output",
        "",
        *VALUES,
    },
    "main": {"commands", "output", "errors", ""},
    "__main__": {"main"},
    "": set(),  # baton_cli/__init__.py itself: the version
}
NO_SIBLINGS = {"commands", "flow"}  # no command imports a command, no flow a flow
ADAPTERS = MAY["commands"] | {"main"}

ONLY_IN = {
    "sh": {"git/run.py"},
    "sqlite3": {"store/"},
    "portalocker": {"locks.py"},
    "rich": {"views/", "output.py"},
    "jinja2": {"views/board/"},
    "click": set(),  # Typer brings its own copy; the real one is not among the dependencies
    "pydantic": set(),
}
HEAVY = {"sh", "portalocker", "rich", "sqlite3", "jinja2", "mcp", "yaml", "pydantic", "asyncio"}


class Import(NamedTuple):
    """One imported module (absolute), and whether running the file imports it at once."""

    module: str
    line: int
    at_once: bool


def sources(folder: str = "baton_cli") -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def imports(path: Path) -> list[Import]:
    """All imports of a file; `from a import b` counts as `a.b`, since b may be a module."""
    package = path.relative_to(ROOT).parent.parts

    def walk(node: ast.AST, at_once: bool) -> Iterator[Import]:
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, node.lineno, at_once) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = [*package[: len(package) - node.level + 1]] if node.level else []
            whole = ".".join([*base, *([node.module] if node.module else [])])
            yield from (Import(f"{whole}.{alias.name}", node.lineno, at_once) for alias in node.names)
        late = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        if is_type_checking(node):
            at_once = False
        for child in ast.iter_child_nodes(node):
            yield from walk(child, at_once and not late)

    return list(walk(ast.parse(path.read_bytes()), True))


def layer(module: str) -> str:
    """The layer of a dotted name below baton_cli; "" for what baton_cli/__init__.py itself holds."""
    second = module.split(".")[1]
    return second if (ROOT / "baton_cli" / second).is_dir() or (ROOT / f"baton_cli/{second}.py").is_file() else ""


def own_layer(path: Path) -> str:
    first = path.relative_to(ROOT / "baton_cli").parts[0].removesuffix(".py")
    return "" if first == "__init__" else first


def of_ours(path: Path) -> list[Import]:
    return [found for found in imports(path) if found.module.startswith("baton_cli.")]


def test_every_module_belongs_to_a_layer() -> None:
    unknown = sorted({own_layer(path) for path in sources()} - MAY.keys())
    assert not unknown, f"add to MAY in {name_of(Path(__file__))}: {unknown}"


def test_imports_run_one_way() -> None:
    wrong = [
        f"{name_of(path)}:{found.line} ({own_layer(path)}) imports {found.module}"
        for path in sources()
        for found in of_ours(path)
        if layer(found.module) not in {*MAY.get(own_layer(path), set()), own_layer(path)}
    ]
    assert not wrong, "\n".join(wrong)


def test_no_command_imports_a_command_and_no_flow_a_flow() -> None:
    """What several flows need lies in flow/parts, which knows no flow."""
    wrong = [
        f"{name_of(path)}:{found.line} imports {found.module}"
        for path in sources()
        for found in of_ours(path)
        if own_layer(path) in NO_SIBLINGS
        and layer(found.module) == own_layer(path)
        and not f"{found.module}.".startswith("baton_cli.flow.parts.")
    ]
    assert not wrong, "\n".join(wrong)


def test_adapters_reach_the_program_through_its_commands() -> None:
    wrong = [
        f"{name_of(path)}:{found.line} imports {found.module}"
        for path in sources("adapters")
        for found in of_ours(path)
        if layer(found.module) not in ADAPTERS
    ]
    assert not wrong, "\n".join(wrong)


def test_core_knows_the_standard_library_and_itself_alone() -> None:
    outside = {"os", "subprocess", "socket", "sqlite3", "time", "random", "secrets", "uuid", "pathlib", "io", "shutil"}
    wrong = [
        f"{name_of(path)}:{found.line} imports {found.module}"
        for path in sources("baton_cli/core")
        for found in imports(path)
        for top in [found.module.split(".")[0]]
        if top != "baton_cli" and (top not in sys.stdlib_module_names or top in outside)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("package", sorted(ONLY_IN))
def test_a_package_is_used_only_in_its_place(package: str) -> None:
    def allowed(path: Path) -> bool:
        inside = name_of(path).removeprefix("baton_cli/")
        return any(inside.startswith(place) if place.endswith("/") else inside == place for place in ONLY_IN[package])

    wrong = [
        f"{name_of(path)}:{found.line}"
        for path in [*sources(), *sources("adapters")]
        for found in imports(path)
        if found.module.split(".")[0] == package and not allowed(path)
    ]
    assert not wrong, f"{package} is imported in {wrong}"


def test_heavy_packages_are_imported_where_they_are_used() -> None:
    wrong = [
        f"{name_of(path)}:{found.line} imports {found.module} at module level"
        for path in sources()
        for found in imports(path)
        if found.at_once and found.module.split(".")[0] in HEAVY
    ]
    assert not wrong, "\n".join(wrong)


def loaded_after(statement: str) -> set[str]:
    """Top-level names in sys.modules after a statement in a process of its own."""
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); {statement}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in done.stdout.split()}


def test_starting_the_program_loads_nothing_heavy() -> None:
    assert not loaded_after("import baton_cli.main") & HEAVY


def test_help_loads_no_command_and_nothing_heavy() -> None:
    code = "import io, contextlib, baton_cli.main as m\nwith contextlib.redirect_stdout(io.StringIO()): m.run(['-h'])"
    statement = f"exec({code!r})"
    assert not loaded_after(statement) & HEAVY


def too_long(path: Path) -> Iterator[str]:
    text = path.read_text(encoding="utf-8")
    lines = len(text.splitlines())
    if lines >= FILE_LINES:
        yield f"{name_of(path)}: {lines} lines (fewer than {FILE_LINES} wanted)"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > FUNCTION_LINES:
                yield f"{name_of(path)}:{node.lineno} {node.name}: {length} lines (at most {FUNCTION_LINES} wanted)"


def test_files_and_functions_are_short() -> None:
    files = [*sources(), *sources("adapters"), *sources("docs"), ROOT / "baton"]
    assert not (wrong := [line for path in files for line in too_long(path)]), "\n".join(wrong)


def test_a_command_is_a_thin_shell() -> None:
    wrong = [f"{name_of(p)}: {n}" for p in sources("baton_cli/commands") if (n := p.read_bytes().count(b"\n")) > 60]
    assert not wrong, f"at most 60 lines wanted: {wrong}"
