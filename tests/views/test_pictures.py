"""The pictures of the README: made from real views, and nothing in them is fetched from anywhere."""

from __future__ import annotations

import importlib.util
import re
from types import ModuleType
from xml.etree import ElementTree

from baton_cli.views.queue import queue_view
from tests.conftest import ROOT
from tests.views.samples import NOW, dark_mode, status


def pictures() -> ModuleType:
    spec = importlib.util.spec_from_file_location("pictures", ROOT / "docs" / "pictures.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def words(svg: str) -> str:
    return re.sub(r"\s+", " ", " ".join(ElementTree.fromstring(svg).itertext()))


def test_the_queue_view_becomes_a_picture() -> None:
    text = queue_view(status(dark_mode()), now=NOW, colour=True, width=100, unicode=True)
    svg = pictures().queue_svg(text, "baton status", 100)
    assert "exhausted after attempt 3" in words(svg)
    assert "@font-face" not in svg
    assert re.findall(r"https?://[^\"'\s)]+", svg) == ["http://www.w3.org/2000/svg"]


def test_the_pictures_in_the_documents_are_ours() -> None:
    svg = (ROOT / "docs" / "queue.svg").read_text(encoding="utf-8")
    assert "Choose the final palette" in words(svg)
    assert re.findall(r"https?://[^\"'\s)]+", svg) == ["http://www.w3.org/2000/svg"]
    assert (ROOT / "docs" / "board.png").read_bytes().startswith(b"\x89PNG\r\n")
