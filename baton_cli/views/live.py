"""What `drive` shows while it runs: a live picture on a terminal, plain lines elsewhere. Values in; each text made safe."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from baton_cli import output
from baton_cli.views.page import Line, Page, cells
from baton_cli.views.words import finished, joined, plain, prose, short, shown, span, unproved

Value = Mapping[str, Any]
Tell = Callable[[Value], None]

BAR_LEAST, BAR_MOST = 10, 30  # cells
PICTURED = ("started", "checking")  # events that the picture shows
STATE = 10  # the longest state that a result has, in cells
COLOURS = {"integrated": "green", "conflicted": "yellow", "rejected": "yellow", "sealed": "cyan"}
STATES = {"unknown": "not done"}  # nobody vouches for it, so somebody is sent there again
KINDS = {"dispatch": "", "recover": "again", "resolve_merge": "merge conflict"}


@contextmanager
def silent() -> Iterator[Tell]:
    """Nothing: the answer alone is wanted."""
    yield lambda _event: None


@contextmanager
def lines() -> Iterator[Tell]:
    """A line for each event, for a pipe or a log."""

    def tell(event: Value) -> None:
        output.write("".join(text for text, _ in line_of(event)).rstrip() + "\n")

    yield tell


@contextmanager
def screen(frame: Callable[[], Value]) -> Iterator[Tell]:
    """The picture at the bottom of the terminal, drawn from `frame()`; what has happened stays above it."""
    from baton_cli.views.bottom import Bottom

    with Bottom(lambda paper: frame_lines(frame(), paper)) as bottom:

        def tell(event: Value) -> None:
            if event["event"] not in PICTURED:
                bottom.say(line_of(event))

        yield tell


def suits(stream: Any = None) -> bool:
    """Whether a live picture can be drawn there."""
    return output.is_terminal(stream) and os.environ.get("TERM") != "dumb"


def line_of(event: Value) -> Line:
    """One event on one line."""
    kind = event["event"]
    if kind == "begin":
        return [(f"drive {shown(event['change'])}", "bold"), (f"  session {shown(event['session'])}", "dim")]
    if kind == "note":
        return [("note        ", "dim"), (prose(event["text"]), "dim")]
    named = f"{short(event['ticket'])}  {prose(event['title'])}"
    if kind == "merged":
        return [("integrated".ljust(STATE + 2), COLOURS["integrated"]), (f"{named}  (by no agent of this run)", "")]
    tries = joined((_attempt(event), KINDS.get(event["kind"], plain(event["kind"]))))
    if kind in PICTURED:
        told = joined((span(event["seconds"]) if kind == "checking" else "", tries))
        return [(kind.ljust(STATE + 2), "dim"), (named, ""), (f"  ({told})" if told else "", "dim")]
    state = STATES.get(event["state"], plain(event["state"]))
    tail = joined((span(event["seconds"]), tries))
    line: Line = [(state.ljust(STATE + 2), COLOURS.get(state, "red")), (named, ""), (f"  ({tail})", "dim")]
    if state != "integrated":
        line.append((f"  {prose(event['detail'])}", ""))
        line.append((f"  log {shown(_from_here(str(event['log'])))}", "dim"))
    return line


def _from_here(path: str) -> str:
    """A path as it would be typed in the current folder, if it is below that."""
    try:
        return path.removeprefix(os.path.join(os.getcwd(), ""))
    except OSError:  # the folder is gone
        return path


def stands(progress: Value) -> str:
    """How far a change is, as `status` counts it."""
    others = unproved(progress)
    return f"{finished(progress)} of {progress.get('total', 0)} done" + (f" ({others})" if others else "")


def frame_lines(frame: Value, paper: Page) -> list[Line]:
    """A bar, a line for each agent that runs or whose work is not decided yet, then what Baton itself does."""
    progress, running, ended = frame["progress"], frame["running"], frame["ended"]
    total, done = int(progress.get("total", 0)), finished(progress)
    checked = sum(1 for agent in ended if agent["well"])
    # Other sessions have the rest in hands, or it is to be handed out again.
    rest = int(progress.get("in_flight", 0)) - len(running) - checked
    words = joined(
        (
            stands(progress) if total else "",
            f"{len(running)} running",
            f"{checked} to be checked" if checked else "",
            f"{rest} more in flight" if rest > 0 else "",
            *(f"{progress[name]} {name}" for name in ("ready", "waiting", "blocked") if progress.get(name)),
        )
    )
    name = shown(frame["change"])
    bar = max(BAR_LEAST, min(BAR_MOST, paper.width - 5 - cells(name) - cells(words)))
    drawn = [[(name, "bold"), ("  ", ""), *paper.bar(done, total, bar), (f"  {words}", "")]]
    for agent in running:
        drawn.append(_agent(agent, "running", f"  {shown(agent['said'])}" if agent["said"] else "", paper))
    doing = str(frame["doing"])
    for agent in ended:
        now = f" {agent['ticket']}: " in f" {doing}"
        said = "being checked" if now else "to be checked" if agent["well"] else "failed"
        drawn.append(_agent(agent, "queued", f", {said}", paper))
    if doing:
        drawn.append([("  baton: ", "dim"), (prose(doing.replace(f"{frame['change']}#", "", 1)), "dim")])
    return [paper.clip(line, paper.width - 1) for line in drawn]


def _agent(agent: Value, glyph: str, said: str, paper: Page) -> Line:
    tries = joined((_attempt(agent), KINDS.get(agent["kind"], "")))
    return [
        (f"{paper.glyph(glyph)} ", "cyan"),
        (f"{short(agent['ticket'])}  ", "bold"),
        (paper.cut(prose(agent["title"]), paper.width // 3), ""),
        (f"  {joined((span(agent['seconds']), tries))}", "dim"),
        (said, "dim"),
    ]


def _attempt(value: Value) -> str:
    return f"attempt {value['attempt']}" if value["attempt"] != 1 else ""
