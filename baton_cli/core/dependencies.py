"""What waits for what: section order, `(after ...)`, closing checks, and the errors in it.

A section of n tickets that waits for one of m has n times m edges. They are never made: the n tickets share one tuple,
and the search for cycles walks over one node for each section's barrier, so time and memory stay linear.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from baton_cli.core.patterns import late
from baton_cli.core.tasks import Document, Ticket
from baton_cli.core.ticket_text import after, split_after
from baton_cli.core.wording import closing, sentence, without_marks
from baton_cli.errors import BatonError

_AFTER = late(r"after\s*:\s*(.+)", re.I | re.S)


class Dependencies(NamedTuple):
    """By position: what each ticket waits for (ascending; equal ones share one tuple), and the closing checks."""

    after: tuple[tuple[int, ...], ...]
    closing: frozenset[int]


def resolve(
    document: Document, names: Sequence[str], *, sequential: bool, closing_check: bool, skipped: Collection[int]
) -> Dependencies:
    """`names` are what people call the tickets, by position; `skipped` positions stand in nobody's way.

    `(after ...)` is the whole truth about a ticket: it replaces the section barrier, the chain of a sequential section
    and the edges of a closing check alike.
    Errors: plan_dangling, plan_self_reference, plan_cycle, each naming every ticket in it.
    """
    explicit = _explicit(document, names)
    sections: list[list[Ticket]] = [[] for _ in document.sections]
    for ticket in document.tickets:
        sections[ticket.section].append(ticket)
    last = _closing(sections, explicit) if closing_check else frozenset()
    after: list[tuple[int, ...]] = [()] * len(document.tickets)
    links = list(after)  # the same, with a barrier as one node behind the tickets
    nodes = list(after)  # those nodes
    barrier: tuple[int, ...] = ()
    gate: tuple[int, ...] = ()
    for section in sections:
        active = [ticket.position for ticket in section if ticket.position not in skipped]
        before: int | None = None
        for ticket in section:
            at = ticket.position
            if at in explicit:
                after[at] = links[at] = explicit[at]
            elif at in last:
                others = tuple(position for position in active if position != at)
                after[at], links[at] = barrier + others, gate + others
            elif sequential and before is not None:
                # a predecessor with its own `(after ...)` may have left the barrier behind; this ticket has not
                extra = before in explicit
                after[at] = (*barrier, before) if extra else (before,)
                links[at] = (*gate, before) if extra else (before,)
            else:
                after[at], links[at] = barrier, gate
            before = at if at not in skipped else before
        if active:
            barrier, gate = tuple(active), (len(nodes),)
            nodes.append(barrier)
    links += nodes[len(links) :]
    if any(target > at for at, targets in explicit.items() for target in targets):  # all other edges point backwards
        for at in skipped:
            links[at] = ()
        _refuse_cycles(links, names)
    return Dependencies(tuple(after), last)


def _explicit(document: Document, names: Sequence[str]) -> dict[int, tuple[int, ...]]:
    """What `(after ...)` and `- after:` say, by position."""
    asked: dict[int, tuple[str, ...]] = {}
    for ticket in document.tickets:
        items = _after(ticket)
        if items is not None:
            asked[ticket.position] = items
    if not asked:
        return {}
    known = _positions(document, names)
    dangling, selves, explicit = [], [], {}
    for at, items in asked.items():
        missing = [item for item in items if item not in known]
        if missing:
            dangling.append(f"{names[at]} waits for {', '.join(missing)}")
        found = {position for item in items for position in known.get(item, ())}
        if at in found:
            selves.append(names[at])
        explicit[at] = tuple(sorted(found))
    if dangling:
        message = f"(after ...) names tickets that are not in the plan: {'; '.join(dangling)}"
        raise BatonError("plan_dangling", message, "name ids of this tasks.md, or write (after none)")
    if selves:
        message = f"tickets that wait for themselves: {', '.join(selves)}"
        raise BatonError("plan_self_reference", message, "name other tickets in (after ...), or write (after none)")
    return explicit


def _after(ticket: Ticket) -> tuple[str, ...] | None:
    """The ids a ticket asks to wait for; empty for `none`; None where it says nothing about it, or only in prose."""
    clauses = []
    if "fter" in ticket.text or "fter" in ticket.body:
        clauses.append(after(ticket.text) if ticket.text.endswith(")") else None)
        if clauses[0] is None:  # a mark such as (manual) may stand behind it, or the sentence may go on below
            clauses.append(after(without_marks(sentence(ticket.text, ticket.body))))
    for bullet in ticket.bullets:
        found = _AFTER.match(bullet.text)
        if found is not None:
            clauses.append(split_after(f"(after {found[1].replace('`', '').strip()})")[1])
    said = [clause for clause in clauses if clause is not None]
    return tuple(dict.fromkeys(item for clause in said for item in clause)) if said else None


def _positions(document: Document, names: Sequence[str]) -> Mapping[str, list[int]]:
    """Tickets by id, and by the label (`L3`) that Baton gave those without one. An id used twice means both."""
    known: dict[str, list[int]] = {}
    for ticket in document.tickets:
        if ticket.id is not None:
            known.setdefault(ticket.id, []).append(ticket.position)
    for position, name in enumerate(names):
        known.setdefault(name, [position])
    return known


def _closing(sections: Sequence[Sequence[Ticket]], explicit: Mapping[int, tuple[int, ...]]) -> frozenset[int]:
    """The last ticket of each section, if it begins like a check, unless one of them waits for it."""
    found = set()
    for section in sections:
        if not section or not closing(section[-1].title):
            continue
        at = section[-1].position
        if not any(at in explicit.get(ticket.position, ()) for ticket in section):
            found.add(at)
    return frozenset(found)


def _refuse_cycles(links: Sequence[tuple[int, ...]], names: Sequence[str]) -> None:
    cycles = []
    for component in _components(links):
        tickets = sorted(node for node in component if node < len(names))
        path = _path(links, tickets[0], component)
        shown = " -> ".join(names[node] for node in path if node < len(names))
        rest = [names[node] for node in tickets if node not in path]
        cycles.append(shown + (f" (in it too: {', '.join(rest)})" if rest else ""))
    if cycles:
        message = f"these tickets wait for each other: {'; '.join(cycles)}"
        raise BatonError("plan_cycle", message, "change one of their (after ...) clauses, or the order of the sections")


def _path(links: Sequence[tuple[int, ...]], start: int, component: Collection[int]) -> list[int]:
    """A shortest way from `start` back to it, inside its component."""
    came: dict[int, int] = {}
    queue = [start]
    for node in queue:
        for target in links[node]:
            if target == start:
                path = [start, node]
                while path[-1] != start:
                    path.append(came[path[-1]])
                return path[::-1]
            if target in component and target not in came:
                came[target] = node
                queue.append(target)
    return [start]


def _components(links: Sequence[tuple[int, ...]]) -> list[frozenset[int]]:
    """The strongly connected components of more than one node (Tarjan, without recursion), by their first node."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on_stack: set[int] = set()
    found: list[frozenset[int]] = []
    for root in range(len(links)):
        if root in index:
            continue
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        work = [(root, iter(links[root]))]
        while work:
            node, targets = work[-1]
            for target in targets:
                if target not in index:
                    index[target] = low[target] = len(index)
                    stack.append(target)
                    on_stack.add(target)
                    work.append((target, iter(links[target])))
                    break
                if target in on_stack:
                    low[node] = min(low[node], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    component = _pop(stack, node)
                    on_stack -= component
                    if len(component) > 1:
                        found.append(component)
    return sorted(found, key=min)


def _pop(stack: list[int], node: int) -> frozenset[int]:
    popped = [stack.pop()]
    while popped[-1] != node:
        popped.append(stack.pop())
    return frozenset(popped)
