"""The Task Packet and the page made of it."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from baton_cli.core import canonical, packet
from baton_cli.core.packet import DOCUMENT_LIMIT, allows_empty_diff, document, page
from tests.stand_ins import UNCHECKED, make_packet, make_plan

TEXT = """\
## 1. Ground
- [ ] 1.1 Lay the **first** stone (after none)
  - verify: `pytest -q tests/a`
  - verify: `ruff check`
  - [ ] find one
  - [x] carry it
  and mind `your` feet
- [ ] 1.2 Verify the stones
"""


def test_a_packet_holds_all_that_the_ticket_says() -> None:
    plan = make_plan(TEXT)
    value = make_packet(plan)
    ticket = plan.tickets[0].ticket
    assert value["schema"] == "baton.packet/1"
    assert value["ticket"] == {
        "key": "grow#1.1",
        "id": "1.1",
        "fingerprint": ticket.fingerprint,
        "title": ticket.title,
        "text": ticket.text,
        "body": ticket.body,
        "section": plan.document.sections[0].title,
        "flags": [],
        "checklist": ["find one", "carry it"],
    }
    assert value["checks"] == [
        {"command": "pytest -q tests/a", "timeout": 1800, "source": "ticket"},
        {"command": "ruff check", "timeout": 1800, "source": "ticket"},
    ]
    assert [check["command"] for check in value["checks"]] == ["pytest -q tests/a", "ruff check"]


def test_a_packet_carries_no_token() -> None:
    names: set[str] = set()

    def collect(value: object) -> None:
        if isinstance(value, dict):
            names.update(value)
            for item in value.values():
                collect(item)
        elif isinstance(value, list):
            for item in value:
                collect(item)

    collect(make_packet(documents=[document("proposal.md", "x", "0" * 64)]))
    assert not {name for name in names if "token" in name or "secret" in name or "env" in name}


def test_the_same_packet_has_the_same_bytes_and_survives_them() -> None:
    value = make_packet(make_plan(TEXT))
    body = canonical.encode(value)
    assert body == canonical.encode(make_packet(make_plan(TEXT)))
    assert json.loads(body) == value
    assert canonical.encode(json.loads(body)) == body
    assert canonical.digest(body) == canonical.digest_of(value)


def test_any_difference_is_another_digest() -> None:
    digests = {
        canonical.digest_of(make_packet(make_plan(TEXT), **more))
        for more in (
            {},
            {"base": "0" * 40},
            {"protected": []},
            {"earlier": {"commit": "1", "text": "x"}},
            {"prefix": "p"},
        )
    }
    assert len(digests) == 5


def test_only_a_closing_check_may_change_nothing() -> None:
    plan = make_plan(TEXT)
    assert [allows_empty_diff(make_packet(plan, planned.key)) for planned in plan.tickets] == [False, True]


def test_a_huge_document_is_cut_and_says_so() -> None:
    small = document("a", "é" * DOCUMENT_LIMIT, "d")
    large = document("a", "é" * (DOCUMENT_LIMIT + 1), "d")
    assert (small["cut"], large["cut"]) == (False, True)
    assert small["text"] == large["text"]
    assert small["digest"] == large["digest"] == "d"


def test_the_page_tells_everything() -> None:
    value = make_packet(
        make_plan(TEXT),
        dependencies=[
            {"key": "grow#0.1", "title": "Dig", "commit": "1" * 40, "evidence": "integrated"},
            {"key": "grow#0.2", "title": "Measure", "commit": None, "evidence": "external"},
        ],
        earlier={"commit": "2" * 40, "text": "Lay a stone"},
        documents=[
            document("proposal.md", "# Why\n", "d"),
            {"name": "design.md", "text": "How", "digest": "d", "cut": True},
        ],
    )
    text = page(value)
    ticket = value["ticket"]
    for part in (
        f"# {ticket['key']}: {ticket['title']}\n", ticket["text"], ticket["body"], value["cwd"], value["branch"], value["base"],
        "`pytest -q tests/a` (limit 1800 s, from ticket)", "- openspec/changes/grow\n", "- baton.toml\n",
        f"- grow#0.1: Dig ({'1' * 40})\n", "- grow#0.2: Measure (external)\n", "2" * 40, "Lay a stone",
        "\n## proposal.md\n", "# Why", "\n## design.md\n", "(cut after 200000 characters)",
    ):  # fmt: skip
        assert part in text, part
    assert text.endswith("\n")


def test_the_page_leaves_out_what_there_is_not() -> None:
    text = page(make_packet(make_plan("- [ ] 1.1 a\n", sources=UNCHECKED), protected=[]))
    assert "## Checks" in text
    for heading in ("## Do not change", "## Earlier work", "## Already integrated", "cut after"):
        assert heading not in text


@given(st.text(), st.text(), st.text())
def test_any_text_makes_a_packet_and_a_page(name: str, text: str, section: str) -> None:
    value = make_packet(documents=[document(name, text, "d")], section=section)
    assert json.loads(canonical.encode(value)) == value
    assert text in page(value)


def test_a_check_shows_where_it_comes_from() -> None:
    check = make_plan("- [ ] 1.1 a\n").tickets[0].checks[0]
    assert packet.check_value(check) == {"command": "pytest -q", "timeout": 1800, "source": "project"}
