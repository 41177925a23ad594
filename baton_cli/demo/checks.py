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

ORDINARY = ("-c", "user.name=demo", "-c", "user.email=demo@example.invalid")


@dataclass(frozen=True, slots=True)
class Check:
    """One promise: whether it held, and what was looked at, or what is wrong."""

    name: str
    passed: bool
    detail: str


@dataclass
class Scene:
    """The witness's notes, the branch as it is at the end, and a clone in which any commit can be tried."""

    witness: Witness
    clone: Path
    merges: list[outside.Merge] = field(init=False)
    total: int = field(init=False)
    _tried: dict[str, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        root = self.witness.root
        self.merges = self.witness.merged()
        self.total = len(re.findall(r"^- \[ \] ", scenario.TASKS, re.M))
        outside.git(
            root.parent, "clone", "--quiet", "--shared", "--no-checkout", "--template=", str(root), str(self.clone)
        )

    def green(self, commit: str) -> bool:
        """Whether a clean checkout of a commit passes the project's check."""
        tree = outside.git(self.clone, "rev-parse", f"{commit}^{{tree}}")
        if tree not in self._tried:
            outside.git(self.clone, "checkout", "--quiet", "--force", "--detach", commit)
            outside.git(self.clone, "clean", "--quiet", "-ffdx")
            done = subprocess.run(
                scenario.CHECK, cwd=self.clone, stdin=subprocess.DEVNULL, capture_output=True, check=False
            )
            self._tried[tree] = done.returncode == 0
        return self._tried[tree]

    def merge(self, one: str, other: str) -> str:
        """A commit that merges two, with nobody asking whether it is any good."""
        tree = outside.git(self.clone, "merge-tree", "--write-tree", one, other)
        words = ("commit-tree", tree, "-p", one, "-p", other, "-m", "what would have been")
        return outside.git(self.clone, *ORDINARY, *words)


def judge(witness: Witness, clone: Path) -> list[Check]:
    """All checks, in the order in which they are shown."""
    scene = Scene(witness, clone)
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
    witness, found = scene.witness, {merge.ticket: merge for merge in scene.merges}
    yield from (f"{merge.oid[:12]} on the branch: {merge.fault}" for merge in scene.merges if merge.fault)
    unproved = sorted(outside.ticked(witness.tasks.read_bytes()) - set(found))
    yield from (f"{ticket} is ticked and not merged" for ticket in unproved)
    lie = witness.first(scenario.LIAR)
    if lie is None or not lie.said or lie.head != witness.base:
        yield "no agent claimed success without a commit"
    cut, merge = witness.first(scenario.CUT_OFF), found.get(scenario.CUT_OFF)
    if cut is None or merge is None or cut.seals or cut.head not in merge.parents:
        yield f"the work of {scenario.CUT_OFF}, which no agent sealed, is not merged as it was"
    seals = [(ended.ticket, *seal) for ended in witness.ended for seal in ended.seals]
    if all(code == 0 for _, _, code in seals):
        yield "no seal was refused, though one agent committed red work"
    for ticket, head, code in seals:
        if scene.green(head) != (code == 0):
            yield f"{head[:12]} of {ticket} is {'green' if code else 'red'}, but its seal exited with {code}"


def always_green(scene: Scene) -> Iterator[str]:
    """A clean checkout of every commit the branch ever pointed to passes; and two tickets made that hard."""
    for commit in (scene.witness.base, *(merge.oid for merge in scene.merges)):
        if not scene.green(commit):
            yield f"a clean checkout of {commit[:12]} is red"
    pair = [ended.seals[-1][0] for ended in map(scene.witness.first, scenario.COLLIDING) if ended and ended.seals]
    if len(pair) != 2 or scene.green(scene.merge(*pair)):
        yield "no two tickets were green alone and red together"


def nothing_lost(scene: Scene) -> Iterator[str]:
    """Every commit an agent left is in the history, and so are both sides of the conflict and the crashed work."""
    witness = scene.witness
    known = set(outside.git(witness.root, "rev-list", "--all").split())
    for ended in witness.ended:
        for head in (ended.head, *(head for head, _ in ended.seals)):
            if head not in known:
                yield f"{head[:12]} of {ended.ticket} is in no history"
    if witness.conflict not in scenario.SAME_LINE:
        yield "no merge conflict was handed out as it was"
    crash = witness.first(scenario.CRASHED)
    if crash is None or crash.code == 0 or not crash.drafts or scenario.CRASHED not in witness.recovered:
        yield "no agent died in the middle of its work and was replaced"
    final = outside.git(witness.root, "show", f"{witness.branch}:hello.sh")
    if not re.search(r'^options="plain (?:loud twice|twice loud)"$', final, re.M):
        yield "one side of the conflict is gone"


def checkout_untouched(scene: Scene) -> Iterator[str]:
    """The rest was compared after every step."""
    if outside.git(scene.witness.root, "stash", "list"):
        yield "something was stashed"


def claims_exclusive(scene: Scene) -> Iterator[str]:
    """Two sessions that asked at once got different tickets, and a claim that is over counts for nothing."""
    given = [ticket for tickets in scene.witness.claims.values() for ticket in tickets]
    wanted = sum(scenario.SESSIONS.values())
    if len(set(given)) != len(given):
        yield f"a ticket was given twice: {', '.join(given)}"
    if len(given) != wanted or scene.witness.at_once != wanted:
        yield f"{len(given)} tickets and {scene.witness.at_once} worktrees, {wanted} wanted"
    if not scene.witness.stale_refused:
        yield "a claim that was over was accepted"


def tasks_bytes(scene: Scene) -> Iterator[str]:
    """Only boxes differ (compared after every step), and the file still ends without a newline."""
    if scene.witness.tasks.read_bytes().endswith(b"\n"):
        yield "tasks.md has a newline at its end now"


def boxes(scene: Scene) -> Iterator[str]:
    """Every box is ticked, and each ticket was merged exactly once."""
    now, merged = outside.boxes(scene.witness.tasks.read_bytes()), [merge.ticket for merge in scene.merges]
    if now.count(b"x") != len(outside.boxes(scene.witness.original)):
        yield f"{now.count(b'x')} of {len(now)} boxes are ticked"
    if len(merged) != scene.total or len(set(merged)) != scene.total:
        yield f"{scene.total} tickets, but {len(merged)} merges of {len(set(merged))}"


def no_left_overs(scene: Scene) -> Iterator[str]:
    """No worktree, branch or lock of a ticket is there any more."""
    root = scene.witness.root
    branches = outside.git(root, "for-each-ref", "--format=%(refname)", "refs/heads").split()
    yield from (f"{name} is left" for name in branches if name not in ("refs/heads/main", scene.witness.branch))
    listed = outside.git(root, "worktree", "list", "--porcelain")
    if "branch refs/heads/baton/" in listed or "prunable" in listed:
        yield "a ticket's worktree is left"
    yield from (f"{ended.place} is left" for ended in scene.witness.ended if ended.place.exists())
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
        lambda scene: f"{len(scene.merges)} ticks, {len(scene.merges)} merges with a receipt; the lie got none",
    ),
    "always-green": (
        always_green,
        lambda scene: f"{len(scene.merges) + 1} clean checkouts pass; no red merge got in",
    ),
    "nothing-lost": (
        nothing_lost,
        lambda scene: f"what {len(scene.witness.ended)} agents left, a crash and a conflict: all there",
    ),
    "checkout-untouched": (
        checkout_untouched,
        lambda scene: f"HEAD, index and {len(scene.witness.before.files)} files, after every step",
    ),
    "claims-exclusive": (
        claims_exclusive,
        lambda scene: f"two asked at once, {scene.witness.at_once} different tickets; old claims refused",
    ),
    "tasks-bytes": (
        tasks_bytes,
        lambda scene: f"{len(scene.witness.original)} bytes, none but the boxes differs",
    ),
    "boxes": (
        boxes,
        lambda scene: f"{len(outside.boxes(scene.witness.original))} boxes, one of them nested; each merged once",
    ),
    "no-left-overs": (no_left_overs, lambda _scene: "no worktree, branch or lock of a ticket"),
}
