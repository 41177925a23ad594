"""Text from others stays text, secrets stay where they belong, and only the user's own commands are run."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
from pathlib import Path

import pytest

from tests import invariants
from tests.conftest import run_git
from tests.kit import World, baton, baton_json, hand_outs, make_world, seal_command, seal_key

EVIL = "\x1b]0;owned\x07\x1b[31mred\x1b[0m\x9b2J\u202egnp\u2028x $(touch pwned) `touch pwned` '; touch pwned; \""
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")

pytestmark = pytest.mark.usefixtures("swift_git")


@pytest.fixture
def evil(tmp_path: Path) -> World:
    """A change whose every text wants to be more than text."""
    return make_world(tmp_path / "project", f"## 1. {EVIL}\n\n- [ ] 1.1 Lay {EVIL}\n- [ ] 1.2 Next\n".encode())


def test_no_verb_lets_a_text_act_on_the_terminal_or_a_shell(evil: World, tmp_path: Path) -> None:
    action = hand_outs(evil.actions("s1", capacity=1))[0]
    evil.bind(action, EVIL)
    name = "odd \x1b[31m\n$(touch pwned).txt"
    evil.work(action, {name: "x\n"})
    verbs = [
        ("plan", "grow"), ("status",), ("status", "grow"), ("explain", "1.1"), ("log", "grow"), ("diff", "1.1"),
        ("actions", "grow", "--session", f"s{EVIL}"), ("pause", "grow", "--why", EVIL), ("resume", "grow"),
        ("actions", EVIL, "--session", "s"), ("receipt", "show", EVIL), ("explain", EVIL), ("skip", "1.2", "--why", EVIL),
        ("seal", EVIL, "--key", EVIL), ("abandon", "1.1", "--why", EVIL), ("audit", "grow"), ("clean",), ("doctor",),
    ]  # fmt: skip
    for verb in verbs:
        done = baton(evil.root, *verb)
        assert done.returncode in (0, 1, 2), (verb, done.stdout, done.stderr)
        assert "Traceback" not in done.stderr
        said = done.stdout + done.stderr
        assert said, verb
        assert not CONTROL.search(said), (verb, said)
        told = baton(evil.root, *verb, "--json").stdout
        assert not CONTROL.search(told.rstrip("\n")), (verb, told)
    assert not list(tmp_path.rglob("pwned"))


@pytest.mark.parametrize("name", ["../../etc/x", "a/../../b", "/etc/passwd", "..", "x\0y", "a/b", ".git", "queue.db"])
def test_no_id_leads_out_of_its_folder(tmp_path: Path, name: str) -> None:
    world = make_world(tmp_path / "project")
    world.actions()
    before = set(tmp_path.rglob("*"))
    calls = [("receipt", "show", name), ("packet", "export", name, "--out", str(tmp_path / "out")), ("plan", name)]
    for words in calls:
        if "\0" not in name:
            done = baton(world.root, *words, "--json")
            assert done.returncode in (1, 2), done.stdout
            assert json.loads(done.stdout)["error"]["code"] in (
                "unknown_assignment",
                "no_such_change",
                "no_such_ticket",
                "bad_change_name",
            )
    assert {path for path in tmp_path.rglob("*") if "__pycache__" not in path.parts} == before


def test_everything_of_batons_is_the_users_alone_whatever_the_umask(tmp_path: Path) -> None:
    world = make_world(tmp_path / "project")
    before = os.umask(0)
    try:
        action = hand_outs(world.actions("s1"))[0]
        world.work(action)
        world.seal(action)
        world.reconcile(action)
        baton(world.root, "board")
    finally:
        os.umask(before)
    state, kept = world.project.state, 0
    for folder, folders, files in os.walk(state):
        if Path(folder) == world.project.worktrees:
            folders.clear()  # a checkout has the modes that git gives it; its way in is closed
        for name in (*folders, *files):
            mode = (Path(folder) / name).stat().st_mode & 0o777
            assert not mode & 0o077, (folder, name, oct(mode))
            kept += 1
    assert state.stat().st_mode & 0o777 == 0o700
    assert kept > 10


def test_a_token_is_only_in_what_its_session_is_told(tmp_path: Path) -> None:
    world = make_world(tmp_path / "project", config='[verify]\ncommands = ["env; cat README"]\n')
    tokens = set()
    for session in ("s1", "s2"):
        for action in hand_outs(world.actions(session, capacity=1)):
            tokens |= {action["claim_token"], seal_key(action)}
            world.bind(action, f"agent of {session}")
            world.work(action)
            done = subprocess.run(seal_command(action), cwd=action["cwd"], capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout + done.stderr
            assert not any(token in done.stdout + done.stderr for token in tokens)
    assert len(tokens) == 4
    words = [
        ("status",), ("log", "grow"), ("explain", "1.1"), ("plan", "grow"), ("receipt", "show", action["assignment_id"]),
        ("doctor",), ("audit", "grow"),
    ]  # fmt: skip
    for verb in words:
        shown = [baton(world.root, *verb, *more).stdout for more in ((), ("--json",))]
        assert all(shown), verb
        assert not any(token in text for token in tokens for text in shown), verb
    baton(world.root, "board")
    outside = [
        path for path in world.project.state.rglob("*") if path.is_file() and not path.name.startswith("queue.db")
    ]
    assert len(outside) > 5
    for path in outside:
        assert not any(token.encode() in path.read_bytes() for token in tokens), path
    with sqlite3.connect(world.project.queue_db) as connection:
        told = connection.execute("SELECT * FROM events").fetchall()
    connection.close()
    assert told
    assert not any(token in repr(told) for token in tokens)
    assert not any(token in run_git(world.root, "log", "--all", "--format=%B%n%N") for token in tokens)


def test_what_is_run_comes_from_the_users_checkout_never_from_a_branch(tmp_path: Path) -> None:
    """A worker that brings its own commands, in every place Baton reads commands from: none of them runs."""
    world = make_world(tmp_path / "project")
    before = invariants.checkout(world.root)
    action = hand_outs(world.actions("s1", capacity=1))[0]
    run = f"touch {tmp_path / 'pwned'}"
    files = {
        "baton.toml": f'[verify]\ncommands = ["{run}"]\n[worktree]\nsetup = ["{run}"]\n',
        "openspec/changes/grow/baton.toml": f'[verify]\ncommands = ["{run}"]\n',
        "openspec/changes/grow/tasks.md": f"## 1. G\n\n- [ ] 1.1 Lay\n  - verify: `{run}`\n",
    }
    for name, text in files.items():
        world.work(action, {name: text})
        answer = baton(world.root, *seal_command(action)[-4:], "--json", cwd=Path(action["cwd"]))
        assert json.loads(answer.stdout)["error"]["code"] == "protected_path", answer.stdout
    world.reconcile(action)
    world.actions("s1")
    baton_json(world.root, "plan", "grow")
    baton(Path(action["cwd"]), "init")
    assert not (tmp_path / "pwned").exists()
    invariants.check(world, before)


def test_tokens_are_compared_in_constant_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every comparison of a secret that somebody sends goes through the function that is made for it."""
    import hmac

    world = make_world(tmp_path / "project")
    action = hand_outs(world.actions("s1", capacity=1))[0]
    world.work(action)
    seen: list[bytes] = []
    real = hmac.compare_digest

    def compare(one: bytes, other: bytes) -> bool:
        seen.append(one)
        return real(one, other)

    monkeypatch.setattr(hmac, "compare_digest", compare)
    for call, secret in (
        (lambda: world.bind(action, "a"), action["claim_token"]),
        (lambda: world.seal(action), seal_key(action)),
        (lambda: world.reconcile(action), action["claim_token"]),
    ):
        seen.clear()
        call()
        assert secret.encode() in seen
