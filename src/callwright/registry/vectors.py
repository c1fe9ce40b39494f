"""Vectors of texts kept on disk, so that a restart with thousands of tools need not make them again.

It is a convenience and nothing more: a file that is broken, locked or not to be written costs time, never an answer.
"""

import os
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

_MOST_ROWS = 20_000
_WAIT_SECONDS = 2.0
_ASKED_AT_ONCE = 500
_UNIT = 1e-3
_SCHEMA = "CREATE TABLE IF NOT EXISTS vectors (place INTEGER PRIMARY KEY AUTOINCREMENT, key BLOB UNIQUE, row BLOB)"
_READ = "SELECT key, row FROM vectors WHERE key IN ({})"
_WRITE = "INSERT OR REPLACE INTO vectors (key, row) VALUES (?, ?)"
_BOUND = "DELETE FROM vectors WHERE place <= (SELECT max(place) FROM vectors) - ?"


class VectorCache:
    """The vectors one model made, by text. Several processes may use the same file."""

    def __init__(self, model: str, width: int, folder: Path | None = None, *, most_rows: int = _MOST_ROWS) -> None:
        """`model` names whatever a vector of `width` numbers depends on; the oldest go above `most_rows`."""
        self._model = model
        self._width = width
        self._file = (cache_folder() if folder is None else folder) / "vectors.db"
        self._most_rows = most_rows

    def get(self, texts: Sequence[str]) -> dict[str, Any]:
        """Return the vectors that are known; what does not look like one is left out."""
        wanted = {self._key(text): text for text in texts}
        found: dict[str, Any] = {}

        def read(connection: sqlite3.Connection) -> None:
            keys = list(wanted)
            for start in range(0, len(keys), _ASKED_AT_ONCE):
                asked = keys[start : start + _ASKED_AT_ONCE]
                for key, data in connection.execute(_READ.format(",".join("?" * len(asked))), asked):
                    if (row := self._vector(data)) is not None:
                        found[wanted[key]] = row

        self._with_file(read)
        return found

    def put(self, rows: Mapping[str, Any]) -> None:
        """Keep vectors, in place of those of the same texts."""
        entries = [(self._key(text), row.astype("<f4").tobytes()) for text, row in rows.items()]

        def write(connection: sqlite3.Connection) -> None:
            with connection:  # all of it or nothing
                connection.executemany(_WRITE, entries)
                connection.execute(_BOUND, [self._most_rows])

        self._with_file(write)

    def _key(self, text: str) -> bytes:
        return sha256(f"{self._model}\0{text}".encode(errors="surrogatepass")).digest()

    def _vector(self, data: object) -> Any:
        if not isinstance(data, bytes) or len(data) != 4 * self._width:
            return None
        numpy: Any = import_module("numpy")
        row = numpy.frombuffer(data, "<f4")
        return row if abs(float(row @ row) - 1.0) < _UNIT else None  # false for NaN too

    def _with_file(self, work: Callable[[sqlite3.Connection], None]) -> None:
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with closing(sqlite3.connect(self._file, timeout=_WAIT_SECONDS)) as connection:
                connection.execute(_SCHEMA)
                work(connection)
        except (sqlite3.OperationalError, OSError):  # locked, full, read-only: perhaps it goes well next time
            return
        except sqlite3.DatabaseError:  # not a database, or a broken one: begun afresh next time
            with suppress(OSError):
                self._file.unlink()


def cache_folder() -> Path:
    """Where this user's caches are."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if Path(base).is_absolute() else Path("~/.cache").expanduser()) / "callwright"
