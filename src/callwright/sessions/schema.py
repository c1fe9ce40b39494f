"""The SQLite file: its tables, how older ones are brought up to date, and what its errors mean."""

import os
import sqlite3
import time
from pathlib import Path

from callwright.sessions.base import SessionError

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

_PAUSE_SECONDS = 0.005
_MEANINGS = (
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
        _log_ahead(connection, wait_seconds)
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute("PRAGMA secure_delete=ON")  # a deleted conversation is gone
        migrate(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _log_ahead(connection: sqlite3.Connection, wait_seconds: float) -> None:
    """Switch to the write-ahead log; the one statement for which SQLite does not wait by itself."""
    until = time.monotonic() + wait_seconds
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() >= until:
                raise
            time.sleep(_PAUSE_SECONDS)
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


def explained(error: Exception, path: Path) -> SessionError:
    """Say what an error of SQLite or of the file system means and what to do."""
    said = str(error)
    meaning = next((meaning for sign, meaning in _MEANINGS if sign in said.lower()), said)
    return SessionError(f"the session file {path} failed: {meaning}")
