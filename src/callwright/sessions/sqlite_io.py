"""The blocking part of the SQLite store: its statements, all on one thread."""

import itertools
import os
import sqlite3
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from callwright.sessions.base import (
    SessionBusy,
    SessionEntry,
    SessionError,
    SessionHit,
    StoredRecord,
    is_session_id,
    no_such_session,
)
from callwright.sessions.lease import Lease
from callwright.sessions.records import count_settled_records
from callwright.sessions.sqlite_connection import connect
from callwright.sessions.stored_rows import limit_rows, load_records, read_time
from callwright.sessions.text_search import escape_query, make_excerpt, make_like_pattern
from callwright.system.platforms import keep_forever

# Positions are dense, so the last record tells both the count and the time: no other record is read. CROSS JOIN makes
# SQLite go through the sessions first.
_ENTRY = """
    SELECT CAST(id AS BLOB), CAST(title AS BLOB), created_at, at AS updated_at, position + 1
    FROM sessions CROSS JOIN records ON session = key
    WHERE position = (SELECT max(position) FROM records WHERE session = key)
"""
_LIST = f"{_ENTRY} AND (waiting OR NOT ?) ORDER BY updated_at DESC, key DESC LIMIT ?"
# Sessions are found by their ids within each statement: between two statements another process may delete a session,
# and SQLite gives its key to the next one.
_FIND = f"{_ENTRY} AND id = ?"
_SEARCH_ALL = """
    SELECT CAST(id AS BLOB), position, CAST(body AS BLOB) FROM records JOIN sessions ON key = session
    WHERE body LIKE ? ESCAPE '!' ORDER BY at DESC LIMIT ?
"""
_SEARCH_ONE = _SEARCH_ALL.replace("ORDER", "AND id = ? ORDER")
# As bytes: a text that is not valid UTF-8 is a fault of one record, not of the whole query.
_READ = """
    SELECT position, at, CAST(body AS BLOB) FROM sessions JOIN records ON session = key
    WHERE id = ? AND position >= ? ORDER BY position LIMIT ?
"""
_READ_OUTPUT = """
    SELECT CAST(body AS BLOB) FROM outputs JOIN sessions ON key = session WHERE sessions.id = ? AND outputs.id = ?
"""
_INSERT = "INSERT INTO records (session, position, at, body) VALUES "
_ROWS_PER_INSERT = 200
_opened = itertools.count(1)


class SessionFile:
    """One SQLite file; created and opened on first use. Used by one thread only."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.locks = path.with_name(f"{path.name}-locks")
        self.wait_seconds = 5.0
        """How long to wait while another process locks the file."""
        self._log = path.with_name(f"{path.name}-wal")
        self._connection: sqlite3.Connection | None = None
        self._waiting_seconds = -1.0
        self._opening = 0
        self._identity: tuple[int, ...] = ()
        self._lost = False
        self._erasing = False

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        if self._connection is not None and not self._lost:
            with suppress(sqlite3.Error):
                self._erase_log()
            self._connection.close()
            self._connection = None

    def find(self, session_id: str) -> tuple[int, list[StoredRecord]]:
        """Read a session; one that does not exist has key 0 and no records."""
        key = self._lookup(session_id)
        return (0, []) if key is None else (key, self._records(session_id))

    def read(self, session_id: str, position: int = 0, limit: int | None = None) -> list[StoredRecord]:
        """Return the records of a session from a position on."""
        self._key(session_id)
        return self._records(session_id, limit_rows(position), -1 if limit is None else limit_rows(limit))

    def version(self) -> str:
        """Return a value that changes with every commit of this or another connection."""
        ((others,),) = self._query("PRAGMA data_version")
        return f"{self._opening}.{others}.{self._open().total_changes}"

    def entries(self, limit: int, *, waiting: bool = False) -> list[SessionEntry]:
        """Return the sessions, most recently used first."""
        return [_make_entry(*row) for row in self._query(_LIST, waiting, limit_rows(limit))]

    def entry(self, session_id: str) -> SessionEntry | None:
        """Return the entry of one session; None if there is none."""
        rows = self._query(_FIND, session_id) if is_session_id(session_id) else ()
        return _make_entry(*rows[0]) if rows else None

    def search(self, text: str, limit: int, session_id: str | None = None) -> list[SessionHit]:
        """Find records that contain a text."""
        query, most = escape_query(text), limit_rows(limit)
        if session_id is None:
            rows = self._query(_SEARCH_ALL, make_like_pattern(query), most)
        else:
            self._key(session_id)
            rows = self._query(_SEARCH_ONE, make_like_pattern(query), session_id, most)
        return [SessionHit(_text(found), at, make_excerpt(_text(body), query)) for found, at, body in rows]

    def fork(self, session_id: str, new_id: str) -> None:
        """Copy a session without its open turn."""
        self._key(session_id)
        try:
            lease = Lease.take(self.locks, new_id)
        except SessionBusy:  # by a run that is about to create it, and would fail at its first record
            raise _already_exists(new_id) from None
        try:
            self._copy(session_id, new_id)
        finally:
            lease.release()

    def _copy(self, session_id: str, new_id: str) -> None:
        with self.transaction() as connection:
            key = self._key(session_id)
            kept = count_settled_records([stored.record for stored in self._records(session_id)])
            rows = self._query(
                "SELECT at, body FROM records WHERE session = ? AND position < ? ORDER BY position", key, kept
            )
            ((title,),) = self._query("SELECT title FROM sessions WHERE key = ?", key)
            copy = insert_session(connection, new_id, title, time.time())
            insert_records(connection, [(copy, position, at, body) for position, (at, body) in enumerate(rows)])
            connection.execute(
                "INSERT INTO outputs (session, id, body) SELECT ?, id, body FROM outputs WHERE session = ?", (copy, key)
            )

    def read_output(self, session_id: str, output_id: str) -> str | None:
        """Return an output that was kept with a session; None if there is none."""
        if not is_session_id(session_id) or not output_id.isprintable():  # the model may ask for any text
            return None
        rows = self._query(_READ_OUTPUT, session_id, output_id)
        return _text(rows[0][0]) if rows else None

    def keep_blob(self, blob_id: str, body: str) -> None:
        """Store a text outside of sessions."""
        with self.transaction() as connection:
            connection.execute("INSERT OR IGNORE INTO blobs (id, body) VALUES (?, ?)", (blob_id, body))

    def read_blob(self, blob_id: str) -> str | None:
        """Return a text outside of sessions; None if there is none."""
        rows = self._query("SELECT CAST(body AS BLOB) FROM blobs WHERE id = ?", blob_id)
        return _text(rows[0][0]) if rows else None

    def delete_blobs(self, blob_ids: Sequence[str]) -> None:
        """Delete texts outside of sessions."""
        with self.transaction() as connection:
            connection.executemany("DELETE FROM blobs WHERE id = ?", [(blob_id,) for blob_id in blob_ids])

    def rename(self, session_id: str, title: str) -> None:
        """Change the title of a session."""
        with self.transaction() as connection:
            connection.execute("UPDATE sessions SET title = ? WHERE key = ?", (title, self._key(session_id)))

    def delete(self, session_id: str) -> None:
        """Delete a session that is not being written."""
        self._key(session_id)
        lease = Lease.take(self.locks, session_id)
        try:
            with self.transaction() as connection:
                connection.execute("DELETE FROM sessions WHERE key = ?", (self._key(session_id),))
            self._erasing = True
            self._erase_log()
        finally:
            lease.release()

    def _erase_log(self) -> None:
        """Empty the log, which still contains the deleted records; another reader delays it to a later use."""
        if self._erasing and self._connection is not None:
            ((busy, _, _),) = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            self._erasing = bool(busy)

    def _open(self) -> sqlite3.Connection:
        if self._lost:
            raise SessionError(self._explain_loss())
        if self._connection is None:
            self._connection = connect(self.path, wait_seconds=self.wait_seconds)
            self._opening, self._waiting_seconds = next(_opened), self.wait_seconds
            self._identity = self._find_identity()
        elif self._waiting_seconds != self.wait_seconds:  # stores that share the file may wait differently long
            self._connection.execute(f"PRAGMA busy_timeout={int(self.wait_seconds * 1000)}")
            self._waiting_seconds = self.wait_seconds
        return self._connection

    def finish(self) -> None:
        """Do what an earlier action had to leave undone; called after every action."""
        if self._erasing:
            self._erase_log()

    def _find_identity(self) -> tuple[int, ...]:
        """Identify the file and its log on disk, without opening them."""
        try:
            return (*_inode(self.path.stat()), *_inode(self._log.stat()))
        except FileNotFoundError:
            return ()

    def _check_attached(self) -> None:
        """Raise if what was just committed went into a file that is no longer there.

        The file or its log was deleted or replaced under this connection: by the user, or by another process after
        code of this one had closed a descriptor of the file, which drops SQLite's locks. Nothing can be stored through
        this connection any more, and closing it could copy old pages over newer ones, so it is kept for good.
        """
        if self._find_identity() != self._identity:
            self._lost = True
            keep_forever(self._connection)
            raise SessionError(self._explain_loss())

    def _explain_loss(self) -> str:
        return (
            f"the session file {self.path} or its log was deleted or replaced while it was in use; the last records "
            "were not stored. Restart this program"
        )

    def _query(self, query: str, *values: object) -> list[Any]:
        return self._open().execute(query, values).fetchall()

    def _records(self, session_id: str, position: int = 0, limit: int = -1) -> list[StoredRecord]:
        return load_records(session_id, self._query(_READ, session_id, position, limit), position)

    def _lookup(self, session_id: str) -> int | None:
        rows = self._query("SELECT key FROM sessions WHERE id = ?", session_id) if is_session_id(session_id) else ()
        return int(rows[0][0]) if rows else None

    def _key(self, session_id: str) -> int:
        key = self._lookup(session_id)
        if key is None:
            raise no_such_session(session_id)
        return key

    @contextmanager
    def transaction(self, *, synced: bool = True) -> Generator[sqlite3.Connection]:
        """Commit what is done inside, or nothing of it if that raises."""
        connection = self._open()
        if not synced:  # without fsync: survives a killed process, which is all a note promises
            connection.execute("PRAGMA synchronous=NORMAL")
        try:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
                self._check_attached()
            except BaseException:
                with suppress(sqlite3.Error):  # it may have been committed or rolled back already
                    connection.execute("ROLLBACK")
                raise
        finally:
            if not synced:
                connection.execute("PRAGMA synchronous=FULL")


def insert_session(connection: sqlite3.Connection, session_id: str, title: str, now: float) -> int:
    """Create a session without records; return its key."""
    try:
        added = connection.execute(
            "INSERT INTO sessions (id, title, created_at) VALUES (?, ?, ?)", (session_id, title, now)
        )
    except sqlite3.IntegrityError:
        raise _already_exists(session_id) from None
    return int(added.lastrowid or 0)


def insert_records(connection: sqlite3.Connection, rows: Sequence[tuple[int, int, float, str]]) -> None:
    """Add records: session, position, time and body of each.

    Many rows go into one statement, because a thread has to wait for its turn after every statement while other
    threads are busy.
    """
    for start in range(0, len(rows), _ROWS_PER_INSERT):
        part = rows[start : start + _ROWS_PER_INSERT]
        connection.execute(_INSERT + ",".join(["(?,?,?,?)"] * len(part)), list(itertools.chain.from_iterable(part)))


def _already_exists(session_id: str) -> SessionError:
    return SessionError(f"session {session_id!r} already exists; choose another id")


def _inode(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _make_entry(
    session_id: object, title: object, created_at: object, updated_at: object, records: int
) -> SessionEntry:
    return SessionEntry(_text(session_id), _text(title), read_time(created_at), read_time(updated_at), records)


def _text(stored: object) -> str:
    return stored.decode(errors="replace") if isinstance(stored, bytes) else str(stored)
