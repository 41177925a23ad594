"""Whether the agent command itself does not work: then one run after the other ends at once, in the same way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from baton_cli.core.actions import blocked
from baton_cli.drive.child import Child

AT_ONCE = 5.0  # seconds; whoever works on a ticket takes longer to fail
ROW = 3  # runs


class Failing:
    """Looks at each run as it ends. `committed` says whether the work on a ticket has commits by now."""

    def __init__(self, committed: Callable[[str], bool]) -> None:
        self._committed = committed
        self._row: list[Child] = []  # the last runs, as far as they ended alike

    def add(self, child: Child) -> None:
        """A run has ended, or could not begin."""
        failed, ticket = child.failed_with, str(child.action["ticket"])
        if not failed or child.seconds > AT_ONCE or self._committed(ticket):
            self._row.clear()
            return
        if self._row and self._row[-1].failed_with != failed:
            self._row.clear()
        self._row.append(child)

    @property
    def found(self) -> bool:
        """Whether it is so. With one ticket alone it may as well be the ticket."""
        return len(self._row) >= ROW and len({child.action["ticket"] for child in self._row}) > 1

    def excuses(self, child: Child) -> bool:
        """Whether a run ended so because of the command: then that is no failed attempt on its ticket."""
        return self.found and child in self._row

    def told(self) -> dict[str, Any]:
        """What a person has to mend, as a `blocked` action."""
        last = self._row[-1]
        within = max(0.1, *(child.seconds for child in self._row))
        detail = f"{len(self._row)} agent runs in a row came to nothing within {within:.1f} s: {last.ending()[1]}"
        look = "" if last.failure else f"look at {last.log}, "
        tickets = dict.fromkeys(str(child.action["ticket"]) for child in self._row)
        return blocked(
            "agent_fails", list(tickets), detail, f"{look}mend --agent, then run drive again: it goes on from here"
        )
