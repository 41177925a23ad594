"""Real files with OpenSpec's own answers. They lie beside the repository, or where BATON_CORPUS says (the fixture `corpus`)."""

from __future__ import annotations

import ast
import csv
from pathlib import Path

from baton_cli.core.identity import match
from baton_cli.core.tasks import parse
from baton_cli.core.writeback import Edit, apply, edits
from tests.core.test_identity import known_from


def table(corpus: Path, name: str) -> list[dict[str, str]]:
    with (corpus / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def test_every_probe_counts_as_openspec_counts(corpus: Path) -> None:
    rows = table(corpus, "probes.tsv")
    assert len(rows) == 58
    for row in rows:
        document = parse(ast.literal_eval(row["input"]).encode())
        assert (row["probe"], document.total, document.done) == (row["probe"], int(row["total"]), int(row["completed"]))


def test_openspecs_warnings_about_ids_are_ours_too(corpus: Path) -> None:
    probes = {row["probe"]: parse(ast.literal_eval(row["input"]).encode()) for row in table(corpus, "probes.tsv")}
    assert [one.code for one in probes["dup"].warnings] == ["duplicate_id"]
    assert [one.code for one in probes["mismatch"].warnings] == ["id_section_mismatch"]


def test_every_file_counts_as_openspec_counts_and_is_recognised_again(corpus: Path) -> None:
    rows = table(corpus, "tasks.tsv")
    assert len(rows) == 265
    for row in rows:
        document = parse((corpus / "tasks" / row["file"]).read_bytes())
        assert (row["file"], document.total, document.done) == (row["file"], int(row["total"]), int(row["completed"]))
        assert match(known_from(document), document).ticket_ids == tuple(range(len(document.tickets)))


def test_every_flip_is_reproduced_byte_for_byte_in_both_directions(corpus: Path) -> None:
    rows = table(corpus, "flips.tsv")
    assert len(rows) == 48
    for row in rows:
        before, after = ((corpus / "flips" / f"{row['pair']}.{side}.md").read_bytes() for side in ("before", "after"))
        assert flipped(before, after) == after
        assert flipped(after, before) == before
        assert parse(before).digest == parse(after).digest


def test_ticking_every_ticket_of_every_file_makes_all_boxes_done(corpus: Path) -> None:
    for row in table(corpus, "tasks.tsv"):
        data = (corpus / "tasks" / row["file"]).read_bytes()
        document = parse(data)
        after = apply(data, [edit for ticket in document.tickets for edit in edits(document, ticket)])
        assert parse(after).done == document.total
        assert len(after) == len(data)


def flipped(data: bytes, wanted: bytes) -> bytes:
    """`data` with the boxes of exactly those lines flipped that differ in `wanted`."""
    lines = {
        number for number, (a, b) in enumerate(zip(data.split(b"\n"), wanted.split(b"\n"), strict=True), 1) if a != b
    }
    document = parse(data)
    found: list[Edit] = []
    for ticket in document.tickets:
        single = {box.line: box for box in ticket.boxes if box.line in lines}
        for box in single.values():
            alone = ticket._replace(box=box, checklist=())
            found += edits(document, alone, done=not box.done)
    assert len(found) == len(lines)
    return apply(data, found)
