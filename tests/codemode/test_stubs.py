"""Tools as Python functions: names, types, documentation."""

import ast
from time import process_time
from typing import Any

import pytest
from hypothesis import given, strategies as st

from callwright.codemode.stubs import name_functions, order_parameters, write_stub
from callwright.core.spec import ToolSpec


def stub(schema: dict[str, Any], output: dict[str, Any] | None = None, description: str = "Does it.") -> str:
    return write_stub("f", ToolSpec("f", description, {"type": "object", **schema}, output_schema=output))


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string"}, "str"),
        ({"type": ["integer", "null"]}, "int | None"),
        ({"enum": ["a", 1]}, "Literal['a', 1]"),
        ({"const": "x"}, "Literal['x']"),
        ({"type": "array", "items": {"type": "number"}}, "list[float]"),
        ({"anyOf": [{"type": "string"}, {"type": "boolean"}]}, "str | bool"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "dict[str, int]"),
        ({"type": "object", "properties": {"not-a-name": {}}}, "dict[str, Any]"),
        ({}, "Any"),
        (True, "Any"),
    ],
)
def test_types(schema: Any, expected: str) -> None:
    assert f"x: {expected}" in stub({"properties": {"x": schema}, "required": ["x"]})


def test_required_parameters_come_first() -> None:
    schema = {"properties": {"a": {"type": "string", "default": "q"}, "b": {"type": "integer"}}, "required": ["b"]}
    assert "async def f(b: int, a: str = 'q') -> str:" in stub(schema)
    assert order_parameters(schema) == ["b", "a"]


def test_nested_objects_become_classes_before_their_use() -> None:
    schema: dict[str, Any] = {
        "$defs": {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}},
        "properties": {"node": {"$ref": "#/$defs/Node"}, "place": {"type": "object", "properties": {"x": {}}}},
    }
    text = stub(schema, output={"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]})
    classes = [node.name for node in ast.parse(text).body if isinstance(node, ast.ClassDef)]
    assert classes == ["FResult", "FNode", "FPlace"]
    assert "    next: NotRequired[FNode]" in text and "-> FResult:" in text


def test_description_cannot_end_the_docstring() -> None:
    text = stub({"properties": {}}, description='Quote """ and \\n backslash.\n"""\nimport os')
    (function,) = ast.parse(text).body
    assert isinstance(function, ast.AsyncFunctionDef) and len(function.body) == 1


@pytest.mark.parametrize("description", ['Says "hello"', 'Ends with \\"', "Ends with \\", '"'])
@pytest.mark.parametrize("name", ["from", "max-age", "", "a b", "class", "None", "x"])
def test_stubs_are_python(description: str, name: str) -> None:
    part = {"type": "string", "description": description}
    text = stub({"properties": {name: part, "y": {}}, "required": [name]}, description=description)
    function = ast.parse(text).body[-1]
    assert isinstance(function, ast.AsyncFunctionDef) and name in (ast.get_docstring(function) or "") + text


def test_objects_of_one_name_have_classes_of_their_own() -> None:
    inner = {"type": "object", "properties": {"filter": {"type": "object", "properties": {"b": {"type": "integer"}}}}}
    outer = {"type": "object", "properties": {"a": {"type": "string"}}}
    classes = {
        node.name: [ast.unparse(line) for line in node.body]
        for node in ast.parse(stub({"properties": {"filter": outer, "other": inner}})).body
        if isinstance(node, ast.ClassDef)
    }
    assert classes["FFilter"] == ["a: NotRequired[str]"] and ["b: NotRequired[int]"] in classes.values()


def test_definitions_of_results_and_of_whole_inputs_are_read() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}, "required": ["next"]}
    text = stub({"$ref": "#/$defs/Node", "$defs": {"Node": node}}, {"$ref": "#/$defs/Node", "$defs": {"Node": node}})
    assert "async def f(next: FNode2) -> FNode:" in text
    assert order_parameters({"$ref": "#/$defs/Node", "$defs": {"Node": node}}) == ["next"]


@given(st.lists(st.text(min_size=1, max_size=20), unique=True, max_size=12))
def test_every_tool_has_a_function_of_its_own(names: list[str]) -> None:
    functions = name_functions(names)
    assert sorted(functions.values()) == sorted(names)
    assert all(function.isidentifier() for function in functions)


def test_valid_names_stay() -> None:
    found = name_functions(["a_b", "a-b", "class", "print", "mcp__x__y"])
    assert found["a_b"] == "a_b" and found["mcp__x__y"] == "mcp__x__y"
    assert found["call_class"] == "class" and found["call_print"] == "print" and "a-b" in found.values()


def test_stub_of_many_parameters_is_written_in_linear_time() -> None:
    count = 30_000
    began = process_time()
    text = stub({"type": "object", "properties": {f"p{number}": {} for number in range(count)}})
    assert process_time() - began < 5  # a quadratic search takes minutes
    assert f"p{count - 1}: Any" in text
