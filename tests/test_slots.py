"""What runs at the same time has slots and ports of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from baton_cli import process, slots
from tests.kit import World, hand_outs, make_world


def numbers(texts: list[str]) -> list[int]:
    return [int(text) for text in texts]


def test_two_at_once_have_two_and_the_first_is_free_again() -> None:
    with slots.taken() as one:
        with slots.taken() as two:
            assert (one["BATON_SLOT"], two["BATON_SLOT"]) == ("5", "6")
            assert (one["BATON_PORT_BASE"], two["BATON_PORT_BASE"]) == ("20500", "20600")
        with slots.taken() as again:
            assert again == two


def test_processes_share_none() -> None:
    code = "from baton_cli import slots\nwith slots.taken() as one:\n    print(one['BATON_SLOT'], flush=True); input()"
    started = [
        subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    said = [child.stdout.readline() for child in started if child.stdout]
    assert sorted(numbers(said)) == [5, 6, 7]
    for child in started:
        child.communicate("\n")
        assert child.returncode == 0
    with slots.taken() as one:
        assert one["BATON_SLOT"] == "5"


def test_a_slot_that_was_given_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BATON_SLOT", "3")
    with slots.taken() as one, slots.taken() as two:
        assert one == two == {"BATON_SLOT": "3", "BATON_PORT_BASE": "20300"}


@pytest.mark.parametrize("given", ["", "-1", "four", "400", "٣"])
def test_what_is_no_slot_counts_as_none(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("BATON_SLOT", given)
    with slots.taken() as one:
        assert one["BATON_SLOT"] == "5"


def test_without_a_usable_home_it_is_one_beyond_those_of_agents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    with slots.taken() as one:
        assert slots.AGENTS <= int(one["BATON_SLOT"]) < slots.MOST


def test_an_error_inside_lets_go(tmp_path: Path) -> None:
    with pytest.raises(KeyError), slots.taken():
        raise KeyError
    run = process.run_check('echo "$BATON_SLOT $BATON_PORT_BASE"', cwd=tmp_path, log=tmp_path / "log", timeout=60)
    assert run.log.read_text() == "5 20500\n"


def test_checks_set_up_and_gate_find_it_and_the_packet_holds_none(tmp_path: Path) -> None:
    config = '[verify]\ncommands = ["test -n \\"$BATON_PORT_BASE\\" -a \\"$BATON_SLOT\\" -ge 5"]\n'
    config += '[worktree]\nsetup = ["echo $BATON_SLOT > .slot"]\n'
    world: World = make_world(tmp_path / "p", config=config, files={".gitignore": ".slot\n"})
    one, two = hand_outs(world.actions())
    assert (Path(one["cwd"]) / ".slot").read_text() == "5\n"
    for action in (one, two):
        assert world.finish(action)["state"] == "integrated", "the second one's gate runs the check too"
    for path in world.project.packets.iterdir():
        assert b"BATON_SLOT=" not in path.read_bytes()
        assert b"20500" not in path.read_bytes()
    assert not os.environ.get("BATON_SLOT")
