"""Conformance of the search tools."""

from pathlib import Path
from typing import Any

import pytest

from callwright.core.calls import Completed
from callwright.testing.checks import check_tool
from callwright.toolbox.delete import Delete
from callwright.toolbox.glob import Glob
from callwright.toolbox.grep import Grep
from callwright.toolbox.list import List
from callwright.toolbox.move import Move


@pytest.mark.parametrize(
    ("kind", "example"),
    [
        (Glob, {"pattern": "**/*"}),
        (Grep, {"pattern": "a", "mode": "content"}),
        (List, {}),
        (Delete, {"path": "a.txt"}),
        (Move, {"source": "a.txt", "destination": "b/c.txt"}),
    ],
)
async def test_search_tools_pass_conformance(tmp_path: Path, kind: Any, example: dict[str, Any]) -> None:
    (tmp_path / "a.txt").write_text("a\n")
    outcomes = await check_tool(kind(tmp_path), example, folder=tmp_path)
    assert [type(outcome) for outcome in outcomes] == [Completed]
