"""The answers of the verbs at the end of a change, for a person."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from baton_cli.core.prompt import shorten
from baton_cli.views.words import count, joined, prose, short, shown

Value = Mapping[str, Any]
HASH, TITLE = 12, 70  # characters of a commit, and of a title


def land_text(answer: Value) -> str:
    """Where the change is now, and what comes next."""
    target, head = shown(answer["target_branch"]), shown(answer["head"])[:HASH]
    change = shown(answer["change"])
    if answer["state"] == "already_landed":
        lines = [f"{change} is on {target} already: nothing to do"]
    else:
        lines = [f"{change} is landed: {target} moved from {shown(answer['before'])[:HASH]} to {head}"]
        if answer["merged"]:
            lines.append(f"  {target} had moved: it was merged first, and the merged tree passed the checks")
        if answer["checkout"]:
            lines.append(f"  the files in {shown(answer['checkout'])} moved along")
    lines += [f"notice: {prose(notice)}" for notice in answer.get("notices", ())]
    width = max(len(step["say"]) for step in answer["next"])
    lines += ["next:", *(f"  {prose(step['say']).ljust(width)}  {shown(step['run'])}" for step in answer["next"])]
    return "".join(f"{line}\n" for line in lines)


MARKS = {"integrated": "✓", "attested": "~", "external": "~", "unproved": "✗"}


def audit_text(answer: Value, baton: str = "baton") -> str:
    """One line a ticked box, what is to be known about it below, then what the audit says and what it does not.
    `baton` is how Baton is called there."""
    lines = [_audit_head(answer)]
    for problem in answer["problems"]:  # first: it may be why every box below lacks its evidence
        lines += [f"! {prose(problem['message'])}", f"  -> {prose(problem['hint'])}"]
    keys = max((len(short(box["ticket"])) for box in answer["boxes"]), default=0)
    for box in answer["boxes"]:
        mark = MARKS[box["level"]] if box["passed"] else "✗"
        commit = shown(box["commit"] or "")[:HASH].ljust(HASH)
        lines.append(
            f"  {mark} {short(box['ticket']).ljust(keys)}  {box['level']:<10}  {commit}  {shown(shorten(box['title'], TITLE))}"
        )
        said = ([f"line {box['line']}: {box['problem']}"] if box["problem"] else []) + box["notes"]
        lines += [f"      {' ' * keys}{prose(text)}" for text in said]
    for fault in answer["faults"]:
        of = f" ({short(fault['ticket'])})" if fault["ticket"] else ""
        lines.append(f"  ✗ commit {shown(fault['commit'])[:HASH]}{of}: {prose(fault['problem'])}")
    for made in answer["decisions"]:
        by = joined((prose(made["who"]), prose(made["at"]), prose(made["why"])))
        lines.append(f"  decision: {shown(made['decision'])} {short(made['ticket'])}: {by}")
    open_levels = {box["level"] for box in answer["boxes"] if not box["passed"]}
    if open_levels and open_levels <= {"attested", "external"} and not answer["faults"] and not answer["problems"]:
        allowed = ",".join(sorted({*answer["allowed"], *open_levels}))
        lines.append(f"-> to accept them as they are: {baton} audit {shown(answer['change'])} --allow {allowed}")
    apart = [] if answer["landed"] else ["note: its work has not landed: what is checked out does not have it"]
    return "".join(f"{line}\n" for line in [*lines, *apart, f"note: {prose(answer['proves'])}"])


def _audit_head(answer: Value) -> str:
    counts = answer["tickets"]
    left = counts["total"] - counts["ticked"]
    open_ones = f"; {left} of {count(counts['total'], 'ticket')} not ticked" if left and counts["ticked"] else ""
    return _proved(answer) + open_ones


def _proved(answer: Value) -> str:
    counts, change = answer["tickets"], shown(answer["change"])
    place = f" (archived in {shown(answer['tasks'])})" if answer["archived"] else ""
    if not counts["ticked"]:
        return f"{change}{place}: none of {count(counts['total'], 'ticket')} is ticked, so there is nothing to prove"
    good = counts["ticked"] - counts["failing"]
    allowed = sum(1 for box in answer["boxes"] if box["passed"] and box["level"] != "integrated")
    if answer["passed"] and allowed:
        return (
            f"{change}{place}: {good - allowed} of {count(counts['ticked'], 'ticked ticket')} proved, {allowed} allowed"
        )
    if answer["passed"]:
        return f"{change}{place}: each of {count(counts['ticked'], 'ticked ticket')} is proved"
    first = answer["first"]
    named = f"; first: {short(first['ticket'])} in line {first['line']}" if first else ""
    return f"{change}{place}: {good} of {count(counts['ticked'], 'ticked ticket')} proved{named}"


def clean_text(answer: Value) -> str:
    """What went and what stayed, one line each."""
    verb = "would remove" if answer["dry_run"] else "removed"
    lines = [f"{verb}  {item['what']:<8}  {shown(item['name'])}" for item in answer["removed"]]
    lines += [
        f"{'kept'.ljust(len(verb))}  {item['what']:<8}  {shown(item['name'])}: {prose(item['why'])}"
        for item in answer["kept"]
    ]
    return "".join(f"{line}\n" for line in lines or ["nothing to remove"])


LEVEL_MARKS = {"ok": "✓", "note": "·", "warning": "!", "error": "✗"}


def doctor_text(answer: Value) -> str:
    """One line a finding with its mark, the fix below it; then what the evidence is worth. Paths begin at the project."""
    lines, root = [shown(answer["project"])], f"{answer['project']}/"
    for found in answer["findings"]:
        mark = "✓ repaired:" if found["repaired"] else LEVEL_MARKS[found["level"]]
        lines.append(f"  {mark} {prose(str(found['message']).replace(root, ''))}")
        if found["fix"] and not found["repaired"]:
            lines.append(f"      -> {prose(found['fix'])}")
    levels = [found["level"] for found in answer["findings"] if not found["repaired"]]
    said = joined(count(levels.count(level), level) for level in ("error", "warning", "note") if level in levels)
    if not {"error", "warning"} & set(levels):
        said = joined(("all is well", said))
    return "".join(f"{line}\n" for line in [*lines, said, f"note: {prose(answer['proves'])}"])
