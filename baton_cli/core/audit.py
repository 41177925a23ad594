"""Is every ticked box backed by a commit of ours? Decided from the tasks file and the chain alone. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from baton_cli.core.chain import Chain, Link
from baton_cli.core.document import Document, Ticket
from baton_cli.core.facts import DECIDED

SCHEMA = "baton.audit/1"
ALLOWABLE = ("attested", "external")
PROVES = (
    "Consistency, not honesty: git, receipts and boxes agree. Whoever can write to the repository can write a"
    " consistent history; and a receipt says that the checks passed, not that they check enough."
)


@dataclass(frozen=True, slots=True)
class Where:
    """What was looked at. `shallow`: the history of this clone is cut off. `apart` are the commits that what is checked out
    does not have; with `landed` there must be none among those that prove a box."""

    change: str
    tasks: str
    archived: bool
    branches: tuple[str, ...]
    shallow: bool
    apart: frozenset[str] = frozenset()
    landed: bool = False


def audit(
    where: Where, document: Document, keys: Sequence[str], chain: Chain, allow: Collection[str]
) -> dict[str, Any]:
    """The answer, as `baton.audit/1`. Levels: integrated, attested (`done`), external (no commit), unproved (a bad one)."""
    facts = _facts(document, keys, chain)
    texts = {ticket.fingerprint for ticket in document.tickets}
    boxes = [
        _box(ticket, keys[ticket.position], facts[ticket.position], chain, texts, shallow=where.shallow)
        for ticket in document.tickets
        if any(box.done for box in ticket.boxes)
    ]
    for box in boxes:  # where history is cut off, nobody can say that a box has no commit
        unseen = where.shallow and box["level"] == "external"
        box["passed"] = box["level"] == "integrated" or (box["level"] in allow and not unseen)
    failing = [box for box in boxes if not box["passed"]]
    stray = _stray(chain, {box["commit"] for box in boxes})
    landed = not any(box["commit"] in where.apart for box in boxes)
    return {
        "schema": SCHEMA,
        "change": where.change,
        "passed": not failing and not stray and (landed or not where.landed),
        "landed": landed,
        "tasks": where.tasks,
        "archived": where.archived,
        "branches": list(where.branches),
        "tickets": {"total": len(document.tickets), "ticked": len(boxes), "failing": len(failing)},
        "levels": {level: sum(1 for box in boxes if box["level"] == level) for level in _LEVELS},
        "first": failing[0] if failing else None,
        "failing": [box["ticket"] for box in failing],
        "boxes": boxes,
        "faults": stray,
        "decisions": [_decision(link) for link in chain.links if link.evidence.decision is not None],
        "problems": [*_problems(where, chain, boxes), *(() if landed or not where.landed else (_not_landed(where),))],
        "allowed": sorted(allow),
        "proves": PROVES,
    }


_LEVELS = ("integrated", "attested", "external", "unproved")


def _facts(document: Document, keys: Sequence[str], chain: Chain) -> list[list[Link]]:
    """The commits about each ticket, by position, oldest first. The text decides; only twins need their number. What was
    spoiled counts where there is nothing else."""
    by_text: dict[str, dict[str, list[Link]]] = {}
    for link in chain.links:
        if link.evidence.target is None:
            by_text.setdefault(link.evidence.fingerprint, {}).setdefault(link.evidence.key, []).append(link)
    found: list[list[Link]] = [[] for _ in document.tickets]
    twins: dict[str, list[Ticket]] = {}
    for ticket in document.tickets:
        twins.setdefault(ticket.fingerprint, []).append(ticket)
    for fingerprint, same in twins.items():
        groups = by_text.get(fingerprint, {})
        if len(same) == 1:
            order = {link.oid: place for place, link in enumerate(chain.links)}
            found[same[0].position] = sorted(
                (link for group in groups.values() for link in group), key=lambda link: order[link.oid]
            )
            continue
        left = [ticket for ticket in same if keys[ticket.position] not in groups]
        for ticket in same:
            found[ticket.position] = groups.pop(keys[ticket.position], [])
        for ticket, group in zip(left, groups.values(), strict=False):  # renumbered: equal texts pair in order
            found[ticket.position] = group
    spoiled = {(link.evidence.key, link.evidence.fingerprint): link for link in chain.spoiled}
    by_print = {link.evidence.fingerprint: link for link in chain.spoiled}
    for ticket in document.tickets:
        own = spoiled.get((keys[ticket.position], ticket.fingerprint)) or by_print.get(ticket.fingerprint)
        if not found[ticket.position] and own is not None:
            found[ticket.position] = [own]
    return found


def _box(
    ticket: Ticket, key: str, links: Sequence[Link], chain: Chain, texts: Collection[str], *, shallow: bool
) -> dict[str, Any]:
    link: Link | None = None
    for each in links:
        link = None if each.evidence.decision == "reopen" else each
    level, problem = "external", None
    if link is not None:
        level = DECIDED.get(link.evidence.decision or "", "integrated")
        level, problem = ("external", "it was skipped, then ticked by hand") if level == "skipped" else (level, None)
        if link.fault is not None:
            level, problem = "unproved", f"commit {link.oid[:12]}: {link.fault}"
        elif level == "attested":
            problem = "a person attested it (`baton done`)"
    elif links:
        problem = "it was reopened and never integrated again"
    else:
        problem = _unknown(key, chain, texts, shallow=shallow)
    return {
        # without a number of its own the ticket is called what Baton called it
        "ticket": link.evidence.key if link is not None and not ticket.id else key,
        "title": ticket.title,
        "line": ticket.line,
        "level": level,
        "commit": link.oid if link is not None else None,
        "sealed": link.evidence.receipt.get("head") if link is not None and link.evidence.receipt else None,
        "receipt": link.evidence.receipt_digest if link is not None else None,
        "problem": problem,
        "notes": _notes(link.evidence.receipt) if link is not None and link.evidence.receipt else [],
    }


def _unknown(key: str, chain: Chain, texts: Collection[str], *, shallow: bool) -> str:
    other = [link for link in chain.links if link.evidence.key == key and link.evidence.decision is None]
    if other and other[-1].evidence.fingerprint not in texts:  # what another ticket is about now was only renumbered
        return f"its text was changed after commit {other[-1].oid[:12]} integrated it"
    if shallow:
        return "no commit of Baton's in this cut-off history is about it"
    return "no commit of Baton's is about it: it was ticked by hand"


def _notes(receipt: Mapping[str, Any]) -> list[str]:
    """What a reader should know about evidence that counts."""
    operator = receipt.get("operator") or {}
    touched = [str(path) for path in receipt.get("touches_checks") or ()]
    notes = [
        "no file was changed" if receipt.get("empty_diff") else "",
        f"it changes what the checks run: {', '.join(touched[:5])}" if touched else "",
        f"sealed by a person: {operator.get('why') or 'no reason given'}" if operator else "",
        "sealed on another machine" if receipt.get("detached") else "",
    ]
    return [note for note in notes if note]


def _decision(link: Link) -> dict[str, Any]:
    return {
        "ticket": link.evidence.key,
        "decision": link.evidence.decision,
        "commit": link.oid,
        "who": link.evidence.said.get("who"),
        "why": link.evidence.said.get("why"),
        "at": link.evidence.said.get("at"),
    }


def _stray(chain: Chain, named: Collection[str | None]) -> list[dict[str, Any]]:
    """Bad commits that no ticked box is named for: merges of a target, decisions, tickets taken out or done again."""
    return [
        {"ticket": link.evidence.key or None, "commit": link.oid, "problem": link.fault}
        for link in chain.links
        if link.fault is not None and link.oid not in named
    ]


def _not_landed(where: Where) -> dict[str, str]:
    return {
        "code": "not_landed",
        "message": f"the work on {where.change} is not in what is checked out",
        "hint": f"`baton land {where.change}` brings it to its branch; then audit there",
    }


def _problems(where: Where, chain: Chain, boxes: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """What lies behind several boxes at once, also of those that were allowed without a commit."""
    if all(box["passed"] and box["commit"] for box in boxes):
        return []
    found = []
    if where.shallow:
        found.append(
            {
                "code": "shallow_history",
                "message": "the history of this clone is cut off, so commits may be missing",
                "hint": "fetch the rest (git fetch --unshallow), then audit again",
            }
        )
    if chain.rewritten:
        found.append(
            {
                "code": "rewritten_history",
                "message": f"commit {chain.rewritten[-1][:12]} was squashed, rebased or picked from Baton's: the evidence"
                " of such a commit does not fit it any more",
                "hint": "audit where the integration branch is, and land with `baton land` or a merge commit",
            }
        )
    elif not chain.links and not where.shallow and any(not box["passed"] for box in boxes):
        found.append(
            {
                "code": "no_evidence",
                "message": f"nothing in the history of {', '.join(where.branches)} is Baton's work on {where.change}",
                "hint": "fetch the integration branch, or a branch it was landed on without squashing",
            }
        )
    return found
