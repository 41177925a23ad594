"""The bundle itself: its files, how it comes into a profile and out again, and what it says when Python is missing."""

from __future__ import annotations

import json
import re
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.dsh.kit import LIMIT, Home, packed
from tests.dsh.session import Script
from tests.dsh.test_runs import ONE, complete, run_headless
from tests.kit import make_world

pytestmark = pytest.mark.timeout(2 * LIMIT)
MANIFEST = json.loads((ROOT / "package.json").read_text())
SKILL = (ROOT / "skills" / "baton" / "SKILL.md").read_text()


def test_the_manifest_is_what_dsh_expects() -> None:
    assert MANIFEST["type"] == "module"
    assert MANIFEST["dsh"] == {"bundle": {"patch": "./cordis.patch.yml"}}
    assert "dsh-plugin" in MANIFEST["keywords"]
    assert "scripts" not in MANIFEST
    source = (ROOT / "baton_cli" / "__init__.py").read_text()
    version = re.search(r'__version__ = "([^"]+)"', source)
    assert version is not None
    npm = re.sub(r"\.dev(\d+)$", r"-dev.\1", re.sub(r"(a|b|rc)(\d+)$", r"-\1.\2", version[1]))
    assert MANIFEST["version"] == npm
    assert len((ROOT / "index.js").read_text().splitlines()) < 80


def test_the_skill_is_what_dsh_expects() -> None:
    lines = SKILL.splitlines()
    assert lines[:2] == ["---", "name: baton"]
    assert lines[2].startswith("description: ")
    assert len(lines[2].removeprefix("description: ")) <= 500
    assert lines[3] == "---"
    for word in ("completed", "failed", "stopped", "max_tokens", "refused", "lost"):
        assert f"`{word}`" in SKILL
    for kind in ("dispatch", "recover", "resolve_merge", "wait", "blocked", "complete"):
        assert f"`{kind}`" in SKILL


def test_linked_and_removed(make_home: Callable[..., Home]) -> None:
    home = make_home()
    home.plugin("headless", "add", str(ROOT))
    assert "dsh-openspec-baton" in home.plugin("headless", "list").stdout
    dumped = home.run("--profile", "headless", "--dump-config").stdout
    assert re.search(r"id: baton\n\s+name: dsh-openspec-baton", dumped), dumped[-2000:]
    home.plugin("headless", "remove", "dsh-openspec-baton")
    assert "dsh-openspec-baton" not in home.run("--profile", "headless", "--dump-config").stdout


def test_packed(make_home: Callable[..., Home], tmp_path: Path) -> None:
    home = make_home()
    archive = packed(home.dsh, tmp_path / "packed")
    with tarfile.open(archive) as tar:
        names = {name.removeprefix("package/") for name in tar.getnames()}
    assert {"index.js", "cordis.patch.yml", "skills/baton/SKILL.md", "baton", "pyproject.toml", "LICENSE"} <= names
    assert not [name for name in names if "__pycache__" in name or name.startswith(("tests/", ".", "node_modules"))]
    home.plugin("headless", "add", str(archive))
    world, script = make_world(tmp_path / "project", ONE), Script()
    model = run_headless(home, world, script)
    assert complete(script, model)["integrated"] == 1
    job = next(iter(script.jobs.values()))
    python, launcher = job.seal.split()[:2]
    assert python == home.env["BATON_PYTHON"]
    assert launcher.startswith(str(home.folder / "profiles" / "headless" / "node_modules"))
