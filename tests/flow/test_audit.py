"""Every ticked box has its evidence in git, or is named: in the project, in clones, and whatever somebody did to them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from baton_cli.core import canonical
from baton_cli.core.actions import iso
from baton_cli.core.lifecycle import State
from baton_cli.errors import BatonError
from baton_cli.finisher import Finisher
from baton_cli.flow.audit import audit as examine
from baton_cli.project import find
from tests.conftest import run_git, write_files
from tests.kit import TASKS, World, baton, baton_json, hand_outs, kinds, make_world

TASKS_FILE = "openspec/changes/grow/tasks.md"
BRANCH = "baton/grow/integration"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose change is complete; tests work on copies of it."""
    return tmp_path_factory.mktemp("kept") / "project"


@pytest.fixture
def world(tmp_path: Path, finished: Path) -> World:
    if not finished.exists():
        assert kinds(make_world(finished).run_to_end()) == ["complete"]
    shutil.copytree(finished, tmp_path / "project", symlinks=True)
    for links in (".git/worktrees", ".dsh/baton/worktrees"):  # they lead to the original
        shutil.rmtree(tmp_path / "project" / links, ignore_errors=True)
    return World(tmp_path / "project")


def audit(root: Path, *allow: str, change: str = "grow") -> dict[str, Any]:
    return examine(find(root), change, set(allow))


def levels(answer: dict[str, Any]) -> dict[str, str]:
    return {box["ticket"].rpartition("#")[2]: box["level"] for box in answer["boxes"]}


def failing(answer: dict[str, Any]) -> list[str]:
    return [key.rpartition("#")[2] for key in answer["failing"]]


def clone(world: World, place: Path, *options: str) -> Path:
    run_git(world.root, "clone", "-q", *options, world.root.as_uri(), str(place))
    return place


def land(world: World) -> None:
    run_git(world.root, "merge", "-q", "--ff-only", BRANCH)
    run_git(world.root, "commit", "-q", "-am", "Tick grow")


ALL = {"1.1": "integrated", "1.2": "integrated", "2.1": "integrated"}


# Where it works


def test_in_the_project_each_box_is_proved_by_its_commit(world: World) -> None:
    shutil.rmtree(world.root / ".dsh")  # nothing of it is asked
    answer = audit(world.root)
    assert answer["passed"]
    assert (levels(answer), answer["first"], answer["failing"]) == (ALL, None, [])
    for box in answer["boxes"]:
        assert run_git(world.root, "log", "-1", "--format=%P", box["commit"]).split(" ")[1] == box["sealed"]
        assert f"Baton-Receipt: {box['receipt']}" in run_git(world.root, "log", "-1", "--format=%B", box["commit"])
    assert "honesty" in answer["proves"]
    assert not (world.root / ".dsh").exists()


def test_nothing_is_ticked_so_nothing_is_owed(tmp_path: Path) -> None:
    world = make_world(tmp_path / "project")
    answer = audit(world.root)
    assert answer["passed"]
    assert answer["tickets"] == {"total": 3, "ticked": 0, "failing": 0}


def test_in_a_clone_of_the_branch_it_was_landed_on(world: World, tmp_path: Path) -> None:
    land(world)
    place = clone(world, tmp_path / "clone", "--single-branch", "--branch", "main")
    assert levels(audit(place)) == ALL
    assert audit(place)["passed"]


def test_in_a_clone_of_the_integration_branch(world: World, tmp_path: Path) -> None:
    place = clone(world, tmp_path / "clone", "--single-branch", "--branch", BRANCH)
    shutil.copy(world.tasks, place / TASKS_FILE)
    assert levels(audit(place)) == ALL


def test_in_a_clone_that_only_fetched_it(world: World, tmp_path: Path) -> None:
    place = clone(world, tmp_path / "clone")
    shutil.copy(world.tasks, place / TASKS_FILE)
    assert audit(place)["branches"] == ["HEAD", f"origin/{BRANCH}"]
    assert levels(audit(place)) == ALL


def test_in_a_branch_that_merged_it(world: World, tmp_path: Path) -> None:
    run_git(world.root, "commit", "-q", "--allow-empty", "-m", "meanwhile")
    run_git(world.root, "switch", "-q", "-c", "feature", BRANCH)
    run_git(world.root, "commit", "-q", "-am", "Tick grow")
    run_git(world.root, "switch", "-q", "main")
    run_git(world.root, "merge", "-q", "--no-ff", "-m", "Merge the request", "feature")
    place = clone(world, tmp_path / "clone", "--single-branch", "--branch", "main")
    assert levels(audit(place)) == ALL


def test_on_another_branch_than_the_one_checked_out(world: World, tmp_path: Path) -> None:
    run_git(world.root, "branch", "-m", BRANCH, "kept-work")
    answer = audit(world.root)
    assert levels(answer) == ALL
    assert "kept-work" in answer["branches"]


def test_after_a_landing_that_merged_the_target(world: World) -> None:
    ticked = world.tasks.read_bytes()
    write_files(world.root, {"other.txt": "theirs\n"})
    run_git(world.root, "add", "other.txt")
    run_git(world.root, "commit", "-q", "-m", "meanwhile")
    with world.controller() as controls:
        Finisher(controls.context).land("grow")
    assert world.tasks.read_bytes() == ticked
    run_git(world.root, "branch", "-D", BRANCH)
    answer = audit(world.root)
    assert (answer["passed"], levels(answer), answer["faults"]) == (True, ALL, [])


def test_after_openspec_archive_moved_the_folder(world: World, tmp_path: Path) -> None:
    land(world)
    (world.root / "openspec/changes/archive").mkdir()
    run_git(world.root, "mv", "openspec/changes/grow", "openspec/changes/archive/2031-02-03-grow")
    run_git(world.root, "commit", "-q", "-m", "Archive")
    answer = audit(clone(world, tmp_path / "clone"))
    assert (answer["passed"], answer["archived"]) == (True, True)
    assert answer["tasks"] == "openspec/changes/archive/2031-02-03-grow/tasks.md"
    with pytest.raises(BatonError) as caught:
        audit(world.root, change="shrink")
    assert caught.value.code == "no_such_change"


def test_from_a_worktree_and_a_sub_folder(world: World, tmp_path: Path) -> None:
    run_git(world.root, "worktree", "add", "-q", "--detach", str(tmp_path / "other"), "main")
    here = audit(world.root)
    assert audit(tmp_path / "other") == here
    assert audit(world.root / "openspec" / "changes") == here


def test_renumbered_and_moved_tickets_keep_their_evidence(world: World) -> None:
    text = world.tasks.read_text()
    text = text.replace("1.2 Lay", "1.7 Lay").replace("1.1 Lay", "1.2 Lay").replace("2.1 Raise", "Raise")
    world.tasks.write_text(text)
    assert levels(audit(world.root)) == {"1.2": "integrated", "1.7": "integrated", "2.1": "integrated"}


def test_twins_are_told_apart_by_their_numbers(tmp_path: Path) -> None:
    world = make_world(tmp_path / "project", "- [ ] 1.1 Run the same\n- [ ] 1.2 Run the same\n- [ ] 1.3 Other\n")
    world.finish(hand_outs(world.actions(capacity=1))[0])
    world.tasks.write_text(world.tasks.read_text().replace("[ ] 1.2", "[x] 1.2"))
    answer = audit(world.root)
    assert (levels(answer), failing(answer)) == ({"1.1": "integrated", "1.2": "external"}, ["1.2"])


# What it refuses


@pytest.mark.parametrize("number", ["1.1", "1.2", "2.1"])
def test_a_box_ticked_by_hand_is_named(tmp_path: Path, number: str) -> None:
    world = make_world(tmp_path / "project")
    world.tasks.write_text(world.tasks.read_text().replace(f"[ ] {number}", f"[x] {number}"))
    answer = audit(world.root)
    assert not answer["passed"]
    assert (failing(answer), answer["first"]["ticket"]) == ([number], f"grow#{number}")
    assert "ticked by hand" in answer["first"]["problem"]
    assert (
        answer["first"]["line"]
        == world.tasks.read_text()
        .splitlines()
        .index(next(line for line in world.tasks.read_text().splitlines() if number in line))
        + 1
    )
    assert [problem["code"] for problem in answer["problems"]] == ["no_evidence"]
    assert audit(world.root, "external")["passed"]
    assert not audit(world.root, "attested")["passed"]


def test_a_new_ticked_line_is_named_among_proved_ones(world: World) -> None:
    world.tasks.write_text(world.tasks.read_text() + "- [x] 2.2 Paint it\n")
    answer = audit(world.root)
    assert (failing(answer), levels(answer)) == (["2.2"], {**ALL, "2.2": "external"})


def test_a_reworded_ticket_is_another_question(world: World) -> None:
    world.tasks.write_text(world.tasks.read_text().replace("Raise the wall", "Raise two walls"))
    answer = audit(world.root)
    assert failing(answer) == ["2.1"]
    assert "text was changed after commit" in answer["first"]["problem"]


def test_decisions_are_listed_and_allowed_only_when_asked(tmp_path: Path) -> None:
    world = make_world(tmp_path / "project")
    world.decide("1.1", "done", "seen with my own eyes")
    world.decide("1.2", "skip", "not needed")
    answer = audit(world.root)
    assert (levels(answer), failing(answer)) == ({"1.1": "attested"}, ["1.1"])
    told = [(made["ticket"], made["decision"], made["why"]) for made in answer["decisions"]]
    assert told == [("grow#1.1", "done", "seen with my own eyes"), ("grow#1.2", "skip", "not needed")]
    assert answer["decisions"][0]["who"]
    assert answer["decisions"][0]["at"] == iso(world.clock())
    assert audit(world.root, "attested")["passed"]
    world.tasks.write_text(world.tasks.read_text().replace("[ ] 1.2", "[x] 1.2"))
    both = audit(world.root, "attested")
    assert (failing(both), both["first"]["problem"]) == (["1.2"], "it was skipped, then ticked by hand")


def test_a_reopened_ticket_owes_its_evidence_again(world: World) -> None:
    world.decide("2.1", "reopen", "it leans")
    assert audit(world.root)["passed"]  # its box is open
    world.tasks.write_text(world.tasks.read_text().replace("[ ] 2.1", "[x] 2.1"))
    answer = audit(world.root)
    assert (failing(answer), answer["first"]["problem"]) == (
        ["2.1"], "it was reopened and never integrated again",
    )  # fmt: skip


def chain(root: Path) -> list[str]:
    return run_git(root, "rev-list", "--first-parent", "--reverse", f"main..{BRANCH}").split("\n")


def rebuild(root: Path, at: int, **changes: Any) -> None:
    """The chain with one commit made anew (`edit` its message, other `tree` or `parents`), the later ones put on top."""
    previous = [run_git(root, "rev-parse", "main"), *chain(root)][at]
    for place, oid in list(enumerate(chain(root)))[at:]:
        message = run_git(root, "log", "-1", "--format=%B", oid)
        tree, parents = run_git(root, "log", "-1", "--format=%T %P", oid).split(" ", 1)
        second = parents.split(" ")[1:]
        if place == at:
            message = changes.get("edit", lambda text: text)(message)
            tree, second = changes.get("tree", tree), changes.get("second", second)
        over = [part for parent in (previous, *second) for part in ("-p", parent)]
        previous = run_git(root, "commit-tree", tree, *over, "-F", "-", input=message)
    run_git(root, "update-ref", f"refs/heads/{BRANCH}", previous)


def edited_receipt(message: str) -> str:
    assert '"exit_code":0' in message
    return message.replace('"exit_code":0', '"exit_code": 0', 1).replace('"attempt":1', '"attempt":2')


def forged_receipt(message: str) -> str:
    """Another tree, with digests that agree again: what the sealed commit itself says is the only witness."""
    lines = message.split("\n")
    place = next(number for number, line in enumerate(lines) if '"baton.receipt/1"' in line)
    value = json.loads(lines[place])
    old = value.pop("digest")
    value["tree"] = "0" * 40
    value["digest"] = canonical.digest_of(value)
    lines[place] = canonical.encode(value).decode()
    return "\n".join(lines).replace(old, value["digest"])


def unproved_check(message: str) -> str:
    return message.replace('"proof":"receipt"', '"proof":"earlier"').replace('"proof":"gate"', '"proof":"earlier"')


TAMPERED: list[tuple[dict[str, Any], str]] = [
    ({"edit": edited_receipt}, "receipt was edited"),
    ({"edit": forged_receipt}, "another tree"),
    ({"edit": unproved_check}, "nothing proves `test -f README`"),
    ({"edit": lambda text: text.replace("Baton-Receipt: ", "Baton-Receipt: 0")}, "receipt was edited"),
    ({"second": []}, "squashed, rebased or picked"),
]


@pytest.mark.parametrize("at", [0, 2])
@pytest.mark.parametrize(("changes", "what"), TAMPERED, ids=["edited", "forged", "unproved", "trailer", "one-parent"])
def test_a_rebuilt_merge_is_named(world: World, at: int, changes: dict[str, Any], what: str) -> None:
    rebuild(world.root, at, **changes)
    answer = audit(world.root)
    number = ["1.1", "1.2", "2.1"][at]
    assert not answer["passed"]
    box = next(box for box in answer["boxes"] if box["ticket"] == f"grow#{number}")
    assert not box["passed"]
    assert what in box["problem"]
    assert box["level"] == "unproved"
    assert not audit(world.root, "external", "attested")["passed"]


@pytest.mark.parametrize("tree", ["main", "another"])
def test_a_merge_with_another_tree_is_named(world: World, tree: str) -> None:
    commit = "main" if tree == "main" else chain(world.root)[0]
    rebuild(world.root, 2, tree=run_git(world.root, "rev-parse", f"{commit}^{{tree}}"))
    assert failing(audit(world.root)) == ["2.1"]


def test_a_merge_of_another_head_is_named(world: World) -> None:
    rebuild(world.root, 2, second=[run_git(world.root, "rev-parse", "main")])
    answer = audit(world.root)
    assert failing(answer) == ["2.1"]
    assert "another commit" in answer["first"]["problem"]


def test_a_receipt_used_twice_is_named(world: World) -> None:
    """The merge of 1.1 once more, said to be about 2.1."""
    first, last = chain(world.root)[0], chain(world.root)[2]
    message = run_git(world.root, "log", "-1", "--format=%B", first)
    ticket = run_git(world.root, "log", "-1", "--format=%(trailers:key=Baton-Ticket)", last).strip()
    lines = [ticket if line.startswith("Baton-Ticket") else line for line in message.split("\n")]
    parents = run_git(world.root, "log", "-1", "--format=%P", first).split(" ")
    copy = run_git(
        world.root,
        "commit-tree",
        f"{first}^{{tree}}",
        "-p",
        parents[0],
        "-p",
        parents[1],
        "-F",
        "-",
        input="\n".join(lines),
    )
    run_git(world.root, "update-ref", f"refs/heads/{BRANCH}", chain(world.root)[1])
    run_git(world.root, "branch", "copy", copy)
    run_git(world.root, "switch", "-q", "--force-create", "both", copy)
    run_git(world.root, "merge", "-q", "-s", "ours", "-m", "both", BRANCH)
    run_git(world.root, "checkout", "-q", "main", "--", TASKS_FILE)
    write_files(world.root, {TASKS_FILE: TASKS.replace("[ ]", "[x]")})
    answer = audit(world.root)
    assert not answer["passed"]
    assert "its assignment was merged before" in json.dumps(answer)


def test_a_worker_cannot_write_evidence_on_its_own_branch(tmp_path: Path) -> None:
    """A copy of a good merge, made below the sealed head of another ticket, is not on the way of first parents."""
    world = make_world(tmp_path / "project", "- [ ] 1.1 Lay a stone\n- [ ] 1.2 Lay another\n")
    action = hand_outs(world.actions(capacity=1))[0]
    place = Path(action["cwd"])
    base = run_git(place, "rev-parse", "HEAD")
    world.work(action)
    fake = (
        f"Lay another\n\nBaton-Change: grow\nBaton-Ticket: grow#1.2 {hand_fingerprint(world)}\nBaton-Decision: done\n"
    )
    head = run_git(place, "rev-parse", "HEAD")
    made = run_git(place, "commit-tree", f"{head}^{{tree}}", "-p", head, "-F", "-", input=fake)
    run_git(place, "update-ref", "HEAD", made, head)
    world.seal(action)
    assert world.reconcile(action)["state"] == State.INTEGRATED.value
    assert run_git(world.root, "merge-base", "--is-ancestor", made, BRANCH, check=False) == ""
    world.tasks.write_text(world.tasks.read_text().replace("[ ] 1.2", "[x] 1.2"))
    answer = audit(world.root, "attested")
    assert (failing(answer), levels(answer)["1.2"], answer["decisions"]) == (["1.2"], "external", [])
    assert base


def hand_fingerprint(world: World) -> str:
    from baton_cli.core import tasks

    return tasks.parse(world.tasks.read_bytes()).tickets[1].fingerprint


@pytest.mark.parametrize("what", ["commit", "tree", "sealed head"])
def test_git_replace_is_named(world: World, what: str) -> None:
    oid = chain(world.root)[1]
    if what == "commit":
        run_git(world.root, "replace", oid, chain(world.root)[0])
    elif what == "tree":
        run_git(world.root, "replace", f"{oid}^{{tree}}", "main^{tree}")
    else:
        run_git(world.root, "replace", f"{oid}^2", "main")
    answer = audit(world.root)
    assert not answer["passed"]
    assert "git replace" in answer["first"]["problem"]


@pytest.mark.parametrize("how", ["template", "trailers", "rebase"])
def test_a_squash_is_named(world: World, how: str) -> None:
    bodies = [run_git(world.root, "log", "-1", "--format=%B", oid) for oid in chain(world.root)]
    if how == "rebase":
        for oid in chain(world.root):
            run_git(world.root, "cherry-pick", "--allow-empty", "-m", "1", oid)
    else:
        run_git(world.root, "merge", "--squash", BRANCH)
        message = ["--no-edit"] if how == "template" else ["-m", "Grow (#7)\n\n" + "\n\n".join(bodies)]
        run_git(world.root, "commit", "-q", *message)
    run_git(world.root, "branch", "-D", BRANCH)
    answer = audit(world.root)
    assert not answer["passed"]
    assert failing(answer) == ["1.1", "1.2", "2.1"]
    for allowed in (answer, audit(world.root, "external")):
        assert [problem["code"] for problem in allowed["problems"]] == ["rewritten_history"]
    assert allowed["passed"] == (how == "template"), "a whole message on another commit is bad evidence, not none"
    assert "--allow" not in baton(world.root, "audit", "grow").stdout


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_shallow_clone_says_that_the_history_ends(world: World, tmp_path: Path, depth: int) -> None:
    land(world)
    place = clone(world, tmp_path / "clone", "--depth", str(depth))
    answer = audit(place)
    assert not answer["passed"]
    assert "1.1" in failing(answer)
    assert answer["problems"][0]["code"] == "shallow_history"
    assert "--unshallow" in answer["problems"][0]["hint"]
    assert not audit(place, "external", "attested")["passed"], "what cannot be seen may have a commit"
    assert "--allow" not in baton(place, "audit", "grow").stdout
    run_git(place, "fetch", "-q", "--unshallow")
    assert audit(place)["passed"]


# What it lists, and the command


def test_what_counts_but_should_be_known_is_listed(tmp_path: Path) -> None:
    world = make_world(tmp_path / "project", "## 1. A\n\n- [ ] 1.1 Set up\n- [ ] 1.2 Verify it all\n")
    action = hand_outs(world.actions(capacity=1))[0]
    world.finish(action, {"Makefile": "all:\n"})
    action = hand_outs(world.actions())[0]
    run_git(Path(action["cwd"]), "commit", "-q", "--allow-empty", "-m", "looked at everything")
    baton_json(world.root, "seal", action["assignment_id"], "--operator", "--why", "nothing to do")
    world.reconcile(action)
    notes = {box["ticket"]: box["notes"] for box in audit(world.root)["boxes"]}
    assert notes["grow#1.1"] == ["it changes what the checks run: Makefile"]
    assert notes["grow#1.2"] == ["no file was changed", "sealed by a person: nothing to do"]


def test_the_command_exits_with_one_and_names_the_box(world: World) -> None:
    (world.project.queue_db).write_bytes(b"not a database at all" * 100)  # no business of the audit
    good = baton(world.root, "audit", "grow")
    assert good.returncode == 0, good.stderr
    assert good.stdout.startswith("grow: each of 3 ticked tickets is proved\n  ✓ 1.1  integrated  ")
    assert "Consistency, not honesty" in good.stdout
    world.tasks.write_text(world.tasks.read_text() + "- [x] 2.2 Paint it\n")
    bad = baton(world.root, "audit", "grow")
    assert bad.returncode == 1
    assert bad.stdout.startswith("grow: 3 of 4 ticked tickets proved; first: 2.2 in line 9\n")
    assert "  ✗ 2.2  external " in bad.stdout
    assert baton_json(world.root, "audit", "grow", code=1)["failing"] == ["grow#2.2"]
    assert baton_json(world.root, "audit", "grow", "--allow", "external, attested")["allowed"] == [
        "attested",
        "external",
    ]
    assert baton(world.root, "audit", "grow", "--allow", "unproved").returncode == 2
    assert baton(world.root, "audit", "shrink").returncode == 1


SPOIL: list[Callable[[Path], None]] = [
    lambda root: (root / TASKS_FILE).unlink(),
    lambda root: (root / TASKS_FILE).write_bytes(b"- [x] \xff\n"),
]


@pytest.mark.parametrize("spoil", SPOIL, ids=["gone", "no UTF-8"])
def test_a_tasks_file_that_cannot_be_read_is_an_error(world: World, spoil: Callable[[Path], None]) -> None:
    spoil(world.root)
    told = baton(world.root, "audit", "grow")
    assert told.returncode == 1
    assert told.stderr.startswith("error: ")
