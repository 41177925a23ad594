"""What goes on while the loop waits or works: leases are renewed, time limits kept."""

from __future__ import annotations

import threading
import time

from baton_cli import context as contexts
from baton_cli.controller import SessionController
from baton_cli.core.lifecycle import Terminal
from baton_cli.drive.child import Child
from baton_cli.drive.crew import Crew
from baton_cli.errors import BatonError
from baton_cli.project import Project

TICK = 1.0  # seconds
LOOK = 5.0  # seconds between two looks at the claims, less where leases are short
GONE = ("stale_claim", "unknown_assignment")


class Ticker:
    """A thread of its own while it is entered."""

    def __init__(self, project: Project, crew: Crew, time_limit: float | None) -> None:
        self._project = project
        self._crew = crew
        self._time_limit = time_limit
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ticker", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()

    def _run(self) -> None:
        due = 0.0  # on the clock that goes on while the machine sleeps, as leases do
        while not self._over.wait(TICK):
            running = list(self._crew.running.values())
            if self._time_limit is not None:
                self._limit(running, self._time_limit)
            if running and time.time() >= due:
                due = time.time() + self._renew(running)

    def _limit(self, running: list[Child], most: float) -> None:
        for child in running:
            if time.monotonic() - child.begun > most:
                child.stop(Terminal.FAILED, f"the agent took longer than {most:g} s")

    def _renew(self, running: list[Child]) -> float:
        """Renew what is ours; end an agent whose ticket somebody else has now. Gives the seconds until the next look."""
        try:
            with contexts.opened(self._project, create=True) as surroundings:
                controls = SessionController(surroundings)
                for child in running:
                    self._renew_one(controls, child)
                return min(LOOK, surroundings.config.lease / 4)
        except BatonError:  # the configuration is being edited, the store is busy: the loop meets it too, and says it
            return TICK

    def _renew_one(self, controls: SessionController, child: Child) -> None:
        try:
            state = controls.renew(child.assignment, child.action["claim_token"])["state"]
        except BatonError as error:
            if error.code not in GONE:
                raise
            child.stop(Terminal.STOPPED, error.message)
        else:
            if state == "abandoned":
                child.stop(Terminal.STOPPED, "its assignment was abandoned, or its ticket removed")
