"""The text of one task: its id, its title, and the normal form that its fingerprint is made of.

Ids, at the start of the text:

- `1.2`, `1.2.3`, `1.2a`, `1a.2` (up to four levels), and a number alone, up to 999, only with a sign behind: `3.`, `3)`, `3:`.
- One capital letter and a number: `A1`, `T-3`, `T.1`; capitals, hyphen, number: `AC-1`. Well-known names that only look
  so are none: `S3`, `K8s`, `H1`, `V2` (unless a sign follows: `S3:`), `UTF-8`, `SHA-256` (never).
- Capitals and a number without hyphen, and one small letter and a number, only with a sign behind: `US1:`, `a2)`.
  `FR4 support` and `e2e: login` have none.
- Any of these behind `[tags]`, inside `**`, `~~`, `*`, `_` or backticks, and with one of `: . ) ]` behind. In square
  brackets, `[1.2]` and `[T-3]` are ids; `[P1]` is a tag.

A version at the start ("2.0 release") cannot be told from an id and is one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from baton_cli.core.patterns import late

UNTITLED = "(untitled)"

_LEAD = r"\s*((?:\[[^\[\]]*\](?!\()\s*){0,4}?)((?:\*\*|~~|__|[*_`]){0,3})"
_SIGN = r"[:.)\]]"
_TAIL = rf"((?:\*\*|~~|__|[*_`]){{0,3}})({_SIGN}{{0,2}})"
_DOTTED = r"[0-9]{1,5}[a-z]?(?:\.[0-9]{1,5}[a-z]?){1,3}"
_COUNT = r"[0-9]{1,3}[a-z]?"
_LETTERED = r"[A-Z]{1,6}-?[0-9]{1,5}[a-z]?|[A-Z]\.[0-9]{1,3}|[a-z]-?[0-9]{1,3}"
_END = r"(?![0-9A-Za-z_%+/\\-]|\.[0-9A-Za-z])"

# The usual form, in one cheap match; the others are tried only when it fails.
_USUAL = re.compile(r"([0-9]{1,5}(?:\.[0-9]{1,5}){1,3}) (?! )")
_NUMBERED = late(
    rf"{_LEAD}(?:\[({_DOTTED})\](?!\()|({_DOTTED}){_END}|({_COUNT})(?=[*_~`]*{_SIGN}+[*_~`]*(?:\s|\Z)))({_SIGN}{{0,2}}){_TAIL}"
)
_WORDED = late(rf"{_LEAD}(?:\[([A-Z]{{1,6}}-[0-9]{{1,5}})\](?!\()|({_LETTERED}){_END})({_SIGN}{{0,2}}){_TAIL}(?=\s|\Z)")
_BARE = late(r"[A-Z]-?[0-9]{1,3}[a-z]?|[A-Z]\.[0-9]{1,3}|[A-Z]{2,6}-[0-9]{1,5}")
_NAMES = frozenset(
    (
        "UTF",
        "UCS",
        "SHA",
        "MD",
        "GPT",
        "ISO",
        "RFC",
        "CVE",
        "CWE",
        "AES",
        "RSA",
        "HTTP",
        "IPV",
        "ES",
        "EC",
        "CP",
        "ED",
        "GB",
        "WCAG",
        "PEP",
    )
)
_NAMES_WITHOUT_SIGN = late(r"S3|R2|K8s|K3s|[HVX][0-9]+[a-z]?")

# What a worker or a user appends when it is done. An arrow alone is not enough: `a -> b` is content nearly always.
_NOTE = late(
    r"\s(?:->|=>|→)\s*(?:(?:notes?|done|ok|see|passe[sd]|passing|verified|fixed|skipped|deferred|merged|landed|completed?|"
    r"implemented|finished|moved|dropped|blocked|superseded|wip|n/a|pr|commit(?:ted)?|closes|green)\b|#[0-9]|"
    r"[0-9a-f]{7,40}\b)",
    re.IGNORECASE,
)
_AFTER = late(r"\([Aa]fter[\s:]+([^()]+)\)([.\s*~_`]*)")
_ITEM = late(rf"#?(?:{_DOTTED}|{_COUNT}|{_LETTERED})")
_SEPARATOR = late(r"\s*(?:[,;&、，]|\band\b)\s*")
_WRAPS = ("", "`", "*", "_")  # with "" so that an empty text is looked at, too
_BOLD = late(r"\*\*([^*]+)\*\*")
_STRUCK = late(r"~~([^~]+)~~")
_COMMENT = late(r"<!--(?:(?!-->)[^<]|<(?!!--))*(?:-->|\Z)")
# Scripts written without spaces: each character is a word of its own.
_WORD = late(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|[^\W_\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")


def describe(text: str) -> tuple[str | None, str, str]:
    """The id, the title (one line, never empty) and the normal form of one task's text."""
    usual = _USUAL.match(text)
    found, rest = (usual[1], text[usual.end() :]) if usual else split_id(text)
    if ">" in rest or "→" in rest:
        rest = _without_note(rest)
    if "fter" in rest:
        rest = split_after(rest)[0]
    normal = rest if rest.isprintable() and "  " not in rest else " ".join(rest.split())
    if "**" in normal:
        normal = _outside_code(_BOLD, normal)
    if normal[:1] in _WRAPS or "~~" in normal or "<!--" in normal:
        return found, _title(normal) or UNTITLED, normal
    return found, normal, normal


def id_of(text: str) -> str | None:
    """The id a task's text begins with."""
    usual = _USUAL.match(text)
    return usual[1] if usual else split_id(text)[0]


def normalise(text: str) -> str:
    """The text that a fingerprint is made of: without id, `(after ...)`, note and bold, with blanks folded.

    What orders a ticket (`after`) or reports on it ("-> done ...") is not what it asks for, so neither changes it.
    """
    return describe(text)[2]


def after(text: str) -> tuple[str, ...] | None:
    """The ids in the `(after ...)` clause of a task's text: empty for `(after none)`, None without a clause."""
    if ">" in text or "→" in text:
        text = _without_note(text)
    return split_after(text)[1]


def words(text: str) -> frozenset[str]:
    """The words of a task's normal form in lower case, to say whether two texts have half of them in common."""
    return frozenset(_WORD.findall(normalise(text).lower()))


def split_id(text: str) -> tuple[str | None, str]:
    """The id a text begins with (see the module's docstring), and the text without it."""
    found = _NUMBERED.match(text)
    if found:
        tags, opened, boxed, dotted, count, sign, closed, late = found.groups()
        name = boxed or dotted or count
    else:
        found = _WORDED.match(text)
        if found is None:
            return None, text
        tags, opened, boxed, lettered, sign, closed, late = found.groups()
        name = boxed or lettered
        if not _is_id(name, signed=bool(sign or late or boxed)):
            return None, text
    rest = text[found.end() :]
    if closed and closed == opened[::-1]:
        return name, tags + rest.lstrip()
    # The marks around the id go on behind it: `**1.2 Title**` becomes `**Title**`.
    return name, tags + opened + (closed + late + rest if closed else rest).lstrip()


def split_after(text: str) -> tuple[str, tuple[str, ...] | None]:
    """A text without its closing `(after ...)` clause, and the ids in it; None when one of its items is no id."""
    start = text.rfind("(")
    found = _AFTER.fullmatch(text, start) if start >= 0 else None
    if found is None:
        return text, None
    inner = found[1].strip()
    items = () if inner.lower() == "none" else tuple(_SEPARATOR.split(inner))
    if not all(_ITEM.fullmatch(item) for item in items):
        return text, None
    return text[:start].rstrip() + found[2].strip(". \t"), tuple(item.lstrip("#") for item in items)


def heading_title(text: str) -> str:
    """A section's title: one line without marks and without the closing `##`."""
    bare = text.rstrip()
    shorter = bare.rstrip("#")
    if shorter != bare and (not shorter or shorter[-1].isspace()):
        bare = shorter
    return _title(_outside_code(_BOLD, " ".join(bare.split())))


def _is_id(name: str, signed: bool) -> bool:
    prefix = name.rstrip("abcdefghijklmnopqrstuvwxyz").rstrip("0123456789").rstrip("-.")
    if len(prefix) > 1 and prefix.upper() in _NAMES:
        return False
    return signed or (_BARE.fullmatch(name) is not None and _NAMES_WITHOUT_SIGN.fullmatch(name) is None)


def _without_note(text: str) -> str:
    ticks, last = 0, 0
    for found in _NOTE.finditer(text):
        ticks += text.count("`", last, found.start())
        last = found.start()
        if ticks % 2 == 0:
            return text[:last].rstrip()
    return text


def _outside_code(pattern: re.Pattern[str], text: str) -> str:
    """Take the marks of the pattern away, but not inside code spans (`**/*.py` is a path)."""
    if "`" not in text:
        return pattern.sub(r"\1", text)
    codes: list[str] = []

    def hide(found: re.Match[str]) -> str:
        codes.append(found[0])
        return "\0"

    hidden = re.sub(r"`[^`]*`|\0", hide, text)
    back: Iterator[str] = iter(codes)
    return re.sub("\0", lambda _: next(back), pattern.sub(r"\1", hidden))


def _title(plain: str) -> str:
    title = plain
    if "<!--" in title:
        title = _COMMENT.sub("", title)
    if "~~" in title:
        title = _outside_code(_STRUCK, title)
    if title and title[0] in _WRAPS and title[-1] == title[0] and title.count(title[0]) == 2:
        title = title[1:-1]
    return title if title is plain else " ".join(title.split())
