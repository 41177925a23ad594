"""`baton.toml`: what a project may set, read strictly. Every key is optional, an unknown one is an error."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, NoReturn

from baton_cli.core import durations
from baton_cli.core.patterns import late
from baton_cli.errors import BatonError

FILE_NAME = "baton.toml"
MAX_PARALLEL = 64
DEFAULT_TIMEOUT = 1800

_Sections = Mapping[str, Mapping[str, tuple[str, Callable[[object], Any]]]]
# What git refuses in a branch name: some characters, "..", "@{", a part with "." in front or ".lock" behind.
_BAD_REF = late(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|(?:^|/)(?:\.|-|/|$)|\.lock(?:/|$)|\.$|^@$")


class Config(NamedTuple):
    """The settings of one project. Times are in seconds; None is "not set", an empty tuple "explicitly nothing"."""

    verify: tuple[str, ...] | None = None
    verify_timeout: int = DEFAULT_TIMEOUT
    worktree_root: str | None = None
    copy: tuple[str, ...] = ()
    link: tuple[str, ...] = ()
    setup: tuple[str, ...] | None = None
    integrate_verify: Literal["all", "ticket"] = "all"
    within_section: Literal["parallel", "sequential"] = "parallel"
    closing_check: bool = True
    parallel: int = 5
    lease: int = 7200
    attempts: int = 3
    protect: tuple[str, ...] = ()
    branch_prefix: str = "baton"
    accept_detached: bool = False


class _Wrong(Exception):
    """A value that does not fit: what is wrong, and what would be right."""

    def __init__(self, problem: str, hint: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.hint = hint


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise _Wrong(f"must be text, not {_kind(value)}", "put it in quotes")
    if not value.strip():
        raise _Wrong("must not be empty", "give a value or remove the key")
    if "\0" in value:
        raise _Wrong("must not contain a NUL", "remove it")
    return value


def _texts(value: object) -> tuple[str, ...]:
    """A list of texts; a single text is taken as a list of one."""
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list):
        raise _Wrong(f"must be a list of texts, not {_kind(value)}", 'write it as ["...", "..."]')
    return tuple(_text(item) for item in value)


def _paths(value: object) -> tuple[str, ...]:
    """Relative paths (or patterns) that cannot lead out of the project."""
    paths = _texts(value)
    for path in paths:
        parts = path.replace("\\", "/").split("/")
        if ".." in parts or path.startswith(("/", "\\", "~")) or re.match(r"[A-Za-z]:", path):
            problem = f"has the path {path!r}, which leads out of the project"
            raise _Wrong(problem, "use a path relative to the project's folder")
    return paths


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise _Wrong(f"must be true or false, not {_kind(value)}", "write true or false, without quotes")
    return value


def _count(most: int) -> Callable[[object], int]:
    def convert(value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise _Wrong(f"must be a whole number, not {_kind(value)}", f"give a number from 1 to {most}")
        if not 1 <= value <= most:
            raise _Wrong(f"is {value}", f"give a number from 1 to {most}")
        return value

    return convert


def _seconds(value: object) -> int:
    hint = 'give seconds as a whole number, or a time such as "90s", "30m", "2h"'
    if isinstance(value, str):
        length = durations.seconds(value)
        if length is None:
            raise _Wrong(f"is {value!r}, which is no time", hint)
        value = length
    if not isinstance(value, int) or isinstance(value, bool):
        raise _Wrong(f"must be a time, not {_kind(value)}", hint)
    if not 0 < value <= durations.MOST:
        raise _Wrong(f"is {value} seconds", "give more than 0 seconds and at most a year")
    return value


def _choice(*allowed: str) -> Callable[[object], str]:
    def convert(value: object) -> str:
        if value not in allowed:
            raise _Wrong(f"is {value!r}", "use " + " or ".join(f'"{word}"' for word in allowed))
        return str(value)

    return convert


def _prefix(value: object) -> str:
    prefix = _text(value)
    if _BAD_REF.search(prefix):
        raise _Wrong(f"is {prefix!r}, which git does not allow in a branch name", 'use letters, digits, "-" and "_"')
    return prefix


# section -> key -> (field of Config, conversion)
_KEYS: _Sections = {
    "verify": {"commands": ("verify", _texts), "timeout": ("verify_timeout", _seconds)},
    "worktree": {
        "root": ("worktree_root", _text),
        "copy": ("copy", _paths),
        "link": ("link", _paths),
        "setup": ("setup", _texts),
    },
    "integrate": {"verify": ("integrate_verify", _choice("all", "ticket"))},
    "plan": {
        "within_section": ("within_section", _choice("parallel", "sequential")),
        "closing_check": ("closing_check", _flag),
    },
    "limits": {
        "parallel": ("parallel", _count(MAX_PARALLEL)),
        "lease": ("lease", _seconds),
        "attempts": ("attempts", _count(1000)),
    },
    "protect": {"paths": ("protect", _paths)},
    "branches": {"prefix": ("branch_prefix", _prefix)},
    "seal": {"accept_detached": ("accept_detached", _flag)},
}


def load(root: Path) -> Config:
    """The configuration of the project at `root`; the defaults where it has no `baton.toml`. Errors: bad_config."""
    text = _read(root / FILE_NAME)
    return Config() if text is None else parse(text, FILE_NAME)


def parse(text: str, where: str) -> Config:
    """The configuration written in `text`; `where` names the file in messages. Errors: bad_config."""
    return Config(**_fields(text, where, _KEYS))


def load_verify(path: Path) -> tuple[tuple[str, ...] | None, int | None] | None:
    """Commands and time limit (seconds) of a change's own `baton.toml`, at `path` (the file or the change's folder).

    None where there is no file; either part is None where the file leaves it out. Only `[verify]` may be set there,
    because everything else holds for the project as a whole. Errors: bad_config.
    """
    path = path / FILE_NAME if path.is_dir() else path
    text = _read(path)
    if text is None:
        return None
    where = f"{path.parent.name}/{path.name}"
    fields = _fields(text, where, {"verify": _KEYS["verify"]})
    return fields.get("verify"), fields.get("verify_timeout")


def _read(path: Path) -> str | None:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        message = f"{path.name}: cannot be read: {error.strerror}"
        raise BatonError("bad_config", message, f"check {str(path)!r}") from error
    except UnicodeDecodeError as error:
        message = f"{path.name}: not UTF-8 (byte {error.start})"
        raise BatonError("bad_config", message, "save the file as UTF-8") from error


def _fields(text: str, where: str, known: _Sections) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for section, content in _toml(text, where).items():
        if section not in known:
            _unknown(where, "section" if isinstance(content, dict) else "key", section, section, known)
        if not isinstance(content, dict):
            raise BatonError("bad_config", f"{where}: '{section}' must be a section", f"write it as [{section}]")
        keys = known[section]
        for key, value in content.items():
            if key not in keys:
                _unknown(where, "key", f"{section}.{key}", key, keys)
            field, convert = keys[key]
            try:
                fields[field] = convert(value)
            except _Wrong as wrong:
                raise BatonError("bad_config", f"{where}: '{section}.{key}' {wrong.problem}", wrong.hint) from None
    return fields


def _toml(text: str, where: str) -> dict[str, object]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        found: dict[str, object] = tomllib.loads(text)
        return found
    except (tomllib.TOMLDecodeError, RecursionError) as error:  # tomllib names line and column itself
        problem = " ".join(str(error).split())
        raise BatonError("bad_config", f"{where}: not valid TOML: {problem}", "fix that line") from None


def _unknown(where: str, kind: str, shown: str, name: str, known: Mapping[str, object]) -> NoReturn:
    import difflib

    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"did you mean '{close[0]}'?" if close else "known here: " + ", ".join(known)
    # repr, without its quotes: a key may hold anything, a message is one line
    raise BatonError("bad_config", f"{where}: unknown {kind} '{repr(shown)[1:-1]}'", hint)


def _kind(value: object) -> str:
    names = {bool: "true or false", int: "a number", float: "fraction", str: "text", list: "a list", dict: "a section"}
    return names.get(type(value), "a date or time")
