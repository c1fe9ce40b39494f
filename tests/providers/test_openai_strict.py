"""OpenAI's strict mode by example: the strict schema and the conversion of arguments."""

import json
from time import process_time
from typing import Any

import jsonschema_rs
import pytest

from callwright.core.errors import InvalidArguments
from callwright.core.json import JsonObject, thaw
from callwright.core.messages import UserMessage
from callwright.core.spec import ToolSpec
from callwright.providers.base import ModelRequest
from callwright.providers.schemas.openai_strict import StrictForm, from_strict, strict_form, to_strict
from callwright.providers.tool_encoding import ToolEncoder, to_openai_responses
from callwright.tool.schema_tool import SchemaTool

INTEGER: dict[str, Any] = {"type": "integer"}


def _form(schema: Any, *, required: bool = True, **definitions: Any) -> StrictForm:
    root = {"type": "object", "properties": {"x": schema}, "additionalProperties": False, "$defs": definitions}
    return strict_form({**root, "required": ["x"] if required else []})


def _sent(form: StrictForm) -> Any:
    assert form.schema is not None, form.notes
    return thaw(form.schema)["properties"]["x"]


def _roundtrip(form: StrictForm, arguments: dict[str, Any]) -> Any:
    written = form.to_wire(arguments)
    assert jsonschema_rs.is_valid(thaw(form.schema), thaw(written)), written
    assert form.from_wire(written) == arguments
    return written


def test_objects_are_closed_and_fully_required():
    form = strict_form({"type": "object", "properties": {"a": INTEGER, "b": {"type": "string"}}, "required": ["a"]})
    assert form.schema == {
        "type": "object",
        "properties": {"a": INTEGER, "b": {"type": ["string", "null"]}},
        "required": ["a", "b"],
        "additionalProperties": False,
    }
    assert form.notes == ("arguments: closed: properties that are not declared cannot be sent",)


def test_null_means_left_out():
    form = _form(INTEGER, required=False)
    assert _roundtrip(form, {}) == {"x": None}
    assert _roundtrip(form, {"x": 5}) == {"x": 5}


def test_allowed_null_is_kept():
    assert _roundtrip(_form({"type": ["integer", "null"]}), {"x": None}) == {"x": None}
    items = _form({"type": "array", "items": {"type": ["integer", "null"]}}, required=False)
    assert _roundtrip(items, {"x": [1, None]}) == {"x": [1, None]}


def test_default_null_is_not_wrapped():
    form = _form({"type": ["integer", "null"], "default": None}, required=False)
    assert _sent(form) == {"type": ["integer", "null"]}
    assert form.to_wire({}) == {"x": None}
    assert _roundtrip(form, {"x": None}) == {"x": None}


def test_null_and_absence_stay_distinct():
    form = _form({"type": ["string", "null"]}, required=False)
    assert _roundtrip(form, {}) == {"x": None}
    assert _roundtrip(form, {"x": None}) == {"x": {"value": None}}
    assert _roundtrip(form, {"x": "new"}) == {"x": {"value": "new"}}
    assert form.notes == ()


def test_map_becomes_list_of_pairs():
    form = _form({"type": "object", "additionalProperties": INTEGER, "maxProperties": 2})
    assert _roundtrip(form, {"x": {"a": 1, "b": 2}}) == {"x": [{"key": "a", "value": 1}, {"key": "b", "value": 2}]}
    assert _sent(form)["maxItems"] == 2
    assert form.notes == ()


def test_key_with_two_values_stays_a_list_of_pairs():
    form = _form({"type": "object", "additionalProperties": INTEGER})
    twice = [{"key": "a", "value": 1}, {"key": "a", "value": 2}]
    assert form.from_wire({"x": twice}) == {"x": twice}
    assert form.from_wire({"x": [twice[0], twice[0]]}) == {"x": {"a": 1}}


def _return(arguments: JsonObject) -> JsonObject:
    return arguments


def _bind(schema: dict[str, Any], written: str) -> JsonObject:
    """Return the arguments of a call that a model wrote in strict mode."""
    made = SchemaTool(ToolSpec("set", "Set values.", schema), _return)
    encoder = ToolEncoder("test", to_openai_responses, strict=True)
    tools = encoder.encode(ModelRequest((UserMessage("x"),), tools=(made.spec,)))
    assert "set" in tools.forms
    return made.bind(tools.read_call("c", "set", written).arguments).arguments


OPEN: dict[str, Any] = {"type": "object", "properties": {"n": INTEGER}, "additionalProperties": True}


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize(
    ("n", "pairs", "repeated"),
    [
        (1, [("a", "1"), ("a", "2")], "a"),
        (None, [("a", "1"), ("b", "1"), ("a", '"1"')], "a"),
        (1, [("n", "2")], "n"),
    ],
)
def test_further_property_with_two_values_is_refused(
    nested: bool, n: int | None, pairs: list[tuple[str, str]], repeated: str
):
    inner = {"n": n, "additional_properties": [{"key": key, "value": value} for key, value in pairs]}
    whole = {"type": "object", "properties": {"x": OPEN}, "required": ["x"], "additionalProperties": False}
    written = json.dumps({"x": inner} if nested else inner)
    with pytest.raises(InvalidArguments, match=f'the key "{repeated}" is written twice with different values'):
        _bind(whole if nested else OPEN, written)


def test_further_property_with_one_value_twice_is_read():
    pairs = [{"key": "a", "value": "1"}, {"key": "a", "value": " 1"}, {"key": "n", "value": "5"}]
    assert _bind(OPEN, json.dumps({"additional_properties": pairs, "n": 5})) == {"n": 5, "a": 1}
    assert _bind(OPEN, json.dumps({"n": None, "additional_properties": []})) == {}


def test_free_form_value_becomes_json_text():
    for schema in ({}, True, {"type": "object"}, {"type": "object", "additionalProperties": True}):
        assert _roundtrip(_form(schema), {"x": {"a": [1, None]}}) == {"x": '{"a":[1,null]}'}
    assert _roundtrip(_form({"type": "array"}), {"x": [1, "b"]}) == {"x": '[1,"b"]'}
    assert _form({}).from_wire({"x": "just words"}) == {"x": "just words"}


def test_number_out_of_range_stays_text():
    for schema in ({}, {"type": "array"}):
        assert _form(schema).from_wire({"x": "[1e400]"}) == {"x": "[1e400]"}


def test_additional_properties_become_pairs():
    form = strict_form(
        {"type": "object", "properties": {"additional_properties": INTEGER}, "additionalProperties": INTEGER}
    )
    given = {"additional_properties": 1, "more": 2}
    assert _roundtrip(form, given) == {
        "additional_properties": 1,
        "additional_properties_2": [{"key": "more", "value": 2}],
    }


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "string", "minLength": 3}, "minLength: 3"),
        ({"type": "string", "format": "uri"}, 'format: "uri"'),
        ({"type": "string", "pattern": "^(?!x)"}, 'pattern: "^(?!x)"'),
        ({"type": "array", "items": INTEGER, "uniqueItems": True}, "uniqueItems: true"),
        ({"type": "integer", "not": {"const": 3}}, 'not: {"const":3}'),
    ],
)
def test_unsupported_keywords_move_to_description(schema: dict[str, Any], said: str):
    form = _form({**schema, "description": "D."})
    assert _sent(form)["description"] == f"D. ({said})"
    assert len(form.notes) == 1


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "pattern": "^a+$"},
        {"type": "string", "format": "date-time"},
        {"type": "number", "minimum": 0, "exclusiveMaximum": 1, "multipleOf": 0.5},
        {"type": "array", "items": INTEGER, "minItems": 1, "maxItems": 4},
        {"anyOf": [{"type": "string"}, INTEGER]},
    ],
)
def test_supported_keywords_are_kept(schema: dict[str, Any]):
    form = _form(schema)
    assert (_sent(form), form.notes) == (schema, ())


def test_default_is_described_and_title_dropped():
    form = _form({"type": "string", "default": "b", "title": "X"}, required=False)
    assert _sent(form) == {"type": ["string", "null"], "description": 'default: "b"'}


def test_const_and_mixed_enums_get_types():
    assert _sent(_form({"const": "a"})) == {"type": "string", "enum": ["a"]}
    assert _sent(_form({"enum": ["a", None]})) == {"type": ["string", "null"], "enum": ["a", None]}
    assert _sent(_form({"enum": ["a", 1]})) == {
        "anyOf": [{"type": "string", "enum": ["a"]}, {"type": "integer", "enum": [1]}]
    }


def test_one_of_becomes_any_of_with_note_if_ambiguous():
    def tagged(name: str) -> dict[str, Any]:
        properties = {"kind": {"const": name}}
        return {"type": "object", "properties": properties, "required": ["kind"], "additionalProperties": False}

    assert _form({"oneOf": [tagged("a"), tagged("b")]}).notes == ()
    assert "'oneOf' is sent as anyOf" in _form({"oneOf": [{"minimum": 1}, {"maximum": 5}], "type": "integer"}).notes[0]


def test_union_reads_first_fitting_branch():
    mapped = {"type": "object", "additionalProperties": INTEGER}
    first = {"type": "object", "properties": {"m": mapped}, "required": ["m"], "additionalProperties": False}
    second = {"type": "object", "properties": {"m": INTEGER, "n": INTEGER}, "additionalProperties": False}
    form = _form({"anyOf": [first, second]})
    assert _roundtrip(form, {"x": {"m": {"a": 1}}}) == {"x": {"m": [{"key": "a", "value": 1}]}}
    assert _roundtrip(form, {"x": {"n": 2}}) == {"x": {"m": None, "n": 2}}


def test_ambiguous_alternatives_become_json_text():
    form = _form({"anyOf": [{"type": "object", "additionalProperties": INTEGER}, {"type": "array", "items": INTEGER}]})
    for value in ({}, [], {"a": 1}, [1]):
        _roundtrip(form, {"x": value})
    assert _sent(form)["type"] == "string"
    assert "look alike" in form.notes[0]


def test_recursive_definitions_stay_references():
    tree = {
        "type": "object",
        "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}},
        "additionalProperties": False,
    }
    form = _form({"$ref": "#/$defs/Tree"}, Tree=tree)
    assert _sent(form) == {"$ref": "#/$defs/Tree"}
    assert _roundtrip(form, {"x": {"kids": [{}, {"kids": []}]}}) == {"x": {"kids": [{"kids": None}, {"kids": []}]}}


def test_description_beside_reference_is_kept():
    form = _form({"$ref": "#/$defs/D", "description": "which"}, D={"type": "string"})
    assert _sent(form) == {"anyOf": [{"$ref": "#/$defs/D"}], "description": "which"}


def test_tuple_keeps_length_and_notes_order():
    pair = {"type": "array", "prefixItems": [INTEGER, {"type": "string"}], "minItems": 2, "maxItems": 2}
    form = _form(pair)
    assert _sent(form)["items"] == {"anyOf": [INTEGER, {"type": "string"}]}
    assert (_sent(form)["minItems"], _sent(form)["maxItems"]) == (2, 2)
    _roundtrip(form, {"x": [1, "a"]})
    assert "order" in form.notes[0]


def test_impossible_property_is_left_out():
    form = _form({"type": "boolean", "enum": ["yes"]}, required=False)
    assert form.schema is not None
    assert form.schema["properties"] == {}
    assert _roundtrip(form, {}) == {}


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"$ref": "https://example.org/schema"}, "cannot be resolved inside the schema"),
        ({"$ref": "#/$defs/nowhere"}, "cannot be resolved inside the schema"),
        ({"type": "object", "patternProperties": {"^x": INTEGER}}, "patternProperties"),
        ({"type": "object", "properties": {"a": INTEGER}, "then": {"properties": {"b": INTEGER}}}, "'then' concerns"),
        ({"allOf": [{"type": "string"}, {"type": "integer"}]}, "'allOf' cannot be merged"),
        ({"enum": [[1], {"a": 2}]}, "choices that are objects or lists"),
        ({"type": "dict"}, "unknown type 'dict'"),
    ],
)
def test_lossy_schema_is_not_strict(schema: dict[str, Any], reason: str):
    form = _form(schema)
    assert form.schema is None
    assert reason in form.notes[0]
    assert form.from_wire({"x": None}) == {"x": None}


def _nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = INTEGER
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}, "required": ["a"], "additionalProperties": False}
    return schema


@pytest.mark.parametrize(
    ("within", "beyond", "reason"),
    [
        (_nested(9), _nested(10), "objects nested 11 deep"),
        ({"enum": list(range(1000))}, {"enum": list(range(1001))}, "1001 choices"),
        (
            {"enum": ["x" * 60 + str(n) for n in range(100, 350)]},
            {"enum": ["x" * 60 + str(n) for n in range(100, 351)]},
            "enum of over 250",
        ),
    ],
)
def test_schema_beyond_limits_is_not_strict(within: Any, beyond: Any, reason: str):
    assert _form(within).schema is not None
    form = _form(beyond)
    assert form.schema is None
    assert reason in form.notes[0]


def test_too_many_properties_are_not_strict():
    many = {f"p{n}": INTEGER for n in range(5_001)}
    assert "5001 properties" in strict_form({"type": "object", "properties": many}).notes[0]


def test_invalid_call_is_passed_on_unchanged():
    schema = {"type": "object", "properties": {"n": INTEGER, "m": {"type": "object", "additionalProperties": INTEGER}}}
    form = strict_form({**schema, "required": ["n"]})
    assert form.from_wire({"n": "five", "m": None}) == {"n": "five"}
    assert form.from_wire({"m": [{"key": "a", "value": 1}], "other": 2}) == {"m": {"a": 1}, "other": 2}
    assert form.from_wire({"n": 1, "m": {"a": 1}}) == {"n": 1, "m": {"a": 1}}


def test_arguments_nested_too_deeply_are_passed_on():
    tree = {"type": "object", "properties": {"a": {"$ref": "#/$defs/T"}}, "additionalProperties": False}
    form = _form({"$ref": "#/$defs/T"}, T=tree)
    deep: dict[str, Any] = {}
    for _ in range(5_000):
        deep = {"a": deep}
    assert form.from_wire({"x": deep})["x"] is deep


def test_huge_integers_are_read():
    form = _form({"type": "number", "multipleOf": 0.5})
    assert form.from_wire({"x": 10**400}) == {"x": 10**400}


def test_from_strict_undoes_to_strict():
    spec = ToolSpec("tool", "A tool.", {"type": "object", "properties": {"a": INTEGER, "b": {}}})
    assert to_strict(spec, {"b": {"c": 1}}) == {"a": None, "b": '{"c":1}'}
    assert from_strict(spec, {"a": None, "b": '{"c":1}'}) == {"b": {"c": 1}}


def test_many_alternatives_are_compared_in_linear_time():
    began = process_time()
    _form({"anyOf": [{"const": number} for number in range(4_000)]})
    assert process_time() - began < 5  # to compare them pair by pair takes 20 s
