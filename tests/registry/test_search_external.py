"""Ranking figures on external retrieval sets, which are not part of this repository."""

import json
import math
import os
from pathlib import Path
from typing import Any

import pytest

from callwright.core.spec import ToolSpec
from callwright.registry.search.index import ToolIndex

_CASES = os.environ.get("CALLWRIGHT_CASES")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(_CASES is None, reason="CALLWRIGHT_CASES does not name a folder of external cases"),
]


def _rows(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def _named(name: str) -> str:
    return name.replace(" ", "_")


def _ndcg(found: list[str], groups: list[set[str]]) -> float:
    """Binary gain per group, log2 discount, over ten places."""
    gain, left = 0.0, list(groups)
    for place, name in enumerate(found):
        group = next((group for group in left if name in group), None)
        if group is not None:
            left.remove(group)
            gain += 1 / math.log2(place + 2)
    return gain / sum(1 / math.log2(place + 2) for place in range(min(10, len(groups))))


@pytest.mark.parametrize(("name", "owed"), [("bfcl_live", 0.665), ("sealtools_dev", 0.885)])
def test_external_sets_reach_their_ndcg(name: str, owed: float) -> None:
    folder = Path(_CASES or "") / "retrieval" / name
    if not folder.is_dir():
        pytest.skip(f"no set {name} in CALLWRIGHT_CASES")
    index = ToolIndex(
        ToolSpec(_named(row["name"]), row["description"] or row["name"], row["schema"] or {"type": "object"})
        for row in _rows(folder / "tools.jsonl")
    )
    queries = _rows(folder / "queries.jsonl")
    reached = [
        _ndcg(
            [hit.name for hit in index.search(row["query"])],
            [{_named(gold) for gold in group} for group in row["gold_groups"]],
        )
        for row in queries
    ]
    assert sum(reached) / len(reached) >= owed
