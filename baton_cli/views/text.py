"""The answers of the other verbs for a person: plain text, nothing that acts on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from baton_cli.output import escape
from baton_cli.views.text_plan import plan_text
from baton_cli.views.words import count, finished, happened, joined, moment, plain, prose, short, shown, unproved

__all__ = ["actions_text", "init_text", "log_text", "plan_text", "receipt_text", "settled_text"]

Value = Mapping[str, Any]
HASH = 12  # characters of a commit or a digest
HAND_OUTS = ("dispatch", "recover", "resolve_merge")


def actions_text(answer: Value) -> str:
    """`baton.actions/1`: what to do next, with the tokens that it takes."""
    progress = answer["progress"]
    counts = [f"{finished(progress)} of {progress['total']} done"]
    counts += [
        f"{progress[name]} {word}"
        for name, word in (
            ("in_flight", "in flight"),
            ("ready", "ready"),
            ("waiting", "waiting"),
            ("blocked", "blocked"),
        )
        if progress.get(name)
    ]
    lines = [f"{shown(answer['change'])}  {', '.join(counts)}  (session {shown(answer['session'])})"]
    lines += [f"notice: {prose(notice)}" for notice in answer.get("notices", ())]
    makers = {"wait": _wait, "blocked": _blocked, "complete": _complete, **dict.fromkeys(HAND_OUTS, _hand_out)}
    for action in answer["actions"]:
        lines += ["", *makers[action["kind"]](action)]
    return _page([*lines, "", f"next: {prose(answer['next'])}"])


def _hand_out(action: Value) -> Iterator[str]:
    yield f"{plain(action['kind'])} {short(action['ticket'])}  {shown(action['title'])}"
    why = joined((plain(action.get("reason") or ""), _named("agent before", action.get("previous_agent"))))
    facts = [
        ("why", why if action["kind"] != "dispatch" else ""),
        ("assignment", shown(action["assignment_id"])),
        ("token", shown(action["claim_token"])),
        ("attempt", f"{action['attempt']}, lease until {moment(action.get('lease_expires_at'))}"),
        ("folder", shown(action["cwd"])),
        ("branch", shown(action["branch"])),
        ("packet", shown(action["packet"])),
        ("conflicts", ", ".join(shown(name) for name in action.get("files", ()))),
        ("with", ", ".join(short(name) for name in action.get("others", ()))),
    ]
    yield from _facts(facts)
    yield "  prompt"
    yield from (f"    {escape(line)}".rstrip() for line in str(action["prompt"]).split("\n"))


def _wait(action: Value) -> Iterator[str]:
    yield f"wait: {prose(action['reason'])}"
    for item in action["in_flight"]:
        if isinstance(item, str):
            yield f"  {shown(item)}"
            continue
        who = shown(item.get("agent")) or f"session {shown(item.get('session'))}"
        said = f"  {short(item['ticket'])}  {plain(item.get('state', ''))}  {who}, since {moment(item.get('since'))}"
        yield f"{said}, last sign {moment(item.get('last_evidence_at'))}"
        if item.get("claim_token"):
            yield f"       assignment {shown(item['assignment_id'])}  token {shown(item['claim_token'])}"


def _blocked(action: Value) -> Iterator[str]:
    tickets = " ".join(short(key) for key in action.get("tickets", ()))
    yield f"blocked: {plain(action['reason'])}" + (f"  {tickets}" if tickets else "")
    if action.get("detail"):
        yield f"  {prose(action['detail'])}"
    if action.get("remedy"):
        yield f"  -> {prose(action['remedy'])}"


def _complete(action: Value) -> Iterator[str]:
    proved = f"{action['integrated']} integrated" if action.get("integrated") else ""
    parts = joined((proved, unproved(action)))
    yield f"complete: {count(action['total'], 'ticket')}" + (f" ({parts})" if parts else "")
    yield f"  on {shown(action['integration_branch'])} at {shown(action['integration_head'])[:HASH]}"
    yield f"  -> {prose(action['then'])}"


def settled_text(answer: Value) -> str:
    """The answer of bind, seal, reconcile or of an operator's decision: where the ticket stands now, and what next."""
    state = plain(answer.get("state") or answer.get("decision") or "")
    reason = f" ({plain(answer['reason'])})" if answer.get("reason") else ""
    lines = [f"{short(answer['ticket'])}  {state}{reason}"]
    if answer.get("detail"):
        lines.append(f"  {prose(answer['detail'])}")
    if answer.get("isolation"):
        lines.append(f"notice: {prose(answer['isolation'])}")
    told = [*answer.get("notices", ()), *([answer["notice"]] if answer.get("notice") else [])]
    lines += [f"notice: {prose(notice)}" for notice in told]
    if answer.get("next"):
        lines.append(f"next: {prose(answer['next'])}")
    return _page(lines)


def log_text(answer: Value) -> str:
    """The history, one event a line. Times are UTC."""
    events = answer["events"]
    if not events:
        return _page(["nothing has happened yet"])
    every = answer.get("change") is None and len({event["change"] for event in events}) > 1
    rows = [
        [
            moment(event["at"]),
            *([shown(event["change"])] if every else []),
            short(event.get("ticket") or ""),
            f"#{event['attempt']}" if event.get("attempt") is not None else "",
            happened(event),
        ]
        for event in events
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row, event in zip(rows, events, strict=True):
        said = "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True))
        why = ": ".join(part for part in (prose(event.get("cause")), prose(event.get("detail"))) if part)
        lines.append(f"{said}  {why}".rstrip())
    return _page(lines)


def receipt_text(answer: Value) -> str:
    """A receipt: the commit it is about, what was run there and how it ended, and what else is to be known."""
    receipt = answer["receipt"]
    operator = receipt.get("operator") or {}
    lines = [f"{short(answer['ticket'])}  receipt of assignment {shown(answer['assignment_id'])}"]
    facts = [
        ("sealed", f"{moment(receipt.get('sealed_at'))}, attempt {receipt.get('attempt')}"),
        ("by", ", ".join(f"{plain(name)} {prose(said)}" for name, said in operator.items())),
        ("head", shown(receipt["head"])),
        ("tree", shown(receipt["tree"])),
        ("base", shown(receipt["base"])),
        ("packet", shown(receipt["packet"])),
        ("digest", shown(receipt["digest"])),
    ]
    lines += [*_facts(facts), "  checks"]
    for check in receipt["checks"]:
        took = f"  {check['duration']:.1f} s" if isinstance(check.get("duration"), (int, float)) else ""
        lines.append(f"    exit {check['exit_code']}{took}  {shown(check['command'])}")
    touched = ", ".join(shown(path) for path in receipt.get("touches_checks", ()))
    ignored = [shown(path) for path in receipt.get("ignored", ())]
    notes = [
        f"the work changes what the checks run: {touched}" if touched else "",
        "no file was changed" if receipt.get("empty_diff") else "",
        "" if receipt.get("clean_environment", True) else "the worktree held more than the commit and its set-up",
        f"ignored files were there: {', '.join(ignored[:5])}{_more(ignored, 5)}" if ignored else "",
    ]
    return _page([*lines, *(f"  note: {note}" for note in notes if note)])


def init_text(answer: Value, baton: str = "baton") -> str:
    """What `init` found and wrote. `baton` is how Baton is called there."""
    path = shown(answer["config"])
    lines = [f"wrote {path}" if answer["written"] else f"{path} is there already and stays as it is"]
    commands, setup, why = answer["commands"], answer["setup"], answer["why"]
    if not commands:
        lines.append("no check was found: set [verify] commands in it, or nothing can be handed out")
    else:
        lines.append("checks" if answer["written"] else "checks found here (the file may say otherwise)")
        reasons: Iterable[Any] = [*why, *[""] * len(commands)]
        for command, reason in zip(commands, reasons, strict=False):
            lines.append(f"  {shown(command)}" + (f"  ({prose(reason)})" if reason else ""))
    if setup:
        lines += ["set-up of each worktree", *(f"  {shown(command)}" for command in setup)]
    if answer.get("ignore"):
        lines.append("to be told to pass over .dsh/, where the worktrees are")
        lines += [f"  {item['tool']:<8}  {shown(item['where'])}: {item['line']}" for item in answer["ignore"]]
    return _page([*lines, f"next: {baton} plan"])


def _facts(facts: Iterable[tuple[str, str]]) -> list[str]:
    return [f"  {name:<10}  {text}" for name, text in facts if text]


def _named(name: str, value: Any) -> str:
    return f"{name} {shown(value)}" if value else ""


def _more(names: Sequence[str], most: int) -> str:
    return f" and {len(names) - most} more" if len(names) > most else ""


def _page(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def diff_text(answer: Value) -> str:
    """What a worker has done: its commits, the files, what is not committed yet, then the patch itself."""
    lines = [
        f"{short(answer['ticket'])}  {shown(answer['state'])}, {shown(answer['base'][:12])}..{shown(answer['head'][:12])}"
    ]
    lines += [f"  commit       {shown(subject)}" for subject in answer["commits"]]
    lines += [f"  uncommitted  {shown(path)}" for path in answer["uncommitted"]]
    if not answer["commits"] and not answer["uncommitted"]:
        lines.append("  nothing yet")
    lines += ["", *(shown(line) for line in answer["patch"].split("\n"))] if answer["patch"] else []
    return _page(lines)
