"""The board in Chromium: accessible, readable on a phone, literal, and without a script that could run."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import pytest

from baton_cli.views.board import board_page
from tests.views import browser
from tests.views.overviews import change, dark_mode, many, overview
from tests.views.samples import section, ticket

PHONE = 390
MODES = {"light": (), "dark": browser.DARK}
AUDIT = """
page.querySelectorAll('details').forEach(one => { one.open = true; });
const found = await axe.run(page.documentElement, {resultTypes: ['violations']});
return {
    dark: matchMedia('(prefers-color-scheme: dark)').matches, passes: found.passes.map(one => one.id),
    wrong: found.violations.map(one => one.id + ': ' + one.nodes[0].html.slice(0, 200) + one.nodes[0].failureSummary),
};
"""


@pytest.fixture(scope="module")
def page() -> str:
    """A board with every status, twelve coloured changes, a paused one and a broken one."""
    broken = {"change": "odd-one", "archived": None, "error": {"code": "c", "message": "a cycle", "hint": "undo it"}}
    paused = change(section("1", "A", ticket("1.1", "a", "ready")), name="slow", paused="ada: look first")
    return board_page(overview(dark_mode(), *many(12, 2, 10)["changes"], paused, broken))


@pytest.mark.parametrize("mode", sorted(MODES))
def test_axe_finds_nothing(page: str, mode: str, tmp_path: Path) -> None:
    found = browser.asked(page, f"{browser.axe()};{AUDIT}", tmp_path, *MODES[mode])
    assert found.get("wrong") == []
    assert found["dark"] is (mode == "dark")
    assert {"color-contrast", "list", "heading-order", "svg-img-alt", "label"} <= set(found["passes"])


def test_axe_would_find_something(page: str, tmp_path: Path) -> None:
    wrong = page.replace('<html lang="en">', "<html>").replace("--dim:#57606a", "--dim:#b0b8c0")
    found = browser.asked(wrong, f"{browser.axe()};{AUDIT}", tmp_path)
    assert {text.split(":")[0] for text in found["wrong"]} >= {"html-has-lang", "color-contrast"}


def test_on_a_phone_nothing_sticks_out(page: str, tmp_path: Path) -> None:
    script = """
    const view = page.documentElement;
    page.querySelectorAll('details').forEach(one => { one.open = true; });
    const out = [...page.querySelectorAll('body *')].filter(one =>
        !one.closest('svg, .no') && one.getBoundingClientRect().right > view.clientWidth + 0.5);
    const tops = [...page.querySelectorAll('.column')].map(one => one.getBoundingClientRect());
    return {width: view.clientWidth, scroll: view.scrollWidth, out: out.map(one => one.outerHTML.slice(0, 120)),
            stacked: tops.every((one, at) => at === 0 || one.top >= tops[at - 1].bottom)};
    """
    found = browser.asked(page, script, tmp_path, frame=PHONE)
    assert found == {"width": PHONE, "scroll": PHONE, "out": [], "stacked": True}


def test_an_empty_column_takes_no_room(tmp_path: Path) -> None:
    page = board_page(overview(change(section("1", "A", *(ticket(f"1.{n}", "Step", "ready") for n in range(4))))))
    script = """
    const places = [...page.querySelectorAll('.column')].map(one => one.getBoundingClientRect());
    return {wide: places.map(one => Math.round(one.width)), out: page.documentElement.scrollWidth};
    """
    found = browser.asked(page, script, tmp_path)
    assert [at for at, width in enumerate(found["wide"]) if width < 60] == [0, 2, 3, 4]
    assert found["wide"][1] > 900
    (tmp_path / "small").mkdir()
    small = browser.asked(page, script, tmp_path / "small", frame=PHONE)
    assert len(set(small["wide"])) == 1, "on a phone all are of one width, one above the other"
    assert small["out"] == PHONE


def test_by_keyboard(page: str, tmp_path: Path) -> None:
    """All that can be used can be reached, shows where the focus is, and works."""
    script = """
    const all = [...page.querySelectorAll('a[href], summary, input, [tabindex="0"]')];
    page.querySelectorAll('details').forEach(one => { one.open = true; });
    const dull = all.filter(one => { one.focus(); return page.activeElement !== one
        || getComputedStyle(one).outlineStyle === 'none' || one.tabIndex !== 0; });
    const seen = () => [...page.querySelectorAll('.card')].filter(one => one.checkVisibility()).length;
    const before = seen();
    page.getElementById('f0').click();
    const alone = seen();
    return {count: all.length, dull: dull.map(one => one.outerHTML.slice(0, 100)), before, alone,
        dead: all.filter(one => one.hash && !page.getElementById(one.hash.slice(1))).length};
    """
    found = browser.asked(page, script, tmp_path)
    assert found["count"] > 100
    assert (found["dull"], found["dead"]) == ([], 0)
    assert (found["before"], found["alone"]) == (18 + 12 * 20 + 1, 18)


def test_with_real_keys(tmp_path: Path) -> None:
    """Tab goes through everything in the order of the page, Enter follows and unfolds, arrows choose a change."""
    file = tmp_path / "board.html"
    file.write_text(board_page(overview(dark_mode(), *many(2, 2, 3)["changes"])), encoding="utf-8")
    focused = "document.activeElement"
    seen = "[...document.querySelectorAll('.card')].filter(one => one.checkVisibility()).length"
    order = (
        "(() => { const all = [...document.querySelectorAll('a[href], summary, input, [tabindex]')]"
        f".filter(one => one.checkVisibility()); return all.indexOf({focused}); }})()"
    )
    with browser.hand(file, tmp_path / "profile") as hand:
        places, names = [], []
        hand.press("Tab")
        while hand.sees(f"{focused} !== document.body"):
            places.append(hand.sees(order))
            names.append(hand.sees(f"{focused}.localName"))
            assert hand.sees(f"getComputedStyle({focused}).outlineStyle") != "none"
            box = json.loads(hand.sees(f"JSON.stringify({focused}.getBoundingClientRect())"))
            assert box["top"] < 900, "what has the focus is in view"
            assert box["bottom"] > 0, "what has the focus is in view"
            hand.press("Tab")
        assert places == sorted(set(places)), "never back, never twice"
        assert len(places) > 30
        assert {"a", "summary", "input"} <= set(names)

        hand.open(file)
        while hand.sees(f"{focused}.localName") != "summary":
            hand.press("Tab")
        unfolded = f"{focused}.parentElement.open"
        before = hand.sees(unfolded)
        hand.press("Enter")
        assert hand.sees(unfolded) is not before
        hand.press("Space")
        assert hand.sees(unfolded) is before

        hand.open(file)
        while hand.sees(f"{focused}.hash || ''")[:2] != "#t":
            hand.press("Tab")
        hand.press("Enter")
        assert hand.sees("document.querySelector(':target').matches('.card')")
        assert hand.sees("document.querySelector(':target').getBoundingClientRect().top") < 900

        hand.open(file)
        everything = hand.sees(seen)
        while hand.sees(f"{focused}.localName") != "input":
            hand.press("Tab")
        counts = []
        for _ in range(3):
            hand.press("ArrowDown")
            counts.append(hand.sees(seen))
        assert sum(counts) == everything, "each change alone, one after the other"
        assert len(set(counts)) > 1
        for _ in range(3):
            hand.press("ArrowUp")
        assert hand.sees(seen) == everything


def test_hostile_titles_are_read_as_they_were_written(tmp_path: Path) -> None:
    texts = [
        "<script>document.title='gone'</script>", "</style><style>*{display:none}</style>", "</title>",
        "\"'><img src=x onerror=\"document.title='gone'\">", "<a href='javascript:alert(1)'>x</a>", "y" * 10_000,
    ]  # fmt: skip
    value = change(section(texts[0], texts[1], *(ticket(f"1.{n}", text, "ready") for n, text in enumerate(texts))))
    page = board_page(overview(value))
    script = """
    return {title: document.title, heads: [...page.querySelectorAll('h4')].map(one => one.innerText),
        whole: [...page.querySelectorAll('.card details p')].map(one => one.textContent), images: page.images.length,
        wide: page.documentElement.scrollWidth <= page.documentElement.clientWidth};
    """
    found = browser.asked(page, script, tmp_path)
    assert found["heads"][:-1] == texts[:-1]
    assert found["whole"] == texts[-1:]
    assert (found["title"], found["images"], found["wide"]) == ("app: 0 of 6 done", 0, True)


def test_a_script_that_got_in_would_not_run(page: str, tmp_path: Path) -> None:
    """The policy in the file stops it, and the style sheet still counts."""
    attack = "<script>document.title='gone'</script><img src=x onerror=\"document.title='gone'\"><style>h1{color:red}</style>"
    file = tmp_path / "board.html"
    file.write_text(page.replace("</header>", f"{attack}</header>"), encoding="utf-8")
    title = re.search(r"<title>(.*?)</title>", browser.dom(file, tmp_path / "profile"))
    assert title
    assert html.unescape(title.group(1)) == re.search(r"<title>(.*?)</title>", page)[1]  # type: ignore[index]
    free = tmp_path / "free.html"
    free.write_text(browser.CSP.sub("", file.read_text(encoding="utf-8")), encoding="utf-8")
    assert "<title>gone</title>" in browser.dom(free, tmp_path / "profile")
