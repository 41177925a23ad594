"""`baton explain`: one ticket and all that is behind it."""

from __future__ import annotations

import re
from pathlib import Path

from baton_cli.views.explain import explain_view
from tests.kit import World, baton, baton_json, hand_outs, make_world

TASKS = """\
## 1. Ground

- [ ] 1.1 Lay the first stone
- [ ] 1.2 Lay the second stone
  - verify: test -f never

## 2. Walls

- [ ] 2.1 Raise the wall
- [ ] 2.2 Paint the wall (after 2.1)
"""


def stuck(root: Path) -> World:
    """1.1 is integrated, 1.2 has used up its only attempt."""
    world = make_world(root, TASKS, config='[verify]\ncommands = ["test -f README"]\n[limits]\nattempts = 1\n')
    first, second = hand_outs(world.actions())
    world.finish(first)
    world.bind(second, "agent-2")
    world.work(second)
    world.reconcile(second)
    world.actions()
    return world


def test_what_a_ticket_waits_for_and_what_became_of_it(tmp_path: Path) -> None:
    world = stuck(tmp_path / "repo")
    waiting = baton_json(world.root, "explain", "2.2")
    assert waiting["because"] == "waits for 2.1, which waits for 1.2, which is exhausted"
    assert [one["key"] for one in waiting["waits_for"]] == ["grow#2.1"]
    assert (waiting["assignment"], waiting["receipt"], waiting["events"]) == (None, None, [])

    failed = baton_json(world.root, "explain", "grow#1.2")
    assert failed["because"].startswith("is exhausted (attempt 1, agent-2): `test -f never` exited with 1")
    assert failed["steps"][0]["run"][0].endswith("retry 'grow#1.2'")
    assert failed["needed_by"] == ["grow#2.1"]
    assert Path(failed["assignment"]["worktree"]).is_dir()
    names = [event["name"] for event in failed["events"]]
    assert (names[0], names[-1]) == ("claimed", "exhausted")
    assert "seal_refused" in names
    assert failed["logs"]
    assert all(Path(log).is_file() for log in failed["logs"])

    done = baton_json(world.root, "explain", "1.1")
    assert done["because"].startswith("is integrated, as ")
    assert done["receipt"]["digest"] == done["assignment"]["receipt"]
    assert done["receipt"]["checks"][0] | {"duration": 0} == {
        "command": "test -f README",
        "exit_code": 0,
        "duration": 0,
    }
    assert [event["name"] for event in done["events"]].count("integrated") == 1


def test_the_sign_is_the_one_that_status_shows(tmp_path: Path) -> None:
    """Running, sealed, to be taken up again, waiting and finished: also where another ticket waits for it."""
    plan = TASKS.replace("second stone\n  - verify: test -f never", "second stone")
    world = make_world(tmp_path / "repo", plan + "- [ ] 2.3 Sweep (after 1.1, 1.2)\n")
    first, second = hand_outs(world.actions())
    world.work(first)
    world.seal(first)
    world.reconcile(second, "stopped")
    seen = {}
    for name in ("1.1", "1.2"):
        status = baton(world.root, "status").stdout
        (row,) = [line for line in status.splitlines() if f" {name}  " in line]
        seen[name] = row.split()[0]
        assert baton(world.root, "explain", name).stdout.startswith(f"{seen[name]} {name}  ")
    assert seen == {"1.1": "◐", "1.2": "◐"}
    waits = baton(world.root, "explain", "2.3").stdout
    assert "  ◐ 1.1  Lay the first stone" in waits
    assert "sealed, to be integrated" in waits
    assert "to be taken up again" in waits
    assert hand_outs(world.actions())[0]["ticket"] == "grow#1.2"
    assert baton(world.root, "explain", "1.2").stdout.startswith("● 1.2  ")
    assert baton(world.root, "explain", "1.1").stdout.startswith("✓ 1.1  ")


def test_as_text(tmp_path: Path) -> None:
    world = stuck(tmp_path / "repo")
    text = baton(world.root, "explain", "2.1").stdout
    assert text.splitlines()[:3] == ["◌ 2.1  Raise the wall", "  waits for 1.2, which is exhausted", ""]
    assert "  needed by    2.2\n" in text
    assert "  ! 1.2  Lay the second stone" in text
    failed = baton(world.root, "explain", "1.2", env={"LC_ALL": "C", "PYTHONUTF8": "0"}).stdout
    assert failed.startswith("! 1.2  Lay the second stone\n  is exhausted (attempt 1, agent-2): ")
    assert "  -> when what stopped it is mended: " in failed
    assert failed.isascii()
    done = baton(world.root, "explain", "1.1").stdout
    assert ", 1 check passed at " in done
    assert "\x1b" not in text + failed + done


def test_its_history_follows_a_ticket_over_a_new_number(tmp_path: Path) -> None:
    world = stuck(tmp_path / "repo")
    world.tasks.write_text(world.tasks.read_text().replace("1.2 Lay", "1.7 Lay"))
    world.actions()
    events = baton_json(world.root, "explain", "1.7")["events"]
    assert {event["ticket"] for event in events} == {"grow#1.2"}


def test_refusals(tmp_path: Path) -> None:
    world = make_world(tmp_path / "repo")
    assert baton_json(world.root, "explain", "9.9", code=1)["error"]["code"] == "no_such_ticket"
    assert not (world.root / ".dsh").exists()


def test_hostile_texts_and_narrow_pages() -> None:
    wild = "\x1b[31m [red]x[/] \u202e" + "x" * 300
    value = {
        "ticket": "grow#1.1", "title": wild, "section": {"number": None, "title": wild}, "line": 3, "status": "in_flight",
        "reason": None, "because": wild, "steps": [], "flags": [], "needed_by": [f"grow#2.{n}" for n in range(30)],
        "waits_for": [
            {"key": f"grow#0.{n}", "title": wild, "status": "integrated", "reason": None, "state": None} for n in range(15)
        ],
        "checks": [{"command": wild, "source": "ticket"}], "assignment": None, "receipt": None,
        "logs": [wild] * 6,
        "events": [{"at": "2026-11-29T22:45:55Z", "attempt": 1, "name": "claimed", "cause": wild, "detail": wild}],
    }  # fmt: skip
    for colour in (True, False):
        text = explain_view(value, colour=colour, width=60, unicode=True)
        assert "[red]x[/] \\u202e" in text
        assert "\x1b[31m [" not in text
        words = " ".join(re.sub(r"\x1b\[[0-9;]*m", "", text).split())
        assert "and 20 more" in words
        assert "and 5 more" in words
