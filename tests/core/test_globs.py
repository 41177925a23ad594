"""Which paths a list of globs covers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton_cli.core.globs import matching


@pytest.mark.parametrize(
    ("glob", "covered", "free"),
    [
        ("tasks.md", ["tasks.md"], ["a/tasks.md", "tasks.mdx", "tasks_md", "xtasks.md"]),
        ("docs", ["docs", "docs/a", "docs/a/b.md"], ["docsx", "docs.md", "a/docs", "a/docs/b"]),
        ("docs/", ["docs", "docs/a"], ["docsx"]),
        ("/docs", ["docs/a"], ["a/docs"]),
        ("./docs", ["docs/a"], ["a/docs"]),
        ("*.lock", ["a.lock", ".lock", "a.lock/b"], ["a/b.lock", "a.locks"]),
        ("**/*.lock", ["a.lock", "a/b.lock", "a/b/c.lock"], ["a.locks", "a/b.locks"]),
        ("src/**", ["src/a", "src/a/b"], ["src", "srcx/a", "a/src/b"]),
        ("src/**/test.py", ["src/test.py", "src/a/test.py", "src/a/b/test.py"], ["src/atest.py", "test.py"]),
        ("**", ["a", "a/b"], []),
        ("a?c", ["abc", "a.c", "aéc"], ["ac", "a/c", "abbc"]),
        ("a*c", ["ac", "abbc"], ["a/c", "a/b/c"]),
        ("[ab].py", ["[ab].py"], ["a.py"]),
        ("a.b", ["a.b"], ["axb"]),
        ("a+(b)|c", ["a+(b)|c"], ["aab", "c"]),
        ("with space/x", ["with space/x"], ["with/x"]),
        ("a\nb", ["a\nb"], ["a", "b"]),
        ("*", ["a", "a/b", "a\nb"], []),
    ],
)
def test_what_a_glob_covers(glob: str, covered: list[str], free: list[str]) -> None:
    assert matching([*covered, *free], [glob]) == tuple(covered)


def test_order_is_that_of_the_paths_and_nothing_comes_twice() -> None:
    assert matching(["c", "a", "b"], ["a", "b", "*"]) == ("c", "a", "b")
    assert matching(["c", "a", "b"], ["b", "a"]) == ("a", "b")


def test_no_glob_covers_nothing() -> None:
    assert matching(["a"], []) == ()
    assert matching([], ["**"]) == ()
    assert matching(["a", "b/c"], ["", "/", "./"]) == ()


@given(st.text(st.characters(exclude_characters="*?/.", codec="utf-8"), min_size=1), st.text(max_size=20))
def test_a_plain_name_covers_itself_and_what_is_below(name: str, below: str) -> None:
    assert matching([name, f"{name}/{below}"], [name]) == (name, f"{name}/{below}")
    assert matching([f"x{name}", f"{name}x"], [name]) == ()


@given(st.text(st.sampled_from("ab*?/.[]()+\\^$|\n"), max_size=12), st.text(st.sampled_from("ab/.\n"), max_size=12))
def test_any_glob_is_a_glob(glob: str, path: str) -> None:
    assert matching([path], [glob]) in ((), (path,))
