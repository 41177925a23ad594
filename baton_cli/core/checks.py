"""Verification commands: where a ticket's checks come from, and which commands cannot fail."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal, NamedTuple

from baton_cli.core.patterns import late
from baton_cli.core.tasks import Bullet

Source = Literal["ticket", "section", "change", "project", "detected"]

_VERIFY = late(r"(verify)\s*:\s*(.*)", re.I | re.S)
_BETWEEN = late(r"\s*(?:[,;&]|\band\b)?\s*", re.I)

_TRIVIAL = frozenset({"true", ":", "/bin/true", "/usr/bin/true", "echo", "printf"})
# What a pipe ends in to show or keep output; its own success then hides the failure of what it shows.
_FILTERS = frozenset({"tee", "tail", "head", "cat", "less", "more", "sort", "wc"})
_TOKEN = late(r"""'[^']*'|"(?:[^"\\]|\\.)*"|\\.|&&|\|\||\d*[<>]+&?\d*|&>|[;|&\n]|[^\s;|&<>'"\\]+|[ \t\r]+|.""", re.S)
_COMPOUND = frozenset({"if", "for", "while", "until", "case", "{", "}", "(", ")", "!", "function", "select"})


class Check(NamedTuple):
    """One verification command with its time limit (seconds) and where it was written down."""

    command: str
    timeout: int
    source: Source


class CheckSources(NamedTuple):
    """Commands for tickets without their own. None: not set there; empty: explicitly none. Timeout in seconds."""

    change: tuple[str, ...] | None
    project: tuple[str, ...] | None
    detected: tuple[str, ...]
    timeout: int


class Verify(NamedTuple):
    """What a list of bullets says: the commands, and the lines of `verify:` bullets that hold no command."""

    commands: tuple[str, ...]
    prose: tuple[int, ...]


def verify_bullets(bullets: Iterable[Bullet]) -> Verify:
    """The commands in `- verify: ...` bullets.

    The value is one or more code spans and nothing else, or a bare command behind a lower-case `verify:`. A code span
    in the middle of a sentence is never run: a sentence speaks to the worker.
    """
    commands: dict[str, None] = {}
    prose: list[int] = []
    for bullet in bullets:
        found = _VERIFY.match(bullet.text)
        if found is None:
            continue
        key, value = found[1], found[2].strip()
        spans = _spans(value)
        if spans:
            commands.update(dict.fromkeys(spans))
        elif key == "verify" and value and "`" not in value:
            commands[value] = None
        elif key == "verify" or "`" in value:
            prose.append(bullet.line)
    return Verify(tuple(commands), tuple(prose))


def inherited(sources: CheckSources) -> tuple[Check, ...]:
    """The checks of a ticket that neither its own bullets nor its section's give any."""
    if sources.change is not None:
        return checks(sources.change, "change", sources.timeout)
    if sources.project is not None:
        return checks(sources.project, "project", sources.timeout)
    return checks(sources.detected, "detected", sources.timeout)


def checks(commands: Iterable[str], source: Source, timeout: int) -> tuple[Check, ...]:
    """The commands as checks, each once, in order."""
    return tuple(Check(command, timeout, source) for command in dict.fromkeys(commands))


def _spans(value: str) -> tuple[str, ...]:
    """The contents of the code spans that make up the whole value; empty when there is anything else."""
    spans: list[str] = []
    at = 0
    while at < len(value):
        if value[at] != "`":
            return tuple(spans) if spans and value[at:] == "." else ()
        ticks = "`" * (len(value) - at - len(value[at:].lstrip("`")))
        close = re.compile(rf"(?<!`){ticks}(?!`)").search(value, at + len(ticks))
        command = value[at + len(ticks) : close.start()].strip() if close else ""
        if close is None or not command:
            return ()
        spans.append(command)
        between = _BETWEEN.match(value, close.end())
        at = between.end() if between else close.end()
    return tuple(spans)


def cannot_fail(command: str) -> bool:
    """Does this shell command succeed whatever happens (`true`, `echo ...`, `... || true`, `... | tee log`)?

    Read as a list of and-or lists of pipelines. Compound commands and `set -e` are not judged: False.
    """
    tokens = [token for token in _TOKEN.findall(command.strip()) if token == "\n" or not token.isspace()]
    if any(token in _COMPOUND or token.startswith(("(", "{", "#")) for token in tokens) or tokens[:1] == ["set"]:
        return False
    lists = _split(tokens, ("\n", ";", "&"))
    while lists and not lists[-1][0] and lists[-1][1] != "&":
        lists.pop()
    if any(words == ["exit", "0"] for words, _ in lists):
        return True
    if not lists:
        return False
    words, ended_by = lists[-1]
    return not words or ended_by == "&" or _and_or(words)


def _and_or(tokens: list[str]) -> bool:
    """`a && b` fails if either does, `a || b` only if both do; both bind equally, from the left."""
    sure, joined_by = True, "&&"
    for words, operator in _split(tokens, ("&&", "||")):
        alone = _pipeline(words)
        sure = (sure and alone) if joined_by == "&&" else (sure or alone)
        joined_by = operator
    return sure


def _pipeline(tokens: list[str]) -> bool:
    *before, (last, _) = _split(tokens, ("|",))
    name = last[0] if last else ""
    return name in _TRIVIAL or last == ["exit", "0"] or (bool(before) and name in _FILTERS)


def _split(tokens: list[str], operators: tuple[str, ...]) -> list[tuple[list[str], str]]:
    """The parts between operators, each with the operator behind it ("" at the end)."""
    parts: list[tuple[list[str], str]] = []
    part: list[str] = []
    for token in tokens:
        if token in operators:
            parts.append((part, token))
            part = []
        else:
            part.append(token)
    parts.append((part, ""))
    return parts
