"""Reading tasks.md: which lines are tasks, what belongs to which ticket, and what each is called."""

from __future__ import annotations

import re
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baton_cli.core import reader
from baton_cli.core.tasks import Document, normalise, parse, words
from baton_cli.core.ticket_text import after
from baton_cli.errors import BatonError

# JavaScript's \s, and its strings: one unit for a character up to U+FFFF, two above.
JS = "\t\n\v\f\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
REFERENCE = re.compile(
    rf"[{JS}]*(?:[-*+]|[0-9]{{1,9}}[.)])[{JS}]*"
    rf"\[(?:[{JS}]*([^\]{JS}]?)[{JS}]*\](?![(\[])|[{JS}]+\])[{JS}]*([^\n\r\u2028\u2029]*)"
)
PIECES = [
    "\n", "\n", "\r\n", "- ", "* ", "+", "1. ", "12) ", "1234567890. ", "[ ]", "[x] ", "[X]", "[]", "[  ] ", "[ x ]", "[~]",
    "[✅]", "[\u00a0]", "[🚧]", "[xx]", "[ ](u)", "[x](u)", "  ", "    ", "\t", "\u00a0", "\ufeff", "\u2028", "\x1c", "\x85",
    "## ", "## 1. One", "### ", "# ", "```", "~~~", "`", "<!-- ", " -->", "1.1 ", "**1.2** ", "A1: ", "~~", "word ", "Ünï ",
    "(after 1.1)", "verify: ", " -> done", "**", "[tag] ", "(", ")", "漢字",
]  # fmt: skip
TEXTS = st.one_of(st.text(), st.lists(st.sampled_from(PIECES), max_size=60).map("".join))


def read(text: str) -> Document:
    return parse(text.encode())


def ids(text: str) -> list[str | None]:
    return [ticket.id for ticket in read(text).tickets]


def titles(text: str) -> list[str]:
    return [ticket.title for ticket in read(text).tickets]


def shape(text: str) -> list[tuple[str, list[str]]]:
    return [(ticket.text, [box.text for box in ticket.checklist]) for ticket in read(text).tickets]


def print_of(line: str) -> str:
    return read(f"- [ ] {line}\n").tickets[0].fingerprint


def codes(text: str) -> list[tuple[str, int]]:
    return [(warning.code, warning.line) for warning in read(text).warnings]


def naive(text: str) -> tuple[int, int]:
    total = done = 0
    for line in text.split("\n"):
        units = line.encode("utf-16-le")
        found = REFERENCE.match("".join(chr(units[i] | units[i + 1] << 8) for i in range(0, len(units), 2)))
        total += found is not None
        done += found is not None and (found[1] or "") in ("x", "X")
    return total, done


@given(TEXTS)
@settings(max_examples=400, deadline=None)
def test_any_text_counts_as_the_plain_pattern_does(text: str) -> None:
    document = read(text)
    assert (document.total, document.done) == naive(text)
    lines = text.encode().split(b"\n")
    for box in document.boxes:
        before = sum(len(line) + 1 for line in lines[: box.line - 1])
        line = lines[box.line - 1]
        assert line[: box.slot - before].endswith(b"[")
        assert line[box.slot - before + box.width :].startswith(b"]")


@given(TEXTS)
@settings(deadline=None)
def test_every_box_belongs_to_exactly_one_ticket_and_every_title_is_one_line(text: str) -> None:
    document = read(text)
    assert sorted(box for ticket in document.tickets for box in ticket.boxes) == sorted(document.boxes)
    lines = text.split("\n")
    for position, ticket in enumerate(document.tickets):
        assert ticket.position == position
        assert ticket.title.strip()
        assert "\n" not in ticket.title
        assert 0 <= ticket.section < len(document.sections)
        further = ticket.body.split("\n") if ticket.body else []
        # a single blank first line cannot be told from no body, but then trailing blank lines are dropped anyway
        assert lines[ticket.line : ticket.line + len(further)] == further
        assert all(ticket.line < box.line <= ticket.line + len(further) for box in ticket.checklist)
        assert len(ticket.fingerprint) == 16


@given(TEXTS, st.integers(0, 20))
@settings(deadline=None)
def test_reading_in_small_blocks_gives_the_same(text: str, size: int) -> None:
    whole = read(text)
    with patch.object(reader, "_BLOCK", size):
        assert read(text) == whole


@given(st.binary())
@settings(deadline=None)
def test_any_bytes_parse_or_are_refused_as_invalid(data: bytes) -> None:
    try:
        data.decode()
    except UnicodeDecodeError:
        with pytest.raises(BatonError) as caught:
            parse(data)
        assert caught.value.code == "invalid_utf8"
    else:
        assert parse(data).data == data


def test_invalid_utf8_names_line_and_offset() -> None:
    with pytest.raises(BatonError, match=r"line 2, byte offset 11") as caught:
        parse(b"- [ ] one\n-\xff[ ] two\n")
    assert caught.value.code == "invalid_utf8"


def test_long_hostile_lines_take_linear_time() -> None:
    size = 200_000
    for line in (
        "- [" + " " * size,
        "- [" + " " * size + "a",
        " " * size + "-",
        "- [ ] " + "**" * size,
        "- [ ] " + "(after " * size,
        "- [ ] " + "<!-- " * size,
        "- [ ] " + "[a] " * size,
        "- [ ] " + " -> done `" * size,
        "- [ ] " + "~~a" * size,
        "- [ ] (after " + "1.1," * size + "x)",
        "## " + "# " * size,
        "- [ ] " + "1." * size,
    ):
        for ticket in read(line + "\n" + line).tickets:
            assert ticket.title
            assert ticket.fingerprint


def test_sections_have_labels_for_numbers_and_file_order_for_order() -> None:
    document = read("# Plan\n## 0. Zero\n- [ ] a\n## Phase A\n- [ ] b\n   ## 7.  **Seven** ##\n- [ ] c\n##\n- [ ] d\n")
    assert [(one.number, one.title, one.line) for one in document.sections] == [
        ("0", "Zero", 2),
        (None, "Phase A", 4),
        ("7", "Seven", 6),
        (None, "", 8),
    ]
    assert [ticket.section for ticket in document.tickets] == [0, 1, 2, 3]


def test_what_is_no_section_heading() -> None:
    text = "- [ ] a\n### deeper\n- [ ] b\n##x\n    ## code\n\t## tab\n#### four\n- [ ] c\n"
    document = read(text)
    assert [(one.implicit, one.line) for one in document.sections] == [(True, 0)]
    assert len(document.tickets) == 3


def test_an_implicit_section_only_when_tasks_come_before_any_heading() -> None:
    assert [one.implicit for one in read("text\n- note\n## 1. One\n- [ ] a\n").sections] == [False]
    assert [one.implicit for one in read("- [ ] z\n## 1. One\n- [ ] a\n").sections] == [True, False]


def test_a_byte_order_mark_hides_neither_heading_nor_nesting() -> None:
    assert read("\ufeff## 1. One\n- [ ] a\n").sections[0].number == "1"
    assert shape("\ufeff- [ ] a\n- [ ] b\n") == [("a", []), ("b", [])]


def test_nested_boxes_are_the_checklist() -> None:
    assert shape("- [ ] a\n  - [ ] a1\n    - [ ] a2\n\t- [ ] a3\n- [ ] b\n") == [("a", ["a1", "a2", "a3"]), ("b", [])]


def test_odd_indentation() -> None:
    assert shape("    - [ ] a\n  - [ ] b\n- [ ] c\n  - [ ] c1\n") == [("a", []), ("b", []), ("c", ["c1"])]
    assert shape("\t- [ ] a\n    - [ ] b\n") == [("a", []), ("b", [])]
    assert shape("  - [ ] a\n  - [ ] b\n   \t- [ ] b1\n") == [("a", []), ("b", ["b1"])]


def test_a_heading_or_a_plain_item_of_the_same_level_ends_the_nesting() -> None:
    assert shape("- [ ] a\n### h\n  - [ ] b\n") == [("a", []), ("b", [])]
    assert shape("- [ ] a\n- Group\n  - [ ] b\n  - [ ] c\n") == [("a", []), ("b", []), ("c", [])]
    assert shape("- Group\n  - [ ] a\n- Group\n  - [ ] b\n") == [("a", []), ("b", [])]


def test_a_ticket_is_done_when_all_its_boxes_are() -> None:
    half, whole = read("- [x] a\n  - [ ] b\n- [X] c\n  - [x] d\n").tickets
    assert (half.done, whole.done) == (False, True)


def test_the_body_is_as_written_up_to_the_next_ticket_or_heading() -> None:
    document = read(
        "- [ ] a\r\n  prose \r\n\r\n  - [x] child\r\n    more  \n \n\n- [ ] b\n\n  last\n### h\ntext\n- [ ] c"
    )
    assert [ticket.body for ticket in document.tickets] == [
        "  prose \r\n\r\n  - [x] child\r\n    more  ",
        "\n  last",
        "",
    ]


def test_bullets_are_the_direct_ones() -> None:
    text = """## 1. One
- verify: `make`
  - deeper
* other
- [ ] 1.1 a
  - verify: `one`
    - no
  - [ ] child
    - verify: `of the child`
  1. verify: `two`
  ```
  - verify: `in a fence`
  ```
  <!--
  - verify: `in a comment`
  -->
- not of the ticket
"""
    document = read(text)
    assert [(one.line, one.text) for one in document.sections[0].bullets] == [(2, "verify: `make`"), (4, "other")]
    assert [(one.line, one.indent, one.text) for one in document.tickets[0].bullets] == [
        (6, 2, "verify: `one`"),
        (10, 2, "verify: `two`"),
    ]


def test_bullets_under_a_sub_heading_are_not_the_sections() -> None:
    assert read("## 1. One\n### Notes\n- verify: `x`\n- [ ] a\n").sections[0].bullets == ()


@pytest.mark.parametrize(
    ("text", "fenced", "sections"),
    [
        ("```\n## no\n- [ ] a\n```\n## yes\n- [ ] b\n", [True, False], 2),
        ("~~~~ md\n- [ ] a\n~~~\n- [ ] b\n~~~~~\n- [ ] c\n", [True, True, False], 1),
        ("   ```\n- [ ] a\n    ```\n- [ ] b\n", [True, True], 1),
        ("```\n- [ ] a\n``` no\n- [ ] b\n", [True, True], 1),
        ("``` `x`\n- [ ] a\n", [False], 1),
        ("    ```\n- [ ] a\n", [False], 1),
        ("- [ ] a\n    ```\n  - [ ] b\n    ```\n  - [ ] c\n", [False, True, False], 1),
        ("- [ ] a\n  ```\n  code\n- [ ] b\n", [False, False], 1),
        ("- ```\n  - [ ] a\n  ```\n- [ ] b\n", [True, False], 1),
        ("```\n\n- [ ] a\n## no", [True], 1),
    ],
)
def test_fences(text: str, fenced: list[bool], sections: int) -> None:
    document = read(text)
    assert [box.in_fence for box in document.boxes] == fenced
    assert len(document.sections) == sections


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("<!--\n- [ ] a\n-->\n- [ ] b\n", [True, False]),
        ("text <!-- goes\n- [ ] a\non --> <!-- one --> \n- [ ] b\n", [True, False]),
        ("- [ ] a <!-- note -->\n- [ ] b\n", [False, False]),
        ("- [ ] about `<!--` marks\n- [ ] b\n-->\n", [False, False]),
        ("- [ ] about <!-- marks\n- [ ] b\n", [False, False]),
        ("<!--\n- [ ] a\n", [True]),
        ("```\n<!--\n```\n- [ ] a\n-->\n", [False]),
    ],
)
def test_comments(text: str, inside: list[bool]) -> None:
    assert [box.in_comment for box in read(text).boxes] == inside


def test_warnings_name_code_and_line() -> None:
    text = "## 1. One\n- [ ] 1.1 a\n- [ ] 1.1 b\n- [ ] 2.1 c\n```\n- [ ] 1.2 d\n```\n<!--\n- [ ] 1a.3 e\n-->\n"
    assert codes(text) == [
        ("duplicate_id", 3),
        ("id_section_mismatch", 4),
        ("box_in_fence", 6),
        ("box_in_comment", 9),
    ]
    assert codes("## 10. Ten\n- [ ] 10.1 a\n- [ ] 1.1 b\n## Phase\n- [ ] 9.1 c\n- [ ] 3. d\n") == [
        ("id_section_mismatch", 3)
    ]


@pytest.mark.parametrize(
    ("text", "name", "title"),
    [
        ("1.2 Do it", "1.2", "Do it"),
        ("1.2.3 Do it", "1.2.3", "Do it"),
        ("1.2a Do it", "1.2a", "Do it"),
        ("5b.1 Do it", "5b.1", "Do it"),
        ("1.2: Do it", "1.2", "Do it"),
        ("1.2. Do it", "1.2", "Do it"),
        ("1.2) Do it", "1.2", "Do it"),
        ("1.2] Do it", "1.2", "Do it"),
        ("[1.2] Do it", "1.2", "Do it"),
        ("[ui] 1.2 Do it", "1.2", "[ui] Do it"),
        ("[P1][ui] 1.2 Do it", "1.2", "[P1][ui] Do it"),
        ("**1.2** Do it", "1.2", "Do it"),
        ("**1.2**: Do it", "1.2", "Do it"),
        ("**1.2:** Do it", "1.2", "Do it"),
        ("**1.2 Do** it", "1.2", "Do it"),
        ("~~1.2 Do it~~", "1.2", "Do it"),
        ("~~1.2 Do it~~ never", "1.2", "Do it never"),
        ("`1.2` Do it", "1.2", "Do it"),
        ("`1.2 Do it`", "1.2", "Do it"),
        ("`make it`", None, "make it"),
        ("3. Do it", "3", "Do it"),
        ("3) **Do** it", "3", "Do it"),
        ("A1 Do it", "A1", "Do it"),
        ("T-3 Do it", "T-3", "Do it"),
        ("T.1 Do it", "T.1", "Do it"),
        ("AC-1: Do it", "AC-1", "Do it"),
        ("AC-1 Do it", "AC-1", "Do it"),
        ("**US1.** Do it", "US1", "Do it"),
        ("S3: Do it", "S3", "Do it"),
        ("[T-3] Do it", "T-3", "Do it"),
        ("[P1] Do it", None, "[P1] Do it"),
        ("S3 bucket", None, "S3 bucket"),
        ("UTF-8 support", None, "UTF-8 support"),
        ("UTF-8: support", None, "UTF-8: support"),
        ("HTTP2 support", None, "HTTP2 support"),
        ("K8s manifests", None, "K8s manifests"),
        ("`S3` client", None, "`S3` client"),
        ("e2e: login", None, "e2e: login"),
        ("3 retries", None, "3 retries"),
        ("10:30 meeting", None, "10:30 meeting"),
        ("2024-05-01 release", None, "2024-05-01 release"),
        ("1.5GB limit", None, "1.5GB limit"),
        ("1.2.3-beta tag", None, "1.2.3-beta tag"),
        ("v1.2 tag", None, "v1.2 tag"),
        ("[1.2](x.md) Do it", None, "[1.2](x.md) Do it"),
        ("2.0 release", "2.0", "release"),
        ("1.2", "1.2", "(untitled)"),
        ("", None, "(untitled)"),
        ("<!-- nothing -->", None, "(untitled)"),
        ("1.2 Do it (after 1.1)", "1.2", "Do it"),
        ("1.2 **Do it (after A1 and 2.3)**", "1.2", "Do it"),
        ("1.2 Do it (after none)", "1.2", "Do it"),
        ("1.2 Do it (after applying the mappings)", "1.2", "Do it (after applying the mappings)"),
        ("1.2 Do it (after 1.1, lunch)", "1.2", "Do it (after 1.1, lunch)"),
        ("1.2 Keep `**/*.py` and **this**", "1.2", "Keep `**/*.py` and this"),
        ("1.2 two  blanks\u00a0here", "1.2", "two blanks here"),
        ("1.2 Do it <!-- note -->", "1.2", "Do it"),
        ("1.2 Do it -> done in 1234567", "1.2", "Do it"),
        ("1.2 Rename a -> b", "1.2", "Rename a -> b"),
    ],
)
def test_id_and_title(text: str, name: str | None, title: str) -> None:
    assert (ids(f"- [ ] {text}\n"), titles(f"- [ ] {text}\n")) == ([name], [title])


def test_after_clauses() -> None:
    assert after("1.3 Do it (after 1.1, A2 and #3.4)") == ("1.1", "A2", "3.4")
    assert after("1.3 Do it (after none) -> done") == ()
    assert after("1.3 Do it (after lunch)") is None
    assert after("1.3 (after 1.1) Do it") is None


def test_the_fingerprint_is_of_what_is_asked() -> None:
    first = print_of("1.1 Write the parser")
    same = [
        "9.9 Write the parser",
        "Write  the parser",
        "**1.1** Write the **parser**",
        "1.1 Write the parser (after 1.2)",
    ]
    assert {print_of(text) for text in same} == {first}
    assert print_of("1.1 Write the parser -> done: all green") == first
    assert print_of("1.1 Write the parser → note: see the log") == first
    assert print_of("1.1 Write the Parser") != first
    assert print_of("Rename a -> b") != print_of("Rename a -> c")
    assert print_of("Print ` -> done` at the end") != print_of("Print `")


def test_the_fingerprint_has_child_boxes_but_neither_their_state_nor_the_rest_of_the_body() -> None:
    def fingerprint(text: str) -> str:
        return read(text).tickets[0].fingerprint

    whole = fingerprint("- [ ] 1.1 a\n  - [ ] 1.1.1 b\n")
    assert fingerprint("- [x] 2.1 a\n  prose\n  - verify: `x`\n  - [x] 2.1.1 b\n") == whole
    assert fingerprint("- [ ] 1.1 a\n") != whole
    assert fingerprint("- [ ] 1.1 a\n  - [ ] c\n") != whole


def test_normalise_and_words() -> None:
    assert normalise("[x] 1.1 **Do**\tit (after 1.2)") == "[x] Do it"
    assert words("1.1 Add `user_name`, again and AGAIN") == {"add", "user", "name", "again", "and"}
    assert words("1.1 验证功能") == {"验", "证", "功", "能"}


@pytest.mark.parametrize("ticked", ["[x]", "[X]", "[~]", "[✅]", "[\u00a0]", "[  ]", "[ x ]", "[]"])
def test_the_digest_is_the_same_whatever_the_boxes_hold(ticked: str) -> None:
    other = read(f"## 1. é\n- [ ] 1.1 a\n- {ticked} 1.2 b\n")
    assert other.digest == read("## 1. é\n- [x] 1.1 a\n- [ ] 1.2 b\n").digest
    assert other.digest != read("## 1. é\n- [x] 1.1 a\n- [ ] 1.2 c\n").digest


def test_a_lone_carriage_return_ends_no_line() -> None:
    document: Any = read("- [ ] 1.1 a\r- [x] 1.2 b\r")
    assert (document.total, document.tickets[0].title) == (1, "a - [x] 1.2 b")
