"""The real OpenSpec beside Baton."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

OPENSPEC = "@fission-ai/openspec@1.13.2"


@pytest.fixture(scope="session")
def openspec(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The real command, from BATON_OPENSPEC or the npm registry; the test is skipped where neither can be had."""
    given = os.environ.get("BATON_OPENSPEC")
    if given:
        return Path(given)
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("needs npm (or BATON_OPENSPEC naming the openspec command)")
    place = tmp_path_factory.mktemp("openspec")
    words = [npm, "install", "--prefix", str(place), "--ignore-scripts", "--no-audit", "--no-fund", OPENSPEC]
    done = subprocess.run(words, capture_output=True, text=True, timeout=240, check=False)
    if done.returncode:
        pytest.skip(f"npm cannot install {OPENSPEC}: {done.stderr.strip().splitlines()[-1:]}")
    return place / "node_modules" / ".bin" / "openspec"
