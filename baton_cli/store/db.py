"""One SQLite file: how it is opened, upgraded, and written in transactions. Every failure becomes a `BatonError`."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from baton_cli.errors import BatonError

if TYPE_CHECKING:
    import sqlite3

BUSY_TIMEOUT_MS = 60_000
COPY_TRIES = 5
CORRUPT_HINT = "move the file away and call again: finished tickets are recognised from the integration branch"


class Store:
    """An open database. Reads run by themselves; writes run inside `transaction()`."""

    def __init__(self, connection: sqlite3.Connection, path: str) -> None:
        self._connection = connection
        self.path = path

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[sqlite3.Row]:
        """All rows of a query."""
        with _named_failures(self.path):
            return self._connection.execute(sql, parameters).fetchall()

    def row(self, sql: str, parameters: Sequence[Any] = ()) -> sqlite3.Row | None:
        """The first row of a query, if any."""
        with _named_failures(self.path):
            found: sqlite3.Row | None = self._connection.execute(sql, parameters).fetchone()
            return found

    def write(self, sql: str, parameters: Sequence[Any] = ()) -> int:
        """Run one statement that changes something; the number of rows it changed."""
        return self._change(sql, parameters).rowcount

    def insert(self, table: str, **values: Any) -> int:
        """Insert one row; its rowid. Table and column names come from the code, never from a user."""
        names = ", ".join(values)
        marks = ", ".join("?" * len(values))
        return self._change(f"INSERT INTO {table} ({names}) VALUES ({marks})", tuple(values.values())).lastrowid or 0

    def _change(self, sql: str, parameters: Sequence[Any]) -> sqlite3.Cursor:
        if not self._connection.in_transaction:
            raise AssertionError("a write outside a transaction")
        with _named_failures(self.path):
            return self._connection.execute(sql, parameters)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """One `BEGIN IMMEDIATE` ... `COMMIT`: from its first line nobody else writes. Rolled back on any exception."""
        with _named_failures(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            with _named_failures(self.path):
                self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


@contextmanager
def _named_failures(path: str) -> Iterator[None]:
    import sqlite3

    try:
        yield
    except sqlite3.IntegrityError:
        raise
    except sqlite3.OperationalError as error:
        raise BatonError(
            "store_unusable",
            f"{path}: {error}",
            "free disk space or fix the permissions of the folder, then call again",
        ) from error
    except sqlite3.DatabaseError as error:
        raise BatonError(
            "store_corrupt",
            f"{path}: {error}",
            CORRUPT_HINT,
        ) from error


def open_store(path: Path | None) -> Store:
    """Open (creating it if need be) and upgrade the database at `path`; None gives an empty one in memory.

    Errors: `store_unusable`, `store_corrupt`, `store_newer` (written by a newer Baton; nothing is changed).
    """
    import sqlite3

    name = ":memory:" if path is None else str(path)
    if path is not None:
        # Private from its first moment; where this fails, SQLite says why.
        with contextlib.suppress(OSError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    with _named_failures(name):
        connection = sqlite3.connect(name, isolation_level=None, timeout=BUSY_TIMEOUT_MS / 1000)
        connection.row_factory = sqlite3.Row
        connection.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute("PRAGMA recursive_triggers=ON")  # else a REPLACE would get round "append only"
        store = Store(connection, name)
        try:
            _migrate(store, connection)
        except BaseException:
            connection.close()
            raise
        return store


def open_to_look(path: Path) -> Store:
    """The same for someone who only reads: an empty one in memory where there is no file, and a copy of the file where it
    cannot be opened in its place (even to read, SQLite writes beside it). Errors as above."""
    if not path.exists():
        return open_store(None)
    try:
        return open_store(path)
    except BatonError as error:
        if error.code != "store_unusable":
            raise
        import tempfile

        with contextlib.suppress(OSError), tempfile.TemporaryDirectory(prefix="baton-look-") as scratch:
            copy = Path(scratch) / path.name
            _copy(path, copy)
            return _in_memory(copy)
        raise


def _copy(path: Path, copy: Path) -> None:
    """Database and journal as they were at one moment, tried a few times while somebody writes. One that is torn all the same
    is found to be corrupt when it is opened, or shows an older moment."""
    import shutil

    sources = (path, path.with_name(f"{path.name}-wal"))
    for _ in range(COPY_TRIES):
        before = [_stamp(source) for source in sources]
        for source in sources:
            target = copy.with_name(source.name)
            target.unlink(missing_ok=True)
            if source.is_file():
                shutil.copyfile(source, target)
        if before == [_stamp(source) for source in sources]:
            return


def _stamp(file: Path) -> tuple[int, int] | None:
    try:
        known = file.stat()
    except FileNotFoundError:
        return None
    return known.st_mtime_ns, known.st_size


def _in_memory(path: Path) -> Store:
    """All of a database in memory, so that its file may go."""
    found, held = open_store(path), open_store(None)
    try:
        with _named_failures(str(path)):
            found._connection.backup(held._connection)
    finally:
        found.close()
    return held


def damage(store: Store) -> str | None:
    """What SQLite's own check finds wrong with the file, in one line; None when nothing."""
    found = [str(row[0]) for row in store.rows("PRAGMA quick_check(1)")]
    return None if found == ["ok"] else " ".join(found[0].split()) if found else "it cannot be read"


def _migrate(store: Store, connection: sqlite3.Connection) -> None:
    from baton_cli.store.migrations import MIGRATIONS

    known = [step.__name__ for step in MIGRATIONS]
    if _applied(store, known) == known:
        return
    if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        _enter_wal(connection)
    with store.transaction():
        connection.execute("CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, applied_at REAL NOT NULL)")
    for step in MIGRATIONS:
        with store.transaction():
            applied = _applied(store, known)  # read again under the lock: another process may have been first
            if step.__name__ not in applied:
                step(connection)
                store.insert("migrations", name=step.__name__, applied_at=time.time())


def _enter_wal(connection: sqlite3.Connection) -> None:
    """Switching the journal takes an exclusive lock that does not honour the busy time-out, so losers try again."""
    import sqlite3

    deadline = time.monotonic() + BUSY_TIMEOUT_MS / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL").fetchone()
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _applied(store: Store, known: Sequence[str]) -> list[str]:
    """The steps that the database has been through. Error: `store_newer` for one that is not among the `known`."""
    if store.row("SELECT 1 FROM sqlite_master WHERE name = 'migrations'") is None:
        return []
    applied = [row["name"] for row in store.rows("SELECT name FROM migrations ORDER BY rowid")]
    newer = [name for name in applied if name not in known]
    if newer:
        raise BatonError(
            "store_newer",
            f"{store.path} was written by a newer Baton (it has {newer[-1]})",
            "update Baton, then call again",
        )
    return applied
