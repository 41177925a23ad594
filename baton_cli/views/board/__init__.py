"""The board: one HTML file without script and without network. A value in, text out; the same value, the same bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from baton_cli.views.board.page import board_page

__all__ = ["board_page", "tickets_of"]


def tickets_of(value: Mapping[str, Any]) -> int:
    """How many tickets are on the board of `baton.overview/1`."""
    return sum(len(section["tickets"]) for change in value["changes"] for section in change.get("sections", ()))
