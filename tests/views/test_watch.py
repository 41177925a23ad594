"""The view that stays: what it writes to the terminal, and what it leaves behind."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from baton_cli.errors import BatonError
from baton_cli.views import watch
from baton_cli.views.words import span


class Terminal:
    """A screen that knows the few sequences a watch may use; anything else fails the test."""

    def __init__(self, rows: int = 10) -> None:
        self.rows = [""] * rows
        self.row = 0
        self.other = self.hidden = False
        self.wrap = True
        self.left = ""  # on the screen that was there before

    def feed(self, text: str) -> None:
        for piece in re.findall(r"\x1b\[[?0-9;]*[A-Za-z]|[^\x1b]+", text):
            if not piece.startswith("\x1b"):
                if self.other:
                    assert "\n" not in piece
                    self.rows[self.row] += piece
                else:
                    self.left += piece
            elif piece in ("\x1b[?1049h", "\x1b[?1049l"):
                self.other = piece.endswith("h")
            elif piece in ("\x1b[?25h", "\x1b[?25l"):
                self.hidden = piece.endswith("l")
            elif piece in ("\x1b[?7h", "\x1b[?7l"):
                self.wrap = piece.endswith("h")
            elif match := re.fullmatch(r"\x1b\[(\d+);1H", piece):
                self.row = int(match.group(1)) - 1
            elif piece == "\x1b[K":
                self.rows[self.row] = ""
            elif piece == "\x1b[J":
                self.rows[self.row :] = [""] * (len(self.rows) - self.row)
            else:
                assert re.fullmatch(r"\x1b\[(0m|\?2026[hl])", piece), repr(piece)

    @property
    def restored(self) -> bool:
        return not self.other and not self.hidden and self.wrap


Step = Callable[[], object]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    """What is written goes to it; `terminal.writes` holds each piece."""
    screen = Terminal()
    monkeypatch.setattr(watch.output, "write", lambda text, stream=None: (writes.append(text), screen.feed(text)))
    monkeypatch.setattr(watch.shutil, "get_terminal_size", lambda fallback=(80, 24): os.terminal_size((80, 10)))
    monkeypatch.setattr(watch, "REST", 0)  # the tests are faster than a picture
    writes: list[str] = []
    screen.writes = writes  # type: ignore[attr-defined]
    return screen


def waits(*steps: Step) -> Callable[[float], None]:
    """A wait in which these things happen, one after another; then somebody presses Ctrl-C."""
    left = iter(steps)

    def wait(_seconds: float) -> None:
        step = next(left, None)
        if step is None:
            raise KeyboardInterrupt
        step()

    return wait


def test_only_what_changed_is_written_and_the_terminal_is_put_back(terminal: Terminal) -> None:
    state = {"text": "head\none\ntwo\nthree\n", "stamp": 0}
    seen: list[list[str]] = []

    def change(text: str) -> Step:
        return lambda: (seen.append(terminal.rows[:5]), state.update(text=text, stamp=int(str(state["stamp"])) + 1))

    look: Step = lambda: seen.append(terminal.rows[:5])  # noqa: E731
    nothing: Step = lambda: terminal.writes.append("nothing happens")  # type: ignore[attr-defined]  # noqa: E731
    watch.on_screen(
        lambda _size: str(state["text"]),
        lambda: state["stamp"],
        waits(change("head\none\nTWO\nthree\n"), nothing, change("head\n"), look),
    )
    assert seen == [
        ["head", "one", "two", "three", ""], ["head", "one", "TWO", "three", ""], ["head", "", "", "", ""],
    ]  # fmt: skip
    writes = terminal.writes  # type: ignore[attr-defined]
    assert "TWO" in writes[2]
    assert "one" not in writes[2]
    assert writes[3] == "nothing happens"
    assert terminal.restored
    assert terminal.left == "head\n"


def test_a_picture_is_cut_to_the_rows_and_drawn_anew_after_a_resize(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "".join(f"line {n}\n" for n in range(30))
    sizes = []

    def narrow() -> None:
        assert terminal.rows[:2] + terminal.rows[-1:] == ["line 0", "line 1", "and 21 more lines"]
        terminal.rows = ["what a terminal makes of it"] * 5
        monkeypatch.setattr(watch.shutil, "get_terminal_size", lambda fallback=(80, 24): os.terminal_size((40, 5)))

    def draw(size: watch.Size) -> str:
        sizes.append(size)
        return text

    watch.on_screen(draw, lambda: 0, waits(narrow, lambda: None))
    assert terminal.rows == ["line 0", "line 1", "line 2", "line 3", "and 26 more lines"]
    assert sizes == [(80, 10), (40, 5)]


def test_ages_are_drawn_each_second_where_that_is_cheap(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(watch.time, "monotonic", lambda: now[0])
    drawn: list[float] = []

    def later(seconds: float) -> Step:
        return lambda: now.__setitem__(0, now[0] + seconds)

    watch.on_screen(lambda _size: drawn.append(now[0]) or "x\n", lambda: 0, waits(*[later(watch.TICK / 2)] * 5))  # type: ignore[func-returns-value]
    assert drawn == [100.0, 100.0 + watch.TICK, 100.0 + 2 * watch.TICK]


def test_ages_of_a_costly_picture_are_drawn_seldom(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(watch, "REST", 25)
    monkeypatch.setattr(watch.time, "monotonic", lambda: now[0])
    drawn: list[float] = []

    def draw(_size: watch.Size) -> str:
        drawn.append(now[0])
        now[0] += 1.0  # so long it takes
        return "x\n"

    def later() -> None:
        now[0] += watch.BEAT / 2

    watch.on_screen(draw, lambda: 0, waits(*[later] * 6))
    assert len(drawn) == 4, "the first, one a tick after it, and then one a beat"


def test_a_costly_picture_is_drawn_less_often(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(watch, "REST", 25)
    monkeypatch.setattr(watch.time, "monotonic", lambda: now[0])
    stamps = iter(range(99))
    begun: list[float] = []

    def draw(_size: watch.Size) -> str:
        begun.append(now[0])
        now[0] += 0.1
        return f"{now[0]}\n"

    def second() -> None:
        now[0] += 1

    watch.on_screen(draw, lambda: next(stamps), waits(*[second] * 9))
    assert len(begun) == 4
    assert min(after - before for before, after in pairwise(begun[1:])) >= 0.1 * watch.REST


def test_what_cannot_be_read_is_shown_and_comes_back(terminal: Terminal) -> None:
    found: list[str | BatonError] = ["fine\n", BatonError("store_unusable", "the disk is full", "free some"), "again\n"]
    stamps = iter(range(9))
    seen: list[list[str]] = []
    look: Step = lambda: seen.append(terminal.rows[:2])  # noqa: E731

    def draw(_size: watch.Size) -> str:
        value = found.pop(0)
        if isinstance(value, BatonError):
            raise value
        return value

    watch.on_screen(draw, lambda: next(stamps), waits(look, look))
    assert seen == [["fine", ""], ["error: the disk is full", "hint: free some"]]
    assert terminal.left == "again\n"
    with pytest.raises(BatonError):
        watch.on_screen(lambda _size: draw_refused(), lambda: 0, waits())


def draw_refused() -> str:
    raise BatonError("no_such_change", "no change 'x'", "")


def test_sigterm_puts_the_terminal_back(terminal: Terminal) -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as ended:
        watch.on_screen(
            lambda _size: "x\n", lambda: 0, waits(lambda: os.kill(os.getpid(), signal.SIGTERM), lambda: None)
        )
    assert ended.value.code == 143
    assert terminal.restored
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_stream_says_each_change_once(capsys: pytest.CaptureFixture[str]) -> None:
    state = {"text": "one\n", "stamp": 0}
    steps: list[Step] = [
        lambda: state.update(text="two\n"),  # no stamp: nobody looks
        lambda: state.update(stamp=1),
        lambda: state.update(stamp=2),  # the same text again
        lambda: state.update(text="three\n", stamp=3),
    ]
    watch.as_stream(lambda: str(state["text"]), lambda: state["stamp"], waits(*steps, lambda: None))
    assert capsys.readouterr().out == "one\ntwo\nthree\n"


@pytest.mark.parametrize(
    ("pages", "said"), [(True, "error: it is broken\nhint: mend it\n"), (False, '"code":"bad_config"')]
)
def test_a_project_that_cannot_be_read_for_a_while_is_no_end(
    capsys: pytest.CaptureFixture[str], pages: bool, said: str
) -> None:
    """In a pipe as on a terminal; for a program as an answer of its own."""
    state: dict[str, object] = {"broken": False, "stamp": 0}

    def read() -> str:
        if state["broken"]:
            raise BatonError("bad_config", "it is broken", "mend it")
        return "fine\n"

    steps = [lambda: state.update(broken=True, stamp=1), lambda: state.update(broken=False, stamp=2)]
    watch.as_stream(read, lambda: state["stamp"], waits(*steps, lambda: None), pages=pages)
    shown = capsys.readouterr().out
    assert said in shown
    assert shown.endswith("fine\n")


def page(name: str, since: float, sign: float, lease: float, *, state: str = "running") -> str:
    """Rows as `status` shows them."""
    ages = f"{span(since)}, last sign {span(sign)} ago  lease {span(lease)}"
    return f"grow  0 of 2 tickets done\n\n  ● 1.1  {name:<20}  {state}  agent-1  attempt 1  {ages}\n"


def test_a_page_in_a_pipe_is_said_again_only_when_more_than_its_ages_differ(capsys: pytest.CaptureFixture[str]) -> None:
    pages = [
        page("Lay the first stone", 8, 2, 7000), page("Lay the first stone", 12, 6, 6900),
        page("Lay the first stone", 720, 1, 7200), page("Lay the first stone", 6480, 60, 90000),
        page("Lay the first stone", 6500, 60, 90000, state="sealed"), page("Lay a second stone", 6600, 60, 90000),
    ]  # fmt: skip
    left, stamps = iter(pages), iter(range(99))
    watch.as_stream(lambda: next(left), lambda: next(stamps), waits(*[lambda: None] * 5), pages=True)
    shown = re.split(r"\n\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ\n", capsys.readouterr().out)
    assert shown == [pages[0], pages[4], pages[5]]


def test_the_stamp_differs_after_every_change(tmp_path: Path) -> None:
    from baton_cli import cli
    from tests.kit import hand_outs, make_world

    world = make_world(tmp_path / "repo")
    seen = [cli.stamp(world.project)]
    (action, *_) = hand_outs(world.actions())
    seen.append(cli.stamp(world.project))
    world.bind(action, "agent-1")
    seen.append(cli.stamp(world.project))
    world.tasks.write_text(world.tasks.read_text() + "- [ ] 2.2 More\n")
    seen.append(cli.stamp(world.project))
    (world.root / "openspec" / "changes" / "other").mkdir()
    seen.append(cli.stamp(world.project))
    assert len(set(seen)) == 5
    assert cli.stamp(world.project) == seen[-1]
