"""The receipt: any single thing forged is refused by name, and nothing but `verify` makes evidence of it."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import baton_cli
from baton_cli.core import canonical
from baton_cli.core.receipt import SealedReceipt, read, touches_checks, verify
from baton_cli.errors import BatonError
from tests.stand_ins import HEAD, TREE, make_packet, make_plan, passed, receipt_bytes, sealed_receipt

PACKET = make_packet(make_plan("- [ ] 1.1 Lay the first stone\n  - verify: `pytest -q`\n  - verify: `ruff check`\n"))
OTHER = {**PACKET, "assignment_id": "0a1b2c3d-00000002", "branch": "baton/grow/1.2-00000002"}
NAME, BODY = receipt_bytes(PACKET)


def check(body: bytes = BODY, name: str = NAME, packet: dict[str, Any] = PACKET, **more: Any) -> SealedReceipt:
    values = {
        "assignment_id": PACKET["assignment_id"],
        "base": PACKET["base"],
        "sealed_head": HEAD,
        "receipt_digest": name,
        "packet_digest": canonical.digest_of(PACKET),
        "packet": packet,
    }
    return verify(body, **{**values, **more})


def refused(code: str, *args: Any, **more: Any) -> None:
    with pytest.raises(BatonError) as caught:
        check(*args, **more)
    assert caught.value.code == code
    assert caught.value.hint
    assert "\n" not in caught.value.message


def forged(**fields: Any) -> tuple[str, bytes]:
    """A receipt with other fields and an own digest that fits them: what somebody with the schema at hand would write."""
    value = {**json.loads(BODY), **fields}
    value = {name: item for name, item in value.items() if item is not ...}
    del value["digest"]
    value["digest"] = canonical.digest_of(value)
    return value["digest"], canonical.encode(value)


def test_a_true_receipt_is_sealed_evidence() -> None:
    sealed = check()
    assert sealed == sealed_receipt(PACKET)
    assert (sealed.digest, sealed.assignment_id, sealed.head, sealed.tree) == (
        NAME,
        PACKET["assignment_id"],
        HEAD,
        TREE,
    )
    assert (sealed.packet, sealed.base) == (canonical.digest_of(PACKET), PACKET["base"])
    assert sealed.commands == ("pytest -q", "ruff check")
    assert sealed.clean_environment is True
    assert canonical.encode(dict(sealed.value)) == BODY


def test_the_same_facts_give_the_same_bytes() -> None:
    assert receipt_bytes(PACKET) == (NAME, BODY)
    assert receipt_bytes(PACKET, attempt=2)[0] != NAME


OTHERWISE = {
    "schema": "baton.receipt/2",
    "assignment_id": "0a1b2c3d-00000002",
    "attempt": 2,
    "packet": "0" * 64,
    "base": "0" * 40,
    "head": "0" * 40,
    "tree": "0" * 40,
    "checks": [],
    "ignored": ["x"],
    "clean_environment": False,
    "touches_checks": ["Makefile"],
    "empty_diff": True,
    "operator": {"why": "x"},
    "detached": True,
    "versions": {},
    "started_at": "2027-01-01T00:00:00Z",
    "sealed_at": "2027-01-01T00:00:00Z",
    "digest": "0" * 64,
}


def test_every_field_is_tried() -> None:
    assert set(OTHERWISE) == set(json.loads(BODY))


@pytest.mark.parametrize("field", OTHERWISE)
def test_any_field_changed_is_an_edited_receipt(field: str) -> None:
    refused("receipt_edited", canonical.encode({**json.loads(BODY), field: OTHERWISE[field]}))


@pytest.mark.parametrize("field", [name for name in OTHERWISE if name != "digest"])
def test_any_field_forged_with_a_fitting_digest_is_not_the_recorded_receipt(field: str) -> None:
    _, body = forged(**{field: OTHERWISE[field]})
    refused("receipt_edited", body)


@pytest.mark.parametrize(
    ("field", "code"),
    [
        ("schema", "receipt_edited"),
        ("assignment_id", "receipt_foreign"),
        ("packet", "packet_mismatch"),
        ("base", "base_mismatch"),
        ("head", "head_mismatch"),
        ("checks", "checks_mismatch"),
    ],
)
def test_even_a_recorded_forgery_is_refused_for_what_it_claims(field: str, code: str) -> None:
    name, body = forged(**{field: OTHERWISE[field]})
    refused(code, body, name)


GREEN = passed("pytest -q", "ruff check")


@pytest.mark.parametrize(
    ("checks", "code"),
    [
        (GREEN[:1], "checks_mismatch"),
        (GREEN[::-1], "checks_mismatch"),
        ([*GREEN, *passed("true")], "checks_mismatch"),
        ([*GREEN, GREEN[0]], "checks_mismatch"),
        (passed("true", "ruff check"), "checks_mismatch"),
        (passed("pytest -q ", "ruff check"), "checks_mismatch"),
        ([GREEN[0], {**GREEN[1], "exit_code": 1}], "check_failed"),
        ([{**GREEN[0], "exit_code": -9}, GREEN[1]], "check_failed"),
        ([{**GREEN[0], "exit_code": None}, GREEN[1]], "check_failed"),
        ([{**GREEN[0], "exit_code": "0"}, GREEN[1]], "check_failed"),
    ],
)
def test_checks_are_the_packets_own_in_order_and_green(checks: list[dict[str, Any]], code: str) -> None:
    name, body = forged(checks=checks)
    refused(code, body, name)


def test_a_receipt_without_checks_proves_nothing_even_if_the_packet_has_none() -> None:
    bare = {**PACKET, "checks": []}
    name, body = receipt_bytes(bare)
    refused("checks_mismatch", body, name, packet=bare, packet_digest=canonical.digest_of(bare))


@pytest.mark.parametrize(
    "field", ["schema", "assignment_id", "packet", "base", "head", "tree", "checks", "clean_environment"]
)
def test_an_incomplete_receipt_is_refused(field: str) -> None:
    name, body = forged(**{field: ...})
    refused("receipt_edited", body, name)


@pytest.mark.parametrize(
    "checks", [None, 1, "pytest -q", [1], ["pytest -q"], [{}], [{"command": "pytest -q"}] * 2, {"command": 1}]
)
def test_checks_of_another_shape_are_refused(checks: Any) -> None:
    name, body = forged(checks=checks)
    with pytest.raises(BatonError) as caught:
        check(body, name)
    assert caught.value.code in ("receipt_edited", "checks_mismatch")


def test_a_receipt_of_another_assignment_cannot_be_replayed() -> None:
    name, body = receipt_bytes(OTHER)
    refused("receipt_edited", body)  # in place of ours
    refused("receipt_foreign", body, name)  # and recorded as ours
    name, body = receipt_bytes(OTHER, assignment_id=PACKET["assignment_id"])
    refused("packet_mismatch", body, name)


def test_a_receipt_of_an_earlier_head_or_base_is_stale() -> None:
    refused("head_mismatch", sealed_head="9" * 40)
    refused("base_mismatch", base="9" * 40)


@pytest.mark.parametrize(
    "edit",
    [
        lambda packet: packet["checks"].pop(),
        lambda packet: packet["checks"][0].update(command="true"),
        lambda packet: packet["checks"][0].update(timeout=1),
        lambda packet: packet["ticket"].update(text="Do nothing"),
        lambda packet: packet["protected"].clear(),
        lambda packet: packet.clear(),
    ],
)
def test_a_changed_packet_is_noticed(edit: Callable[[dict[str, Any]], Any]) -> None:
    packet = json.loads(canonical.encode(PACKET))
    edit(packet)
    refused("packet_changed", packet=packet)


@pytest.mark.parametrize(
    "body",
    [
        b"", b" ", b"{}", b"[]", b"1", b'"x"', b"null", b"{", b"\xff", b"\0", BODY[:-1], BODY + b"\n", b" " + BODY, BODY + BODY,
        BODY.replace(b'":', b'": '), BODY.replace(b"{", b'{"head":"x",', 1), b"\xef\xbb\xbf" + BODY, b"[" * 100_000,
        b'{"digest":"x"}', b'{"digest":"x","schema":"baton.receipt/1"}', json.dumps(json.loads(BODY), indent=1).encode(),
    ],
)  # fmt: skip
def test_other_bytes_are_an_edited_receipt(body: bytes) -> None:
    refused("receipt_edited", body)
    with pytest.raises(BatonError) as caught:
        read(body)
    assert caught.value.code == "receipt_edited"


@settings(max_examples=200)
@given(st.integers(0, len(BODY) - 1), st.integers(1, 255))
def test_one_other_byte_anywhere_is_noticed(place: int, change: int) -> None:
    body = bytearray(BODY)
    body[place] ^= change
    refused("receipt_edited", bytes(body))


@settings(max_examples=100)
@given(st.binary(max_size=60))
def test_no_bytes_crash_it(body: bytes) -> None:
    refused("receipt_edited", body)


def test_undecodable_file_names_survive_the_way_through_the_bytes() -> None:
    name, body = receipt_bytes(PACKET, ignored=["b\udc80c", "\x1b[31m", "é", "\u2028"])
    assert check(body, name).value["ignored"] == ["b\udc80c", "\x1b[31m", "é", "\u2028"]


def test_a_worktree_with_left_overs_is_told() -> None:
    name, body = receipt_bytes(PACKET, clean_environment=False)
    assert check(body, name).clean_environment is False


@pytest.mark.parametrize(
    ("path", "touches"),
    [
        ("package.json", True),
        ("a/b/package.json", True),
        ("Makefile", True),
        ("GNUmakefile", True),
        ("tests/conftest.py", True),
        (".github/workflows/ci.yml", True),
        ("pyproject.toml", True),
        ("src/main.py", False),
        ("Makefile.md", False),
        ("docs/.github/workflows/x", False),
        ("package.json/readme", False),
    ],
)
def test_changes_to_what_the_checks_run_are_flagged(path: str, touches: bool) -> None:
    assert touches_checks(["x", path]) == ((path,) if touches else ())


# Only `verify` makes a SealedReceipt


def sources() -> Iterator[tuple[Path, ast.Module]]:
    root = Path(baton_cli.__file__).parent
    for path in sorted(root.rglob("*.py")):
        yield path.relative_to(root), ast.parse(path.read_text(encoding="utf-8"))


def makers(tree: ast.Module) -> Iterator[str]:
    """The functions in which `SealedReceipt` is called, or handed on as a value that could be called later."""
    annotations = set()
    for node in ast.walk(tree):
        for hint in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            if hint is not None:
                annotations.update(id(inner) for inner in ast.walk(hint))
    for function in ast.walk(tree):
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for node in ast.walk(function):
                named = (isinstance(node, ast.Name) and node.id == "SealedReceipt") or (
                    isinstance(node, ast.Attribute) and node.attr == "SealedReceipt"
                )
                if named and id(node) not in annotations:
                    yield function.name


def test_only_verify_makes_sealed_receipts() -> None:
    found = {(path.as_posix(), name) for path, tree in sources() for name in makers(tree)}
    assert found == {("core/receipt.py", "verify")}


def test_nobody_copies_a_sealed_receipt_with_changes() -> None:
    """`dataclasses.replace` and unpickling would be other doors."""
    for path, tree in sources():
        text = ast.dump(tree)
        if "SealedReceipt" in text:
            assert "replace" not in {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}, path
            assert "pickle" not in text, path


def test_a_sealed_receipt_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        check().head = "x"  # type: ignore[misc]
