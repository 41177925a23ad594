"""Documents and files agree: links, verbs, words, error codes, the generated reference; nothing names a machine."""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from baton_cli.commands import VERBS

ROOT = Path(__file__).resolve().parent.parent

# Described in the design and not built yet. A verb that is built has to leave this list (a test insists).
LATER: set[str] = set()
NO_VERB = {"on"}  # what a person tells an agent: "run baton on PROJECT CHANGE"

# The vocabulary: one word for a thing, everywhere.
WORDS = (
    "change", "section", "ticket", "plan revision", "frontier", "claim", "claim token", "lease", "assignment",
    "attempt", "task packet", "receipt", "seal", "integrate", "reconcile", "action",
)  # fmt: skip
KNOWN_BINARIES = {".png", ".jpg", ".gif", ".ico", ".db", ".gz", ".zip", ".whl"}


@cache
def files() -> tuple[Path, ...]:
    """Every file of the project: what git knows or would add, or all of it where there is no repository."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == 0:
        found = [ROOT / name for name in done.stdout.split("\0") if name]
    else:
        skip = re.compile(r"/(\.git|\.venv|node_modules|dist|[^/]*cache[^/]*|\.hypothesis)/")
        found = [path for path in ROOT.rglob("*") if not skip.search(f"/{path.relative_to(ROOT).as_posix()}/")]
    return tuple(sorted(path for path in found if path.is_file()))


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def documents() -> tuple[Path, ...]:
    """The Markdown files written for readers (examples that tests feed to the parser are not among them)."""
    return tuple(path for path in files() if path.suffix == ".md" and not name_of(path).startswith("tests/"))


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def prose(text: str) -> str:
    """The text without code."""
    return re.sub(r"`[^`\n]+`", "", re.sub(r"^ *(```|~~~).*?^ *\1", "", text, flags=re.MULTILINE | re.DOTALL))


def code(text: str) -> Iterator[str]:
    """Code blocks and code spans."""
    fence = re.compile(r"^ *(```|~~~)[^\n]*\n(.*?)^ *\1", re.MULTILINE | re.DOTALL)
    yield from (match.group(2) for match in fence.finditer(text))
    yield from re.findall(r"`([^`\n]+)`", fence.sub("", text))


def anchors(path: Path) -> set[str]:
    """The fragments that the headings of a document give, as GitHub makes them."""
    headings = re.findall(r"^#+ +(.+?)(?: +#+)? *$", text_of(path), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@cache
def literals() -> frozenset[str]:
    """Every string literal in the sources, the launcher's and the bundle's included."""
    found: set[str] = set()
    for path in files():
        if name_of(path) == "baton" or (path.suffix == ".py" and not name_of(path).startswith("tests/")):
            tree = ast.parse(text_of(path))
            found |= {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
        elif path.suffix == ".js":
            found |= set(re.findall(r"['\"`]([^'\"`\n]*)['\"`]", text_of(path)))
    return frozenset(found)


@pytest.mark.parametrize(
    "name",
    [
        "README.md", "CHANGELOG.md", "LICENSE", "docs/architecture.md", "docs/ticket-format.md", "docs/protocol.md",
        "docs/glossary.md", "docs/cli.md", "docs/contributing.md", "docs/reliability.md",
    ],
)  # fmt: skip
def test_the_documents_are_there(name: str) -> None:
    assert (ROOT / name).is_file()


def test_links_lead_somewhere() -> None:
    wrong = []
    for path in documents():
        for target in re.findall(r"\]\(<?([^)>\s]+)>?(?: \"[^\"]*\")?\)", prose(text_of(path))):
            if re.match(r"[a-z][a-z+.-]*:", target):
                continue
            file, _, fragment = target.partition("#")
            there = (path.parent / file).resolve() if file else path
            if not there.exists() or not there.is_relative_to(ROOT):
                wrong.append(f"{name_of(path)}: {target}")
            elif fragment and there.suffix == ".md" and fragment not in anchors(there):
                wrong.append(f"{name_of(path)}: {target} (no such heading)")
    assert not wrong, "\n".join(wrong)


def verbs_in(text: str) -> set[str]:
    """Each VERB of `baton VERB` in the code of a document."""
    call = re.compile(r"(?:^|[\s(\"'/;&|])baton ([a-z][a-z-]*)\b(?![.:/])", re.MULTILINE)
    return {verb for piece in code(text) for verb in call.findall(piece)}


def test_documents_name_no_verb_that_does_not_exist() -> None:
    known = VERBS.keys() | LATER | NO_VERB
    wrong = [
        f"{name_of(path)}: baton {verb}" for path in documents() for verb in sorted(verbs_in(text_of(path)) - known)
    ]
    assert not wrong, "\n".join(wrong)


def test_the_list_of_later_verbs_shrinks() -> None:
    built = {path.stem for path in (ROOT / "baton_cli/commands").glob("*.py")} | VERBS.keys()
    assert not LATER & built, f"built, so take them off LATER: {sorted(LATER & built)}"


def test_every_verb_has_its_module_and_every_module_its_verb() -> None:
    modules = {path.stem for path in (ROOT / "baton_cli/commands").glob("*.py")} - {"__init__"}
    assert modules == {verb.module for verb in VERBS.values()}


def test_the_glossary_has_every_word() -> None:
    glossary = text_of(ROOT / "docs/glossary.md").lower()
    terms = re.findall(r"^\| *\**`?([^|*`]+?)`?\** *\|", glossary, re.MULTILINE)
    terms += re.findall(r"^(?:#+|[-*]) *\**`?([^*`:—\n]+?)`?\** *(?:[:—].*)?$", glossary, re.MULTILINE)
    named = {word.strip() for term in terms for word in term.split(",")}
    assert not [word for word in WORDS if word not in named]


def test_the_words_of_the_glossary_are_those_of_the_program() -> None:
    program = " ".join(
        [text_of(path) for path in files() if path.suffix == ".py" and name_of(path).startswith("baton_cli/")]
    )
    squeezed = re.sub(r"[\s_]+", "", program.lower())
    assert not [word for word in WORDS if word.replace(" ", "") not in squeezed]


def documented_codes(text: str) -> set[str]:
    """Codes in the first column of a table whose heading row calls that column a code."""
    found: set[str] = set()
    for table in re.findall(r"(?:^\|.*\|[ \t]*\n)+", text, re.MULTILINE):
        head, *rows = table.splitlines()
        if re.match(r"\|[^|]*\bcodes?\b", head, re.IGNORECASE):
            found |= {code for row in rows[1:] for code in re.findall(r"`([a-z][a-z0-9_]*)`", row.split("|")[1])}
    return found


def test_documented_error_codes_are_in_the_source() -> None:
    wrong = [
        f"{name_of(path)}: {code}"
        for path in documents()
        for code in sorted(documented_codes(text_of(path)) - literals())
    ]
    assert not wrong, "\n".join(wrong)


def test_the_reference_is_the_programs_own_help() -> None:
    spec = importlib.util.spec_from_file_location("generate_cli", ROOT / "docs/generate_cli.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    same = text_of(ROOT / "docs/cli.md") == module.generate()
    assert same, "docs/cli.md is out of date: python docs/generate_cli.py"


def test_every_failure_of_the_field_has_a_test_that_exists() -> None:
    """Each row of the tables of `docs/reliability.md` names at least one, and what it names is there."""
    tests = {name for path in files() if name_of(path).startswith("tests/") for name in names_of_tests(path)}
    _, _, part = text_of(ROOT / "docs/reliability.md").partition("## Failures seen in the field")
    rows = [row for row in part.splitlines() if row.startswith("| ") and not row.startswith("| elsewhere")]
    named = {row: set(re.findall(r"`(test_[a-z0-9_]+)`", row)) for row in rows}
    assert len(rows) == 48
    assert not [row for row, found in named.items() if not found]
    assert not sorted(set().union(*named.values()) - tests)


def names_of_tests(path: Path) -> set[str]:
    """The names of the tests of a file."""
    return set(re.findall(r"^def (test_[a-z0-9_]+)\(", text_of(path), re.MULTILINE)) if path.suffix == ".py" else set()


def test_the_changelog_says_what_is_unreleased() -> None:
    assert re.search(r"^## \[?Unreleased\]?", text_of(ROOT / "CHANGELOG.md"), re.MULTILINE)


def test_no_file_names_a_machine_or_a_registry() -> None:
    machine = r"(?<![\w~.\-/$}])/(?:wor" + r"k|ro" + r"ot|tmp/pytes" + r"t)(?:/|\b(?=-of))"
    hosts = [r"pypi\." + "org", r"pythonhosted\." + "org", r"registry\.npmjs\." + "org", r"registry\.yarnpkg\." + "com"]
    pattern = re.compile("|".join([machine, *hosts]))
    wrong = []
    for path in files():
        if path.suffix in KNOWN_BINARIES:
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            if pattern.search(line):
                wrong.append(f"{name_of(path)}:{number}: {line.strip()[:100]}")
    assert not wrong, "\n".join(wrong)
