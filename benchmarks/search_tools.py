"""How well and how fast tools are found, on every retrieval set under CALLWRIGHT_CASES.

Each set is a folder of `tools.jsonl` (name, description, schema) and `queries.jsonl` (query, gold, gold_groups).
"""

import gc
import json
import math
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from pathlib import Path
from typing import Any, Protocol

from callwright.core.errors import UsageError
from callwright.core.spec import ToolSpec
from callwright.registry.search.embeddings import MiniLM, VectorCache
from callwright.registry.search.index import Hit, ToolIndex
from callwright.registry.search.semantic import SemanticIndex

_PLACES = 10
_MANY = 10_000


class _Index(Protocol):
    def search(self, query: str, k: int = 10) -> list[Hit]: ...


_Make = Callable[[Iterable[ToolSpec]], _Index]


@dataclass(frozen=True, slots=True)
class Figures:
    """The result of one index on one data set."""

    tools: int
    queries: int
    ndcg: float
    """In percent, at ten places: binary gain per gold group, log2 discount."""
    index_seconds: float
    query_milliseconds: float


def measure(folder: Path, make: _Make) -> Figures:
    """Index a data set and run all its queries."""
    specs = [_spec(row) for row in _rows(folder / "tools.jsonl")]
    queries = _rows(folder / "queries.jsonl")
    began = time.perf_counter()
    index = make(specs)
    index.search("anything", 1)  # an index may be built by its first search
    built = time.perf_counter()
    found = [[hit.name for hit in index.search(row["query"], _PLACES)] for row in queries]
    ended = time.perf_counter()
    reached = sum(ndcg(names, _groups(row)) for names, row in zip(found, queries, strict=True))
    milliseconds = 1e3 * (ended - built) / len(queries)
    return Figures(len(specs), len(queries), 100 * reached / len(queries), built - began, milliseconds)


def ndcg(found: Sequence[str], groups: Sequence[set[str]]) -> float:
    """Rate one ranking: each gold group counts once, at the place of its first member."""
    gain, left = 0.0, list(groups)
    for place, name in enumerate(found[:_PLACES]):
        group = next((group for group in left if name in group), None)
        if group is not None:
            left.remove(group)
            gain += 1 / math.log2(place + 2)
    return gain / sum(1 / math.log2(place + 2) for place in range(min(_PLACES, len(groups))))


def main() -> int:
    """Print one line per set: what the default index reaches and costs, and beside it the semantic one."""
    cases = os.environ.get("CALLWRIGHT_CASES")
    if cases is None:
        print("set CALLWRIGHT_CASES to a folder with retrieval/<set>/tools.jsonl and queries.jsonl", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as kept:
        indexes = _indexes(Path(kept))
        print(
            f"{'set':<18}{'tools':>7}{'queries':>9}"
            + "".join(f"{f'{label}: NDCG@10':>20}{'index s':>9}{'query ms':>10}" for label in indexes)
        )
        folders = sorted(path.parent for path in Path(cases, "retrieval").glob("*/queries.jsonl"))
        for folder in folders:
            _print(folder.name, [measure(folder, make) for make in indexes.values()])
    first, again = indexing(folders)
    print(f"indexing {_MANY:,} tools: {first:.2f} s, once more in the same process {again:.2f} s (target 0.4)")
    return 0


def indexing(folders: Sequence[Path]) -> tuple[float, float]:
    """Processor seconds to index many tools, taken from all sets and numbered: the first time, and after that."""
    found = [_spec(row) for folder in folders for row in _rows(folder / "tools.jsonl")]
    numbered = zip(range(_MANY), cycle(found))
    specs = [replace(spec, name=f"{spec.name}_{number}") for number, spec in numbered]
    seconds: list[float] = []
    for _ in range(3):
        gc.collect()
        began = time.process_time()
        ToolIndex(specs).search("anything", 1)
        seconds.append(time.process_time() - began)
    return seconds[0], min(seconds)


def _print(name: str, columns: Sequence[Figures]) -> None:
    figures = "".join(f"{f.ndcg:>20.1f}{f.index_seconds:>9.2f}{f.query_milliseconds:>10.2f}" for f in columns)
    print(f"{name:<18}{columns[0].tools:>7}{columns[0].queries:>9}{figures}", flush=True)


def _indexes(kept: Path) -> dict[str, _Make]:
    try:
        embed = MiniLM()
    except UsageError as error:
        print(f"semantic left out: {error}", file=sys.stderr)
        return {"default": ToolIndex}
    cache = VectorCache(embed.identity, embed.width, kept)

    def semantic(specs: Iterable[ToolSpec]) -> SemanticIndex:
        return SemanticIndex(specs, embed, cache=cache)

    return {"default": ToolIndex, "semantic": semantic, "restarted": semantic}


def _rows(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def _spec(row: Any) -> ToolSpec:
    return ToolSpec(_name(row["name"]), row["description"] or row["name"], row["schema"] or {"type": "object"})


def _groups(row: Any) -> list[set[str]]:
    groups = row.get("gold_groups") or [[gold] for gold in row["gold"]]
    return [{_name(gold) for gold in group} for group in groups]


def _name(name: str) -> str:
    return name.replace(" ", "_")  # a few sets have names no provider would accept


if __name__ == "__main__":
    sys.exit(main())
