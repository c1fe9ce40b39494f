"""The blocking half of the SQLite store: every statement, all on one thread.

The SQLite file: its tables, how older ones are brought up to date, and what its errors mean.
"""

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
"""Step n brings a file of version n to n + 1; steps are added, never changed."""

_WAL_RETRY_SECONDS = 0.005
_ERROR_HINTS = (
    ("database is locked", "another program keeps it locked; end that program or try again"),
    ("disk is full", "the disk is full; make room and try again, what was stored is still there"),
    ("disk i/o", "the disk refused to write; what was stored before is still there"),
    ("readonly", "it cannot be written; check its permissions"),
    ("unable to open", "it cannot be opened; check the folder and its permissions"),
    ("not a database", "it is damaged or no session file; it was left untouched, restore it from a copy"),
    ("malformed", "it is damaged; it was left untouched, restore it from a copy"),
)


def connect(path: Path, *, wait_seconds: float) -> sqlite3.Connection:
    """Open the file, made private to this user if it is new, at the present version."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    connection = sqlite3.connect(path, timeout=wait_seconds, isolation_level=None, check_same_thread=False)
    try:
        _enable_wal(connection, wait_seconds)
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute("PRAGMA secure_delete=ON")  # a deleted conversation is gone
        migrate(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _enable_wal(connection: sqlite3.Connection, wait_seconds: float) -> None:
    """Switch to the write-ahead log; the one statement for which SQLite does not wait by itself."""
    until = time.monotonic() + wait_seconds
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() >= until:
                raise
            time.sleep(_WAL_RETRY_SECONDS)
        else:
            return


def migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Bring an older file up to date, all or nothing; refuse one from a later version."""
    if _version(connection) == len(_MIGRATIONS):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = _version(connection)  # again, now that nobody else can change it
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
    """Say what an error of SQLite or of the file system means and what to do."""
    said = str(error)
    meaning = next((meaning for sign, meaning in _ERROR_HINTS if sign in said.lower()), said)
    return SessionError(f"the session file {path} failed: {meaning}")


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
    """One SQLite file; made and opened when first used."""

    def __init__(self, path: Path, *, wait_seconds: float) -> None:
        self.path = path
        self.locks = path.with_name(f"{path.name}-locks")
        self._wait_seconds = wait_seconds
        self._connection: sqlite3.Connection | None = None

    def close(self) -> None:
        """Close the file; it is opened again when it is used again."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def find(self, session_id: str) -> tuple[int, list[Record]]:
        """As `read`; a session that is not there yet has key 0 and no records."""
        key = self._lookup(session_id)
        return (0, []) if key is None else (key, self._records(key))

    def read(self, session_id: str) -> tuple[int, list[Record]]:
        """A session's key and its records."""
        key = self._key(session_id)
        return key, self._records(key)

    def entries(self, limit: int) -> list[SessionEntry]:
        """The sessions, last used first."""
        return [SessionEntry(*row) for row in self._ask(_LIST, limit)]

    def search(self, text: str, limit: int) -> list[SessionHit]:
        """Where a text occurs."""
        wanted = escape_query(text)
        pattern = f"%{wanted.replace('!', '!!').replace('%', '!%').replace('_', '!_')}%"
        return [SessionHit(key, at, make_excerpt(body, wanted)) for key, at, body in self._ask(_SEARCH, pattern, limit)]

    def create(self, session_id: str, title: str, bodies: Sequence[str]) -> int:
        """Begin a session with its first records and return its key."""
        with self._transaction() as connection:
            now = time.time()
            try:
                added = connection.execute(
                    "INSERT INTO sessions (id, title, created_at) VALUES (?, ?, ?)",
                    (session_id, title, now),
                )
            except sqlite3.IntegrityError:
                raise SessionError(f"there is a session {session_id!r} already; choose another id") from None
            key = int(added.lastrowid or 0)
            connection.executemany(_INSERT, [(key, position, now, body) for position, body in enumerate(bodies)])
        return key

    def append(self, key: int, position: int, bodies: Sequence[str], *, synced: bool) -> None:
        """Add records at a position nobody else has taken."""
        now = time.time()
        rows = [(key, position + offset, now, body) for offset, body in enumerate(bodies)]
        with self._transaction(synced=synced) as connection:
            try:
                connection.executemany(_INSERT, rows)
            except sqlite3.IntegrityError:
                raise SessionError(
                    "the session was changed or removed by somebody else meanwhile; nothing was added, read it again"
                ) from None

    def fork(self, session_id: str, new_id: str) -> None:
        """Copy what is settled of a session."""
        key, records = self.read(session_id)
        kept = count_settled_records(records)
        rows = self._ask("SELECT body FROM records WHERE session = ? AND position < ? ORDER BY position", key, kept)
        ((title,),) = self._ask("SELECT title FROM sessions WHERE key = ?", key)
        self.create(new_id, title, [body for (body,) in rows])

    def rename(self, session_id: str, title: str) -> None:
        """Give a session another title."""
        key = self._key(session_id)
        with self._transaction() as connection:
            connection.execute("UPDATE sessions SET title = ? WHERE key = ?", (title, key))

    def delete(self, session_id: str) -> None:
        """Remove a session nobody writes."""
        key = self._key(session_id)
        lease = Lease.take(self.locks, session_id)
        try:
            with self._transaction() as connection:
                connection.execute("DELETE FROM sessions WHERE key = ?", (key,))
            self._ask("PRAGMA wal_checkpoint(TRUNCATE)")  # or the log would keep what was deleted
        finally:
            lease.release()

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = connect(self.path, wait_seconds=self._wait_seconds)
        return self._connection

    def _ask(self, query: str, *values: object) -> list[Any]:
        return self._opened().execute(query, values).fetchall()

    def _records(self, key: int) -> list[Record]:
        rows = self._ask("SELECT body FROM records WHERE session = ? ORDER BY position", key)
        return [load_record(body) for (body,) in rows]

    def _lookup(self, session_id: str) -> int | None:
        rows = self._ask("SELECT key FROM sessions WHERE id = ?", session_id)
        return int(rows[0][0]) if rows else None

    def _key(self, session_id: str) -> int:
        key = self._lookup(session_id)
        if key is None:
            raise no_such_session(session_id)
        return key

    @contextmanager
    def _transaction(self, *, synced: bool = True) -> Generator[sqlite3.Connection, None, None]:
        connection = self._opened()
        if not synced:  # the commit is in the system's hands, not yet on the disk: enough against a kill
            connection.execute("PRAGMA synchronous=NORMAL")
        try:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # some failures have ended the transaction already
                    connection.execute("ROLLBACK")
                raise
        finally:
            if not synced:
                connection.execute("PRAGMA synchronous=FULL")
