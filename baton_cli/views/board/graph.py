"""The sections of a change and what they wait for, laid out for an SVG: left to right, then on in the next row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from baton_cli.views.grid import DONE
from baton_cli.views.words import listed, shown

WIDTH, HEIGHT, GAP_X, GAP_Y = 142, 44, 24, 14  # of a box and between boxes, in SVG units
A_ROW = 4  # ranks side by side
EDGE = 2  # around everything
TITLE = 17  # characters


@dataclass(frozen=True, slots=True)
class Box:
    """A section; `part` is how wide its finished part is drawn."""

    x: int
    y: int
    name: str
    told: str
    tone: str
    part: int


@dataclass(frozen=True, slots=True)
class Graph:
    """Boxes and the paths between them; `words` says the same for those who do not see it."""

    width: int
    height: int
    boxes: tuple[Box, ...]
    paths: tuple[str, ...]
    words: str


def graph_of(sections: Sequence[Mapping[str, Any]]) -> Graph | None:
    """None where nothing could be learnt from a picture: a single section."""
    if len(sections) < 2:
        return None
    edges, ranks = _order([section.get("after", ()) for section in sections])
    places, width, height = _places(ranks)
    boxes = tuple(_box(section, place) for section, place in zip(sections, places, strict=True))
    paths = tuple(_path(places[before], places[at]) for at, befores in enumerate(edges) for before in befores)
    return Graph(width, height, boxes, paths, _words(sections, edges))


def _order(after: Sequence[Sequence[int]]) -> tuple[list[list[int]], list[int]]:
    """Edges without those that others imply, and each section's distance from the start.

    Sections may wait for each other, though tickets cannot; then the earlier one goes first.
    """
    left = [set(befores) for befores in after]
    followers: list[list[int]] = [[] for _ in after]
    for at, befores in enumerate(after):
        for before in befores:
            followers[before].append(at)
    ready = sorted((at for at in range(len(after)) if not left[at]), reverse=True)
    ranks, above = [-1] * len(after), [0] * len(after)
    edges: list[list[int]] = [[] for _ in after]
    todo = set(range(len(after)))
    while todo:
        at = ready.pop() if ready else min(todo)
        if at not in todo:
            continue
        todo.remove(at)
        placed = sorted((before for before in after[at] if ranks[before] >= 0), key=lambda before: -ranks[before])
        ranks[at] = max((ranks[before] + 1 for before in placed), default=0)
        for before in placed:
            if not above[at] >> before & 1:
                edges[at].append(before)
                above[at] |= above[before] | 1 << before
        for follower in followers[at]:
            left[follower].discard(at)
            if not left[follower] and follower in todo:
                ready.append(follower)
        ready.sort(reverse=True)
    return edges, ranks


def _places(ranks: Sequence[int]) -> tuple[list[tuple[int, int]], int, int]:
    """Where each box is, and the size of it all."""
    stacks: dict[int, int] = {}
    depth = []  # how many boxes of the same rank are above this one
    for rank in ranks:
        depth.append(stacks.get(rank, 0))
        stacks[rank] = depth[-1] + 1
    rows = max(ranks) // A_ROW + 1
    tops, top = [], EDGE
    for row in range(rows):
        tops.append(top)
        most = max(stacks.get(rank, 0) for rank in range(row * A_ROW, (row + 1) * A_ROW))
        top += most * (HEIGHT + GAP_Y) + GAP_Y
    left = EDGE + (GAP_X // 2 if rows > 1 else 0)  # where a path comes in from the row above
    places = [
        (left + rank % A_ROW * (WIDTH + GAP_X), tops[rank // A_ROW] + down * (HEIGHT + GAP_Y))
        for rank, down in zip(ranks, depth, strict=True)
    ]
    columns = min(A_ROW, max(ranks) + 1)
    return places, left + columns * (WIDTH + GAP_X), top - 2 * GAP_Y + EDGE


def _box(section: Mapping[str, Any], place: tuple[int, int]) -> Box:
    tickets = section["tickets"]
    statuses = [str(ticket["status"]) for ticket in tickets]
    done = sum(1 for status in statuses if status in DONE)
    tones = (("blocked", "stop"), ("in_flight", "run"), ("ready", "ready"), ("waiting", "wait"))
    tone = next((tone for status, tone in tones if status in statuses), "done")
    name = " ".join(part for part in (shown(section.get("number")), shown(section.get("title"))) if part)
    name = name if len(name) <= TITLE else name[: TITLE - 1].rstrip() + "…"
    told = {"stop": "needs attention", "run": "in progress", "ready": "ready", "wait": "waiting", "done": "done"}[tone]
    part = WIDTH * done // len(tickets)
    return Box(*place, name, f"{done}/{len(tickets)} {told}" if tone != "done" else f"{done} done", tone, part)


def _path(start: tuple[int, int], end: tuple[int, int]) -> str:
    """From the right side of a box to the left side of another, with one bend in each gap."""
    x, y = start[0] + WIDTH, start[1] + HEIGHT // 2
    to_x, to_y = end[0], end[1] + HEIGHT // 2
    bend = x + GAP_X // 2
    if bend < to_x:
        return f"M{x} {y}H{to_x - GAP_X // 2}V{to_y}H{to_x}"
    above = end[1] - GAP_Y
    return f"M{x} {y}H{bend}V{above}H{to_x - GAP_X // 2}V{to_y}H{to_x}"


def _words(sections: Sequence[Mapping[str, Any]], edges: Sequence[Sequence[int]]) -> str:
    def name(at: int) -> str:
        return shown(sections[at].get("number")) or f'"{shown(sections[at].get("title"), 60)}"'

    parts = [
        f"{name(at)} waits for {listed([name(before) for before in sorted(befores)], 8)}"
        if befores
        else f"{name(at)} is free"
        for at, befores in enumerate(edges)
    ]
    return f"Sections: {'; '.join(parts)}."
