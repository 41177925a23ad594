"""The board: what hangs where, what it says, and that nothing in it acts."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from typing import Any

import pytest

from baton_cli.views.board import board_page, tickets_of
from baton_cli.views.board.graph import A_ROW, HEIGHT, WIDTH, graph_of
from tests.views.overviews import AT, change, dark_mode, integrated, many, overview, proof
from tests.views.samples import held, section, ticket

VOID = {"meta", "input", "rect", "path"}
HOSTILE = (
    "<script>alert(1)</script>", "</style><b>x", "</title></head>", "\"'><img src=x onerror=alert(1)>",
    "javascript:alert(1)", "{{ 7 * 7 }} {% raw %}", "&lt;not an entity&amp;", "]]>--><!--",
)  # fmt: skip


class Reader(HTMLParser):
    """The page as elements: every tag must be closed in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return "".join(self.texts)


def columns(page: str) -> dict[str, list[str]]:
    """Column -> the keys of its cards."""
    found = re.findall(r'<section class="column.*?</section>', page, re.DOTALL)
    names = [re.search(r"<h3[^>]*>(.*?) <span", part) for part in found]
    return {name.group(1): re.findall(r"<b>(.*?)</b>", part) for name, part in zip(names, found, strict=True) if name}


def card(page: str, key: str) -> str:
    found = re.search(rf'<li class="card [^>]*><p class="top"><b>{re.escape(key)}</b>.*?</li>', page, re.DOTALL)
    assert found, key
    return Reader(found.group()).text


def test_every_ticket_hangs_in_its_column() -> None:
    page = board_page(overview(dark_mode()))
    hung = columns(page)
    assert list(hung) == ["Waiting", "Ready", "In progress", "Needs attention", "Done"]
    assert hung["Waiting"] == ["3.5", "4.1", "4.2"]
    assert hung["Ready"] == ["3.4"]
    assert hung["In progress"] == ["3.1", "3.3"]
    assert hung["Needs attention"] == ["3.2"]
    assert hung["Done"] == [f"1.{n}" for n in range(1, 7)] + [f"2.{n}" for n in range(1, 6)]
    assert "<b>11 of 18</b> tickets done in 1 change" in page
    assert "11 of 18 tickets done" in page
    for words in ("11 done", "2 in progress", "1 needs attention", "1 ready", "3 waiting"):
        assert f">{words}</li>" in page


def test_a_card_says_who_since_when_and_what_for() -> None:
    page = board_page(overview(dark_mode()))
    assert card(page, "3.1").split("\n") == [
        "3.1add-dark-mode", "Persist the choice", "running", "attempt 2, child-7b3f", "since 2026-09-21 14:01",
        "last sign 2026-09-21 14:12", "",
    ]  # fmt: skip
    assert "sealed, to be integrated\nattempt 1, child-91aa" in card(page, "3.3")
    assert "exhausted after attempt 3" in card(page, "3.2")
    assert "`pytest -q` exited with 1 (log logs/3.2-3.log)" in card(page, "3.2")
    assert "waits for the others (3.2 exhausted)" in card(page, "3.5")
    digest = hashlib.sha256(b"add-dark-mode#1.1").hexdigest()
    done = card(page, "1.1")
    assert f"Receipt {digest[:12]}digest: {digest}\nassignment: a1b2-7\nsealed: 2026-11-29 22:45\n" in done
    assert f"commit: {digest[:40]}\nmerged as: {digest[::-1][:40]}\ncheck: make test (exit 0, 12.3 s)\n" in done


def test_finished_without_a_receipt_says_so() -> None:
    def done(status: str, **more: Any) -> dict[str, Any]:
        fact = {"kind": status, "commit": "c" * 40, "at": AT, "who": "ada", "why": "seen"} | more
        return {"evidence": fact} if status != "external" else {}

    section_ = section(
        "1",
        "All",
        *(
            ticket(f"1.{n}", "Do", status, **done(status))
            for n, status in enumerate(("external", "attested", "skipped"))
        ),
        integrated("1.3", "Edited", proof=None),
        integrated("1.4", "Odd", proof=proof("d" * 64, touches_checks=["Makefile"], empty_diff=True, detached=True)),
    )
    page = board_page(overview(change(section_)))
    assert "ticked by hand" in card(page, "1.0")
    assert "attested\nsince 2026-11-29 22:45, by ada\nseen" in card(page, "1.1")
    assert "skipped\nsince" in card(page, "1.2")
    assert "the store no longer has it as it was recorded" in card(page, "1.3")
    for note in ("it changes what the checks run: Makefile", "no file was changed", "made on another machine"):
        assert f"note: {note}" in card(page, "1.4")


def test_what_needs_a_person_is_on_top_with_what_to_do() -> None:
    broken = {
        "change": "odd-one",
        "error": {"code": "plan_cycle", "message": "1.1 waits for itself", "hint": "undo it"},
    }
    paused = change(section("1", "A", ticket("1.1", "a", "ready")), name="slow", paused="ada: look first")
    page = board_page(overview(dark_mode(), {**broken, "archived": None}, paused))
    top = page[page.index('id="person"') : page.index('id="changes"')]
    assert "3 need a person" in page
    assert "<pre>baton retry &#39;add-dark-mode#3.2&#39;</pre>" in top
    link = re.search(r'<a href="#(t\d+)">3.2</a>', top)
    assert link
    assert f'id="{link.group(1)}"><p class="top"><b>3.2</b>' in page
    assert "its plan cannot be read" in top
    assert "1.1 waits for itself" in top
    assert "<pre>baton resume slow</pre>" in top
    assert '<h2 id="person-name"' not in board_page(overview(paused | {"paused": None}))


def test_each_ticket_that_needs_a_person_counts() -> None:
    stuck = [ticket(f"1.{n}", "Call", "blocked", reason="manual") for n in range(1, 6)]
    value = change(section("1", "Calls", *stuck), section("2", "Rest", ticket("2.1", "b", "ready")))
    assert ">5 need a person</a>" in board_page(overview(value))
    assert ">6 need a person</a>" in board_page(overview(value | {"paused": "ada: wait"}))


def test_a_finished_change_says_what_comes_next() -> None:
    finished = change(section("1", "A", integrated("1.1", "a")))
    assert "<code>baton land add-dark-mode</code>" in board_page(overview(finished))
    assert "baton land" not in board_page(
        overview(finished | {"archived": "2026-11-29-add-dark-mode"}, dark_mode(name="o"))
    )


def test_a_change_finished_elsewhere_shows_the_receipts_of_its_merges() -> None:
    """As in a clone: nothing is recorded here, and the merge commits carry the receipts."""
    first = integrated("1.1", "a")
    del first["assignment"]
    digest = first["proof"]["digest"]
    page = board_page(overview(change(section("1", "A", first), started=False)))
    assert f"Receipt {digest[:12]}digest: {digest}\nsealed: 2026-11-29 22:45\ncommit: " in card(page, "1.1")
    assert f"merged as: {digest[::-1][:40]}, whose message holds this receipt\n" in card(page, "1.1")
    assert "1 of 1 tickets done, complete" in page
    assert "not started" not in page
    half = change(section("1", "A", first, ticket("1.2", "b", "ready")), started=False)
    assert "not started here" in Reader(board_page(overview(half))).text
    fresh = change(section("1", "A", ticket("1.2", "b", "ready")), started=False)
    assert '<p class="dim">not started</p>' in board_page(overview(fresh))


def test_an_empty_column_is_marked_to_be_narrow() -> None:
    page = board_page(overview(change(section("1", "A", ticket("1.1", "a", "ready")))))
    found = re.findall(r'<section class="column( empty)?" id="(column\d)"', page)
    assert found == [(" empty", "column0"), ("", "column1"), *((" empty", f"column{at}") for at in (2, 3, 4))]
    assert "nothing" not in Reader(page).text


def test_no_change_at_all() -> None:
    page = board_page(overview())
    assert "There is no change" in Reader(page).text
    assert list(columns(page).values()) == [[], [], [], [], []]


def test_the_page_is_allowed_nothing() -> None:
    page = board_page(overview(dark_mode(), change(section("1", "A", ticket("1.1", "a", "ready")), name="other")))
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)
    assert style
    digest = base64.b64encode(hashlib.sha256(style.group(1).encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    assert f'http-equiv="Content-Security-Policy" content="{policy}"' in page
    assert page.index("Content-Security-Policy") < page.index("<style>")
    assert "url(" not in style.group(1)
    assert "@import" not in style.group(1)
    for tag, attributes in Reader(page).tags:
        assert tag not in {"script", "link", "img", "iframe", "object", "embed", "form", "base", "audio", "video"}
        assert not [
            name for name in attributes if name.startswith("on") or name in ("src", "style", "action", "srcset")
        ]
        assert attributes.get("href") is None or str(attributes["href"]).startswith("#")


def test_hostile_texts_are_shown_as_they_are() -> None:
    tickets = [ticket(f"1.{n}", text, "ready") for n, text in enumerate(HOSTILE)]
    tickets += [
        ticket(f"2.{n}", "t", "in_flight", assignment=held("unknown", agent=text, detail=text, state_since=AT))
        for n, text in enumerate(HOSTILE)
    ]
    tickets.append(ticket("3.1", "a", "blocked", reason="manual"))
    value = change(section(HOSTILE[0], HOSTILE[1], *tickets), section("2", HOSTILE[3], ticket("3.2", "b", "ready")))
    value["change"], value["paused"] = HOSTILE[0], HOSTILE[3]
    value["attention"][0] |= {"detail": HOSTILE[4], "steps": [{"say": HOSTILE[0], "run": [HOSTILE[3]]}]}
    error = {"change": HOSTILE[1], "archived": None, "error": {"code": "x", "message": HOSTILE[0], "hint": HOSTILE[3]}}
    whole = overview(value, error) | {"project": HOSTILE[2], "root": HOSTILE[3]}
    plain = Reader(board_page(overview(dark_mode(), dark_mode(name="other"))))
    read = Reader(board_page(whole))
    for text in HOSTILE:
        assert read.text.count(text) >= 3
    assert {tag for tag, _ in read.tags} <= {tag for tag, _ in plain.tags}


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("\u202eevil\u2066", "\\u202eevil\\u2066"),
        ("a\x1b[31m\x00\r", "a\\x1b[31m\\x00\\r"),
        ("שלום", "שלום"),
        ("\udcff", "\\xff"),
    ],
)
def test_what_cannot_be_seen_is_escaped(text: str, seen: str) -> None:
    page = board_page(overview(change(section("1", text, ticket("1.1", text, "ready")))))
    assert seen in card(page, "1.1")
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", page)
    page.encode()


def test_a_very_long_title_stands_in_full_behind_the_card() -> None:
    title = "begin " + "x" * 10_000 + " end"
    page = board_page(overview(change(section("1", "A", ticket("1.1", title, "ready")))))
    assert re.search(r"<h4>begin x{100,240}…</h4>", page)
    assert f"<p>{title}</p></details>" in page


def test_the_same_state_gives_the_same_bytes() -> None:
    assert board_page(many(3, 4, 5)) == board_page(many(3, 4, 5))


def test_large_plans_stay_small_and_fold() -> None:
    sizes = {}
    for tickets in (500, 1000, 2000):
        value = many(1, tickets // 50, 50)
        assert tickets_of(value) == tickets
        page = board_page(value)
        sizes[tickets] = len(page.encode())
        assert sum(map(len, columns(page).values())) == tickets
        assert f"{tickets * 6 // 10 - 12} more of change-0" in Reader(page).text
    assert sizes[1000] < 1_000_000
    assert sizes[2000] - sizes[1000] < 2.2 * (sizes[1000] - sizes[500])
    assert len(board_page(many(40, 5, 5)).encode()) < 1_000_000


def test_every_change_has_a_colour_of_its_own_while_they_last() -> None:
    page = board_page(many(12, 1, 3))
    hues = dict(re.findall(r'<h3><span class="tag (h\d+)">(change-\d+)</span>', page))
    assert len(hues) == 12
    fewer = dict(re.findall(r'<h3><span class="tag (h\d+)">(change-\d+)</span>', board_page(many(1, 1, 3))))
    assert fewer.items() <= hues.items()


def test_one_change_can_be_shown_alone() -> None:
    page = board_page(many(2, 1, 3))
    assert "body:has(#f1:checked) .by:not(.c1){display:none}" in page
    assert page.count('type="radio"') == 3
    assert 'type="radio"' not in board_page(many(1, 1, 3))


def sections(after: list[list[int]]) -> list[dict[str, Any]]:
    parts = [section(str(at + 1), f"Part {at + 1}", ticket(f"{at + 1}.1", "Do", "ready")) for at in range(len(after))]
    return [{**part, "after": befores} for part, befores in zip(parts, after, strict=True)]


def test_the_graph_shows_only_what_others_do_not_imply() -> None:
    graph = graph_of(sections([[], [0], [0, 1], [0], [1, 2, 3]]))
    assert graph
    assert len(graph.paths) == 5  # 1-2, 2-3, 1-4, 3-5, 4-5
    assert graph.words == "Sections: 1 is free; 2 waits for 1; 3 waits for 2; 4 waits for 1; 5 waits for 3 4."
    assert graph_of(sections([[]])) is None


@pytest.mark.parametrize(
    "after",
    [
        [[], [0], [1], [2], [3], [4], [5], [6], [7]],
        [[1], [0]],
        [[2], [], [1]],
        [[], [], [], [], [0, 1, 2, 3]],
        [[1], [2], [0], [1]],
    ],
)
def test_boxes_do_not_overlap_and_stay_inside(after: list[list[int]]) -> None:
    graph = graph_of(sections(after))
    assert graph
    places = [(box.x, box.y) for box in graph.boxes]
    assert len(set(places)) == len(after)
    for x, y in places:
        assert 0 < x < x + WIDTH < graph.width
        assert 0 < y < y + HEIGHT < graph.height
        assert not [1 for a, b in places if (a, b) != (x, y) and abs(a - x) < WIDTH and abs(b - y) < HEIGHT]
    assert len({x for x, _ in places}) <= A_ROW
    numbers = [int(number) for path in graph.paths for number in re.findall(r"\d+", path)]
    assert all(0 <= number <= max(graph.width, graph.height) for number in numbers)
