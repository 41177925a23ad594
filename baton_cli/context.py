"""What every flow works with: the project, its configuration, its store, the clock, and how Baton is called."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from baton_cli import config as configuration
from baton_cli import private
from baton_cli import project as projects
from baton_cli.config import Config
from baton_cli.invocation import launcher
from baton_cli.project import Project
from baton_cli.store.db import Store, open_store, open_to_look


class Context(NamedTuple):
    """The surroundings of one call. `clock` gives seconds since the epoch; `session` is whose call it is, where it is one's;
    `progress` hears of slow steps."""

    project: Project
    config: Config
    store: Store
    clock: Callable[[], float] = time.time
    command: tuple[str, ...] = ()
    session: str = ""
    progress: Callable[[str], None] = lambda _text: None

    def now(self) -> float:
        """The time, in seconds since the epoch."""
        return self.clock()

    def worktree(self, name: str) -> Path:
        """Where a worktree is: `name` is relative to the project's own worktree folder, or absolute."""
        return self.project.worktrees / name

    def inside(self, worktree: Path) -> Path:
        """The project's folder inside a worktree of its repository."""
        return worktree / self.project.prefix if self.project.prefix else worktree

    def worktree_name(self, name: str) -> str:
        """What is recorded for a new worktree, so that it is found again even if `[worktree] root` changes."""
        if self.config.worktree_root is None:
            return name
        return str(
            (self.project.root / Path(self.config.worktree_root).expanduser() / self.project.digest / name).resolve()
        )

    def shell(self, *words: str) -> str:
        """A command line of Baton that any POSIX shell can run from anywhere."""
        return shlex.join((*self.command, *words))


@contextmanager
def opened(
    project: Project,
    *,
    create: bool,
    clock: Callable[[], float] = time.time,
    progress: Callable[[str], None] | None = None,
) -> Iterator[Context]:
    """The context of one call. Without `create`, a project that Baton never ran in gets an empty store in memory."""
    config = configuration.load(project.root)
    if create:
        projects.prepare_state(project)
        private.remove_abandoned(project.state / private.SCRATCH)
    store = open_store(project.queue_db) if create else open_to_look(project.queue_db)
    try:
        yield Context(
            project=project,
            config=config,
            store=store,
            clock=clock,
            command=launcher(),
            progress=progress or (lambda _text: None),
        )
    finally:
        store.close()
