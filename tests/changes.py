"""A change on disk, and refusals, as the tests of project and OpenSpec write them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from baton_cli.errors import BatonError

TASKS = b"## 1. A\n- [ ] 1.1 Do it\n"
CHANGE = {"openspec/changes/add-x/tasks.md": TASKS, "openspec/changes/add-x/proposal.md": b"# X\n"}


def refused(code: str, call: Callable[..., object], *args: object) -> BatonError:
    with pytest.raises(BatonError) as caught:
        call(*args)
    error = caught.value
    assert error.code == code
    assert "\n" not in error.message + error.hint
    return error


def write(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path
