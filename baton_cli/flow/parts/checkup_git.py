"""What of git, its settings and the project's own files matters to Baton, and what to do where it does."""

from __future__ import annotations

import platform
from collections.abc import Iterator

import baton_cli
from baton_cli.config import Config
from baton_cli.core.findings import ERROR, NOTE, OK, WARNING, Finding
from baton_cli.git import inspect, repo
from baton_cli.git.run import MINIMUM_GIT, version
from baton_cli.project import Project


def tools() -> Iterator[Finding]:
    """git and Python. Errors: `git_missing`, `git_too_old`."""
    git = ".".join(map(str, version()))
    least = ".".join(map(str, MINIMUM_GIT))
    yield Finding(OK, "git", f"git {git} (at least {least} is needed)")
    yield Finding(OK, "python", f"Python {platform.python_version()}, Baton {baton_cli.__version__}")


def settings(project: Project, config: Config) -> Iterator[Finding]:
    """Settings that change what workers or merges meet."""
    place = project.repository
    if repo.resolve(place, "HEAD") is None:
        yield Finding(
            ERROR, "no_commits", f"{place} has no commit yet", "make a first commit: nothing can run before it"
        )
    found = inspect.hooks(place, project.common_dir)
    if found:
        yield Finding(
            NOTE,
            "hooks",
            f"this repository has hooks ({', '.join(found[:5])}): agents' commits run them, Baton's own git calls do not",
            "see that they work in a new worktree, where only [worktree] setup has installed anything",
        )
    if (inspect.setting(place, "core.fsmonitor") or "false") not in ("false", "0"):
        yield Finding(NOTE, "fsmonitor", "core.fsmonitor is on: Baton switches it off for its own calls")
    drivers = inspect.merge_drivers(place)
    if drivers:
        yield Finding(
            WARNING,
            "merge_driver",
            f"custom merge drivers ({', '.join(drivers[:5])}) are configured, and Baton runs none",
            "where a merge needs one, `baton status` says so at its ticket: merge in its worktree by hand, then seal",
        )
    for name, missing in inspect.filters(place).items():
        if missing is not None:
            remedy = "run `git lfs install`" if name == "lfs" else f"configure filter.{name} in git"
            yield Finding(ERROR, "filter_missing", f"files here need the filter {name}: {missing}", remedy)
    if (place / ".gitmodules").is_file() and not any("submodule" in command for command in config.setup or ()):
        yield Finding(
            WARNING,
            "submodules",
            "there are submodules, and they stay empty in the worktrees that agents get",
            'add "git submodule update --init" to [worktree] setup in baton.toml, if the checks need them',
        )
    if not (inspect.setting(place, "user.email") and inspect.setting(place, "user.name")):
        yield Finding(
            NOTE,
            "no_identity",
            "git knows no name and address for you: Baton's commits are by Baton <baton@localhost>",
            "set user.name and user.email with `git config`",
        )
