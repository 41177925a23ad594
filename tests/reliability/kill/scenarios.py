"""The scenarios: how each begins, the verb that is killed, and the calls that have to make it good."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from baton_cli.drive.board import Board
from baton_cli.drive.loop import Driver
from baton_cli.drive.order import Order
from baton_cli.errors import BatonError
from tests.kit import World, hand_outs, make_world

PLAN = """\
## 1. Ground

- [ ] 1.1 Lay the first stone
- [ ] 1.2 Lay the second stone
- [ ] 1.3 Lay the third stone
- [ ] 1.4 Lay the fourth stone
- [ ] 1.5 Lay the fifth stone

## 2. Walls

- [ ] 2.1 Raise the wall
"""
SMALL = """\
## 1. Ground

- [ ] 1.1 Lay the first stone
- [ ] 1.2 Lay the second stone

## 2. Walls

- [ ] 2.1 Raise the wall
"""
CHAIN = """\
## 1. Ground

- [ ] 1.1 Lay the first stone

## 2. Walls

- [ ] 2.1 Raise the wall
"""
# Told twice it does nothing twice, as an agent that finds its predecessor's work.
AGENT = """\
#!/bin/sh
set -e
name=${BATON_TICKET##*#}
echo "$name" > "work-$name.txt"
git add -A
git diff --cached --quiet || git commit -qm "work on $name"
"""
CONFIG = """\
[verify]
commands = ["test -f README", "! test -f red", "! (test -f left && test -f right)"]
[worktree]
copy = [".env"]
setup = ["echo ready > .built"]
[limits]
parallel = 5
"""
FILES = {".gitignore": ".env\n.built\n", "shared": "0\n"}
Notes = dict[str, Any]


@dataclass(frozen=True)
class Scenario:
    """`verb` is killed and then called again, refused or not; `after`, if need be, brings it to its end.

    Where agents run, how often they were sent depends on when it was killed: then only `compared` counts.
    """

    name: str
    plan: str
    build: Callable[[World], Notes]
    verb: Callable[[World, Notes], object]
    after: Callable[[World, Notes], object] = lambda world, notes: None
    compared: tuple[str, ...] = ()

    def make(self, root: Path) -> Notes:
        world = make_world(root, self.plan, config=CONFIG, files=FILES)
        (root / ".env").write_text("SECRET=1\n")
        return self.build(world)


def claimed(world: World) -> Notes:
    """Everything that is ready is handed out; the actions by ticket."""
    return {action["ticket"].rpartition("#")[2]: action for action in hand_outs(world.actions())}


def worked(world: World) -> Notes:
    notes = claimed(world)
    world.work(notes["1.1"])
    return notes


def red(world: World) -> Notes:
    notes = claimed(world)
    world.work(notes["1.1"], {"red": ""})
    return notes


def second_sealed(first: str, second: str) -> Callable[[World], Notes]:
    """1.1 is integrated, 1.2 sealed on a base before it."""

    def build(world: World) -> Notes:
        notes = claimed(world)
        world.finish(notes["1.1"], {first: "1\n"})
        world.work(notes["1.2"], {second: "2\n"})
        world.seal(notes["1.2"])
        return notes

    return build


def busy(world: World) -> Notes:
    """1.1's agent failed, 1.2 is in conflict with the integrated 1.5, 1.3 and 1.4 are sealed and not reconciled."""
    notes = claimed(world)
    world.finish(notes["1.5"], {"shared": "5\n"})
    world.finish(notes["1.2"], {"shared": "2\n"})
    for name in ("1.3", "1.4"):
        world.work(notes[name])
        world.seal(notes[name])
    world.reconcile(notes["1.1"], "failed")
    return notes


def nothing(world: World) -> Notes:
    return {}


def reconcile(world: World, notes: Notes) -> None:
    world.reconcile(notes["1.2"])


def decide(ticket: str, decision: str) -> Callable[[World, Notes], None]:
    def call(world: World, notes: Notes) -> None:
        world.decide(ticket, decision)

    return call


def driven(world: World) -> Notes:
    agent = world.root.parent / "agent"
    agent.write_text(AGENT)
    agent.chmod(0o755)
    return {"agent": str(agent)}


def drive(world: World, notes: Notes) -> None:
    order = Order(world.change, (notes["agent"],), notes["agent"], parallel=2)
    answer = Driver(world.project, order, Board(world.change), lambda event: None).run()
    assert answer["state"] == "complete", answer


def after_decision(world: World, notes: Notes) -> None:
    """A decision that was on the branch when it was killed is refused as made already; `actions` ticks its box."""
    world.actions("s9", 1)


def refused(call: Callable[[World, Notes], object], world: World, notes: Notes, codes: tuple[str, ...]) -> None:
    """Call a verb of which some refusals are right."""
    try:
        call(world, notes)
    except BatonError as error:
        if error.code not in codes:
            raise


REFUSALS = {"seal-red": ("check_failed",), "done": ("already_finished",), "skip": ("already_finished",)}
SCENARIOS = (
    Scenario("actions", SMALL, nothing, lambda world, notes: world.actions()),
    Scenario("actions-busy", PLAN, busy, lambda world, notes: world.actions("s2")),
    Scenario("seal", SMALL, worked, lambda world, notes: world.seal(notes["1.1"])),
    Scenario("seal-red", SMALL, red, lambda world, notes: world.seal(notes["1.1"])),
    Scenario("reconcile", SMALL, second_sealed("first", "second"), reconcile),
    Scenario("reconcile-conflict", SMALL, second_sealed("shared", "shared"), reconcile),
    Scenario("reconcile-red", SMALL, second_sealed("left", "right"), reconcile),
    Scenario("done", SMALL, nothing, decide("1.1", "done"), after_decision),
    Scenario("skip", SMALL, claimed, decide("1.2", "skip"), after_decision),
)
DRIVE = Scenario("drive", CHAIN, driven, drive, compared=("tasks", "branch", "completions", "worktrees", "copies"))
