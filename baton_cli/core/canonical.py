"""Canonical JSON and digests: the same value always gives the same bytes, so that a digest names it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def encode(value: Mapping[str, Any]) -> bytes:
    """UTF-8 JSON with sorted keys and no blanks. Lone surrogates (undecodable file names) are escaped."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "backslashreplace")


def digest(data: bytes) -> str:
    """SHA-256, hex."""
    import hashlib  # brings OpenSSL: 3.5 MiB, which most looks do without

    return hashlib.sha256(data).hexdigest()


def digest_of(value: Mapping[str, Any]) -> str:
    """The digest of the canonical form of `value`."""
    return digest(encode(value))
