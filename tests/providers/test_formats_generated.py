"""Strict mode and Gemini on generated schemas: no valid call is lost, and wider schemas are noted."""

import json
from typing import Any, cast

import jsonschema_rs
from hypothesis import HealthCheck, assume, given, settings, strategies as st

from callwright.core.spec import ToolSpec
from callwright.providers.schemas.openai_strict import StrictForm, strict_form
from callwright.providers.schemas.openai_strict_codec import RepeatedMember
from callwright.providers.tool_encoding import to_anthropic, to_gemini

Schema = dict[str, Any]

NAMES = st.sampled_from(
    ["a", "b", "type", "title", "pattern", "format", "default", "properties", "required", "$ref", "items", "enum"]
)
_TEXTS = st.sampled_from(["", "x", "yes", "5", "null", "[]", "{}", '{"a":1}', "ünï"])
_NUMBERS = st.integers(-3, 12) | st.sampled_from([0.5, -1.5, 4.0])
_SCALARS = st.none() | st.booleans() | _NUMBERS | _TEXTS
ANYTHING: st.SearchStrategy[Any] = st.recursive(
    _SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=6
)


def plain(value: Any) -> Any:
    """Copy frozen JSON into what the validator reads."""
    return json.loads(json.dumps(value))


def accepts(schema: Any, value: Any) -> bool:
    """Whether a value is valid, as an independent validator sees it."""
    return jsonschema_rs.Draft202012Validator(plain(schema)).is_valid(plain(value))


def _optional(**keywords: st.SearchStrategy[Any]) -> st.SearchStrategy[Schema]:
    return st.fixed_dictionaries({}, optional=keywords)


def _scalar_schemas() -> st.SearchStrategy[Schema]:
    described = {"description": st.just("about it"), "title": st.just("Title")}
    strings = _optional(
        minLength=st.integers(0, 2), pattern=st.sampled_from(["^x", "s$"]), format=st.just("uri"), **described
    )
    numbers = _optional(
        minimum=st.integers(-2, 3), maximum=st.integers(3, 9), exclusiveMinimum=st.integers(-2, 2), **described
    )
    return st.one_of(
        strings.map(lambda keys: {"type": "string", **keys}),
        numbers.map(lambda keys: {"type": "integer", **keys}),
        numbers.map(lambda keys: {"type": "number", **keys}),
        st.just({"type": "boolean"}),
        st.just({"type": "null"}),
        st.lists(_TEXTS | st.integers(0, 3), min_size=1, max_size=3, unique_by=repr).map(lambda v: {"enum": v}),
        _SCALARS.map(lambda value: {"const": value}),
        st.just({"type": ["string", "null"]}),
        st.just({"type": ["integer", "null"], "default": None}),
        st.just({"type": ["array", "integer"], "items": {"type": "integer"}}),
        st.just({}),
        st.just({"type": "object"}),
        st.just({"type": "array"}),
    )


@st.composite
def _object_schemas(draw: st.DrawFn, inner: st.SearchStrategy[Schema]) -> Schema:
    properties = draw(st.dictionaries(NAMES, inner, max_size=3))
    required = [name for name in properties if draw(st.booleans())]
    schema: Schema = {"type": "object", "properties": properties, "required": required}
    more = draw(st.sampled_from(["closed", "silent", "open", "typed"]))
    if more == "silent":
        return schema
    schema["additionalProperties"] = draw(inner) if more == "typed" else more == "open"
    return schema


def _nested(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    branches = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        _object_schemas(inner),
        st.tuples(inner, st.integers(0, 2)).map(lambda t: {"type": "array", "items": t[0], "minItems": t[1]}),
        inner.map(lambda value: {"type": "object", "additionalProperties": value}),
        branches.map(lambda found: {"anyOf": found}),
        branches.map(lambda found: {"oneOf": found, "description": "either"}),
        inner.map(lambda value: {"allOf": [value]}),
        st.tuples(inner, inner).map(
            lambda pair: {"type": "array", "prefixItems": list(pair), "items": False, "minItems": 2}
        ),
        st.just({"$ref": "#/$defs/Tree"}),
        st.just({"$ref": "#/$defs/Tree", "description": "a tree"}),
        _limited(inner),
    )


def _limited(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    either = {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}
    return st.one_of(
        inner.map(
            lambda value: {"type": "object", "patternProperties": {"^[ab]$": value}, "additionalProperties": False}
        ),
        inner.map(lambda value: {"not": value}),
        st.tuples(inner, inner).map(lambda pair: {"allOf": list(pair)}),
        st.tuples(inner, inner).map(lambda pair: {**pair[0], "anyOf": [pair[1], {"type": "string"}]}),
        inner.map(lambda value: {"type": "object", "additionalProperties": value, "maxProperties": 1}),
        inner.map(
            lambda value: {"type": "object", "additionalProperties": value, "propertyNames": {"enum": ["a", "b"]}}
        ),
        _object_schemas(inner).map(lambda schema: {**schema, **either}),
        _object_schemas(inner).map(lambda schema: {**schema, "if": either, "then": {"properties": {"a": True}}}),
        _object_schemas(inner).map(lambda schema: {**schema, "if": either, "then": {"$ref": "#/$defs/Tree"}}),
        _object_schemas(inner).map(lambda schema: {**schema, "not": {"required": ["type"]}}),
        st.just({"type": "array", "items": {"type": "array", "enum": ["never"]}}),
    )


SCHEMAS = st.recursive(_scalar_schemas(), _nested, max_leaves=5)
_TREE: Schema = {
    "type": "object",
    "properties": {"label": {"type": "string"}, "kids": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}},
    "required": ["label"],
    "additionalProperties": False,
}


@st.composite
def tool_schemas(draw: st.DrawFn) -> Schema:
    """Draw the input schema of a tool."""
    return {**draw(_object_schemas(SCHEMAS)), "$defs": {"Tree": _TREE}}


@st.composite
def values_for(draw: st.DrawFn, schema: Any, depth: int = 0) -> Any:
    """Draw a value that is meant for a schema; it is often valid, and never promised to be."""
    if not isinstance(schema, dict) or draw(st.integers(0, 14)) == 0:
        return draw(ANYTHING)
    schema = cast(Schema, schema)
    if "$ref" in schema:
        return draw(values_for(_TREE, depth + 1))
    for keyword in ("anyOf", "oneOf", "allOf"):
        if keyword in schema:
            return draw(values_for(draw(st.sampled_from(schema[keyword])), depth))
    if "const" in schema or "enum" in schema:
        return draw(st.sampled_from(schema.get("enum", [schema.get("const")])))
    kinds: Any = schema.get("type", "any")
    return draw(
        _of_kind(draw(st.sampled_from(cast(list[str], kinds))) if isinstance(kinds, list) else kinds, schema, depth)
    )


def _of_kind(kind: str, schema: Schema, depth: int) -> st.SearchStrategy[Any]:
    if kind == "object":
        return _objects(schema, depth)
    if kind == "array":
        return _lists(schema, depth)
    simple: dict[str, st.SearchStrategy[Any]] = {
        "string": _TEXTS,
        "integer": st.integers(-3, 12),
        "number": _NUMBERS,
        "boolean": st.booleans(),
        "null": st.none(),
    }
    return simple.get(kind, ANYTHING)


@st.composite
def _objects(draw: st.DrawFn, schema: Schema, depth: int) -> Any:
    properties = schema.get("properties", {})
    required = schema.get("required", [])
    found = {
        name: draw(values_for(value, depth + 1))
        for name, value in properties.items()
        if name in required or (depth < 4 and draw(st.booleans()))
    }
    more = schema.get("additionalProperties", True)
    for name in draw(st.lists(NAMES, max_size=2)) if more is not False else []:
        found.setdefault(name, draw(values_for(more, depth + 1)))
    return found


@st.composite
def _lists(draw: st.DrawFn, schema: Schema, depth: int) -> Any:
    if "prefixItems" in schema:
        return [draw(values_for(item, depth + 1)) for item in schema["prefixItems"]]
    size = draw(st.integers(0, 3 if depth < 4 else 0))
    return [draw(values_for(schema.get("items", True), depth + 1)) for _ in range(size)]


_SETTINGS = settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)
_NARROWING = ("closed:", "taken as")


def _is_same_call(given_value: Any, read: Any) -> bool:
    """Equal, but for a null that is written out where null is the declared default."""
    if isinstance(given_value, dict) and isinstance(read, dict):
        mine, yours = cast(Schema, given_value), cast(Schema, read)
        return all(yours[name] is None for name in yours if name not in mine) and all(
            name in yours and _is_same_call(value, yours[name]) for name, value in mine.items()
        )
    if isinstance(given_value, list) and isinstance(read, list):
        ours, theirs = cast(list[Any], given_value), cast(list[Any], read)
        return len(ours) == len(theirs) and all(map(_is_same_call, ours, theirs))
    return given_value == read and isinstance(given_value, bool) == isinstance(read, bool)


@_SETTINGS
@given(st.data())
def test_valid_call_round_trips_through_strict_mode(data: st.DataObject):
    schema = data.draw(tool_schemas())
    arguments = data.draw(values_for(schema))
    assume(isinstance(arguments, dict) and accepts(schema, arguments))
    form = strict_form(schema)
    assume(form.schema is not None and not any(word in note for note in form.notes for word in _NARROWING))
    written = form.to_wire(cast(Schema, arguments))
    assert accepts(form.schema, written), (plain(form.schema), written)
    assert _is_same_call(arguments, plain(form.from_wire(written))), written


def _is_read(form: StrictForm, written: Schema) -> bool:
    """Whether a call can be read; text that is no JSON of the kind asked for, and two values, are left to bind."""
    assert form.codec is not None
    try:
        return form.codec.convert(written, "back").fits
    except RepeatedMember:
        return False


@_SETTINGS
@given(st.data())
def test_strict_calls_are_valid_without_notes(data: st.DataObject):
    schema = data.draw(tool_schemas())
    form = strict_form(schema)
    assume(form.schema is not None and all("closed:" in note for note in form.notes))
    written = data.draw(values_for(plain(form.schema)))
    assume(isinstance(written, dict) and accepts(form.schema, written))
    assume(_is_read(form, cast(Schema, written)))
    assert accepts(schema, form.from_wire(cast(Schema, written))), (plain(form.schema), written)


@_SETTINGS
@given(st.data())
def test_generated_strict_schemas_are_closed(data: st.DataObject):
    form = strict_form(data.draw(tool_schemas()))
    assume(form.schema is not None)
    _check_strict(plain(form.schema), root=True)


def _check_strict(node: Any, *, root: bool = False) -> None:
    known = {"type", "enum", "anyOf", "$ref", "properties", "required", "additionalProperties", "items", "description"}
    known |= {"minItems", "maxItems", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "pattern", "format"}
    assert set(node) <= known | {"multipleOf"} | ({"$defs"} if root else set[str]())
    assert {"type", "anyOf", "$ref"} & set(node)
    assert "$ref" not in node or set(node) == {"$ref"}
    if "properties" in node:
        assert node["required"] == list(node["properties"])
        assert node["additionalProperties"] is False
    children = [*node.get("properties", {}).values(), *node.get("anyOf", []), *node.get("$defs", {}).values()]
    for child in children + ([node["items"]] if "items" in node else []):
        _check_strict(child)


@_SETTINGS
@given(st.data())
def test_gemini_schema_is_same_or_wider_with_notes(data: st.DataObject):
    schema = data.draw(tool_schemas())
    arguments = data.draw(values_for(schema))
    shape = to_gemini(ToolSpec("tool", "a tool", schema))
    before, after = accepts(schema, arguments), accepts(shape.payload["parametersJsonSchema"], arguments)
    assert after or not before
    assert shape.notes or after == before


@_SETTINGS
@given(st.data())
def test_converting_never_raises_on_any_arguments(data: st.DataObject):
    form = strict_form(data.draw(tool_schemas()))
    arguments = data.draw(st.dictionaries(NAMES, ANYTHING, max_size=4))
    assert isinstance(form.to_wire(arguments), dict)
    assert isinstance(form.from_wire(arguments), dict)


@_SETTINGS
@given(st.data())
def test_anthropic_root_accepts_every_valid_call(data: st.DataObject):
    closed = _object_schemas(_scalar_schemas()).map(lambda schema: {**schema, "additionalProperties": False})
    branches = data.draw(st.lists(closed, min_size=1, max_size=3))
    schema = {"type": "object", data.draw(st.sampled_from(["anyOf", "oneOf"])): branches}
    arguments = data.draw(values_for(schema))
    assume(isinstance(arguments, dict) and accepts(schema, arguments))
    shape = to_anthropic(ToolSpec("tool", "a tool", schema))
    sent: Any = shape.payload["input_schema"]
    assert sent["type"] == "object"
    assert not {"anyOf", "oneOf", "allOf"} & set(sent)
    assert accepts(sent, arguments)
    assert shape.notes
