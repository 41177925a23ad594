"""The page: what the template is filled with."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from baton_cli.views.board.cards import COLUMNS, Card, Tag, cards_of
from baton_cli.views.board.graph import HEIGHT, WIDTH, Graph, graph_of
from baton_cli.views.queue_head import landing
from baton_cli.views.queue_now import ways
from baton_cli.views.words import count, finished, plain, prose, short, shown

HERE = Path(__file__).parent
HUES = 12
SHOWN = 12  # cards of one change in a column before the rest is folded
ATTENTION = 3  # the column of what a person has to settle
NEVER_FOLDED = (2, ATTENTION)  # columns of which all cards are shown: what is in progress, and what needs a person
OPEN_GRAPHS = 3  # changes, up to which their pictures are open at first
BAR = 1000  # units that a bar is wide
PARTS = (("done", "done"), ("run", "in progress"), ("stop", "need attention"), ("ready", "ready"), ("wait", "waiting"))


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a progress bar, with how many tickets it stands for."""

    tone: str
    words: str
    x: int
    width: int


@dataclass(frozen=True, slots=True)
class Summary:
    """One change above the board."""

    tag: Tag
    total: int
    done: int
    parts: tuple[Part, ...]
    place: str
    state: str
    graph: Graph | None
    archived: str
    land: str  # the command that comes next for a finished one


@dataclass(frozen=True, slots=True)
class Stop:
    """Something that only a person can settle."""

    tag: Tag
    reason: str
    detail: str
    tickets: tuple[tuple[str, str], ...]  # element, name
    more: str
    ways: tuple[tuple[str, tuple[str, ...]], ...]  # what to do, and its commands


@dataclass(frozen=True, slots=True)
class Group:
    """The cards of one change in one column."""

    tag: Tag
    shown: Sequence[Card]
    folded: Sequence[Card]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the board."""

    id: str
    name: str
    number: int
    groups: Sequence[Group]


def board_page(value: Mapping[str, Any]) -> str:
    """`baton.overview/1` as HTML."""
    changes = list(value["changes"])
    tags = _tags(changes)
    cards: list[Card] = []
    for change, tag in zip(changes, tags, strict=True):
        cards += cards_of(change, tag, len(cards))
    named = {(card.change.at, card.key): card.id for card in cards}
    pairs = list(zip(changes, tags, strict=True))
    whole = [(change, tag) for change, tag in pairs if "error" not in change]
    style = _style(len(tags))
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    stops = [stop for change, tag in pairs for stop in _stops(change, tag, named)]
    stuck = sum(1 for card in cards if card.column == ATTENTION and not changes[card.change.at].get("archived"))
    page: str = _template().render(
        project=shown(value["project"]),
        root=shown(value["root"]),
        total=len(cards),
        done=sum(1 for card in cards if card.column == len(COLUMNS) - 1),
        many=count(len(changes), "change"),
        stops=stops,
        needs=stuck + sum(1 for stop in stops if not stop.tickets),
        summaries=[_summary(change, tag) for change, tag in whole],
        open_graphs=len(whole) <= OPEN_GRAPHS,
        tags=[tag for _, tag in whole],
        columns=[_column(at, cards) for at in range(len(COLUMNS))],
        box_width=WIDTH,
        box_height=HEIGHT,
        style=style,
        style_digest=digest,
    )
    return page


@cache
def _template() -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    return environment.get_template("board.html")


def _tags(changes: Sequence[Mapping[str, Any]]) -> list[Tag]:
    """A colour for each name: its own wherever that is free, so that a new change seldom repaints the others."""
    taken: set[int] = set()
    tags = []
    for at, change in enumerate(changes):
        name = str(change["change"])
        hue = int.from_bytes(hashlib.sha256(name.encode("utf-8", "replace")).digest()[:4], "big") % HUES
        while hue in taken:
            hue = (hue + 1) % HUES
        taken.add(hue)
        if len(taken) == HUES:
            taken.clear()
        tags.append(Tag(at, shown(name, 120), hue))
    return tags


def _style(changes: int) -> str:
    """The style sheet, with a rule for each change by which choosing it hides the others."""
    sheet = (HERE / "board.css").read_text(encoding="utf-8")
    rules = [f"body:has(#f{at}:checked) .by:not(.c{at}){{display:none}}\n" for at in range(changes)]
    return sheet + "".join(rules if changes > 1 else [])


def _summary(change: Mapping[str, Any], tag: Tag) -> Summary:
    progress = change["progress"]
    done, total = finished(progress), int(progress["total"])
    numbers = (done, *(int(progress[name]) for name in ("in_flight", "blocked", "ready", "waiting")))
    parts, x = [], 0
    for (tone, word), number in zip(PARTS, numbers, strict=True):
        width = BAR * number // total if total else 0
        if number:
            words = f"{number} {word}" if number != 1 else f"1 {word.replace('need ', 'needs ')}"
            parts.append(Part(tone, words, x, width))
        x += width
    branch = shown(change.get("integration_branch"))
    head = shown(change.get("integration_head"))[:7]
    target = shown(change.get("target_branch"))
    place = f"{branch} {head}" + (f", for {target}" if target else "") if branch else _elsewhere(change, done)
    state = "paused" if change.get("paused") is not None else str(change["state"])
    land = landing(change) if change["state"] == "complete" and total and not change.get("archived") else ""
    return Summary(
        tag, total, done, tuple(parts), place, state, graph_of(change["sections"]), shown(change.get("archived")), land
    )


def _elsewhere(change: Mapping[str, Any], done: int) -> str:
    """What is said of a change that has no branch here: in a clone, what is finished was finished elsewhere."""
    if change["state"] == "complete":
        return ""
    return "not started here" if done else "not started"


def _stops(change: Mapping[str, Any], tag: Tag, named: Mapping[tuple[int, str], str]) -> Iterator[Stop]:
    """Why a person is needed, each with what to do."""
    if "error" in change:
        error = change["error"]
        hint = ((prose(error.get("hint")), ()),) if error.get("hint") else ()
        yield Stop(tag, "its plan cannot be read", prose(error.get("message")), (), "", hint)
        return
    if change.get("archived"):  # what was left open in it is history
        return
    if change.get("paused") is not None:
        command = (f"baton resume {shown(change['change'])}",)
        yield Stop(tag, "paused", prose(change["paused"]), (), "", (("to go on:", command),))
    for action in change.get("attention", ()):
        keys = [str(key) for key in action.get("tickets", ())]
        more = keys.pop() if keys and keys[-1].startswith("and ") else ""
        links = tuple((named.get((tag.at, short(key)), ""), short(key)) for key in keys)
        steps = tuple((prose(way.get("say")), tuple(map(prose, way["run"]))) for way in ways(action))
        yield Stop(tag, plain(action["reason"]), prose(action.get("detail")), links, shown(more), steps)


def _column(at: int, cards: Sequence[Card]) -> Column:
    mine = [card for card in cards if card.column == at]
    groups: dict[int, list[Card]] = {}
    for card in mine:
        groups.setdefault(card.change.at, []).append(card)
    return Column(
        id=f"column{at}",
        name=COLUMNS[at],
        number=len(mine),
        groups=[_group(at, members) for members in groups.values()],
    )


def _group(column: int, cards: Sequence[Card]) -> Group:
    most = len(cards) if column in NEVER_FOLDED or len(cards) <= SHOWN + 2 else SHOWN
    return Group(cards[0].change, cards[:most], cards[most:])
