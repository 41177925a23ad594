"""The answer of `actions`: values decided here, executed elsewhere, and kept under the size that harnesses keep whole."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from baton_cli.core import wording
from baton_cli.core.facts import Change
from baton_cli.core.frontier import Progress, Status, TicketView
from baton_cli.core.lifecycle import Assignment, State
from baton_cli.core.prompt import TITLE_LIMIT, shorten

SCHEMA = "baton.actions/1"
ANSWER_LIMIT = 8_000
LIST_LIMIT = 10
NOTICE_LIMIT = 6
HAND_OUTS = ("dispatch", "recover", "resolve_merge")

# What a person does about each reason: one way after another, each with the command that it ends in, if any.
REMEDIES: dict[str, tuple[tuple[str, str], ...]] = {
    "manual": (
        ("do it by hand, then:", "{baton} done {ticket} --why '...'"),
        ("or:", "{baton} skip {ticket} --why '...'"),
    ),
    "no_verification": (
        ("give it a sub-bullet `- verify: COMMAND` in tasks.md, or write [verify] commands in {root}/baton.toml", ""),
    ),
    "ambiguous_identity": (("give the tickets ids of their own (1.1, 1.2 ...) or different texts in tasks.md", ""),),
    "exhausted": (
        ("when what stopped it is mended:", "{baton} retry {ticket}"),
        (
            "or commit a repair in its worktree, which explain names, then:",
            "{baton} seal {ticket} --operator --why '...'",
        ),
    ),
    "setup_failed": (("repair the set-up ([worktree] setup in baton.toml), then:", "{baton} retry {ticket}"),),
}
# A manual ticket that archives or publishes the change: by hand now it would be too early.
AFTER_LANDING = (
    "it comes after `baton land`, so that all others can be finished before:",
    "{baton} skip {ticket} --why '...'",
)
REMEDY_TICKETS = 3  # so many commands of one kind are spelt out


def iso(seconds: float) -> str:
    """Seconds since the epoch as ISO 8601 in UTC, to the second."""
    from datetime import datetime, timezone

    return datetime.fromtimestamp(int(seconds), timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def epoch(moment: str) -> float:
    """What `iso` wrote, as seconds since the epoch. Error: ValueError."""
    from datetime import datetime

    return datetime.fromisoformat(moment.replace("Z", "+00:00")).timestamp()


def text_of(answer: Mapping[str, Any]) -> str:
    """The answer as it is printed: one line of JSON."""
    return json.dumps(answer, ensure_ascii=False, separators=(",", ":"))


def at_most(names: Iterable[str], limit: int = LIST_LIMIT) -> list[str]:
    """A list of names that stays readable: the first few, then how many more."""
    known = list(names)
    return known if len(known) <= limit else [*known[:limit], f"and {len(known) - limit} more"]


def hand_out(
    kind: str, assignment: Assignment, *, title: str, cwd: str, packet: str, prompt: str, extra: Mapping[str, Any]
) -> dict[str, Any]:
    """A dispatch, recover or resolve_merge action."""
    return {
        "kind": kind,
        "assignment_id": assignment.id,
        "claim_token": assignment.attempt.claim_token,
        "ticket": assignment.ticket,
        "title": shorten(title, TITLE_LIMIT),
        "attempt": assignment.attempt.number,
        "cwd": cwd,
        "branch": assignment.branch,
        "packet": packet,
        "prompt": prompt,
        "lease_expires_at": iso(assignment.attempt.lease_expires_at),
        **extra,
    }


def wait(session: str, in_flight: Sequence[Assignment], reason: str) -> dict[str, Any]:
    """Nothing to hand out, something running. Tokens are shown for the caller's own claims only."""
    entries: list[Any] = []
    for assignment in in_flight[:LIST_LIMIT]:
        attempt = assignment.attempt
        entry = {
            "assignment_id": assignment.id,
            "ticket": assignment.ticket,
            "state": assignment.state.value,
            "agent": attempt.agent,
            "session": attempt.session,
            "since": iso(attempt.claimed_at),
            "last_evidence_at": iso(attempt.evidence_at),
        }
        if attempt.session == session and assignment.state is State.CLAIMED:
            entry["claim_token"] = attempt.claim_token
        entries.append(entry)
    if len(in_flight) > LIST_LIMIT:
        entries.append(f"and {len(in_flight) - LIST_LIMIT} more")
    return {"kind": "wait", "reason": reason, "in_flight": entries}


def blocked(reason: str, tickets: Sequence[str], detail: str, remedy: str) -> dict[str, Any]:
    """Something only a person can settle."""
    return {"kind": "blocked", "reason": reason, "tickets": at_most(tickets), "detail": detail, "remedy": remedy}


def blocked_tickets(
    views: Iterable[TicketView], command: str, root: str, *, steps: bool = False
) -> list[dict[str, Any]]:
    """One `blocked` action for each reason, in plan order. `command` is how Baton is called, `root` the project.

    With `steps` each also has its remedy as a list, for those who lay it out.
    """
    groups: dict[str, list[TicketView]] = {}
    for view in views:
        if view.status is Status.BLOCKED and view.reason:
            groups.setdefault(view.reason, []).append(view)
    actions = []
    for reason, members in groups.items():
        first = members[0]
        detail = f"{first.key}: {shorten(first.planned.ticket.title, TITLE_LIMIT)}"
        if first.assignment is not None and first.assignment.detail:
            detail += f" ({shorten(first.assignment.detail, 200)})"
        keys = [view.key for view in members]
        late = [view.key for view in members if is_late(view)]
        ways = remedy(reason, keys, command, root, late)
        actions.append(blocked(reason, keys, detail, remedy_text(ways)))
        if steps:
            actions[-1]["steps"] = ways
    return actions


def is_late(view: TicketView) -> bool:
    """Whether a manual ticket only archives, pushes or publishes: what comes after the landing."""
    return view.reason == "manual" and wording.outward(view.planned.ticket.title)


def remedy(reason: str, keys: Sequence[str], command: str, root: str, late: Sequence[str] = ()) -> list[dict[str, Any]]:
    """What to do about it: ways of `{say, run}`, `run` holding a command for each of the first few tickets. `late` are
    those that come after the landing."""
    now = [key for key in keys if key not in late]
    ways = _ways(REMEDIES[reason], now, command, root) if now or not keys else []
    return ways + _ways((AFTER_LANDING,), late, command, root) if late else ways


def _ways(templates: Sequence[tuple[str, str]], keys: Sequence[str], command: str, root: str) -> list[dict[str, Any]]:
    ways: list[dict[str, Any]] = []
    for say, template in templates:
        said = say.format(root=root)
        run: list[str] = []
        if template:  # the first way for each of the first tickets, another way as an example
            run = [
                template.format(baton=command, ticket=shlex.quote(key)) for key in keys[: 1 if ways else REMEDY_TICKETS]
            ]
            more = len(keys) - len(run)
            said = f"{said.removesuffix(':')} (the same for {more} more):" if more and not ways else said
        ways.append({"say": said, "run": run})
    return ways


def remedy_text(ways: Iterable[Mapping[str, Any]]) -> str:
    """A remedy in one sentence: the first way, then the others in brackets."""
    texts = [" ".join(part for part in (way["say"], "; ".join(way["run"])) if part) for way in ways]
    return " ".join([*texts[:1], *(f"({text})" for text in texts[1:])])


def complete(progress: Progress, change: Change, landed: str | None, baton: str) -> dict[str, Any]:
    """Every ticket of the latest revision is finished. `landed` is the branch that has it all already; `baton` is how a
    shell calls Baton."""
    name = shlex.quote(change.change)
    if landed is None:
        land = f"{baton} land {name}{'' if change.target_branch else ' --into BRANCH'}"
        then = f"{land}, commit the ticks in tasks.md, then: openspec archive {name}"
    else:
        then = f"{landed} has it all; with the ticks in tasks.md committed: openspec archive {name}"
    return {
        "kind": "complete",
        "total": progress.total,
        "integrated": progress.integrated,
        "external": progress.external,
        "attested": progress.attested,
        "skipped": progress.skipped,
        "integration_branch": change.integration_branch,
        "integration_head": change.integration_head,
        "then": then,
    }


def answer(
    *, project: str, change: str, session: str, revision: int, progress: Progress, actions: Sequence[Mapping[str, Any]],
    notices: Sequence[str] = (),
) -> dict[str, Any]:  # fmt: skip
    """The whole answer. `fit` decides beforehand how many hand-outs it can hold."""
    kinds = {str(action["kind"]) for action in actions}
    state = "complete" if "complete" in kinds else "blocked" if kinds == {"blocked"} else "active"
    value: dict[str, Any] = {
        "schema": SCHEMA,
        "project": project,
        "change": change,
        "session": session,
        "revision": revision,
        "state": state,
        "progress": progress._asdict(),
        "actions": list(actions),
        "next": next_step(kinds, session, any(_is_own(action, session) for action in actions)),
    }
    if notices:
        shown = at_most(notices, NOTICE_LIMIT)
        more = [f"{shown.pop()}: see `baton log`"] if len(notices) > NOTICE_LIMIT else []
        value["notices"] = [*(shorten(notice, 300) for notice in shown), *more]
    return value


def _is_own(action: Mapping[str, Any], session: str) -> bool:
    """Whether a `wait` names work of this session."""
    return any(entry["session"] == session for entry in action.get("in_flight", ()) if isinstance(entry, Mapping))


def next_step(kinds: set[str], session: str, mine: bool = True) -> str:
    """One sentence for the caller; `mine`: something of its own is running, so that a notice will come."""
    again = f'call actions again with session "{session}"'
    if kinds & set(HAND_OUTS):
        return f"Give each action's prompt to a subagent of its own, bind its id, reconcile when it ends, then {again}."
    if "complete" in kinds:
        return "Tell the user that the change is complete and what `then` says."
    if "blocked" in kinds:
        return f"Tell the user each blocked reason and its remedy; when it is settled, {again}."
    if mine:
        return f"End your turn; at the next completion notice reconcile it, then {again}."
    return f"Other sessions hold these: tell the user; when one of them is settled or its lease has ended, {again}."


def settled(verb: str, assignment: Assignment, following: str, **extra: Any) -> dict[str, Any]:
    """The answer of bind, seal, reconcile and their like: where the assignment stands, and what is particular to the verb."""
    return {
        "schema": f"baton.{verb}/1",
        "assignment_id": assignment.id,
        "ticket": assignment.ticket,
        "state": assignment.state.value,
        "reason": assignment.reason,
        "next": following,
        **extra,
    }


def fit(hand_outs: Sequence[Mapping[str, Any]], frame: Mapping[str, Any], limit: int = ANSWER_LIMIT) -> int:
    """How many of the hand-outs, in order, the answer `frame` (made without them) can hold. At least one."""
    frame = {**frame, "next": next_step(set(HAND_OUTS), str(frame["session"]))}
    size = len(text_of(frame)) - 1  # one comma less than actions
    held = 0
    for action in hand_outs:
        size += len(text_of(action)) + 1
        if size >= limit and held:
            break
        held += 1
    return held
