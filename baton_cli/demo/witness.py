"""What is seen while the demo runs: taken down at once, since later it can no longer be seen. Judged in `checks`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from baton_cli import context as contexts
from baton_cli import project as projects
from baton_cli.controller import SessionController
from baton_cli.core.receipt import Authority
from baton_cli.demo import outside, scenario
from baton_cli.demo.switchboard import Report
from baton_cli.errors import BatonError


@dataclass(frozen=True, slots=True)
class Edit:
    """The plan was edited: numbers before and after, what was merged by then, and the tickets in flight."""

    before: Mapping[str, str]
    after: Mapping[str, str]
    merged: tuple[str, ...]
    in_flight: tuple[str, ...]
    begun: int  # so many agents had begun


@dataclass(frozen=True, slots=True)
class Kill:
    """Baton was killed: exit codes, the branch, and the agents that were left running."""

    codes: tuple[int, ...]
    head: str
    merged: tuple[str, ...]
    orphans: tuple[Report, ...]
    begun: int


@dataclass
class Witness:
    """The observations of one run. `problems` are broken promises by the name of their check."""

    root: Path
    tasks: Path = field(init=False)
    original: bytes = field(init=False)  # tasks.md as a person wrote it last
    before: outside.Checkout = field(init=False)
    base: str = field(init=False)
    problems: dict[str, list[str]] = field(default_factory=dict)
    begun: list[Report] = field(default_factory=list)
    ended: list[Report] = field(default_factory=list)  # what each agent said last
    at_once: tuple[Report, ...] = ()
    drives: int = 0  # among which these were shared
    merged: tuple[str, ...] = ()
    conflict: str | None = None  # the ticket whose merge was handed out in progress
    recovered: set[str] = field(default_factory=set)
    stale_refused: bool = False
    edit: Edit | None = None
    kill: Kill | None = None
    running: tuple[Report, ...] | None = None  # agents that were left at the very end; None: it never came

    def __post_init__(self) -> None:
        self.tasks = self.root / "openspec" / "changes" / scenario.CHANGE / "tasks.md"
        self.original = self.tasks.read_bytes()
        self.before = outside.checkout(self.root, self.tasks)
        self.base = outside.git(self.root, "rev-parse", "HEAD")

    @property
    def branch(self) -> str:
        return f"refs/heads/baton/{scenario.CHANGE}/integration"

    def note(self, check: str, problem: str) -> None:
        self.problems.setdefault(check, []).append(problem)

    def merges(self) -> list[outside.Merge]:
        """The integration branch as it is."""
        return outside.merges(self.root, self.base, self.branch)

    def look(self, when: str) -> None:
        """Compare everything that must hold at any moment."""
        now = self.tasks.read_bytes()
        proved = [merge.ticket for merge in self.merges() if merge.fault is None and merge.ticket]
        early = sorted(outside.ticked(now) - set(proved))
        if early:
            self.note("evidence-only", f"{early[0]} was ticked {when}, with no merge that holds a receipt")
        wrong = bytes_beside_boxes(self.original, now)
        if wrong:
            self.note("tasks-bytes", f"{wrong} {when}")
        changed = self.before.differs(outside.checkout(self.root, self.tasks))
        if changed:
            self.note("checkout-untouched", f"{changed} {when}")
        self.merged = tuple(proved)

    def claimed(self, held: Iterable[Report], drives: Mapping[int, str]) -> str:
        """The agents that run at once, of several drives. Which drive has what, in words."""
        self.at_once = tuple(held)
        shares: dict[str, list[str]] = {}
        for report in self.at_once:
            shares.setdefault(drives.get(report.drive, "another"), []).append(scenario.NAMES[report.ticket])
        self.drives = len(shares)
        return "; ".join(f"{name} has {', '.join(shares[name])}" for name in sorted(shares))

    def began(self, report: Report) -> None:
        """An agent begins: whatever an earlier one left must still be there, and nobody else may be."""
        earlier = [item for item in self.ended if item.ticket == report.ticket]
        there = [item for item in self.begun if item.ticket == report.ticket and item.alive]
        self.begun.append(report)
        if there:
            self.note("exactly-once", f"the agent before still ran when {report.ticket} was handed out again")
        if report.conflict:
            self.conflict = report.ticket
        if not earlier:
            return
        self.recovered.add(report.ticket)
        for name, text in earlier[-1].loose.items():
            if report.loose.get(name) != text:
                self.note("nothing-lost", f"{name} of {report.ticket} was gone when it was handed out again")

    def left(self, report: Report) -> None:
        """An agent says what it leaves: its commit, and its files that are not committed."""
        self.ended.append(report)

    def try_stale(self, ticket: str) -> None:
        """What an agent of an attempt that is over could still do: seal with its old key, now that another has the ticket."""
        words = self.first(ticket).seal.split()
        with contexts.opened(projects.find(self.root), create=False) as surroundings:
            try:
                SessionController(surroundings).seal(words[-3], Authority("key", key=words[-1]))
            except BatonError as error:
                self.stale_refused = error.code == "stale_claim"

    def edited(self, before: Mapping[str, str], in_flight: tuple[str, ...]) -> None:
        """A person has edited tasks.md."""
        self.original = self.tasks.read_bytes()
        self.edit = Edit(before, outside.numbers(self.original), self.merged, in_flight, len(self.begun))

    def killed(self, codes: Iterable[int]) -> int:
        """Baton was killed; how many agents it left."""
        orphans = tuple(report for report in self.begun if report.alive)
        head = outside.git(self.root, "rev-parse", self.branch)
        self.kill = Kill(tuple(codes), head, self.merged, orphans, len(self.begun))
        return len(orphans)

    def over(self) -> None:
        """The last drive has ended."""
        self.running = tuple(report for report in self.begun if report.alive)

    def first(self, ticket: str) -> Report:
        """What the first agent of a ticket said last. Error: BatonError when it never did."""
        found = next((report for report in self.ended if report.ticket == ticket), None)
        if found is None:
            raise BatonError("demo_failed", f"no agent of {ticket} ended")
        return found


def bytes_beside_boxes(before: bytes, now: bytes) -> str | None:
    """What differs in tasks.md other than marks of boxes that were empty."""
    if len(before) != len(now):
        return f"tasks.md had {len(before)} bytes and has {len(now)}"
    slots = {found.start(1) for found in outside.BOX.finditer(before)}
    wrong = [place for place, (old, new) in enumerate(zip(before, now, strict=True)) if old != new]
    beside = [place for place in wrong if place not in slots or now[place : place + 1] != b"x"]
    return f"byte {beside[0]} of tasks.md changed" if beside else None
