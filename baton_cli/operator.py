"""What a person decides outside the loop: how the project is checked, and what becomes of a ticket."""

from __future__ import annotations

from typing import Any

from baton_cli.context import Context
from baton_cli.controller import SessionController
from baton_cli.flow import decide, load, recover, setting_up, tick
from baton_cli.flow.parts import tickets


class Operator:
    """The verbs of a person. Each decision records who and why; none deletes work."""

    def __init__(self, context: Context) -> None:
        self.context = context

    def init(self) -> dict[str, Any]:
        """Write baton.toml unless it is there, as `baton.init/1`."""
        return setting_up.init(self.context)

    def decide(self, change: str, ticket: str, decision: str, why: str | None) -> dict[str, Any]:
        """`done`, `skip`, `reopen`, `retry` or `abandon`, as `baton.decision/1`."""
        loaded = load.load(self.context, change)
        row = recover.start(self.context, loaded.change)
        recover.finish_merges(self.context, row)
        view = decide.find(tickets.views(self.context, loaded), ticket)
        reason = why if decision == "retry" else decide.need_why(why)
        notice = None
        if decision in decide.DECISIONS:
            decide.finish(self.context, row, view, decision, reason or "")
            SessionController(self.context).tick(loaded.change)
        elif decision == "reopen":
            decide.reopen(self.context, row, view, reason or "")
            notice = tick.write(loaded.folder.tasks, view.planned.ticket, done=False)
        elif decision == "retry":
            decide.retry(self.context, view, reason)
        else:
            decide.abandon(self.context, view, reason or "")
        return {
            "schema": "baton.decision/1",
            "change": loaded.change,
            "ticket": view.key,
            "decision": decision,
            "notice": notice,
            "next": "call actions",
        }
