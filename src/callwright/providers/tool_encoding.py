"""Bodies of requests: what stays the same from turn to turn is encoded once, the conversation is added to it.

How each model API is told about a tool: one pure function per provider, from a spec to its exact shape.

Tools that join a conversation in the middle, where a search found them.

Definitions stand before everything else in a prompt, so one more of them invalidates all that a provider has cached.
Two APIs let a tool join later instead: Anthropic's by reference to a definition that is sent but not shown, OpenAI's
Responses by an item that brings the definition along.

`Edge`: the tools of a request where they leave us, with their names and arguments on the way out and back.
"""

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from callwright.core.calls import ToolCall
from callwright.core.errors import UsageError
from callwright.core.json import FrozenDict, Json, JsonObject, compact, freeze
from callwright.core.messages import AssistantPart, History, Message, Stop, ToolMessage, revealed_by
from callwright.core.spec import Effect, ToolSpec
from callwright.providers.base import ModelRequest
from callwright.providers.encoding import (
    Kept,
    Pieces,
    assemble,
    call_arguments,
    encoded_options,
    kept_with,
    listed,
    parsed_object,
    to_bytes,
    wire_name,
)
from callwright.providers.schemas.gemini import gemini_schema
from callwright.providers.schemas.inspect import as_object
from callwright.providers.schemas.merge import object_root
from callwright.providers.schemas.openai_strict import StrictForm, strict_form

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


Late: TypeAlias = Literal["never", "by reference", "by definition"]
"""How an API lets tools join: not at all, or one of the two ways."""
NOBODY: frozenset[str] = frozenset()


def joined(message: Message) -> tuple[str, ...]:
    """The tools that a message's searches revealed, each once."""
    if not isinstance(message, ToolMessage):
        return ()
    return tuple(dict.fromkeys(name for outcome in message.outcomes for name in revealed_by(outcome)))


def all_joined(messages: Sequence[Message]) -> frozenset[str]:
    """The tools that have joined a conversation so far; the same object until there are more.

    A tool whose search was compacted away is not among them.
    """
    if not isinstance(messages, History) or not messages:
        return frozenset(name for message in messages for name in joined(message)) or NOBODY
    return kept_with(messages, _Joined, _Joined).upto(messages)


class _Joined:
    """What has joined a history that only grows."""

    __slots__ = ("_count", "_names")

    def __init__(self) -> None:
        self._count = 0
        self._names = NOBODY

    def upto(self, messages: History) -> frozenset[str]:
        """All that have joined by now."""
        fresh = [name for message in messages[self._count :] for name in joined(message)]
        self._count = len(messages)
        if fresh:
            self._names = self._names.union(fresh)
        return self._names


_NO_NAMES: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class EncodedTools:
    """What one set of tools looks like to a provider."""

    tools: bytes
    """The encoded list; empty where there are no tools."""
    key: Hashable
    """Names everything about the tools that the encoding of a message depends on."""
    wire: Mapping[str, str]
    own: Mapping[str, str]
    forms: Mapping[str, StrictForm]
    """The tools that are sent in strict mode."""
    late: Mapping[str, bytes]
    """The tools that join where the history says so, with what is to be sent of them there."""

    def outward_name(self, call: ToolCall) -> str:
        """The name a call is replayed under."""
        return self.wire.get(call.name) or wire_name(call.name)

    def inward_name(self, name: str) -> str:
        """The tool a model meant by a name."""
        return self.own.get(name, name)

    def outward(self, call: ToolCall) -> JsonObject:
        """The arguments a call is replayed with, as the model had written them."""
        arguments = call_arguments(call)
        form = self.forms.get(call.name)
        return arguments if form is None or "invalid_json" in arguments else form.outward(arguments)

    def inward(self, call_id: str, name: str, text: str, *, cut: bool = False) -> ToolCall:
        """A model's call as ours. Text is kept as it came, except where strict mode or silence must be translated."""
        own = self.inward_name(name)
        if not text.strip() and not cut:
            return ToolCall(call_id, own)
        form = self.forms.get(own)
        arguments = None if form is None or cut else parsed_object(text)
        if form is None or arguments is None:
            return ToolCall(call_id, own, text)
        return ToolCall(call_id, own, compact(form.inward(arguments)))


class ToolEncoder:
    """Makes edges, one for each set of tools it meets."""

    def __init__(
        self,
        provider: str,
        shape: Callable[[ToolSpec, str, bool], Shape],
        *,
        strict: bool = False,
        late: Late = "never",
    ) -> None:
        self._provider = provider
        self._shape = shape
        self._strict = strict
        self._late: Late = late
        self._kept: Kept[EncodedTools] = Kept()

    def of(self, request: ModelRequest) -> EncodedTools:
        """The edge for a request's tools; the same as last time while they are the same."""
        names = request.wire_names or _NO_NAMES  # requests without any have an empty mapping of their own each
        joined = NOBODY if self._late == "never" else all_joined(request.messages)
        return self._kept.of(request.tools, names, joined, make=lambda: self._make(request, joined))

    def _make(self, request: ModelRequest, joined: frozenset[str]) -> EncodedTools:
        wire = {spec.name: request.wire_names.get(spec.name, spec.name) for spec in request.tools}
        forms: dict[str, StrictForm] = {}
        if self._strict:
            found = {spec.name: strict_form(spec.input_schema) for spec in request.tools}
            # strict mode helps where it says all that the schema says; elsewhere it would cost valid calls
            forms = {name: form for name, form in found.items() if form.schema is not None and not form.notes}
        shapes = {spec.name: self._shape(spec, wire[spec.name], spec.name in forms).payload for spec in request.tools}
        late = {
            spec.name: to_bytes(shapes[spec.name]) for spec in request.tools if spec.deferred and spec.name in joined
        }
        if len(late) == len(shapes):  # no API takes a request in which there is nothing from the start
            late = {}
        everything = {**request.wire_names, **wire}
        renamed = frozenset((name, sent) for name, sent in everything.items() if name != sent)
        return EncodedTools(
            self._listed(shapes, late),
            (self._provider, renamed, frozenset(forms), self._dependent(late, joined)),
            everything,
            {sent: name for name, sent in everything.items()},
            forms,
            late,
        )

    def _dependent(self, late: Mapping[str, bytes], joined: frozenset[str]) -> frozenset[object]:
        """What messages depend on: definitions they bring along, or whether what they refer to is still there."""
        return frozenset(late.items()) if self._late == "by definition" else frozenset(joined - late.keys())

    def _listed(self, shapes: Mapping[str, JsonObject], late: Mapping[str, bytes]) -> bytes:
        if self._late == "by definition":
            shown = [shape for name, shape in shapes.items() if name not in late]
        else:
            shown = [{**shape, "defer_loading": True} if name in late else shape for name, shape in shapes.items()]
        return listed([to_bytes(shape) for shape in shown]) if shown else b""


def stop_for(stop: Stop, parts: tuple[AssistantPart, ...]) -> Stop:
    """Say `calls` where a server calls a message with calls an ordinary end."""
    return "calls" if stop == "end" and any(isinstance(part, ToolCall) for part in parts) else stop


Fields = dict[str, bytes]


class Bodies:
    """Puts one API's requests together."""

    def __init__(
        self, fields: Callable[[ModelRequest, EncodedTools], Fields], conversation: str, *, merged: str = ""
    ) -> None:
        """`fields` are all but the conversation; the one called `merged` has the request's options in it already."""
        self._fields = fields
        self._conversation = conversation
        self._merged = merged
        self._heads: Kept[bytes] = Kept()

    def of(self, request: ModelRequest, edge: EncodedTools, conversation: Pieces) -> bytes:
        """The whole body. The conversation is copied once, here and nowhere else."""
        if request.options:  # whose they are may change them
            return self._with_options(request, edge, conversation)
        asked = (edge, request.system, request.output_schema, request.max_tokens)
        head = self._heads.of(*asked, make=lambda: self._head(request, edge))
        return b"".join([head, *conversation, b"}"])

    def _head(self, request: ModelRequest, edge: EncodedTools) -> bytes:
        fields = assemble(self._fields(request, edge)).removesuffix(b"}")
        return b"%s,%s:" % (fields, to_bytes(self._conversation))

    def _with_options(self, request: ModelRequest, edge: EncodedTools, conversation: Pieces) -> bytes:
        fields = self._fields(request, edge)
        own = {name: value for name, value in encoded_options(request.options).items() if name != self._merged}
        return assemble({**fields, self._conversation: conversation, **own})
