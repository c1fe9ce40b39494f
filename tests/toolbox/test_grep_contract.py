"""The searching tools keep the contract every tool keeps."""

from pathlib import Path
from typing import Any

import pytest

from toolwright.core.call import Completed
from toolwright.testing.checks import check_tool
from toolwright.toolbox.delete import Delete
from toolwright.toolbox.glob import Glob
from toolwright.toolbox.grep import Grep
from toolwright.toolbox.list import List
from toolwright.toolbox.move import Move


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
async def test_a_searching_tool_keeps_the_contract(tmp_path: Path, kind: Any, example: dict[str, Any]) -> None:
    (tmp_path / "a.txt").write_text("a\n")
    outcomes = await check_tool(kind(tmp_path), example, folder=tmp_path)
    assert [type(outcome) for outcome in outcomes] == [Completed]
