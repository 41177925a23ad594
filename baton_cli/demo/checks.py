"""The verdict: every promise that the demo shows, checked with git, files and the project's own check program.

A check that had nothing to look at fails too: a promise is not kept because nothing tried to break it.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from baton_cli.demo import outside, scenario
from baton_cli.demo.witness import Witness
from baton_cli.errors import BatonError

KILLED = -9


@dataclass(frozen=True, slots=True)
class Check:
    """One promise: whether it held, and what was looked at, or what is wrong."""

    name: str
    passed: bool
    detail: str


@dataclass
class Scene:
    """The witness's notes, the branch as it is at the end, and a folder in which any tree can be tried."""

    witness: Witness
    place: Path
    merges: list[outside.Merge] = field(init=False)
    tickets: set[str] = field(init=False)
    _trees: dict[str, str] = field(init=False)  # of every commit that anybody asks about
    _tried: dict[str, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        (self.place / "objects").mkdir(parents=True)
        self.merges = self.witness.merges()
        self.tickets = set(outside.numbers(self.witness.original))
        commits = {self.witness.base, *(oid for merge in self.merges for oid in (merge.oid, *merge.parents))}
        for ended in self.witness.ended:
            commits |= {ended.head, *(head for head, _ in ended.seals)}
        names = sorted(commits)
        self._trees = dict(
            zip(names, self._git("rev-parse", *(f"{name}^{{tree}}" for name in names)).split(), strict=True)
        )

    def green(self, commit: str) -> bool:
        """Whether a clean checkout of a commit, or a tree, passes the project's check."""
        tree = self._trees.get(commit, commit)
        if tree not in self._tried:
            folder = self.place / tree
            folder.mkdir()
            self._git(f"--work-tree={folder}", "checkout", tree, "--", ".")
            done = subprocess.run(
                scenario.CHECK, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, check=False
            )
            self._tried[tree] = done.returncode == 0
        return self._tried[tree]

    def merge(self, one: str, other: str) -> str:
        """The tree that a merge of two commits gives, with nobody asking whether it is any good."""
        return self._git("merge-tree", "--write-tree", one, other)

    def _git(self, *words: str) -> str:
        """git on the project, with an index and new objects that are not the project's."""
        return outside.git(
            self.witness.root,
            *words,
            GIT_INDEX_FILE=str(self.place / "index"),
            GIT_OBJECT_DIRECTORY=str(self.place / "objects"),
            GIT_ALTERNATE_OBJECT_DIRECTORIES=str(self.witness.root / ".git" / "objects"),
        )


def judge(witness: Witness, place: Path) -> list[Check]:
    """All checks, in the order in which they are shown."""
    scene = Scene(witness, place)
    return [_one(name, question, sentence, scene) for name, (question, sentence) in CHECKS.items()]


def _one(name: str, question: Question, sentence: Sentence, scene: Scene) -> Check:
    wrong = list(scene.witness.problems.get(name, ()))
    try:
        wrong += question(scene)
    except (BatonError, OSError) as error:
        wrong.append(f"it could not be looked at: {error}")
    if not wrong:
        return Check(name, True, sentence(scene))
    more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
    return Check(name, False, wrong[0] + more)


def evidence_only(scene: Scene) -> Iterator[str]:
    """A box is ticked only for a merge whose receipt fits; what agents say is worth nothing, red work is refused."""
    witness, found = scene.witness, {merge.ticket for merge in scene.merges}
    yield from (f"{merge.oid[:12]} on the branch: {merge.fault}" for merge in scene.merges if merge.fault)
    unproved = sorted(outside.ticked(witness.tasks.read_bytes()) - found)
    yield from (f"{ticket} is ticked and not merged" for ticket in unproved)
    red = [merge.parents[-1] for merge in scene.merges if not scene.green(merge.parents[-1])]
    yield from (f"{head[:12]} has a receipt and is red" for head in red)
    lie = witness.first(scenario.LIAR)
    if not lie.said or lie.head != witness.base:
        yield "no agent claimed success without a commit"
    seals = {(ended.ticket, *seal) for ended in witness.ended for seal in ended.seals}
    if {code == 0 for _, _, code in seals} != {True, False}:
        yield "no agent sealed, or none committed red work and was refused"
    for ticket, head, code in seals:
        if scene.green(head) != (code == 0):
            yield f"{head[:12]} of {ticket} is {'green' if code else 'red'}, but its seal exited with {code}"


def always_green(scene: Scene) -> Iterator[str]:
    """A clean checkout of every commit the branch ever pointed to passes; and two tickets made that hard."""
    for commit in (scene.witness.base, *(merge.oid for merge in scene.merges)):
        if not scene.green(commit):
            yield f"a clean checkout of {commit[:12]} is red"
    pair = [scene.witness.first(ticket).head for ticket in scenario.COLLIDING]
    if not all(map(scene.green, pair)) or scene.green(scene.merge(*pair)):
        yield "no two tickets were green alone and red together"


def nothing_lost(scene: Scene) -> Iterator[str]:
    """Every commit an agent left is in the branch, and so are both sides of the conflict. Drafts were compared before."""
    witness = scene.witness
    known = set(outside.git(witness.root, "rev-list", witness.branch).split())
    for ended in witness.ended:
        for head in (ended.head, *(head for head, _ in ended.seals)):
            if head not in known:
                yield f"{head[:12]} of {ended.ticket} is not in the branch"
    if witness.conflict not in scenario.SAME_LINE:
        yield "no merge conflict was handed out as it was"
    crash = witness.first(scenario.CRASHED)
    if crash.said or not crash.loose or scenario.CRASHED not in witness.recovered:
        yield "no agent died in the middle of its work and was replaced"
    final = outside.git(witness.root, "show", f"{witness.branch}:README")
    if not re.search(r"^Languages: English, (?:Deutsch, Français|Français, Deutsch)$", final, re.M):
        yield "one side of the conflict is gone"


def checkout_untouched(scene: Scene) -> Iterator[str]:
    """The rest was compared after every step."""
    if outside.git(scene.witness.root, "stash", "list"):
        yield "something was stashed"


def exactly_once(scene: Scene) -> Iterator[str]:
    """Baton died while agents had half of their work and all of it; what was there was taken up, and merged once."""
    kill, branch = scene.witness.kill, {scene.witness.base, *(merge.oid for merge in scene.merges)}
    if kill is None or len(kill.codes) < 2 or set(kill.codes) != {KILLED}:
        yield "Baton was not killed"
        return
    drafts, commits = (
        any(report.loose for report in kill.orphans),
        any(report.head not in branch for report in kill.orphans),
    )
    if not drafts or not commits:
        yield "no agent was left alone with work that was not committed, or not sealed"
    if kill.head not in branch:
        yield "the branch of before is not part of the branch"
    again = {report.ticket for report in scene.witness.begun[kill.begun :]}
    yield from (f"{ticket} was not taken up" for ticket in sorted({report.ticket for report in kill.orphans} - again))
    yield from (f"{ticket} was merged, and begun again after the kill" for ticket in sorted(again & set(kill.merged)))
    heads = [merge.parents[-1] for merge in scene.merges]
    yield from (f"{head[:12]} was merged twice" for head in sorted(set(heads)) if heads.count(head) > 1)


def claims_exclusive(scene: Scene) -> Iterator[str]:
    """Agents of two drives ran at once, each with a ticket and a worktree of its own; and an old key seals nothing."""
    reports = scene.witness.at_once
    if len({report.ticket for report in reports}) != len(reports) or len({report.place for report in reports}) != len(
        reports
    ):
        yield "a ticket or a worktree was given twice"
    if len(reports) != len(scenario.CAST) or scene.witness.drives != 2:
        yield f"{len(reports)} agents of {scene.witness.drives} drives ran at once"
    if not scene.witness.stale_refused:
        yield "the key of an attempt that was over was accepted"


def plan_live(scene: Scene) -> Iterator[str]:
    """The edit counted at once: new numbers, the new ticket done, work in flight merged, finished work left alone."""
    edit = scene.witness.edit
    if edit is None or not edit.merged or not edit.in_flight:
        yield "the plan was not edited with work in flight and work merged"
        return
    if not any(edit.before[ticket] != edit.after[ticket] for ticket in edit.before):
        yield "no ticket has another number"
    merged = {merge.ticket: merge for merge in scene.merges}
    for merge in scene.merges:
        if merge.ticket is None:
            continue
        known = [edit.before] if merge.ticket in edit.merged else [edit.after]
        known += [edit.before] if merge.ticket in edit.in_flight else []  # until a call has read the edit
        if merge.number not in [numbers.get(merge.ticket) for numbers in known]:
            yield f"{merge.ticket} was merged as {merge.number}"
    if scenario.ADDED not in merged or scenario.ADDED in {
        report.ticket for report in scene.witness.begun[: edit.begun]
    }:
        yield "the ticket that was added is not done"
    redone = {report.ticket for report in scene.witness.begun[edit.begun :]} & set(edit.merged)
    yield from (f"{ticket} was merged, and begun again after the edit" for ticket in sorted(redone))
    for ticket in edit.in_flight:
        if len({report.place for report in scene.witness.begun if report.ticket == ticket}) != 1:
            yield f"the work in flight on {ticket} was begun anew"


def tasks_bytes(scene: Scene) -> Iterator[str]:
    """Only boxes differ (compared after every step), and the file still ends without a newline."""
    if scene.witness.tasks.read_bytes().endswith(b"\n"):
        yield "tasks.md has a newline at its end now"


def boxes(scene: Scene) -> Iterator[str]:
    """Every box is ticked, and each ticket was merged exactly once."""
    now, merged = outside.boxes(scene.witness.tasks.read_bytes()), [merge.ticket or "?" for merge in scene.merges]
    if now.count(b"x") != len(outside.boxes(scene.witness.original)):
        yield f"{now.count(b'x')} of {len(now)} boxes are ticked"
    if sorted(merged) != sorted(scene.tickets):
        yield f"{len(scene.tickets)} tickets, but {len(merged)} merges of {len(set(merged))}"


def no_left_overs(scene: Scene) -> Iterator[str]:
    """No worktree, branch or lock of a ticket is there any more, and no agent runs."""
    root = scene.witness.root
    if scene.witness.running is None:
        yield "the last drive did not end"
    yield from (f"an agent of {report.ticket} still runs" for report in scene.witness.running or ())
    branches = outside.git(root, "for-each-ref", "--format=%(refname)", "refs/heads").split()
    yield from (f"{name} is left" for name in branches if name not in ("refs/heads/main", scene.witness.branch))
    listed = outside.git(root, "worktree", "list", "--porcelain")
    if "branch refs/heads/baton/" in listed or "prunable" in listed:
        yield "a ticket's worktree is left"
    places = sorted({report.place for report in scene.witness.begun if Path(report.place).exists()})
    yield from (f"{place} is left" for place in places)
    baton = root / ".git" / "baton"
    yield from (f"{path.name} is left" for path in (root / ".git").rglob("*.lock") if path.parent != baton)
    # Baton's own lock files stay: what counts is the kernel's lock.
    files = (*baton.glob("*.lock"), *(root / ".dsh" / "baton" / "locks").glob("*.lock"))
    yield from (f"{path.name} is still locked" for path in files if _held(path))


def _held(path: Path) -> bool:
    try:
        import fcntl
    except ImportError:
        return False
    with path.open("r+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


Question = Callable[[Scene], Iterator[str]]  # what is wrong
Sentence = Callable[[Scene], str]  # what was looked at, when nothing is

CHECKS: dict[str, tuple[Question, Sentence]] = {
    "evidence-only": (
        evidence_only,
        lambda scene: f"{len(scene.merges)} ticks, {len(scene.merges)} receipts in git; the lie got none",
    ),
    "always-green": (
        always_green,
        lambda scene: f"{len(scene.merges) + 1} clean checkouts pass; no red merge got in",
    ),
    "nothing-lost": (
        nothing_lost,
        lambda scene: f"work of {len(scene.witness.begun)} agents, with drafts and a conflict",
    ),
    "checkout-untouched": (
        checkout_untouched,
        lambda scene: f"HEAD, index and {len(scene.witness.before.files)} files, after every step",
    ),
    "exactly-once": (exactly_once, lambda _scene: "half-done work taken up; nothing merged twice"),
    "claims-exclusive": (
        claims_exclusive,
        lambda scene: f"{len(scene.witness.at_once)} tickets for two at once; old key refused",
    ),
    "plan-live": (plan_live, lambda _scene: "numbers moved, ticks did not; nothing redone"),
    "tasks-bytes": (
        tasks_bytes,
        lambda scene: f"{len(scene.witness.original)} bytes, none but the boxes differs",
    ),
    "boxes": (
        boxes,
        lambda scene: f"{len(outside.boxes(scene.witness.original))} boxes, one nested; each merged once",
    ),
    "no-left-overs": (no_left_overs, lambda _scene: "no worktree, branch, lock or agent"),
}
