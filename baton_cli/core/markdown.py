"""The lines of a tasks.md: which are task boxes, headings, plain bullets, fences, and where a comment goes on.

The task pattern is OpenSpec 1.13's, which runs in JavaScript without the `u` flag. Python's `\\s` is a different set
(it has U+001C to U+001F and U+0085 and lacks U+FEFF), `\\d` would match other scripts' digits, and a character above
U+FFFF is two units there and therefore no mark, so each of these is spelt out here.
"""

from __future__ import annotations

import re

from baton_cli.core.patterns import late

# JavaScript's \s without the newline: lines never contain one.
SPACES = "\t\v\f\r \u00a0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000\ufeff"
_S = f"[{SPACES}]"

# Groups: 1 all up to the bracket, 2 what the brackets contain, 3 the mark. A run of spaces is matched by one repetition
# only, so that a long one costs linear time (it is quadratic in the original).
_TASK = (
    rf"({_S}*(?:[-*+]|[0-9]{{1,9}}[.)]){_S}*\[)"
    rf"({_S}*(?:([^\]\n{SPACES}\U00010000-\U0010ffff]){_S}*)?(?=\](?![(\[]))|{_S}+(?=\]))\]"
)
TASK = late(_TASK)
TASKS = re.compile("\n" + _TASK)  # in a text that begins with a newline; a literal start makes the search fast
HEADING = late(r" {0,3}(#{1,6})(?:[ \t]+|[ \t]*\r?\Z)")
SECTION_NUMBER = late(r"([0-9]+)\.")
LEADING_NUMBER = late(r"([0-9]+)[a-z]?\.")  # of an id with several levels
BULLET = late(r"([ \t]*)([-*+]|[0-9]{1,9}[.)])[ \t]+")
_FENCE = late(r"(`{3,})[^`]*\Z|(~{3,})")


def columns(blank: str) -> int:
    """The width of leading blanks in columns; a tab reaches to the next multiple of 4, a byte order mark has none."""
    if not blank.strip(" "):
        return len(blank)
    width = 0
    for char in blank:
        width += 4 - width % 4 if char == "\t" else char != "\ufeff"
    return width


def indent_of(line: str) -> int:
    """The indentation of a line in columns."""
    return columns(line[: len(line) - len(line.lstrip(SPACES))])


class Fences:
    """Follows code fences by the CommonMark rules, including those that belong to a list item.

    A fence inside an item may be indented by that item's content column and up to three more, and ends with the item
    even when nobody closed it; elsewhere an unclosed fence runs to the end of the file.
    """

    __slots__ = ("_column", "_containers", "_mark", "inside")

    def __init__(self) -> None:
        self.inside = False
        self._mark = ""
        self._column = 0
        self._containers: list[int] = []

    def item(self, indent: int, marker: str) -> None:
        """Note a list item that starts at this column."""
        containers = self._containers
        while containers and containers[-1] > indent:
            containers.pop()
        containers.append(indent + len(marker) + 1)

    def heading(self) -> None:
        """Note a heading: no list goes on behind it."""
        self._containers.clear()

    def opens(self, text: str, indent: int) -> bool:
        """Does this text (without its indentation) open a fence? If so, the lines after it are inside."""
        found = _FENCE.match(text)
        if found is None:
            return False
        column = next((one for one in reversed(self._containers) if one <= indent), 0)
        if indent > column + 3:
            return False
        self._mark, self._column, self.inside = found[1] or found[2], column, True
        return True

    def line(self, line: str) -> bool:
        """Take a line while inside; True when it belongs to the fence (its closing line does)."""
        text = line.strip(SPACES)
        if not text:
            return True
        indent = indent_of(line)
        if indent < self._column:
            self.inside = False
            return False
        mark = self._mark
        if text.startswith(mark) and not text.strip(mark[0]) and indent <= self._column + 3:
            self.inside = False
        return True


def comment_goes_on(line: str, inside: bool, closed_later: bool) -> bool:
    """Is an HTML comment open at the end of this line?

    `inside`: one was open at its start. `closed_later`: some later line has a closing mark; without one an opening
    mark in the middle of a line is plain text. An opening mark in a code span never counts.
    """
    if inside:
        end = line.find("-->")
        if end < 0:
            return True
        line = line[end + 3 :]
    start = line.rfind("<!--")
    if start < 0 or line.find("-->", start + 4) >= 0:
        return False
    before = line[:start]
    return before.count("`") % 2 == 0 and (closed_later or not before.strip(SPACES))
