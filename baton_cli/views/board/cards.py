"""A card for each ticket: in which column it hangs, and what is written on it. Every text is made safe here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from baton_cli.output import escape
from baton_cli.views.grid import DONE
from baton_cli.views.queue_now import standing
from baton_cli.views.queue_plan import Waits
from baton_cli.views.words import UNPROVED, joined, plain, prose, short, shown

Ticket = Mapping[str, Any]

COLUMNS = ("Waiting", "Ready", "In progress", "Needs attention", "Done")
PLACE = {"waiting": 0, "ready": 1, "in_flight": 2, "blocked": 3, **dict.fromkeys(DONE, 4)}
TITLE = 240  # characters of a title on the card; a longer one stands in full below it
FINISHED = {"integrated": "integrated", **UNPROVED}


@dataclass(frozen=True, slots=True)
class Card:
    """One ticket as it hangs on the board."""

    id: str  # of the element
    key: str
    title: str
    whole: str  # the title in full, where the card shows a part of it
    change: Tag
    column: int
    state: str  # beyond what the column says
    tone: str  # a word for the style sheet
    lines: str  # who, since when, what for
    receipt: str  # the first digits
    facts: str  # what the receipt says


@dataclass(frozen=True, slots=True)
class Tag:
    """A change's coloured name."""

    at: int
    name: str
    hue: int


def moment(value: Any) -> str:
    """A time of the value as it is shown: UTC, to the minute."""
    return shown(value)[:16].replace("T", " ") if value else ""


def cards_of(change: Mapping[str, Any], tag: Tag, first: int) -> Iterator[Card]:
    """The cards of one change in plan order; `first` numbers their elements."""
    waits = Waits.read(change.get("sections", ()))
    number = first
    for section in change.get("sections", ()):
        for ticket in section["tickets"]:
            yield _card(ticket, tag, f"t{number}", waits)
            number += 1


def _card(ticket: Ticket, tag: Tag, name: str, waits: Waits) -> Card:
    status = str(ticket["status"])
    held: Mapping[str, Any] = ticket.get("assignment") or {}
    whole = escape(str(ticket["title"]))
    cut = len(whole) > TITLE
    return Card(
        id=name,
        key=short(ticket["key"]),
        title=whole[:TITLE].rstrip() + "…" if cut else whole,
        whole=whole if cut else "",
        change=tag,
        column=PLACE[status],
        state=_state(ticket, held),
        tone=_tone(status, held),
        lines="\n".join(line for line in _lines(ticket, held, waits) if line),
        receipt=_digest(ticket, held)[:12],
        facts="\n".join(f"{name}: {text}" for name, text in _facts(ticket, held)),
    )


def _tone(status: str, held: Mapping[str, Any]) -> str:
    if status == "in_flight":
        return "run" if held.get("state") == "claimed" else "queue"
    return {"blocked": "stop", "ready": "ready", "waiting": "wait", "integrated": "done"}.get(status, "other")


def _state(ticket: Ticket, held: Mapping[str, Any]) -> str:
    status = str(ticket["status"])
    if status == "in_flight":
        return "running" if held.get("state") == "claimed" else standing(held)
    if status == "blocked":
        reason = plain(ticket.get("reason"))
        return f"exhausted after attempt {held['attempt']}" if reason == "exhausted" and held else reason
    return FINISHED.get(status, "")


def _lines(ticket: Ticket, held: Mapping[str, Any], waits: Waits) -> Iterator[str]:
    status, done = str(ticket["status"]), ticket.get("evidence") or {}
    if status == "waiting":
        yield f"waits for {waits.phrase(ticket)}"
    if held:
        agent = shown(held.get("agent"), 60)
        yield joined((f"attempt {held['attempt']}", agent or f"session {shown(held.get('session'), 60)}"))
    if done:
        who = shown(done.get("who"), 60) if status != "integrated" else ""
        yield joined((f"since {moment(done.get('at'))}", f"by {who}" if who else ""))
        yield prose(done.get("why"))
    elif held.get("state") == "claimed":
        sign = held.get("last_evidence_at")
        yield f"since {moment(held.get('since'))}"
        yield f"last sign {moment(sign)}" if sign and sign != held.get("since") else "no sign yet"
    elif held:
        yield f"since {moment(held.get('state_since'))}"
        yield prose(held.get("detail"))


def _digest(ticket: Ticket, held: Mapping[str, Any]) -> str:
    """The receipt's name: of the work that is recorded here, or of what its merge commit carries."""
    return shown(held.get("receipt") or (ticket.get("proof") or {}).get("digest"))


def _facts(ticket: Ticket, held: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The receipt behind a card, as `baton receipt show` has it."""
    digest, proof = _digest(ticket, held), ticket.get("proof")
    if not digest:
        return []
    facts = [("digest", digest), *([("assignment", shown(held["id"]))] if held else [])]
    if not proof:
        return [*facts, ("note", "the store no longer has it as it was recorded")]
    merged = (ticket.get("evidence") or {}).get("commit")
    facts += [("sealed", moment(proof["sealed_at"])), ("commit", shown(proof["head"]))]
    facts += [("merged as", shown(merged) + ("" if held else ", whose message holds this receipt"))] if merged else []
    for check in proof["checks"]:
        took = check.get("duration")
        seconds = f", {took:.1f} s" if isinstance(took, (int, float)) else ""
        facts.append(("check", f"{prose(check.get('command'))} (exit {check.get('exit_code')}{seconds})"))
    notes = (
        (
            proof["touches_checks"],
            f"it changes what the checks run: {', '.join(map(shown, proof['touches_checks'][:5]))}",
        ),
        (proof["empty_diff"], "no file was changed"),
        (not proof["clean_environment"], "the worktree held more than the commit and its set-up"),
        (proof["detached"], "made on another machine"),
        (proof["operator"], "sealed by an operator"),
    )
    return facts + [("note", said) for applies, said in notes if applies]
