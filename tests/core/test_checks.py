"""Which bullets are commands, and which commands cannot fail."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton_cli.core.checks import cannot_fail, verify_bullets
from baton_cli.core.tasks import Bullet


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("verify: `pytest -q`", ("pytest -q",)),
        ("verify: pytest -q tests", ("pytest -q tests",)),
        ("Verify: `pytest`", ("pytest",)),
        ("verify:`a` , `b` and `c`.", ("a", "b", "c")),
        ("verify: ``echo `date` ``", ("echo `date`",)),
        ("verify : make", ("make",)),
        ("Verify: all pages load", ()),
        ("verify: `pytest` passes", ()),
        ("verify: run `pytest`", ()),
        ("verify:", ()),
        ("verify: ``", ()),
        ("verify: `a", ()),
        ("verify that `make` works", ()),
        ("**verify:** `make`", ()),
        ("after: 1.1", ()),
    ],
)
def test_only_what_is_clearly_a_command_is_one(text: str, commands: tuple[str, ...]) -> None:
    assert verify_bullets([Bullet(3, 2, text)]).commands == commands


@pytest.mark.parametrize(
    "command",
    [
        "true", ":", "/bin/true", "exit 0", "echo ok", "printf x", "pytest || true", "pytest || :", "pytest; true",
        "pytest ; exit 0", "pytest || echo failed", "pytest\ntrue", "echo a && echo b", "pytest | tee log",
        "pytest 2>&1 | tail -5", "pytest &", "pytest;true;", "false && x || true", "exit 0; pytest", "echo 'a && b'",
        "pytest || exit 0", "echo a > /dev/null",
    ],
)  # fmt: skip
def test_commands_that_cannot_fail_are_known(command: str) -> None:
    assert cannot_fail(command)


@pytest.mark.parametrize(
    "command",
    [
        "pytest", "pytest && true", "pytest && echo ok", "true && pytest", "true; pytest", "echo start; pytest",
        "echo a | grep b", "set -e; pytest; true", "exit 1", "test -f x", "pytest 2>&1", "python -c 'x || true'",
        'sh -c "a; true"', "! true", "a || b", "if x; then true; fi", "(pytest || true) && b", "true || x && pytest",
        "pytest 'it''s; true'", "", "# true", "a \\; true",
    ],
)  # fmt: skip
def test_commands_that_can_fail_are_not_suspected(command: str) -> None:
    assert not cannot_fail(command)


@given(st.text("ab |&;\n'\"\\`(){}<>#!", max_size=30))
def test_any_command_can_be_judged(command: str) -> None:
    assert cannot_fail(command) in (True, False)
