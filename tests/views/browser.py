"""A page in a real browser: Chromium without a window, and what a script of ours finds in a copy of the page.

BATON_CHROMIUM    the browser, instead of one found on PATH
axe-core          installed by `npm ci --ignore-scripts` in tests/views/pinned
"""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

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
