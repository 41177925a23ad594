"""`explain`: one ticket, why it stands where it stands, and all that is behind it. A value in, text out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from baton_cli.views.grid import DONE
from baton_cli.views.page import Line, Page, page, paint
from baton_cli.views.queue_now import standing, ways
from baton_cli.views.words import count, happened, joined, listed, moment, plain, prose, short, shown

NAME = 11  # cells of a fact's name
LOGS = 8
MOST = 10  # dependencies in a line of their own, and tickets named in one
STYLES = {"in_flight": "yellow", "blocked": "red", "ready": "bold", "waiting": "dim", **dict.fromkeys(DONE, "green")}
SIGNS = {"in_flight": "running", "blocked": "person", "ready": "ready", "waiting": "waiting"}


def explain_view(
    value: Mapping[str, Any], *, colour: bool, width: int | None = None, unicode: bool | None = None
) -> str:
    """`baton.explain/1` for a person; width and unicode are the terminal's own."""
    paper = page(width, unicode)
    status = str(value["status"])
    first: Line = [
        (f"{paper.glyph(_sign(status, (value.get('assignment') or {}).get('state')))} ", STYLES[status]),
        (f"{short(value['ticket'])}  {shown(value['title'])}", "bold"),
    ]
    lines: list[Line] = [first]
    lines += [[("  " + part, STYLES[status])] for part in paper.wrap(prose(value["because"]), paper.width - 2, 6)]
    lines += _steps(value)
    lines += [[], *_facts(value, paper)]
    lines += _waits(value, paper)
    lines += _history(value, paper)
    return paint(lines, colour, paper.width)


def _sign(status: str, state: str | None) -> str:
    """The sign that `status` shows for it: work that no agent has in hands is not running."""
    return "queued" if status == "in_flight" and state not in (None, "claimed") else SIGNS.get(status, "done")


def _steps(value: Mapping[str, Any]) -> Iterable[Line]:
    for way in ways(value):
        run = list(way.get("run", ()))
        said = prose(way.get("say"))
        yield [("  -> ", "red"), (said, ""), *[(f" {prose(command)}", "bold") for command in run]]


def _check(check: Mapping[str, Any]) -> str:
    source = f" ({plain(check['source'])})" if check.get("source") else ""
    return f"{prose(check['command'])}{source}"


def _facts(value: Mapping[str, Any], paper: Page) -> Iterable[Line]:
    section, held, proof = value["section"], value.get("assignment"), value.get("receipt")
    where = " ".join(part for part in (shown(section["number"]), shown(section["title"])) if part)
    checks = proof["checks"] if proof else value["checks"]  # those of today may be others than it was proved with
    facts = [
        ("where", joined((f"section {where}" if where else "", f"line {value['line']} of tasks.md"))),
        ("checks", "; ".join(map(_check, checks)) or "none"),
        ("flags", ", ".join(map(plain, value["flags"]))),
        ("needed by", listed([short(key) for key in value["needed_by"]], MOST)),
    ]
    if held:
        lease = f"until {moment(held['lease_expires_at'])}" if held["lease_expires_at"] else ""
        facts += [
            ("assignment", joined((shown(held["id"]), plain(held["state"])))),
            ("attempt", joined((str(held["attempt"]), shown(held["agent"]), f"session {shown(held['session'])}"))),
            ("since", joined((moment(held["since"]), f"last sign {moment(held['last_evidence_at'])}"))),
            ("lease", lease),
            ("noted", prose(held.get("note")) if held.get("ended") not in (None, "completed") else ""),
            ("branch", shown(held["branch"])),
            ("worktree", shown(held["worktree"]) if held["state"] != "integrated" else ""),
        ]
    if proof:
        passed = count(len(proof["checks"]), "check")
        facts += [
            ("receipt", shown(proof["digest"])[:12] + f", {passed} passed at {shown(proof['head'])[:12]}"),
            ("sealed", moment(proof["sealed_at"])),
        ]
    facts += [("log" if not number else "", shown(path)) for number, path in enumerate(value["logs"][:LOGS])]
    facts += [("", f"and {len(value['logs']) - LOGS} more beside it")] if len(value["logs"]) > LOGS else []
    room = max(20, paper.width - NAME - 4)
    for name, text in facts:
        for at, part in enumerate(paper.wrap(text, room, 4) if text else ()):
            yield [(f"  {'' if at else name:<{NAME}}  ", "dim"), (part, "")]


def _waits(value: Mapping[str, Any], paper: Page) -> Iterable[Line]:
    others = sorted(value["waits_for"], key=lambda one: one["status"] != "blocked")
    if not others:
        return
    yield []
    yield [("  waits for", "dim")]
    width = min(12, max(len(short(one["key"])) for one in others[:MOST]))
    for one in others[:MOST]:
        status = str(one["status"])
        said = plain(one["reason"] if status == "blocked" else status)
        if status == "in_flight":
            said = "running" if one["state"] == "claimed" else standing(one)
        title = paper.pad(shown(one["title"]), min(50, paper.width - width - 30))
        sign = paper.glyph(_sign(status, one["state"]))
        yield [
            (f"  {sign} ", STYLES[status]),
            (f"{paper.pad(short(one['key']), width)}  {title}  ", ""),
            (said, STYLES[status]),
        ]
    if len(others) > MOST:
        yield [(f"    and {len(others) - MOST} more", "dim")]


def _history(value: Mapping[str, Any], paper: Page) -> Iterable[Line]:
    if not value["events"]:
        return
    yield []
    yield [("  history", "dim")]
    width = max(len(happened(event)) for event in value["events"])
    for event in value["events"]:
        number = f"#{event['attempt']}" if event.get("attempt") is not None else ""
        cause = plain(event.get("cause")) if event.get("cause") else ""
        why = ": ".join(part for part in (cause, prose(event.get("detail"))) if part)
        line: Line = [
            (f"  {moment(event['at'])}  ", "dim"),
            (f"{number:<3} {happened(event):<{width}}  ", ""),
            (why, "dim"),
        ]
        yield paper.clip(line, max(paper.width, 60))
