"""The SQLite file: opened, upgraded once, written in transactions, and named in every failure."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import sqlite3
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from baton_cli.errors import BatonError
from baton_cli.store import assignments, db, events, migrations, plans
from baton_cli.store.db import Store, open_store, open_to_look
from tests.stand_ins import CHANGE, make_change, make_plan, record

FORK = multiprocessing.get_context("fork")
NOBODY = 65534


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "queue.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    opened = open_store(path)
    yield opened
    opened.close()


def in_forks(count: int, work: Callable[[int], Any]) -> list[Any]:
    """Run `work(number)` in so many processes that start at the same moment; what each returned or raised."""
    gate, results = FORK.Barrier(count), FORK.Queue()

    def run(number: int) -> None:
        try:
            gate.wait(60)
            results.put(work(number))
        except BaseException as error:
            results.put(f"{type(error).__name__}: {error}")

    processes = [FORK.Process(target=run, args=(number,)) for number in range(count)]
    for process in processes:
        process.start()
    found = [results.get(timeout=120) for _ in processes]
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    return found


def steps(path: Path) -> list[str]:
    connection = sqlite3.connect(path)
    try:
        return [row[0] for row in connection.execute("SELECT name FROM migrations ORDER BY rowid")]
    finally:
        connection.close()


# Opening


def test_a_new_store_has_every_step_and_the_safe_settings(store: Store, path: Path) -> None:
    assert steps(path) == [step.__name__ for step in migrations.MIGRATIONS]
    settings = {
        name: store.rows(f"PRAGMA {name}")[0][0]
        for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
    }
    assert settings == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "busy_timeout": db.BUSY_TIMEOUT_MS}


def test_the_files_are_private_whatever_the_umask(path: Path) -> None:
    before = os.umask(0)
    try:
        store = open_store(path)
        record(store, make_plan("- [ ] 1.1 a\n"))
        modes = {
            file.name: stat.S_IMODE(file.stat().st_mode)
            for file in path.parent.iterdir()
            if file.name.startswith("queue.db")
        }
        store.close()
    finally:
        os.umask(before)
    assert modes == {"queue.db": 0o600, "queue.db-wal": 0o600, "queue.db-shm": 0o600}


def test_the_mode_that_a_user_gave_an_existing_store_is_kept(path: Path) -> None:
    open_store(path).close()
    path.chmod(0o640)
    open_store(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_opening_again_changes_nothing(path: Path) -> None:
    open_store(path).close()
    before = path.read_bytes()
    open_store(path).close()
    assert path.read_bytes() == before


def test_a_store_in_memory_is_empty_and_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = open_store(None)
    assert plans.all_changes(store) == ()
    record(store, make_plan("- [ ] 1.1 a\n"))
    assert len(plans.all_changes(store)) == 1
    store.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("attempt", range(5))
def test_steps_are_applied_once_by_eight_processes_at_once(path: Path, attempt: int) -> None:
    def work(number: int) -> str:
        store = open_store(path)
        with store.transaction():
            events.append(store, float(number), CHANGE, "opened")
        store.close()
        return "ok"

    assert in_forks(8, work) == ["ok"] * 8
    assert steps(path) == [step.__name__ for step in migrations.MIGRATIONS]
    store = open_store(path)
    assert len(events.history(store)) == 8
    assert store.rows("PRAGMA integrity_check")[0][0] == "ok"
    store.close()


def m002_later(connection: sqlite3.Connection) -> None:
    connection.execute("ALTER TABLE changes ADD COLUMN later TEXT")


def m003_broken(connection: sqlite3.Connection) -> None:
    connection.execute("ALTER TABLE changes ADD COLUMN broken TEXT")
    raise RuntimeError("half way")


def columns(path: Path) -> set[str]:
    connection = sqlite3.connect(path)
    try:
        return {row[1] for row in connection.execute("PRAGMA table_info(changes)")}
    finally:
        connection.close()


def test_a_new_step_is_added_to_an_old_store_with_its_rows(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(path)
    record(store, make_plan("- [ ] 1.1 a\n"))
    store.close()
    monkeypatch.setattr(migrations, "MIGRATIONS", (*migrations.MIGRATIONS, m002_later))
    store = open_store(path)
    assert store.row("SELECT change, later FROM changes")["change"] == CHANGE  # type: ignore[index]
    store.close()
    assert steps(path)[-1] == "m002_later"
    open_store(path).close()
    assert steps(path).count("m002_later") == 1


def test_a_step_that_fails_leaves_nothing_behind(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_store(path).close()
    monkeypatch.setattr(migrations, "MIGRATIONS", (*migrations.MIGRATIONS, m002_later, m003_broken))
    with pytest.raises(RuntimeError):
        open_store(path)
    assert steps(path)[-1] == "m002_later"
    assert "broken" not in columns(path)
    assert "later" in columns(path)


@pytest.mark.parametrize("journal", ["wal", "delete"])
def test_a_newer_store_is_refused_and_not_touched(path: Path, journal: str) -> None:
    open_store(path).close()
    connection = sqlite3.connect(path)
    connection.execute("INSERT INTO migrations VALUES ('m999_future', 1.0)")
    connection.commit()
    connection.execute(f"PRAGMA journal_mode={journal}")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(BatonError) as caught:
        open_store(path)
    assert caught.value.code == "store_newer"
    assert "m999_future" in caught.value.message
    assert str(path) in caught.value.message
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == ["queue.db"]


# Broken files


def filled(path: Path) -> None:
    store = open_store(path)
    for number in range(40):
        record(store, make_plan("".join(f"- [ ] 1.{n} Task {n} {'x' * 200}\n" for n in range(9)), change=f"c{number}"))
    store.close()


def read_all(path: Path) -> None:
    store = open_store(path)
    try:
        plans.all_changes(store)
        for number in range(40):
            plans.known_tickets(store, f"c{number}")
            plans.latest_revision(store, f"c{number}")
        events.history(store)
        assignments.every_open(store)
    finally:
        store.close()


@pytest.mark.parametrize(
    "content",
    [
        b"not a database, but long enough to be looked at by SQLite" * 40,
        b"\0" * 4096,
        b"SQLite format 3\0" + b"\xff" * 4080,
    ],
)
def test_a_file_that_is_no_database_is_named(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(BatonError) as caught:
        open_store(path)
    assert caught.value.code == "store_corrupt"
    assert str(path) in caught.value.message
    assert "move the file away" in caught.value.hint
    assert path.read_bytes() == content


@pytest.mark.parametrize("part", [0.1, 0.5, 0.9])
def test_a_truncated_store_is_named(path: Path, part: float) -> None:
    filled(path)
    size = path.stat().st_size
    os.truncate(path, int(size * part))
    with pytest.raises(BatonError) as caught:
        read_all(path)
    assert caught.value.code in ("store_corrupt", "store_unusable")
    assert str(path) in caught.value.message


def test_a_store_with_overwritten_pages_is_named(path: Path) -> None:
    filled(path)
    data = bytearray(path.read_bytes())
    data[4096:-4096] = b"\xa5" * (len(data) - 8192)
    path.write_bytes(data)
    with pytest.raises(BatonError) as caught:
        read_all(path)
    assert caught.value.code == "store_corrupt"
    assert str(path) in caught.value.message


def test_a_store_that_was_moved_away_begins_anew(path: Path) -> None:
    filled(path)
    path.rename(path.with_name("old.db"))
    store = open_store(path)
    assert plans.all_changes(store) == ()
    store.close()


# Places where nothing can be written


def as_nobody(prepare: Callable[[Path], None], name: str) -> tuple[str, str]:
    """Open a store as a user without rights, in a folder that is open to all but not writable; code and message."""
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    folder = Path(tempfile.mkdtemp(prefix="baton-nobody-"))  # pytest's own folders are closed to others
    folder.chmod(0o755)

    def run(_number: int) -> tuple[str, str]:
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        db.time.sleep = no_waiting
        try:
            open_store(folder / name)
        except BatonError as error:
            return error.code, error.message
        return "opened", ""

    try:
        prepare(folder)
        found: tuple[str, str] = in_forks(1, run)[0]
        return found
    finally:
        shutil.rmtree(folder)


def no_waiting(seconds: float) -> None:
    raise AssertionError("waits for something that will not change")


def foreign_table(folder: Path) -> None:
    """A database that all may read and that still has to be upgraded."""
    connection = sqlite3.connect(folder / "queue.db")
    connection.execute("CREATE TABLE other (value)")
    connection.close()
    (folder / "queue.db").chmod(0o644)


@pytest.mark.parametrize(
    ("prepare", "name"),
    [
        (lambda folder: open_store(folder / "queue.db").close(), "queue.db"),  # 0600, and somebody else's
        (lambda folder: None, "new.db"),
        (foreign_table, "queue.db"),
    ],
)
def test_where_nothing_can_be_written_the_store_is_unusable_at_once(prepare: Callable[[Path], None], name: str) -> None:
    """Not only after the time that a busy database is waited for."""
    code, message = as_nobody(prepare, name)
    assert code == "store_unusable"
    assert name in message


@pytest.mark.parametrize("place", ["is-a-file/queue.db", "missing/queue.db", "."])
def test_a_place_that_holds_no_store_is_named(tmp_path: Path, place: str) -> None:
    (tmp_path / "is-a-file").write_text("x")
    with pytest.raises(BatonError) as caught:
        open_store(tmp_path / place)
    assert caught.value.code == "store_unusable"
    assert str(tmp_path) in caught.value.message


# Transactions


def names(store: Store) -> list[str]:
    return [row["name"] for row in store.rows("SELECT name FROM events ORDER BY event")]


def test_what_a_transaction_wrote_is_there_for_others(store: Store, path: Path) -> None:
    other = open_store(path)
    with store.transaction():
        events.append(store, 1.0, CHANGE, "first")
        assert names(other) == []
    assert names(other) == ["first"]
    other.close()


class Stop(BaseException):
    """Even what is no Exception ends a transaction."""


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, Stop])
def test_any_exception_rolls_back_all_of_it(store: Store, error: type[BaseException]) -> None:
    def work() -> None:
        with store.transaction():
            events.append(store, 1.0, CHANGE, "first")
            plans.start_change(store, make_change())
            raise error

    with pytest.raises(error):
        work()
    assert names(store) == []
    assert plans.all_changes(store) == ()
    with store.transaction():
        events.append(store, 1.0, CHANGE, "second")
    assert names(store) == ["second"]


def test_a_failed_statement_rolls_back_what_came_before(store: Store) -> None:
    def twice() -> None:
        with store.transaction():
            plans.start_change(store, make_change())
            plans.start_change(store, make_change())

    with pytest.raises(sqlite3.IntegrityError):
        twice()
    assert plans.all_changes(store) == ()


@pytest.mark.parametrize(
    "work",
    [
        lambda store: store.write("DELETE FROM changes"),
        lambda store: store.insert("events", at=1.0, change="c", name="n"),
        lambda store: plans.start_change(store, make_change()),
        lambda store: events.append(store, 1.0, CHANGE, "x"),
        lambda store: plans.set_paused(store, CHANGE, "x"),
    ],
)
def test_no_write_happens_outside_a_transaction(store: Store, work: Callable[[Store], Any]) -> None:
    with pytest.raises(AssertionError):
        work(store)
    assert names(store) == []
    assert plans.all_changes(store) == ()


def test_the_write_lock_is_taken_at_the_first_line(store: Store, path: Path) -> None:
    """What is read inside cannot be out of date when it is written back."""
    other = sqlite3.connect(path, timeout=0, isolation_level=None)
    with store.transaction(), pytest.raises(sqlite3.OperationalError, match="locked"):
        other.execute("BEGIN IMMEDIATE")
    other.execute("BEGIN IMMEDIATE")
    other.execute("ROLLBACK")
    other.close()


def test_readers_are_never_kept_waiting(store: Store, path: Path) -> None:
    other = sqlite3.connect(path, timeout=0)
    with store.transaction():
        events.append(store, 1.0, CHANGE, "x")
        assert other.execute("SELECT count(*) FROM events").fetchone()[0] == 0
    other.close()


def test_no_increment_is_lost_between_processes(path: Path) -> None:
    open_store(path).close()

    def work(number: int) -> str:
        store = open_store(path)
        for _ in range(20):
            with store.transaction():
                count = store.rows("SELECT count(*) FROM events")[0][0]
                events.append(store, 1.0, CHANGE, "tick", detail=str(count))
        store.close()
        return "ok"

    assert in_forks(8, work) == ["ok"] * 8
    store = open_store(path)
    assert [item.detail for item in events.history(store)] == [str(number) for number in range(160)]
    store.close()


def test_a_killed_writer_leaves_nothing_half_written(path: Path) -> None:
    open_store(path).close()
    pid = os.fork()
    if pid == 0:
        store = open_store(path)
        context = store.transaction()
        context.__enter__()
        events.append(store, 1.0, CHANGE, "half")
        os._exit(9)
    os.waitpid(pid, 0)
    store = open_store(path)
    assert names(store) == []
    with store.transaction():
        events.append(store, 1.0, CHANGE, "whole")
    assert names(store) == ["whole"]
    store.close()


def test_a_full_disk_is_named_and_nothing_is_lost(store: Store, path: Path) -> None:
    record(store, make_plan("- [ ] 1.1 a\n"))
    store.rows(f"PRAGMA max_page_count={store.rows('PRAGMA page_count')[0][0]}")
    with pytest.raises(BatonError) as caught:
        record(store, make_plan("- [ ] 1.1 a " + "x" * 100_000 + "\n", change="large"))
    assert caught.value.code == "store_unusable"
    assert "full" in caught.value.message
    assert [change.change for change in plans.all_changes(store)] == [CHANGE]
    store.rows("PRAGMA max_page_count=1000000")
    record(store, make_plan("- [ ] 1.1 a " + "x" * 100_000 + "\n", change="large"))
    assert len(plans.all_changes(store)) == 2


def test_a_row_that_breaks_a_reference_is_refused(store: Store) -> None:
    with pytest.raises(sqlite3.IntegrityError), store.transaction():
        store.insert(
            "completions", change=CHANGE, ticket_id=99, kind="integrated", fingerprint="f", checks="[]", at=1.0
        )


def unopenable(path: Path) -> None:
    """As where nothing may be written beside the file; this stops root, too."""
    path.with_name(f"{path.name}-shm").unlink(missing_ok=True)
    path.with_name(f"{path.name}-shm").symlink_to("/dev/full/none")


def test_what_cannot_be_opened_in_its_place_is_read_from_a_copy(tmp_path: Path) -> None:
    path = tmp_path / "queue.db"
    writer = open_store(path)
    with writer.transaction():
        plans.start_change(writer, make_change())
    before = path.read_bytes(), path.with_name("queue.db-wal").read_bytes()
    shutil.copytree(tmp_path, tmp_path / "other")  # as a process leaves it that was killed: the journal holds it all
    writer.close()
    path = tmp_path / "other" / "queue.db"
    unopenable(path)
    with pytest.raises(BatonError) as caught:
        open_store(path)
    assert caught.value.code == "store_unusable"
    store = open_to_look(path)
    assert plans.all_changes(store) == (make_change(),)
    store.close()
    assert (path.read_bytes(), path.with_name("queue.db-wal").read_bytes()) == before


def test_where_no_copy_can_be_made_the_reason_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "queue.db"
    open_store(path).close()
    unopenable(path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(BatonError) as caught:
        open_to_look(path)
    assert caught.value.code == "store_unusable"
    assert str(path) in caught.value.message
