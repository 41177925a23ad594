"""The receipt: what a seal proves, and the only door through which evidence enters an integration."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from baton_cli.core import canonical
from baton_cli.errors import BatonError

SCHEMA = "baton.receipt/1"

# Files that decide what a check command runs. A change to one of them is flagged, not forbidden.
CHECK_FILES = frozenset(
    {
        "package.json", "makefile", "gnumakefile", "pytest.ini", "tox.ini", "setup.cfg", "pyproject.toml", "conftest.py",
        "noxfile.py", "cargo.toml", "go.mod", "justfile", "taskfile.yml", ".pre-commit-config.yaml", "vitest.config.ts",
        "vitest.config.js", "jest.config.js", "jest.config.ts", ".gitlab-ci.yml",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SealedReceipt:
    """A receipt that was checked against its packet and assignment. Only `verify` makes one."""

    digest: str
    assignment_id: str
    packet: str
    base: str
    head: str
    tree: str
    commands: tuple[str, ...]
    clean_environment: bool
    value: Mapping[str, Any]


class Authority(NamedTuple):
    """Who asks for a seal: a worker with its `key`, an `operator` with a reason, or `baton` itself."""

    kind: str
    key: str | None = None
    why: str | None = None


BATON = Authority("baton")


def touches_checks(paths: Sequence[str]) -> tuple[str, ...]:
    """Those of the changed paths that can change what the checks run."""
    return tuple(
        path
        for path in paths
        if path.rsplit("/", 1)[-1].lower() in CHECK_FILES or path.startswith(".github/workflows/")
    )


def build(
    *,
    assignment_id: str,
    attempt: int,
    packet: str,
    base: str,
    head: str,
    tree: str,
    checks: Sequence[Mapping[str, Any]],
    ignored: Sequence[str],
    clean_environment: bool,
    touched: Sequence[str],
    empty_diff: bool,
    operator: Mapping[str, str] | None,
    detached: bool,
    versions: Mapping[str, str],
    started_at: str,
    sealed_at: str,
) -> tuple[str, bytes]:
    """The receipt's digest and bytes. Times are ISO 8601 in UTC, durations seconds."""
    value: dict[str, Any] = {
        "schema": SCHEMA,
        "assignment_id": assignment_id,
        "attempt": attempt,
        "packet": packet,
        "base": base,
        "head": head,
        "tree": tree,
        "checks": [dict(check) for check in checks],
        "ignored": list(ignored),
        "clean_environment": clean_environment,
        "touches_checks": list(touched),
        "empty_diff": empty_diff,
        "operator": dict(operator) if operator else None,
        "detached": detached,
        "versions": dict(versions),
        "started_at": started_at,
        "sealed_at": sealed_at,
    }
    value["digest"] = canonical.digest_of(value)
    return value["digest"], canonical.encode(value)


def read(body: bytes) -> dict[str, Any]:
    """The receipt in these bytes; `receipt_edited` when its own digest does not fit what it says."""
    try:
        value = json.loads(body)
        same_bytes = canonical.encode(value) == body
        claimed = value.pop("digest")
        schema = value["schema"]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise _refused("receipt_edited", "the receipt is not readable") from None
    if schema != SCHEMA or not same_bytes or canonical.digest_of(value) != claimed:
        raise _refused("receipt_edited", "the receipt's digest does not fit its contents")
    value["digest"] = claimed
    return dict(value)


def verify(
    body: bytes,
    *,
    assignment_id: str,
    base: str,
    sealed_head: str,
    receipt_digest: str,
    packet_digest: str,
    packet: Mapping[str, Any],
) -> SealedReceipt:
    """Check a receipt against what its assignment and packet say; refuse it with the code of the first thing wrong."""
    value = read(body)
    try:
        for is_wrong, code, what in _questions(
            value, assignment_id, base, sealed_head, receipt_digest, packet_digest, packet
        ):
            if is_wrong:
                raise _refused(code, f"the receipt of {assignment_id} does not count: {what}")
        commands = tuple(check["command"] for check in packet["checks"])
        tree, clean = str(value["tree"]), bool(value["clean_environment"])
    except (KeyError, TypeError):
        raise _refused("receipt_edited", f"the receipt of {assignment_id} is not complete") from None
    return SealedReceipt(
        digest=receipt_digest,
        assignment_id=assignment_id,
        packet=packet_digest,
        base=base,
        head=sealed_head,
        tree=tree,
        commands=commands,
        clean_environment=clean,
        value=value,
    )


def _questions(
    value: Mapping[str, Any],
    assignment_id: str,
    base: str,
    sealed_head: str,
    receipt_digest: str,
    packet_digest: str,
    packet: Mapping[str, Any],
) -> Iterator[tuple[bool, str, str]]:
    """What can be wrong, in order; each is looked at only when nothing before it is."""
    yield value["digest"] != receipt_digest, "receipt_edited", "it is not the receipt that was recorded"
    yield value["assignment_id"] != assignment_id, "receipt_foreign", f"it belongs to {value['assignment_id']}"
    yield value["packet"] != packet_digest, "packet_mismatch", "it was made for another packet"
    changed = canonical.digest_of(packet) != packet_digest
    yield changed, "packet_changed", "the packet is not the one that was handed out"
    yield value["base"] != base, "base_mismatch", "it was made on another base commit"
    yield value["head"] != sealed_head, "head_mismatch", "it was made at another commit"
    ran, asked = value["checks"], [check["command"] for check in packet["checks"]]
    yield [check["command"] for check in ran] != asked, "checks_mismatch", "its checks are not the packet's"
    yield not ran, "checks_mismatch", "it lists no check"
    yield any(check["exit_code"] != 0 for check in ran), "check_failed", "one of its checks did not exit with 0"


def _refused(code: str, message: str) -> BatonError:
    return BatonError(code, message, "seal again in the worktree: only Baton's own run of the checks counts")
