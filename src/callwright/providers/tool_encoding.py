"""Tools in the formats of the model APIs: definitions, tools added later, calls in both directions, request bodies.

Definitions come first in a prompt, so one more of them invalidates everything a provider has cached. Two APIs let a
tool join later instead, where a search found it: Anthropic's by reference to a definition that is sent but not shown,
OpenAI's Responses by an item that holds the definition.
"""

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from callwright.core.calls import ToolCall, find_revealed
from callwright.core.content import Text
from callwright.core.errors import UsageError
from callwright.core.json import FrozenDict, Json, JsonObject, compact, freeze, read_object
from callwright.core.messages import (
    AssistantMessage,
    AssistantPart,
    History,
    Message,
    Stop,
    Thinking,
    ToolMessage,
    Usage,
)
from callwright.core.spec import Effect, ToolSpec
from callwright.providers.base import ModelRequest
from callwright.providers.encoding import (
    FIRST_HALVES,
    IdentityCache,
    Pieces,
    assemble,
    cache_with_history,
    call_arguments,
    join_halves,
    join_list,
    join_pieces,
    merge_options,
    parse_object,
    to_bytes,
    wire_name,
)
from callwright.providers.schemas.gemini import gemini_schema
from callwright.providers.schemas.merge import object_root, with_items
from callwright.providers.schemas.openai_strict import StrictForm, strict_form
from callwright.providers.schemas.openai_strict_codec import RepeatedMember
from callwright.tool.schema_drafts import to_current_draft

_WIRE_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_GEMINI_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")
_MCP_NAME = re.compile(r"[a-zA-Z0-9_./-]{1,128}")
_ANTHROPIC_PROPERTY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")


@dataclass(frozen=True, slots=True)
class ToolPayload:
    """A tool definition in one API's format."""

    payload: JsonObject
    """Frozen, ready to send, keys in a fixed order."""
    notes: tuple[str, ...] = ()
    """What the format cannot express, by path; empty when the payload means exactly what the spec does."""


def to_anthropic(spec: ToolSpec, name: str | None = None) -> ToolPayload:
    """Encode a tool for Anthropic's Messages API."""
    root, notes = object_root(to_current_draft(spec.input_schema))
    schema, renamed = _anthropic_properties(root)
    payload = {"name": _check_name(spec, name, _WIRE_NAME, "Anthropic"), "description": spec.description}
    return ToolPayload(freeze({**payload, "input_schema": schema}), notes + renamed)


def to_openai_chat(spec: ToolSpec, name: str | None = None, *, strict: bool = False) -> ToolPayload:
    """Encode a tool for OpenAI's Chat Completions API; `strict` uses strict mode where possible."""
    parameters, notes, enforced = _openai_parameters(spec, strict=strict)
    function: dict[str, Json] = {"name": _check_name(spec, name, _WIRE_NAME, "OpenAI"), "description": spec.description}
    function["parameters"] = parameters
    if enforced:
        function["strict"] = True
    return ToolPayload(freeze({"type": "function", "function": function}), notes)


def to_openai_responses(spec: ToolSpec, name: str | None = None, *, strict: bool = False) -> ToolPayload:
    """Encode a tool for OpenAI's Responses API; `strict` uses strict mode where possible."""
    parameters, notes, enforced = _openai_parameters(spec, strict=strict)
    payload: dict[str, Json] = {"type": "function", "name": _check_name(spec, name, _WIRE_NAME, "OpenAI")}
    payload |= {"description": spec.description, "parameters": parameters}
    # without the field this API applies strict mode by itself, and makes optional parameters required
    payload["strict"] = enforced
    return ToolPayload(freeze(payload), notes)


def to_gemini(spec: ToolSpec, name: str | None = None) -> ToolPayload:
    """Encode a tool as a Gemini function declaration."""
    root, lost = object_root(to_current_draft(spec.input_schema))
    schema, notes = gemini_schema(root)
    payload = {"name": _check_name(spec, name, _GEMINI_NAME, "Gemini"), "description": spec.description}
    # the older field `parameters` rejects the whole request for one unknown keyword
    return ToolPayload(freeze({**payload, "parametersJsonSchema": schema}), lost + notes)


def to_mcp(spec: ToolSpec, name: str | None = None) -> ToolPayload:
    """Encode a tool as an MCP server lists it."""
    title = spec.metadata.get("title")
    payload: dict[str, Json] = {"name": _check_name(spec, name, _MCP_NAME, "MCP")}
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
        notes = ("output: MCP supports only objects; the output schema is left out",)
    claims = spec.annotations
    payload["annotations"] = {  # a tool that makes calls itself may have any effect; only here they are on record
        "readOnlyHint": claims.effect is Effect.READ and not claims.delegates,
        "destructiveHint": claims.effect is Effect.DESTROY or claims.delegates,
        "idempotentHint": claims.idempotent and not claims.delegates,
        "openWorldHint": claims.open_world,
    }
    return ToolPayload(freeze(payload), notes)


_payloads: IdentityCache[tuple[JsonObject, ...]] = IdentityCache(entries=8)


def to_payloads(specs: Sequence[ToolSpec], shape: Callable[[ToolSpec], ToolPayload]) -> tuple[JsonObject, ...]:
    """Encode tools for one API, as its list of tools; encoded once while they stay the same.

    Args:
        specs: The tools. A tuple, such as `registry.definitions()`, which is the same object until the registry
            changes, is encoded once.
        shape: The format: `to_openai_chat`, `to_anthropic` or another function of this module.
    """
    if not isinstance(specs, tuple):
        return tuple(shape(spec).payload for spec in specs)
    return _payloads.get(specs, shape, make=lambda: tuple(shape(spec).payload for spec in specs))


def _openai_parameters(spec: ToolSpec, *, strict: bool) -> tuple[JsonObject, tuple[str, ...], bool]:
    refused: tuple[str, ...] = ()
    if strict:
        form = strict_form(spec.input_schema)
        if form.schema is not None:
            return form.schema, form.notes, True
        refused = form.notes
    root, notes = object_root(with_items(to_current_draft(spec.input_schema)))
    if "properties" not in root:  # OpenAI rejects an object without them
        root = {**root, "properties": FrozenDict()}
    return root, refused + notes, False


def _anthropic_properties(root: JsonObject) -> tuple[JsonObject, tuple[str, ...]]:
    """Declare by pattern the properties whose names Anthropic rejects, such as `$filter`."""
    properties = read_object(root.get("properties"))
    odd = [name for name in properties if not _ANTHROPIC_PROPERTY.fullmatch(name)]
    if not odd:
        return root, ()
    patterns = {f"^{re.escape(name)}$": properties[name] for name in odd}
    plain = {name: value for name, value in properties.items() if name not in odd}
    notes = tuple(f"arguments.{name}: Anthropic rejects the property name; declared by pattern" for name in odd)
    return {
        **root,
        "properties": plain,
        "patternProperties": {**read_object(root.get("patternProperties")), **patterns},
    }, notes


def _check_name(spec: ToolSpec, name: str | None, allowed: re.Pattern[str], provider: str) -> str:
    wire = spec.name if name is None else name
    if not allowed.fullmatch(wire):
        raise UsageError(
            f"tool {spec.name!r} cannot be sent to {provider} as {wire!r}: pass a name= that matches {allowed.pattern}"
        )
    return wire


LateToolMode: TypeAlias = Literal["never", "by reference", "by definition"]
"""How an API lets tools join a conversation: not at all, or in one of two ways."""
NO_TOOLS: frozenset[str] = frozenset()


def late_tools(message: Message) -> tuple[str, ...]:
    """Return the tools that the searches in a message revealed, each once."""
    if not isinstance(message, ToolMessage):
        return ()
    return tuple(dict.fromkeys(name for outcome in message.outcomes for name in find_revealed(outcome)))


def all_late_tools(messages: Sequence[Message]) -> frozenset[str]:
    """Return the tools that have joined a conversation so far; the same object until there are more.

    A tool whose search was compacted away is not among them.
    """
    if not isinstance(messages, History) or not messages:
        return frozenset(name for message in messages for name in late_tools(message)) or NO_TOOLS
    return cache_with_history(messages, _LateToolNames, _LateToolNames).extend_to(messages)


class _LateToolNames:
    """The tools that have joined a growing history."""

    __slots__ = ("_count", "_names")

    def __init__(self) -> None:
        self._count = 0
        self._names = NO_TOOLS

    def extend_to(self, messages: History) -> frozenset[str]:
        """Read the new messages and return all tools that have joined."""
        fresh = [name for message in messages[self._count :] for name in late_tools(message)]
        self._count = len(messages)
        if fresh:
            self._names = self._names.union(fresh)
        return self._names


_NO_NAMES: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class EncodedTools:
    """One set of tools in a provider's format, with the translation of calls in both directions."""

    payload: bytes
    """The encoded list of definitions; empty where there are no tools."""
    key: Hashable
    """Identifies everything about the tools that the encoding of a message depends on."""
    wire: Mapping[str, str]
    own: Mapping[str, str]
    forms: Mapping[str, StrictForm]
    """The tools sent in strict mode."""
    late: Mapping[str, bytes]
    """The tools that join in the middle of the conversation, with their encoded definitions."""

    def wire_name_of(self, call: ToolCall) -> str:
        """Return the name a call is replayed under."""
        return self.wire.get(call.name) or wire_name(call.name)

    def tool_name_of(self, name: str) -> str:
        """Return the tool that a model calls by a wire name."""
        return self.own.get(name, name)

    def wire_arguments(self, call: ToolCall) -> JsonObject:
        """Return the arguments a call is replayed with, in the format the model wrote them."""
        arguments = call_arguments(call)
        form = self.forms.get(call.name)
        return arguments if form is None or "invalid_json" in arguments else form.to_wire(arguments)

    def read_call(self, call_id: str, name: str, text: str, *, cut: bool = False) -> ToolCall:
        """Read a model's call. The text stays unchanged, except for strict mode and empty arguments."""
        own, text = self.tool_name_of(name), join_halves(text)
        if not text.strip():
            return ToolCall(call_id, own, "{") if cut else ToolCall(call_id, own)  # cut off before its first argument
        form = self.forms.get(own)
        arguments = None if form is None or cut else parse_object(text)
        if form is None or arguments is None:
            return ToolCall(call_id, own, text)
        try:
            return ToolCall(call_id, own, compact(form.from_wire(arguments)))
        except RepeatedMember as error:
            return ToolCall(call_id, own, error.write_into(text))


class ToolEncoder:
    """Encodes sets of tools for one provider and caches the results.

    Args:
        provider: Identifies the provider and everything else that the encoding of a message depends on.
        shape: The format of a definition: `to_anthropic` or another function of this module.
        strict: Whether strict mode is used where it expresses the whole schema; `shape` then has `strict`.
        late: How tools join a conversation.
    """

    def __init__(
        self,
        provider: str,
        shape: Callable[..., ToolPayload],
        *,
        strict: bool = False,
        late: LateToolMode = "never",
    ) -> None:
        self._provider, self._shape = provider, shape
        self._strict = strict
        self._late: LateToolMode = late
        self._kept: IdentityCache[EncodedTools] = IdentityCache()

    def encode(self, request: ModelRequest) -> EncodedTools:
        """Encode a request's tools; returns the same object while the tools are the same."""
        # each request without any has its own empty mapping, which would miss the cache
        names = request.wire_names or _NO_NAMES
        joined = NO_TOOLS if self._late == "never" else all_late_tools(request.messages)
        return self._kept.get(request.tools, names, joined, make=lambda: self._make(request, joined))

    def _make(self, request: ModelRequest, joined: frozenset[str]) -> EncodedTools:
        wire = {spec.name: request.wire_names.get(spec.name, spec.name) for spec in request.tools}
        forms: dict[str, StrictForm] = {}
        if self._strict:
            found = {spec.name: strict_form(spec.input_schema) for spec in request.tools}
            # strict mode is used only where it expresses the whole schema; elsewhere it would reject valid calls
            forms = {name: form for name, form in found.items() if form.schema is not None and not form.notes}
        shapes: dict[str, JsonObject] = {}
        for spec in request.tools:
            strict = {"strict": True} if spec.name in forms else {}
            shapes[spec.name] = self._shape(spec, wire[spec.name], **strict).payload
        late = {
            spec.name: to_bytes(shapes[spec.name]) for spec in request.tools if spec.deferred and spec.name in joined
        }
        if len(late) == len(shapes):  # no API accepts a request in which every tool joins later
            late = {}
        everything = {**request.wire_names, **wire}
        renamed = frozenset((name, sent) for name, sent in everything.items() if name != sent)
        return EncodedTools(
            self._encode_list(shapes, late),
            (self._provider, renamed, frozenset(forms), self._dependent(late, joined)),
            everything,
            {sent: name for name, sent in everything.items()},
            forms,
            late,
        )

    def _dependent(self, late: Mapping[str, bytes], joined: frozenset[str]) -> frozenset[object]:
        """Return what the encoding of messages depends on: definitions in them, or tools they no longer refer to."""
        return frozenset(late.items()) if self._late == "by definition" else frozenset(joined - late.keys())

    def _encode_list(self, shapes: Mapping[str, JsonObject], late: Mapping[str, bytes]) -> bytes:
        if self._late == "by definition":
            shown = [shape for name, shape in shapes.items() if name not in late]
        else:
            shown = [{**shape, "defer_loading": True} if name in late else shape for name, shape in shapes.items()]
        return join_list([to_bytes(shape) for shape in shown]) if shown else b""


def finish_message(parts: Iterable[AssistantPart], stop: Stop, usage: Usage, model: object) -> AssistantMessage:
    """Build the finished message; `model` is what the server calls itself, which need not be text.

    Calls beside an ordinary end make the stop `calls`. Calls beside a refusal or an unknown stop are left out: the
    server took the message back or may not have finished it, so they must not run.
    """
    found = tuple(part if isinstance(part, ToolCall) else _make_whole(part) for part in parts)
    calls = any(isinstance(part, ToolCall) for part in found)
    if calls and stop in ("refusal", "other"):
        found = tuple(part for part in found if not isinstance(part, ToolCall))
    elif stop == "end" and calls:
        stop = "calls"
    elif stop == "calls" and not calls:  # reported without one: the message is an ordinary answer
        stop = "end"
    return AssistantMessage(found, stop, usage, str(model or ""))


def _make_whole(part: Text | Thinking) -> Text | Thinking:
    """Return a part without characters cut in halves; one whose second half never came is dropped."""
    text = join_halves(part.text)
    text = text[:-1] if text[-1:] in FIRST_HALVES else text
    return part if text == part.text else replace(part, text=text)


Fields = dict[str, bytes]


class RequestBodies:
    """Builds the request bodies of one API; everything but the conversation is cached."""

    def __init__(
        self, fields: Callable[[ModelRequest, EncodedTools], Fields], conversation: str, *, merged: Sequence[str]
    ) -> None:
        """`fields` returns all but the conversation; the request's options add to those named in `merged`."""
        self._fields = fields
        self._conversation = conversation
        self._merged = frozenset(merged)
        self._heads: IdentityCache[bytes] = IdentityCache()

    def forget(self) -> None:
        """Build the fields again for the next request: the provider changed what it sends."""
        self._heads = IdentityCache()

    def build(self, request: ModelRequest, tools: EncodedTools, conversation: Pieces) -> bytes:
        """Build the whole body; of the conversation, only what is new is copied."""
        if request.options:  # not cached: the caller may change the mapping
            return self._with_options(request, tools, conversation)
        sources = (tools, request.system, request.output_schema, request.max_tokens)
        head = self._heads.get(*sources, make=lambda: self._head(request, tools))
        return join_pieces([head, *conversation, b"}"])

    def _head(self, request: ModelRequest, tools: EncodedTools) -> bytes:
        fields = assemble(self._fields(request, tools)).removesuffix(b"}")
        return b"%s,%s:" % (fields, to_bytes(self._conversation))

    def _with_options(self, request: ModelRequest, tools: EncodedTools, conversation: Pieces) -> bytes:
        fields = merge_options(self._fields(request, tools), request.options, self._merged)
        added = {name: fields.pop(name) for name in [*fields] if name in request.options and name not in self._merged}
        return assemble({**fields, self._conversation: conversation, **added})
