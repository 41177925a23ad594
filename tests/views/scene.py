"""A real project in the middle of its work: what the tests of the views and the pictures in the documents look at."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import run_git, write_files
from tests.kit import Clock, World, hand_outs, make_world

BEGIN = 1_790_000_000.0
DARK_MODE = """\
## 1. Foundations

- [ ] 1.1 Add the theme context and its provider
- [ ] 1.2 Read the system's preference at the first start

## 2. Tokens

- [ ] 2.1 Define the colour tokens of both themes
- [ ] 2.2 Replace the fixed colours of the shell by tokens

## 3. Settings

- [ ] 3.1 Persist the choice
- [ ] 3.2 Add the toggle to the settings page
- [ ] 3.3 Document the flag in the user guide
  - verify: grep -q theme README
- [ ] 3.4 Choose the final palette with the design team (manual)
- [ ] 3.5 Verify both themes

## 4. Charts

- [ ] 4.1 Give the charts a palette of their own (after 2.2)

## 5. Rollout

- [ ] 5.1 Turn the flag on for staff
- [ ] 5.2 Turn the flag on for everyone
"""
EXPORT = """\
## 1. Export

- [ ] 1.1 Write the selected rows as CSV
- [ ] 1.2 Quote what a spreadsheet would run as a formula

## 2. Menu

- [ ] 2.1 Offer the export in the table's menu
"""
LOGIN = """\
- [ ] 1.1 Keep the return address over a login
- [ ] 1.2 Say why a login was refused
"""


def make_scene(root: Path) -> World:
    """Three changes: one with agents at work, a failed one and a person's ticket; one finished; one that was not begun."""
    world = make_world(root, DARK_MODE, change="add-dark-mode", config=None)
    world.clock = Clock(BEGIN)
    more = {"add-export": EXPORT, "fix-login": LOGIN}
    write_files(root, {f"openspec/changes/{name}/tasks.md": text for name, text in more.items()})
    write_files(root, {"baton.toml": '[verify]\ncommands = ["test -f README"]\n[limits]\nattempts = 1\n'})
    run_git(root, "add", "-A")
    run_git(root, "commit", "-q", "-m", "three changes")
    login = World(root, "fix-login", world.clock)
    login.run_to_end()
    for _ in range(2):  # sections 1 and 2
        for action in hand_outs(world.actions()):
            world.clock.seconds += 300
            world.finish(action)
    _third_section(world)
    return world


def _third_section(world: World) -> None:
    handed = {action["ticket"].rpartition("#")[2]: action for action in hand_outs(world.actions())}
    world.clock.seconds += 480
    world.bind(handed["3.1"], "child-7b3f")
    world.bind(handed["3.2"], "child-91aa")
    world.bind(handed["3.3"], "child-c04d")
    world.work(handed["3.3"])
    world.reconcile(handed["3.3"])  # its own check fails, and it was the only attempt
    if "4.1" in handed:
        world.bind(handed["4.1"], "child-20e5")
        world.work(handed["4.1"])
        world.seal(handed["4.1"])
    world.clock.seconds += 240
    world.work(handed["3.1"])
    world.clock.seconds += 40
    world.actions("s2", 1)  # sees the commit, which renews the lease
