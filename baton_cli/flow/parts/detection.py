"""Reads the few files at the project root from which checks and set-up are guessed."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from baton_cli.context import Context
from baton_cli.core import detect, ignores


def detected(root: Path) -> detect.Detected:
    """Checks and set-up as the files at the project root, and the first few tests, suggest them."""
    return detect.detect(_texts(root, [*detect.DETECT_FILES, *_tests(root)]))


def _tests(root: Path) -> Iterator[str]:
    for folder in detect.TEST_FOLDERS:
        with contextlib.suppress(OSError):
            yield from detect.telling_tests(folder, os.listdir(root / folder))


def to_ignore(root: Path) -> tuple[ignores.Ignore, ...]:
    """What the project's tools have to be told so that they pass over the worktrees in it."""
    return ignores.ignores(_texts(root, ignores.IGNORE_FILES))


def _texts(root: Path, names: Iterable[str]) -> dict[str, str]:
    files = {}
    for name in names:
        path = root / name
        if path.is_file():
            try:
                files[name] = path.read_text("utf-8", "replace") if path.stat().st_size < 1_000_000 else ""
            except OSError:
                files[name] = ""
        elif path.is_dir():
            files[name] = ""
    return files


def setup(context: Context) -> tuple[str, ...]:
    """The commands that make a worktree usable: the configured ones, else the detected ones."""
    configured = context.config.setup
    return detected(context.project.root).setup if configured is None else configured
