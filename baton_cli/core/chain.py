"""The commits of ours in a history, each judged by what it says of itself and by its neighbours. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from baton_cli.core import integration
from baton_cli.core.integration import Evidence


class Node(Protocol):
    """What is known of any commit."""

    @property
    def tree(self) -> str: ...
    @property
    def parents(self) -> tuple[str, ...]: ...


class Told(Node, Protocol):
    """A commit with its message."""

    @property
    def oid(self) -> str: ...
    @property
    def message(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Link:
    """One commit of ours; `fault` is what is wrong with it."""

    oid: str
    evidence: Evidence
    fault: str | None


@dataclass(frozen=True, slots=True)
class Chain:
    """A change's commits, oldest first, and those that only quote one: squashed, rebased, picked. Of these, `spoiled` are
    those that have one's whole message."""

    links: tuple[Link, ...]
    rewritten: tuple[str, ...]
    spoiled: tuple[Link, ...] = ()


def follow(
    change: str,
    tips: Sequence[str],
    graph: Mapping[str, Node],
    told: Iterable[Told],
    *,
    cut: Collection[str] = (),
    replaced: Collection[str] = (),
) -> Chain:
    """The change's own commits among those that `tips` reach without going through a worker's branch.

    `graph` is every commit reached, children before parents; `told` those that name any change. `cut` are the ends of a
    shallow clone, `replaced` what `git replace` shows otherwise than it is.
    """
    read = {commit.oid: (commit, integration.read_message(commit.message)) for commit in told}
    ours = _mainline(tips, graph, read)
    links: list[Link] = []
    rewritten: list[str] = []
    spoiled: list[Link] = []
    proved: dict[str, set[str]] = {}
    merged: set[str] = set()
    for oid in reversed([oid for oid in graph if oid in ours and oid in read]):
        commit, evidence = read[oid]
        if evidence is None or (evidence.decision is None and len(commit.parents) == 1 and oid not in cut):
            if _quotes(change, commit.message):
                rewritten.append(oid)
                if evidence is not None:
                    spoiled.append(
                        Link(oid, evidence, "it was squashed, rebased or picked, so its evidence does not fit it")
                    )
            continue
        if evidence.change != change:
            continue
        if oid in cut:
            links.append(Link(oid, evidence, "the history is cut off there, so it cannot be checked"))
            continue
        fault = _fault(change, commit, evidence, graph, proved, merged)
        if fault is None and {oid, commit.tree, *commit.parents[1:]} & set(replaced):
            fault = "`git replace` shows something else in its place"
        links.append(Link(oid, evidence, fault))
    return Chain(tuple(links), tuple(rewritten), tuple(spoiled))


def endings(links: Iterable[Link], tickets: Iterable[tuple[str, str]]) -> dict[str, Link]:
    """By key: the sound commit that finished each of these tickets (key and fingerprint) and was not taken back since.

    A text is known wherever its ticket stands now; twins need their keys, too.
    """
    keys_of: dict[str, list[str]] = {}
    for key, fingerprint in tickets:
        keys_of.setdefault(fingerprint, []).append(key)
    found: dict[str, Link] = {}
    for link in links:
        same = keys_of.get(link.evidence.fingerprint, [])
        key = same[0] if len(same) == 1 else link.evidence.key
        if link.fault is not None or key not in same:
            continue
        if link.evidence.kind is None:
            found.pop(key, None)
        else:
            found[key] = link
    return found


def _quotes(change: str, message: str) -> bool:
    """Whether our trailer is in it, also indented as `git merge --squash` proposes it."""
    return any(line.strip() == f"Baton-Change: {change}" for line in message.split("\n"))


def _mainline(
    tips: Sequence[str], graph: Mapping[str, Node], read: Mapping[str, tuple[Told, Evidence | None]]
) -> set[str]:
    """What the tips reach when a ticket's merge is left by its first parent: a worker could write commits like ours."""
    seen: set[str] = set()
    queue = [oid for oid in tips if oid in graph]
    while queue:
        oid = queue.pop()
        if oid in seen:
            continue
        seen.add(oid)
        evidence = read[oid][1] if oid in read else None
        ticket = evidence is not None and evidence.assignment_id is not None
        parents = graph[oid].parents
        queue += [parent for parent in (parents[:1] if ticket else parents) if parent in graph]
    return seen


def _fault(
    change: str,
    commit: Told,
    evidence: Evidence,
    graph: Mapping[str, Node],
    proved: dict[str, set[str]],
    merged: set[str],
) -> str | None:
    before = graph.get(commit.parents[0]) if commit.parents else None
    if before is None:
        return "its first parent is missing"
    found = integration.fault(
        evidence,
        change=change,
        tree=commit.tree,
        parents=commit.parents,
        previous=commit.parents[0],
        previous_tree=before.tree,
    )
    if found is None and evidence.gate is not None:
        try:
            found = _proof_fault(evidence, evidence.gate, commit, graph, proved)
        except (KeyError, TypeError, AttributeError):
            found = "its receipt or gate record is not complete"
    if found is None and evidence.assignment_id is not None:
        if evidence.assignment_id in merged:
            return "its assignment was merged before"
        merged.add(evidence.assignment_id)
    return found


def _proof_fault(
    evidence: Evidence,
    gate: Mapping[str, Any],
    commit: Told,
    graph: Mapping[str, Node],
    proved: dict[str, set[str]],
) -> str | None:
    """Whether each check of the gate was proved as it says: now, by the receipt of the same tree, or before on this tree."""
    receipt = evidence.receipt
    if receipt is not None:
        sealed = graph.get(commit.parents[1])
        if sealed is not None and sealed.tree != receipt["tree"]:
            return "its receipt names another tree than its sealed commit has"
    known = proved.setdefault(commit.tree, set())
    for check in gate["checks"]:
        command, proof = check["command"], check["proof"]
        if proof == "receipt":
            sound = receipt is not None and receipt["tree"] == commit.tree and receipt["clean_environment"] is True
            sound = sound and any(item["command"] == command for item in (receipt or {})["checks"])
        else:
            sound = proof == "gate" or (proof == "earlier" and command in known)
        if not sound:
            return f"nothing proves `{command}` on its tree"
        known.add(command)
    return None
