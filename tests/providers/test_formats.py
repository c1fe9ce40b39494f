"""The exact tool format of each provider, and the notes on what it cannot express."""

import json
from typing import Any

import jsonschema_rs
import pytest

from callwright import Registry, tool
from callwright.core.errors import UsageError
from callwright.core.json import thaw
from callwright.core.spec import Annotations, Effect, ToolSpec
from callwright.providers.tool_encoding import (
    ToolPayload,
    to_anthropic,
    to_gemini,
    to_mcp,
    to_openai_chat,
    to_openai_responses,
    to_payloads,
)

PATH: dict[str, Any] = {
    "type": "object",
    "properties": {"path": {"type": "string", "description": "Where it is."}},
    "required": ["path"],
}
READ = ToolSpec("read", "Read a file.", PATH)


def _spec(schema: dict[str, Any], **facts: Any) -> ToolSpec:
    return ToolSpec("tool", "A tool.", schema, **facts)


def test_anthropic_gets_name_description_and_input_schema():
    assert to_anthropic(READ) == ToolPayload({"name": "read", "description": "Read a file.", "input_schema": PATH})


def test_openai_chat_wraps_the_function():
    function = {"name": "read", "description": "Read a file.", "parameters": PATH}
    assert to_openai_chat(READ) == ToolPayload({"type": "function", "function": function})


def test_list_of_tools_is_encoded_once_until_it_changes():
    @tool
    def look(path: str) -> str:
        """Look."""
        return path

    registry = Registry(look)
    first = to_payloads(registry.definitions(), to_openai_chat)
    assert first == (to_openai_chat(look.spec).payload,)
    assert to_payloads(registry.definitions(), to_openai_chat) is first
    assert to_payloads(registry.definitions(), to_anthropic) == (to_anthropic(look.spec).payload,)
    registry.remove("look")
    assert to_payloads(registry.definitions(), to_openai_chat) == ()


def test_list_that_can_change_is_encoded_every_time():
    specs = [READ]
    assert len(to_payloads(specs, to_openai_chat)) == 1
    specs.append(ToolSpec("write", "Write a file.", PATH))
    assert len(to_payloads(specs, to_openai_chat)) == 2


def test_openai_responses_is_flat_and_not_strict():
    flat = {"type": "function", "name": "read", "description": "Read a file.", "parameters": PATH, "strict": False}
    assert to_openai_responses(READ) == ToolPayload(flat)


def test_strict_flag_is_set_where_possible():
    chat, flat = to_openai_chat(READ, strict=True), to_openai_responses(READ, strict=True)
    closed = {**PATH, "additionalProperties": False}
    assert chat.payload["function"] == {
        "name": "read",
        "description": "Read a file.",
        "parameters": closed,
        "strict": True,
    }
    assert (flat.payload["strict"], flat.payload["parameters"]) == (True, closed)


def test_inexpressible_tool_is_sent_without_strict_mode():
    spec = _spec({"type": "object", "patternProperties": {"^x": {"type": "string"}}})
    chat, flat = to_openai_chat(spec, strict=True), to_openai_responses(spec, strict=True)
    assert "strict" not in json.dumps(chat.payload)
    assert flat.payload["strict"] is False
    assert chat.notes == flat.notes
    assert chat.notes[0].startswith("not sent in strict mode: arguments: 'patternProperties'")


def test_gemini_gets_json_schema_parameters():
    declaration = {"name": "read", "description": "Read a file.", "parametersJsonSchema": PATH}
    assert to_gemini(READ) == ToolPayload(declaration)


def test_mcp_payload_has_schema_and_hints():
    claims = Annotations(Effect.READ, idempotent=True, open_world=True)
    spec = _spec(PATH, annotations=claims, output_schema={"type": "object"}, metadata={"title": "The tool"})
    payload = to_mcp(spec).payload
    assert list(payload) == ["name", "title", "description", "inputSchema", "outputSchema", "annotations"]
    assert payload["title"] == "The tool"
    assert payload["annotations"] == {
        "readOnlyHint": True,
        "destructiveHint": False,
        "idempotentHint": True,
        "openWorldHint": True,
    }


@pytest.mark.parametrize(
    ("effect", "hints"), [(Effect.READ, (True, False)), (Effect.WRITE, (False, False)), (Effect.DESTROY, (False, True))]
)
def test_mcp_hints_follow_the_effect(effect: Effect, hints: tuple[bool, bool]):
    said: Any = to_mcp(_spec(PATH, annotations=Annotations(effect))).payload["annotations"]
    assert (said["readOnlyHint"], said["destructiveHint"]) == hints


def test_mcp_hints_of_a_tool_that_makes_calls_assume_the_worst():
    claims = Annotations(Effect.READ, idempotent=True, delegates=True)
    said: Any = to_mcp(_spec(PATH, annotations=claims)).payload["annotations"]
    assert (said["readOnlyHint"], said["destructiveHint"], said["idempotentHint"]) == (False, True, False)


def test_mcp_drops_non_object_output_schema_with_note():
    shape = to_mcp(_spec(PATH, output_schema={"type": "string"}))
    assert "outputSchema" not in shape.payload
    assert shape.notes


def test_wire_name_replaces_tool_name():
    spec = ToolSpec("fs.read", "Read a file.", PATH)
    assert to_anthropic(spec, "fs_read").payload["name"] == "fs_read"
    assert to_mcp(spec).payload["name"] == "fs.read"


@pytest.mark.parametrize("send", [to_anthropic, to_openai_chat, to_openai_responses])
def test_invalid_wire_name_raises_usage_error(send: Any):
    with pytest.raises(UsageError, match=r"'fs\.read' cannot be sent to .* pass a name="):
        send(ToolSpec("fs.read", "Read a file.", PATH))


def test_valid_schema_is_not_copied():
    assert to_anthropic(READ).payload["input_schema"] is READ.input_schema


def test_payload_is_frozen():
    payload: Any = to_openai_chat(READ, strict=True).payload
    with pytest.raises(TypeError):
        payload["function"]["parameters"]["type"] = "string"


KEYWORDS = ("pattern", "title", "format", "default", "$ref", "type", "properties", "required", "$defs", "enum", "const")


def _strict_chat(spec: ToolSpec) -> ToolPayload:
    return to_openai_chat(spec, strict=True)


@pytest.mark.parametrize("send", [to_anthropic, to_openai_chat, _strict_chat, to_openai_responses, to_gemini, to_mcp])
def test_properties_named_like_keywords_survive(send: Any):
    inner: dict[str, Any] = {"type": "object", "properties": {name: {"type": "integer"} for name in KEYWORDS}}
    spec = _spec({"type": "object", "properties": {"inner": {**inner, "required": list(KEYWORDS)}}})
    text = json.dumps(send(spec).payload)
    for name in KEYWORDS:
        assert f'"{name}": {{"type": "integer"}}' in text, name


def test_anthropic_declares_odd_property_by_pattern():
    spec = _spec({"type": "object", "properties": {"$filter": {"type": "string"}, "top": {"type": "integer"}}})
    shape = to_anthropic(spec)
    sent: Any = shape.payload["input_schema"]
    assert sent["properties"] == {"top": {"type": "integer"}}
    assert sent["patternProperties"] == {"^\\$filter$": {"type": "string"}}
    assert "$filter" in shape.notes[0]


@pytest.mark.parametrize("send", [to_anthropic, to_openai_chat, to_gemini])
def test_root_alternatives_are_described_and_noted(send: Any):
    either = [{"required": ["id"]}, {"required": ["name"]}]
    properties = {"id": {"type": "integer"}, "name": {"type": "string"}}
    shape = send(_spec({"type": "object", "properties": properties, "anyOf": either}))
    text = json.dumps(shape.payload)
    assert '"anyOf"' not in text
    assert "must fit anyOf" in text
    assert shape.notes


NUMBER, TEXT = {"type": "number"}, {"type": "string"}
DRAFT_7: dict[str, Any] = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "properties": {
        "waypoints": {
            "type": "array",
            "items": {"type": "array", "items": [NUMBER, {"$ref": "#/properties/waypoints/items/items/0"}]},
        },
        "pair": {"type": "array", "items": [TEXT, NUMBER], "additionalItems": False},
        "share": {"type": "number", "minimum": 0, "exclusiveMinimum": True, "maximum": 1, "exclusiveMaximum": False},
        "items": {"enum": [["items", {"items": [1]}]]},
    },
}


@pytest.mark.parametrize("send", [to_anthropic, to_gemini, to_openai_chat, to_openai_responses])
def test_tuples_of_older_drafts_are_sent_as_draft_2020_12(send: Any):
    payload = thaw(send(_spec(DRAFT_7)).payload)
    schema = next(
        part[key]
        for part in (payload, payload.get("function", {}))
        for key in ("input_schema", "parametersJsonSchema", "parameters")
        if key in part
    )
    jsonschema_rs.validator_for({**schema, "$schema": "https://json-schema.org/draft/2020-12/schema"})
    places = schema["properties"]["waypoints"]["items"]["prefixItems"]
    assert places[0] == NUMBER
    assert jsonschema_rs.is_valid(schema, {"waypoints": [[1, 2]], "pair": ["a", 1], "share": 1})
    for wrong in ({"waypoints": [["a", 2]]}, {"waypoints": [[1, "a"]]}, {"pair": ["a", 1, 2]}, {"pair": [1, "a"]}):
        assert not jsonschema_rs.is_valid(schema, wrong), wrong


def test_reference_into_a_definition_named_items_stays():
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/definitions/items/0"}, "pair": {"type": "array", "items": [TEXT]}},
        "definitions": {"items": {"0": TEXT}},
    }
    sent = thaw(to_anthropic(_spec(schema)).payload)["input_schema"]
    assert sent["properties"] == {
        "a": {"$ref": "#/definitions/items/0"},
        "pair": {"type": "array", "prefixItems": [TEXT]},
    }


def test_openai_gets_items_for_every_array():
    schema = {
        "type": "object",
        "properties": {
            "any": {"type": ["array", "null"]},
            "point": {"type": "array", "prefixItems": [NUMBER, NUMBER], "minItems": 2, "maxItems": 2},
            "pair": {"type": "array", "prefixItems": [TEXT, NUMBER], "items": False},
            "open": {"type": "array", "prefixItems": [TEXT]},
            "list": {"type": "array", "items": TEXT},
        },
    }
    sent = thaw(to_openai_chat(_spec(schema)).payload)["function"]["parameters"]["properties"]
    assert {name: part["items"] for name, part in sent.items()} == {
        "any": {},
        "point": NUMBER,
        "pair": {"anyOf": [TEXT, NUMBER]},
        "open": {},
        "list": TEXT,
    }
    assert sent["pair"]["maxItems"] == 2
    assert thaw(to_anthropic(_spec(schema)).payload)["input_schema"] == schema


def test_root_reference_is_followed():
    node: dict[str, Any] = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}
    sent: Any = to_anthropic(_spec({"$ref": "#/$defs/Node", "$defs": {"Node": node}})).payload["input_schema"]
    assert sent == {**node, "$defs": {"Node": node}}


def test_non_object_schema_becomes_empty_object():
    shape = to_anthropic(_spec({"type": "string"}))
    assert shape.payload["input_schema"] == {"type": "object", "properties": {}}
    assert "does not describe an object" in shape.notes[0]


def _gemini(schema: dict[str, Any], **definitions: Any) -> tuple[Any, tuple[str, ...]]:
    root = {"type": "object", "properties": {"x": schema}, "$defs": definitions}
    shape = to_gemini(_spec(root if definitions else {k: v for k, v in root.items() if k != "$defs"}))
    sent: Any = shape.payload["parametersJsonSchema"]
    return sent["properties"]["x"], shape.notes


@pytest.mark.parametrize(
    ("schema", "sent"),
    [
        ({"const": "a"}, {"enum": ["a"]}),
        ({"const": None}, {"type": "null"}),
        ({"type": "integer", "exclusiveMinimum": 0}, {"type": "integer", "minimum": 1}),
        ({"type": "string", "enum": ["a"], "title": "T"}, {"type": "string", "enum": ["a"]}),
        ({"enum": ["a", None]}, {"anyOf": [{"enum": ["a"]}, {"type": "null"}]}),
        ({"oneOf": [{"type": "string"}, {"type": "null"}]}, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        ({"type": "object", "additionalProperties": False}, {"type": "object", "additionalProperties": False}),
        ({"type": ["string", "null"], "default": None}, {"type": ["string", "null"]}),
    ],
)
def test_gemini_rewrites_equivalent_keywords(schema: dict[str, Any], sent: dict[str, Any]):
    assert _gemini(schema) == (sent, ())


@pytest.mark.parametrize(
    ("schema", "sent"),
    [
        ({"type": "string", "pattern": "^a"}, {"type": "string", "description": 'pattern: "^a"'}),
        ({"type": "string", "description": "D", "minLength": 2}, {"type": "string", "description": "D (minLength: 2)"}),
        (
            {"type": "number", "exclusiveMinimum": 0},
            {"type": "number", "minimum": 0, "description": "exclusiveMinimum: 0"},
        ),
        ({"type": "boolean", "const": True}, {"type": "boolean", "description": "one of: [true]"}),
    ],
)
def test_gemini_describes_unsupported_keywords(schema: dict[str, Any], sent: dict[str, Any]):
    found, notes = _gemini(schema)
    assert found == sent
    assert len(notes) == 1


def test_gemini_gets_nothing_beside_a_reference():
    found, notes = _gemini({"$ref": "#/$defs/D", "description": "which"}, D={"type": "string"})
    assert (found, notes) == ({"anyOf": [{"$ref": "#/$defs/D"}], "description": "which"}, ())


def test_gemini_makes_recursive_properties_optional():
    tree = {"type": "object", "properties": {"kid": {"$ref": "#/$defs/Tree"}}, "required": ["kid"]}
    shape = to_gemini(_spec({"type": "object", "properties": {"t": {"$ref": "#/$defs/Tree"}}, "$defs": {"Tree": tree}}))
    sent: Any = shape.payload["parametersJsonSchema"]
    assert sent["$defs"]["Tree"]["required"] == []
    assert "kid" in shape.notes[0]
