"""The run: two drives at once, an edit of the plan, kill -9 for both, and the same command again until all is done.

The director only lets agents begin and says which part they play. What happens, happens between `baton drive`, its
agents and git; each act goes on when the events that it waits for have come, never after a time.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from baton_cli.demo import agent, outside, scenario
from baton_cli.demo.drives import Drive, end_agent
from baton_cli.demo.switchboard import Report, Switchboard
from baton_cli.demo.witness import Witness

ENDED = re.compile(r"^(integrated|rejected|conflicted|not done|sealed|exhausted|refused|abandoned) +\S+  .*")
FIRST = tuple(scenario.CAST)
PATIENCE = 30.0  # seconds without any event; then something hangs

Say = Callable[[str], None]


class Stuck(Exception):
    """Nothing happens any more, or not what should: the story ends here, and is judged as it is."""


@dataclass
class Director:
    """`say` hears the story. `wrong` is why it did not come to its end, if it did not."""

    root: Path
    witness: Witness
    say: Say
    wrong: str = ""
    board: Switchboard = field(init=False)
    drives: list[Drive] = field(default_factory=list)
    held: dict[str, Report] = field(default_factory=dict)  # agents that wait for their part
    halfway: set[str] = field(default_factory=set)  # tickets whose agent stands still in the middle
    free: bool = False  # whether agents need not wait for anything
    heard: float = field(default_factory=time.monotonic)  # when the last event came
    last: dict[str, Report] = field(default_factory=dict)  # how the newest agent of a ticket ended

    def play(self) -> bool:
        """Whether Baton said that the change is complete."""
        with Switchboard(self.root.parent / "line") as self.board, ExitStack() as stack:
            stack.callback(self._clear)
            try:
                self.two_at_once()
                self.edit_the_plan()
                self.kill_both()
                return self.again()
            except Stuck as stuck:
                self.wrong = str(stuck)
                return False

    # -- the acts -----------------------------------------------------------------------------------------------

    def two_at_once(self) -> None:
        """Two drives share the first section, until each of its tickets is merged or handed out a second time."""
        for name in ("left", "right"):
            self._start(name)
        self._until(lambda: len(self.held) == len(FIRST))
        shares = self.witness.claimed(self.held.values(), {drive.pid: drive.name for drive in self.drives})
        self.say(f"Two drives at once: {shares}.")
        for ticket in FIRST:
            self._let(ticket, scenario.CAST[ticket])
        self._until(lambda: {*self.held, *self.witness.merged} >= set(FIRST))

    def edit_the_plan(self) -> None:
        """A person puts a ticket on top and renumbers the others; a stale agent tries to seal; one ticket goes on."""
        if scenario.LIAR in self.held:
            self.witness.try_stale(scenario.LIAR)
        before = outside.numbers(self.witness.tasks.read_bytes())
        self.witness.tasks.write_bytes(insert(self.witness.tasks.read_bytes()))
        self.witness.edited(before, tuple(self.held))
        self.say("A person edits tasks.md meanwhile: French is the new 1.1, others move by one.")
        self._let(scenario.LIAR, "steady")
        self._until(lambda: scenario.ADDED in self.held)

    def kill_both(self) -> None:
        """kill -9 to both drives, while their agents have half of their work, all of it, or nothing yet."""
        for name in scenario.COLLIDING:
            self._let(name, "committed")
        self._let(scenario.ADDED, "halfway")
        wanted = {scenario.ADDED, *(name for name in scenario.COLLIDING if name not in self.witness.merged)}
        self._until(lambda: self.halfway >= wanted)
        codes = [drive.kill() for drive in self.drives]
        self.drives.clear()
        self._tell_merged("after kill -9")
        left = self.witness.killed(codes)
        self.held.clear()
        self.say(f"kill -9 to both drives; {left} agents are left alone in the middle of their work.")

    def again(self) -> bool:
        """The same command once more, to the end."""
        self.free = True
        self.say("The same command again:")
        drive = self._start("again")
        while drive in self.drives:
            self._event()
        code = drive.end()
        self._tell_merged("at the end")
        self.witness.over()
        if code != 0:
            self.wrong = f"baton drive ended with exit code {code}: {drive.said[-1] if drive.said else ''}"
        return code == 0

    # -- events -------------------------------------------------------------------------------------------------

    def _start(self, name: str) -> Drive:
        self.drives.append(Drive(name, self.root, self.board))
        return self.drives[-1]

    def _until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self._event()
            if not self.drives:
                raise Stuck("both drives have ended")

    def _let(self, ticket: str, part: str) -> None:
        """Let an agent that waits play its part."""
        if ticket in self.held:
            self.held.pop(ticket).answer(part)

    def _event(self) -> None:
        event = self.board.next()
        if event is None:
            self._tell_merged("when nothing else happened")
            if time.monotonic() - self.heard > PATIENCE:
                raise Stuck(f"nothing happened for {PATIENCE:.0f} s")
            return
        self.heard = time.monotonic()
        owner, line = event
        if isinstance(owner, Drive):
            self._from_drive(owner, line)
        elif line is not None:
            self._from_agent(self.board.report(line))

    def _from_drive(self, drive: Drive, line: str | None) -> None:
        if line is None:
            if drive in self.drives and not self.free:
                self.wrong = f"a drive ended: {drive.said[-1] if drive.said else ''}"
            self.drives = [other for other in self.drives if other is not drive]
            drive.end()
            return
        drive.said.append(line)
        ended, ticket = ENDED.match(line), agent.named(line)
        if ended is not None and ticket is not None:
            self._tell_merged(f"after the agent of {self._label(ticket)} ended")
            said = self._refusal(ticket, ended[1], line)
            if said:
                self._tell(ticket, said)

    def _from_agent(self, report: Report) -> None:
        if report.event == "begin":
            self.witness.began(report)
            if self.free:
                report.answer("steady")
            else:
                self.held[report.ticket] = report
        elif report.event == "halfway":
            self.halfway.add(report.ticket)
        else:
            self.last[report.ticket] = report
        if report.event != "begin":
            self.witness.left(report)

    def _clear(self) -> None:
        for drive in self.drives:
            drive.end()
        for report in self.witness.begun:
            if report.alive:
                end_agent(report.ear)

    # -- words --------------------------------------------------------------------------------------------------

    def _label(self, ticket: str) -> str:
        number = outside.numbers(self.witness.tasks.read_bytes()).get(ticket, "?")
        return f"{number} {scenario.NAMES.get(ticket, ticket)}"

    def _tell(self, ticket: str, text: str) -> None:
        self.say(f"  {self._label(ticket):<13} {text}")

    def _tell_merged(self, when: str) -> None:
        """What git has and had not when it was looked at before; which of two drives did it does not matter."""
        before = self.witness.merged
        self.witness.look(when)
        for ticket in self.witness.merged[len(before) :]:
            end = self.last.get(ticket)
            by = "sealed by its agent" if end is not None and end.seals else "checked and sealed by Baton"
            again = "taken up again; " if ticket in self.witness.recovered else ""
            self._tell(ticket, f"{'conflict resolved; ' if ticket == self.witness.conflict else again}{by}, merged")

    def _refusal(self, ticket: str, state: str, line: str) -> str | None:
        """Why the work of one agent was not merged, for a newcomer. None: it was, or is about to be."""
        end = self.last.get(ticket)
        if state == "rejected":
            hasty = "red, its seal is refused; mended; " if end is not None and end.seals else "green alone, "
            return f"{hasty}red with another: not merged"
        if state == "conflicted":
            return "in conflict with another: not merged, both sides kept"
        if state != "not done":
            return None if state in ("integrated", "sealed") else line
        if end is None or end.head != self.witness.base:
            return None if end is not None and end.said else line
        return f"says “{end.said}” but did nothing: not believed" if end.said else "its agent is killed half-way"


def insert(data: bytes) -> bytes:
    """The edit: one more ticket at the top of the first section, which has the numbers of the others move by one."""
    lines = data.decode("utf-8").split("\n")
    top = next(place for place, line in enumerate(lines) if re.match(r"- \[.\] 1\.1 ", line))
    moved = [re.sub(r"^(- \[.\] 1\.)(\d+)", lambda found: f"{found[1]}{int(found[2]) + 1}", line) for line in lines]
    return "\n".join([*moved[:top], scenario.INSERTED, *moved[top:]]).encode("utf-8")
