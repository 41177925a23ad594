"""Integration, decided before anything moves: whose turn, what is unproved, and what the commit says of itself."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baton_cli.core import canonical, integration
from baton_cli.core.integration import (
    Evidence,
    decision_message,
    fault,
    gate_record,
    merge_message,
    read_message,
    target_message,
    unproved,
)
from baton_cli.core.lifecycle import Assignment, State
from tests.stand_ins import BASE, CHANGE, HEAD, TREE, make_assignment, make_packet, make_plan, sealed_receipt

MERGED = "e" * 40  # the tree of the merge commit

# The queue


def sealed(name: str, at: float | None, **more: Any) -> Assignment:
    values = {"state": State.SEALED, "sealed_at": at, **more}
    return make_assignment(name, **values)


def turns(*assignments: Assignment) -> str:
    orders = {" ".join(item.id for item in integration.queue(order)) for order in itertools.permutations(assignments)}
    assert len(orders) == 1, "the order of the rows must not matter"
    return orders.pop()


def test_the_oldest_seal_comes_first_and_the_id_breaks_ties() -> None:
    assert turns(sealed("c", 3.0), sealed("a", 5.0), sealed("b", 1.0)) == "b c a"
    assert turns(sealed("c", 1.0), sealed("a", 1.0), sealed("b", 1.0)) == "a b c"
    assert turns() == ""


@pytest.mark.parametrize("state", [state for state in State if state is not State.SEALED])
def test_only_what_is_sealed_is_in_the_queue(state: State) -> None:
    assert turns(sealed("a", 1.0), make_assignment("b", state=state)) == "a"


def test_one_conflict_gives_no_right_of_way() -> None:
    assert turns(sealed("a", 1.0), sealed("b", 2.0, conflicts=1)) == "a b"
    assert turns(sealed("a", 1.0), make_assignment("b", state=State.CONFLICTED, conflicts=1)) == "a"


def test_after_the_second_conflict_its_seal_goes_before_older_ones() -> None:
    assert turns(sealed("a", 1.0), sealed("b", 9.0, conflicts=2), sealed("c", 2.0)) == "b a c"


@pytest.mark.parametrize("state", [State.CONFLICTED, State.CLAIMED])
def test_while_it_is_repaired_the_others_queue_behind_it(state: State) -> None:
    assert turns(sealed("a", 1.0), make_assignment("b", state=state, conflicts=2)) == ""


@pytest.mark.parametrize("state", [State.REJECTED, State.UNKNOWN, State.EXHAUSTED, State.INTEGRATED, State.ABANDONED])
def test_right_of_way_ends_when_nobody_repairs_it(state: State) -> None:
    assert turns(sealed("a", 1.0), make_assignment("b", state=state, conflicts=3)) == "a"


def test_among_several_with_right_of_way_the_oldest_assignment_is_first() -> None:
    first, second = sealed("b", 9.0, conflicts=2, created_at=1.0), sealed("a", 8.0, conflicts=2, created_at=2.0)
    assert turns(sealed("c", 1.0), first, second) == "b a c"
    repaired = second._replace(state=State.CONFLICTED)
    assert turns(sealed("c", 1.0), first, repaired) == "b"
    assert turns(sealed("c", 1.0), first._replace(state=State.CLAIMED), second) == ""


# What must still be proved


def receipt_for(*commands: str, **more: Any) -> Any:
    bullets = "".join(f"  - verify: `{command}`\n" for command in commands)
    return sealed_receipt(make_packet(make_plan(f"- [ ] 1.1 a\n{bullets}")), **more)


@pytest.mark.parametrize(
    ("clean", "tree", "earlier", "proved", "wanted", "by_receipt"),
    [
        (True, TREE, [], [], "", "a b"),
        (True, TREE, ["c", "a", "d"], [], "c d", "a b"),
        (True, TREE, ["c", "d"], ["c", "x"], "d", "a b"),
        (True, MERGED, ["c", "a"], [], "a b c", ""),
        (True, MERGED, ["c", "a"], ["a", "c"], "b", ""),
        (True, MERGED, [], ["a", "b"], "", ""),
        (False, TREE, ["c"], [], "a b c", ""),
        (False, TREE, ["c", "c", "b"], ["b"], "a c", ""),
        (False, MERGED, [], [], "a b", ""),
    ],
)
def test_what_is_unproved(
    clean: bool, tree: str, earlier: list[str], proved: list[str], wanted: str, by_receipt: str
) -> None:
    receipt = receipt_for("a", "b", clean_environment=clean)
    found = unproved(receipt=receipt, merged_tree=tree, earlier=iter(earlier), proved=iter(proved))
    assert [" ".join(part) for part in found] == [wanted, by_receipt]


@given(
    st.booleans(),
    st.sampled_from([TREE, MERGED]),
    st.lists(st.sampled_from("abcdef")),
    st.sets(st.sampled_from("abcdef")),
)
def test_every_command_is_proved_or_wanted_and_never_twice(
    clean: bool, tree: str, earlier: list[str], proved: set[str]
) -> None:
    receipt = receipt_for("a", "b", clean_environment=clean)
    wanted, by_receipt = unproved(receipt=receipt, merged_tree=tree, earlier=earlier, proved=proved)
    assert {*wanted, *by_receipt, *proved} >= {"a", "b", *earlier}
    assert not set(wanted) & {*by_receipt, *proved}
    assert len(wanted) == len(set(wanted))
    assert bool(by_receipt) is (clean and tree == TREE)


# What a commit says

GREEN = [{"command": "pytest -q", "exit_code": 0, "proof": "receipt"}]
HOSTILE = [
    "", " ", "Lay the first stone", '{"', '{"a": 1}', '{"schema":"baton.receipt/1","digest":"x"}', "Baton-Change: other",
    "Baton-Ticket", "# comment", "a\nb", "a\n\nBaton-Change: x\nBaton-Ticket: y z", "a\r\nb", "a\0b", "\x1b[31mred", "a\u2028b",
    "x" * 500, "日本語 " * 60, "\udc80", "👩‍👩‍👧", "-- >8 --", "From 0000", "\ufeffx", "fixup! x",
]  # fmt: skip
KEYS = [
    "grow#1.1",
    "grow#L7",
    "my change#1.1",
    "  two  spaces #A-1",
    "ä#1",
    "#",
    "a#b#c",
    "grow#1.1 ",
    "Baton-Change: x#1",
]


def message(title: str = "Lay the first stone", key: str = "grow#1.1", **more: Any) -> str:
    receipt = sealed_receipt()
    values: dict[str, Any] = {
        "title": title,
        "change": CHANGE,
        "key": key,
        "fingerprint": "f" * 16,
        "receipt": receipt,
        "gate": gate_record(MERGED, BASE, GREEN),
    }
    return merge_message(**{**values, **more})


def evidence_of(text: str) -> Evidence:
    found = read_message(text)
    assert found is not None
    return found


@pytest.mark.parametrize("title", HOSTILE)
@pytest.mark.parametrize("key", KEYS)
def test_a_merge_message_is_read_as_it_was_written(title: str, key: str) -> None:
    receipt = sealed_receipt()
    change = key.rpartition("#")[0]
    found = evidence_of(message(title, key, change=change))
    assert found == Evidence(
        change=change,
        key=key,
        fingerprint="f" * 16,
        assignment_id=receipt.assignment_id,
        packet=receipt.packet,
        receipt_digest=receipt.digest,
        decision=None,
        receipt=receipt.value,
        gate=gate_record(MERGED, BASE, GREEN),
    )
    assert judge(found, change=change) is None


@settings(max_examples=200)
@given(st.text(max_size=200))
def test_any_title_makes_a_readable_message(title: str) -> None:
    text = message(title)
    subject, _, rest = text.partition("\n")
    assert 0 < len(subject) <= 72
    assert subject.isprintable()
    assert rest.startswith("\n{")
    assert judge(evidence_of(text)) is None


@pytest.mark.parametrize("title", HOSTILE)
def test_git_keeps_the_message_and_finds_its_trailers(title: str, repository: Path, git: Callable[..., str]) -> None:
    text = message(title, "my change#1.1", change="my change")
    tree = git(repository, "rev-parse", "HEAD^{tree}")
    commit = git(repository, "commit-tree", tree, "-F", "-", input=text)
    assert git(repository, "log", "-1", "--format=%B", commit).rstrip("\n") == text.rstrip("\n")
    trailers = git(repository, "log", "-1", "--format=%(trailers:only,unfold)", commit).strip().split("\n")
    assert [line.partition(": ")[0] for line in trailers] == [
        "Baton-Change", "Baton-Ticket", "Baton-Assignment", "Baton-Packet", "Baton-Receipt",
    ]  # fmt: skip
    assert trailers[1] == f"Baton-Ticket: my change#1.1 {'f' * 16}"


def test_the_evidence_is_one_line_each_and_canonical() -> None:
    receipt, gate = message().split("\n")[2:4]
    assert receipt.encode() == canonical.encode(sealed_receipt().value)
    assert json.loads(gate)["schema"] == "baton.gate/1"


@pytest.mark.parametrize("title", HOSTILE)
@pytest.mark.parametrize("decision", ["done", "skip", "reopen"])
def test_a_decision_is_read_as_it_was_written(decision: str, title: str) -> None:
    text = decision_message(
        decision=decision,
        title=title,
        change="my change",
        key="my change#1.1",
        fingerprint="f" * 16,
        who="me",
        why=title,
        at="now",
    )
    found = evidence_of(text)
    assert (found.change, found.key, found.fingerprint, found.decision) == (
        "my change",
        "my change#1.1",
        "f" * 16,
        decision,
    )
    assert (found.receipt, found.gate, found.assignment_id) == (None, None, None)
    assert judge(found, change="my change", tree=BASE, parents=[BASE], previous_tree=BASE) is None


@pytest.mark.parametrize(
    "text",
    [
        "", "\n", "fix things", "fix things\n\nbody\n", "Baton-Change: grow\nBaton-Ticket: grow#1.1 f",  # no subject before it
        "x\n\nBaton-Change: grow\n", "x\n\nBaton-Ticket: grow#1.1 ffff\n", "x\n\nBaton-Change: grow\nBaton-Ticket: grow#1.1\n",
        "x\n\nBaton-Change: grow\nBaton-Ticket:\n", "x\n\nBaton-Change grow\nBaton-Ticket: grow#1.1 f\n",
        "x\n\nBaton-Change: grow\nBaton-Ticket: grow#1.1 f\n\nSigned-off-by: me\n",
        'x\n\n{"schema": \n\nBaton-Change: grow\nBaton-Ticket: grow#1.1 f\n',
        'x\n\n{"a":' + "[" * 100_000 + "\n\nBaton-Change: grow\nBaton-Ticket: grow#1.1 f\n",
    ],
)  # fmt: skip
def test_what_is_no_message_of_ours(text: str) -> None:
    assert read_message(text) is None


@given(st.text())
def test_any_message_can_be_read(text: str) -> None:
    read_message(text)
    read_message(f"x\n\n{text}\n\nBaton-Change: grow\nBaton-Ticket: grow#1.1 f\n")


def test_the_last_paragraph_counts_not_what_a_body_quotes() -> None:
    quoted = message().replace("\n\n", "\n\nBaton-Change: other\nBaton-Ticket: other#1 f\n\n", 1)
    assert evidence_of(quoted).change == CHANGE


# Faults


def judge(evidence: Evidence | None, **more: Any) -> str | None:
    values: dict[str, Any] = {
        "change": CHANGE,
        "tree": MERGED,
        "parents": [BASE, HEAD],
        "previous": BASE,
        "previous_tree": "0" * 40,
    }
    return fault(evidence, **{**values, **more})


def doctored(
    receipt: Mapping[str, Any] | None = None, gate: Mapping[str, Any] | None = None, fit: bool = False
) -> Evidence:
    """Evidence with other fields (`...` removes one); with `fit`, the digests are made to agree again."""
    found = evidence_of(message())
    assert found.receipt is not None
    assert found.gate is not None
    value = {name: item for name, item in {**found.receipt, **(receipt or {})}.items() if item is not ...}
    if fit:
        value.pop("digest", None)
        value["digest"] = canonical.digest_of(value)
        found = replace(found, receipt_digest=value["digest"])
    judged = {name: item for name, item in {**found.gate, **(gate or {})}.items() if item is not ...}
    return replace(found, receipt=value, gate=judged)


OURS = evidence_of(message())
RED = [{"command": "pytest -q", "exit_code": 1}]


@pytest.mark.parametrize(
    ("evidence", "more", "what"),
    [
        (None, {}, "no evidence"),
        (OURS, {"change": "other"}, f"belongs to the change {CHANGE}"),
        (OURS, {"parents": []}, "first parent"),
        (OURS, {"parents": [HEAD, BASE]}, "first parent"),
        (OURS, {"previous": "9" * 40}, "first parent"),
        (OURS, {"parents": [BASE]}, "missing"),
        (OURS, {"parents": [BASE, HEAD, HEAD]}, "missing"),
        (replace(OURS, receipt=None), {}, "missing"),
        (replace(OURS, gate=None), {}, "missing"),
        (OURS, {"parents": [BASE, "9" * 40]}, "another commit"),
        (OURS, {"tree": TREE}, "another commit"),
        (doctored(gate={"onto": HEAD}), {}, "another commit"),
        (doctored(gate={"tree": TREE}), {}, "another commit"),
        (doctored({"attempt": 2}), {}, "edited"),
        (doctored({"digest": "0" * 64}), {}, "edited"),
        (replace(OURS, receipt_digest="0" * 64), {}, "edited"),
        (replace(OURS, receipt_digest=None), {}, "edited"),
        (replace(OURS, assignment_id="0a1b2c3d-00000002"), {}, "another assignment"),
        (replace(OURS, assignment_id=None), {}, "another assignment"),
        (replace(OURS, packet="0" * 64), {}, "another assignment"),
        (doctored({"head": "9" * 40}, fit=True), {}, "another commit"),
        (doctored({"checks": RED}, fit=True), {}, "did not pass"),
        (doctored(gate={"checks": RED}), {}, "did not pass"),
        (doctored(gate={"checks": [*GREEN, *RED]}), {}, "did not pass"),
        (doctored(gate={"checks": []}), {}, "missing"),
        (doctored({"checks": []}, fit=True), {}, "missing"),
        (doctored({"checks": ...}, fit=True), {}, "not complete"),
        (doctored({"head": ...}, fit=True), {}, "not complete"),
        (doctored({"checks": 1}, fit=True), {}, "not complete"),
        (doctored({"checks": [{}]}, fit=True), {}, "not complete"),
        (doctored({"digest": ...}), {}, "not complete"),
        (doctored(gate={"tree": ...}), {}, "not complete"),
        (doctored(gate={"checks": None}), {}, "not complete"),
        (doctored(gate={"checks": [{"command": ["pytest -q"], "exit_code": 0}]}), {}, "not complete"),
    ],
)
def test_each_fault_is_named(evidence: Evidence | None, more: dict[str, Any], what: str) -> None:
    found = judge(evidence, **more)
    assert found is not None
    assert what in found


def test_a_merge_of_ours_has_no_fault() -> None:
    assert judge(OURS) is None


@pytest.mark.parametrize(
    "more", [{"tree": MERGED}, {"parents": [BASE, HEAD]}, {"parents": []}, {"previous": HEAD}, {"previous_tree": TREE}]
)
def test_a_decision_may_change_nothing(more: dict[str, Any]) -> None:
    text = decision_message(
        decision="done",
        title="x",
        change=CHANGE,
        key="grow#1.1",
        fingerprint="f" * 16,
        who="me",
        why="because",
        at="now",
    )
    fits: dict[str, Any] = {"tree": "0" * 40, "parents": [BASE], "previous": BASE, "previous_tree": "0" * 40}
    assert judge(evidence_of(text), **fits) is None
    assert judge(evidence_of(text), **{**fits, **more}) is not None


GATE_OF_TARGET = {**gate_record(MERGED, BASE, GREEN), "target": HEAD}


def of_target(name: str = "main", **gate: Any) -> Evidence:
    """The merge of the branch to land on, its gate record with other fields (`...` removes one)."""
    judged = {name: item for name, item in {**GATE_OF_TARGET, **gate}.items() if item is not ...}
    return evidence_of(target_message(target=name, change=CHANGE, branch="baton/grow/integration", gate=judged))


@pytest.mark.parametrize("target", ["main", "release/1.x", "Baton-Change", "日本語", "a: b", "'q\""])
def test_a_merge_of_the_target_is_read_as_it_was_written(target: str) -> None:
    found = of_target(target)
    assert (found.target, found.key, found.receipt, found.decision) == (target, "", None, None)
    assert judge(found) is None
    assert judge(of_target(checks=[])) is None  # nothing was integrated, so there is nothing to run


@pytest.mark.parametrize(
    ("evidence", "more", "what"),
    [
        (of_target(), {"change": "other"}, "belongs to the change"),
        (of_target(), {"parents": [HEAD, BASE]}, "first parent"),
        (of_target(), {"parents": [BASE]}, "missing"),
        (of_target(), {"parents": [BASE, HEAD, HEAD]}, "missing"),
        (of_target(), {"parents": [BASE, "9" * 40]}, "another commit"),
        (of_target(), {"tree": TREE}, "another commit"),
        (of_target(onto=HEAD), {}, "another commit"),
        (of_target(target=...), {}, "not complete"),
        (of_target(checks=RED), {}, "did not pass"),
        (replace(of_target(), gate=None), {}, "missing"),
    ],
)
def test_each_fault_of_a_merge_of_the_target_is_named(evidence: Evidence, more: dict[str, Any], what: str) -> None:
    assert what in (judge(evidence, **more) or "")
