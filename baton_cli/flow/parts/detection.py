"""Reads the few files at the project root from which checks and set-up are guessed."""

from __future__ import annotations

from pathlib import Path

from baton_cli.context import Context
from baton_cli.core import detect


def detected(root: Path) -> detect.Detected:
    """Checks and set-up as the files at the project root suggest them."""
    files = {}
    for name in detect.DETECT_FILES:
        path = root / name
        if path.is_file():
            try:
                files[name] = path.read_text("utf-8", "replace") if path.stat().st_size < 1_000_000 else ""
            except OSError:
                files[name] = ""
        elif path.is_dir():
            files[name] = ""
    return detect.detect(files)


def setup(context: Context) -> tuple[str, ...]:
    """The commands that make a worktree usable: the configured ones, else the detected ones."""
    configured = context.config.setup
    return detected(context.project.root).setup if configured is None else configured
