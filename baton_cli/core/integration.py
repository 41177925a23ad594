"""Integration, decided before anything moves: whose turn it is, what still has to be proved, what the commit says."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from baton_cli.core import canonical
from baton_cli.core.actions import epoch
from baton_cli.core.facts import DECIDED, Completion
from baton_cli.core.lifecycle import Assignment, State
from baton_cli.core.prompt import shorten
from baton_cli.core.receipt import SealedReceipt

GATE_SCHEMA = "baton.gate/1"
DECISION_SCHEMA = "baton.decision/1"
SUBJECT_LIMIT = 72
UNDER_TEST = "baton: tree under test"  # subject of the commit that a gate checks out; no branch ever has it
RIGHT_OF_WAY_AFTER = 2
_HOLDS_THE_WAY = (State.CONFLICTED, State.CLAIMED, State.SEALED)


def queue(open_assignments: Iterable[Assignment]) -> tuple[Assignment, ...]:
    """The sealed assignments of a change in the order in which they are integrated: oldest seal first.

    One that conflicted twice has right of way: while it is being repaired nothing overtakes it, so that it cannot
    starve; once sealed it goes first.
    """
    everything = tuple(open_assignments)
    order = sorted(
        (item for item in everything if item.state is State.SEALED), key=lambda item: (item.sealed_at or 0.0, item.id)
    )
    urgent = sorted(
        (item for item in everything if item.conflicts >= RIGHT_OF_WAY_AFTER and item.state in _HOLDS_THE_WAY),
        key=lambda item: (item.created_at, item.id),
    )
    turns: list[Assignment] = []
    for item in urgent:
        if item.state is not State.SEALED:
            return tuple(turns)
        turns.append(item)
    return (*turns, *(item for item in order if item not in turns))


def unproved(
    *, receipt: SealedReceipt, merged_tree: str, earlier: Iterable[str], proved: Iterable[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The commands that must still run on the merged tree, and those whose proof is the receipt itself.

    The receipt proves its own commands only when the merged tree is the sealed tree and the worktree held nothing
    that a clean checkout lacks. `earlier` are the commands of the tickets integrated before.
    """
    by_receipt = receipt.commands if receipt.clean_environment and merged_tree == receipt.tree else ()
    known = {*by_receipt, *proved}
    wanted = tuple(dict.fromkeys((*receipt.commands, *earlier)))
    return tuple(command for command in wanted if command not in known), by_receipt


def gate_record(tree: str, onto: str, checks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What the gate knew when the ref moved. Each check names its proof: receipt, earlier or gate (run now)."""
    return {"schema": GATE_SCHEMA, "tree": tree, "onto": onto, "checks": [dict(check) for check in checks]}


def merge_message(
    *, title: str, change: str, key: str, fingerprint: str, receipt: SealedReceipt, gate: Mapping[str, Any]
) -> str:
    """The message of a ticket's merge commit: the evidence as its body, so that it travels with every clone."""
    trailers = {
        "Baton-Change": change,
        "Baton-Ticket": f"{key} {fingerprint}",
        "Baton-Assignment": receipt.assignment_id,
        "Baton-Packet": receipt.packet,
        "Baton-Receipt": receipt.digest,
    }
    return _message(title, (receipt.value, gate), trailers)


def decision_message(
    *, decision: str, title: str, change: str, key: str, fingerprint: str, who: str, why: str, at: str
) -> str:
    """The message of an operator's decision: it changes no file, but travels with the branch."""
    value = {"schema": DECISION_SCHEMA, "decision": decision, "ticket": key, "who": who, "why": why, "at": at}
    trailers = {"Baton-Change": change, "Baton-Ticket": f"{key} {fingerprint}", "Baton-Decision": decision}
    return _message(f"{decision}: {title}", (value,), trailers)


def target_message(*, target: str, change: str, branch: str, gate: Mapping[str, Any]) -> str:
    """The message of a merge of the branch to land on into the integration branch."""
    return _message(f"Merge {target} into {branch}", (gate,), {"Baton-Change": change, "Baton-Target": target})


def _message(title: str, values: Sequence[Mapping[str, Any]], trailers: Mapping[str, str]) -> str:
    subject = shorten("".join(char if char.isprintable() else " " for char in title), SUBJECT_LIMIT) or "(untitled)"
    body = "\n".join(canonical.encode(value).decode("utf-8") for value in values)
    return f"{subject}\n\n{body}\n\n" + "".join(f"{name}: {value}\n" for name, value in trailers.items())


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a commit of ours says of itself. `target` is the branch that a landing merged; it is about no ticket then.

    `said` is what a person said with a decision.
    """

    change: str
    key: str
    fingerprint: str
    assignment_id: str | None
    packet: str | None
    receipt_digest: str | None
    decision: str | None
    receipt: Mapping[str, Any] | None
    gate: Mapping[str, Any] | None
    target: str | None = None
    said: Mapping[str, Any] = field(default_factory=dict)

    @property
    def kind(self) -> str | None:
        """The kind of completion fact that this is evidence of; None for a `reopen`."""
        return "integrated" if self.decision is None else DECIDED.get(self.decision)

    @property
    def at(self) -> float:
        """When the receipt was sealed or the decision made, in seconds since the epoch; 0 where it does not say."""
        try:
            return epoch(str(self.receipt["sealed_at"] if self.receipt else self.said["at"]))
        except (KeyError, TypeError, ValueError):
            return 0.0

    def completion(self, ticket_id: int, commit: str) -> Completion:
        """The fact about a ticket that `commit`, which says this, is the evidence of."""
        return Completion(
            ticket_id=ticket_id,
            kind=self.kind or "",
            fingerprint=self.fingerprint,
            assignment_id=self.assignment_id,
            commit=commit,
            checks=tuple(check["command"] for check in self.receipt["checks"]) if self.receipt else (),
            who=self.said.get("who"),
            why=self.said.get("why"),
            at=self.at,
        )


def read_message(message: str) -> Evidence | None:
    """The evidence in a commit message; None when it is no commit of ours."""
    lines = message.rstrip("\n").split("\n")[1:]  # the subject is a ticket's title, which may look like anything
    trailers: dict[str, str] = {}
    while lines and lines[-1].startswith("Baton-"):
        name, separator, value = lines.pop().partition(": ")
        if not separator:
            return None
        trailers[name] = value
    key, _, fingerprint = trailers.get("Baton-Ticket", "").rpartition(" ")
    if not (key or trailers.get("Baton-Target")) or "Baton-Change" not in trailers:
        return None
    values: dict[str, Mapping[str, Any]] = {}
    for line in lines:
        if line.startswith('{"'):
            try:
                value = json.loads(line)
            except (ValueError, RecursionError):
                return None
            values[str(value.get("schema"))] = value
    return Evidence(
        change=trailers["Baton-Change"],
        key=key,
        fingerprint=fingerprint,
        assignment_id=trailers.get("Baton-Assignment"),
        packet=trailers.get("Baton-Packet"),
        receipt_digest=trailers.get("Baton-Receipt"),
        decision=trailers.get("Baton-Decision"),
        receipt=values.get("baton.receipt/1"),
        gate=values.get(GATE_SCHEMA),
        target=None if key else trailers["Baton-Target"],
        said=values.get(DECISION_SCHEMA, {}),
    )


def fault(
    evidence: Evidence | None, *, change: str, tree: str, parents: Sequence[str], previous: str, previous_tree: str
) -> str | None:
    """What is wrong with a commit found on the integration branch after `previous`; None when it is ours and fits."""
    if evidence is None:
        return "it carries no evidence of Baton"
    if evidence.change != change:
        return f"it belongs to the change {evidence.change}"
    if not parents or parents[0] != previous:
        return "its first parent is not the commit before it"
    if evidence.decision is not None:
        return None if len(parents) == 1 and tree == previous_tree else "a decision must not change any file"
    try:
        if evidence.target is not None:
            return _target_fault(evidence.gate, tree, parents, previous)
        if evidence.receipt is None or evidence.gate is None or len(parents) != 2:
            return "its receipt or gate record is missing"
        return _merge_fault(evidence, evidence.receipt, evidence.gate, tree, parents[1], previous)
    except (KeyError, TypeError):
        return "its receipt or gate record is not complete"


def _target_fault(gate: Mapping[str, Any] | None, tree: str, parents: Sequence[str], previous: str) -> str | None:
    if gate is None or len(parents) != 2:
        return "its gate record is missing"
    if (gate["tree"], gate["onto"], gate["target"]) != (tree, previous, parents[1]):
        return "its gate record is for another commit"
    if any(check["exit_code"] != 0 for check in gate["checks"]):
        return "one of its checks did not pass"
    return None


def _merge_fault(
    evidence: Evidence, receipt: Mapping[str, Any], gate: Mapping[str, Any], tree: str, head: str, previous: str
) -> str | None:
    sealed = dict(receipt)
    claimed = sealed.pop("digest")
    if claimed != evidence.receipt_digest or canonical.digest_of(sealed) != claimed:
        return "its receipt was edited"
    if (receipt["assignment_id"], receipt["packet"]) != (evidence.assignment_id, evidence.packet):
        return "its receipt is for another assignment"
    if head != receipt["head"] or gate["tree"] != tree or gate["onto"] != previous:
        return "its receipt or gate record is for another commit"
    judged = {check["command"] for check in gate["checks"]}
    if not receipt["checks"] or any(check["command"] not in judged for check in receipt["checks"]):
        return "one of its checks is missing"
    if any(check["exit_code"] != 0 for check in (*receipt["checks"], *gate["checks"])):
        return "one of its checks did not pass"
    return None
