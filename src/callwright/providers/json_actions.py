"""Tool calls as JSON actions, for models and servers without tool calling that can enforce an output schema.

The tools are described in the system prompt, and every answer must be one object: a call of one of them, or the final
answer.
"""

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from secrets import token_hex
from typing import Any, cast

from callwright.core.calls import Completed, Failed, ToolCall
from callwright.core.content import Part, Text
from callwright.core.json import FrozenDict, Json, JsonObject, compact, freeze
from callwright.core.messages import (
    AssistantMessage,
    History,
    Message,
    Thinking,
    ToolMessage,
    UserMessage,
)
from callwright.core.spec import ToolSpec
from callwright.providers.base import (
    CallDelta,
    MessageDone,
    ModelEvent,
    ModelRequest,
    Provider,
    ProviderError,
    ProviderWrapper,
    TextDelta,
    ThinkingDelta,
    closing_events,
)
from callwright.providers.encoding import IdentityCache, call_arguments, parse_cut_object, parse_object
from callwright.providers.schemas.inspect import make_closed_object
from callwright.repairs.lenient_json import NotJson, read_lenient
from callwright.repairs.names import repair_name
from callwright.repairs.prose_calls import find_call_in_prose, find_unknown_call
from callwright.repairs.text_calls import join_arguments, read_text_calls


def action_schema(tools: Sequence[ToolSpec], answer: JsonObject | None = None) -> JsonObject:
    """Build the schema of one action: a call or several, or an answer, which is text without a schema."""
    definitions: dict[str, Json] = {}
    choices: list[Json] = []
    for number, spec in enumerate(tools):
        arguments = _place(spec.input_schema, f"tool{number}", definitions)
        choices.append(make_closed_object({"tool": {"const": spec.name}, "arguments": arguments}))
    shape: Json = {"type": "string"} if answer is None else _place(answer, "answer", definitions)
    definitions["call"] = {"anyOf": choices}
    several: Json = {"type": "array", "items": {"$ref": "#/$defs/call"}, "minItems": 1}
    actions: list[Json] = [
        {"$ref": "#/$defs/call"},
        make_closed_object({"calls": several}),
        make_closed_object({"answer": shape}),
    ]
    return freeze({"anyOf": actions, "$defs": definitions})


def _place(schema: JsonObject, name: str, definitions: dict[str, Json]) -> Json:
    """Embed a schema in another. One with references moves to `$defs`, and its references with it."""
    moved = _move(schema, f"#/$defs/{name}")
    if moved == schema:
        return schema
    definitions[name] = moved
    return {"$ref": f"#/$defs/{name}"}


def _move(value: Json, root: str) -> Json:
    if isinstance(value, Mapping):
        return {key: _move_reference(part, root) if key == "$ref" else _move(part, root) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_move(part, root) for part in cast("Sequence[Any]", value)]
    return value


def _move_reference(reference: Json, root: str) -> Json:
    if isinstance(reference, str) and reference.startswith("#"):
        return root + reference[1:]
    return _move(reference, root)  # a property of that name


_PROMPT = """\
You can use tools. Answer with one JSON object and nothing else. To use a tool:
{{"tool": "<name>", "arguments": {{…}}}}
To use several that do not depend on each other:
{{"calls": [{{"tool": "<name>", "arguments": {{…}}}}, …]}}
To give your final answer, when you need no tool or have what you need:
{{"answer": …}}
The tools:
{tools}"""
_CANNOT = re.compile(
    r"tool.{0,60}(?:not support|unsupported|require)|(?:not support|unsupported).{0,60}tool", re.IGNORECASE | re.DOTALL
)
"""Errors of servers without tool calling: Ollama, llama.cpp without templates, vLLM without a parser."""


class SchemaActions(ProviderWrapper):
    """A provider whose model calls tools by answering with JSON.

    Args:
        provider: A provider that enforces `ModelRequest.output_schema`.
    """

    def __init__(self, provider: Provider) -> None:
        super().__init__(provider)
        self._prompts: IdentityCache[tuple[str, JsonObject]] = IdentityCache()
        self._mirrors: IdentityCache[History] = IdentityCache()

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Send the request; raises `ProviderError`. Text comes in one event, once it is known not to be a call."""
        sent = self._rewrite(request) if request.tools else request
        async with closing_events(self._inner.stream(sent)) as events:
            async for event in events:
                if not request.tools or isinstance(event, ThinkingDelta):
                    yield event
                elif isinstance(event, MessageDone):
                    message = _read_action(event.message, request.tools, free=request.output_schema is None)
                    for delta in _deltas(message):
                        yield delta
                    yield MessageDone(message)

    def _rewrite(self, request: ModelRequest) -> ModelRequest:
        prompt, schema = self._prompts.get(request.tools, request.output_schema, make=lambda: _instructions(request))
        return replace(
            request,
            messages=self._spell_out_messages(request.messages, request.tools),
            system=f"{request.system}\n\n{prompt}" if request.system else prompt,
            tools=(),
            wire_names=FrozenDict(),
            output_schema=schema,
        )

    def _spell_out_messages(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Sequence[Message]:
        """Rewrite each message once, into a mirror history, so that the provider can cache its encoding too."""
        if not isinstance(messages, History):
            return [_spell_out(message, tools) for message in messages]
        mirror = self._mirrors.get(messages, make=History)
        for message in messages[len(mirror) :]:
            mirror.append(_spell_out(message, tools))
        return mirror


class AdaptiveTools(ProviderWrapper):
    """Uses a provider's own tool calling, or `SchemaActions` once the server says that it has none.

    Args:
        provider: The provider to use.
        calls_tools: Awaited once, before the first tool is sent: some servers drop tools without an error.
    """

    def __init__(self, provider: Provider, calls_tools: Callable[[], Awaitable[bool | None]] | None = None) -> None:
        super().__init__(provider)
        self._schema = SchemaActions(provider)
        self._chosen: Provider = provider
        self._calls_tools = calls_tools

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Send the request; raises `ProviderError`."""
        if self._calls_tools is not None and request.tools:
            able, self._calls_tools = await self._calls_tools(), None  # asked only once
            self._chosen = self._schema if able is False else self._chosen
        started = False
        try:
            async with closing_events(self._chosen.stream(request)) as events:
                async for event in events:
                    started = True
                    yield event
        except ProviderError as error:
            if started or not request.tools or self._chosen is self._schema or not _CANNOT.search(str(error)):
                raise
            self._chosen = self._schema
        else:
            return
        async with closing_events(self._chosen.stream(request)) as events:
            async for event in events:
                yield event

    def use_schema(self) -> None:
        """Use `SchemaActions` from now on: the model writes its calls as text."""
        self._chosen = self._schema


def _instructions(request: ModelRequest) -> tuple[str, JsonObject]:
    lines = [f"- {spec.name}: {spec.description} Arguments: {compact(spec.input_schema)}" for spec in request.tools]
    return _PROMPT.format(tools="\n".join(lines)), action_schema(request.tools, request.output_schema)


def _spell_out(message: Message, tools: Sequence[ToolSpec]) -> Message:
    """Rewrite a message for a model without tool calling."""
    if isinstance(message, ToolMessage):
        return UserMessage(tuple(part for outcome in message.outcomes for part in _describe_outcome(outcome)))
    if isinstance(message, AssistantMessage):
        return replace(message, parts=(Text(compact(_to_action(message, tools))),))
    return message


def _describe_outcome(outcome: Completed | Failed) -> list[Part]:
    if isinstance(outcome, Failed):
        return [Text(f"{outcome.call.name} failed: {outcome.text}")]
    shown = [part for part in outcome.output.parts if not isinstance(part, Text)]
    return [Text(f"{outcome.call.name} gave: {outcome.text}"), *shown]


def _to_action(message: AssistantMessage, tools: Sequence[ToolSpec]) -> JsonObject:
    actions: list[Json] = [{"tool": call.name, "arguments": call_arguments(call)} for call in message.calls]
    if not actions:
        # models repeat what they read: a call that could not be read must not look like an answer
        attempted = find_call_in_prose(message.text, _spellings(tools)) or find_unknown_call(message.text)
        if attempted is None:
            return {"answer": message.text}
        actions = [{"tool": attempted, "arguments": {}}]
    return cast("JsonObject", actions[0]) if len(actions) == 1 else {"calls": actions}


def _spellings(tools: Sequence[ToolSpec]) -> dict[str, str]:
    return {spelling: spec.name for spec in tools for spelling in (*spec.aliases, spec.name)}


_KEYS = ("tool", "arguments", "calls", "answer")
_LISTS = ("tool_calls", "tools", "actions")
"""Other names that models give to `calls`."""
_ANSWERS = ("answer", "final_answer", "finalanswer", "final", "respond", "response")
_NO_TOOL = ("", "none", "null")
_SAYS_NOTHING = ("thought", "reasoning", "tool", "arguments", "calls", "answer")


def _read_action(message: AssistantMessage, tools: Sequence[ToolSpec], *, free: bool = True) -> AssistantMessage:
    """Read an answer as calls or as text; anything else stays unchanged.

    Args:
        message: What the model sent.
        tools: The tools it may call.
        free: Whether the answer is text; one with a schema may be null or empty.
    """
    thoughts = tuple(part for part in message.parts if isinstance(part, Thinking))
    # after a refusal or an unknown stop the server took the message back, or may not have finished it
    value = _NOT_JSON if message.stop in ("refusal", "other") else _parse_action(message.text)
    if free and message.stop != "length" and _is_empty(value):
        return replace(message, parts=thoughts)
    cut = value is _NOT_JSON and message.stop == "length"
    if cut:
        value = parse_cut_object(_FENCE.sub("", message.text, count=1))
    if not isinstance(value, dict):
        return message
    action = _spell_keys(cast("dict[str, Any]", value))
    listed: Any = action.get("calls")
    entries = cast(
        "list[Any]", listed if isinstance(listed, list) else [listed if isinstance(listed, dict) else action]
    )
    spellings = _spellings(tools)
    answer = _find_answer(action, spellings)
    calls = [_to_call(entry, spellings) for entry in entries] if answer is None else []
    if calls and None not in calls:
        found = [call for call in calls if call is not None]
        if cut:  # what was made of it is not what the model sent: arguments that cannot be read never run
            written = str(found[-1].arguments)
            found[-1] = replace(found[-1], arguments=written[:-1] if written.startswith("{") else f"{{{written}")
        return replace(message, parts=(*thoughts, *found), stop="calls" if message.stop == "end" else message.stop)
    if answer is None and "answer" not in action:
        return message
    answer = action["answer"] if answer is None else answer
    if cut and not (free and isinstance(answer, str)):
        return message
    return replace(message, parts=(*thoughts, Text(answer if isinstance(answer, str) else compact(answer))))


_NOT_JSON = object()
_FENCE = re.compile(r"\A\s*```\w*\s*")


def _parse_action(text: str) -> object:
    """Return the value of an answer; servers that do not enforce the schema leave mistakes in it."""
    action = parse_object(text)
    if action is not None:
        return action
    try:
        return read_lenient(text)
    except NotJson:
        return _NOT_JSON


def _is_empty(value: object) -> bool:
    """Whether an action has neither a call nor an answer: null, {}, or an object with thoughts alone."""
    if isinstance(value, dict):
        action = _spell_keys(cast("dict[str, Any]", value))
        filled = {key for key, part in action.items() if part not in (None, "", [], {})}
        return set(action) <= {*_SAYS_NOTHING} and filled <= {"thought", "reasoning"}
    return value in (None, "", [])


def _spell_keys(action: dict[str, Any]) -> dict[str, Any]:
    """Return an action with its own keys in lower case, and its calls under their name."""
    spelt = {key.lower() if key.lower() in _KEYS else key: part for key, part in action.items()}
    other = [key for key in _LISTS if isinstance(spelt.get(key), list)]
    if len(spelt) == 1 and other:
        return {"calls": spelt[other[0]]}
    return spelt if len(spelt) == len(action) else action


def _find_answer(action: dict[str, Any], spellings: Mapping[str, str]) -> Any:
    """Return the answer of an action that is written like a call: `{"tool": "answer", "arguments": {"text": …}}`."""
    name = action.get("tool")
    if not isinstance(name, str) or repair_name(name, spellings) is not None:
        return None
    if action.get("answer") is not None:
        return action["answer"] if name.lower() in (*_ANSWERS, *_NO_TOOL) else None
    if name.lower() not in _ANSWERS:
        return None
    given = [part for key, part in action.items() if key != "tool" and part is not None]
    while len(given) == 1 and isinstance(given[0], dict):
        given = list(cast("dict[str, Any]", given[0]).values())
    return given[0] if len(given) == 1 else None


def _to_call(entry: Any, spellings: Mapping[str, str]) -> ToolCall | None:
    """Return a call: with an object, with text or with the arguments beside the name."""
    if not isinstance(entry, dict):
        return None
    action = _spell_keys(cast("dict[str, Any]", entry))
    name = action.get("tool")
    if isinstance(name, dict) and len(action) == 1:  # {"tool": {"name": …, "arguments": …}}
        action, name = cast("dict[str, Any]", name), None
    if not isinstance(name, str):
        read = read_text_calls(compact(action), spellings) if "answer" not in action else None
        return ToolCall(f"call_{token_hex(8)}", read[0].name, read[0].arguments) if read and len(read) == 1 else None
    beside = {key: part for key, part in action.items() if key not in ("tool", "arguments")}
    if "arguments" in action and beside.get("answer") in (None, ""):  # the other half of the form, left empty
        beside.pop("answer", None)
    written = join_arguments([action.get("arguments")], beside)
    if written is None:
        return None
    return ToolCall(f"call_{token_hex(8)}", repair_name(name, spellings) or name, written)


def _deltas(message: AssistantMessage) -> list[ModelEvent]:
    calls: list[ModelEvent] = [CallDelta(call.id, call.name, str(call.arguments)) for call in message.calls]
    return calls if calls or not message.text else [TextDelta(message.text)]
