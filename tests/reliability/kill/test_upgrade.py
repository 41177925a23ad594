"""A store that is upgraded while its process is killed: each step is there whole and once, or not at all."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from baton_cli.store import migrations
from baton_cli.store.db import open_store
from tests import figures
from tests.reliability.kill import victim
from tests.stand_ins import make_plan, record

pytestmark = victim.listens
TICKETS = 3


def m002_of_this_test(connection: sqlite3.Connection) -> None:
    connection.execute("ALTER TABLE tickets ADD COLUMN weight INTEGER NOT NULL DEFAULT 0")
    connection.execute("CREATE TABLE weights (ticket_id INTEGER PRIMARY KEY, weight INTEGER NOT NULL)")
    connection.execute("INSERT INTO weights SELECT ticket_id, length(title) FROM tickets")
    connection.execute("UPDATE tickets SET weight = weight + length(title)")


def older(folder: Path) -> Path:
    """A store of the first version, with tickets."""
    folder.mkdir()
    store = open_store(folder / "queue.db")
    record(store, make_plan("## 1. Ground\n" + "".join(f"- [ ] 1.{n} Lay stone {n}\n" for n in range(1, TICKETS + 1))))
    store.close()
    return folder


def upgraded(folder: Path) -> None:
    store = open_store(folder / "queue.db")
    try:
        steps = [row["name"] for row in store.rows("SELECT name FROM migrations ORDER BY rowid")]
        assert steps == ["m001_initial", "m002_of_this_test"]
        assert store.row("PRAGMA integrity_check")[0] == "ok"  # type: ignore[index]
        rows = store.rows("SELECT t.weight, w.weight, length(title) FROM tickets t JOIN weights w USING (ticket_id)")
        assert len(rows) == TICKETS
        assert all(row[0] == row[1] == row[2] for row in rows)
    finally:
        store.close()


def test_an_upgrade_killed_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    template = older(tmp_path / "template")
    live, log = tmp_path / "live", tmp_path / "log"
    monkeypatch.setattr(migrations, "MIGRATIONS", (*migrations.MIGRATIONS, m002_of_this_test))

    def run(point: victim.Point | None) -> victim.Run:
        shutil.rmtree(live, ignore_errors=True)
        shutil.copytree(template, live)
        return victim.run(lambda: open_store(live / "queue.db").close(), log, str(tmp_path), point)

    events = run(None).events
    upgraded(live)
    lost = []
    for at in range(1, len(events) + 1):
        assert run(victim.Point(at)).killed
        try:
            upgraded(live)
        except Exception as error:
            lost.append(f"before event {at} ({events[at - 1]}): {error}")
    figures.add("kill upgrade", len(events), len(lost))
    assert len(events) > 10
    assert not lost, "\n".join(lost)
