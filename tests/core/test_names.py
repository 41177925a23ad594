"""Names for branches and folders: valid for git, one component, and never shared by two names."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from baton_cli.core.names import integration_branch, replaced_ref, sealed_ref, slug, ticket_branch

# The letters that git's rules and file systems are about come up often; so does everything else.
names = st.text(
    st.one_of(st.sampled_from("aA1-._/ \\~^:?*[@{}#\x7f\x00\n.lock"), st.characters(codec="utf-8")), max_size=90
)
AWKWARD = [
    "", " ", ".", "..", "...", "a..b", "a.", ".a", "a.lock", "a.LOCK", "x.lock.lock", "-", "-a", "--", "@", "@{", "a@{1}", "HEAD",
    "a/b", "../../etc", "a\\b", "a b", " a", "a ", "a\tb", "a\nb", "a\0b", "a~1", "a^", "a:b", "a?b", "a*", "a[b]", "é", "日本語",
    "a\u202eb", "👩‍👩‍👧", "a" * 61, "a" * 300, "é" * 300, "\udc80", "%2e", "a#1.1", "1.2", "CON", "'; rm -rf ~; '", "$(id)",
    "`id`",
]  # fmt: skip


def accepted(branches: list[str]) -> None:
    """git itself says yes to every one of them."""
    for branch in branches:
        done = subprocess.run(["git", "check-ref-format", "--branch", branch], capture_output=True)
        assert done.returncode == 0, branch


@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_names_become_one_plain_component(name: str) -> None:
    made = slug(name)
    assert made.isascii()
    assert made.isprintable()
    assert 0 < len(made) <= 60
    assert not set(made) & set("/\\ ~^:?*[{\"'`$&|;<>()!")
    assert made not in (".", "..", "@")
    assert not made.startswith(("-", "."))
    accepted([integration_branch("baton", name), ticket_branch("baton", name, name, "0a1b2c3d")])


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(names, min_size=1, max_size=4))
def test_git_accepts_the_branches_of_any_names(made: list[str]) -> None:
    accepted(
        [ticket_branch("baton", first, last, "0a1b2c3d") for first, last in zip(made, reversed(made), strict=True)]
    )
    accepted([integration_branch("baton", name) for name in made])


@given(names)
def test_a_slug_is_ascii_and_stable(name: str) -> None:
    assert slug(name) == slug(name)
    assert slug(name).isascii()
    assert 0 < len(slug(name)) <= 60


@given(names, names)
def test_distinct_names_have_distinct_slugs(one: str, other: str) -> None:
    assert (slug(one) == slug(other)) is (one == other)


@pytest.mark.parametrize("name", AWKWARD)
def test_no_name_can_be_chosen_to_look_like_the_slug_of_another(name: str) -> None:
    made = slug(name)
    assert slug(made) == made if made == name else slug(made) != made


@pytest.mark.parametrize(
    "name", ["add-auth", "1.2", "A1", "T-3", "L7", "fix_the.thing", "add-facade", "a" * 60, "Phase-2.1a"]
)
def test_plain_names_stay_as_they_are(name: str) -> None:
    assert slug(name) == name


def test_a_changed_name_stays_readable() -> None:
    assert slug("Add the parser!").startswith("Add-the-parser")


def test_branches_and_refs_say_what_they_are_for() -> None:
    assert integration_branch("baton", "grow") == "baton/grow/integration"
    assert ticket_branch("team/baton", "grow", "1.2", "0a1b2c3d") == "team/baton/grow/1.2-0a1b2c3d"
    assert sealed_ref("0a1b2c3d-00000001") == "refs/baton/sealed/0a1b2c3d-00000001"
    assert replaced_ref("0a1b2c3d-00000001", "f" * 40) == "refs/baton/replaced/0a1b2c3d-00000001-ffffffffffff"


def test_no_ticket_branch_stands_in_the_way_of_the_integration_branch() -> None:
    assert ticket_branch("baton", "grow", "integration", "0a1b2c3d") != integration_branch("baton", "grow")
    assert not ticket_branch("baton", "grow", "integration", "x").startswith(integration_branch("baton", "grow") + "/")
