"""The recipes of docs/ci.md, run as they stand there."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests import invariants
from tests.conftest import ROOT, run_git
from tests.kit import CHECK, MAIN, World, hand_outs, kinds, make_world

PAGE = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
SCRIPTS = {found[1]: found[0] for found in re.findall(r"```sh\n(# (\w+\.sh).*?)```", PAGE, re.S)}


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder with `baton`, this source tree's, and an `openspec` that writes down how it was called."""
    folder = tmp_path / "bin"
    folder.mkdir()
    words = {
        "baton": f'exec {shlex.quote(sys.executable)} {shlex.quote(str(MAIN))} "$@"',
        "openspec": f'echo "$@" >>{shlex.quote(str(tmp_path / "called"))}',
    }
    for name, line in words.items():
        (folder / name).write_text(f"#!/bin/sh\n{line}\n")
        (folder / name).chmod(0o755)
    return folder


def run(name: str, place: Path, programs: Path, *words: str, input: str = "") -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    command = ["sh", "-c", SCRIPTS[name], name, *words]
    return subprocess.run(command, cwd=place, env=env, input=input, capture_output=True, text=True, timeout=120)


def test_every_script_of_the_page_is_tried_here() -> None:
    assert sorted(SCRIPTS) == ["archive.sh", "prove.sh", "send.sh", "settle.sh"]


def test_a_change_is_archived_only_with_its_evidence(tmp_path: Path, programs: Path) -> None:
    world = make_world(tmp_path / "project", "- [ ] 1.1 Lay a stone\n")
    assert kinds(world.run_to_end()) == ["complete"]
    early = run("archive.sh", world.root, programs, "grow")
    assert early.returncode == 1
    assert "! the work on grow is not in what is checked out" in early.stdout
    assert not (tmp_path / "called").exists()
    run_git(world.root, "merge", "-q", "--ff-only", world.integration)
    run_git(world.root, "commit", "-q", "-am", "Tick grow")
    place = tmp_path / "clone"
    run_git(tmp_path, "clone", "-q", world.root.as_uri(), str(place))
    done = run("archive.sh", place, programs, "grow")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "called").read_text() == "archive grow --yes\n"
    tasks = place / "openspec/changes/grow/tasks.md"
    tasks.write_text(tasks.read_text() + "- [x] 1.2 Lay another\n")
    refused = run("archive.sh", place, programs, "grow")
    assert refused.returncode == 1
    assert "first: 1.2 in line 2" in refused.stdout
    assert (tmp_path / "called").read_text() == "archive grow --yes\n"
    shallow = tmp_path / "shallow"
    run_git(tmp_path, "clone", "-q", "--depth", "1", world.root.as_uri(), str(shallow))
    cut = run("archive.sh", shallow, programs, "grow")
    assert cut.returncode == 1
    assert "git fetch --unshallow" in cut.stdout
    assert "fetch-depth: 0" in PAGE


def sent(tmp_path: Path, programs: Path, config: str) -> tuple[World, dict[str, str], Path]:
    """A world whose one ticket is worked on and was proved on the other machine; the action, and the receipt."""
    world = make_world(tmp_path / "home" / "project", "- [ ] 1.1 Lay a stone\n", config=config)
    server = tmp_path / "server.git"
    run_git(tmp_path, "init", "-q", "--bare", str(server))
    run_git(world.root, "remote", "add", "origin", str(server))
    action = hand_outs(world.actions())[0]
    world.work(action)
    name = action["assignment_id"]
    done = run("send.sh", world.root, programs, name, action["branch"], "origin")
    assert done.returncode == 0, done.stderr
    there = tmp_path / "there"
    run_git(tmp_path, "clone", "-q", "--branch", action["branch"], server.as_uri(), str(there))
    receipt = tmp_path / "receipt.json"
    packet = tmp_path / "home" / f"packet-{name}.json"
    done = run("prove.sh", there, programs, str(packet), str(receipt))
    assert done.returncode == 0, done.stderr
    assert run_git(there, "status", "--porcelain") == ""
    return world, action, receipt


def test_the_checks_run_on_another_machine(tmp_path: Path, programs: Path) -> None:
    allowed = re.findall(r"```toml\n(.*?)```", PAGE, re.S)[0]
    world, action, receipt = sent(tmp_path, programs, CHECK + allowed)
    words = (action["assignment_id"], str(receipt))
    done = run("settle.sh", world.root, programs, *words, input=action["claim_token"] + "\n")
    assert done.returncode == 0, done.stderr
    assert kinds(world.actions()) == ["complete"]
    invariants.check(world)
    audit = subprocess.run(
        [str(programs / "baton"), "audit", "grow"], cwd=world.root, capture_output=True, text=True, timeout=60
    )
    assert audit.returncode == 0, audit.stdout
    assert "sealed on another machine" in audit.stdout


def test_without_the_setting_such_a_receipt_is_refused(tmp_path: Path, programs: Path) -> None:
    world, action, receipt = sent(tmp_path, programs, CHECK)
    words = (action["assignment_id"], str(receipt))
    done = run("settle.sh", world.root, programs, *words, input=action["claim_token"] + "\n")
    assert done.returncode == 1
    assert "receipts from other machines are not accepted" in done.stderr
