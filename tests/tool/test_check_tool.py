"""`check_tool` names what a tool does wrong."""

from itertools import count
from pathlib import Path
from typing import Any, Literal, cast

import pytest
from pydantic import BaseModel, ConfigDict, Field, computed_field

from callwright import Effect, ReadPath, SchemaTool, ToolSpec, tool
from callwright.testing import check_tool

_ANYTHING = ToolSpec("loose", "Take anything.", {"type": "object"})


async def test_read_tool_that_writes_is_named(tmp_path: Path) -> None:
    @tool(effect=Effect.READ)
    async def look(name: str) -> str:
        """Look, and leave a trace."""
        (tmp_path / name).write_text("seen")
        return "ok"

    with pytest.raises(AssertionError, match=r"look: its effect is READ, but .* has changed"):
        await check_tool(look, {"name": "a"}, folder=tmp_path)


async def test_missing_folder_is_no_folder_without_changes(tmp_path: Path) -> None:
    @tool(effect=Effect.READ)
    async def look() -> str:
        """Look."""
        return "ok"

    with pytest.raises(AssertionError, match="gone is not a folder"):
        await check_tool(look, {}, folder=tmp_path / "gone")


async def test_changing_accesses_are_named() -> None:
    numbers = count()

    @tool(effect=Effect.READ, accesses=lambda _: [ReadPath(f"/{next(numbers)}")])
    async def look() -> str:
        """Look elsewhere each time."""
        return "ok"

    with pytest.raises(AssertionError, match="look: accesses must be repeatable"):
        await check_tool(look, {})


async def test_accesses_that_write_are_named(tmp_path: Path) -> None:
    def find_accesses(arguments: Any) -> list[ReadPath]:
        (tmp_path / "trace").write_text("x")
        return [ReadPath("/a")]

    @tool(accesses=find_accesses)
    async def look() -> str:
        """Look."""
        return "ok"

    with pytest.raises(AssertionError, match="look: bind and accesses must change nothing"):
        await check_tool(look, {}, folder=tmp_path)


def _answer(arguments: Any) -> str:
    return "ok"


class Careless(SchemaTool):
    """Binds whatever it is given."""

    def bind(self, arguments: Any) -> Any:
        return super().bind({})


async def test_invalid_arguments_that_are_taken_are_named() -> None:
    with pytest.raises(AssertionError, match="loose: '' must raise InvalidArguments"):
        await check_tool(Careless(_ANYTHING, _answer))


async def test_text_of_some_kind_matches_its_output_schema() -> None:
    @tool(effect=Effect.READ)
    async def find_state(door: str) -> Literal["open", "shut"]:
        """Say whether a door is open."""
        return cast(Any, "ajar") if door == "front" else "open"

    await check_tool(find_state, {"door": "back"})
    with pytest.raises(AssertionError, match="find_state: the output does not match its schema"):
        await check_tool(find_state, {"door": "front"})


class Report(BaseModel):
    model_config = ConfigDict(extra="forbid")
    rows: int = Field(serialization_alias="rowCount")
    owner: str = Field(default="", exclude=True)

    @computed_field
    @property
    def empty(self) -> bool:
        return not self.rows


async def test_model_that_is_written_otherwise_than_read_matches_its_output_schema() -> None:
    @tool(effect=Effect.READ)
    async def count_rows() -> list[Report]:
        """Count the rows of each table."""
        return [Report(rows=3)]

    (outcome,) = await check_tool(count_rows, {})
    assert outcome.text == '[{"rowCount":3,"empty":false}]'
