"""Chaos: sixty tickets, two sessions, agents that lie, crash, conflict and meddle, and a person who edits and commits.

Each run is a pure function of its seed. The one checker looks after every call; in the end everything is merged.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from baton_cli.flow.parts import tokens
from tests import figures, invariants
from tests.conftest import run_git, write_files
from tests.flow.walk import CONFIG, REFUSALS, WORDS, Walk
from tests.kit import hand_outs, make_world

MEDDLED = {"protected_path", "wrong_branch", "detached_head", "base_lost", "integration_moved", "checks_changed_files"}
pytestmark = pytest.mark.usefixtures("swift_git")
SMALL, LARGE = (3, 4, 40), (6, 10, 90)  # sections, tickets in each, random steps
SEEDS = [
    (0, SMALL),
    *(pytest.param(seed, LARGE if seed == 1 else SMALL, marks=pytest.mark.full) for seed in range(1, 20)),
]


def plan(sections: int, tickets: int, dice: random.Random) -> str:
    rows = []
    for section in range(1, sections + 1):
        rows.append(f"## {section}. {dice.choice(WORDS).title()}\n\n")
        for number in range(1, tickets + 1):
            rows.append(f"- [ ] {section}.{number} Build {' '.join(dice.sample(WORDS, 3))} number {section}-{number}\n")
            if dice.random() < 0.15:
                rows.append(f"  - [ ] and the {dice.choice(WORDS)}\n")
        rows.append("\n")
    return "".join(rows)


class Chaos(Walk):
    """A walk with worse company."""

    refusals = REFUSALS | MEDDLED
    even = ("shared", *["own"] * 7)

    def moves(self) -> list[tuple[int, Callable[[], None]]]:
        return [
            *super().moves(),
            (2, self.stray), (2, self.edit_the_tasks), (2, self.leave_the_branch), (1, self.rewind), (2, self.user_commits),
            (1, self.foreign_commit),
        ]  # fmt: skip

    def place(self) -> tuple[dict[str, Any], Path] | None:
        """One of the worktrees that are there."""
        action = self.pick()
        place = Path(action["cwd"]) if action else None
        return (action, place) if action and place and (place / ".git").exists() else None

    # -- agents ---------------------------------------------------------------------------------------------------

    def stray(self) -> None:
        """An agent writes into the checkout instead of its worktree. It is told, and left where it is."""
        found = self.place()
        if found:
            self.say(f"stray file of {found[0]['ticket']}")
            stray = self.world.root / "stray.txt"
            stray.write_text("in the wrong place\n")
            self.number += 1
            write_files(found[1], {f"own-{self.number}": ""})
            answer = self.call(self.refusals, lambda: self.world.reconcile(found[0], "failed"))
            assert answer is None or "stray.txt" in answer["isolation"], answer
            stray.unlink()

    def edit_the_tasks(self) -> None:
        """An agent ticks its own box, and commits that."""
        if found := self.place():
            self.say(f"{found[0]['ticket']} edits tasks.md")
            tasks = next((found[1] / "openspec" / "changes").glob("*/tasks.md"))
            tasks.write_bytes(tasks.read_bytes().replace(b"[ ]", b"[x]", 1) + b"- [x] 9.9 and more\n")
            self.commit(found[1], "ticked")
            if not run_git(found[1], "ls-files", "--unmerged"):
                before = self.refused["protected_path"]
                sealed = self.call(self.refusals, lambda: self.world.seal(found[0]))
                assert sealed is None, (sealed, before)

    def leave_the_branch(self) -> None:
        if found := self.place():
            detach = self.dice.random() < 0.5
            self.say(f"{found[0]['ticket']} leaves its branch")
            run_git(found[1], "switch", "-q", *(["--detach"] if detach else ["-C", "elsewhere"]), check=False)
            self.call(self.refusals, lambda: self.world.seal(found[0]))

    def rewind(self) -> None:
        """An agent throws its branch back below the base that it was given."""
        if found := self.place():
            self.say(f"{found[0]['ticket']} goes back below its base")
            first = run_git(found[1], "rev-list", "--max-parents=0", "HEAD").split()[0]
            run_git(found[1], "reset", "-q", "--hard", first)
            sealed = self.call(self.refusals, lambda: self.world.seal(found[0]))
            assert sealed is None, sealed

    def commit(self, place: Path, text: str) -> None:
        run_git(place, "add", "-A")
        run_git(place, "commit", "-q", "-m", text, check=False)

    def put_right(self, action: dict[str, Any], place: Path) -> None:
        if run_git(place, "symbolic-ref", "-q", "--short", "HEAD", check=False) != action["branch"]:
            self.commit(place, "left behind")
            run_git(place, "switch", "-q", action["branch"])
        base = json.loads(Path(action["packet"]).with_suffix(".json").read_text())["base"]
        if run_git(place, "merge-base", "HEAD", base) != base:
            run_git(place, "reset", "-q", "--hard", base)
        if not run_git(place, "ls-files", "--unmerged"):
            run_git(place, "checkout", "-q", base, "--", "openspec")
            for name in run_git(place, "grep", "-l", "^<<<<<<< ", check=False).split():  # somebody committed a conflict
                (place / name).write_text(f"resolved for {action['ticket']}\n")

    # -- the person -----------------------------------------------------------------------------------------------

    def user_commits(self) -> None:
        self.number += 1
        self.say("the user commits to main")
        write_files(self.world.root, {f"user-{self.number}.txt": "mine\n"})
        run_git(self.world.root, "add", f"user-{self.number}.txt")
        run_git(self.world.root, "commit", "-q", "-m", "the user's own")

    def foreign_commit(self) -> None:
        """Somebody commits to Baton's branch: nothing is merged until it is gone."""
        ref = f"refs/heads/{self.world.integration}"
        head = run_git(self.world.root, "rev-parse", "-q", "--verify", ref, check=False)
        if head:
            self.say("a foreign commit on the integration branch")
            foreign = run_git(self.world.root, "commit-tree", "-p", head, "-m", "foreign", f"{head}^{{tree}}")
            run_git(self.world.root, "update-ref", ref, foreign, head)
            before = invariants.checkout(self.world.root)
            answer = self.world.actions("s1")
            said = [item for item in answer["actions"] if item.get("reason") == "integration_moved"]
            assert said or hand_outs(answer) or answer["state"] == "active", answer
            assert run_git(self.world.root, "rev-parse", ref) == foreign
            assert invariants.checkout(self.world.root) == before
            run_git(self.world.root, "update-ref", ref, head, foreign)
            self.handed.update({item["assignment_id"]: item for item in hand_outs(answer)})

    # -- the end --------------------------------------------------------------------------------------------------

    def helped(self, answer: dict[str, Any]) -> bool:
        """The person does what the remedies say."""
        for action in answer["actions"]:
            self.remedy(action)
        return True

    def remedy(self, action: dict[str, Any]) -> None:
        self.say(f"remedy for {action['reason']} {action['tickets']}")
        if action["reason"] == "exhausted":
            for key in action["tickets"]:
                self.call(self.refusals, lambda key=key: self.world.decide(key.rpartition("#")[2], "retry"))  # type: ignore[misc]
        else:  # twins that nobody can tell apart, or a ticket that waits for what it holds up
            blocks, seen = [], set()
            for block in self.blocks():
                head = self.without_after(block)
                if block.startswith("- [") and head in seen:
                    continue
                seen.add(head)
                blocks.append(head)
            self.renumber(blocks)
            self.save(blocks, "twins are removed")


@pytest.mark.timeout(1500)
@pytest.mark.parametrize(("seed", "size"), SEEDS, ids=range(20))
def test_chaos_ends_complete(
    tmp_path: Path, seed: int, size: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    marks = (f"{number:08x}" for number in range(1 << 20))
    monkeypatch.setattr(tokens, "new_mark", lambda: next(marks))
    dice = random.Random(seed)
    sections, tickets, steps = size
    world = make_world(tmp_path / "p", plan(sections, tickets, dice), config=CONFIG, files={"shared": "0\n"})
    chaos = Chaos(world, dice)
    figures.add("chaos seeds", 1, 1)  # until it is seen to end well
    try:
        for _ in range(steps):
            chaos.step()
        answer = chaos.end()
        invariants.settled(world)
    except BaseException:
        print(f"seed {seed}:", *chaos.log, world.tasks.read_text(), sep="\n")
        raise
    figures.add("chaos seeds", 0, -1)
    figures.add("chaos calls", len(chaos.log), 0)
    boxes = chaos.document().boxes
    assert boxes
    assert answer["progress"]["total"] >= 1
    status = world.status()
    open_boxes = [
        ticket["key"] for section in status["sections"] for ticket in section["tickets"] if not ticket["ticked"]
    ]
    assert all(world.ticket(key)["status"] == "skipped" for key in open_boxes), open_boxes
    print(f"seed {seed}: {len(chaos.log)} steps, {dict(chaos.seen)}, refused {dict(chaos.refused)}")
