"""`VectorCache`: reuse, damaged files, concurrent processes, size limit."""

import sqlite3
import stat
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from callwright.core.spec import ToolSpec
from callwright.registry.search.embeddings import VectorCache, cache_folder
from callwright.registry.search.semantic import SemanticIndex

numpy: Any = pytest.importorskip("numpy")
WIDTH = 8
SPECS = [ToolSpec(f"tool_{number}", f"Does thing number {number}.", {}) for number in range(5)]


def vector(text: str) -> Any:
    row = numpy.array([1.0 + text.count(letter) for letter in "abcdefgh"])
    return row / numpy.linalg.norm(row)


class Model:
    """An embedding that counts what it is asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, texts: Sequence[str]) -> Any:
        self.asked += texts
        return numpy.stack([vector(text) for text in texts])


def cache(folder: Path, **named: int) -> VectorCache:
    return VectorCache("model 1", WIDTH, folder, **named)


def test_restart_embeds_only_the_query(tmp_path: Path) -> None:
    first, second = Model(), Model()
    before = SemanticIndex(SPECS, first, cache=cache(tmp_path)).search("thing")
    after = SemanticIndex(SPECS, second, cache=cache(tmp_path)).search("thing")
    assert len(first.asked) == len(SPECS) + 1
    assert second.asked == ["thing"]
    assert after == before == SemanticIndex(SPECS, Model()).search("thing")


def test_restart_embeds_only_new_tools(tmp_path: Path) -> None:
    SemanticIndex(SPECS[:3], Model(), cache=cache(tmp_path)).search("thing")
    model = Model()
    SemanticIndex(SPECS, model, cache=cache(tmp_path)).search("thing")
    assert model.asked == ["tool 3: Does thing number 3.", "tool 4: Does thing number 4.", "thing"]


def test_cache_is_keyed_by_model_and_text(tmp_path: Path) -> None:
    cache(tmp_path).put({"a": vector("a")})
    assert list(cache(tmp_path).get(["a", "b"])) == ["a"]
    assert VectorCache("model 2", WIDTH, tmp_path).get(["a"]) == {}
    assert VectorCache("model 1", WIDTH + 1, tmp_path).get(["a"]) == {}


@pytest.mark.parametrize("content", [b"", b"no database at all", b"SQLite format 3\0" + b"x" * 5000])
def test_broken_cache_file_is_replaced(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "vectors.db").write_bytes(content)
    found = SemanticIndex(SPECS, Model(), cache=cache(tmp_path)).search("thing")
    assert found == SemanticIndex(SPECS, Model()).search("thing")
    SemanticIndex(SPECS, Model(), cache=cache(tmp_path)).search("thing")
    model = Model()
    SemanticIndex(SPECS, model, cache=cache(tmp_path)).search("thing")
    assert model.asked == ["thing"]


def test_truncated_cache_gives_no_wrong_vector(tmp_path: Path) -> None:
    rows = {str(number): vector(str(number)) for number in range(500)}
    cache(tmp_path).put(rows)
    whole = (tmp_path / "vectors.db").read_bytes()
    (tmp_path / "vectors.db").write_bytes(whole[: len(whole) // 2])
    found = cache(tmp_path).get(list(rows))
    assert all(numpy.allclose(row, rows[text], atol=1e-6) for text, row in found.items())


@pytest.mark.parametrize("row", [b"", b"\0" * 32, b"\xff" * 32, b"\0" * 7, "text", None])
def test_damaged_row_is_left_out(tmp_path: Path, row: object) -> None:
    kept = cache(tmp_path)
    kept.put({"a": vector("a"), "b": vector("b")})
    with sqlite3.connect(tmp_path / "vectors.db") as connection:
        connection.execute("UPDATE vectors SET row = ? WHERE place = 1", [row])
    connection.close()
    assert list(kept.get(["a", "b"])) == ["b"]


def test_oldest_vectors_are_removed(tmp_path: Path) -> None:
    kept = cache(tmp_path, max_rows=3)
    for text in "abcde":
        kept.put({text: vector(text)})
    assert sorted(kept.get(list("abcde"))) == ["c", "d", "e"]


def test_concurrent_writers_lose_nothing(tmp_path: Path) -> None:
    def work(number: int) -> None:
        cache(tmp_path).put({f"{number}-{place}": vector(str(place)) for place in range(20)})

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(16)))
    texts = [f"{number}-{place}" for number in range(16) for place in range(20)]
    assert len(cache(tmp_path).get(texts)) == len(texts)


def test_unwritable_cache_folder_is_harmless(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    index = SemanticIndex(SPECS, Model(), cache=cache(tmp_path / "file"))
    assert index.search("thing") == SemanticIndex(SPECS, Model()).search("thing")


def test_cache_folder_is_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    VectorCache("model 1", WIDTH).put({"a": vector("a")})
    assert cache_folder() == tmp_path / "cache" / "callwright"
    assert stat.S_IMODE(cache_folder().stat().st_mode) == 0o700
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "callwright"
