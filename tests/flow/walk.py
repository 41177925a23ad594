"""A project with a person who edits its plan, and two sessions with agents, good and bad: one random step at a time.

After each step the one checker looks at everything.
"""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from baton_cli.core import tasks
from baton_cli.errors import BatonError
from tests import invariants
from tests.conftest import run_git, write_files
from tests.kit import World, hand_outs

# One letter of `red` makes a branch red alone; `left` and `right` are green alone and red together.
CONFIG = """\
[verify]
commands = ["test ! -e red && { test ! -e left || test ! -e right; }"]
[limits]
attempts = 2
parallel = 4
"""
PLAN = """\
## 1. Ground

- [ ] 1.1 Lay the first stone of the house
- [ ] 1.2 Dig a well behind the barn
  - [ ] with a rope
- [ ] Clear the path to the gate

## 2. Walls

- [ ] 2.1 Raise the northern wall
- [ ] 2.2 Paint what is raised
"""
WORDS = ("stone", "wall", "roof", "door", "barn", "gate", "well", "path", "floor", "stairs", "window", "yard", "fence")
EDITS = (
    "reword", "reword", "typo", "renumber", "swap", "insert", "insert", "delete", "cut", "paste", "duplicate", "split",
    "child", "move", "section", "after",
)  # fmt: skip
# What a person or an agent may be told in such a world. Anything else is a bug.
PLAN_ERRORS = {"plan_dangling", "plan_self_reference", "plan_cycle", "no_tasks"}
REFUSALS = PLAN_ERRORS | {
    "stale_claim", "bound", "invalid_transition", "nothing_committed", "nothing_changed", "dirty_worktree", "check_failed",
    "operation_in_progress", "integration_not_merged", "worktree_missing", "already_finished", "not_finished",
    "no_assignment", "ambiguous_ticket", "no_such_ticket",
}  # fmt: skip


class Walk:
    """One walk: the world, the dice, and what the sessions hold in their hands."""

    refusals = REFUSALS
    odd: tuple[str, ...] = ("shared", "left", "left", "right", "own")  # what good work in the middle may touch
    even: tuple[str, ...] = ("shared",)  # and at the end

    def __init__(self, world: World, dice: random.Random) -> None:
        self.world = world
        self.dice = dice
        self.handed: dict[str, dict[str, Any]] = {}
        self.cut: list[str] = []
        self.log: list[str] = []
        self.refused: Counter[str] = Counter()
        self.seen: Counter[str] = Counter()
        self.number = 0

    # -- steps --------------------------------------------------------------------------------------------------

    def moves(self) -> list[tuple[int, Callable[[], None]]]:
        """What may come next, with its weight."""
        return [
            (1, self.jump), (8, self.ask), (2, self.bind), (6, self.work), (6, self.seal), (6, self.settle),
            (4, self.finish), (2, self.decide), (1, self.lose_worktree), (2, self.tick_by_hand), (9, self.edit),
        ]  # fmt: skip

    def step(self) -> None:
        """One random step, then the checker."""
        moves = self.moves()
        self.dice.choices(moves, [weight for weight, _ in moves])[0][1]()

    def say(self, text: str) -> None:
        self.log.append(text)

    def call(self, allowed: set[str], do: Callable[[], Any], **more: bool) -> Any:
        """One call of Baton: it touches nothing of the user's but boxes, and refuses only with a known word."""
        before, text = invariants.checkout(self.world.root), self.world.tasks.read_bytes()
        answer = None
        try:
            answer = do()
        except BatonError as error:
            if error.code not in allowed:
                raise
            self.refused[error.code] += 1
            self.log[-1] += f" !{error.code}"
        invariants.check(self.world, before, edited=True)
        if answer is not None:
            invariants.ticks(self.world, text, **more)
        return answer

    def ask(self, session: str | None = None) -> dict[str, Any] | None:
        who = session or self.dice.choice(["s1", "s1", "s2"])
        take_over = "s2" if who == "s1" and session is None and self.dice.random() < 0.08 else None
        capacity = 5 if session else self.dice.randint(1, 3)
        self.say(f"actions {who} {capacity} {take_over or ''}")
        answer: dict[str, Any] | None = self.call(
            PLAN_ERRORS, lambda: self.world.actions(who, capacity=capacity, take_over=take_over), everything=True
        )
        if answer is not None:
            self.seen.update(item["kind"] for item in answer["actions"])
            self.log[-1] += f" -> {[item['kind'] for item in answer['actions']]} {answer.get('notices', '')}"
            invariants.settled(self.world)
            for action in hand_outs(answer):
                self.handed[action["assignment_id"]] = action
        elif session is None and self.dice.random() < 0.5:
            self.repair_plan()
        return answer

    def pick(self) -> dict[str, Any] | None:
        return self.dice.choice(list(self.handed.values())) if self.handed else None

    def bind(self) -> None:
        action = self.pick()
        if action:
            self.say(f"bind {action['ticket']}")
            self.call(self.refusals, lambda: self.world.bind(action, f"agent {action['claim_token']}"))

    def work(self) -> None:
        """Some work in a worktree, committed or not, that fits the others' or does not."""
        action = self.pick()
        if action is None or not (Path(action["cwd"]) / ".git").exists():
            return
        self.number += 1
        name = self.dice.choice(["own", "own", "own", "shared", "left", "right", "red", "loose"])
        self.say(f"work {action['ticket']} {name}")
        place = Path(action["cwd"])
        write_files(place, {f"own-{self.number}" if name == "own" else name: f"{self.number}\n"})
        if name != "loose":
            run_git(place, "add", "-A")
            run_git(place, "commit", "-q", "-m", name, check=False)

    def seal(self) -> None:
        action = self.pick()
        if action:
            self.say(f"seal {action['ticket']}")
            self.call(self.refusals, lambda: self.world.seal(action))

    def settle(self) -> None:
        """A completion notice, true or not."""
        action = self.pick()
        if action:
            terminal = self.dice.choice(["completed"] * 4 + ["failed", "stopped", "lost", "max_tokens", "refused"])
            self.say(f"reconcile {action['ticket']} {terminal}")
            self.call(self.refusals, lambda: self.world.reconcile(action, terminal))

    def finish(self, action: dict[str, Any] | None = None) -> None:
        """A good agent: it repairs what it finds, commits, seals, and its session reconciles.

        In the middle of a walk (no `action` given) its work may be green alone and not beside that of another.
        """
        odd = self.dice.choice(self.odd if action is None else self.even)
        action = action or self.pick()
        if action is None:
            return
        self.say(f"finish {action['ticket']}")
        place = Path(action["cwd"])
        if (place / ".git").exists():
            self.put_right(action, place)
            self.number += 1
            run_git(place, "rm", "-q", "-f", "--ignore-unmatch", "red", "left", "right")
            for name in ("red", "left", "right"):
                (place / name).unlink(missing_ok=True)
            conflicts = run_git(place, "diff", "--name-only", "--diff-filter=U").split()
            write_files(place, dict.fromkeys((*(conflicts or [odd]), f"own-{self.number}"), f"{self.number}\n"))
            run_git(place, "add", "-A")
            run_git(place, "commit", "-q", "-m", "repair")
            if self.call(self.refusals, lambda: self.world.seal(action)) is None:
                self.say("... reconcile")
        self.call(self.refusals, lambda: self.world.reconcile(action))

    def put_right(self, action: dict[str, Any], place: Path) -> None:
        """What a good agent does first in a worktree that others left in disorder."""

    def decide(self) -> None:
        decision = self.dice.choice(["done", "skip", "reopen", "reopen", "retry", "abandon"])
        boxes = [ticket.id for ticket in self.document().tickets if ticket.id]
        if boxes:
            name = self.dice.choice(boxes)
            self.say(f"{decision} {name}")
            self.call(self.refusals, lambda: self.world.decide(name, decision), untick=decision == "reopen")

    def jump(self) -> None:
        self.say("three hours later")
        self.world.clock.seconds += 3 * 3600

    def lose_worktree(self) -> None:
        action = self.pick()
        if action and Path(action["cwd"]).exists():
            self.say(f"the worktree of {action['ticket']} is deleted")
            shutil.rmtree(action["cwd"])

    # -- the person at the editor ---------------------------------------------------------------------------------

    def document(self) -> tasks.Document:
        return tasks.parse(self.world.tasks.read_bytes())

    def blocks(self) -> list[str]:
        """Headings, blank lines, and tickets with their children."""
        found: list[str] = []
        for row in self.world.tasks.read_text().splitlines(keepends=True):
            if row.startswith("  ") and found:
                found[-1] += row
            else:
                found.append(row)
        return found

    def save(self, blocks: list[str], what: str) -> None:
        self.say(f"edit: {what}")
        self.world.tasks.write_text("".join(blocks))

    def tick_by_hand(self) -> None:
        blocks = self.blocks()
        at = self.some(blocks)
        if at is not None:
            old, new = self.dice.choice([("[ ]", "[x]"), ("[x]", "[ ]"), ("[x]", "[ ]")])
            blocks[at] = blocks[at].replace(old, new)
            self.save(blocks, f"{old} -> {new} in {blocks[at].splitlines()[0]}")

    def some(self, blocks: list[str]) -> int | None:
        places = [at for at, block in enumerate(blocks) if block.startswith("- [")]
        return self.dice.choice(places) if places else None

    def edit(self) -> None:
        blocks, dice = self.blocks(), self.dice
        at = self.some(blocks)
        kind = dice.choice(EDITS)
        if at is None or kind == "insert":
            place = dice.randint(1, len(blocks))
            blocks.insert(place, f"- [ ] {self.new_id()} {' '.join(dice.sample(WORDS, 4))}\n")
        elif kind == "reword":
            blocks[at] = self.untick(blocks[at]).replace("\n", f" {dice.choice(WORDS)}\n", 1)
        elif kind == "typo":
            blocks[at] = blocks[at].replace("e", "ee", 1)
        elif kind == "renumber":
            self.renumber(blocks)
        elif kind == "swap":
            other = self.some(blocks) or at
            blocks[at], blocks[other] = blocks[other], blocks[at]
        elif kind in ("delete", "cut"):
            gone = blocks.pop(at)
            self.cut += [gone] * (kind == "cut")
        elif kind == "paste" and self.cut:
            blocks.insert(dice.randint(1, len(blocks)), self.cut.pop())
        elif kind == "duplicate":
            blocks.insert(at, dice.choice([blocks[at], self.untick(blocks[at])]))
        elif kind == "split":
            blocks[at] = self.untick(blocks[at])
            blocks.insert(at + 1, f"- [ ] {self.new_id()} {' '.join(dice.sample(WORDS, 3))}\n")
        elif kind == "child":
            blocks[at] += f"  - [ ] {dice.choice(WORDS)}\n"
        elif kind == "move":
            moved = blocks.pop(at)
            blocks.insert(dice.randint(1, len(blocks)), moved)
        elif kind == "section":
            heads = [place for place, block in enumerate(blocks) if block.startswith("## ")]
            blocks[dice.choice(heads)] = f"## {dice.randint(1, 9)}. {dice.choice(WORDS).title()}\n"
        elif kind == "after":
            first, *rest = blocks[at].partition("\n")
            whom = dice.choice(["none", "none", "1.1", "2.1"])
            first = first[: first.index(" (after")] if " (after" in first else f"{first} (after {whom})"
            blocks[at] = first + "".join(rest)
        self.save(blocks, kind)

    def untick(self, block: str) -> str:
        return block.replace("[x]", "[ ]") if self.dice.random() < 0.7 else block

    def new_id(self) -> str:
        return self.dice.choice(["", f"{self.dice.randint(1, 2)}.{self.dice.randint(1, 9)}"])

    def renumber(self, blocks: list[str]) -> None:
        """Every numbered ticket gets the number of its place, as an editor's command does it."""
        section, count = 0, 0
        for at, block in enumerate(blocks):
            if block.startswith("## "):
                section, count = section + 1, 0
            mark, text = block[:6], block[6:]
            if mark in ("- [ ] ", "- [x] ") and text[:1].isdigit():
                count += 1
                blocks[at] = f"{mark}{section}.{count} {text.partition(' ')[2]}"

    # -- the end --------------------------------------------------------------------------------------------------

    def end(self, most: int = 200) -> dict[str, Any]:
        """Good agents finish what can be finished; the person only repairs what makes the plan no plan at all."""
        for _ in range(most):
            answer = self.ask("s1")
            if answer is None:
                self.repair_plan()
            elif handed := hand_outs(answer):
                for action in handed:
                    self.finish(action)
            elif answer["state"] == "active":
                self.jump()
            elif answer["state"] == "complete" or not self.helped(answer):
                return answer
        raise AssertionError("no end")

    def helped(self, answer: dict[str, Any]) -> bool:
        """Whether the person did something about what blocks."""
        return False

    def repair_plan(self) -> None:
        blocks = [self.without_after(block) for block in self.blocks()]
        if not self.document().boxes:
            blocks.append("- [ ] 7.7 Sweep the whole place\n")
        self.save(blocks, "the plan is repaired")

    def without_after(self, block: str) -> str:
        first, mark, rest = block.partition("\n")
        return (first[: first.index(" (after")] if " (after" in first else first) + mark + rest


def driven_to_the_end(walk: Walk) -> None:
    answer = walk.end()
    shown = [ticket for section in walk.world.status()["sections"] for ticket in section["tickets"]]
    reasons = {action.get("reason") for action in answer["actions"]}
    for ticket in shown:
        if ticket["ticked"] or ticket["status"] == "skipped":
            continue
        if ticket["status"] in ("integrated", "attested"):  # finished by a decision while it cannot be told apart
            assert "ambiguous" in ticket["flags"], ticket
        elif ticket["status"] == "blocked":
            assert ticket["reason"] in reasons, (ticket, reasons)
        else:
            assert ticket["status"] == "waiting", ticket
            assert ticket["waits_for"], ticket
    if answer["state"] == "complete":
        assert all(ticket["status"] not in ("blocked", "waiting", "ready", "in_flight") for ticket in shown)
