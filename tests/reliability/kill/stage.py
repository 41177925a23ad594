"""Where a scenario plays: its beginning is made once and copied back for every point, always to the same place.

(Worktrees hold absolute paths.) And what is compared in the end: everything that lasts, with made-up names replaced.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests import invariants
from tests.conftest import run_git
from tests.kit import World

FLOCKS = re.compile(
    r"baton/integration\.lock|\.dsh/baton/locks/[^/]+\.lock"
)  # never deleted; locked while somebody holds


@dataclass
class Stage:
    """One folder of this process. `live` is where everything happens: the project, the user's state folder, TMPDIR."""

    base: Path
    notes: dict[str, Any] = field(default_factory=dict)
    _checkouts: dict[str, invariants.Checkout] = field(default_factory=dict)
    _notes: dict[str, Any] = field(default_factory=dict)

    @property
    def live(self) -> Path:
        return self.base / "live"

    @property
    def temporary(self) -> Path:
        return self.live / "tmp"

    @property
    def root(self) -> Path:
        return self.live / "project"

    @property
    def log(self) -> Path:
        return self.base / "victim.log"

    def begin(self, name: str, build: Callable[[Path], Any]) -> None:
        """The scenario's beginning, in place."""
        if (self.base / name).is_dir():
            script = 'rm -rf "$2" && cp -a "$1" "$2"'
            subprocess.run(["/bin/sh", "-c", script, "sh", self.base / name, self.live], check=True)
        else:
            shutil.rmtree(self.live, ignore_errors=True)
            for folder in (self.live, self.temporary, self.live / "state"):
                folder.mkdir(parents=True)
            self._notes[name] = build(self.root)
            if (self.root / ".git").exists():
                self._checkouts[name] = invariants.checkout(self.root)
            shutil.copytree(self.live, self.base / name, symlinks=True)
        self.notes = self._notes[name]

    def checkout(self, name: str) -> invariants.Checkout | None:
        return self._checkouts.get(name)


_stages: dict[Path, Stage] = {}


def entered(base: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """This process's stage at `base`: beginnings that were made stay for its other tests."""
    found = _stages.setdefault(base, Stage(base))
    monkeypatch.setenv("XDG_STATE_HOME", str(found.live / "state"))
    monkeypatch.setenv("TMPDIR", str(found.temporary))
    monkeypatch.setattr(tempfile, "tempdir", str(found.temporary))
    return found


def shape(world: World) -> dict[str, Any]:
    """What lasts: store, branches, worktrees, copies, ticks. Ids made up by chance are replaced by the ticket's."""
    with invariants._opened(world) as connection:
        rows = connection.execute("SELECT * FROM assignments ORDER BY created_at, ticket, rowid").fetchall()
        names = {row["id"].rpartition("-")[2]: row["ticket"] for row in rows}
        columns = ("ticket", "state", "reason", "conflicts", "attempt", "kept")
        flags = ("base", "packet", "prepared_at", "sealed_head", "receipt", "onto", "integrated_commit", "removed_at")
        held = sorted([*(row[name] for name in columns), *(row[name] is not None for name in flags)] for row in rows)
        attempts = connection.execute(
            "SELECT ticket, number, kind, terminal, counted, t.batch IS NOT NULL, t.agent FROM attempts t"
            " JOIN assignments a ON a.id = t.assignment_id ORDER BY ticket, number"
        ).fetchall()
        facts = connection.execute(
            "SELECT key, c.kind, c.revoked_at IS NOT NULL FROM completions c JOIN tickets USING (ticket_id) ORDER BY 1, 2"
        ).fetchall()
        revisions = connection.execute("SELECT change, number FROM revisions ORDER BY 1, 2").fetchall()

    def named(text: str) -> str:
        for mark, ticket in names.items():
            text = text.replace(mark, f"<{ticket}>")
        return text

    state = world.project.state
    return {
        "assignments": held,
        "attempts": [list(row) for row in attempts],
        "completions": [list(row) for row in facts],
        "revisions": [list(row) for row in revisions],
        "tasks": world.tasks.read_text(),
        "branch": _branch(world),
        "refs": sorted(named(line) for line in _refs(world)),
        "worktrees": sorted(named(line) for line in _worktrees(world)),
        "copies": sorted(named(f"{d}/{p.name}") for d in ("packets", "receipts") for p in (state / d).iterdir()),
    }


def _branch(world: World) -> list[str]:
    shown = "--format=%T %(trailers:key=Baton-Ticket,valueonly,separator=%x20) %s"
    log = run_git(world.root, "log", "--first-parent", shown, world.integration, "--", check=False)
    return log.splitlines()


def _refs(world: World) -> list[str]:
    return run_git(world.root, "for-each-ref", "--format=%(refname) %(tree)").splitlines()


def _worktrees(world: World) -> list[str]:
    found = []
    for place in sorted(world.project.worktrees.glob("*/*")):
        said = run_git(place, "status", "--porcelain", "--branch", "--ignored", check=False).splitlines()
        merging = (place / run_git(place, "rev-parse", "--git-path", "MERGE_HEAD", check=False)).exists()
        found.append(f"{place.name} {said} {'merging' if merging else ''} {run_git(place, 'rev-parse', 'HEAD^{tree}')}")
    registered = run_git(world.root, "worktree", "list", "--porcelain").splitlines()
    return [*found, *(line for line in registered if line.startswith(("worktree", "locked", "prunable")))]


def left_overs(stage: Stage) -> list[str]:
    """Lock files, temporary files and folders, in the repository, Baton's own folder, the plan's and TMPDIR."""
    found = [str(path) for path in stage.temporary.iterdir()]
    for folder, _, files in os.walk(stage.live):
        for name in files:
            path = os.path.join(folder, name)
            inside = os.path.relpath(path, stage.live)
            if name.startswith("tmp_obj_") and "/.git/objects/" in inside:
                continue  # half an object that nothing refers to: git's own gc removes it
            if FLOCKS.search(inside):
                found += [f"{inside} is held"] if _held(path) else []
            elif name.endswith(".lock") or name.startswith((".baton", "baton-index", "tmp")) or _half_written(inside):
                found.append(inside)
    return found


def _held(path: str) -> bool:
    with open(path, "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _half_written(inside: str) -> bool:
    """Files of Baton's own folders whose names begin with a dot, and what waits to be renamed."""
    name = inside.rpartition("/")[2]
    own = "/.dsh/baton/" in inside and "/worktrees/" not in inside and name.startswith(".") and name != ".gitignore"
    return own or "/.dsh/baton/tmp/" in inside or name.startswith((".exclude.", ".gitignore."))
