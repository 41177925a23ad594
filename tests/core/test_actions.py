"""The answer of `actions`: what each action says, and that the whole of it stays under the size that harnesses keep."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton_cli.core import actions, prompt
from baton_cli.core.actions import ANSWER_LIMIT, at_most, blocked_tickets, fit, hand_out, iso, next_step, text_of, wait
from baton_cli.core.facts import Change
from baton_cli.core.frontier import Progress, Status, TicketView, survey
from baton_cli.core.lifecycle import Assignment, State
from tests.stand_ins import CHANGE, CHECKED, UNCHECKED, ids_of, make_assignment, make_attempt, make_plan

ROOT = "/home/somebody/projects/company-website"
COUNTS = Progress(
    total=190, integrated=100, external=10, attested=10, skipped=10, in_flight=5, ready=40, waiting=10, blocked=5
)


def answer(made: list[dict[str, Any]], session: str = "s-0a1b2c3d", **more: Any) -> dict[str, Any]:
    return actions.answer(
        project=ROOT, change=CHANGE, session=session, revision=12, progress=COUNTS, actions=made, **more
    )


def action(kind: str = "dispatch", text: str = "Lay it", number: int = 1, **more: Any) -> dict[str, Any]:
    identity = f"0a1b2c3d-0000000{number}"
    cwd = f"{ROOT}/.dsh/baton/worktrees/{CHANGE}/0000000{number}"
    packet = f"{ROOT}/.dsh/baton/packets/{identity}.md"
    common: dict[str, Any] = {
        "key": f"{CHANGE}#1.{number}", "text": text, "cwd": cwd, "packet": packet, "seconds": 1920,
        "seal_command": f"/home/somebody/.venv/bin/baton seal {identity} --key {'0' * 24}",
    }  # fmt: skip
    made = (
        prompt.dispatch(**common, closing_check=True)
        if kind == "dispatch"
        else prompt.recover(**common, closing_check=True, why=text)
    )
    assignment = make_assignment(identity, ticket=f"{CHANGE}#1.{number}", attempt=make_attempt(claim_token="t" * 22))
    return hand_out(kind, assignment, title=text, cwd=cwd, packet=packet, prompt=made, extra=more)


# Size


@pytest.mark.parametrize(
    "text",
    ["Lay the first stone. " * 300, "é" * 9000, "日本語" * 2000, "👩‍👩‍👧" * 2000, '"\\' * 5000, "\x1b" * 4000, "x"],
)
@pytest.mark.parametrize("kind", ["dispatch", "recover"])
def test_five_hand_outs_with_long_texts_stay_under_the_limit(kind: str, text: str) -> None:
    made = [action(kind, text, number, reason="check_failed", previous_agent="agent-1") for number in range(1, 6)]
    held = fit(made, answer([]))
    whole = text_of(answer(made[:held]))
    assert len(whole) < 8000 == ANSWER_LIMIT
    assert held >= 1
    assert held == 5 or len(text_of(answer(made[: held + 1]))) >= ANSWER_LIMIT  # never fewer than fit


def test_an_ordinary_batch_of_five_fits() -> None:
    made = [action(text="Lay the first stone and see that it holds", number=number) for number in range(1, 6)]
    assert fit(made, answer([])) == 5


@given(st.lists(st.integers(1, 4000), min_size=1, max_size=8), st.integers(0, 3000))
def test_what_fits_is_the_longest_beginning_under_the_limit(sizes: list[int], notice: int) -> None:
    made = [{"kind": "dispatch", "prompt": "x" * size} for size in sizes]
    notices = [str(number) * (notice // 3) for number in range(3)]
    held = fit(made, answer([], notices=notices))
    fitting = [n for n in range(1, len(made) + 1) if len(text_of(answer(made[:n], notices=notices))) < ANSWER_LIMIT]
    assert held == max(fitting, default=1)


def test_an_answer_of_exactly_the_limit_is_too_long() -> None:
    first, last = action(), {"kind": "dispatch", "prompt": ""}
    room = ANSWER_LIMIT - len(text_of(answer([first, last])))
    assert fit([first, {**last, "prompt": "x" * (room - 1)}], answer([])) == 2
    assert fit([first, {**last, "prompt": "x" * room}], answer([])) == 1


def test_a_single_hand_out_that_is_too_long_is_handed_out_all_the_same() -> None:
    assert fit([action(text="x", number=1) | {"cwd": "/deep" * 2000}, action(number=2)], answer([])) == 1
    assert fit([], answer([])) == 0


def test_text_is_one_line_of_json_with_its_characters_as_they_are() -> None:
    made = text_of(answer([action(text="Überzug für 日本語\nzwei")]))
    assert "Überzug für 日本語" in made
    assert "\n" not in made
    assert ": " not in re.sub(r'"[^"]*"', '""', made)
    assert json.loads(made)["schema"] == "baton.actions/1"


def test_a_full_wait_and_many_blocked_stay_under_the_limit() -> None:
    running = [held(n, agent="agent-" + "x" * 30, session="s-0a1b2c3d") for n in range(64)]
    assert len(text_of(answer([wait("s-0a1b2c3d", running, "agents are at work")]))) < ANSWER_LIMIT
    plan = make_plan("".join(f"- [ ] 1.{n} {'long ' * 99}(manual)\n" for n in range(1, 191)))
    found = blocked_tickets(survey(plan, ids_of(plan), (), ()), "/home/somebody/.venv/bin/baton", ROOT)
    whole = answer(found, notices=["n" * 900] * 9)
    assert len(text_of(whole)) < ANSWER_LIMIT
    assert whole["actions"][0]["tickets"][-1] == "and 180 more"


# The parts of an answer


def test_an_answer_says_where_it_stands() -> None:
    made = answer([action()])
    assert list(made) == ["schema", "project", "change", "session", "revision", "state", "progress", "actions", "next"]
    assert made["progress"] == COUNTS._asdict()
    assert (made["project"], made["change"], made["session"], made["revision"]) == (ROOT, CHANGE, "s-0a1b2c3d", 12)


BLOCKED = actions.blocked("manual", ["grow#1.1"], "d", "r")
GROWN = Change(CHANGE, "main", "b" * 40, "baton/grow/integration", "a" * 40, None, 0.0)
COMPLETE = actions.complete(COUNTS, GROWN, None, "baton")
WAIT = wait("s", [], "x")


@pytest.mark.parametrize(
    ("made", "state"),
    [
        ([action()], "active"),
        ([action("recover")], "active"),
        ([WAIT], "active"),
        ([], "active"),
        ([BLOCKED], "blocked"),
        ([BLOCKED, BLOCKED], "blocked"),
        ([BLOCKED, WAIT], "active"),
        ([COMPLETE], "complete"),
    ],
)
def test_the_state_follows_from_the_actions(made: list[dict[str, Any]], state: str) -> None:
    assert answer(made)["state"] == state


@pytest.mark.parametrize("kind", ["dispatch", "recover", "resolve_merge"])
def test_next_after_hand_outs_is_to_delegate(kind: str) -> None:
    said = next_step({kind}, "s-1")
    assert "subagent" in said
    assert 'call actions again with session "s-1"' in said


def test_next_for_each_other_kind() -> None:
    assert next_step({"wait"}, "s-1").startswith("End your turn")
    assert "remedy" in next_step({"blocked"}, "s-1")
    assert "complete" in next_step({"complete"}, "s-1")
    assert "s-1" not in next_step({"complete"}, "s-1")
    for kinds in ({"wait"}, {"blocked"}, {"dispatch"}):
        assert 'session "s-1"' in next_step(kinds, "s-1")
        assert next_step(kinds, "s-1").endswith(".")


def test_notices_are_few_and_short_and_left_out_when_there_are_none() -> None:
    assert "notices" not in answer([])
    most = actions.NOTICE_LIMIT
    few = ["a\nb", *["n" * 900] * (most - 1)]
    assert answer([], notices=few)["notices"] == ["a b", *["n" * 299 + "…"] * (most - 1)]
    many = answer([], notices=[*few, "x", "y"])["notices"]
    assert many[:-1] == answer([], notices=few)["notices"]
    assert many[-1].startswith("and 2 more")


def test_a_hand_out_carries_what_the_session_needs() -> None:
    made = action("recover", reason="gate_failed", previous_agent=None)
    assert list(made) == [
        "kind", "assignment_id", "claim_token", "ticket", "title", "attempt", "cwd", "branch", "packet", "prompt",
        "lease_expires_at", "reason", "previous_agent",
    ]  # fmt: skip
    assert made["lease_expires_at"] == "1970-01-01T02:01:40Z"
    assert made["attempt"] == 1


def test_a_long_title_is_cut_to_eighty_characters() -> None:
    assert action(text="é" * 81)["title"] == "é" * 79 + "…"
    assert action(text="é" * 80)["title"] == "é" * 80


# wait


def held(number: int = 1, **attempt: Any) -> Assignment:
    state = attempt.pop("state", State.CLAIMED)
    return make_assignment(
        f"0a1b2c3d-{number:08}", ticket=f"{CHANGE}#1.{number}", state=state, attempt=make_attempt(**attempt)
    )


def test_wait_shows_tokens_of_the_callers_own_claims_only() -> None:
    in_flight = [
        held(1, session="me", claim_token="mine"),
        held(2, session="you", claim_token="yours"),
        held(3, session="me", claim_token="sealed", state=State.SEALED),
    ]
    made = wait("me", in_flight, "agents are at work")
    assert [entry.get("claim_token") for entry in made["in_flight"]] == ["mine", None, None]
    assert "yours" not in text_of(made)
    assert made["reason"] == "agents are at work"
    assert made["in_flight"][0] == {
        "assignment_id": "0a1b2c3d-00000001", "ticket": "grow#1.1", "state": "claimed", "agent": None, "session": "me",
        "since": "1970-01-01T00:01:40Z", "last_evidence_at": "1970-01-01T00:01:40Z", "claim_token": "mine",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("count", "shown", "last"), [(0, 0, None), (10, 10, None), (11, 11, "and 1 more"), (40, 11, "and 30 more")]
)
def test_wait_names_ten_and_a_count(count: int, shown: int, last: str | None) -> None:
    entries = wait("me", [held(number) for number in range(count)], "x")["in_flight"]
    assert len(entries) == shown
    if last:
        assert entries[-1] == last


# blocked and complete


def views(text: str, assignments: list[Assignment] | None = None, **more: Any) -> tuple[TicketView, ...]:
    plan = make_plan(text, **more)
    return survey(plan, ids_of(plan), (), assignments or ())


def test_blocked_tickets_are_grouped_by_reason_in_plan_order() -> None:
    text = "- [ ] 1.1 a\n- [ ] 1.2 b (manual)\n- [ ] 1.3 c\n- [ ] 1.4 d (human)\n- [ ] 1.5 e\n  - verify: `x`\n"
    found = blocked_tickets(views(text, sources=UNCHECKED), "/bin/baton", ROOT)
    assert [(one["reason"], one["tickets"]) for one in found] == [
        ("no_verification", ["grow#1.1", "grow#1.3"]),
        ("manual", ["grow#1.2", "grow#1.4"]),
    ]
    assert all(one["kind"] == "blocked" for one in found)
    assert found[0]["detail"].startswith("grow#1.1: a")


def test_nothing_blocked_gives_no_action() -> None:
    assert blocked_tickets(views("- [ ] 1.1 a\n- [x] 1.2 b\n"), "baton", ROOT) == []


def test_an_exhausted_ticket_tells_what_went_wrong() -> None:
    failed = make_assignment(ticket="grow#1.1", state=State.EXHAUSTED, detail="`pytest -q` exited with 1\n" + "x" * 900)
    (found,) = blocked_tickets(views("- [ ] 1.1 a\n", [failed]), "/bin/baton", ROOT)
    assert found["reason"] == "exhausted"
    assert "(`pytest -q` exited with 1 x" in found["detail"]
    assert len(found["detail"]) < 300
    assert "/bin/baton retry 'grow#1.1'" in found["remedy"]


REASONS = {
    "manual": ("- [ ] 1.1 a (manual)\n", {}, None),
    "no_verification": ("- [ ] 1.1 a\n", {"sources": UNCHECKED}, None),
    "ambiguous_identity": ("- [ ] 1.1 a\n", {"ambiguous": [0]}, None),
    "exhausted": ("- [ ] 1.1 a\n", {}, make_assignment(state=State.EXHAUSTED)),
    "setup_failed": ("- [ ] 1.1 a\n", {}, make_assignment(state=State.EXHAUSTED, reason="setup_failed")),
}


def test_every_reason_has_a_remedy() -> None:
    assert set(actions.REMEDIES) == set(REASONS)


@pytest.mark.parametrize("reason", REASONS)
@pytest.mark.parametrize("root", [ROOT, "/home/me/my baton project", "/tmp/{ticket}", "/home/baton retry/x"])
def test_remedies_call_baton_by_its_full_name_and_leave_paths_alone(reason: str, root: str) -> None:
    text, more, assignment = REASONS[reason]
    (found,) = blocked_tickets(views(text, [assignment] if assignment else [], **more), "/opt/my/baton", root)
    assert found["reason"] == reason
    remedy = found["remedy"]
    for verb in ("done", "skip", "retry"):
        assert len(re.findall(rf"(?<!/)\bbaton {verb}\b", remedy.replace(root, ""))) == 0
        assert remedy.count(f" {verb} 'grow#1.1'") == remedy.count(f"/opt/my/baton {verb} 'grow#1.1'")
    if reason == "no_verification":
        assert f"{root}/baton.toml" in remedy
    if reason == "manual":
        assert "/opt/my/baton done 'grow#1.1'" in remedy
        assert "/opt/my/baton skip 'grow#1.1'" in remedy


def test_the_key_in_a_remedy_is_quoted_for_a_shell() -> None:
    (found,) = blocked_tickets(views("- [ ] 1.1 a (manual)\n", change="it's my; change"), "baton", ROOT)
    assert "baton done 'it'\"'\"'s my; change#1.1' --why" in found["remedy"]


def test_complete_says_what_to_do_next() -> None:
    assert COMPLETE["total"] == 190
    assert (COMPLETE["integrated"], COMPLETE["external"], COMPLETE["attested"], COMPLETE["skipped"]) == (
        100,
        10,
        10,
        10,
    )
    assert (COMPLETE["integration_branch"], COMPLETE["integration_head"]) == ("baton/grow/integration", "a" * 40)
    assert COMPLETE["then"] == "baton land grow, commit the ticks in tasks.md, then: openspec archive grow"
    nowhere = actions.complete(COUNTS, GROWN._replace(target_branch=None), None, "baton")
    assert nowhere["then"].startswith("baton land grow --into BRANCH, ")
    landed = actions.complete(COUNTS, GROWN, "main", "baton")
    assert landed["then"] == "main has it all; with the ticks in tasks.md committed: openspec archive grow"


# Small things


@pytest.mark.parametrize(
    ("names", "shown"),
    [([], []), (list("abc"), list("abc")), ([str(n) for n in range(11)], [*map(str, range(10)), "and 1 more"])],
)
def test_lists_name_ten_and_then_a_count(names: list[str], shown: list[str]) -> None:
    assert at_most(iter(names)) == shown


def test_a_list_may_be_shorter() -> None:
    assert at_most("abcd", 2) == ["a", "b", "and 2 more"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (0.999, "1970-01-01T00:00:00Z"),
        (1_900_000_000.5, "2030-03-17T17:46:40Z"),
        (1_709_208_000, "2024-02-29T12:00:00Z"),
    ],
)
def test_times_are_utc_to_the_second(seconds: float, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    assert iso(seconds) == text


def test_every_blocked_status_has_a_reason() -> None:
    for text, more, assignment in REASONS.values():
        (view,) = views(text, [assignment] if assignment else [], **more)
        assert view.status is Status.BLOCKED
        assert view.reason in actions.REMEDIES
    assert CHECKED.project


def test_a_remedy_names_the_first_tickets_and_says_how_many_more() -> None:
    keys = [f"grow#1.{n}" for n in range(1, 6)]
    ways = actions.remedy("exhausted", keys, "baton", ROOT)
    assert [way["say"] for way in ways] == [
        "when what stopped it is mended (the same for 2 more):",
        "or commit a repair in its worktree, which explain names, then:",
    ]  # fmt: skip
    assert ways[0]["run"] == [f"baton retry 'grow#1.{n}'" for n in (1, 2, 3)]
    assert actions.remedy_text(actions.remedy("exhausted", keys[:2], "baton", ROOT)) == (
        "when what stopped it is mended: baton retry 'grow#1.1'; baton retry 'grow#1.2' "
        "(or commit a repair in its worktree, which explain names, then: baton seal 'grow#1.1' --operator --why '...')"
    )
    skips = actions.remedy("manual", keys, "baton", ROOT)[1]
    assert skips == {"say": "or:", "run": ["baton skip 'grow#1.1' --why '...'"]}


def test_what_comes_after_the_landing_is_not_to_be_done_before() -> None:
    ways = actions.remedy("manual", ["grow#3.1", "grow#3.2"], "baton", "/home/ada/app", ["grow#3.2"])
    assert [way["run"] for way in ways] == [
        ["baton done 'grow#3.1' --why '...'"],
        ["baton skip 'grow#3.1' --why '...'"],
        ["baton skip 'grow#3.2' --why '...'"],
    ]
    (alone,) = actions.remedy("manual", ["grow#3.2"], "baton", "/home/ada/app", ["grow#3.2"])
    assert "after `baton land`" in alone["say"]
