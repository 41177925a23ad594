"""The tutorial, run as it stands: from `openspec init` to a change that is landed, proved and archived."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, run_git
from tests.kit import MAIN

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="the project of the tutorial needs make")


def test_the_tutorial(openspec: Path, tmp_path: Path) -> None:
    text = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert len(blocks) > 8
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "openspec").symlink_to(openspec)
    (programs / "baton").write_text(f"#!/bin/sh\nexec '{sys.executable}' '{MAIN}' \"$@\"\n")
    (programs / "baton").chmod(0o755)
    script = tmp_path / "tutorial.sh"
    script.write_text("set -eu\n" + "".join(f"echo '== {number}'\n{block}" for number, block in enumerate(blocks)))
    place = tmp_path / "somewhere"
    place.mkdir()
    env = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "OPENSPEC_TELEMETRY": "0", "DO_NOT_TRACK": "1"}
    done = subprocess.run(["sh", str(script)], cwd=place, env=env, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    said = dict(re.findall(r"^== (\d+)\n(.*?)(?=^== |\Z)", done.stdout, re.DOTALL | re.MULTILINE))
    assert "complete: 3 of 3 done" in said["5"], said["5"]
    assert "more-words is landed" in said["7"]
    assert said["8"].count("each of 3 ticked tickets is proved") == 2, "before and after the archive"
    project = place / "hello"
    assert sorted(path.name for path in (project / "words").iterdir()) == ["de", "en", "es"]
    archived = next((project / "openspec" / "changes" / "archive").glob("*-more-words"))
    assert (archived / "tasks.md").read_text().count("- [x] ") == 3
    assert (project / "openspec" / "specs" / "greeting" / "spec.md").is_file()
    assert run_git(project, "status", "--porcelain") == ""
    assert run_git(project, "branch", "--format=%(refname:short)") == "main"
    assert run_git(project, "for-each-ref", "refs/baton") == ""
