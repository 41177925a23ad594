"""The agents that run now: each has a slot, and a letter comes when one has ended."""

from __future__ import annotations

import itertools
import queue
from collections.abc import Mapping
from typing import Any

from baton_cli.core import names
from baton_cli.core.lifecycle import Terminal
from baton_cli.drive.board import Board, Tell, described
from baton_cli.drive.child import Child
from baton_cli.drive.order import Order
from baton_cli.drive.records import Records
from baton_cli.project import Project


class Crew:
    """Starts agents and waits for them. Used by the main thread; `running` is read by others too."""

    def __init__(self, project: Project, order: Order, records: Records, board: Board, tell: Tell) -> None:
        self._project, self._order, self._records, self._board, self._tell = project, order, records, board, tell
        self._numbers = itertools.count(1)
        self._mail: queue.SimpleQueue[Child | None] = queue.SimpleQueue()
        self.running: dict[str, Child] = {}
        self.attempts = 0
        self.tickets: set[str] = set()

    @property
    def free(self) -> int:
        """How many more may run."""
        return self._order.parallel - len(self.running)

    def of(self, assignment: str) -> Child | None:
        """The agent that runs on an assignment."""
        return next((child for child in self.running.values() if child.assignment == assignment), None)

    def start(self, action: Mapping[str, Any]) -> Child:
        """Start an agent for an action. One that could not be started has `failure` set and is not among the running."""
        slot = min(set(range(self._order.parallel)) - {child.slot for child in self.running.values()})
        agent = names.driven_agent(self._records.pid, next(self._numbers))
        log = self._project.logs / f"{action['assignment_id']}-{action['attempt']}-agent.log"
        child = Child(action, agent=agent, slot=slot, log=log, on_end=self._mail.put)
        self.attempts += 1
        self.tickets.add(action["ticket"])
        self.running[agent] = child
        try:
            child.start(self._project, self._order, self._records)
        except OSError as error:
            del self.running[agent]
            child.failure = f"the agent could not be started: {error.strerror or error}"
            return child
        self._board.started(child)
        self._tell({"event": "started", **described(action), "agent": agent, "log": str(log)})
        return child

    def wait(self, timeout: float | None) -> list[Child]:
        """Those that have ended, at least one unless the time (seconds) is over first or somebody calls `wake`."""
        letters = []
        try:
            letters.append(self._mail.get(timeout=timeout))
            while True:
                letters.append(self._mail.get_nowait())
        except queue.Empty:
            pass
        ended = [child for child in letters if child is not None]
        for child in ended:
            self.running.pop(child.agent, None)
            if child.ended_well:  # what it left is checked now, which may take long
                self._tell({"event": "checking", **described(child.action), "seconds": child.seconds})
        return ended

    def wake(self) -> None:
        """End a `wait` that is going on."""
        self._mail.put(None)

    def stop(self) -> None:
        """Begin to end all of them."""
        for child in list(self.running.values()):
            child.stop(Terminal.STOPPED, "baton drive was stopped")
        self.wake()

    def kill(self) -> None:
        """End all of them by force, at once."""
        for child in list(self.running.values()):
            child.kill()
