"""A plan for a person: sections and tickets in file order; what is the same for all is said once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from baton_cli.views.words import count, listed, plain, prose, short, shown

Value = Mapping[str, Any]
LISTED = 8  # ids named before "and 4 more"


def plan_text(value: Value) -> str:
    """`baton.plan/1`, or its broken form with `error`."""
    total, done = value.get("total"), value.get("done")
    head = shown(value["change"])
    if total is not None:
        head += f"  {done} of {count(total, 'box').replace('boxs', 'boxes')} done"
    if "error" in value:
        error = value["error"]
        told = error if isinstance(error, Mapping) else {"message": error}
        hint = [f"hint: {prose(told['hint'])}"] if told.get("hint") else []
        return "\n".join([head, f"error: {prose(told.get('message'))}", *hint]) + "\n"
    sections = value["sections"]
    usual = _usual([ticket for section in sections for ticket in section["tickets"]])
    lines = [head, *([f"checks: {_checks(usual)}"] if usual else [])]
    edges = _Edges(sections)
    for at, section in enumerate(sections):
        lines += ["", *_section(at, section, edges, usual)]
    before = value.get("baseline")
    if before:
        passed, ran = len(before["passed"]), len(before["passed"]) + len(before["red"])
        verb = "passes" if ran == 1 else "pass"
        lines += ["", f"baseline: {passed} of {count(ran, 'check')} {verb} at {shown(before['commit'])[:12]}"]
    if value.get("warnings"):
        lines += ["", count(len(value["warnings"]), "warning")]
    for warning in value.get("warnings", ()):
        where = f"line {warning['line']}: " if warning.get("line") else ""
        lines.append(f"  {where}{prose(warning['message'])}")
    return "\n".join(lines) + "\n"


Checks = tuple[str | None, tuple[str, ...]]  # where they come from, and the commands


def _of(ticket: Value) -> Checks:
    return ticket.get("source"), tuple(ticket.get("verify", ()))


def _usual(tickets: Sequence[Value]) -> Checks | None:
    """The checks that most tickets have, and did not bring with them."""
    counts = Counter(_of(ticket) for ticket in tickets if ticket.get("verify") and ticket.get("source") != "ticket")
    return counts.most_common(1)[0][0] if counts else None


def _checks(checks: Checks) -> str:
    source, commands = checks
    said = ", ".join(f"`{prose(command)}`" for command in commands)
    return f"{said} ({plain(source)})" if source else said


class _Edges:
    """What tickets wait for, in few words: whole sections by their name. Equal lists are looked at once."""

    def __init__(self, sections: Sequence[Value]) -> None:
        self._keys = [[ticket["key"] for ticket in section["tickets"]] for section in sections]
        self._names = [_name(section) for section in sections]
        self._home = {key: at for at, keys in enumerate(self._keys) for key in keys}
        self._known: dict[tuple[int, str], str] = {}

    def phrase(self, ticket: Value, section: int) -> str:
        """`after section 1`, `after 1.2 1.3`, or nothing."""
        after = ticket["after"]
        if not after:
            return ""
        inside = self._home.get(after[-1]) == section
        known = (id(after), ticket["key"] if inside else "")
        if known not in self._known:
            self._known[known] = f"after {self._words(after, section, ticket['key'])}"
        return self._known[known]

    def _words(self, after: Sequence[str], own: int, key: str) -> str:
        asked, parts, single = set(after), [], []
        for at in dict.fromkeys(self._home.get(one, -1) for one in after):
            here = [one for one in after if self._home.get(one, -1) == at]
            others = [one for one in self._keys[at] if at != own or one != key] if at >= 0 else []
            if len(others) > 1 and asked.issuperset(others):
                parts.append("the others of its section" if at == own else self._names[at])
            else:
                single += here
        named = [listed([short(one) for one in single], LISTED)] if single else []
        return " and ".join([*parts, *named])


def _name(section: Value) -> str:
    number = shown(section.get("number"))
    return f"section {number}" if number else f'section "{shown(section.get("title"), 40)}"'


def _section(at: int, section: Value, edges: _Edges, usual: Checks | None) -> list[str]:
    tickets = section["tickets"]
    phrases = [edges.phrase(ticket, at) for ticket in tickets]
    common = Counter(phrases).most_common(1)[0][0] if tickets else ""
    title = "  ".join(part for part in (shown(section.get("number")), shown(section.get("title"))) if part)
    lines = [title + (f"  ({common})" if common else "")] if title or common else []
    width = max((len(_label(ticket)) for ticket in tickets), default=0)
    for ticket, phrase in zip(tickets, phrases, strict=True):
        box = "x" if ticket.get("done") else "-" if "skipped" in ticket.get("flags", ()) else " "
        lines.append(f"  [{box}] {_label(ticket):<{width}}  {shown(ticket['title'])}")
        notes = [plain(flag) for flag in ticket.get("flags", ())]
        if phrase != common:
            notes.insert(0, phrase or "after nothing")
        boxes = ticket.get("checklist", ())
        if boxes:
            notes.append(f"checklist {sum(1 for box in boxes if box['done'])} of {len(boxes)}")
        if ticket.get("verify") and _of(ticket) != usual:
            notes.append(f"checks: {_checks(_of(ticket))}")
        lines += [f"{' ' * (width + 8)}{note}" for note in _folded(notes)]
    return lines


def _folded(notes: Sequence[str]) -> list[str]:
    """Short notes share a line; checks have one of their own."""
    short_ones = [note for note in notes if not note.startswith("checks: ")]
    rest = [note for note in notes if note.startswith("checks: ")]
    return [*([", ".join(short_ones)] if short_ones else []), *rest]


def _label(ticket: Value) -> str:
    return short(ticket["key"])
