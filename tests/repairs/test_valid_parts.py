"""A repair changes nothing that was valid in the call, and does not choose between two readings."""

from dataclasses import dataclass
from typing import Any, Literal

import pytest

from callwright import Completed, Executor, Failed, Registry, tool
from callwright.core.json import JsonObject
from callwright.core.spec import ToolSpec
from callwright.policy import AllowEverything
from callwright.tool.base import Tool
from callwright.tool.schema_tool import SchemaTool


@dataclass
class Purge:
    kind: Literal["purge"]
    keep: int | None = 100


@dataclass
class Move:
    kind: Literal["move"]
    to: str | None = "archive"


@tool
async def patch(record: str, changes: dict[str, Any], limit: int = 5) -> dict[str, Any]:
    """Change a record; null removes a field."""
    return {"record": record, "changes": changes, "limit": limit}


@tool
async def apply(op: Purge | Move, note: str = "") -> str:
    """Apply an operation."""
    return f"{op!r} {note!r}"


@tool
async def move(op: Move, note: str = "") -> str:
    """Move a record."""
    return f"{op!r} {note!r}"


@tool
async def ping() -> str:
    """Answer."""
    return "pong"


def _schema_tool(**schema: Any) -> SchemaTool:
    def handle(arguments: JsonObject) -> JsonObject:
        return arguments

    return SchemaTool(ToolSpec("update", "Update a ticket; null clears a field.", {"type": "object", **schema}), handle)


async def _run(used: Tool, arguments: Any) -> str | None:
    """Return what the call's tool said, without the note about repairs; None if it was refused."""
    outcome = await Executor(Registry(used), AllowEverything()).run(used.spec.name, arguments)
    if isinstance(outcome, Failed):
        assert outcome.repairs == ()
        return None
    assert isinstance(outcome, Completed)
    assert outcome.repairs
    return outcome.text.partition("\n(The call was repaired")[0]


ID = {"id": {"type": "integer"}}
NESTED = {"type": "object", "properties": {"a": {"type": "integer"}}}
MAP = {"type": "object", "additionalProperties": {"type": ["string", "null"]}}


@pytest.mark.parametrize(
    ("used", "arguments", "said"),
    [
        (
            patch,
            {"record": "1", "changes": {"owner": None, "a": 1}, "limit": None},
            '{"record":"1","changes":{"owner":null,"a":1},"limit":5}',
        ),
        (
            patch,
            '{"record": "1", "changes": {"owner": null, "in": [{"a": null}], "": null},}',
            '{"record":"1","changes":{"owner":null,"in":[{"a":null}],"":null},"limit":5}',
        ),
        (apply, {"op": {"kind": "move", "to": None}, "note": None}, "Move(kind='move', to=None) ''"),
        (_schema_tool(properties=ID), {"id": "7", "assignee": None}, '{"id":7,"assignee":null}'),
        (_schema_tool(properties=ID), '{"id": 7, "assignee": null,}', '{"id":7,"assignee":null}'),
        (_schema_tool(properties=ID, additionalProperties=True), {"id": "7", "a": None}, '{"id":7,"a":null}'),
        (
            _schema_tool(properties=ID, additionalProperties=False, patternProperties={"^x-": {}}),
            {"id": "7", "x-owner": None},
            '{"id":7,"x-owner":null}',
        ),
        (_schema_tool(properties={**ID, "set": MAP}), {"id": "7", "set": {"a": None}}, '{"id":7,"set":{"a":null}}'),
        (
            _schema_tool(properties={**ID, "in": {**NESTED, "additionalProperties": False}}),
            {"id": 7, "in": {"a": 1, "b": None}, "assignee": None},
            '{"id":7,"in":{"a":1},"assignee":null}',
        ),
    ],
)
async def test_null_that_is_data_stays(used: Tool, arguments: Any, said: str):
    assert await _run(used, arguments) == said


@pytest.mark.parametrize(
    ("used", "arguments", "said"),
    [
        (ping, {"": {}}, "pong"),
        (ping, {"reason": None}, "pong"),
        (move, {"op": {"kind": "move", "by": None}}, "Move(kind='move', to='archive') ''"),
        (move, {"op": {"kind": "move", "to": None, "by": None}}, "Move(kind='move', to=None) ''"),
        (_schema_tool(properties=ID, additionalProperties=False), {"id": 7, "assignee": None}, '{"id":7}'),
    ],
)
async def test_null_for_a_field_that_cannot_exist_is_left_out(used: Tool, arguments: Any, said: str):
    assert await _run(used, arguments) == said


async def test_null_in_a_map_of_texts_is_refused():
    used = _schema_tool(properties=ID, additionalProperties={"type": "string"})
    assert await _run(used, {"id": 7, "assignee": None}) is None


@tool
async def drop(table: str, cascade: Literal["none", "all"] = "all", order: Literal["*", "a"] = "a") -> str:
    """Drop a table."""
    return f"{table} {cascade} {order}"


@tool
async def sort(
    by: Literal["name", "size"] | None = "name", then: Literal["name", "size"] | None = None, only: str = ""
) -> str:
    """Sort a list."""
    return f"{by} {then}"


@pytest.mark.parametrize(
    ("used", "arguments", "said"),
    [
        (drop, {"table": "t", "cascade": "None"}, "t none a"),
        (drop, {"table": "t", "cascade": "null"}, None),
        (drop, {"table": "t", "cascade": ""}, None),
        (drop, {"table": "t", "order": "None"}, "t all a"),
        (drop, {"table": "t", "order": ""}, "t all a"),
        (drop, {"table": "t", "order": "-"}, None),
        (sort, {"by": "None"}, None),
        (sort, {"then": "None"}, "name None"),
        (sort, {"by": "Size", "then": ""}, "size None"),
    ],
)
async def test_no_value_as_text_is_left_out_if_no_choice_says_it(used: Tool, arguments: Any, said: str | None):
    assert await _run(used, arguments) == said


@pytest.mark.parametrize(
    ("choices", "given", "read"),
    [
        (["1", "2"], "-1", None),
        (["1", "2"], "+1", None),
        (["10", "20"], "1.0", None),
        (["12", "20"], "1-2", None),
        (["12", "20"], "1_2", None),
        (["10", "20"], "10%", None),
        (["t1", "t2"], "t-1", None),
        (["t1", "t2"], "t -1", None),
        (["c", "rust"], "c++", None),
        (["c", "rust"], "C#", None),
        (["a/b", "ab"], "a:b", None),
        (["5", "6"], "5'", None),
        (["strasse", "weg"], "straße", None),
        (["1", "2"], " '1' ", "1"),
        (["-1", "1"], "-1 ", "-1"),
        (["in_progress", "done"], "In Progress", "in_progress"),
        (["in_progress", "done"], "inProgress", "in_progress"),
        (["in progress", "done"], "in-progress", "in progress"),
        (["c++", "c"], "C++", "c++"),
        (["no-op", "noop"], "No Op", None),
    ],
)
async def test_a_choice_is_read_only_if_nothing_is_dropped(choices: list[str], given: str, read: str | None):
    used = _schema_tool(properties={"of": {"enum": choices}}, required=["of"], additionalProperties=False)
    assert await _run(used, {"of": given}) == (None if read is None else f'{{"of":"{read}"}}')


TEXT = {"type": "string"}
SEARCH = _schema_tool(
    properties={"query": TEXT, "type": TEXT, "id": TEXT}, required=["query"], additionalProperties=False
)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"query": "x", "type": "users", "arguments": {}}, '{"query":"x","type":"users"}'),
        ({"name": "update", "query": "x", "id": "7"}, '{"query":"x","id":"7"}'),
        ({"name": "update", "arguments": {"query": "x", "id": "7"}}, '{"query":"x","id":"7"}'),
        ({"call_id": "c1", "function": {"name": "update", "arguments": {"query": "x"}}}, '{"query":"x"}'),
        ({"name": "update", "arguments": {"query": "x"}, "type": "users"}, None),
        ({"name": "update", "parameters": {"query": "x"}, "id": "7"}, None),
        ({"type": "users", "function": {"name": "update", "arguments": {"query": "x"}}}, None),
    ],
)
async def test_fields_beside_a_wrapped_call_are_not_lost(arguments: Any, said: str | None):
    assert await _run(SEARCH, arguments) == said


@tool
async def wipe(prefixes: list[str]) -> str:
    """Delete everything with these prefixes."""
    return repr(prefixes)


@tool
async def store(items: list[Any]) -> str:
    """Store items."""
    return repr(items)


@pytest.mark.parametrize(
    ("used", "arguments", "said"),
    [
        (wipe, {"prefixes": "a"}, "['a']"),
        (wipe, {"prefixes": ""}, None),
        (wipe, {"prefixes": " "}, None),
        (wipe, {"prefixes": "None"}, None),
        (store, {"items": {"a": None}}, "[{'a': None}]"),
        (store, {"items": None}, None),
        (store, {"items": {}}, None),
    ],
)
async def test_nothing_is_not_an_item(used: Tool, arguments: Any, said: str | None):
    assert await _run(used, arguments) == said
