"""The demo: it passes, it leaves nothing behind, and a Baton that breaks a promise does not get past it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from baton_cli.demo import checks, director, outside, scenario, story, witness
from tests.conftest import ROOT, run_git
from tests.kit import MAIN, baton

# Each fault breaks one promise; the name is that of the check which has to notice.
FAULTS = {
    "evidence-only: the seal believes that the checks pass": """
from baton_cli.flow.parts import proof
proof.run_checks = lambda cwd, wanted, log, tell: [
    {"command": check["command"], "exit_code": 0, "duration": 0.0, "output_digest": "0" * 64} for check in wanted
]
""",
    "always-green: the gate runs nothing": """
from baton_cli.core import integration
from baton_cli.flow import integrate
def judge(context, question, place, setup, log):
    ran = [{"command": command, "exit_code": 0, "proof": "gate"} for command in question.wanted or question.by_receipt]
    record = integration.gate_record(question.tree, question.onto, ran)
    return gate.Gate(record, None, tuple(question.wanted), tuple(question.by_receipt))
gate = integrate.gate
gate.judge = judge
""",
    "tasks-bytes: write-back changes a letter of the prose": """
from baton_cli.flow import tick
real = tick.write
def write(path, ticket, *, done=True):
    said = real(path, ticket, done=done)
    path.write_bytes(path.read_bytes().replace(b"Every language", b"every language"))
    return said
tick.write = write
""",
    "evidence-only: a ticket is ticked because its agent says so": """
from baton_cli.flow import tick
def due(views):
    held = [view for view in views if view.assignment is not None and not view.planned.ticket.done]
    return tuple(view.planned.ticket for view in held if view.assignment.attempt.terminal == "completed")
tick.due = due
""",
    "claims-exclusive: an old key is as good as a new one": """
from baton_cli.flow import seal
seal._authorise = lambda assignment, authority: None
""",
    "nothing-lost: a worktree is tidied up before it is handed out again": """
import subprocess
from baton_cli.flow import handout
real = handout._action
def action(context, change, assignment):
    subprocess.run(["git", "-C", str(context.worktree(assignment.worktree)), "clean", "-fdxq"], check=True)
    return real(context, change, assignment)
handout._action = action
""",
    "checkout-untouched: the tick is put into the index": """
import subprocess
from baton_cli.flow import tick
real = tick.write
def write(path, ticket, *, done=True):
    said = real(path, ticket, done=done)
    subprocess.run(["git", "-C", str(path.parent), "add", path.name], check=True)
    return said
tick.write = write
""",
    "no-left-overs: worktrees of merged tickets stay": """
from baton_cli.flow import recover
recover.clear_worktrees = lambda context, change: ()
""",
    "exactly-once: the agents of a killed drive are left running": """
from baton_cli.drive import records
records.Records.end_orphans = lambda self: []
""",
    "nothing-lost: what a killed drive had under way begins anew": """
import subprocess
from baton_cli.flow import recover
real = recover._expire
def expire(context, assignment, reason):
    subprocess.run(["git", "-C", str(context.worktree(assignment.worktree)), "reset", "-q", "--hard", assignment.base])
    return real(context, assignment, reason)
recover._expire = expire
""",
    "complete: what a killed drive had claimed is never given back": """
from baton_cli.drive import loop
loop.Driver._release_dead = lambda self: None
""",
    "plan-live: a ticket is told by its number": """
from baton_cli.core import identity
identity._Matcher.same_text = lambda self, indices: None
""",
    "boxes: nothing is ticked": """
from baton_cli.flow import tick
tick.due = lambda views: ()
""",
}
ALWAYS = 3  # so many of them run each time, the others with --full


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the demo makes its folder."""
    folder = tmp_path / "täm porary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


def crosses(answer: dict[str, Any]) -> set[str]:
    return {check["name"] for check in answer["checks"] if not check["passed"]}


def test_it_passes_without_an_identity_and_leaves_nothing(temporary: Path, without_identity: Path) -> None:
    before = {path: path.read_bytes() for path in without_identity.rglob("*") if path.is_file()}
    done = baton(temporary, "demo")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert done.stdout.count("  ✓ ") == len(story.PROMISES)
    assert "✗" not in done.stdout
    assert "but did nothing: not believed" in done.stdout
    assert "\x1b" not in done.stdout
    lines = done.stdout.splitlines()
    assert len(lines) < 48
    assert [line for line in lines if len(line) >= 80 and "━" not in line] == []  # the queue view knows its width
    assert list(temporary.iterdir()) == []
    assert {path: path.read_bytes() for path in without_identity.rglob("*") if path.is_file()} == before


def test_the_users_settings_do_not_reach_it_and_keep_leaves_the_project(temporary: Path, hermetic: Path) -> None:
    (hermetic / "ignore").write_text("*\n")
    settings = (
        "[core]\n\texcludesFile = {0}/ignore\n\tautocrlf = true\n\thooksPath = {0}/hooks\n[commit]\n\tgpgSign = true\n"
    )
    settings += "[user]\n\tsigningKey = none\n[merge]\n\tconflictStyle = zdiff3\n[init]\n\tdefaultBranch = trunk\n"
    (hermetic / ".gitconfig").write_text(settings.format(hermetic))
    (hermetic / "hooks").mkdir()
    for name in ("pre-commit", "post-checkout", "reference-transaction"):
        (hermetic / "hooks" / name).write_text("#!/bin/sh\nexit 1\n")
        (hermetic / "hooks" / name).chmod(0o755)
    done = baton(temporary, "demo", "--json", "--keep", env={"GIT_DIR": "/nowhere", "GIT_AUTHOR_NAME": ""})
    assert done.returncode == 0, done.stdout + done.stderr
    answer = json.loads(done.stdout)
    assert (answer["schema"], answer["passed"], crosses(answer)) == ("baton.demo/1", True, set())
    assert [check["name"] for check in answer["checks"]] == list(story.PROMISES)
    assert answer["seconds"] > 0
    root = Path(answer["project"])
    assert root.is_relative_to(temporary)
    assert run_git(root, "rev-list", "--count", "--first-parent", f"main..baton/{scenario.CHANGE}/integration") == "6"
    assert not (hermetic / "state").exists()
    looked = baton(root, "status", "--json")
    assert json.loads(looked.stdout)["changes"][0]["state"] == "complete"


@pytest.mark.parametrize(
    "fault",
    [pytest.param(name, marks=pytest.mark.full if place >= ALWAYS else ()) for place, name in enumerate(FAULTS)],
)
def test_a_broken_promise_is_noticed(fault: str, temporary: Path, tmp_path: Path) -> None:
    """The whole program with a fault in it, in every process of the demo."""
    mutant = tmp_path / "mutant"
    start = "from baton_cli.main import run\nsys.exit(run())\n"
    mutant.write_text(f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(ROOT)!r})\n{FAULTS[fault]}\n{start}")
    mutant.chmod(0o755)
    done = subprocess.run(
        [mutant, "demo", "--json"], capture_output=True, text=True, env={**os.environ, "BATON_LAUNCHER": str(mutant)}
    )
    assert done.returncode == 1, done.stdout + done.stderr
    answer = json.loads(done.stdout)
    assert answer["passed"] is False
    assert fault.partition(":")[0] in crosses(answer), answer["checks"]
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_removes_everything(number: int, temporary: Path) -> None:
    words = [sys.executable, str(MAIN), "demo", "--keep"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        while "kill -9 to both" not in (line := running.stdout.readline()):
            assert line, running.communicate()
        running.send_signal(number)
        _, complaint = running.communicate(timeout=60)
    assert (running.returncode, complaint) == (130, "error: interrupted\n")
    assert list(temporary.iterdir()) == []
    limit = time.monotonic() + 10
    while left := alive_in(temporary):
        assert time.monotonic() < limit, left
        time.sleep(0.05)


def alive_in(folder: Path) -> list[str]:
    """Processes that stand in the folder or name it."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            place, words = os.readlink(process / "cwd"), (process / "cmdline").read_bytes()
        except OSError:
            continue
        if str(folder) in place or os.fsencode(folder) in words:
            found.append(f"{process.name} {words!r}")
    return found


def test_the_crosses_are_named() -> None:
    failed = {"name": "boxes", "passed": False, "detail": "8 of 9 boxes are ticked \x1b[31m"}
    answer = {"schema": "baton.demo/1", "passed": False, "checks": [failed], "seconds": 1.0, "project": None}
    text = story.verdict(answer, colour=False) + story.ending(answer)
    assert "  ✗ Exactly the right boxes" in text
    assert "NOT KEPT: Exactly the right boxes" in text
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) < 80


@pytest.mark.parametrize(
    ("now", "wrong"),
    [
        (b"- [x] 1.1 a\n- [ ] 1.2 b", None),
        (b"- [x] 1.1 a\n- [x] 1.2 b", None),
        (b"- [X] 1.1 a\n- [ ] 1.2 b", "byte 3"),
        (b"- [ ] 1.1 A\n- [ ] 1.2 b", "byte 10"),
        (b"- [ ] 1.1 a\n- [ ] 1.2 b\n", "bytes and has"),
    ],
)
def test_bytes_beside_boxes(now: bytes, wrong: str | None) -> None:
    said = witness.bytes_beside_boxes(b"- [ ] 1.1 a\n- [ ] 1.2 b", now)
    assert (said is None) if wrong is None else (said is not None and wrong in said)


def test_the_plan_of_the_demo_has_what_it_promises_to_show() -> None:
    tasks = scenario.TASKS.encode()
    assert len(outside.boxes(tasks)) == 6
    assert outside.ticked(tasks) == set()
    assert not tasks.endswith(b"\n")
    assert not tasks.isascii()
    assert set(checks.CHECKS) | {"complete"} == set(story.PROMISES)
    assert set(outside.numbers(tasks)) == {*scenario.CAST, "loud"}
    assert {fault.partition(":")[0] for fault in FAULTS} == set(story.PROMISES)


def test_the_edit_moves_numbers_and_leaves_ticks() -> None:
    tasks = scenario.TASKS.replace("[ ] 1.3", "[x] 1.3").encode()
    edited = director.insert(tasks)
    before, after = outside.numbers(tasks), outside.numbers(edited)
    assert [after[ticket] for ticket in scenario.CAST] == ["1.2", "1.3", "1.4", "1.5"]
    assert after == {**{ticket: after[ticket] for ticket in before}, scenario.ADDED: "1.1"}
    assert outside.ticked(edited) == outside.ticked(tasks) == {"sv"}
    assert (after["loud"], edited.count(b"\n")) == ("2.1", tasks.count(b"\n") + 1)


def test_an_edited_receipt_is_no_evidence(tmp_path: Path) -> None:
    receipt = {"schema": "baton.receipt/1", "head": "b" * 40, "checks": [{"exit_code": 0}]}
    text = json.dumps(receipt, sort_keys=True, separators=(",", ":"))
    digest = outside.hashlib.sha256(text.encode()).hexdigest()
    whole = json.dumps({**receipt, "digest": digest}, separators=(",", ":"))
    assert outside._receipt_fault(whole, digest, "b" * 40) is None
    assert "another commit" in (outside._receipt_fault(whole, digest, "c" * 40) or "")
    assert "digest" in (outside._receipt_fault(whole.replace(":0}", ":1}"), digest, "b" * 40) or "")
    assert "cannot be read" in (outside._receipt_fault("{}", digest, "b" * 40) or "")
