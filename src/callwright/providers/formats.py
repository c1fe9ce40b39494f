"""How each model API is told about a tool: one pure function per provider, from a spec to its exact shape."""

import re
from dataclasses import dataclass

from callwright.core.errors import UsageError
from callwright.core.json import FrozenDict, Json, JsonObject, freeze
from callwright.core.spec import Effect, ToolSpec
from callwright.providers.gemini_schema import gemini_schema
from callwright.providers.object_root import object_root
from callwright.providers.schema_parts import as_object
from callwright.providers.strict import strict_form

_WIRE_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_GEMINI_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")
_MCP_NAME = re.compile(r"[a-zA-Z0-9_./-]{1,128}")
_ANTHROPIC_PROPERTY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")


@dataclass(frozen=True, slots=True)
class Shape:
    """A tool as one provider's API takes it.

    The notes travel beside the payload because they are about it and not for the API: who sends the payload can show
    them once, and a test can ask that there are none.
    """

    payload: JsonObject
    """Frozen, ready to be sent; keys in a fixed order."""
    notes: tuple[str, ...] = ()
    """What the format cannot say, place by place; empty when the payload means exactly what the spec does."""


def to_anthropic(spec: ToolSpec, name: str | None = None) -> Shape:
    """Give the tool as Anthropic's Messages API takes it."""
    root, notes = object_root(spec.input_schema)
    schema, renamed = _anthropic_properties(root)
    payload = {"name": _named(spec, name, _WIRE_NAME, "Anthropic"), "description": spec.description}
    return Shape(freeze({**payload, "input_schema": schema}), notes + renamed)


def to_openai_chat(spec: ToolSpec, name: str | None = None, *, strict: bool = False) -> Shape:
    """Give the tool as OpenAI's Chat Completions API takes it; `strict` asks for strict mode where it is possible."""
    parameters, notes, enforced = _openai_parameters(spec, strict=strict)
    function: dict[str, Json] = {"name": _named(spec, name, _WIRE_NAME, "OpenAI"), "description": spec.description}
    function["parameters"] = parameters
    if enforced:
        function["strict"] = True
    return Shape(freeze({"type": "function", "function": function}), notes)


def to_openai_responses(spec: ToolSpec, name: str | None = None, *, strict: bool = False) -> Shape:
    """Give the tool as OpenAI's Responses API takes it; `strict` asks for strict mode where it is possible."""
    parameters, notes, enforced = _openai_parameters(spec, strict=strict)
    payload: dict[str, Json] = {"type": "function", "name": _named(spec, name, _WIRE_NAME, "OpenAI")}
    payload |= {"description": spec.description, "parameters": parameters}
    # left out, this API would put the schema into strict mode by itself, optional parameters and all
    payload["strict"] = enforced
    return Shape(freeze(payload), notes)


def to_gemini(spec: ToolSpec, name: str | None = None) -> Shape:
    """Give the tool as a Gemini function declaration."""
    root, lost = object_root(spec.input_schema)
    schema, notes = gemini_schema(root)
    payload = {"name": _named(spec, name, _GEMINI_NAME, "Gemini"), "description": spec.description}
    # `parameters`, the older field, rejects a whole request for one keyword it does not know
    return Shape(freeze({**payload, "parametersJsonSchema": schema}), lost + notes)


def to_mcp(spec: ToolSpec, name: str | None = None) -> Shape:
    """Give the tool as an MCP server lists it."""
    title = spec.metadata.get("title")
    payload: dict[str, Json] = {"name": _named(spec, name, _MCP_NAME, "MCP")}
    if isinstance(title, str):
        payload["title"] = title
    payload["description"] = spec.description
    payload["inputSchema"] = spec.input_schema
    if spec.input_schema.get("type") != "object":
        payload["inputSchema"] = {
            "type": "object",
            **{key: value for key, value in spec.input_schema.items() if key != "type"},
        }
    notes: tuple[str, ...] = ()
    if spec.output_schema is not None and spec.output_schema.get("type") == "object":
        payload["outputSchema"] = spec.output_schema
    elif spec.output_schema is not None:
        notes = ("output: MCP describes only objects; the output schema is left out",)
    claims = spec.annotations
    payload["annotations"] = {
        "readOnlyHint": claims.effect is Effect.READ,
        "destructiveHint": claims.effect is Effect.DESTROY,
        "idempotentHint": claims.idempotent,
        "openWorldHint": claims.open_world,
    }
    return Shape(freeze(payload), notes)


def _openai_parameters(spec: ToolSpec, *, strict: bool) -> tuple[JsonObject, tuple[str, ...], bool]:
    refused: tuple[str, ...] = ()
    if strict:
        form = strict_form(spec.input_schema)
        if form.schema is not None:
            return form.schema, form.notes, True
        refused = form.notes
    root, notes = object_root(spec.input_schema)
    if "properties" not in root:  # OpenAI refuses an object without them
        root = {**root, "properties": FrozenDict()}
    return root, refused + notes, False


def _anthropic_properties(root: JsonObject) -> tuple[JsonObject, tuple[str, ...]]:
    """Say by pattern what Anthropic does not let be said by name, such as `$filter`."""
    properties = as_object(root.get("properties"))
    odd = [name for name in properties if not _ANTHROPIC_PROPERTY.fullmatch(name)]
    if not odd:
        return root, ()
    patterns = {f"^{re.escape(name)}$": properties[name] for name in odd}
    plain = {name: value for name, value in properties.items() if name not in odd}
    notes = tuple(f"arguments.{name}: not a property name for Anthropic; declared by pattern" for name in odd)
    return {
        **root,
        "properties": plain,
        "patternProperties": {**as_object(root.get("patternProperties")), **patterns},
    }, notes


def _named(spec: ToolSpec, name: str | None, allowed: re.Pattern[str], provider: str) -> str:
    wire = spec.name if name is None else name
    if not allowed.fullmatch(wire):
        raise UsageError(
            f"tool {spec.name!r} cannot be sent to {provider} as {wire!r}: pass a name= that matches {allowed.pattern}"
        )
    return wire
