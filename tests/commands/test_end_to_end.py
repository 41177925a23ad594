"""The real command line on real repositories: what scripts rely on."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from baton_cli.core import tasks
from tests import invariants
from tests.conftest import run_git, write_files
from tests.kit import MAIN, World, baton, baton_json, make_world

# A session in thirty lines: it forwards what Baton answers and decides nothing.
FORWARDER = """\
import json, pathlib, shlex, subprocess, sys
baton, project, change = json.loads(sys.argv[1]), sys.argv[2], sys.argv[3]

def call(*words, stdin=""):
    done = subprocess.run([*baton, *words, "--project", project, "--json"], input=stdin, capture_output=True, text=True)
    return json.loads(done.stdout)

def agent(action):
    place, name = pathlib.Path(action["cwd"]), action["ticket"].rpartition("#")[2]
    (place / f"work-{name}.txt").write_text(action["title"] + "\\n", encoding="utf-8")
    subprocess.run(["git", "add", "-A"], cwd=place, check=True)
    subprocess.run(["git", "commit", "-qm", action["title"]], cwd=place, check=True)
    seal = next(line for line in action["prompt"].split("\\n") if " seal " in line and " --key " in line)
    subprocess.run(shlex.split(seal), cwd=place, check=True, stdout=subprocess.DEVNULL)

session = "new"
for step in range(40):
    answer = call("actions", change, "--session", session)
    session = answer["session"]
    for action in answer["actions"]:
        if action["kind"] == "complete":
            sys.exit(print(json.dumps(answer)))
        if action["kind"] not in ("dispatch", "recover"):
            sys.exit(f"unexpected: {action}")
        who, token = (action["assignment_id"], "--token", "-"), action["claim_token"]
        call("bind", *who, "--agent", f"child-{step}-{action['ticket']}", stdin=token)
        agent(action)
        call("reconcile", *who, "--terminal", "completed", stdin=token)
sys.exit("never complete")
"""
ODD = (
    "## 1. Größe\r\n"
    "\r\n"
    "- [ ] 1.1 Die Größe messen — überall\r\n"
    "  - [ ] with a ruler\r\n"
    "  - [] with a tape\r\n"
    "- [ ] 1.2 测量 the rest\r\n"
    "\r\n"
    "## 2. Next\r\n"
    "* [ ] 2.1 Write it down\r\n"
    "1. [x] 2.2 Done long ago\r\n"
    "## Phase three\r\n"
    "- [ ] Verify it"
)


def masked(data: bytes) -> str:
    return tasks.parse(data).digest


def test_a_forwarder_of_thirty_lines_takes_an_odd_change_to_complete(tmp_path: Path) -> None:
    world = make_world(tmp_path / "my project", ODD.encode(), config='[verify]\ncommands = ["test -e README"]\n')
    before, text = invariants.checkout(world.root), world.tasks.read_bytes()
    script = tmp_path / "forwarder.py"
    script.write_text(FORWARDER, encoding="utf-8")
    assert len(FORWARDER.splitlines()) <= 30
    call = json.dumps([sys.executable, str(MAIN)])
    done = subprocess.run(
        [sys.executable, str(script), call, str(world.root), world.change],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    answer = json.loads(done.stdout)
    assert answer["state"] == "complete"
    after = world.tasks.read_bytes()
    assert masked(after) == masked(text)
    assert after.replace(b"[x]", b"[ ]") == text.replace(b"[]", b"[ ]").replace(b"[x]", b"[ ]")
    assert tasks.parse(after).done == tasks.parse(after).total == 7
    assert not after.endswith(b"\n")
    invariants.check(world, before)
    every_commit_is_green(world, tmp_path / "clean", "test -e README")
    held = run_git(world.root, "-c", "core.quotePath=false", "ls-tree", "--name-only", world.integration).split("\n")
    assert sum(name.startswith("work-") for name in held) == 4


def every_commit_is_green(world: World, place: Path, check: str) -> None:
    """A clean checkout of each commit on the integration branch's first-parent line passes."""
    run_git(world.root, "clone", "-q", "--no-local", "--branch", world.integration, str(world.root), str(place))
    for oid in run_git(place, "rev-list", "--first-parent", "HEAD").split():
        run_git(place, "checkout", "-q", "--detach", oid)
        assert subprocess.run(["sh", "-c", check], cwd=place, check=False).returncode == 0, oid


def test_corpus_counts_are_those_of_openspec(corpus: Path, tmp_path: Path) -> None:
    rows = [line.split("\t") for line in (corpus / "tasks.tsv").read_text(encoding="utf-8").splitlines()[1:]]
    world = make_world(tmp_path / "project")
    names = {}
    for row in rows:
        name = row[0].removesuffix(".md")
        names[name] = (int(row[5]), int(row[6]))
        write_files(world.root, {f"openspec/changes/{name}/tasks.md": (corpus / "tasks" / row[0]).read_bytes()})
    plans = {plan["change"]: plan for plan in json.loads(baton(world.root, "plan", "--all", "--json").stdout)}
    assert len(rows) == 265
    wrong = {
        name: plans[name] for name, counts in names.items() if (plans[name]["total"], plans[name]["done"]) != counts
    }
    assert wrong == {}


def test_corpus_probes_are_those_of_openspec(corpus: Path, tmp_path: Path) -> None:
    rows = [line.split("\t") for line in (corpus / "probes.tsv").read_text(encoding="utf-8").split("\n")[1:] if line]
    assert len(rows) == 58
    world = make_world(tmp_path / "project")
    for row in rows:
        text = ast.literal_eval(row[1])
        write_files(world.root, {f"openspec/changes/probe-{row[0]}/tasks.md": text.encode()})
    plans = {plan["change"]: plan for plan in json.loads(baton(world.root, "plan", "--all", "--json").stdout)}
    wrong = [
        row
        for row in rows
        if (plans[f"probe-{row[0]}"]["total"], plans[f"probe-{row[0]}"]["done"]) != (int(row[2]), int(row[3]))
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("files", "command", "setup"),
    [
        (
            {"pyproject.toml": "[tool.pytest.ini_options]\n", "tests/test_a.py": "def test_a():\n    pass\n"},
            "pytest",
            None,
        ),
        ({"package.json": '{"scripts": {"test": "node test.js"}}', "package-lock.json": "{}"}, "npm test", "npm ci"),
    ],
)
def test_checks_and_set_up_are_detected_without_a_baton_toml(
    tmp_path: Path, files: dict[str, str], command: str, setup: str | None
) -> None:
    world = make_world(tmp_path / "p", config=None, files=files)
    plan = baton_json(world.root, "plan", world.change)
    tickets = [ticket for section in plan["sections"] for ticket in section["tickets"]]
    assert all(command in ticket["verify"][0] for ticket in tickets)
    assert {ticket["source"] for ticket in tickets} == {"detected"}
    assert [warning["code"] for warning in plan["warnings"]] == ["checks_detected"]
    told = baton_json(world.root, "init")
    assert told["written"]
    assert (setup in told["setup"]) if setup else True
    (world.root / "baton.toml").unlink()


def test_a_detected_project_dispatches_with_one_warning(tmp_path: Path) -> None:
    world = make_world(tmp_path / "p", config=None, files={"Makefile": "test:\n\ttrue\n"})
    answer = baton_json(world.root, "actions", world.change, "--session", "new")
    assert [action["kind"] for action in answer["actions"]] == ["dispatch", "dispatch"]
    assert len(answer["notices"]) == 1
    assert "detected" in answer["notices"][0]


def test_thirty_two_processes_give_five_ready_tickets_five_owners(tmp_path: Path) -> None:
    lines = "".join(f"- [ ] 1.{number} Part {number}\n" for number in range(1, 6))
    world = make_world(tmp_path / "p", f"## 1. Parts\n{lines}")
    before = invariants.checkout(world.root)
    calls = [
        subprocess.Popen(
            [sys.executable, str(MAIN), "actions", world.change, "--session", f"s{number}", "--json"],
            cwd=world.root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for number in range(32)
    ]  # fmt: skip
    owners: dict[str, str] = {}
    for call in calls:
        out, err = call.communicate(timeout=240)
        assert call.returncode == 0, out + err
        answer = json.loads(out)
        for action in answer["actions"]:
            if action["kind"] == "dispatch":
                assert action["ticket"] not in owners
                owners[action["ticket"]] = answer["session"]
            else:
                assert action["kind"] == "wait"
    assert len(owners) == 5
    invariants.check(world, before)
