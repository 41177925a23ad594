"""The loop: actions, start, bind, wait for any agent to end, reconcile, actions ... until nothing is left to do."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from baton_cli.core.actions import HAND_OUTS
from baton_cli.core.lifecycle import Terminal
from baton_cli.drive.board import Board, Tell
from baton_cli.drive.child import Child
from baton_cli.drive.crew import Crew
from baton_cli.drive.desk import Desk, merged
from baton_cli.drive.failing import Failing
from baton_cli.drive.order import Order
from baton_cli.drive.records import Records
from baton_cli.drive.results import Results, waiting_for
from baton_cli.drive.stopping import Interrupted, Stop
from baton_cli.drive.ticker import Ticker
from baton_cli.errors import BatonError
from baton_cli.project import Project

SCHEMA = "baton.drive/1"
OVER = ("stale_claim", "unknown_assignment", "bound")  # errors after which a notice has no addressee any more
SHORTEST, LONGEST = 1.0, 10.0  # seconds between two questions while others hold what we wait for
LOOK = 2.0  # seconds between two looks at the plan
Answer = Mapping[str, Any]


class Driver:
    """One run of `drive`. `tell` hears events; `board` can be drawn meanwhile, from another thread."""

    def __init__(self, project: Project, order: Order, board: Board, tell: Tell) -> None:
        self.project, self.order, self.board = project, order, board
        self.records = Records(project)
        self.session = self.records.name if order.session == "new" else order.session
        self.desk = Desk(project, board, tell)
        self.crew = Crew(project, order, self.records, board, self.desk.say)
        self.results = Results(board, self.desk.say, self.desk.note)
        self.failing = Failing(lambda ticket: self.desk.committed(order.change, ticket))
        self.stop = self.desk.stop = Stop(self.crew.stop, self.crew.kill)
        self._answer: dict[str, Any] = {}
        self._before = self._external = 0  # tickets that were integrated, or ticked by hand, when this drive began
        self._pause = SHORTEST
        self._ended: list[Child] = []  # not reconciled yet
        self._said: set[str] = set()

    def run(self) -> dict[str, Any]:
        """Drive, and settle everything before returning, as `baton.drive/1`. Its state is complete, blocked, waiting or
        interrupted. A second interrupt leaves at once, as a kill would; the next drive settles what is left."""
        begun = time.monotonic()
        if self.order.session != "new":
            self.desk.refuse_unknown(self.order.change, self.session)
        with self.desk.opened():  # makes the state folder; a project that cannot be used is refused here
            self.records.announce(self.order.change, self.session)
        with self.stop, Ticker(self.project, self.crew, self.order.time_limit):
            try:
                state = self._drive()
            except Interrupted:
                state = "interrupted"
            except Exception:
                self._settle()
                raise
            self._settle()
        if self.desk.unheard is not None:
            raise self.desk.unheard
        return self._summary(state, time.monotonic() - begun)

    # -- the loop -----------------------------------------------------------------------------------------------

    def _drive(self) -> str:
        look = self.desk.look(self.order.change)
        self._before, self.results.merged = look["progress"]["integrated"], set(merged(look))
        self._external = look["progress"]["external"]
        self.board.progress(look["progress"])
        self.desk.say({"event": "begin", "change": self.order.change, "session": self.session})
        while True:
            while self.failing.found and self.crew.running:  # what they do counts, and may show that the command works
                self._await(None)
            if self.failing.found:
                return "blocked"
            answer = self._actions()
            handed = [action for action in answer.get("actions", ()) if action["kind"] in HAND_OUTS]
            if answer:
                self._tell_results(handed, answer.get("notices", ()))
                if answer["progress"]["integrated"] > len(self.results.merged):
                    self.results.tell_merged(merged(self.desk.look(self.order.change)), self.crew.tickets)
            self._start(handed)
            if self._lost(answer) or (handed and self.crew.free and self._more_in_flight(answer)):
                continue  # in the second case something was claimed for which the answer had no room
            if answer and not handed and not self.crew.running:
                if answer["state"] != "active":
                    return str(answer["state"])
                self.desk.note(waiting_for(answer))
                if not self.order.wait:
                    return "waiting"
            self._await(self._patience(answer))

    def _actions(self) -> dict[str, Any]:
        """The next answer. While agents run, an error waits for them (their work counts) and the answer is empty."""
        self.desk.plan_changed(self.order.change)  # what is changed from now on is news
        try:
            self._release_dead()
            answer = self.desk.call(
                lambda controls: controls.actions(self.order.change, self.session, self.order.parallel)
            )
        except BatonError as error:
            if not self.crew.running:
                raise
            self.desk.note(f"{error.message} ({error.hint})")
            return {}
        self._answer = answer
        self.board.progress(answer["progress"])
        for notice in answer.get("notices", ()):
            self.desk.note(notice)
        return answer

    def _more_in_flight(self, answer: Answer) -> bool:
        return bool(answer["progress"]["in_flight"] > len(self.crew.running))

    def _patience(self, answer: Answer) -> float | None:
        """How many seconds to wait before asking again. None: nothing can change until an agent of ours ends."""
        others = not answer or self._ended or (self.crew.free and self._more_in_flight(answer))
        if self.crew.running and not others:
            return None
        pause, self._pause = self._pause, min(2 * self._pause, LONGEST)
        return pause

    def _start(self, handed: list[dict[str, Any]]) -> None:
        """Start an agent for each action, then bind them."""
        children = []
        for action in handed:
            child = self.crew.of(action["assignment_id"])
            if child is None or child.token != action["claim_token"]:  # the same token: it could not be bound before
                self._make_room(action["assignment_id"])
                child = self.crew.start(action)
            if child.failure:
                self.failing.add(child)
                self._reconcile(child)
            else:
                children.append(child)
        for child in children:
            self._bind(child)

    def _make_room(self, assignment: str) -> None:
        """Wait for a slot: an agent that has sealed holds no claim any more and may still run. One whose claim ran out
        while this machine slept is ended: there must not be two in one worktree."""
        while (old := self.crew.of(assignment)) is not None or not self.crew.free:
            if old is not None:
                old.stop(Terminal.STOPPED, "its lease ran out")
            self._await(None)
        if self.stop.requested:
            raise Interrupted

    def _bind(self, child: Child) -> None:
        try:
            self.desk.call(lambda controls: controls.bind(child.assignment, child.token, child.agent))
        except BatonError as refusal:
            self.desk.note(f"{refusal.message} ({refusal.hint})")
            if refusal.code in OVER:  # somebody took the ticket meanwhile
                child.stop(Terminal.STOPPED, refusal.message)

    def _await(self, timeout: float | None) -> None:
        """Wait until an agent has ended, the time is over or the end is asked for. All that have ended are reconciled."""
        ended = self._wait(timeout)
        for child in ended:
            self.failing.add(child)
            self._pause = SHORTEST
        self._ended += ended
        for _ in range(len(self._ended)):
            self._reconcile(self._ended.pop(0))
        if self.stop.requested:
            raise Interrupted

    def _wait(self, timeout: float | None) -> list[Child]:
        """Wait for agents; with a free slot also for an edit of the plan, which may have work for it."""
        if timeout is not None or not self.crew.free:
            return self.crew.wait(timeout)
        while True:
            ended = self.crew.wait(LOOK)
            if ended or self.stop.requested or self.desk.plan_changed(self.order.change):
                return ended

    def _reconcile(self, child: Child) -> None:
        """Hand the completion notice on. What the agent said last stays a note."""
        terminal, why = child.ending()
        if self.failing.excuses(child):
            terminal, why = Terminal.STOPPED, f"not counted, the command fails on every ticket: {why}"
        note = why or child.said()
        try:
            settled = self.desk.call(
                lambda controls: controls.reconcile(child.assignment, child.token, terminal, child.agent, note)
            )
        except BatonError as refusal:
            if refusal.code not in OVER:  # a broken baton.toml, say: nothing about this agent, so once more later
                self.desk.note(f"{refusal.message} ({refusal.hint})")
                self._ended.append(child)
                return
            settled = {
                "state": "refused",
                "detail": f"somebody took it up or decided about it meanwhile ({refusal.message})",
            }
        except Interrupted:
            self.results.defer(child)
            raise
        self.results.add(child, terminal, why, settled)

    # -- what others left ---------------------------------------------------------------------------------------

    def _release_dead(self) -> None:
        """End the agents of killed drives, and give their tickets back. What is being sealed just now stays until the next
        call."""
        for said in self.records.end_orphans():
            if said not in self._said:
                self._said.add(said)
                self.desk.note(said)
        for path, change, session in self.records.dead_sessions():
            ours = session == self.session and self.crew.running
            if ours or not self._release(change, session):
                path.unlink(missing_ok=True)

    def _release(self, change: str, session: str) -> int:
        return self.desk.call(lambda controls: controls.release(change, session))

    def _lost(self, answer: Answer) -> bool:
        """Claims of a continued session whose agents are not ours: nobody here would learn of their end."""
        found, ours = False, {child.assignment for child in (*self.crew.running.values(), *self._ended)}
        for action in answer.get("actions", ()):
            for item in action["in_flight"] if action["kind"] == "wait" else ():
                if isinstance(item, dict) and "claim_token" in item and item["assignment_id"] not in ours:
                    found = self._give_up(item) or found
        return found

    def _give_up(self, claim: Answer) -> bool:
        self.desk.note(f"{claim['ticket']}: session {self.session} has no agent on it here, so it is handed out again")
        assignment, token = claim["assignment_id"], claim["claim_token"]
        return self._try(
            lambda: self.desk.call(lambda controls: controls.reconcile(assignment, token, Terminal.LOST)),
        )

    # -- the end ------------------------------------------------------------------------------------------------

    def _settle(self) -> None:
        """End and reconcile what runs, give back what is claimed. Then nothing of this drive is left."""
        self.crew.stop()
        while self.crew.running:
            self._ended += self.crew.wait(None)
        for _ in range(len(self._ended)):
            self._try(lambda: self._reconcile(self._ended.pop(0)))
        self._tell_results((), (), last=True)
        if self._try(lambda: self._release(self.order.change, self.session)):
            self.records.retire()

    def _tell_results(self, handed: Sequence[Answer], notices: Sequence[str], *, last: bool = False) -> None:
        if self.results.open:
            self._try(
                lambda: self.desk.call(lambda controls: self.results.settle(controls, handed, notices, last=last))
            )

    def _try(self, step: Callable[[], object]) -> bool:
        """Whether a step of the end went well; one that did not is left to the next drive."""
        try:
            step()
        except Interrupted:
            return False
        except BatonError as error:
            self.desk.note(error.message)
            return False
        return True

    def _summary(self, state: str, seconds: float) -> dict[str, Any]:
        progress = self._progress(state)
        shown = [action for action in self._answer.get("actions", ()) if action["kind"] in ("complete", "blocked")]
        if self.failing.found:
            shown = [self.failing.told()]
        return {
            "schema": SCHEMA,
            "change": self.order.change,
            "state": state,
            "session": self.session,
            "progress": progress,
            "started": len(self.crew.tickets),
            "integrated": max(0, progress.get("integrated", 0) - self._before),
            "attempts": self.crew.attempts,
            "seconds": round(seconds, 1),
            "unproved": max(0, progress.get("external", 0) - self._external),
            "actions": shown if state in ("complete", "blocked") else [],
        }

    def _progress(self, state: str) -> dict[str, int]:
        """The newest counts: those of the last answer, unless agents were stopped since."""
        if state == "interrupted" or self.failing.found:
            try:
                return dict(self.desk.look(self.order.change)["progress"])
            except BatonError:
                pass
        return dict(self._answer.get("progress", {}))
