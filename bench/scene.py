"""The places that are measured in: throwaway repositories of a given size, a home of their own, the floor program."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

MAIN = Path(__file__).resolve().parent.parent / "baton_cli" / "__main__.py"
PYTHON = (sys.executable, "-I", "-X", "utf8")
BATON = (*PYTHON, str(MAIN))
A_FOLDER = 100  # files
NOOP = """\
import typer

app = typer.Typer()


@app.command()
def one() -> None:
    pass


@app.command()
def two() -> None:
    pass


app()
"""


class Settings(NamedTuple):
    """What was asked for, and where there is room."""

    folder: Path
    quick: bool
    peers: Path | None

    def rounds(self, full: int) -> int:
        """How often to measure something."""
        return max(3, full // 3) if self.quick else full

    def place(self, name: str) -> Path:
        """A folder that does not exist yet: add and remove loops in one folder get slower by themselves."""
        number = 1
        while (path := self.folder / f"{name}-{number}").exists():
            number += 1
        return path

    @property
    def noop(self) -> tuple[str, ...]:
        """The command line of the floor program: Typer with two commands, started and ended."""
        path = self.folder / "noop.py"
        path.write_text(NOOP)
        return (*PYTHON, str(path), "one")


def prepare(folder: Path) -> None:
    """A home of our own, and no setting of the user's that could change what is measured."""
    for name in list(os.environ):
        if name.startswith(("GIT_", "BATON_", "XDG_")) or name in ("PYTHONPATH", "NO_COLOR", "FORCE_COLOR"):
            del os.environ[name]
    home = folder / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(
        "[user]\n\tname = Bench\n\temail = bench@example.invalid\n[init]\n\tdefaultBranch = main\n[gc]\n\tauto = 0\n"
    )
    os.environ.update(HOME=str(home), USERPROFILE=str(home), GIT_CONFIG_NOSYSTEM="1", LC_ALL="C.UTF-8")


def git(cwd: Path, *words: str | Path, data: bytes | None = None) -> str:
    """Plain git; its output without the last newline."""
    done = subprocess.run(["git", "-C", str(cwd), *map(str, words)], input=data, capture_output=True, check=True)
    return done.stdout.decode().removesuffix("\n")


def tasks_text(tickets: int, a_section: int = 10) -> str:
    """A tasks.md of that many tickets, with a body line here and there."""
    lines: list[str] = []
    for number in range(tickets):
        section, place = divmod(number, a_section)
        if place == 0:
            lines += ["", f"## {section + 1}. Part {section + 1} of the work", ""]
        lines.append(f"- [ ] {section + 1}.{place + 1} Write the module number {number} and the test for it")
        if place % 5 == 4:
            lines.append("  It follows the one before it and has the same form.")
    return "\n".join(lines[1:]) + "\n"


def project(root: Path, changes: dict[str, str], files: int = 0, more: str = "") -> Path:
    """A repository of `files` files besides the plan, checked out, one commit. `more` goes into baton.toml."""
    root.mkdir(parents=True)
    git(root, "init", "-q")
    ours = {"baton.toml": f'[verify]\ncommands = ["true"]\n{more}', ".gitignore": ".dsh/\n"}
    ours |= {f"openspec/changes/{name}/tasks.md": text for name, text in changes.items()}
    ours |= {f"openspec/changes/{name}/proposal.md": "# Why\n\nTo be measured.\n" for name in changes}
    git(root, "fast-import", "--quiet", data=b"".join(_commit(ours, files)))
    git(root, "reset", "-q", "--hard", "main")
    return root


def _commit(ours: dict[str, str], files: int) -> Iterator[bytes]:
    yield b"commit refs/heads/main\ncommitter Bench <bench@example.invalid> 1700000000 +0000\ndata 5\nbegin\n"
    for name, text in ours.items():
        yield _file(name, text.encode())
    for number in range(files):
        body = f"line {number}\n" * 30
        yield _file(f"src/part{number // A_FOLDER:04}/file{number % A_FOLDER:02}.txt", body.encode())


def _file(name: str, data: bytes) -> bytes:
    return b"M 100644 inline %s\ndata %d\n%s\n" % (name.encode(), len(data), data)


@contextmanager
def counted_git(folder: Path) -> Iterator[tuple[dict[str, str], Path]]:
    """An environment whose `git` notes its words in a file, one line a call, and the file."""
    real = shutil.which("git")
    place = folder / "counting"
    place.mkdir(exist_ok=True)
    log = place / "calls"
    log.write_text("")
    program = place / "git"
    program.write_text(f'#!/bin/sh\necho "$*" >> {log}\nexec {real} "$@"\n')
    program.chmod(0o755)
    yield {"PATH": f"{place}{os.pathsep}{os.environ['PATH']}"}, log
