"""`baton board` on a real project."""

from __future__ import annotations

import os
import re
import sqlite3
import stat
from pathlib import Path

from baton_cli.core.prompt import seal_key
from tests.conftest import run_git
from tests.kit import baton, baton_json, hand_outs, make_world
from tests.views.scene import make_scene


def test_the_same_board_from_everywhere_without_a_secret(tmp_path: Path) -> None:
    world = make_scene(tmp_path / "lighthouse")
    place = world.root / ".dsh" / "baton" / "board.html"
    before = run_git(world.root, "status", "--porcelain", "--ignored")
    answer = baton_json(world.root, "board")
    page = place.read_bytes()
    assert answer == {
        "schema": "baton.board/1", "path": str(place), "url": place.as_uri(), "changes": 3, "tickets": 17,
        "bytes": len(page),
    }  # fmt: skip
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert run_git(world.root, "status", "--porcelain", "--ignored") == before
    worktree = next(path for path in (world.root / ".dsh/baton/worktrees/add-dark-mode").iterdir() if path.is_dir())
    sub = world.root / "openspec" / "changes"
    for n, folder in enumerate((worktree, sub, world.root)):
        done = baton(folder, "board", "--out", str(tmp_path / f"{n}.html"), env={"TZ": "Asia/Tokyo", "LANG": "C"})
        assert (done.returncode, done.stdout) == (0, f"{tmp_path / f'{n}.html'}\n")
        assert (tmp_path / f"{n}.html").read_bytes() == page
    store = sqlite3.connect(world.root / ".dsh" / "baton" / "queue.db")
    tokens = [row[0] for row in store.execute("SELECT claim_token FROM attempts")]
    store.close()
    assert len(tokens) > 5
    assert not [secret for token in tokens for secret in (token, seal_key(token)) if secret.encode() in page]
    text = page.decode()
    assert "exhausted after attempt 1" in text
    assert len(re.findall("<summary>Receipt <code>[0-9a-f]{12}</code>", text)) == 7
    assert "<pre>baton retry &#39;add-dark-mode#3.3&#39;</pre>" in text


def test_out_and_refusals(tmp_path: Path) -> None:
    world = make_world(tmp_path / "repo")
    inside = baton(world.root, "board", "--out", "my board.html")
    assert inside.stdout == f"{world.root / 'my board.html'}\n"
    assert not (world.root / ".dsh").exists()  # looking makes nothing
    refused = baton(world.root, "board", "--out", str(tmp_path))
    assert refused.returncode == 1
    assert refused.stderr == (
        f"error: the board cannot be written to {str(tmp_path)!r}: Is a directory\nhint: name another file with --out F\n"
    )
    missing = baton_json(world.root, "board", "--out", str(tmp_path / "no" / "f.html"), code=1)
    assert missing["error"]["code"] == "page_unwritable"


def test_a_broken_change_hides_no_other(tmp_path: Path) -> None:
    world = make_world(tmp_path / "repo")
    broken = world.root / "openspec" / "changes" / "odd" / "tasks.md"
    broken.parent.mkdir()
    broken.write_text("- [ ] 1.1 a (after 1.1)\n")
    assert baton_json(world.root, "board", "--out", "b.html")["tickets"] == 3
    page = (world.root / "b.html").read_text()
    assert "its plan cannot be read" in page
    assert "Lay the first stone" in page


def test_archived_changes_on_demand(tmp_path: Path) -> None:
    world = make_world(tmp_path / "repo", "- [ ] 1.1 Lay the first stone\n")
    for action in hand_outs(world.actions()):
        world.finish(action)
    archive = world.root / "openspec" / "changes" / "archive" / "2026-11-29-grow"
    archive.parent.mkdir()
    os.rename(world.tasks.parent, archive)
    (archive.parent / "2026-01-01-bare").mkdir()
    assert baton_json(world.root, "board")["tickets"] == 0
    answer = baton_json(world.root, "board", "--archived")
    assert (answer["changes"], answer["tickets"]) == (1, 1)
    page = Path(answer["path"]).read_text()
    assert "archived as 2026-11-29-grow" in page
    assert "Receipt <code>" in page


def test_a_clone_shows_the_receipts_that_its_history_carries(tmp_path: Path) -> None:
    world = make_world(tmp_path / "repo", "- [ ] 1.1 Lay the first stone\n- [ ] 1.2 Sweep the floor\n")
    world.finish(hand_outs(world.actions(capacity=1))[0])
    world.decide("1.2", "skip", "it is clean")
    here = Path(baton_json(world.root, "board")["path"]).read_text()
    digest = re.findall("<summary>Receipt <code>([0-9a-f]{12})</code>", here)
    assert (len(digest), "not started" in here) == (1, False)
    run_git(world.root, "commit", "-qam", "the ticks")
    run_git(world.root, "merge", "-q", "--no-edit", world.integration)
    run_git(tmp_path, "clone", "-q", str(world.root), "clone")
    for path in world.project.state.glob("queue.db*"):
        path.unlink()
    for place in (tmp_path / "clone", world.root):
        page = Path(baton_json(place, "board", "--out", str(tmp_path / "page.html"))["path"]).read_text()
        assert re.findall("<summary>Receipt <code>([0-9a-f]{12})</code>", page) == digest
        assert "check: test -f README (exit 0, " in page
        assert "2 of 2 tickets done, complete" in page
        assert "not started" not in page
    baton_json(world.root, "actions", "grow", "--session", "s1")  # what is finished is recorded now, its receipt is not
    assert f"Receipt <code>{digest[0]}" in Path(baton_json(world.root, "board")["path"]).read_text()


def test_open_shows_the_file(tmp_path: Path) -> None:
    world = make_world(tmp_path / "repo")
    seen = tmp_path / "seen"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > "{seen}"\n')
    browser.chmod(0o700)
    done = baton(world.root, "board", "--open", "--out", "b.html", env={"BROWSER": f"{browser} %s"})
    assert done.returncode == 0, done.stderr
    assert seen.read_text() == (world.root / "b.html").as_uri()


def test_the_demo_leaves_a_board_of_what_it_keeps(tmp_path: Path) -> None:
    from baton_cli.commands import demo

    world = make_world(tmp_path / "repo")
    place = demo._board(world.root)
    assert place == world.root / ".dsh" / "baton" / "board.html"
    assert "Lay the first stone" in place.read_text()
