"""Opens a session file: schema, migrations, and what SQLite's errors mean for users."""

import os
import sqlite3
import threading
import time
from contextlib import closing, suppress
from pathlib import Path

from callwright.sessions.base import SessionError, StoreTooNew
from callwright.system.platforms import sync_folder

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
    """
    CREATE TABLE outputs (
        session INTEGER NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
        id TEXT NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (session, id)
    );
    """,
    """
    CREATE TABLE blobs (id TEXT PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID;
    ALTER TABLE sessions ADD COLUMN waiting INTEGER NOT NULL DEFAULT 0;
    UPDATE sessions SET waiting = 1 WHERE
        (SELECT body FROM records WHERE session = key ORDER BY position DESC LIMIT 1) LIKE '{"kind":"asked"%';
    """,
)
"""Step n migrates a file from version n to n + 1. Only append: released files depend on the existing steps."""

_WAL_RETRY_SECONDS = 0.005
_creating = threading.Lock()
"""Held while a file is created: SQLite must not open it before the creating descriptor is closed."""
_ERROR_HINTS = (
    ("database is locked", "it is locked by another program; stop that program or try again"),
    ("disk is full", "the disk is full; free some space and try again. Stored records are intact"),
    ("disk i/o", "the disk reported an error. Records stored before are intact"),
    ("readonly", "it is read-only; check its permissions, and those of its -wal and -shm files"),
    ("unable to open", "it cannot be opened; check the folder and its permissions"),
    (
        "not a database",
        "it is damaged or not a session file; it was not changed; restore a backup, or move it away",
    ),
    ("malformed", "it is damaged; it was not changed; restore a backup, or move it away"),
)


def connect(path: Path, *, wait_seconds: float) -> sqlite3.Connection:
    """Open the file and migrate it; a new file is private to the user.

    An existing file is never opened except by SQLite: closing any other descriptor of it would drop the locks of all
    connections of this process, and another process would then delete the log they write to.
    """
    missing = [folder for folder in path.parents if not folder.exists()]
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _creating:
        if not path.exists():
            with suppress(FileExistsError):
                os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
            for created in (path, *missing):  # a confirmed record must not be lost with the name of its file
                sync_folder(created.parent)
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
            raise _too_new(path)
        for step in _MIGRATIONS[version:]:
            for statement in step.split(";"):
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version={len(_MIGRATIONS)}")
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):  # a full disk has rolled it back already; its own error says more
            connection.execute("ROLLBACK")
        raise


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def check_file(path: Path) -> bool:
    """Check an existing session file without changing it; return whether this version reads it as it is.

    One of an earlier version passes, and is migrated when it is opened.

    Raises:
        SessionError: It is damaged, cannot be opened, or a later version wrote it.
    """
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            version = _version(connection)
            if version > len(_MIGRATIONS):
                raise _too_new(path)
            found = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
    except sqlite3.Error as error:
        raise explain_error(error, path) from error
    if found != "ok":
        raise explain_error(sqlite3.DatabaseError("database disk image is malformed"), path)
    return version == len(_MIGRATIONS)


def _too_new(path: Path) -> StoreTooNew:
    return StoreTooNew(f"{path} was written by a later version of callwright; upgrade to read it")


def explain_error(error: Exception, path: Path) -> SessionError:
    """Return a `SessionError` that says what the error means and what to do."""
    text = str(error)
    hint = next((hint for sign, hint in _ERROR_HINTS if sign in text.lower()), text)
    return SessionError(f"the session file {path} failed: {hint}")
