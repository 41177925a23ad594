"""What can be asked of a project without changing anything in it. The heavy parts of the protocol are not even imported."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from baton_cli import project as projects
from baton_cli.context import Context
from baton_cli.core.actions import iso
from baton_cli.core.frontier import Status
from baton_cli.core.plan import to_json
from baton_cli.errors import BatonError
from baton_cli.flow import load, snapshot
from baton_cli.flow.parts import tickets
from baton_cli.store import events

if TYPE_CHECKING:
    from baton_cli.flow.parts.travelled import Travelled


class Observer:
    """The verbs that look."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self._history: Travelled | None = None

    def _travelled(self) -> Travelled:
        """What the repository's history says, for changes that were never run here. Imported and made when first needed."""
        if self._history is None:
            from baton_cli.flow.parts.travelled import Travelled

            self._history = Travelled(self.context)
        return self._history

    def status(self, change: str | None = None) -> dict[str, Any]:
        """Every change of the project (or one), as `baton.status/1`. A broken one says why and hides no other."""
        root = str(self.context.project.root)
        if change is not None:
            return {"schema": snapshot.SCHEMA, "project": root, "changes": [self._look(change)]}
        changes = []
        for name in projects.changes(self.context.project):
            try:
                changes.append(self._look(name))
            except BatonError as error:
                changes.append({"change": name, "error": error.value()})
        answer = {"schema": snapshot.SCHEMA, "project": root, "changes": changes}
        early = snapshot.archived_early(self.context)
        return {**answer, "attention": early} if early else answer

    def _look(self, change: str) -> dict[str, Any]:
        loaded = load.look(self.context, change, self._travelled)
        return snapshot.snapshot(self.context, loaded, tickets.views(self.context, loaded))

    def board(self, archived: bool = False) -> dict[str, Any]:
        """Every change of the project with all that a board shows, as `baton.overview/1`.

        The same state gives the same value, however Baton was called and from wherever.
        """
        from baton_cli.flow import overview

        context = self.context._replace(command=("baton",))
        changes: list[dict[str, Any]] = []
        folders = projects.archived(context.project) if archived else ()
        for name, folder in [
            *((name, None) for name in projects.changes(context.project)),
            *((f.name, f) for f in folders),
        ]:
            try:
                loaded = (
                    load.look(context, name, self._travelled)
                    if folder is None
                    else load.look_at(context, folder, self._travelled)
                )
                views = tickets.views(context, loaded)
                value = snapshot.snapshot(context, loaded, views)
                changes.append(overview.completed(context, value, loaded.plan, views))
            except BatonError as error:
                changes.append({"change": name, "error": error.value()})
            changes[-1]["archived"] = folder.path.name if folder else None
        root = context.project.root
        return {"schema": overview.SCHEMA, "project": root.name, "root": str(root), "changes": changes}

    def plan(self, change: str) -> dict[str, Any]:
        """One plan, as `baton.plan/1`."""
        return to_json(load.look(self.context, change, self._travelled).plan)

    def plans(self) -> list[dict[str, Any]]:
        """Every change's plan; a broken one with its error, and its counts wherever the bytes decode."""
        return [load.plan_or_error(self.context, name) for name in projects.changes(self.context.project)]

    def log(self, change: str | None = None) -> dict[str, Any]:
        """The history, oldest first, as `baton.log/1`."""
        found = events.history(self.context.store, change)
        if change is not None and not found:
            projects.change(self.context.project, change)  # no such change is an error, one not run yet is not
        listed = [{**item._asdict(), "at": iso(item.at)} for item in found]
        return {"schema": "baton.log/1", "change": change, "events": listed}

    def diff(self, change: str, ticket: str) -> dict[str, Any]:
        """What the worker of a ticket has done, so far or as it was merged, as `baton.diff/1`."""
        from baton_cli.flow import difference

        loaded = load.look(self.context, change, self._travelled)
        view = tickets.find(tickets.views(self.context, loaded), ticket)
        if view.assignment is None and view.completion is not None and view.status is Status.INTEGRATED:
            return difference.merged(self.context, view.key, view.completion)
        return difference.difference(self.context, view.key, tickets.assignment_of(view))

    def explain(self, change: str, ticket: str) -> dict[str, Any]:
        """Why a ticket stands where it stands, as `baton.explain/1`."""
        from baton_cli.flow import explain

        loaded = load.look(self.context, change, self._travelled)
        views = tickets.views(self.context, loaded)
        return explain.explain(self.context, loaded, views, tickets.find(views, ticket))

    def assignment_of(self, change: str, ticket: str) -> str:
        """The assignment whose receipt a ticket has, or is to have. Error: `no_assignment`."""
        from baton_cli.flow.parts import work
        from baton_cli.store import assignments

        view = tickets.find(tickets.views(self.context, load.look(self.context, change, self._travelled)), ticket)
        held = work.behind(view, partial(assignments.find, self.context.store))
        if held is not None:
            return held.id
        commit = view.completion.commit if view.completion is not None else None
        raise BatonError(
            "no_assignment",
            f"nothing is recorded here of work on {view.key} (it is {view.status.value})",
            f"its evidence is in the message of the commit: git show {commit}" if commit else "see `baton status`",
        )

    def receipt(self, assignment_id: str) -> dict[str, Any]:
        """The receipt of an assignment, as `baton.receipt_view/1`."""
        from baton_cli.flow.parts import evidence

        return evidence.shown(self.context, assignment_id)

    def verify_receipt(self, assignment_id: str) -> dict[str, Any]:
        """Check a receipt as an integration would; refuses with the code of what is wrong."""
        from baton_cli.flow.parts import evidence

        return evidence.verified(self.context, assignment_id)
