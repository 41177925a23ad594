"""Make the pictures of the README: docs/queue.svg (the queue view) and docs/board.png (the board in Chromium).

Both show a real project, the one that the tests of the views look at. Run it from anywhere, with an environment that has
the test dependencies: `python docs/pictures.py`. Without Chromium it makes the queue view alone.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent))

WIDTH = 104  # columns of the queue view
BOARD = (1480, 1240)  # pixels
SHOWN_AS = "/home/ada/lighthouse"  # where the project seems to be
FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"


def queue_svg(text: str, title: str, width: int) -> str:
    """What a terminal shows, as SVG; Rich's own form without the fonts that it would fetch."""
    from io import StringIO

    from rich._export_format import CONSOLE_SVG_FORMAT
    from rich.console import Console
    from rich.text import Text

    console = Console(file=StringIO(), record=True, width=width, force_terminal=True, highlight=False)
    for line in text.splitlines():
        console.print(Text.from_ansi(line), soft_wrap=True)
    form = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    form = form.replace("Fira Code, monospace", FONT).replace(
        "<!-- Generated with Rich https://www.textualize.io -->", ""
    )
    return "\n".join(line.rstrip() for line in console.export_svg(title=title, code_format=form).splitlines()) + "\n"


def scene(folder: Path) -> tuple[dict[str, Any], dict[str, Any], float]:
    """The values of `status` and `board` of the project, and its time."""
    from baton_cli import context
    from baton_cli.observer import Observer
    from tests.views.scene import make_scene

    world = make_scene(folder / "lighthouse")
    for log in world.project.common_dir.glob("worktrees/*/logs/HEAD"):
        os.utime(log, (world.clock.seconds,) * 2)  # a commit is a sign of life, and was made in that time
    world.clock.seconds += 75
    with context.opened(world.project, create=False, clock=world.clock) as surroundings:
        looks = Observer(surroundings)
        values = (looks.status("add-dark-mode"), looks.board())
    status, board = json.loads(json.dumps(values).replace(str(world.root), SHOWN_AS))
    return status, board, world.clock.seconds


def board_png(page: str, folder: Path) -> bool:
    """A picture of the page, where there is a Chromium."""
    program = next(
        (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
    )
    if program is None:
        return False
    file = folder / "board.html"
    file.write_text(page, encoding="utf-8")
    options = [
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        f"--user-data-dir={folder / 'profile'}",
    ]
    size = ",".join(map(str, BOARD))
    picture = DOCS / "board.png"
    command = [program, *options, f"--window-size={size}", f"--screenshot={picture}", file.as_uri()]
    subprocess.run(command, check=True, capture_output=True)
    return True


def main() -> None:
    """Make both pictures."""
    from baton_cli.views.board import board_page
    from baton_cli.views.queue import queue_view

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        settings = folder / "gitconfig"
        settings.write_text("[user]\n\tname = Ada\n\temail = ada@example.invalid\n")
        os.environ.update(
            HOME=name, XDG_STATE_HOME=name, GIT_CONFIG_GLOBAL=str(settings), BATON_LAUNCHER="baton", TZ="UTC"
        )
        status, board, now = scene(folder)
        text = queue_view(status, now=now, colour=True, width=WIDTH, unicode=True)
        (DOCS / "queue.svg").write_text(queue_svg(text, "baton status add-dark-mode", WIDTH), encoding="utf-8")
        if not board_png(board_page(board), folder):
            sys.stderr.write("no Chromium: docs/board.png stays as it is\n")


if __name__ == "__main__":
    main()
