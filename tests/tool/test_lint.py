"""Problems that the linter finds in tool definitions."""

from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from callwright import Annotations, Effect, ToolSpec, tool
from callwright.tool.lint import lint_tool


def codes(**fields: Any) -> list[str]:
    whole: dict[str, Any] = {
        "name": "read_file",
        "description": "Read a text file.",
        "input_schema": {"type": "object"},
        **fields,
    }
    spec = ToolSpec(**whole)
    return [finding.code for finding in lint_tool(spec)]


def test_a_careful_tool_gets_no_finding() -> None:
    @tool(effect=Effect.READ, search_hint="show text of a file")
    def read_file(path: Annotated[str, Field(description="Where it is.")]) -> str:
        """Read a text file."""
        return path

    assert lint_tool(read_file) == []


def test_a_parameter_without_description_is_found() -> None:
    findings = lint_tool(ToolSpec("read", "Read a text file.", {"properties": {"path": {"type": "string"}, "x": True}}))
    assert [finding.code for finding in findings] == ["PARAMETER", "PARAMETER"]
    assert "'path' has no description" in findings[0].message


class Address(BaseModel):
    street: str
    city: str = Field(description="City, in English.")


class Order(BaseModel):
    ship_to: Address = Field(description="Where it goes.")
    bill_to: list[Address] | None = Field(None, description="Where bills go.")


def test_a_nested_field_without_description_is_found() -> None:
    @tool
    def ship(order: Annotated[Order, Field(description="What to ship.")]) -> str:
        """Ship an order to its customer."""
        return str(order)

    findings = [finding.message for finding in lint_tool(ship) if finding.code == "PARAMETER"]
    assert "parameter 'order.ship_to.street' has no description" in findings[0]
    assert "'order.bill_to.street'" in findings[1] and len(findings) == 2


def test_undescribed_fields_in_choices_and_items_are_found() -> None:
    part: dict[str, Any] = {"type": "object", "properties": {"x": {"type": "string"}}}
    schema = {
        "properties": {"a": {"description": "A.", "anyOf": [{"type": "array", "items": {"$ref": "#/$defs/p"}}, True]}}
    }
    part["properties"]["x"]["$ref"] = "#/$defs/p"  # refers to itself
    findings = lint_tool(ToolSpec("look", "Look at a place.", {**schema, "$defs": {"p": part}}))
    assert [finding.code for finding in findings] == ["PARAMETER", "NESTED"] and "'a.x'" in findings[0].message


@pytest.mark.parametrize("description", ["Read.", "x" * 1025])
def test_a_description_too_short_or_too_long_is_found(description: str) -> None:
    assert codes(description=description) == ["DESCRIPTION"]


@pytest.mark.parametrize("name", ["search_and_summarize", "searchAndSummarize", "fs.read-and-write", "read_AND_go"])
def test_and_in_a_name_is_found(name: str) -> None:
    assert "ATOMIC" in codes(name=name)


@pytest.mark.parametrize("name", ["handle", "expand_path", "read_brand", "android"])
def test_a_word_that_only_contains_and_is_fine(name: str) -> None:
    assert codes(name=name) == []


@pytest.mark.parametrize("name", ["write_file", "deleteFile", "run", "fs.remove", "exec_command"])
def test_read_effect_with_a_changing_name_is_found(name: str) -> None:
    assert codes(name=name, annotations=Annotations(Effect.READ)) == ["EFFECT"]
    assert codes(name=name) == []


def test_a_name_that_only_resembles_a_changing_word_is_fine() -> None:
    assert codes(name="read_settings", annotations=Annotations(Effect.READ)) == []


class Tree(BaseModel):
    below: list["Tree"] = Field([], description="More.")


def _objects(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "object", "description": "More.", "properties": {"a": {**schema, "description": "More."}}}
    return schema


def test_nesting_deeper_than_three_is_found() -> None:
    assert codes(input_schema=_objects(3)) == []
    assert codes(input_schema=_objects(4)) == ["NESTED"]
    maps = {"type": "object", "additionalProperties": {"type": "array", "items": {"anyOf": [_objects(2)]}}}
    assert codes(input_schema=maps) == ["NESTED"]


def test_recursive_schema_counts_as_infinitely_deep() -> None:
    @tool
    def plant(tree: Annotated[Tree, Field(description="What to plant.")]) -> str:
        """Plant a tree somewhere."""
        return str(tree)

    assert [finding.code for finding in lint_tool(plant)] == ["NESTED"]
    assert "without end" in lint_tool(plant)[0].message
    assert codes(input_schema={"properties": {"a": {"description": "A.", "$ref": "#/$defs/gone"}}}) == []


@pytest.mark.parametrize("hint", ["files", "a b c d e f g h i j k", "show the files."])
def test_a_search_hint_of_the_wrong_length_is_found(hint: str) -> None:
    assert codes(search_hint=hint) == ["HINT"]


def test_shared_definitions_are_followed_once() -> None:
    def share(number: int) -> dict[str, Any]:
        next_one = {"$ref": f"#/$defs/{number + 1}", "description": "Shared."}
        return {"type": "object", "properties": {"left": next_one, "right": next_one}}

    definitions = {str(number): share(number) for number in range(60)} | {"60": {"type": "string"}}
    (finding,) = lint_tool(ToolSpec("look", "Look at a place.", {**share(-1), "$defs": definitions}))
    assert "nested 61 deep" in finding.message
