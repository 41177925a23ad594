"""The pinned DSH, installed once into a cache folder.

BATON_DSH         a folder with package.json and package-lock.json (or one where they are installed already)
BATON_DSH_CACHE   where it is installed, instead of a folder in the user's cache
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

PINNED = Path(__file__).with_name("pinned")
# Read before the environment of the tests is emptied.
NAMED = os.environ.get("BATON_DSH")
CACHE = os.environ.get("BATON_DSH_CACHE")
USER_CACHE = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
MANIFESTS = ("package.json", "package-lock.json")


@dataclass(frozen=True)
class Dsh:
    """An installed DSH, the Node it runs on, and pnpm, which `dsh plugin` wants on PATH."""

    folder: Path

    @property
    def path(self) -> str:
        """What to put before PATH."""
        parts = [self.folder / "node_modules" / ".bin", self.folder / "pnpm" / "node_modules" / ".bin"]
        own = sorted((self.folder / "node_modules").glob("node-*/bin"))
        return os.pathsep.join(map(str, [*own, *parts]))

    @property
    def complete(self) -> bool:
        return all((self.folder / name / "node_modules" / ".bin").is_dir() for name in ("", "pnpm"))


def _npm(folder: Path, *words: str) -> None:
    command = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        said = done.stderr.strip().splitlines()
        pytest.skip(f"DSH cannot be installed (is there a network?): {said[-1] if said else done.returncode}")


def installed() -> Dsh:
    """The DSH to test with; skips where there is none and none can be had."""
    source = Path(NAMED).expanduser() if NAMED else PINNED
    if NAMED and Dsh(source).complete:
        return Dsh(source)
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            pytest.skip(
                f"the tests on the real DSH need {program}: install Node, or name an installed DSH in BATON_DSH"
            )
    import fcntl  # not on Windows, where these tests skip

    key = hashlib.sha256(b"\0".join((source / name).read_bytes() for name in MANIFESTS)).hexdigest()[:12]
    place = Path(CACHE) if CACHE else Path(USER_CACHE) / "baton-dsh"
    folder = place / key
    if Dsh(folder).complete:
        return Dsh(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
        with (place / f"{key}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # workers that run at once install it once
            if not Dsh(folder).complete:
                _install(source, folder)
    except OSError as error:
        pytest.skip(f"DSH cannot be installed into {place} ({error.strerror}): name a folder in BATON_DSH_CACHE")
    return Dsh(folder)


def _install(source: Path, folder: Path) -> None:
    """Beside the final place, then renamed: an installation that was killed is not used."""
    mine = folder.with_name(f"{folder.name}.building-{os.getpid()}")
    (mine / "pnpm").mkdir(parents=True)
    try:
        for name in MANIFESTS:
            shutil.copyfile(source / name, mine / name)
        _npm(mine)
        (mine / "pnpm" / "package.json").write_text(json.dumps({"private": True}))
        _npm(mine / "pnpm", "pnpm@10")
        mine.rename(folder)
    finally:
        shutil.rmtree(mine, ignore_errors=True)
