"""tasks.md is edited while the work goes on: each ticket's fate is named, nothing is mis-ticked, lost or silently redone."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from baton_cli import context as contexts
from baton_cli.errors import BatonError
from baton_cli.observer import Observer
from tests import invariants
from tests.conftest import run_git, write_files
from tests.kit import World, baton_json, hand_outs, kinds, make_world, names, only

TASKS = """\
## 1. Ground

- [ ] 1.1 Lay the first stone of the house
- [ ] 1.2 Dig a well behind the barn

## 2. Walls

- [ ] 2.1 Raise the northern wall
"""
# Green alone, red together: what the gate rejects.
CONFIG = '[verify]\ncommands = ["test ! -e left || test ! -e right"]\n[limits]\nattempts = 2\n'
FIRST = "- [ ] 1.1 Lay the first stone of the house\n"
SECOND = "- [ ] 1.2 Dig a well behind the barn\n"
IN_FLIGHT = ("claimed", "unknown", "sealed", "conflicted", "rejected", "exhausted")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return make_world(tmp_path / "p", TASKS, config=CONFIG, files={"shared": "one\n"})


def bring(world: World, state: str) -> dict[str, Any]:
    """1.1 in this state, with work of its own on its branch; its action."""
    both = hand_outs(world.actions())
    first, second = both
    if state == "conflicted":
        world.finish(second, {"shared": "second\n"})
        world.finish(first, {"shared": "first\n"})
    elif state == "rejected":
        world.finish(second, {"left": ""})
        world.finish(first, {"right": ""})
    elif state == "exhausted":
        world.work(first)
        world.reconcile(first, "refused")
        again = next(item for item in hand_outs(world.actions()) if item["ticket"] == first["ticket"])
        run_git(Path(first["cwd"]), "reset", "-q", "--hard", "HEAD")
        world.reconcile(again, "refused")
        world.actions()
        first = again
    else:
        world.bind(first, "agent-1")
        world.work(first)
        if state == "unknown":
            world.reconcile(first, "failed")
        elif state == "sealed":
            world.seal(first)
        elif state == "integrated":
            world.seal(first)
            world.reconcile(first)
    assert standing(world, first)["state"] == state
    return first


def standing(world: World, action: Mapping[str, Any]) -> dict[str, Any]:
    """The assignment's row."""
    with contexts.opened(world.project, create=False, clock=world.clock) as surroundings:
        found = surroundings.store.row("SELECT * FROM assignments WHERE id = ?", (action["assignment_id"],))
        assert found is not None
        return dict(found)


def history(world: World) -> str:
    with contexts.opened(world.project, create=False, clock=world.clock) as surroundings:
        return json.dumps(Observer(surroundings).log(world.change))


def edit(world: World, *changes: tuple[str, str]) -> None:
    text = world.tasks.read_text()
    for old, new in changes:
        assert text.count(old) == 1, (old, text)
        text = text.replace(old, new)
    world.tasks.write_text(text)


def line(world: World, part: str) -> str:
    return next(row for row in world.tasks.read_text().splitlines() if part in row)


def named(world: World, answer: Mapping[str, Any], *fates: str) -> None:
    """Each fate is told in the answer and kept in the log."""
    said, kept = "\n".join(answer.get("notices", ())), history(world)
    for fate in fates:
        assert fate in said, (fate, said)
        assert fate in kept, fate


def packet(action: Mapping[str, Any]) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(Path(action["packet"]).with_suffix(".json").read_text())
    return value


def on_branch(world: World) -> set[str]:
    return set(run_git(world.root, "ls-tree", "--name-only", world.integration).split())


def take(world: World, action: Mapping[str, Any], answer: Mapping[str, Any]) -> dict[str, Any]:
    """The action with the token that is current now: a free assignment has been handed out again."""
    again = [item for item in hand_outs(answer) if item["assignment_id"] == action["assignment_id"]]
    return dict(again[0] if again else action)


def repair(world: World, action: Mapping[str, Any]) -> None:
    """What a good agent does with whatever it finds: resolve, repair, commit."""
    place = Path(action["cwd"])
    run_git(place, "rm", "-q", "--ignore-unmatch", "right")
    write_files(place, {"shared": "both\n", "repaired": ""})
    run_git(place, "add", "-A")
    run_git(place, "commit", "-q", "--allow-empty", "-m", "repair")


def code_of(call: Any) -> str:
    with pytest.raises(BatonError) as refused:
        call()
    return refused.value.code


# -- removed ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", IN_FLIGHT)
def test_a_ticket_removed_in_flight_is_superseded_and_its_work_kept(world: World, state: str) -> None:
    action = bring(world, state)
    head = run_git(world.root, "rev-parse", action["branch"])
    edit(world, (FIRST, ""))
    answer = world.actions()
    named(world, answer, "grow#1.1 was removed")
    assert any("its assignment ended, the work is kept on" in notice for notice in answer["notices"])
    row = standing(world, action)
    assert (row["state"], row["reason"]) == ("abandoned", "ticket_removed")
    assert run_git(world.root, "rev-parse", action["branch"]) == head
    assert Path(action["cwd"]).exists()
    assert code_of(lambda: world.seal(take(world, action, answer))) == "invalid_transition"
    assert "1.1.txt" not in on_branch(world)
    invariants.check(world)


@pytest.mark.parametrize("other", [False, True], ids=["its own notice", "the notice of another"])
def test_a_sealed_ticket_that_was_removed_is_not_integrated_by_a_reconcile(world: World, other: bool) -> None:
    first, second = hand_outs(world.actions())
    world.work(first)
    world.seal(first)
    world.work(second)
    world.seal(second)
    edit(world, (FIRST, ""))
    settled = world.reconcile(second if other else first)
    assert settled["state"] == ("integrated" if other else "abandoned")
    assert any("grow#1.1 is removed" in notice for notice in settled["notices"])
    assert standing(world, first)["state"] == "abandoned"
    assert "1.1.txt" not in on_branch(world)
    named(world, world.actions(), "grow#1.1 was removed")
    assert world.reconcile(first)["state"] == "abandoned"
    invariants.check(world)


def test_a_ticket_removed_while_the_plan_has_an_error_is_not_integrated(world: World) -> None:
    action = bring(world, "sealed")
    edit(world, (FIRST, ""), ("northern wall", "northern wall (after 9.9)"))
    settled = world.reconcile(action)
    assert settled["state"] == "sealed"
    assert "9.9" in settled["notices"][0]
    assert code_of(world.actions) == "plan_dangling"
    edit(world, (" (after 9.9)", ""))
    world.actions()
    assert standing(world, action)["state"] == "abandoned"
    invariants.check(world)


def test_a_sealed_ticket_removed_from_another_change_is_not_integrated_either(world: World) -> None:
    action = bring(world, "sealed")
    edit(world, (FIRST, ""))
    write_files(world.root, {"openspec/changes/other/tasks.md": "## 1. X\n- [ ] 1.1 Something else\n"})
    other = World(world.root, "other", world.clock)
    other.finish(only(other.actions("s2")))
    assert standing(world, action)["state"] == "sealed"
    world.actions()
    assert standing(world, action)["state"] == "abandoned"
    invariants.check(world)


def test_a_removed_batch_mate_does_not_make_an_unseen_answer_count_as_seen(world: World) -> None:
    first, second = hand_outs(world.actions())
    edit(world, (FIRST, ""))
    assert hand_outs(world.actions()) == [second]
    assert standing(world, first)["state"] == "abandoned"


@pytest.mark.parametrize("state", ["claimed", "sealed", "integrated"])
def test_cut_in_one_save_and_pasted_in_the_next(world: World, state: str) -> None:
    action = bring(world, state)
    ticked = line(world, "1.1") + "\n"
    edit(world, (ticked, ""))
    named(world, world.actions(), "grow#1.1 was removed")
    edit(world, (SECOND, SECOND + FIRST))
    answer = world.actions("s2")
    named(world, answer, "grow#1.1 is back")
    if state == "integrated":
        assert world.ticket("1.1")["status"] == "integrated"
        assert line(world, "1.1").startswith("- [x]")
    else:
        fresh = only(answer)
        assert (fresh["kind"], fresh["ticket"]) == ("dispatch", "grow#1.1")
        assert fresh["assignment_id"] != action["assignment_id"]
        assert standing(world, action)["state"] == "abandoned"
    invariants.check(world)


def test_cut_and_pasted_with_no_call_between_is_only_a_move(world: World) -> None:
    action = bring(world, "sealed")
    edit(world, (FIRST, ""), ("## 2. Walls\n\n", f"## 2. Walls\n\n{FIRST}"))
    assert world.reconcile(action)["state"] == "integrated"
    assert line(world, "1.1").startswith("- [x]")
    assert "notices" not in world.actions()
    invariants.check(world)


def test_a_removed_integrated_ticket_stays_on_the_branch(world: World) -> None:
    bring(world, "integrated")
    edit(world, ("- [x] 1.1 Lay the first stone of the house\n", ""))
    named(world, world.actions(), "grow#1.1 was removed")
    assert "1.1.txt" in on_branch(world)
    invariants.check(world)


# -- reworded -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["claimed", "unknown", "sealed", "conflicted", "rejected"])
def test_reworded_in_flight_the_work_counts_for_the_old_text(world: World, state: str) -> None:
    action = bring(world, state)
    frozen = packet(action)
    edit(world, ("first stone of the house", "first stone of the tall house"))
    answer = world.actions()
    named(world, answer, "grow#1.1 was reworded")
    if state != "sealed":
        assert standing(world, action)["state"] == "claimed"
        now = take(world, action, answer)
        assert packet(now) == frozen
        assert "tall" not in now["prompt"]
        repair(world, now)
        world.seal(now)
        assert world.reconcile(now)["state"] == "integrated"
    assert standing(world, action)["state"] == "integrated"
    assert line(world, "1.1").startswith("- [ ]"), "the new text is not done"
    invariants.check(world)
    fresh = next(
        item for item in hand_outs(world.actions() if state != "sealed" else answer) if "1.1" in item["ticket"]
    )
    assert (fresh["kind"], fresh["assignment_id"] != action["assignment_id"]) == ("dispatch", True)
    told = packet(fresh)
    assert told["earlier"]["commit"] == standing(world, action)["integrated_commit"]
    assert told["earlier"]["text"] == frozen["ticket"]["text"]
    assert "tall house" in told["ticket"]["text"]
    world.finish(fresh, {"tall": ""})
    assert line(world, "1.1").startswith("- [x]")
    invariants.check(world)


def test_a_mere_typo_is_accepted_by_done(world: World) -> None:
    bring(world, "integrated")
    edit(world, ("- [x] 1.1 Lay the first stone", "- [ ] 1.1 Lay the first stones"))
    named(world, world.actions(), "grow#1.1 was reworded")
    assert world.ticket("1.1")["status"] == "in_flight"
    world.decide("1.1", "done", "only a typo")
    assert world.ticket("1.1")["status"] == "attested"
    assert line(world, "1.1").startswith("- [x]")
    world.actions()
    assert world.ticket("1.1")["status"] == "attested"
    invariants.check(world)


@pytest.mark.parametrize("state", ["claimed", "sealed", "integrated"])
def test_reworded_and_ticked_is_done(world: World, state: str) -> None:
    action = bring(world, state)
    old = line(world, "1.1")
    edit(world, (old, "- [x] 1.1 Lay the first stone of the tall house"))
    answer = world.actions()
    named(world, answer, "grow#1.1 was reworded")
    assert world.ticket("1.1")["status"] == ("integrated" if state == "integrated" else "external")
    assert standing(world, action)["state"] == ("integrated" if state == "integrated" else "abandoned")
    assert all(item["ticket"] != "grow#1.1" for item in hand_outs(answer))
    invariants.check(world)


def test_reworded_and_back_again_is_what_it_was(world: World) -> None:
    bring(world, "integrated")
    edit(world, ("- [x] 1.1 Lay the first stone of the house", "- [ ] 1.1 Lay the first stone of the tall house"))
    second = next(item for item in hand_outs(world.actions()) if item["ticket"] == "grow#1.1")
    edit(world, ("of the tall house", "of the house"))
    named(world, world.actions(), "grow#1.1 was reworded")
    assert standing(world, second)["state"] == "abandoned"
    assert world.ticket("1.1")["status"] == "integrated"
    assert line(world, "1.1").startswith("- [x]")
    invariants.check(world)


def test_a_claim_prepared_after_the_edit_is_about_the_new_text(tmp_path: Path) -> None:
    config = '[verify]\ncommands = ["test -f README"]\n[worktree]\nsetup = ["test -e /nowhere"]\n'
    world = make_world(tmp_path / "p", "## 1. S\n- [ ] 1.1 Build the old house\n", config=config)
    assert only(world.actions())["reason"] == "setup_failed"
    edit(world, ("old house", "new house"))
    (world.root / "baton.toml").write_text('[verify]\ncommands = ["test -f README"]\n')
    world.decide("1.1", "retry", None)
    action = only(world.actions())
    assert "new house" in action["prompt"]
    world.finish(action)
    assert line(world, "1.1").startswith("- [x]")
    assert world.actions()["state"] == "complete"
    invariants.check(world)


@pytest.mark.parametrize("state", ["claimed", "integrated"])
def test_a_child_box_added_opens_the_ticket(world: World, state: str) -> None:
    action = bring(world, state)
    row = line(world, "1.1")
    edit(world, (row, f"{row}\n  - [ ] with a level"))
    answer = world.actions()
    named(world, answer, "grow#1.1 was reworded")
    if state == "claimed":
        world.seal(action)
        assert world.reconcile(action)["state"] == "integrated"
        answer = world.actions()
    assert line(world, "with a level") == "  - [ ] with a level"
    fresh = next(item for item in hand_outs(answer) if item["ticket"] == "grow#1.1")
    assert packet(fresh)["earlier"]["commit"] == standing(world, action)["integrated_commit"]
    world.finish(fresh, {"level": ""})
    assert line(world, "1.1").startswith("- [x]")
    assert line(world, "with a level") == "  - [x] with a level"
    invariants.check(world)


def test_children_ticked_one_by_one_by_hand_finish_nothing_alone(tmp_path: Path) -> None:
    world = make_world(tmp_path / "p", "## 1. S\n- [ ] 1.1 Build it\n  - [ ] below\n  - [ ] above\n", config=CONFIG)
    action = only(world.actions())
    edit(world, ("- [ ] below", "- [x] below"))
    assert hand_outs(world.actions())[0]["assignment_id"] == action["assignment_id"]
    world.finish(action)
    assert world.tasks.read_text().count("[x]") == 3
    invariants.check(world)


# -- renumbered, moved, inserted, split ----------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["claimed", "sealed", "conflicted", "integrated"])
def test_swapped_numbers_follow_the_text(world: World, state: str) -> None:
    action = bring(world, state)
    one, two = line(world, " 1.1 "), line(world, " 1.2 ")
    edit(world, (one, one.replace("1.1", "1.9")), (two, two.replace("1.2", "1.1")))
    edit(world, ("1.9", "1.2"))
    answer = world.actions()
    named(world, answer, "grow#1.1 is now grow#1.2", "grow#1.2 is now grow#1.1")
    if state in ("claimed", "conflicted"):
        now = take(world, action, answer)
        assert world.ticket("1.2")["assignment"]["id"] == action["assignment_id"]
        repair(world, now)
        world.seal(now)
        world.reconcile(now)
    assert standing(world, action)["state"] == "integrated"
    assert line(world, "first stone").startswith("- [x] 1.2")
    assert line(world, "Dig a well").startswith("- [x]" if state == "conflicted" else "- [ ]")
    invariants.check(world)


@pytest.mark.parametrize("state", ["claimed", "sealed", "integrated"])
def test_an_insertion_renumbers_all_and_redoes_nothing(world: World, state: str) -> None:
    action = bring(world, state)
    one, two = line(world, " 1.1 "), line(world, " 1.2 ")
    changed = f"- [ ] 1.1 Fetch the tools first\n{one.replace('1.1', '1.2')}\n{two.replace('1.2', '1.3')}"
    edit(world, (f"{one}\n{two}", changed))
    answer = world.actions()
    named(world, answer, "grow#1.1 is new", "grow#1.1 is now grow#1.2", "grow#1.2 is now grow#1.3")
    if state == "claimed":
        world.seal(action)
        world.reconcile(action)
        answer = world.actions()
    assert standing(world, action)["state"] == "integrated"
    assert names(hand_outs(answer)) == ["1.1"]
    assert [line(world, part)[:9] for part in ("tools", "stone", "well")] == ["- [ ] 1.1", "- [x] 1.2", "- [ ] 1.3"]
    invariants.check(world)


@pytest.mark.parametrize("state", ["claimed", "sealed", "rejected", "integrated"])
def test_reordered_and_moved_to_a_renamed_section(world: World, state: str) -> None:
    action = bring(world, state)
    one = line(world, " 1.1 ") + "\n"
    edit(world, (one, ""), ("## 2. Walls", "## 2. Everything above"))
    world.tasks.write_text(world.tasks.read_text() + one)
    answer = world.actions()
    assert not [notice for notice in answer.get("notices", ()) if "1.1" in notice], "it is the same ticket"
    assert answer["revision"] == 2
    if state in ("claimed", "rejected"):
        now = take(world, action, answer)
        repair(world, now)
        world.seal(now)
        world.reconcile(now)
    assert standing(world, action)["state"] == "integrated"
    assert line(world, "first stone").startswith("- [x] 1.1")
    invariants.check(world)


@pytest.mark.parametrize("state", ["claimed", "sealed", "integrated"])
def test_split_in_two_keeps_the_half_that_is_still_it(world: World, state: str) -> None:
    action = bring(world, state)
    row = line(world, " 1.1 ")
    mark = row[:5]
    edit(world, (row, f"{mark} 1.1 Lay the first stone\n- [ ] 1.3 Build the rest of the house"))
    answer = world.actions()
    named(world, answer, "grow#1.1 was reworded", "grow#1.3 is new")
    if state == "claimed":
        world.seal(action)
        assert world.reconcile(action)["state"] == "integrated"
        world.bind(only(answer), "agent-3")
        answer = world.actions("s2")
    if state == "integrated":  # its box was left ticked: the user says that this half is done
        assert names(hand_outs(answer)) == ["1.3"]
        assert world.ticket("1.1")["status"] == "integrated"
    else:
        assert names(hand_outs(answer)) == (["1.1", "1.3"] if state == "sealed" else ["1.1"])
        assert packet(hand_outs(answer)[0])["earlier"]["commit"] == standing(world, action)["integrated_commit"]
    assert line(world, "1.3").startswith("- [ ]")
    invariants.check(world)


@pytest.mark.parametrize("state", ["claimed", "sealed"])
def test_a_changed_after_clause_orders_what_is_not_out_yet(world: World, state: str) -> None:
    action = bring(world, state)
    frozen = packet(action)
    edit(
        world, ("stone of the house", "stone of the house (after 2.1)"), ("northern wall", "northern wall (after none)")
    )
    answer = world.actions()
    assert (answer["revision"], answer.get("notices")) == (2, None)
    assert packet(action) == frozen
    assert names(hand_outs(answer)) == ["2.1"]
    if state == "claimed":
        world.seal(action)
        world.reconcile(action)
    assert standing(world, action)["state"] == "integrated"
    assert line(world, "1.1").startswith("- [x]"), "what orders a ticket is no part of what it asks for"
    invariants.check(world)


def test_many_fates_are_counted_and_all_in_the_log(tmp_path: Path) -> None:
    rows = [f"Carry the stone number {n} home" for n in range(12)]
    world = make_world(tmp_path / "p", "## 1. S\n" + "".join(f"- [ ] 1.{n} {row}\n" for n, row in enumerate(rows)))
    world.actions(capacity=1)
    world.tasks.write_text("## 1. S\n" + "".join(f"- [ ] 1.{n + 1} {row}\n" for n, row in enumerate(rows)))
    answer = world.actions(capacity=1)
    assert "grow#1.0 is now grow#1.1 (Carry the stone number 0 home); grow#1.1 is now grow#1.2" in answer["notices"][0]
    assert answer["notices"][0].endswith("grow#1.3 (Carry the stone number 2 home) and 9 more")
    assert len(json.dumps(answer, ensure_ascii=False)) < 8000
    assert all(f"grow#1.{n} is now grow#1.{n + 1}" in history(world) for n in range(12))


def test_a_notice_for_each_kind_of_fate_names_three_tickets_with_their_titles(tmp_path: Path) -> None:
    rows = [f"- [ ] 1.{n} Carry the stone number {n} all the way up to the house\n" for n in range(1, 9)]
    world = make_world(tmp_path / "p", "## 1. S\n" + "".join(rows))
    world.actions(capacity=1)
    world.tasks.write_text(f"## 1. S\n{rows[0]}- [ ] 1.2 Paint it in **blue**\n")
    assert world.actions(capacity=1)["notices"] == [
        "grow#1.2 is new (Paint it in blue)",
        "grow#1.2 was removed (Carry the stone number 2 all the way up…); "
        "grow#1.3 was removed (Carry the stone number 3 all the way up…); "
        "grow#1.4 was removed (Carry the stone number 4 all the way up…) and 4 more",
    ]
    assert all(f"grow#1.{n} was removed (Carry the stone number {n}" in history(world) for n in range(2, 9))


# -- ticked and un-ticked by hand -----------------------------------------------------------------------------------


@pytest.mark.parametrize("state", IN_FLIGHT)
def test_ticked_by_hand_in_flight_ends_the_assignment(world: World, state: str) -> None:
    action = bring(world, state)
    head = run_git(world.root, "rev-parse", action["branch"])
    edit(world, ("- [ ] 1.1", "- [x] 1.1"))
    if state == "sealed":
        assert world.reconcile(action)["state"] == "abandoned"
    answer = world.actions()
    assert world.ticket("1.1")["status"] == "external"
    row = standing(world, action)
    assert (row["state"], row["reason"]) == ("abandoned", "ticket_external")
    assert state == "sealed" or any("grow#1.1 was ticked by hand" in notice for notice in answer["notices"])
    assert run_git(world.root, "rev-parse", action["branch"]) == head
    edit(world, ("- [x] 1.1", "- [ ] 1.1"))
    assert "grow#1.1" in [item["ticket"] for item in hand_outs(world.actions("s2"))], "open again, from the start"
    invariants.check(world)


def test_unticked_after_integration_is_ticked_again_unless_reopened(world: World) -> None:
    bring(world, "integrated")
    edit(world, ("- [x] 1.1", "- [ ] 1.1"))
    assert world.ticket("1.1")["status"] == "integrated"
    assert any(notice.startswith("1.1 was un-ticked") for notice in world.actions()["notices"])
    assert line(world, "1.1").startswith("- [x]")
    assert not any("un-ticked" in notice for notice in world.actions().get("notices", ()))
    world.decide("1.1", "reopen")
    answer = world.actions()
    assert line(world, "1.1").startswith("- [ ]")
    assert "grow#1.1" in [item["ticket"] for item in hand_outs(answer)]
    invariants.check(world)


def test_unticked_and_renumbered_in_one_save_is_still_ticked_again(world: World) -> None:
    bring(world, "integrated")
    edit(world, ("- [x] 1.1", "- [ ] 1.7"))
    named(world, world.actions(), "grow#1.1 is now grow#1.7")
    assert line(world, "1.7").startswith("- [x]")
    invariants.check(world)


# -- ambiguous ------------------------------------------------------------------------------------------------------


PLAIN = "## 1. S\n\n- [ ] Polish the floor of the hall\n- [ ] 1.9 Sweep the yard\n"
HALL = "- [ ] Polish the floor of the hall\n"


@pytest.fixture
def plain(tmp_path: Path) -> World:
    return make_world(tmp_path / "p", PLAIN, config=CONFIG)


@pytest.mark.parametrize("state", ["claimed", "sealed", "integrated"])
def test_a_duplicate_blocks_and_is_never_ticked_until_told_apart(plain: World, state: str) -> None:
    world = plain
    action = hand_outs(world.actions())[0]
    world.work(action, {"hall": ""})
    if state != "claimed":
        world.seal(action)
    if state == "integrated":
        world.reconcile(action)
        edit(world, ("- [x] Polish", "- [ ] Polish"))
    edit(world, (HALL, HALL + HALL))
    answer = world.actions()
    named(world, answer, "is ambiguous")
    before = world.tasks.read_bytes()
    if state == "claimed":
        assert only(answer)["kind"] == "wait", "its agent is still at work"
        world.seal(action)
    if state != "integrated":
        settled = world.reconcile(action)
        assert settled["state"] == "sealed", "not integrated while nobody knows for which"
    edit(world, ("Sweep the", "Sweep all the"))  # another edit changes nothing about it
    answer = world.actions()
    named(world, answer, "is ambiguous")
    assert world.tasks.read_bytes() == before.replace(b"Sweep", b"Sweep all")
    assert not [item for item in hand_outs(answer) if "Polish" in item["title"]]
    assert [view["reason"] for view in world.status()["attention"]] == ["ambiguous_identity"]
    invariants.check(world)
    edit(world, (HALL + HALL, HALL + HALL.replace("hall", "upper hall")))
    answer = world.actions()
    named(world, answer, "is told apart again", "is new")
    assert standing(world, action)["state"] == "integrated"
    assert line(world, "the hall").startswith("- [x]")
    assert line(world, "upper").startswith("- [ ]")
    assert [item["title"] for item in hand_outs(answer) if "Polish" in item["title"]] == [
        "Polish the floor of the upper hall"
    ]
    invariants.check(world)


def test_one_of_two_copies_removed_again_is_the_ticket_it_was(plain: World) -> None:
    action = hand_outs(plain.actions())[0]
    edit(plain, (HALL, HALL + HALL))
    plain.actions()
    edit(plain, (HALL + HALL, HALL))
    named(plain, plain.actions(), "is told apart again")
    plain.finish(action, {"hall": ""})
    assert line(plain, "hall").startswith("- [x]")
    invariants.check(plain)


def test_copies_that_get_ids_of_their_own_are_new_tickets(plain: World) -> None:
    action = hand_outs(plain.actions())[0]
    edit(plain, (HALL, HALL + HALL))
    plain.actions()
    edit(plain, (HALL + HALL, HALL.replace("] P", "] 1.1 P") + HALL.replace("] P", "] 1.2 P")))
    answer = plain.actions("s2")
    named(plain, answer, "grow#1.1 is new", "grow#1.2 is new", "was removed")
    assert standing(plain, action)["state"] == "abandoned"
    assert names(hand_outs(answer)) == ["1.1", "1.2"]
    invariants.check(plain)


def test_a_copy_that_is_removed_altogether_ends_what_it_may_have_been(plain: World) -> None:
    action = hand_outs(plain.actions())[0]
    edit(plain, (HALL, HALL + HALL))
    plain.actions()
    edit(plain, (HALL + HALL, ""))
    named(plain, plain.actions(), "was removed")
    assert standing(plain, action)["state"] == "abandoned"
    edit(plain, ("the yard\n", f"the yard\n{HALL}"))
    named(plain, plain.actions(), "is back")
    invariants.check(plain)


def test_ambiguous_boxes_ticked_by_hand_end_what_they_may_have_been(plain: World) -> None:
    action = hand_outs(plain.actions())[0]
    edit(plain, (HALL, HALL + HALL))
    plain.actions()
    plain.tasks.write_text(plain.tasks.read_text().replace("- [ ] Polish", "- [x] Polish"))
    plain.actions()
    assert standing(plain, action)["state"] == "abandoned"
    invariants.check(plain)


def test_a_line_copied_with_its_id_is_ambiguous_and_with_another_id_new(world: World) -> None:
    action = bring(world, "claimed")
    edit(world, (FIRST, FIRST + FIRST))
    named(world, world.actions(), "is ambiguous")
    edit(world, (FIRST + FIRST, FIRST + FIRST.replace("1.1", "1.3")))
    answer = world.actions()
    named(world, answer, "grow#1.1 is told apart again", "grow#1.3 is new")
    world.seal(action)
    assert world.reconcile(action)["state"] == "integrated"
    assert line(world, " 1.1 ").startswith("- [x]")
    assert line(world, " 1.3 ").startswith("- [ ]")
    invariants.check(world)


def test_no_edit_at_all_says_nothing(world: World) -> None:
    first = world.actions()
    world.tasks.write_bytes(world.tasks.read_bytes())
    assert world.actions()["actions"] == first["actions"]
    assert kinds(first) == ["dispatch", "dispatch"]
    assert "notices" not in first


# -- worktrees deleted behind our back --------------------------------------------------------------------------------


def test_a_worktree_deleted_before_its_answer_was_seen_is_put_back(world: World) -> None:
    first = hand_outs(world.actions())[0]
    shutil.rmtree(first["cwd"])
    again = hand_outs(world.actions())[0]
    assert again == first
    assert world.finish(again)["state"] == "integrated"
    invariants.check(world)


def test_a_deleted_worktree_does_not_stop_its_lease_from_running_out(world: World) -> None:
    first = bring(world, "claimed")
    head = run_git(world.root, "rev-parse", first["branch"])
    shutil.rmtree(first["cwd"])
    world.clock.seconds += 3 * 3600
    again = next(item for item in hand_outs(world.actions("s2")) if item["ticket"] == first["ticket"])
    assert (again["kind"], again["assignment_id"]) == ("recover", first["assignment_id"])
    assert run_git(Path(again["cwd"]), "rev-parse", "HEAD") == head
    invariants.check(world)


def test_renumbered_in_flight_it_is_called_as_it_is_now(tmp_path: Path) -> None:
    world = make_world(tmp_path / "p", "- [ ] 1.1 Lay a stone\n- [ ] 1.2 Lay another\n")
    first, second = hand_outs(world.actions())
    world.tasks.write_text("- [ ] 1.1 Lay a stone\n- [ ] 1.2 Something new\n- [ ] 1.3 Lay another\n")
    said = world.reconcile(second, "failed")
    again = next(
        action for action in hand_outs(world.actions("s2")) if action["assignment_id"] == second["assignment_id"]
    )
    assert again["ticket"] == "grow#1.3"
    assert baton_json(world.root, "diff", "1.3")["ticket"] == "grow#1.3"
    assert said["ticket"] in ("grow#1.2", "grow#1.3")
    world.finish(first)
    world.finish(again)
    assert world.ticket("1.3")["status"] == "integrated"
    assert world.ticket("1.2")["status"] in ("ready", "in_flight")
    invariants.check(world)
