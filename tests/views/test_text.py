"""The plain texts: everything a person needs is in them, and nothing that acts on a terminal."""

from __future__ import annotations

from typing import Any

import pytest

from baton_cli.core import actions as core
from baton_cli.core import plan, tasks
from baton_cli.core.checks import CheckSources
from baton_cli.core.facts import Change
from baton_cli.core.frontier import Progress
from baton_cli.views.text import actions_text, init_text, log_text, plan_text, receipt_text, settled_text
from baton_cli.views.words import age, seconds, span

HOSTILE = "\x1b[31mred\x07\u202e[bold]x[/]"
SAFE = "\\x1b[31mred\\x07\\u202e[bold]x[/]"


def answer(*actions: dict[str, Any], **more: Any) -> dict[str, Any]:
    counts = Progress(
        total=9, integrated=3, external=0, attested=0, skipped=1, in_flight=2, ready=1, waiting=2, blocked=0
    )
    return core.answer(
        project="/p", change="add-x", session="s-1", revision=2, progress=counts, actions=actions, **more
    )


def dispatch(**more: Any) -> dict[str, Any]:
    return {
        "kind": "dispatch",
        "assignment_id": "ab12-3",
        "claim_token": "tok-en",
        "ticket": "add-x#3.1",
        "title": f"Persist {HOSTILE}",
        "attempt": 1,
        "cwd": "/p/.dsh/baton/worktrees/add-x/3",
        "branch": "baton/add-x/3.1-ab",
        "packet": "/p/packet.md",
        "prompt": "Work only in /p.\nTicket 3.1:\n\nseal it",
        "lease_expires_at": "2026-09-21T16:00:00Z",
    } | more


@pytest.mark.parametrize(
    ("length", "said"),
    [
        (-5, "0 s"), (0, "0 s"), (59.9, "59 s"), (60, "1 min"), (3599, "59 min"), (3600, "1 h"), (6480, "1 h 48 m"),
        (86_400, "1 d"), (100_000, "1 d 3 h"),
    ],
)  # fmt: skip
def test_spans(length: float, said: str) -> None:
    assert span(length) == said


def test_moments() -> None:
    assert (
        seconds("1970-01-01T00:01:00Z") == seconds("1970-01-01T01:01:00+01:00") == seconds("1970-01-01T00:01:00") == 60
    )
    assert seconds(None) is None
    assert age("nonsense", 0) == ""


def test_hand_out_shows_all_that_bind_and_reconcile_take() -> None:
    text = actions_text(answer(dispatch(), notices=["the checks\nare detected"]))
    assert text.startswith("add-x  4 of 9 done, 2 in flight, 1 ready, 2 waiting  (session s-1)\n")
    assert "notice: the checks are detected\n" in text
    assert f"dispatch 3.1  Persist {SAFE}\n" in text
    for told in ("assignment  ab12-3", "token       tok-en", "folder      /p/.dsh/baton/worktrees/add-x/3"):
        assert f"  {told}\n" in text
    assert "  prompt\n    Work only in /p.\n    Ticket 3.1:\n\n    seal it\n" in text
    assert text.endswith('then call actions again with session "s-1".\n')
    assert "\x1b" not in text


def test_recover_and_merge_say_what_is_met() -> None:
    text = actions_text(
        answer(
            dispatch(kind="recover", reason="lease_expired", previous_agent="child-1"),
            dispatch(kind="resolve_merge", files=["a.py", "b\n.py"], others=["add-x#2.1"]),
        )
    )
    assert "recover 3.1" in text
    assert "why         lease expired, agent before child-1\n" in text
    assert "resolve merge 3.1" in text
    assert "conflicts   a.py, b\\n.py\n" in text
    assert "with        2.1\n" in text


def test_wait_blocked_and_complete() -> None:
    entry = {"assignment_id": "ab12-3", "ticket": "add-x#3.1", "state": "claimed", "agent": None, "session": "s-1",
             "since": "2026-09-21T14:00:00Z", "last_evidence_at": None, "claim_token": "tok-en"}  # fmt: skip
    text = actions_text(answer({"kind": "wait", "reason": "agents are at work", "in_flight": [entry, "and 2 more"]}))
    assert "wait: agents are at work\n  3.1  claimed  session s-1, since 2026-09-21 14:00:00Z, last sign ?\n" in text
    assert "assignment ab12-3  token tok-en\n  and 2 more\n" in text
    text = actions_text(
        answer(core.blocked("setup_failed", ["add-x#1.1", "and 3 more"], "npm ci\nfailed", "baton retry"))
    )
    assert "blocked: setup failed  1.1 and 3 more\n  npm ci failed\n  -> baton retry\n" in text
    counts = Progress(4, 3, 0, 0, 1, 0, 0, 0, 0)
    change = Change("add-x", "main", "b", "baton/add-x/integration", "4f2a91c0d3e8b7", None, 0.0)
    text = actions_text(answer(core.complete(counts, change, None, "baton")))
    assert "complete: 4 tickets (3 integrated, 1 skipped)\n  on baton/add-x/integration at 4f2a91c0d3e8\n  -> " in text
    assert "openspec archive add-x\n" in text


def test_settled() -> None:
    value = {
        "schema": "baton.reconcile/1", "assignment_id": "a-1", "ticket": "add-x#3.1", "state": "unknown",
        "reason": "no_receipt", "next": "call actions with your session", "detail": "it ended\nearly",
        "isolation": "a.py changed", "notices": ["not ticked yet"],
    }  # fmt: skip
    assert settled_text(value) == (
        "3.1  unknown (no receipt)\n  it ended early\nnotice: a.py changed\nnotice: not ticked yet\n"
        "next: call actions with your session\n"
    )
    decision = {"ticket": "add-x#3.1", "decision": "retry", "notice": None, "next": "call actions"}
    assert settled_text(decision) == "3.1  retry\nnext: call actions\n"


PLAN = b"""## 1. Foundations
- [x] 1.1 Lay the first stone
- [ ] 1.2 Lay the second
  - [x] sand
  - [ ] lime
  - verify: `make lime`
## Colours
- [ ] 2.1 Blue \x1b[31m
- [ ] 2.2 Green (after 1.1)
- [ ] 2.3 Grey (after none)
- [ ] 2.4 Verify it all
## 3. Rollout
- [ ] 3.1 Ship it
- [ ] 3.2 Archive the change
"""


def plan_value(data: bytes = PLAN, detected: tuple[str, ...] = ("pytest -q",)) -> dict[str, Any]:
    document = tasks.parse(data)
    keys = [f"add-x#{ticket.id}" for ticket in document.tickets]
    sources = CheckSources(change=None, project=None, detected=detected, timeout=60)
    return plan.to_json(plan.build("add-x", document, keys, sources=sources))


def test_plan() -> None:
    text, _, warned = plan_text(plan_value()).partition("\n\n3 warnings\n")
    assert text == (
        "add-x  2 of 10 boxes done\n"
        "checks: `pytest -q` (detected)\n"
        "\n"
        "1  Foundations\n"
        "  [x] 1.1  Lay the first stone\n"
        "  [ ] 1.2  Lay the second\n"
        "           checklist 1 of 2\n"
        "           checks: `make lime` (ticket)\n"
        "\n"
        "Colours  (after section 1)\n"
        "  [ ] 2.1  Blue \\x1b[31m\n"
        "  [ ] 2.2  Green\n"
        "           after 1.1\n"
        "  [ ] 2.3  Grey\n"
        "           after nothing\n"
        "  [ ] 2.4  Verify it all\n"
        "           after section 1 and the others of its section, closing check\n"
        "\n"
        '3  Rollout  (after section "Colours")\n'
        "  [ ] 3.1  Ship it\n"
        "  [ ] 3.2  Archive the change\n"
        "           manual"
    )
    assert warned.startswith("  no baton.toml; checks found")
    assert "\n  line 11: 2.4 reads like a check" in warned


def test_a_plan_without_sections_has_no_empty_heading() -> None:
    text = plan_text(plan_value(b"- [ ] 1.1 Lay it\n"))
    assert "\n\n  [ ] 1.1  Lay it\n" in text
    assert "\n\n\n" not in text


def test_plan_of_many_edges_stays_short() -> None:
    lines = [f"- [ ] 1.{n} Do step {n}" for n in range(1, 400)] + ["## 2. Then"]
    names = ", ".join(f"1.{n}" for n in range(1, 200))
    lines += [f"- [ ] 2.{n} Do more" for n in range(1, 400)] + [f"- [ ] 2.400 Odd (after {names})"]
    text = plan_text(plan_value("\n".join(["## 1. First", *lines]).encode()))
    assert "2  Then  (after section 1)\n" in text
    assert "after 1.1 1.2 1.3 1.4 1.5 1.6 1.7 1.8 and 191 more\n" in text


def test_broken_plan() -> None:
    error = {"code": "plan_cycle", "message": "1.1 waits for\n1.1", "hint": "take it out"}
    value = {"schema": "baton.plan/1", "change": HOSTILE, "total": 1, "done": 0, "error": error}
    assert plan_text(value) == f"{SAFE}  0 of 1 box done\nerror: 1.1 waits for 1.1\nhint: take it out\n"
    assert plan_text({"change": "a", "total": None, "error": "bad"}) == "a\nerror: bad\n"


def test_log() -> None:
    first = {"event": 1, "at": "2026-09-21T14:00:00Z", "change": "add-x", "name": "revision", "ticket": None,
             "assignment_id": None, "attempt": None, "session": None, "cause": "revision 1", "detail": None}  # fmt: skip
    second = first | {"name": "seal_refused", "ticket": "add-x#3.1", "attempt": 2, "cause": "dirty", "detail": HOSTILE}
    assert log_text({"change": "add-x", "events": [first, second]}) == (
        "2026-09-21 14:00:00Z           revision      revision 1\n"
        f"2026-09-21 14:00:00Z  3.1  #2  seal refused  dirty: {SAFE}\n"
    )
    assert "  other  " in log_text({"change": None, "events": [first, second | {"change": "other"}]})
    assert log_text({"change": None, "events": []}) == "nothing has happened yet\n"


def test_receipt() -> None:
    receipt = {
        "attempt": 2, "packet": "p" * 64, "base": "b" * 40, "head": "a" * 40, "tree": "c" * 40, "digest": "d" * 64,
        "checks": [{"command": "pytest -q\t", "exit_code": 0, "duration": 12.345, "output_digest": "e"}],
        "ignored": [f"f{n}" for n in range(7)], "clean_environment": False, "touches_checks": ["package.json"],
        "empty_diff": True, "operator": {"who": "ada", "why": "flaky"}, "sealed_at": "2026-09-21T14:00:00Z",
    }  # fmt: skip
    text = receipt_text({"assignment_id": "a-1", "ticket": "add-x#3.1", "receipt": receipt})
    assert text.startswith("3.1  receipt of assignment a-1\n  sealed      2026-09-21 14:00:00Z, attempt 2\n")
    assert "  by          who ada, why flaky\n" in text
    assert "    exit 0  12.3 s  pytest -q\\t\n" in text
    assert "  note: the work changes what the checks run: package.json\n  note: no file was changed\n" in text
    assert "f4 and 2 more\n" in text
    plain = receipt | {
        "operator": None,
        "ignored": [],
        "clean_environment": True,
        "touches_checks": [],
        "empty_diff": False,
    }
    text = receipt_text({"assignment_id": "a-1", "ticket": "add-x#3.1", "receipt": plain})
    assert "note" not in text
    assert "  by " not in text


def test_init() -> None:
    value = {
        "config": "/p/baton.toml",
        "written": True,
        "commands": ["npm test"],
        "setup": ["npm ci"],
        "why": ["package.json"],
    }
    assert init_text(value) == (
        "wrote /p/baton.toml\nchecks\n  npm test  (package.json)\nset-up of each worktree\n  npm ci\nnext: baton plan\n"
    )
    told = init_text(
        value | {"ignore": [{"tool": "eslint", "where": "eslint.config.js", "line": '{ ignores: [".dsh/**"] }'}]}
    )
    assert '\n  eslint    eslint.config.js: { ignores: [".dsh/**"] }\nnext: ' in told
    text = init_text(value | {"written": False, "commands": [], "setup": [], "why": []})
    assert text.startswith("/p/baton.toml is there already and stays as it is\nno check was found: ")
