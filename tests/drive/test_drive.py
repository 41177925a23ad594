"""`baton drive` from outside: real processes, real git, agents that are scripts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests import invariants
from tests.conftest import run_git
from tests.drive.kit import (
    GOOD,
    Drive,
    Gate,
    environment,
    left_running,
    merged,
    nothing_left,
    plan,
    run,
    script,
    settings,
    tickets,
)  # fmt: skip
from tests.kit import MAIN, World, baton, hand_outs, make_world, only

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="looks for left-over processes in /proc")
Fifo = Callable[[str], Path]
Make = Callable[..., World]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """`make(tasks, config)`: a project; in the end nothing of it may run any more."""
    with _Worlds(tmp_path) as worlds:
        yield worlds


class _Worlds:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._before: invariants.Checkout | None = None
        self.world: World | None = None

    def __call__(self, tasks: str, config: str | None = None) -> World:
        self.world = make_world(self._folder / "my project", tasks, config=config or settings())
        self._before = invariants.checkout(self.world.root)
        return self.world

    def __enter__(self) -> _Worlds:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if self.world is not None:
            with nothing_left(self.world):
                if kind is None:
                    invariants.check(self.world, self._before)


@pytest.mark.parametrize("terminal", [False, True], ids=["pipe", "terminal"])
def test_thirty_tickets_with_five_agents(make: Make, tmp_path: Path, terminal: bool) -> None:
    world = make(plan(3, 10))
    drive = Drive(world, script(tmp_path / "agent"), terminal=terminal)
    assert drive.end() == 0, drive.text
    assert merged(world) == tickets(3, 10)
    assert "complete: 30 of 30 done" in drive.text
    assert "  this run: 30 integrated, 30 agent runs, " in drive.text
    if terminal:
        assert drive.text.count("\x1b[?25h") == drive.text.count("\x1b[?25l") == 1
        last = drive.text.rindex("\x1b[2K")  # the picture is gone
        assert drive.text[last:].startswith("\x1b[2K\x1b[?25hcomplete: ")
    else:
        lines = drive.text.splitlines()
        assert "\x1b" not in drive.text
        assert [
            sum(line.startswith(f"{word} ") for line in lines) for word in ("started", "checking", "integrated")
        ] == [30] * 3
    assert not list((world.project.state / "drive").iterdir())


# An agent for each kind of trouble. All of it ends well.
TROUBLE = r"""
name=${BATON_TICKET##*#}
cat > "$OUT/prompt-$name-$BATON_ATTEMPT"
env > "$OUT/env-$name-$BATON_ATTEMPT"
pwd > "$OUT/cwd-$name"
printf 'hello \033[31mred\033[0m\n'
echo oops >&2
finish() { git add -A; git commit -qm "$name"; }
case "$name-$BATON_ATTEMPT" in
    1.1-1) exit 0;;                                     # says that it is done, and is not
    1.2-1) echo half > half.txt; exit 3;;               # fails, leaves a file
    1.2-2) test "$(cat half.txt)" = half;;
    1.3-1) echo x > 1.3.txt; finish; eval "$BATON_SEAL"; exit 0;;
    1.4-*|1.5-*)
        if [ "$BATON_KIND" = resolve_merge ]; then
            printf 'both\n' > shared.txt; git add -A; git commit -qm resolved; exit 0
        fi
        echo "$name" > shared.txt; finish; exit 0;;
esac
echo "$name" > "$name.txt"; finish
"""


def test_an_agent_that_ticks_boxes_in_the_checkout_makes_no_good_end(make: Make, tmp_path: Path) -> None:
    world = make(plan(1, 2))
    tick = 'sed -i "s/\\[ \\]/[x]/" "$BATON_PROJECT/openspec/changes/grow/tasks.md"\n'
    code, text = run(world, script(tmp_path / "agent", tick))
    assert code == 1
    assert "complete: 2 of 2 done (2 ticked by hand)" in text
    assert "2 of them during this run, by you or by an agent that strayed: so this ends with 1" in text
    assert run(world, script(tmp_path / "agent", tick))[0] == 0, "what was ticked before is not this run's"


def test_liars_failures_conflicts_and_seals_of_their_own(make: Make, tmp_path: Path) -> None:
    world = make(plan(1, 5))
    out = tmp_path / "out"
    out.mkdir()
    code, text = run(world, script(tmp_path / "agent", TROUBLE), OUT=str(out))
    assert code == 0, text
    assert merged(world) == tickets(1, 5)
    lines = text.splitlines()
    ends = [line for line in lines if not line.startswith(("started", "checking", "note", " ", "drive"))]
    assert sum(line.startswith("not done    1.1") and "nothing committed" in line for line in ends) == 1, text
    assert sum(line.startswith("not done    1.2") and "exit code 3: oops" in line for line in ends) == 1, text
    assert sum(line.startswith("conflicted  1.") and "shared.txt" in line for line in ends) == 1, text
    assert sum(line.startswith("integrated  ") for line in ends) == 5
    assert run_git(world.root, "show", f"{world.integration}:shared.txt") == "both"
    _check_surroundings(world, out)


def _check_surroundings(world: World, out: Path) -> None:
    """What agents were given: their task on standard input, their worktree, their variables; and where output went."""
    dumps = {path.name.removeprefix("env-"): environment(path) for path in out.glob("env-*")}
    own = dumps["1.3-1"]
    assert set(own) == {
        "BATON_ASSIGNMENT", "BATON_TICKET", "BATON_CHANGE", "BATON_PROJECT", "BATON_ATTEMPT", "BATON_KIND",
        "BATON_PACKET", "BATON_SLOT", "BATON_PORT_BASE", "BATON_SEAL",
    }  # fmt: skip
    assert (own["BATON_TICKET"], own["BATON_CHANGE"], own["BATON_ATTEMPT"]) == ("grow#1.3", "grow", "1")
    assert (own["BATON_PROJECT"], own["BATON_KIND"]) == (str(world.root), "dispatch")
    first = [dumps[f"1.{number}-1"] for number in range(1, 6)]
    assert {dump["BATON_SLOT"] for dump in first} <= set("01234")
    assert all(int(dump["BATON_PORT_BASE"]) == 20_000 + 100 * int(dump["BATON_SLOT"]) for dump in first)
    assert Path(own["BATON_PACKET"]).is_file()
    prompt = (out / "prompt-1.3-1").read_text()
    assert own["BATON_SEAL"] in prompt.splitlines()
    assert f"Work only in {(out / 'cwd-1.3').read_text().strip()}" in prompt
    log = world.project.logs / f"{own['BATON_ASSIGNMENT']}-1-agent.log"
    assert log.read_text().startswith("hello \x1b[31mred\x1b[0m\noops\n")
    assert log.stat().st_mode & 0o777 == 0o600


def test_an_agent_that_never_works_blocks_the_change(make: Make, tmp_path: Path) -> None:
    world = make(plan(2, 1), settings("[limits]\nattempts = 2\n"))
    code, text = run(world, script(tmp_path / "agent", "exit 0"))
    assert code == 1
    end = text[text.index("blocked: 0 of 2 done\n  this run: 0 integrated, 2 agent runs on 1 ticket, ") :]
    order = (
        "  ! 1.1  Part 1 of 1 ",
        "exhausted after attempt 2\n",
        "retry 'grow#1.1'\n",
        "\n  1.1: its agent ended (completed)",
    )
    places = [end.index(words) for words in order]
    assert places == sorted(places)
    assert world.ticket("1.1")["assignment"]["state"] == "exhausted"
    done = baton(world.root, "drive", world.change, "--agent", "true", "--json")
    assert done.returncode == 1
    answer = json.loads(done.stdout)
    assert done.stdout.count("\n") == 1
    assert list(answer)[:9] == [
        "schema", "change", "state", "session", "progress", "started", "integrated", "attempts", "seconds",
    ]  # fmt: skip
    assert (answer["schema"], answer["state"], answer["attempts"]) == ("baton.drive/1", "blocked", 0)
    assert answer["progress"]["blocked"] == 1
    assert [action["reason"] for action in answer["actions"]] == ["exhausted"]


def test_a_command_that_never_works_ends_the_drive_and_uses_up_nothing(make: Make, tmp_path: Path) -> None:
    world = make(plan(1, 5))
    bad = script(tmp_path / "bad", "echo 'unknown option --colour' >&2\nexit 2")
    code, text = run(world, bad, "--parallel", "3")
    assert code == 1
    lines = text.splitlines()
    assert sum(line.startswith("started ") for line in lines) < 9, text
    assert "  ! agent fails" in lines
    assert "agent runs in a row came to nothing within " in text
    assert "the agent ended with exit code 2: unknown option --colour" in text.replace("\n         ", " ")
    assert "mend --agent, then run drive again" in text.replace("\n            ", " ")
    assert "blocked" not in {world.ticket(name)["status"] for name in tickets(1, 5)}
    code, text = run(world, script(tmp_path / "agent"))
    assert code == 0, text
    assert merged(world) == tickets(1, 5)


def test_a_program_that_cannot_be_started_ends_the_drive(make: Make, tmp_path: Path) -> None:
    world = make(plan(1, 3))
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x7fELF")
    broken.chmod(0o755)
    done = baton(world.root, "drive", world.change, "--agent", str(broken), "--json")
    assert done.returncode == 1
    answer = json.loads(done.stdout)
    assert [(action["reason"], action["tickets"]) for action in answer["actions"]] == [
        ("agent_fails", [f"grow#{name}" for name in tickets(1, 3)])
    ]
    assert "the agent could not be started" in answer["actions"][0]["detail"]
    assert answer["attempts"] == 3


def test_one_ticket_that_fails_at_once_stops_no_other(make: Make, tmp_path: Path) -> None:
    world = make(plan(1, 3))
    agent = script(tmp_path / "agent", f'case "$BATON_TICKET" in *1.1) exit 2;; esac\n{GOOD}')
    code, text = run(world, agent, "--parallel", "1")
    assert code == 1
    assert "blocked: 2 of 3 done\n" in text, text
    assert world.ticket("1.1")["assignment"]["state"] == "exhausted"


def test_the_picture_shows_what_baton_checks(make: Make, tmp_path: Path, fifo: Fifo) -> None:
    gate = Gate(fifo)
    check = f"sh -c 'echo check > {gate.ready}; read x < {gate.hold}'"
    world = make(plan(1, 3), settings(check=check))
    drive = Drive(world, script(tmp_path / "agent"), "--parallel", "2", terminal=True)
    assert gate.words(1) == ["check"]
    drive.says("0 of 3 done, 0 running, 2 to be checked, 1 ready")
    drive.says("  baton: ")
    drive.interrupt()
    assert drive.end() == 130, drive.text


def test_a_session_that_never_was_is_refused(make: Make) -> None:
    world = make(plan(1, 1))
    done = baton(world.root, "drive", world.change, "--agent", "true", "--session", "mnie", "--json")
    assert done.returncode == 2
    error = json.loads(done.stdout)["error"]
    assert (error["code"], "baton status grow --json" in error["hint"]) == ("unknown_session", True)
    assert not world.project.state.exists()


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--agent", "/no/such/agent -p"], "bad_agent"),
        (["--agent", "true", "--parallel", "6"], "usage"),
        ([], "usage"),
    ],
)
def test_a_bad_order_is_refused_before_anything_is_claimed(make: Make, words: list[str], code: str) -> None:
    world = make(plan(1, 1))
    done = baton(world.root, "drive", world.change, *words, "--json")
    assert done.returncode == 2, done.stdout + done.stderr
    assert json.loads(done.stdout)["error"]["code"] == code
    assert not world.project.state.exists()


def test_a_time_limit_ends_an_agent_and_counts(make: Make, tmp_path: Path, fifo: Fifo) -> None:
    world = make(plan(1, 1), settings("[limits]\nattempts = 1\n"))
    agent = script(tmp_path / "agent", f"echo stuck; read x < {fifo('hold')}")
    code, text = run(world, agent, "--time-limit", "1s")
    assert code == 1
    assert "not done    1.1  Part 1 of 1" in text
    assert "took longer than 1 s" in text
    assert world.ticket("1.1")["assignment"]["state"] == "exhausted"


@pytest.mark.parametrize("terminal", [False, True], ids=["pipe", "terminal"])
def test_an_interrupt_leaves_everything_resumable(make: Make, tmp_path: Path, fifo: Fifo, terminal: bool) -> None:
    world, gate = make(plan(2, 2)), Gate(fifo)
    # One descendant in the background, one that left the group but not the family.
    family = "sleep 1000 & setsid sleep 1000 &\n"
    agent = script(tmp_path / "agent", gate.body.replace("echo", family + "echo", 1) + GOOD)
    drive = Drive(world, agent, terminal=terminal, HOLD="2.*")
    assert gate.words(2) == ["grow#2.1", "grow#2.2"]
    assert len(left_running(world)) > 6
    if not terminal:
        session = drive.text.splitlines()[0].rpartition(" ")[2]
        other = baton(world.root, "drive", world.change, "--agent", "true", "--session", session)
        assert (other.returncode, "is driven by process" in other.stderr) == (2, True), other.stderr
    drive.interrupt()
    assert drive.end() == 130, drive.text
    assert not left_running(world)
    assert "interrupted: 2 of 4 done" in drive.text
    assert "  this run: 2 integrated, 4 agent runs" in drive.text
    if terminal:
        assert drive.text.rindex("\x1b[?25h") > drive.text.rindex("\x1b[?25l")
    else:
        assert sum(line.startswith("not done    2.") for line in drive.text.splitlines()) == 2
    states = [world.ticket(name) for name in ("2.1", "2.2")]
    assert {(ticket["assignment"]["state"], ticket["assignment"]["attempt"]) for ticket in states} == {("unknown", 1)}
    assert not list((world.project.state / "drive").iterdir())
    code, text = run(world, agent, HOLD="")
    assert code == 0, text
    assert "complete: 4 of 4 done\n  this run: 2 integrated, 2 agent runs" in text
    assert merged(world) == tickets(2, 2)


def test_a_second_interrupt_does_not_wait(make: Make, tmp_path: Path, fifo: Fifo) -> None:
    world, gate = make(plan(1, 1)), Gate(fifo)
    stubborn = f"trap 'echo asked > {gate.ready}; read x < {gate.hold}' TERM\n"
    agent = script(tmp_path / "agent", f'if [ -n "$HOLD" ]; then\n{stubborn}fi\n{gate.body}{GOOD}')
    drive = Drive(world, agent, HOLD="*")
    assert gate.words(1) == ["grow#1.1"]
    drive.interrupt()
    assert gate.words(1) == ["asked"]
    drive.interrupt()
    assert drive.end() == 130
    assert "error: interrupted" in drive.text
    code, text = run(world, agent, HOLD="")
    assert code == 0, text
    assert merged(world) == ["1.1"]


def test_a_killed_drive_is_taken_over_by_the_next_one(make: Make, tmp_path: Path, fifo: Fifo) -> None:
    world, gate = make(plan(2, 2)), Gate(fifo)
    agent = script(tmp_path / "agent", gate.body + GOOD)
    drive = Drive(world, agent, HOLD="2.*")
    assert gate.words(2) == ["grow#2.1", "grow#2.2"]
    os.kill(drive.pid, signal.SIGKILL)
    # Its agents live on and keep the pipe open, so only the process is waited for.
    assert drive._process.wait() == -signal.SIGKILL
    assert len(left_running(world)) == 2
    assert len(list((world.project.state / "drive").iterdir())) == 3
    with _innocent(world) as stranger:
        code, text = run(world, agent, HOLD="")
        assert stranger.poll() is None
    assert code == 0, text
    assert "complete: 4 of 4 done\n  this run: 2 integrated, 2 agent runs" in text
    assert merged(world) == tickets(2, 2)
    assert not left_running(world)
    assert not list((world.project.state / "drive").iterdir())


@contextmanager
def _innocent(world: World) -> Iterator[subprocess.Popen[bytes]]:
    """A process that has the number of a dead agent, and nothing else of it."""
    folder = world.project.state / "drive"
    session = next(folder.glob("*.session.json"))
    with subprocess.Popen(["sleep", "1000"], start_new_session=True) as stranger:
        record = json.loads(session.read_bytes()) | {
            "pid": stranger.pid,
            "start_time": 1,
            "variables": {"BATON_ASSIGNMENT": "none", "BATON_ATTEMPT": "1"},
        }
        (folder / session.name.replace(".session", ".drive-1-99")).write_text(json.dumps(record))
        try:
            yield stranger
        finally:
            stranger.kill()


def test_a_killed_controller_call_loses_nothing(make: Make, tmp_path: Path, fifo: Fifo) -> None:
    """The interrupt comes while Baton itself runs a check that does not end."""
    gate = Gate(fifo)
    check = f"sh -c 'if [ -n \\\"$HOLD\\\" ]; then echo check > {gate.ready}; read x < {gate.hold}; fi'"
    world = make(plan(1, 2), settings(check=check))
    agent = script(tmp_path / "agent")
    drive = Drive(world, agent, HOLD="yes")
    assert gate.words(1) == ["check"]
    drive.interrupt()
    assert drive.end() == 130, drive.text
    assert not left_running(world)
    code, text = run(world, agent, HOLD="")
    assert code == 0, text
    assert merged(world) == tickets(1, 2)


def test_others_are_waited_for_or_not(make: Make, tmp_path: Path) -> None:
    world = make(plan(1, 2))
    for action in hand_outs(world.actions("somebody")):
        world.bind(action, f"helper-{action['ticket'][-1]}")
    code, text = run(world, script(tmp_path / "agent"), "--no-wait")
    assert code == 1
    assert "waiting: agents are at work: grow#1.1 (claimed, helper-1), grow#1.2 (claimed, helper-2)" in text
    assert text.splitlines()[-2] == "waiting: 0 of 2 done"


def test_what_others_finish_is_waited_for(make: Make, tmp_path: Path) -> None:
    world = make(plan(2, 1))
    action = only(world.actions("somebody", 1))
    world.bind(action, "helper")
    drive = Drive(world, script(tmp_path / "agent"))
    drive.says("waiting: agents are at work: grow#1.1 (claimed, helper)")
    world.work(action)
    world.seal(action)
    world.reconcile(action)
    assert drive.end() == 0, drive.text
    assert "complete: 2 of 2 done" in drive.text
    assert "1 agent run," in drive.text


def test_a_reader_that_goes_away_ends_the_drive_in_order(make: Make, tmp_path: Path, fifo: Fifo) -> None:
    world, gate = make(plan(2, 1)), Gate(fifo)
    agent = script(tmp_path / "agent", f"{GOOD}{gate.body}")
    command = [sys.executable, str(MAIN), "drive", world.change, "--agent", str(agent)]
    environ = {**os.environ, "MARK": str(world.root), "HOLD": "2.*"}
    with subprocess.Popen(command, cwd=world.root, stdout=subprocess.PIPE, env=environ) as drive:
        assert drive.stdout is not None
        assert drive.stdout.readline().startswith(b"drive grow")
        drive.stdout.close()
    assert drive.returncode == 1
    assert not list((world.project.state / "drive").iterdir())
    assert not [
        ticket for ticket in ("1.1", "2.1") if world.ticket(ticket).get("assignment", {}).get("state") == "claimed"
    ]


def test_a_session_is_continued(make: Make, tmp_path: Path) -> None:
    """An answer that was never used is used now; a claim whose agent is not ours is handed out again."""
    world = make(plan(1, 2))
    agent = script(tmp_path / "agent")
    assert len(hand_outs(world.actions("mine"))) == 2
    code, text = run(world, agent, "--session", "mine")
    assert code == 0, text
    assert "  this run: 2 integrated, 2 agent runs" in text
    assert "attempt" not in text


def test_a_claim_without_an_agent_of_ours_is_lost_and_done_again(make: Make, tmp_path: Path) -> None:
    world = make(plan(1, 1))
    world.bind(only(world.actions("mine")), "somebody")
    code, text = run(world, script(tmp_path / "agent"), "--session", "mine")
    assert code == 0, text
    assert "session mine has no agent on it here" in text
    assert "integrated  1.1  Part 1 of 1  (0 s, attempt 2, again)" in text


def test_an_agent_whose_ticket_is_taken_away_is_ended(make: Make, tmp_path: Path, fifo: Fifo) -> None:
    world, gate = make(plan(1, 1), settings('[limits]\nlease = "4s"\n')), Gate(fifo)
    drive = Drive(world, script(tmp_path / "agent", gate.body + GOOD), HOLD="1.1")
    gate.words(1)
    assert baton(world.root, "skip", "1.1", "--why", "not needed").returncode == 0
    assert drive.end() == 0, drive.text
    assert "complete: 1 of 1 done (1 skipped)\n  this run: 0 integrated, " in drive.text
    assert "abandoned   1.1" in drive.text


def test_an_agent_that_lingers_after_its_seal_keeps_its_slot(make: Make, tmp_path: Path, fifo: Fifo) -> None:
    """Its claim is settled, so two more tickets are handed out while only one slot is free."""
    world, gate = make(plan(1, 4)), Gate(fifo)
    first, second, third = fifo("first"), fifo("second"), fifo("third")
    body = f"""{GOOD}
case $name in
    1.1) eval "$BATON_SEAL"; echo "sealed" > {gate.ready}; read x < {first};;
    1.2) read x < {second};;
    1.3) echo "$name-$BATON_SLOT" > {gate.ready}; read x < {third};;
    1.4) echo "$name-$BATON_SLOT" > {gate.ready};;
esac
"""
    drive = Drive(world, script(tmp_path / "agent", body), "--parallel", "2")
    assert gate.words(1) == ["sealed"]
    _let_go(second)
    assert gate.words(1) == ["1.3-1"]
    _let_go(first)
    assert gate.words(1) == ["1.4-0"]
    _let_go(third)
    assert drive.end() == 0, drive.text
    assert merged(world) == tickets(1, 4)


def _let_go(fifo: Path) -> None:
    with fifo.open("w") as file:
        file.write("go\n")


def test_an_error_in_the_plan_waits_for_the_agents(make: Make, tmp_path: Path, fifo: Fifo) -> None:
    world, gate = make(plan(1, 2)), Gate(fifo)
    release = fifo("release")
    drive = Drive(world, script(tmp_path / "agent", f"{GOOD}echo $name > {gate.ready}; read x < {release} || :"))
    gate.words(2)
    before = world.tasks.read_bytes()
    world.tasks.write_bytes(before.replace(b"Part 1 of 1", b"Part 1 of 1 (after 1.1)"))
    with release.open("r+b", buffering=0) as file:  # until the end: who comes to read only now finds its line too
        file.write(b"\n\n")
        assert drive.end() == 1, drive.text
    assert "error: " in drive.text
    world.tasks.write_bytes(before)
    code, text = run(world, script(tmp_path / "again"))
    assert code == 0, text
    assert merged(world) == tickets(1, 2)


def test_what_an_interrupted_drive_left_sealed_is_told_when_it_is_merged(make: Make, tmp_path: Path) -> None:
    world = make(plan(2, 2))
    for action in hand_outs(world.actions("gone")):
        world.work(action)
        world.seal(action)
    code, text = run(world, script(tmp_path / "agent"))
    assert code == 0, text
    assert [line[:15] for line in text.splitlines() if "by no agent of this run" in line] == [
        "integrated  1.1", "integrated  1.2",
    ]  # fmt: skip
    assert text.count("\nintegrated  ") == 4


def test_an_edit_of_the_plan_finds_a_free_slot_while_agents_run(tmp_path: Path, fifo: Fifo) -> None:
    gate = Gate(fifo)
    world = make_world(tmp_path / "project", plan(1, 1), config=settings())
    wait = f'if [ "$BATON_TICKET" = grow#1.1 ]; then echo begun > {gate.ready}; read x < {gate.hold}; fi\n'
    with nothing_left(world):
        drive = Drive(world, script(tmp_path / "agent", wait + GOOD))
        assert gate.words(1) == ["begun"]
        world.tasks.write_text(world.tasks.read_text() + "- [ ] 1.2 Part 2 of 1\n")
        drive.says("integrated  1.2 ")
        gate.hold.write_text("go\n")
        assert drive.end() == 0, drive.text
