"""A change that this store never ran: what its tickets owe to the history that came with the repository."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from baton_cli import context as contexts
from baton_cli.finisher import Finisher
from tests.conftest import run_git, write_files
from tests.kit import World, baton, baton_json, hand_outs, make_world, names

PLAN = """\
## 1. Ground

- [ ] 1.1 Lay the first stone
- [ ] 1.2 Lay the second stone
- [ ] 1.3 Lay the third stone

## 2. Walls

- [ ] 2.1 Raise the wall
- [ ] 2.2 Paint the wall

## 3. Roof

- [ ] 3.1 Put the roof on
"""


def statuses(world: World) -> dict[str, str]:
    return {ticket["id"]: ticket["status"] for section in world.status()["sections"] for ticket in section["tickets"]}


def forget(world: World) -> None:
    for path in world.project.state.glob("queue.db*"):
        path.unlink()


def begun(folder: Path) -> World:
    """1.1 integrated, 1.2 done by hand and 1.3 skipped; the ticks are committed, as a person would."""
    world = make_world(folder / "project", PLAN)
    world.finish(hand_outs(world.actions(capacity=1))[0])
    world.decide("1.2", "done", "it was there")
    world.decide("1.3", "skip", "not wanted")
    run_git(world.root, "commit", "-qam", "the ticks")
    return world


def land(world: World) -> None:
    with contexts.opened(world.project, create=True, clock=world.clock) as surroundings:
        Finisher(surroundings).land(world.change)


def clone(world: World, place: Path) -> World:
    run_git(place.parent, "clone", "-q", str(world.root), str(place))
    return World(place)


def ended(folder: Path) -> World:
    world = begun(folder)
    world.run_to_end()
    land(world)
    run_git(world.root, "commit", "-qam", "the ticks")
    return world


def test_a_clone_of_landed_work_shows_what_finished_each_ticket(tmp_path: Path) -> None:
    world = clone(ended(tmp_path), tmp_path / "clone")
    assert statuses(world) == {
        "1.1": "integrated", "1.2": "attested", "1.3": "skipped", "2.1": "integrated", "2.2": "integrated",
        "3.1": "integrated",
    }  # fmt: skip
    explained = baton_json(world.root, "explain", "grow#1.1")
    assert explained["receipt"]["checks"][0]["exit_code"] == 0
    assert baton_json(world.root, "explain", "grow#1.3")["receipt"] is None
    evidence = world.ticket("1.3")["evidence"]
    assert (evidence["why"], bool(evidence["who"]), len(evidence["commit"])) == ("not wanted", True, 40)
    assert world.ticket("1.1")["evidence"]["at"] > "2020"
    assert not (world.root / ".dsh").exists(), "looking made something"
    board = [baton(world.root, "board", "--out", str(tmp_path / name)) for name in ("one.html", "two.html")]
    assert [done.returncode for done in board] == [0, 0]
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "two.html").read_bytes()


def test_a_clone_of_landed_work_has_nothing_to_land(tmp_path: Path) -> None:
    world = clone(ended(tmp_path), tmp_path / "clone")
    (done,) = world.actions()["actions"]
    assert done["kind"] == "complete"
    assert done["then"] == "main has it all; with the ticks in tasks.md committed: openspec archive grow"
    assert world.status()["landed"] == "main"


def test_a_clone_goes_on_from_there(tmp_path: Path) -> None:
    world = clone(ended(tmp_path), tmp_path / "clone")
    before = statuses(world)
    answer = world.actions()
    assert answer["state"] == "complete"
    assert statuses(world) == before
    world.tasks.write_text(world.tasks.read_text() + "- [ ] 3.2 Sweep the floor\n")
    assert names(hand_outs(world.actions())) == ["3.2"]


def test_a_clone_learns_that_it_has_landed(tmp_path: Path) -> None:
    world = clone(ended(tmp_path), tmp_path / "clone")
    world.actions()
    for _ in range(2):
        land(world)
        assert world.status()["landed"] == "main"
    text = baton(world.root, "log", "grow").stdout
    assert text.count(" landed ") == 1, text


def test_the_store_is_lost_before_landing(tmp_path: Path) -> None:
    world = begun(tmp_path)
    before = statuses(world)
    forget(world)
    assert statuses(world) == before
    assert names(hand_outs(world.actions())) == ["2.1", "2.2"]
    assert {key: status for key, status in statuses(world).items() if key < "2"} == {
        key: status for key, status in before.items() if key < "2"
    }


def test_a_lost_store_is_said_where_worktrees_are_left(tmp_path: Path) -> None:
    world = make_world(tmp_path / "project", PLAN)
    assert world.status()["attention"] == []
    world.actions(capacity=2)
    assert world.status()["attention"] == []
    forget(world)
    (said,) = world.status()["attention"]
    assert said["reason"] == "record_lost"
    assert "holds 2 worktrees of this change" in said["detail"]
    assert "! record lost" in baton(world.root, "status").stdout
    assert "record_lost" not in str(world.actions(capacity=1)["actions"])
    assert world.status()["attention"] == []


def test_the_store_is_lost_after_landing(tmp_path: Path) -> None:
    world = ended(tmp_path)
    before = statuses(world)
    forget(world)
    assert statuses(world) == before
    assert world.actions()["state"] == "complete"
    assert statuses(world) == before


def test_what_is_skipped_is_out_of_the_way_at_once(tmp_path: Path) -> None:
    """The roof waits for the nearest earlier section that is wanted: with the walls skipped, for the ground."""
    world = make_world(tmp_path / "project", PLAN)
    world.finish(hand_outs(world.actions(capacity=1))[0])
    for ticket in ("2.1", "2.2"):
        world.decide(ticket, "skip", "a tent will do")
    run_git(world.root, "commit", "-qam", "the ticks")
    forget(world)
    assert world.ticket("3.1")["waits_for"] == ["grow#1.2", "grow#1.3"]
    assert names(hand_outs(world.actions())) == ["1.2", "1.3"]


def test_taken_back_stays_taken_back(tmp_path: Path) -> None:
    world = begun(tmp_path)
    world.decide("1.2", "reopen", "it was not")
    forget(world)
    assert world.ticket("1.2")["status"] == "ready"
    assert statuses(world)["1.1"] == "integrated"


def test_a_change_of_the_same_name_and_words_begins_at_nothing(tmp_path: Path) -> None:
    world = clone(ended(tmp_path), tmp_path / "clone")
    write_files(world.root, {world.tasks.relative_to(world.root).as_posix(): PLAN})
    assert set(statuses(world).values()) == {"ready", "waiting"}
    assert names(hand_outs(world.actions())) == ["1.1", "1.2", "1.3"]


def test_a_box_ticked_by_hand_is_still_that(tmp_path: Path) -> None:
    world = begun(tmp_path)
    forget(world)
    world.tasks.write_text(world.tasks.read_text().replace("- [ ] 2.1", "- [x] 2.1"))
    assert statuses(world)["2.1"] == "external"


def test_an_edited_receipt_proves_nothing(tmp_path: Path) -> None:
    world = begun(tmp_path)
    forget(world)
    oids = run_git(world.root, "rev-list", "--reverse", "--first-parent", f"main~1..{world.integration}").split()
    onto = run_git(world.root, "rev-parse", "main~1")
    for oid in oids:
        message = run_git(world.root, "log", "-1", "--format=%B", oid).replace('"sealed_at":"2', '"sealed_at":"1')
        parents = [onto, *run_git(world.root, "log", "-1", "--format=%P", oid).split()[1:]]
        words = [word for parent in parents for word in ("-p", parent)]
        onto = run_git(world.root, "commit-tree", f"{oid}^{{tree}}", *words, "-m", message)
    run_git(world.root, "update-ref", f"refs/heads/{world.integration}", onto)
    assert statuses(world)["1.2"] == "attested"
    assert statuses(world)["1.1"] == "external"


@pytest.mark.parametrize("words", [("status", "--json"), ("plan", "grow"), ("explain", "1.1")])
def test_no_git_no_history_and_no_failure(tmp_path: Path, words: tuple[str, ...]) -> None:
    world = make_world(tmp_path / "project", PLAN.replace("[ ] 1.1", "[x] 1.1"))
    done: Any = baton(world.root, *words, env={"PATH": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    assert "1.1" in done.stdout


# Begun too early


def test_the_base_follows_until_something_is_begun(tmp_path: Path) -> None:
    """A first call that hands nothing out must not pin the change to a commit without the checks it then asks for."""
    world = make_world(tmp_path / "project", PLAN, config=None)
    first = world.actions()
    assert [item["reason"] for item in first["actions"]] == ["no_verification"]
    write_files(world.root, {"baton.toml": '[verify]\ncommands = ["test -f made"]\n', "made": "yes\n"})
    run_git(world.root, "add", "-A")
    run_git(world.root, "commit", "-qm", "checks, and what they need")
    tip = run_git(world.root, "rev-parse", "main")
    action = hand_outs(world.actions(capacity=1))[0]
    assert run_git(world.root, "rev-parse", world.integration, action["branch"]).split() == [tip, tip]
    assert world.finish(action)["state"] == "integrated"
    run_git(world.root, "commit", "-q", "--allow-empty", "-m", "later")
    world.actions()
    assert run_git(world.root, "rev-parse", f"{world.integration}~1") == tip, "it stays where it began"


def test_work_under_way_keeps_its_base_and_a_killed_move_is_finished(tmp_path: Path) -> None:
    world = make_world(tmp_path / "project", PLAN)
    begun_at = run_git(world.root, "rev-parse", "main")
    world.actions(capacity=1)
    run_git(world.root, "commit", "-q", "--allow-empty", "-m", "meanwhile")
    world.actions("other", capacity=1)
    assert run_git(world.root, "rev-parse", world.integration) == begun_at
    for ticket in ("1.1", "1.2"):
        world.decide(ticket, "abandon")
    tip = run_git(world.root, "rev-parse", "main")
    run_git(world.root, "update-ref", f"refs/heads/{world.integration}", tip)  # killed before the row was written
    assert len(hand_outs(world.actions("other", capacity=1))) == 1
    assert world.status()["integration_head"] == tip
