"""The run: two sessions that follow the protocol, and scripted agents that are separate processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from baton_cli import context as contexts
from baton_cli import project as projects
from baton_cli.controller import SessionController
from baton_cli.core.lifecycle import Terminal
from baton_cli.demo import children, scenario
from baton_cli.demo.witness import Ended, Witness, id_of
from baton_cli.errors import BatonError

ROUNDS = 15  # the story needs 6; a Baton with a fault could go in circles
HAND_OUTS = ("dispatch", "recover", "resolve_merge")

Say = Callable[[str], None]
Action = Mapping[str, Any]


@dataclass
class Session:
    """Drives the change. `say` hears the story, `show` is called for the queue view."""

    root: Path
    witness: Witness
    say: Say
    show: Callable[[dict[str, Any]], None]
    merged: set[str] = field(default_factory=set)
    stale: Action | None = None  # the liar's claim, which is tried again when somebody else has the ticket

    @contextmanager
    def controller(self) -> Iterator[SessionController]:
        with contexts.opened(projects.find(self.root), create=True) as surroundings:
            yield SessionController(surroundings)

    def play(self) -> bool:
        """The whole change; whether Baton says that it is complete."""
        handed = self.two_at_once()
        self.work(handed)
        self.view()
        for _ in range(ROUNDS):
            with self.controller() as controls:
                answer = controls.actions(scenario.CHANGE, next(iter(scenario.SESSIONS)))
            self.settled_by_baton()
            handed = hand_outs(answer)
            if not handed:
                break
            self.say(_handed_out(handed))
            self.work(handed)
        self.view()
        return bool(answer["state"] == "complete")

    def two_at_once(self) -> list[Action]:
        """Two sessions ask at the same moment, each in a process of its own."""
        answers: dict[str, list[Action]] = {}
        with children.Group() as group:
            asked = {
                group.baton(self.root, "actions", scenario.CHANGE, "--session", name, "--capacity", str(capacity)): name
                for name, capacity in scenario.SESSIONS.items()
            }
            for child in group.as_they_end():
                if child.code != 0:
                    raise BatonError("demo_failed", f"baton actions failed: {child.complaint()}")
                answers[asked[child]] = hand_outs(child.said())
        given = {name: [id_of(action) for action in answers[name]] for name in scenario.SESSIONS}
        self.witness.claimed(given)
        shares = ", ".join(f"{name} gets {' '.join(ids)}" for name, ids in given.items())
        self.say(f"Two sessions ask at the same moment: {shares}.")
        self.say(f"{self.witness.at_once} agents start, each in a worktree of its own:")
        return [action for name in scenario.SESSIONS for action in answers[name]]

    def work(self, handed: Sequence[Action]) -> None:
        """One agent for each action, all at once; each is reconciled as soon as it has ended."""
        for action in handed:
            self.witness.handed(action)
        running: dict[children.Child, tuple[Action, str]] = {}
        with children.Group() as group, self.controller() as controls:
            for action in handed:
                part = scenario.CAST.get(id_of(action), scenario.STEADY) if action["attempt"] == 1 else scenario.STEADY
                running[group.agent(part, Path(action["cwd"]), action["prompt"])] = action, part
            for child, (action, _) in running.items():
                controls.bind(action["assignment_id"], action["claim_token"], f"agent-{child.pid}")
            for child in group.as_they_end():
                self.reconcile(child, *running[child])

    def reconcile(self, child: children.Child, action: Action, part: str) -> None:
        """Hand the completion notice on, whatever the agent said of itself."""
        ended = self.witness.agent_ended(action, child)
        terminal = Terminal.COMPLETED if child.code == 0 else Terminal.FAILED
        with self.controller() as controls:
            settled = controls.reconcile(
                action["assignment_id"], action["claim_token"], terminal, note=ended.said or None
            )
            if part == "liar":
                self.stale = action
            elif self.stale is not None and self.stale["assignment_id"] == action["assignment_id"]:
                self.witness.stale_refused = _refused(controls, self.stale)
        self.merged = self.witness.look(f"after the agent of {ended.ticket} ended")
        self.say(f"  {ended.ticket}  {_outcome(part, action['kind'], ended, settled)}")

    def settled_by_baton(self) -> None:
        """Tickets that a call of `actions` merged: Baton had to seal them itself."""
        before, self.merged = self.merged, self.witness.look("after a call of actions")
        for ticket in sorted(self.merged - before):
            self.say(f"  {ticket}  Baton itself runs the checks on what was committed, seals and merges it")

    def view(self) -> None:
        """The queue view of this moment."""
        from baton_cli.observer import Observer

        with contexts.opened(projects.find(self.root), create=False) as surroundings:
            self.show(Observer(surroundings).status(scenario.CHANGE))


def hand_outs(answer: Mapping[str, Any]) -> list[Action]:
    """The actions that go to agents."""
    return [action for action in answer["actions"] if action["kind"] in HAND_OUTS]


def _refused(controls: SessionController, stale: Action) -> bool:
    """Whether the token of an attempt that is over is refused."""
    try:
        controls.reconcile(stale["assignment_id"], stale["claim_token"], Terminal.COMPLETED)
    except BatonError as error:
        return error.code == "stale_claim"
    return False


def _handed_out(handed: Sequence[Action]) -> str:
    words = {"dispatch": "", "recover": " again", "resolve_merge": " with its conflict"}
    return "Next: " + ", ".join(f"{id_of(action)}{words[action['kind']]}" for action in handed)


def _outcome(part: str, kind: str, ended: Ended, settled: Mapping[str, Any]) -> str:
    """What became of one agent, for a newcomer."""
    state = settled["state"]
    if ended.complaint is not None:
        return f"failed: {ended.complaint}"
    if part == "liar" and state == "unknown":
        return f"says “{ended.said}” with nothing committed: not believed"
    if part == "crash" and state == "unknown":
        return "killed in the middle of its work; its half-written file stays there"
    if part == "cut-off" and state == "unknown":
        return "committed good work, and ended before it could seal it"
    refused = "red, so its seal is refused; mended; " if any(code for _, code in ended.seals) else ""
    if kind == "resolve_merge":
        refused += "conflict resolved in its worktree, "
    ends = {
        "integrated": "sealed and merged",
        "rejected": "sealed, but red together with another: not merged",
        "conflicted": "sealed, but in conflict with another: not merged, both sides kept",
    }
    return refused + ends.get(state, f"{state}: {settled.get('detail') or settled.get('reason')}")
