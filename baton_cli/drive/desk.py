"""The two lines out of a drive: to the controller, one call at a time, and to whoever listens."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from baton_cli import context as contexts
from baton_cli import project as projects
from baton_cli.controller import SessionController
from baton_cli.core import tasks
from baton_cli.drive.board import Board, Event, Tell
from baton_cli.drive.stopping import Stop
from baton_cli.errors import USAGE, BatonError
from baton_cli.observer import Observer
from baton_cli.output import ReaderGone
from baton_cli.project import Project

Value = TypeVar("Value")


class Desk:
    """Used by the main thread alone."""

    def __init__(self, project: Project, board: Board, tell: Tell) -> None:
        self.stop: Stop | None = None
        self.unheard: Exception | None = None
        self._project, self._board, self._tell = project, board, tell
        self._told: set[str] = set()
        self._stamp: tuple[int, ...] = ()
        self._digest = ""

    def say(self, event: Event) -> None:
        """Tell an event. When nobody can hear it any more (a closed pipe or terminal), that is the end, an orderly one."""
        if self.unheard is None:
            try:
                self._tell(event)
            except (ReaderGone, OSError, BatonError) as error:
                self.unheard = error
                if self.stop is not None:
                    self.stop.request()

    def note(self, text: str) -> None:
        """Say something, once."""
        if text not in self._told:
            self._told.add(text)
            self.say({"event": "note", "text": text})

    @contextmanager
    def opened(self) -> Iterator[SessionController]:
        """The controller, with a context of its own for each call."""

        def doing(text: str) -> None:
            self._board.doing = text

        with contexts.opened(self._project, create=True, progress=doing) as surroundings:
            yield SessionController(surroundings)

    def call(self, verb: Callable[[SessionController], Value]) -> Value:
        """One verb of the protocol. Once the end was asked for, it may be interrupted."""
        try:
            if self.stop is None:
                with self.opened() as controls:
                    return verb(controls)
            with self.stop.interruptible(), self.opened() as controls:
                return verb(controls)
        finally:
            self._board.doing = ""

    def look(self, change: str) -> dict[str, Any]:
        """A change as `status` shows it now."""
        with self._observer() as looks:
            return dict(looks.status(change)["changes"][0])

    def plan_changed(self, change: str) -> bool:
        """Whether the tasks file says something else than at the last call, boxes aside."""
        try:
            folder = projects.change(self._project, change)
            facts = folder.tasks.stat()
            stamp = facts.st_mtime_ns, facts.st_size, facts.st_ino
            if stamp == self._stamp:
                return False
            digest = tasks.parse(folder.tasks.read_bytes()).digest
        except (OSError, BatonError):
            return False  # the next call says it
        before, self._stamp, self._digest = self._digest, stamp, digest
        return before != digest

    def refuse_unknown(self, change: str, session: str) -> None:
        """Refuse a session that never had a ticket of a change (`unknown_session`): a slip of the pen would begin another
        one, which waits for the tickets of the one that was meant."""
        with self._observer() as looks:
            if any(event["session"] == session for event in looks.log(change)["events"]):
                return
        raise BatonError(
            "unknown_session",
            f"session {session!r} never had a ticket of {change}",
            f"`baton status {shlex.quote(change)} --json` names the sessions; leave --session out for a new one",
            USAGE,
        )

    def committed(self, change: str, ticket: str) -> bool:
        """Whether the work on a ticket has commits; where that cannot be told, it may."""
        try:
            with self._observer() as looks:
                return bool(looks.diff(change, ticket)["commits"])
        except BatonError:
            return True

    @contextmanager
    def _observer(self) -> Iterator[Observer]:
        with contexts.opened(self._project, create=False) as surroundings:
            yield Observer(surroundings)


def merged(change: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The integrated tickets of a change as `status` shows it, by their merge commits: numbers may move."""
    tickets = (ticket for section in change["sections"] for ticket in section["tickets"])
    return {str(one["evidence"]["commit"]): one for one in tickets if one["status"] == "integrated"}
