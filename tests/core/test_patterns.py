"""A late pattern is one that was not compiled when its module was read, and no other difference can be seen."""

from __future__ import annotations

import re
from unittest import mock

from baton_cli.core.patterns import late


def test_a_late_pattern_is_compiled_at_its_first_use() -> None:
    with mock.patch.object(re, "compile", wraps=re.compile) as compiled:
        pattern = late(r"(a+)(b)?", re.I)
        assert compiled.call_count == 0
        assert pattern.fullmatch("AAb") is not None
        assert pattern.fullmatch("b") is None
        assert compiled.call_count == 1
    assert pattern.sub(r"<\1>", "xaay") == "x<aa>y"
    assert [found[0] for found in pattern.finditer("a aab")] == ["a", "aab"]
    assert pattern.split("xay") == re.compile(r"(a+)(b)?", re.I).split("xay")
