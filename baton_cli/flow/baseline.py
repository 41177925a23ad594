"""The checks before any work: red at the base is worth a warning, no more, since plans that write tests first are common."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from baton_cli import process
from baton_cli.context import Context
from baton_cli.core import detect, names
from baton_cli.flow.parts import holding
from baton_cli.git import worktree
from baton_cli.project import Project
from baton_cli.provision import provision


@dataclass(frozen=True, slots=True)
class Baseline:
    """What ran at the base commit: the commands that passed, and a line on each that did not (its log named)."""

    passed: tuple[str, ...]
    red: tuple[str, ...]


def baseline(context: Context, oid: str, commands: Sequence[str], setup: Sequence[str]) -> Baseline:
    """Run each command once on a clean checkout of `oid`, set up like any worktree, which is removed again."""
    path = context.worktree(context.worktree_name(names.BASELINE))
    log = context.project.logs / f"baseline-{oid[:12]}.log"
    repository = context.project.repository
    worktree.make_room(path)
    with holding.assignment(context, names.BASELINE, wait=True):
        worktree.discard(repository, path)  # of a call that was killed
        worktree.add_detached(repository, path, oid)
        try:
            cwd = context.inside(path)
            ready = provision(context.project.root, cwd, context.config, setup, log)
            if ready.failed is not None:
                red = f"the set-up `{ready.failed}` fails before any work (log {ready.log})"
                return Baseline((), (red,))
            return _run(context, commands, cwd, log)
        finally:
            worktree.discard(repository, path)


def _run(context: Context, commands: Sequence[str], cwd: Path, log: Path) -> Baseline:
    passed, red = [], []
    for number, command in enumerate(dict.fromkeys(commands), 1):
        context.progress(f"baseline: {command}")
        here = log.with_name(f"{log.stem}-{number}.log")
        run = process.run_check(command, cwd=cwd, log=here, timeout=context.config.verify_timeout)
        if run.passed:
            passed.append(command)
            here.unlink(missing_ok=True)
        else:
            how = f"exits with {run.exit_code}" if run.exit_code is not None else f"ends by {run.reason}"
            red.append(f"`{command}` {how} before any work (log {here})")
    return Baseline(tuple(passed), tuple(red))


def surroundings(project: Project, cwd: Path) -> tuple[str, ...]:
    """What a session should know of the place of a worktree at `cwd`, as notices."""
    return (*_environment_leaks(project.root, cwd), *_small_workspace(project, cwd))


def _small_workspace(project: Project, cwd: Path) -> tuple[str, ...]:
    """Where a harness keeps its agents to the folder it was started in, they need git's folder and the worktree there."""
    root, git = project.root.resolve(), project.common_dir.resolve()
    outside = [path for path in (git, cwd.resolve()) if not path.is_relative_to(root)]
    if not outside:
        return ()
    start = os.path.commonpath([root, git, cwd.resolve()])
    return (
        f"workspace_too_small: start a harness that keeps agents to one folder in {start}, else they cannot commit; "
        f"{outside[0]} is outside of {root}",
    )


def _environment_leaks(project: Path, cwd: Path) -> tuple[str, ...]:
    """What the checks of a worktree at `cwd`, which lies inside the project, could pick up from the project around it."""
    if not cwd.resolve().is_relative_to(project.resolve()):
        return ()
    found = []
    if (cwd / "package.json").is_file() and not (cwd / "node_modules").exists() and (project / "node_modules").is_dir():
        found.append("the project's node_modules, since the worktree has none (set-up: npm ci)")
    if _pytest_looks_up(cwd) and ((project / "conftest.py").is_file() or detect.pytest_settings(_texts(project))):
        found.append("the project's pytest settings and conftest.py, since the worktree has none of its own")
    if list(cwd.glob("*.ts")) and not (cwd / "tsconfig.json").is_file() and (project / "tsconfig.json").is_file():
        found.append("the project's tsconfig.json")
    found.extend(f"an editable install of the checkout ({name})" for name in _editable(project))
    return tuple(f"environment_leak: checks in worktrees may use {what}" for what in found)


def _texts(folder: Path) -> dict[str, str]:
    names = ("pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
    return {name: (folder / name).read_text("utf-8", "replace") for name in names if (folder / name).is_file()}


def _pytest_looks_up(cwd: Path) -> bool:
    """pytest takes the first folder upwards that configures it as its root."""
    has_tests = (cwd / "tests").is_dir() or any(cwd.glob("test_*.py"))
    return has_tests and not detect.pytest_settings(_texts(cwd))


def _editable(project: Path) -> list[str]:
    """Path files in the project's own virtual environments that point back into the checkout."""
    root = str(project.resolve())
    files = [
        path
        for venv in (".venv", "venv")
        for pattern in ("__editable__*.pth", "*.egg-link", "_*.pth")
        for path in sorted((project / venv).glob(f"lib/python*/site-packages/{pattern}"))
    ]
    return [f"{path.relative_to(project)}" for path in files if root in path.read_text("utf-8", "replace")]
