"""What needs a person, with what to do about it; and what runs, with who works on it and since when."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from baton_cli.views.grid import DONE, Grid
from baton_cli.views.page import Line, cells
from baton_cli.views.words import age, count, joined, listed, plain, prose, seconds, short, shown, span, standing_why

TICKETS = 4  # shown of one reason
RUNNING = 10  # shown in flight
WHO_MOST = 24
NOT_BEGUN = ("record_lost", "change_renamed", "integration_elsewhere")  # then to start it is no advice
MOMENT = 1  # seconds for which a lock is held on the way to something else
GONE = {"agent": "its agent has ended, to be checked", "drive": "its drive was killed: another drive takes it up"}
BUSY = {"prepare": "being set up", "seal": "being sealed", "integrate": "being integrated"}

Ticket = Mapping[str, Any]


def _tickets(change: Mapping[str, Any]) -> Iterator[Ticket]:
    for section in change.get("sections", ()):
        yield from section["tickets"]


def person(change: Mapping[str, Any], grid: Grid) -> list[Line]:
    """Every reason for which only a person can go on: the tickets it stops, and the remedy."""
    blocked: dict[str, list[Ticket]] = {}
    for ticket in _tickets(change):
        if ticket["status"] == "blocked":
            blocked.setdefault(str(ticket.get("reason")), []).append(ticket)
    lines: list[Line] = []
    if change.get("paused") is not None:
        again = [{"run": [f"{grid.page.command} resume {shlex.quote(str(change['change']))}"]}]
        lines += _alone(grid, "paused", prose(change["paused"]), again)
    for action in change.get("attention", ()):
        reason = str(action.get("reason"))
        stopped = blocked.pop(reason, None)
        if stopped:
            lines += _group(grid, reason, stopped, ways(action))
        else:
            lines += _alone(grid, plain(reason), prose(action.get("detail")), ways(action))
    for reason, stopped in blocked.items():
        lines += _group(grid, reason, stopped, ())
    return lines


def ways(action: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The remedy of an action as it is laid out: its steps, or the sentence alone."""
    said = action.get("remedy")
    return action.get("steps") or ([{"say": said, "run": []}] if said else [])


def _alone(grid: Grid, reason: str, detail: str, remedy: Sequence[Mapping[str, Any]]) -> list[Line]:
    """Something that stops the change and is no ticket's."""
    first: Line = [("  ! ", "bold red"), (reason, "red")]
    return [first, *grid.below(detail, ""), *_remedy(grid, remedy)]


def _group(grid: Grid, reason: str, tickets: Sequence[Ticket], remedy: Sequence[Mapping[str, Any]]) -> list[Line]:
    lines: list[Line] = []
    for ticket in tickets[:TICKETS]:
        held = ticket.get("assignment") or {}
        said = plain(reason)
        if reason == "exhausted" and held.get("attempt"):
            said = f"exhausted after attempt {held['attempt']}"
        detail = standing_why(held)
        fits = bool(detail) and cells(said) + 2 + cells(detail) <= grid.room
        right: Line = [(f"{said}: " if fits else said, "red"), (detail if fits else "", "")]
        lines.append(grid.row(("person", "bold red"), short(ticket["key"]), (shown(ticket["title"]), ""), right))
        if detail and not fits:
            lines += grid.below(detail, "")
    if len(tickets) > TICKETS:
        rest = [short(ticket["key"]) for ticket in tickets[TICKETS:]]
        lines.append(grid.more(f"and {len(rest)} more {plain(reason)}: {listed(rest, 12)}"))
    return lines + _remedy(grid, remedy)


def _remedy(grid: Grid, ways: Sequence[Mapping[str, Any]]) -> list[Line]:
    """What to do, one way below the other. Commands stand out, and are never broken over lines, so that they can be copied."""
    indent, room = " " * (grid.indent + 3), grid.page.width - grid.indent - 3
    lines: list[Line] = []
    for way in ways:
        say, run = prose(way.get("say")), [prose(command) for command in way.get("run", ())]
        beside = len(run) == 1 and cells(say) + 1 + cells(run[0]) <= room
        said: list[Line] = [[(part, "")] for part in grid.page.wrap(say, room, 6)]
        if beside:
            said = [[(f"{say} " if say else "", ""), (run[0], "bold")]]
        lines += said + ([] if beside else [[(command, "bold")] for command in run])
    arrow: Line = [(" " * grid.indent + "-> ", "red")]
    return [[*(([(indent, "")]) if at else arrow), *line] for at, line in enumerate(lines)]


@dataclass(frozen=True, slots=True)
class Facts:
    """What is to be said about a ticket in flight, in words."""

    state: str
    who: str
    attempt: str
    since: str = ""
    evidence: str = ""
    lease: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        """As they stand side by side on a wide page."""
        return self.state, self.who, self.attempt, joined((self.since, self.evidence)), self.lease


def running(change: Mapping[str, Any], grid: Grid, now: float) -> list[Line]:
    """What is in flight: agents at work first, then what waits to be merged or taken up again."""
    flying = [ticket for ticket in _tickets(change) if _flies(ticket)]
    if not flying:
        return _idle(change, grid)
    flying.sort(key=lambda ticket: ticket["assignment"]["state"] != "claimed")
    facts = [_facts(ticket, now) for ticket in flying[:RUNNING]]
    widths = [max(map(cells, column)) for column in zip(*(fact.columns for fact in facts), strict=True)]
    wide = grid.room >= sum(widths) + 2 * len(widths)
    lines: list[Line] = []
    for ticket, fact in zip(flying, facts, strict=False):
        lines += _one(ticket, fact, grid, widths if wide else None)
    if not any(ticket["assignment"]["state"] == "claimed" or ticket["assignment"].get("busy") for ticket in flying):
        lines.append(grid.more("nothing runs now: the next session or drive goes on with them"))
    if len(flying) > RUNNING:
        rest = [short(ticket["key"]) for ticket in flying[RUNNING:]]
        lines.append(grid.more(f"and {len(rest)} more in flight: {listed(rest, 12)}"))
    return lines


def _one(ticket: Ticket, fact: Facts, grid: Grid, widths: Sequence[int] | None) -> list[Line]:
    """One ticket in flight, in columns of these widths; without them, over two lines."""
    held = ticket["assignment"]
    works = held["state"] == "claimed" and not held.get("gone")
    sign, style = ("running" if works else "queued", "yellow"), "yellow" if works else ""
    name, title = short(ticket["key"]), (shown(ticket["title"]), "")
    if widths is not None:
        texts = [grid.page.pad(text, width) for text, width in zip(fact.columns, widths, strict=True)]
        lines = [grid.row(sign, name, title, [(texts[0], style), ("  " + "  ".join(texts[1:]), "")])]
    else:
        lines = [grid.row(sign, name, title, [(f"{fact.state} {fact.since}".rstrip(), style)])]
        lines += grid.below(joined((fact.who, fact.attempt, fact.evidence, fact.lease)), "dim", 2)
    if held["state"] != "claimed":
        lines += grid.below(standing_why(held), "dim", 2)
    return lines


def _flies(ticket: Ticket) -> bool:
    """Somebody may be at work on it, even if its box was ticked or its text became ambiguous meanwhile."""
    held = ticket.get("assignment")
    return held is not None and (ticket["status"] == "in_flight" or held["state"] == "claimed")


def _idle(change: Mapping[str, Any], grid: Grid) -> list[Line]:
    ready = change["progress"].get("ready", 0)
    if not ready or change.get("paused") is not None:
        return []
    if any(action.get("reason") in NOT_BEGUN for action in change.get("attention", ())):
        return []
    if not change.get("integration_branch"):
        name, quoted = shown(change["change"]), shown(shlex.quote(str(change["change"])))
        said = f'not started: tell an agent session "run baton on {name}", or: {grid.page.command} drive {quoted} --agent CMD'
    else:
        said = f"nothing runs now; {count(ready, 'ticket')} can begin with the next session or drive"
        slots = change.get("slots", {})
        if slots and slots["used"] >= slots["limit"]:
            said = (
                f"{count(ready, 'ticket')} ready, but other changes hold all {slots['limit']} places (limits.parallel)"
            )
    return [[("  " + part, "dim")] for part in grid.page.wrap(said, grid.page.width - 2, 6)]


def _facts(ticket: Ticket, now: float) -> Facts:
    held = ticket["assignment"]
    agent, session = shown(held.get("agent"), WHO_MOST + 1), shown(held.get("session"), WHO_MOST + 1)
    who = agent or (f"session {session}" if session else "")
    attempt = f"attempt {held.get('attempt', 1)}"
    busy = _busy(held, now)
    if held.get("gone") and not busy:
        return Facts(GONE[held["gone"]], who, attempt, age(held.get("since"), now))
    if held["state"] != "claimed" or busy:
        return Facts(busy or standing(held), who, attempt)
    state = "running" if ticket["status"] not in DONE else "running (ticked by hand)"
    since, lease = age(held.get("since"), now), _lease(held.get("lease_expires_at"), now)
    return Facts(state, who, attempt, since, _evidence(held, now), lease)


def _busy(held: Mapping[str, Any], now: float) -> str:
    """What Baton itself does with it just now, if that takes longer than a moment."""
    busy = held.get("busy") or {}
    since = seconds(busy.get("since"))
    return f"{BUSY[busy['with']]} {span(now - since)}" if since is not None and now - since >= MOMENT else ""


def _evidence(held: Mapping[str, Any], now: float) -> str:
    """When the last commit, changed file or bind was seen."""
    last, since = seconds(held.get("last_evidence_at")), seconds(held.get("since"))
    if last is None:
        return ""
    return f"last sign {span(now - last)} ago" if since is None or last > since else "no sign yet"


def _lease(expires: Any, now: float) -> str:
    until = seconds(expires)
    if until is None:
        return ""
    return f"lease {span(until - now)}" if until > now else f"lease ran out {span(now - until)} ago"


def standing(held: Mapping[str, Any]) -> str:
    """Where work stands that no agent has in hands."""
    reason = plain(held.get("reason") or "")
    if held["state"] == "unknown" and held.get("reason") == "left_unsealed":
        return "its agent says it is done, to be checked"
    return {
        "sealed": "sealed, to be integrated",
        "conflicted": "merge conflict, to be resolved",
        "rejected": "rejected by the gate, to be repaired",
        "unknown": f"to be taken up again{f' ({reason})' if reason else ''}",
    }.get(str(held["state"]), plain(held["state"]))
