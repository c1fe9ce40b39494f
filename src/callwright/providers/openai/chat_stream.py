"""Reading of Chat Completions responses: the standard, and the deviations of compatible servers."""

import json
import re
from dataclasses import dataclass, field
from secrets import token_hex
from typing import Any, Literal, cast

from callwright.core.content import Text
from callwright.core.messages import AssistantMessage, AssistantPart, Stop, Thinking, Usage
from callwright.providers.base import CallDelta, ModelEvent, TextDelta, ThinkingDelta
from callwright.providers.encoding import get_object, parse_object, wrap_opaque
from callwright.providers.errors import broken_stream, context_is_full, status_failure
from callwright.providers.openai.client import STREAM_ENDED, openai_usage
from callwright.providers.tool_encoding import EncodedTools, finish_message

Chunk = dict[str, Any]

PROVIDER = "openai_chat"
_STOPS: dict[str, Stop] = {
    "stop": "end",
    "eos": "end",
    "eos_token": "end",
    "stop_sequence": "end",
    "end_turn": "end",
    "complete": "end",
    "completed": "end",
    "tool_calls": "calls",
    "tool_call": "calls",
    "tool_use": "calls",
    "function_call": "calls",
    "length": "length",
    "max_tokens": "length",
    "max_length": "length",
    "content_filter": "refusal",
    "safety": "refusal",
    "refusal": "refusal",
    "recitation": "refusal",
    "sensitive": "refusal",
}
_CONTEXT_FULL = ("model_length", "model_context_window_exceeded", "context_length_exceeded")
_FAILED = ("error", "network_error", "insufficient_system_resource", "abort", "aborted", "cancelled")
_REASONING = ("reasoning_content", "reasoning")
"""Field names for reasoning; the standard has none."""
_GROWING = ("text", "summary", "data", "signature")
_IMAGE_TYPE = re.compile(r"data:(image/[a-z0-9.+-]{1,40})[;,]")
_OPEN = "<think>"
_CLOSE = "</think>"


@dataclass(slots=True)
class _Call:
    """A call under construction."""

    id: str
    index: object
    ids: set[str]
    """Every id the server gave it; some change it with each piece."""
    name: str = ""
    text: str = ""
    extra: Chunk = field(default_factory=dict[str, Any])
    unsent: str = ""
    """Text that was not passed on yet, because the name was not complete."""
    following: tuple[str, str] | None = None
    """The id and name of a call that was announced under the same index, and begins with its first text."""

    @property
    def complete(self) -> bool:
        """Whether the arguments are a whole object."""
        return parse_object(self.text) is not None


class ChatDraft:
    """A message under construction from chat completion chunks.

    Args:
        tools: The tools that were sent.
        tag: Identifies the server and model that the opaque parts of the answer are for.
    """

    def __init__(self, tools: EncodedTools, tag: str = "") -> None:
        self._tools = tools
        self._tag = tag
        self._thoughts: dict[str, str] = {}
        self._details: list[Chunk] = []
        self._think = _ThinkTags()
        self._text = ""
        self._refused = False
        self._calls: list[_Call] = []
        self._model = ""
        self._reason: str | None = None
        self.ended = False
        self._usage = Usage()
        self._choice: object = None

    def take(self, chunk: Any) -> list[ModelEvent]:
        """Add one chunk, or a whole unstreamed response, and return the model events it causes."""
        if chunk is STREAM_ENDED:
            self.ended = True
            return self._add_text(self._think.flush())
        if not isinstance(chunk, dict):
            return []
        found = cast("Chunk", chunk)
        if found.get("object") == "error" or ("choices" not in found and "message" in found):  # vLLM, in a good stream
            raise status_failure(200, found, {})
        self._model = str(found.get("model") or self._model)
        if get_object(found, "usage"):
            self._usage = openai_usage(found["usage"], "prompt", "completion")
        events: list[ModelEvent] = []
        for choice in self._own_choice(found.get("choices")):
            events = self._add_delta(get_object(choice, "delta") or get_object(choice, "message"))
            if choice.get("finish_reason"):
                self._reason = choice["finish_reason"]
                events += self._add_text(self._think.flush())
        return events

    def _own_choice(self, choices: Any) -> list[Chunk]:
        """Return the choice that the message is made of; of several, the one that came first."""
        listed = cast("list[Any]", choices) if isinstance(choices, list) else []
        found = [cast("Chunk", each) for each in listed if isinstance(each, dict)]
        if found and self._choice is None:
            self._choice = min(str(each.get("index") or 0) for each in found)
        return [each for each in found if str(each.get("index") or 0) == self._choice][:1]

    def message(self) -> AssistantMessage:
        """Return the finished message; raises `ProviderError` if the stream ended early."""
        stop = self._stop()
        self._split_unopened_thought()
        parts: list[AssistantPart] = []
        if self._think.thought:
            parts.append(Thinking(self._think.thought))  # in the text, so the server does not want it back
        if self._details:
            shown = "".join(self._thoughts.values())
            parts.append(Thinking(shown, self._opaque({"reasoning_details": self._details})))
        else:
            parts += [Thinking(text, self._opaque({"field": name})) for name, text in self._thoughts.items()]
        if self._text:
            parts.append(Text(self._text))
        for call in self._calls:
            if not call.name:
                raise broken_stream("a call has no name")
            if call.extra:
                parts.append(Thinking("", self._opaque({"extra_content": call.extra})))
            cut = stop == "length" and (call is self._calls[-1] or not call.text.strip())
            parts.append(self._tools.read_call(call.id, call.name, call.text, cut=cut))
        return finish_message(parts, stop, self._usage, self._model)

    def _split_unopened_thought(self) -> None:
        """Take out thinking that a chat template opened in the prompt, so that only its end is in the text."""
        thought, closed, rest = self._text.partition(_CLOSE)
        if closed and rest[:1] in ("", "\n") and _OPEN not in thought and "`" not in thought[-1:]:
            self._think.thought += thought.strip("\n")
            self._text = rest.lstrip("\n")

    def _opaque(self, value: Chunk) -> Any:
        return wrap_opaque(PROVIDER, {**value, "for": self._tag})

    def _stop(self) -> Stop:
        if self._reason is None:
            # the end marker says that nothing is missing, unless a call is visibly cut off
            whole = self.ended and (self._text or self._calls) and all(call.complete for call in self._calls)
            if not whole:
                raise broken_stream("it ended before the message was complete")
            return "refusal" if self._refused else "end"
        reason = str(self._reason).lower()
        if reason in _CONTEXT_FULL:
            raise context_is_full(reason)
        if reason in _FAILED:
            raise broken_stream(f"the model stopped with {reason}")
        return "refusal" if self._refused else _STOPS.get(reason, "other")

    def _add_delta(self, delta: Chunk) -> list[ModelEvent]:
        events: list[ModelEvent] = []
        for name in _REASONING:
            if isinstance(delta.get(name), str) and delta[name]:
                self._thoughts[name] = self._thoughts.get(name, "") + delta[name]
                events.append(ThinkingDelta(delta[name]))
                break
        for detail in delta.get("reasoning_details") or ():
            if isinstance(detail, dict):
                self._add_detail(cast("Chunk", detail))
        self._refused = self._refused or bool(delta.get("refusal"))
        events += self._add_content(delta.get("content") or delta.get("refusal"))
        if isinstance(delta.get("images"), list):  # as OpenRouter sends what a model has drawn
            events += self._add_content(delta["images"])
        named_before = False
        for piece in _call_pieces(delta):
            if isinstance(piece, dict):
                events += self._extend_call(cast("Chunk", piece), beside=named_before)
                named_before = True
        return events

    def _add_content(self, content: Any) -> list[ModelEvent]:
        if isinstance(content, str):
            return self._add_text(self._think.split(content))
        events: list[ModelEvent] = []
        for part in cast("list[Any]", content if isinstance(content, list) else [content]):
            if isinstance(part, str):
                events += self._add_text([(part, False)])
            elif isinstance(part, dict):
                kind, inner = cast("Chunk", part).get("type"), cast("Chunk", part)
                thought = kind in ("thinking", "reasoning")
                events += self._add_text([(_text_in(inner), thought)])
        return events

    def _add_text(self, pieces: list[tuple[str, bool]]) -> list[ModelEvent]:
        events: list[ModelEvent] = []
        for text, thought in pieces:
            if text and thought:
                self._think.thought += text
                events.append(ThinkingDelta(text))
            elif text:
                self._text += text
                events.append(TextDelta(text))
        return events

    def _add_detail(self, detail: Chunk) -> None:
        """Join a piece of OpenRouter's reasoning details to the one of its index and type."""
        key = (detail.get("index"), detail.get("type"))
        last = next((each for each in self._details if (each.get("index"), each.get("type")) == key), None)
        if last is None or (key[0] is None and last is not self._details[-1]):
            self._details.append(dict(detail))
            return
        for name, value in detail.items():
            if name in _GROWING and isinstance(value, str) and isinstance(last.get(name), str):
                last[name] += value
            elif value is not None:
                last[name] = value

    def _extend_call(self, piece: Chunk, *, beside: bool) -> list[ModelEvent]:
        function = get_object(piece, "function")
        name = function.get("name") if isinstance(function.get("name"), str) else ""
        text = function.get("arguments")
        if text is not None and not isinstance(text, str):  # some servers send the object itself
            text = json.dumps(text)
        fresh = str(piece["id"]) if piece.get("id") else ""
        call = self._find_call(piece.get("index"), fresh, name or "", text or "", beside=beside)
        if call.following is None or call.following[0] != fresh:  # a piece with its id begins the next call
            call.ids.add(fresh)
        if name and name != call.name:
            whole = name.startswith(call.name) and name in self._tools.own  # sent from its beginning each time
            call.name = name if whole else call.name + name
        call.text += text or ""
        call.unsent += text or ""
        call.extra |= get_object(piece, "extra_content")
        return self._emit_call(call)

    def _emit_call(self, call: _Call) -> list[ModelEvent]:
        if not call.name or (not call.unsent and call.name not in self._tools.own):  # the name may still grow
            return []
        text, call.unsent = call.unsent, ""
        return [CallDelta(call.id, self._tools.tool_name_of(call.name), text)]

    def _find_call(self, index: object, fresh: str, name: str, text: str, *, beside: bool) -> _Call:
        """Find the call a piece belongs to, or open one.

        Pieces are joined by index, and without one to the call before. Some servers number all calls alike or change
        the id with every piece, so a new call needs a name, and a call before it that is whole: a call that was split
        in two would run with arguments the model did not send.
        """
        same = [call for call in self._calls if index is None or call.index == index]
        known = next((call for call in same if fresh and fresh in call.ids), None)
        if known is not None and not (beside and index is None):
            return known
        last = same[-1] if same else None
        if last is None and not name and self._calls and self._calls[-1].index is None:  # numbered only from here on
            last = self._calls[-1]
            last.index = index
        if last is not None and last.following is not None and text and not name:
            fresh, begun = last.following
            self._calls.append(_Call(fresh, index, {fresh}, begun))
            return self._calls[-1]
        if last is None or (name and self._starts_call(last, fresh, name, text, beside=beside and index is None)):
            last = _Call(fresh or f"call_{token_hex(8)}", index, set())
            self._calls.append(last)
        elif name and fresh and last.complete:
            last.following = (fresh, name)
        return last

    def _starts_call(self, last: _Call, fresh: str, name: str, text: str, *, beside: bool) -> bool:
        names = self._tools.own
        if beside or (name != last.name and name in names and last.name in names):
            return True
        if fresh and fresh in last.ids:
            return False
        return bool(text) and last.complete


def _call_pieces(delta: Chunk) -> list[Any]:
    """Return the pieces of calls in a delta: a list, a lone one, or the field that came before `tool_calls`."""
    found: Any = delta.get("tool_calls") or []
    pieces = cast("list[Any]", found if isinstance(found, list) else [found])
    old = get_object(delta, "function_call")
    return [*pieces, {"function": old}] if old else pieces


def _text_in(part: Chunk) -> str:
    """Return the text of a content part, of an image a description; Mistral nests that of its thinking."""
    if part.get("type") == "image_url":
        return f"[an image: {_find_image_type(get_object(part, 'image_url').get('url'))}, which cannot be shown here]"
    found = part.get("text") or part.get("thinking") or part.get("reasoning") or ""
    if isinstance(found, list):
        return "".join(_text_in(cast("Chunk", each)) for each in cast("list[Any]", found) if isinstance(each, dict))
    return found if isinstance(found, str) else ""


def _find_image_type(url: object) -> str:
    found = _IMAGE_TYPE.match(url) if isinstance(url, str) else None
    return found[1] if found else "of unknown type"


class _ThinkTags:
    """Separates `<think>…</think>` at the beginning of a text, where servers do not do it themselves."""

    def __init__(self) -> None:
        self.thought = ""
        self._state: Literal["begin", "think", "text"] = "begin"
        self._held: str = ""
        self._begins = False
        """Whether line breaks are dropped, as they are after each tag."""

    def split(self, text: str) -> list[tuple[str, bool]]:
        """Return the pieces of the text and whether each is thinking; what may become a tag is held back."""
        if self._state == "text":
            return [(self._trim(text), False)]
        held, self._held = self._held + text, ""
        if self._state == "begin":
            start = held.lstrip()
            if len(start) < len(_OPEN) and _OPEN.startswith(start):
                self._held = held
                return []
            if not start.startswith(_OPEN):
                self._state = "text"
                return [(held, False)]
            self._state, self._begins, held = "think", True, start[len(_OPEN) :]
        held = self._trim(held)
        thought, closed, rest = held.partition(_CLOSE)
        if closed:
            self._state, self._begins = "text", True
            return [(thought, True), (self._trim(rest), False)]
        kept = next((size for size in range(len(_CLOSE) - 1, 0, -1) if held.endswith(_CLOSE[:size])), 0)
        self._held = held[len(held) - kept :] if kept else ""
        return [(held[: len(held) - kept], True)]

    def _trim(self, text: str) -> str:
        text = text.lstrip("\n") if self._begins else text
        self._begins = self._begins and not text
        return text

    def flush(self) -> list[tuple[str, bool]]:
        """Return what was held back when the text ends."""
        held, self._held = self._held, ""
        return [(held, self._state == "think")] if held else []
