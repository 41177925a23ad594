"""What is seen while the demo runs: taken down at once, since later it can no longer be seen. Judged in `checks`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from baton_cli.demo import outside, scenario
from baton_cli.demo.children import Child


@dataclass(frozen=True, slots=True)
class Ended:
    """How one agent ended: its exit code, what it said, its commit, and its files that are not committed."""

    ticket: str
    place: Path
    code: int
    said: str
    seals: tuple[tuple[str, int], ...]  # head, exit code of the seal command
    head: str
    drafts: Mapping[str, bytes]
    complaint: str | None  # why it failed, if it did and was not meant to


@dataclass
class Witness:
    """The observations of one run. `problems` are broken promises by the name of their check."""

    root: Path
    tasks: Path = field(init=False)
    original: bytes = field(init=False)
    before: outside.Checkout = field(init=False)
    base: str = field(init=False)
    problems: dict[str, list[str]] = field(default_factory=dict)
    ended: list[Ended] = field(default_factory=list)
    claims: dict[str, tuple[str, ...]] = field(default_factory=dict)
    at_once: int = 0
    conflict: str | None = None  # the ticket whose merge was handed out in progress
    stale_refused: bool = False
    recovered: list[str] = field(default_factory=list)

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

    def merged(self) -> list[outside.Merge]:
        """The integration branch as it is."""
        return outside.merges(self.root, self.base, self.branch)

    def look(self, when: str) -> set[str]:
        """Compare everything that must hold at any moment; the tickets that are merged."""
        now = self.tasks.read_bytes()
        proved = {merge.ticket for merge in self.merged() if merge.fault is None and merge.ticket}
        early = sorted(outside.ticked(now) - proved)
        if early:
            self.note("evidence-only", f"{early[0]} was ticked {when}, with no merge that holds a receipt")
        wrong = bytes_beside_boxes(self.original, now)
        if wrong:
            self.note("tasks-bytes", f"{wrong} {when}")
        changed = self.before.differs(outside.checkout(self.root, self.tasks))
        if changed:
            self.note("checkout-untouched", f"{changed} {when}")
        return proved

    def claimed(self, claims: Mapping[str, Sequence[str]]) -> None:
        """What the two sessions that asked at once were given, and the worktrees there are."""
        self.claims = {session: tuple(tickets) for session, tickets in claims.items()}
        listed = outside.git(self.root, "worktree", "list", "--porcelain")
        self.at_once = listed.count(f"branch refs/heads/baton/{scenario.CHANGE}/")

    def handed(self, action: Mapping[str, Any]) -> None:
        """An action goes out: whatever an earlier agent left must still be there."""
        ticket, place = id_of(action), Path(action["cwd"])
        earlier = [item for item in self.ended if item.ticket == ticket]
        if not earlier:
            return
        self.recovered.append(ticket)
        last = earlier[-1]
        if outside.git(place, "merge-base", last.head, "HEAD") != last.head:
            self.note("nothing-lost", f"the commit of {ticket} was gone when it was handed out again")
        for name, data in last.drafts.items():
            if not (place / name).is_file() or (place / name).read_bytes() != data:
                self.note("nothing-lost", f"{name} of {ticket} was gone when it was handed out again")
        if action["kind"] == "resolve_merge":
            both = outside.git(place, "rev-parse", "--verify", "--quiet", "MERGE_HEAD", codes=(0, 1))
            if both and b"<<<<<<<" in (place / "hello.sh").read_bytes():
                self.conflict = ticket

    def agent_ended(self, action: Mapping[str, Any], child: Child) -> Ended:
        """An agent has ended, however it did."""
        place, answer = Path(action["cwd"]), child.said()
        loose = outside.git(place, "ls-files", "-z", "--others", "--modified", "--exclude-standard").split("\0")
        ended = Ended(
            ticket=id_of(action),
            place=place,
            code=child.code,
            said=answer.get("said", ""),
            seals=tuple((item["head"], item["exit"]) for item in answer.get("seals", ())),
            head=outside.git(place, "rev-parse", "HEAD"),
            complaint=child.complaint() if child.code > 0 else None,
            drafts={name: (place / name).read_bytes() for name in loose if name and (place / name).is_file()},
        )
        self.ended.append(ended)
        return ended

    def first(self, ticket: str) -> Ended | None:
        """How the first agent of a ticket ended."""
        return next((item for item in self.ended if item.ticket == ticket), None)


def id_of(action: Mapping[str, Any]) -> str:
    """`1.2` of an action."""
    return str(action["ticket"]).rpartition("#")[2]


def bytes_beside_boxes(before: bytes, now: bytes) -> str | None:
    """What differs in tasks.md other than marks of boxes that were empty."""
    if len(before) != len(now):
        return f"tasks.md had {len(before)} bytes and has {len(now)}"
    slots = {found.start(1) for found in outside.BOX.finditer(before)}
    wrong = [place for place, (old, new) in enumerate(zip(before, now, strict=True)) if old != new]
    beside = [place for place in wrong if place not in slots or now[place : place + 1] != b"x"]
    return f"byte {beside[0]} of tasks.md changed" if beside else None
