"""What the gate runs, whose turn it is, and merges that Baton does not make."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests import invariants
from tests.conftest import run_git, write_files
from tests.kit import World, hand_outs, kinds, make_world, only


def gate_of(world: World, back: int = 0) -> dict[str, str]:
    """Which proof each check had in the `back`-th newest merge."""
    message = run_git(world.root, "log", "--first-parent", "-1", f"--skip={back}", "--format=%B", world.integration)
    record = next(json.loads(line) for line in message.split("\n") if line.startswith('{"') and "baton.gate/1" in line)
    return {check["command"]: check["proof"] for check in record["checks"]}


def test_the_gate_runs_what_earlier_tickets_promised(tmp_path: Path) -> None:
    text = (
        "## 1. A\n- [ ] 1.1 One\n  - verify: `test -f one`\n## 2. B\n- [ ] 2.1 Two\n  - verify: `test -f two`\n"
        "## 3. C\n- [ ] 3.1 Three\n  - verify: `test -f three`\n"
    )
    world = make_world(tmp_path / "p", text)
    world.finish(only(world.actions()), {"one": "1"})
    assert gate_of(world) == {"test -f one": "receipt"}, "the merged tree is the sealed one: nothing runs twice"
    world.finish(only(world.actions()), {"two": "2"})
    assert gate_of(world) == {"test -f two": "receipt", "test -f one": "gate"}
    third = only(world.actions())
    run_git(Path(third["cwd"]), "rm", "-q", "one")
    rejected = world.finish(third, {"three": "3"})
    assert (rejected["state"], rejected["reason"]) == ("rejected", "gate_failed")
    assert "test -f one" in rejected["detail"]
    invariants.check(world)


def test_the_gate_can_be_narrowed_to_the_tickets_own_checks(tmp_path: Path) -> None:
    text = "## 1. A\n- [ ] 1.1 One\n  - verify: `test -f one`\n## 2. B\n- [ ] 2.1 Two\n  - verify: `test -f two`\n"
    world = make_world(tmp_path / "p", text, config='[integrate]\nverify = "ticket"\n')
    world.finish(only(world.actions()), {"one": "1"})
    second = only(world.actions())
    run_git(Path(second["cwd"]), "rm", "-q", "one")
    assert world.finish(second, {"two": "2"})["state"] == "integrated"
    assert gate_of(world) == {"test -f two": "receipt"}


def test_what_passed_on_this_very_tree_is_not_run_again(tmp_path: Path) -> None:
    world = make_world(tmp_path / "p", "## 1. A\n- [ ] 1.1 One\n- [ ] 1.2 Two\n")
    one, two = hand_outs(world.actions())
    world.finish(one)
    assert gate_of(world) == {"test -f README": "receipt"}
    world.finish(two)
    assert gate_of(world) == {"test -f README": "gate"}, "merged beside another: a new tree"


def resolve(world: World, action: dict[str, Any], text: str) -> None:
    place = Path(action["cwd"])
    write_files(place, {"shared": text})
    run_git(place, "add", "-A")
    run_git(place, "commit", "-q", "--no-edit")


def test_a_ticket_in_its_second_conflict_has_right_of_way(tmp_path: Path) -> None:
    lines = "".join(f"- [ ] 1.{number} Part {number}\n" for number in range(1, 5))
    world = make_world(tmp_path / "p", f"## 1. Same\n{lines}", files={"shared": "start\n"})
    one, two, three, four = hand_outs(world.actions())
    world.finish(one, {"shared": "one\n"})
    assert world.finish(two, {"shared": "two\n"})["state"] == "conflicted"
    again = only(world.actions())
    resolve(world, again, "one two\n")
    world.seal(again)  # sealed, but another is integrated first
    world.work(three, {"shared": "three\n"})
    world.seal(three)
    assert world.reconcile(again)["state"] == "integrated"
    assert world.reconcile(three)["state"] == "conflicted"
    repair = next(item for item in hand_outs(world.actions()) if item["ticket"].endswith("1.3"))
    world.finish(four, {"shared": "four\n"})
    assert world.ticket("1.4")["assignment"]["state"] == "conflicted"
    resolve(world, repair, "one two three\n")
    world.seal(repair)
    second = next(item for item in hand_outs(world.actions()) if item["ticket"].endswith("1.4"))
    assert world.ticket("1.3")["status"] == "integrated", "oldest seal first"
    resolve(world, second, "one two three four\n")
    world.seal(second)
    assert world.reconcile(second)["state"] == "integrated"
    assert run_git(world.root, "show", f"{world.integration}:shared") == "one two three four"
    invariants.check(world)


def test_a_custom_merge_driver_is_refused_by_name_and_holds_up_no_other(tmp_path: Path) -> None:
    files = {".gitattributes": "*.lock merge=ours-only\n", "deps.lock": "a\n"}
    world = make_world(tmp_path / "p", "## 1. A\n- [ ] 1.1 One\n- [ ] 1.2 Two\n- [ ] 1.3 Three\n", files=files)
    run_git(world.root, "config", "merge.ours-only.driver", f"touch {tmp_path / 'ran'}")
    one, two, three = hand_outs(world.actions())
    world.finish(one, {"deps.lock": "one\n"})
    stuck = world.finish(two, {"deps.lock": "two\n"})
    assert stuck["state"] == "sealed"
    assert "ours-only" in stuck["notices"][0]
    assert world.finish(three)["state"] == "integrated"
    blocked = only(world.actions())
    assert (blocked["kind"], blocked["reason"]) == ("blocked", "merge_driver")
    assert not (tmp_path / "ran").exists()
    place = Path(two["cwd"])
    run_git(place, "-c", "merge.ours-only.driver=true", "merge", "-q", "-m", "by hand", world.integration)
    world.seal(two)
    assert world.reconcile(two)["state"] == "integrated"
    invariants.check(world)


def test_a_deleted_integration_branch_is_put_back(tmp_path: Path) -> None:
    world = make_world(tmp_path / "p")
    one, two = hand_outs(world.actions())
    world.finish(one)
    head = run_git(world.root, "rev-parse", world.integration)
    run_git(world.root, "branch", "-D", world.integration)
    assert world.finish(two)["state"] == "integrated"
    run_git(world.root, "merge-base", "--is-ancestor", head, world.integration)
    assert kinds(world.actions()) == ["dispatch"]
    invariants.check(world)
