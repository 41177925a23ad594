"""What reaches the terminal: one place that knows about encodings, control characters, colour and closed pipes."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TextIO

from baton_cli.core.patterns import late
from baton_cli.errors import BatonError
from baton_cli.invocation import launcher, typed

# Not printable or not what they seem: C0 and C1 controls (terminal escapes begin with one), line and paragraph
# separators, marks that reorder or hide text, and the halves of surrogate pairs that stand for undecodable bytes.
# (None of them is printable as Python understands it, which is the quicker question.)
_UNSAFE = late(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]"
)
_CALL = "`baton "
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


class ReaderGone(Exception):
    """Nobody reads our output any more (`baton log | head`): end without a word."""


def _visible(match: re.Match[str]) -> str:
    char = match.group()
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:  # a byte that was no UTF-8
        code -= 0xDC00
    return _SHORT.get(char) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")


def escape(text: str) -> str:
    """The text on one line with everything that could act on a terminal, or deceive its reader, shown as an escape."""
    return text if text.isprintable() else _UNSAFE.sub(_visible, text)


def to_json(value: Mapping[str, Any] | Sequence[Any]) -> str:
    """One line of JSON, keys in the order given. Unsafe characters are \\u escapes, so it may be shown as it is."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text if text.isprintable() else _UNSAFE.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


def write(text: str, stream: TextIO | None = None) -> None:
    """Write UTF-8 whatever the locale says (standard output by default). Raises `ReaderGone`, or output_failed."""
    target = sys.stdout if stream is None else stream
    try:
        target.flush()
        binary = getattr(target, "buffer", None)
        if binary is None:  # a stand-in such as StringIO
            target.write(text)
        else:
            binary.write(text.encode("utf-8", "backslashreplace"))
            binary.flush()
    except BrokenPipeError:
        discard()
        raise ReaderGone from None
    except OSError as error:
        discard()
        message = f"cannot write the answer: {error.strerror}"
        raise BatonError("output_failed", message, "see where the output goes, then ask again") from error


def discard() -> None:
    """Point standard output to nowhere, so that what is still buffered does not fail once more as Python ends."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    except (OSError, ValueError):  # not a real file: nothing is left to fail
        return


def emit(value: Mapping[str, Any] | Sequence[Any], *, json_mode: bool, text: Callable[[], str] | str) -> None:
    """Print a command's answer: the value as one line of JSON, or its text, which may be made only when needed.

    Whoever makes the text puts `escape` around what the user, a file or git supplied.
    """
    if json_mode:
        write(to_json(value) + "\n")
        return
    said = _as_called(text() if callable(text) else text)
    if said:
        write(said if said.endswith("\n") else said + "\n")


def baton() -> str:
    """How Baton is called by whoever reads this, as it would be typed in the current folder."""
    return shlex.join(typed(launcher()))


def as_typed(text: str) -> str:
    """A text that calls Baton from anywhere, for whoever reads it in the current folder."""
    return text.replace(f"{shlex.join(launcher())} ", f"{baton()} ")


def _as_called(text: str) -> str:
    """Messages name a call as `baton VERB`; here it becomes one that can be typed."""
    return text.replace(_CALL, f"`{baton()} ") if _CALL in text else text


def report(error: BatonError, *, json_mode: bool) -> None:
    """Print a refusal: `baton.error/1` on standard output, or one line for the error and one for the hint on stderr."""
    write(refusal(error, json_mode=json_mode), sys.stdout if json_mode else sys.stderr)


def refusal(error: BatonError, *, json_mode: bool) -> str:
    """The text of it."""
    if json_mode:
        return to_json({"schema": "baton.error/1", "error": error.value()}) + "\n"
    hint = f"hint: {escape(_as_called(error.hint))}\n" if error.hint else ""
    return f"error: {escape(error.message)}\n{hint}"


def is_terminal(stream: TextIO | None = None) -> bool:
    """Does a person look at it?"""
    target = sys.stdout if stream is None else stream
    return target.isatty()


def colour(stream: TextIO | None = None) -> bool:
    """Is colour wanted there? A terminal, not a dumb one, and NO_COLOR (https://no-color.org) unset or empty."""
    return is_terminal(stream) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
