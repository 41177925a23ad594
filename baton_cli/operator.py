"""What a person decides outside the loop: how the project is checked, and what becomes of a ticket."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from baton_cli.context import Context
from baton_cli.controller import SessionController
from baton_cli.core.facts import DECIDED
from baton_cli.core.frontier import TicketView
from baton_cli.core.lifecycle import State
from baton_cli.errors import BatonError
from baton_cli.flow import baseline, decide, detached, load, recover, setting_up, tick
from baton_cli.flow.parts import detection, tickets
from baton_cli.flow.parts.checkout import repo_head
from baton_cli.flow.parts.tickets import Loaded
from baton_cli.store import plans


class Operator:
    """The verbs of a person. Each decision records who and why; none deletes work."""

    def __init__(self, context: Context) -> None:
        self.context = context

    def init(self) -> dict[str, Any]:
        """Write baton.toml unless it is there, as `baton.init/1`."""
        return setting_up.init(self.context)

    def pause(self, change: str, why: str | None) -> dict[str, Any]:
        """Hand nothing out any more, as `baton.decision/1`; running work goes on."""
        return self._pause(change, decide.need_why(why))

    def resume(self, change: str) -> dict[str, Any]:
        """Hand out again, as `baton.decision/1`."""
        return self._pause(change, None)

    def _pause(self, change: str, why: str | None) -> dict[str, Any]:
        loaded, row = SessionController(self.context).begin(change)
        decide.pause(self.context, row, why)
        decision = "resume" if why is None else "pause"
        return {
            "schema": "baton.decision/1",
            "change": loaded.change,
            "ticket": None,
            "decision": decision,
            "next": "call actions",
        }

    def export_packet(self, assignment_id: str, out: Path) -> dict[str, Any]:
        """Write an assignment's packet for a seal on another machine, as `baton.packet_export/1`."""
        assignment = detached.export(self.context, assignment_id, out)
        return {
            "schema": "baton.packet_export/1",
            "assignment_id": assignment.id,
            "ticket": assignment.ticket,
            "out": str(out),
        }

    def baseline(self, change: str) -> dict[str, Any]:
        """Run the change's checks before any work (`plan --check`): the commit, what passed, a line on each that is red."""
        loaded = load.look(self.context, change)
        commands = [check.command for ticket in loaded.plan.tickets for check in ticket.checks]
        row = plans.get_change(self.context.store, change)
        base = row.base if row is not None else repo_head(self.context)
        found = baseline.baseline(self.context, base, commands, detection.setup(self.context))
        return {"commit": base, "passed": list(found.passed), "red": list(found.red)}

    def decide(self, change: str, ticket: str, decision: str, why: str | None) -> dict[str, Any]:
        """`done`, `skip`, `reopen`, `retry` or `abandon`, as `baton.decision/1`."""
        loaded, row = SessionController(self.context).begin(change)
        recover.finish_merges(self.context, row)
        view = tickets.find(tickets.views(self.context, loaded), ticket)
        reason = why if decision == "retry" else decide.need_why(why)
        notice = None
        if decision in DECIDED:
            decide.finish(self.context, row, view, decision, reason or "")
            notice = "; ".join(SessionController(self.context).tick(loaded.change))
        elif decision == "reopen":
            _untick(loaded, view)  # first: a ticked box that nothing proves counts as ticked by hand
            decide.reopen(self.context, row, view, reason or "")
            _untick(loaded, view)  # another call may have ticked it again while it still was finished
        elif decision == "retry":
            notice = _taken(view)
            decide.retry(self.context, view, reason)
        else:
            decide.abandon(self.context, view, reason or "")
        return {
            "schema": "baton.decision/1",
            "change": loaded.change,
            "ticket": view.key,
            "decision": decision,
            "notice": "; ".join((*loaded.fates, *([notice] if notice else []))) or None,
            "next": "call actions",
        }


def _untick(loaded: Loaded, view: TicketView) -> None:
    """Error: `not_unticked`."""
    reason = tick.write(loaded.folder.tasks, view.planned.ticket, done=False)
    if reason is not None:
        raise BatonError(
            "not_unticked", f"the box of {view.key} stays as it is: {reason}", "mend that, then call again"
        )


def _taken(view: TicketView) -> str | None:
    """Whose running work a `retry` takes away, if anybody's."""
    held = view.assignment
    if held is None or held.state is not State.CLAIMED:
        return None
    agent = f"agent {held.attempt.agent}" if held.attempt.agent else "an agent"
    return f"{agent} of session {held.attempt.session} may be at work on it: its token and seal key count no longer"
