"""What `drive` shows while it runs: a live picture on a terminal, plain lines elsewhere. Values in; each text made safe."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from baton_cli import output
from baton_cli.views.page import Line, Page, page
from baton_cli.views.words import count, finished, joined, plain, prose, short, shown, span

if TYPE_CHECKING:
    from rich.console import Group
    from rich.text import Text

Value = Mapping[str, Any]
Tell = Callable[[Value], None]

REFRESHES = 4  # a second
BAR = 30  # cells
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
    from rich.console import Console
    from rich.live import Live

    console = Console(file=sys.stdout, no_color=not output.colour(), highlight=False, markup=False, emoji=False)
    live = Live(
        get_renderable=lambda: picture(frame()),
        console=console,
        refresh_per_second=REFRESHES,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
        vertical_overflow="crop",
    )

    def tell(event: Value) -> None:
        if event["event"] != "started":  # the picture shows it
            console.print(_text(line_of(event)), soft_wrap=True)

    with live:
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
    tries = joined((_attempt(event), KINDS.get(event["kind"], plain(event["kind"]))))
    if kind == "started":
        return [("started".ljust(STATE + 2), "dim"), (named, ""), (f"  ({tries})" if tries else "", "dim")]
    state = STATES.get(event["state"], plain(event["state"]))
    tail = joined((span(event["seconds"]), tries))
    line: Line = [(state.ljust(STATE + 2), COLOURS.get(state, "red")), (named, ""), (f"  ({tail})", "dim")]
    if state != "integrated":
        line.append((f"  {prose(event['detail'])}", ""))
        line.append((f"  log {shown(event['log'])}", "dim"))
    return line


def picture(frame: Value) -> Group:
    """The frame as Rich draws it."""
    from rich.console import Group

    paper = page(None, None)
    return Group(*(_text(line) for line in frame_lines(frame, paper)))


def frame_lines(frame: Value, paper: Page) -> list[Line]:
    """A bar, then a line for each agent that runs, then what Baton itself does."""
    progress, running = frame["progress"], frame["running"]
    total, done = int(progress.get("total", 0)), finished(progress)
    words = joined(
        (
            f"{done} of {total} done" if total else "",
            f"{len(running)} running",
            *(f"{progress[name]} {name}" for name in ("ready", "waiting", "blocked") if progress.get(name)),
        )
    )
    drawn = [[(shown(frame["change"]), "bold"), ("  ", ""), *paper.bar(done, total, BAR), (f"  {words}", "")]]
    for agent in running:
        tries = joined((_attempt(agent), KINDS.get(agent["kind"], "")))
        drawn.append(
            [
                (f"{paper.glyph('running')} ", "cyan"),
                (f"{short(agent['ticket'])}  ", "bold"),
                (paper.cut(prose(agent["title"]), paper.width // 3), ""),
                (f"  {joined((span(agent['seconds']), tries))}", "dim"),
                (f"  {shown(agent['said'])}" if agent["said"] else "", "dim"),
            ]
        )
    if frame["doing"]:
        drawn.append([("  baton: ", "dim"), (prose(frame["doing"]), "dim")])
    return [paper.clip(line, paper.width - 1) for line in drawn]


NOT_OURS = (("external", "ticked by hand"), ("attested", "attested"), ("skipped", "skipped"))  # done without a receipt


def summary(answer: Value) -> str:
    """`baton.drive/1` for a person: how it ended, and what to do next."""
    progress = answer["progress"]
    did = joined(
        (
            f"{answer['integrated']} integrated",
            *(f"{progress[name]} {word}" for name, word in NOT_OURS if progress.get(name)),
            count(answer["attempts"], "agent run"),
            count(answer["started"], "ticket") if answer["started"] != answer["attempts"] else "",
            span(answer["seconds"]),
        )
    )
    said = [f"{plain(answer['state'])}: {finished(progress)} of {progress.get('total', 0)} done ({did})"]
    for action in answer["actions"]:
        if action["kind"] == "complete":
            said.append(f"  on {shown(action['integration_branch'])} at {shown(action['integration_head'])[:12]}")
            said.append(f"  -> {prose(action['then'])}")
        else:
            tickets = " ".join(short(key) for key in action["tickets"])
            said.append(f"! {plain(action['reason'])}" + (f"  {tickets}" if tickets else ""))
            said.append(f"  {prose(action['detail'])}")
            said.append(f"  -> {prose(action['remedy'])}")
    if answer["state"] == "interrupted":
        said.append("  everything is kept: the same command goes on from here")
    return "".join(f"{line}\n" for line in said if line.strip())


def _attempt(value: Value) -> str:
    return f"attempt {value['attempt']}" if value["attempt"] != 1 else ""


def _text(line: Line) -> Text:
    from rich.text import Text

    return Text.assemble(*line)
