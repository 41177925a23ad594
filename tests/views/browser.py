"""A page in a real browser: Chromium without a window, and what a script of ours finds in a copy of the page.

BATON_CHROMIUM    the browser, instead of one found on PATH
axe-core          installed by `npm ci --ignore-scripts` in tests/views/pinned
"""

from __future__ import annotations

import contextlib
import html
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest

AXE = Path(__file__).with_name("pinned") / "node_modules" / "axe-core" / "axe.min.js"
NAMED = os.environ.get("BATON_CHROMIUM")  # read before the environment of the tests is emptied
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CSP = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')
DARK = ("--force-dark-mode", "--blink-settings=preferredColorScheme=0")


def chromium() -> str:
    """The browser's path; skips where there is none."""
    found = NAMED or next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("no Chromium on PATH: install it, or name one in BATON_CHROMIUM")
    return found


def axe() -> str:
    """The source of axe-core; skips where it is not installed."""
    if not AXE.is_file():
        pytest.skip("axe-core is not installed: npm ci --ignore-scripts --prefix tests/views/pinned")
    return AXE.read_text(encoding="utf-8")


def run(page: Path, profile: Path, *options: str, width: int = 1400, height: int = 900) -> str:
    """Load the page, wait until it has nothing more to do, and give back what Chromium prints."""
    command = [
        chromium(), "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-extensions",
        "--no-first-run", "--disable-background-networking", f"--user-data-dir={profile}",
        f"--window-size={width},{height}", *options, page.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8", stdin=subprocess.DEVNULL, timeout=200
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def dom(page: Path, profile: Path, *options: str, width: int = 1400) -> str:
    """The document as the browser has it after loading."""
    return run(page, profile, "--dump-dom", "--virtual-time-budget=60000", *options, width=width)


def asked(page: str, script: str, folder: Path, *options: str, width: int = 1400, frame: int | None = None) -> Any:
    """What the body of an async function finds on the page, shown without its CSP so that a script may look at it.

    `frame` shows the page in a frame so wide: a window of Chromium cannot be as narrow as a phone.
    """
    end = "document.body.insertAdjacentHTML('beforeend', '<pre id=answer></pre>');"
    end += "document.getElementById('answer').textContent = JSON.stringify(value);"
    body = f"(async () => {{ {script} }})().catch(error => ({{error: String(error)}}))"
    call = f"const page = PAGE; {body}.then(value => {{ {end} }});"
    copy = folder / "copy.html"
    bare = CSP.sub("", page, count=1)
    assert bare != page
    if frame is None:
        copy.write_text(bare + f"<script>{call.replace('PAGE', 'document')}</script>", encoding="utf-8")
    else:
        inside = html.escape(bare)
        shown = f'<iframe id=frame width={frame} height=800 srcdoc="{inside}"></iframe>'
        on_load = call.replace("PAGE", "document.getElementById('frame').contentDocument")
        script_text = f"document.getElementById('frame').addEventListener('load', () => {{ {on_load} }});"
        copy.write_text(f"<!doctype html><body>{shown}<script>{script_text}</script>", encoding="utf-8")
    found = re.search(r'<pre id="answer">(.*)</pre>', dom(copy, folder / "profile", *options, width=width), re.DOTALL)
    assert found, "the script gave no answer"
    return json.loads(html.unescape(found.group(1)))


KEYS = {"Tab": (9, ""), "Enter": (13, "\r"), "Space": (32, " "), "ArrowDown": (40, ""), "ArrowUp": (38, "")}
# Chromium speaks over descriptors 3 and 4, whatever they were here.
ON_3_AND_4 = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 100) for end in sys.argv[1:3]]
for end, number in zip(ends, (3, 4)):
    os.dup2(end, number)
    os.close(end)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Hand:
    """Somebody at the keyboard of a page, over Chromium's debugging pipe. The page itself runs no script."""

    def __init__(self, orders: IO[bytes], told: IO[bytes]) -> None:
        self._orders, self._told, self._number, self._session = orders, told, 0, ""

    def open(self, page: Path) -> None:
        """Load a page in the browser's first tab."""
        self._session = ""
        tab = next(one for one in self._call("Target.getTargets")["targetInfos"] if one["type"] == "page")
        self._session = self._call("Target.attachToTarget", targetId=tab["targetId"], flatten=True)["sessionId"]
        self._call("Page.enable")
        self._call("Page.navigate", url=page.as_uri())
        while self._next().get("method") != "Page.loadEventFired":
            pass

    def press(self, name: str) -> None:
        """One key, down and up."""
        code, text = KEYS[name]
        key = {"code": name, "key": " " if name == "Space" else name, "windowsVirtualKeyCode": code}
        down = {"type": "keyDown", "text": text} if text else {"type": "rawKeyDown"}
        self._call("Input.dispatchKeyEvent", **key, **down)
        self._call("Input.dispatchKeyEvent", **key, type="keyUp")

    def sees(self, expression: str) -> Any:
        """What an expression gives on the page."""
        found = self._call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def _call(self, method: str, **parameters: Any) -> Any:
        self._number += 1
        order = {"id": self._number, "method": method, "params": parameters}
        order |= {"sessionId": self._session} if self._session else {}
        self._orders.write(json.dumps(order).encode() + b"\0")
        while (answer := self._next()).get("id") != self._number:
            pass
        assert "error" not in answer, answer
        return answer["result"]

    def _next(self) -> Any:
        text = bytearray()
        while (byte := self._told.read(1)) != b"\0":
            assert byte, "the browser has ended"
            text += byte
        return json.loads(text)


@contextmanager
def hand(page: Path, profile: Path) -> Iterator[Hand]:
    """A browser with the page in it, and somebody at its keyboard."""
    orders, told = os.pipe(), os.pipe()
    command = [
        sys.executable, "-S", "-c", ON_3_AND_4, str(orders[0]), str(told[1]), chromium(), "--headless=new",
        "--no-sandbox", "--disable-gpu", "--disable-extensions", "--no-first-run", "--disable-background-networking",
        f"--user-data-dir={profile}", "--window-size=1400,900", "--remote-debugging-pipe", "about:blank",
    ]  # fmt: skip
    with subprocess.Popen(
        command, pass_fds=(orders[0], told[1]), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, start_new_session=True,
    ) as browser:  # fmt: skip
        os.close(orders[0])
        os.close(told[1])
        try:
            with os.fdopen(orders[1], "wb", buffering=0) as ours, os.fdopen(told[0], "rb") as theirs:
                found = Hand(ours, theirs)
                found.open(page)
                yield found
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(browser.pid, signal.SIGKILL)
