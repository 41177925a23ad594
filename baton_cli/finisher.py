"""What comes after the loop: a finished change is landed, and what it needed is cleared away."""

from __future__ import annotations

from typing import Any

from baton_cli import project as projects
from baton_cli.context import Context
from baton_cli.controller import SessionController
from baton_cli.core import landing
from baton_cli.core.frontier import FINISHED, Status
from baton_cli.errors import BatonError
from baton_cli.flow import clean, land, recover
from baton_cli.flow.parts import detection, tickets
from baton_cli.git import repo
from baton_cli.store import plans


class Finisher:
    """The verbs at the end of a change. None of them loses work."""

    def __init__(self, context: Context) -> None:
        self.context = context

    def land(self, change: str, into: str | None = None) -> dict[str, Any]:
        """Bring a finished change to the branch it started from, as `baton.land/1`. Error: `not_complete`, those of `land`."""
        loaded, row = SessionController(self.context).begin(change)
        recover.finish_merges(self.context, row)
        views = tickets.views(self.context, loaded)
        left = [view for view in views if view.status not in FINISHED]
        if left:
            raise BatonError(
                "not_complete",
                f"{len(left)} of {len(views)} tickets of {change} {'is' if len(left) == 1 else 'are'} not finished: "
                + ", ".join(f"{view.key} ({view.status.value.replace('_', ' ')})" for view in left[:5]),
                "finish them, or `baton skip` what is not wanted; see `baton status`",
            )
        notices = SessionController(self.context).tick(loaded.change)
        done = land.land(self.context, row, into, detection.setup(self.context))
        repository = self.context.project.repository
        tasks = loaded.folder.tasks.relative_to(repository).as_posix()
        open_ticks = tasks if tasks in repo.dirty(repository) else None
        return landing.answer(
            change=change,
            branch=row.integration_branch,
            target=done.target,
            head=done.head,
            before=done.before,
            merged=done.merged,
            place=None if done.place is None else str(done.place),
            ticks=open_ticks,
            here=repo.head(repository).branch == done.target,
            attested=any(view.status is Status.ATTESTED for view in views),
            notices=notices,
            command=self.context.shell(),
        )

    def clean(self, change: str | None = None, *, dry_run: bool = False) -> dict[str, Any]:
        """Remove what integrated work no longer needs, as `baton.clean/1`. Error: `no_such_change`."""
        if change is not None and plans.get_change(self.context.store, change) is None:
            projects.change(self.context.project, change)
        done = clean.clean(self.context, change, dry_run=dry_run)
        return {
            "schema": "baton.clean/1",
            "change": change,
            "dry_run": dry_run,
            "removed": done.removed,
            "kept": done.kept,
        }
