"""The blocking part of the SQLite store: schema, migrations, statements and error messages; all on one thread."""

import os
import sqlite3
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from callwright.sessions.base import SessionEntry, SessionError, SessionHit, escape_query, make_excerpt, no_such_session
from callwright.sessions.lease import Lease
from callwright.sessions.records import Record, count_settled_records, load_record

_MIGRATIONS = (
    """
    CREATE TABLE sessions (
        key INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        title TEXT NOT NULL,
        created_at REAL NOT NULL
    );
    CREATE TABLE records (
        session INTEGER NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
        position INTEGER NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (session, position)
    ) WITHOUT ROWID;
    """,
    "ALTER TABLE records ADD COLUMN at REAL NOT NULL DEFAULT 0;",
)
"""Step n migrates a file from version n to n + 1. Only append: released files depend on the existing steps."""

_WAL_RETRY_SECONDS = 0.005
_ERROR_HINTS = (
    ("database is locked", "it is locked by another program; stop that program or try again"),
    ("disk is full", "the disk is full; free some space and try again. Stored records are intact"),
    ("disk i/o", "the disk reported an error. Records stored before are intact"),
    ("readonly", "it is read-only; check its permissions"),
    ("unable to open", "it cannot be opened; check the folder and its permissions"),
    ("not a database", "it is damaged or not a session file; it was not changed, restore it from a backup"),
    ("malformed", "it is damaged; it was not changed, restore it from a backup"),
)


def connect(path: Path, *, wait_seconds: float) -> sqlite3.Connection:
    """Open the file and migrate it; a new file is private to the user."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    connection = sqlite3.connect(path, timeout=wait_seconds, isolation_level=None, check_same_thread=False)
    try:
        _enable_wal(connection, wait_seconds)
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute("PRAGMA secure_delete=ON")  # overwrite deleted conversations with zeros
        migrate(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _enable_wal(connection: sqlite3.Connection, wait_seconds: float) -> None:
    """Switch to the write-ahead log; SQLite does not apply its busy timeout to this statement, so wait here."""
    deadline = time.monotonic() + wait_seconds
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() >= deadline:
                raise
            time.sleep(_WAL_RETRY_SECONDS)
        else:
            return


def migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Migrate an older file in one transaction; reject a file from a later version."""
    if _version(connection) == len(_MIGRATIONS):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = _version(connection)  # read again: another process may have migrated it before this lock
        if version > len(_MIGRATIONS):
            raise SessionError(f"{path} was written by a later version of callwright; upgrade to read it")
        for step in _MIGRATIONS[version:]:
            for statement in step.split(";"):
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version={len(_MIGRATIONS)}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def explain_error(error: Exception, path: Path) -> SessionError:
    """Return a `SessionError` that says what the error means and what to do."""
    text = str(error)
    hint = next((hint for sign, hint in _ERROR_HINTS if sign in text.lower()), text)
    return SessionError(f"the session file {path} failed: {hint}")


_LIST = """
    SELECT id, title, created_at, max(at) AS updated_at, count(*)
    FROM sessions JOIN records ON session = key GROUP BY key ORDER BY updated_at DESC, key DESC LIMIT ?
"""
_SEARCH = """
    SELECT id, position, body FROM records JOIN sessions ON key = session
    WHERE body LIKE ? ESCAPE '!' ORDER BY at DESC LIMIT ?
"""
_INSERT = "INSERT INTO records (session, position, at, body) VALUES (?, ?, ?, ?)"


class SessionFile:
    """One SQLite file; created and opened on first use."""

    def __init__(self, path: Path, *, wait_seconds: float) -> None:
        self.path = path
        self.locks = path.with_name(f"{path.name}-locks")
        self._wait_seconds = wait_seconds
        self._connection: sqlite3.Connection | None = None

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def find(self, session_id: str) -> tuple[int, list[Record]]:
        """Read a session; one that does not exist has key 0 and no records."""
        key = self._lookup(session_id)
        return (0, []) if key is None else (key, self._records(key))

    def read(self, session_id: str) -> tuple[int, list[Record]]:
        """Return the key and the records of a session."""
        key = self._key(session_id)
        return key, self._records(key)

    def entries(self, limit: int) -> list[SessionEntry]:
        """Return the sessions, most recently used first."""
        return [SessionEntry(*row) for row in self._query(_LIST, limit)]

    def search(self, text: str, limit: int) -> list[SessionHit]:
        """Find records that contain a text."""
        query = escape_query(text)
        pattern = f"%{query.replace('!', '!!').replace('%', '!%').replace('_', '!_')}%"
        return [
            SessionHit(key, at, make_excerpt(body, query)) for key, at, body in self._query(_SEARCH, pattern, limit)
        ]

    def create(self, session_id: str, title: str, bodies: Sequence[str]) -> int:
        """Create a session with its first records; return its key."""
        with self._transaction() as connection:
            now = time.time()
            try:
                added = connection.execute(
                    "INSERT INTO sessions (id, title, created_at) VALUES (?, ?, ?)",
                    (session_id, title, now),
                )
            except sqlite3.IntegrityError:
                raise SessionError(f"session {session_id!r} already exists; choose another id") from None
            key = int(added.lastrowid or 0)
            connection.executemany(_INSERT, [(key, position, now, body) for position, body in enumerate(bodies)])
        return key

    def append(self, key: int, position: int, bodies: Sequence[str], *, synced: bool) -> None:
        """Add records at a position that must still be free."""
        now = time.time()
        rows = [(key, position + offset, now, body) for offset, body in enumerate(bodies)]
        with self._transaction(synced=synced) as connection:
            try:
                connection.executemany(_INSERT, rows)
            except sqlite3.IntegrityError:
                raise SessionError(
                    "the session was changed or deleted by another process; nothing was added, read it again"
                ) from None

    def fork(self, session_id: str, new_id: str) -> None:
        """Copy a session without its open turn."""
        key, records = self.read(session_id)
        kept = count_settled_records(records)
        rows = self._query("SELECT body FROM records WHERE session = ? AND position < ? ORDER BY position", key, kept)
        ((title,),) = self._query("SELECT title FROM sessions WHERE key = ?", key)
        self.create(new_id, title, [body for (body,) in rows])

    def rename(self, session_id: str, title: str) -> None:
        """Change the title of a session."""
        key = self._key(session_id)
        with self._transaction() as connection:
            connection.execute("UPDATE sessions SET title = ? WHERE key = ?", (title, key))

    def delete(self, session_id: str) -> None:
        """Delete a session that is not being written."""
        key = self._key(session_id)
        lease = Lease.take(self.locks, session_id)
        try:
            with self._transaction() as connection:
                connection.execute("DELETE FROM sessions WHERE key = ?", (key,))
            self._query("PRAGMA wal_checkpoint(TRUNCATE)")  # otherwise the log still contains the deleted records
        finally:
            lease.release()

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = connect(self.path, wait_seconds=self._wait_seconds)
        return self._connection

    def _query(self, query: str, *values: object) -> list[Any]:
        return self._open().execute(query, values).fetchall()

    def _records(self, key: int) -> list[Record]:
        rows = self._query("SELECT body FROM records WHERE session = ? ORDER BY position", key)
        return [load_record(body) for (body,) in rows]

    def _lookup(self, session_id: str) -> int | None:
        rows = self._query("SELECT key FROM sessions WHERE id = ?", session_id)
        return int(rows[0][0]) if rows else None

    def _key(self, session_id: str) -> int:
        key = self._lookup(session_id)
        if key is None:
            raise no_such_session(session_id)
        return key

    @contextmanager
    def _transaction(self, *, synced: bool = True) -> Generator[sqlite3.Connection, None, None]:
        connection = self._open()
        if not synced:  # without fsync: survives a killed process, which is all a note promises
            connection.execute("PRAGMA synchronous=NORMAL")
        try:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # some errors have rolled it back already
                    connection.execute("ROLLBACK")
                raise
        finally:
            if not synced:
                connection.execute("PRAGMA synchronous=FULL")
