"""The stream of a chat completion as a message that grows."""

import json
from dataclasses import dataclass
from secrets import token_hex
from typing import Any

from callwright.core.content import Text
from callwright.core.message import AssistantMessage, AssistantPart, Stop, Thinking, Usage
from callwright.providers.base import CallDelta, ModelEvent, TextDelta, ThinkingDelta
from callwright.providers.edge import Edge, stop_for
from callwright.providers.encoding import kept, nested
from callwright.providers.faults import broken
from callwright.providers.openai_chat_messages import PROVIDER
from callwright.providers.openai_client import openai_usage

Chunk = dict[str, Any]

_STOPS: dict[str, Stop] = {
    "stop": "end",
    "tool_calls": "calls",
    "function_call": "calls",
    "length": "length",
    "content_filter": "refusal",
}
_REASONING = ("reasoning_content", "reasoning")
"""What servers call thoughts; the standard has no word for them."""


@dataclass(slots=True)
class _Call:
    id: str
    name: str
    text: str = ""


class ChatDraft:
    """The message so far."""

    def __init__(self, edge: Edge) -> None:
        self._edge = edge
        self._thoughts: dict[str, str] = {}
        self._text = ""
        self._refused = False
        self._calls: dict[object, _Call] = {}
        self._model = ""
        self._reason: str | None = None
        self._usage = Usage()

    def take(self, chunk: Chunk) -> list[ModelEvent]:
        """Take in one chunk; say what of it is news."""
        self._model = chunk.get("model") or self._model
        if chunk.get("usage"):
            self._usage = openai_usage(chunk["usage"], "prompt", "completion")
        news: list[ModelEvent] = []
        for choice in (chunk.get("choices") or ())[:1]:
            news = self._grown(nested(choice, "delta"))
            self._reason = choice.get("finish_reason") or self._reason
        return news

    def message(self) -> AssistantMessage:
        """The whole message; raises if the stream ended without saying so."""
        if self._reason is None:
            raise broken("it ended before the message did")
        stop: Stop = "refusal" if self._refused else _STOPS.get(self._reason, "other")
        parts: list[AssistantPart] = [Thinking(text, kept(PROVIDER, name)) for name, text in self._thoughts.items()]
        if self._text:
            parts.append(Text(self._text))
        calls = list(self._calls.values())
        for call in calls:
            cut = stop == "length" and call is calls[-1]
            parts.append(self._edge.inward(call.id, call.name, call.text, cut=cut))
        return AssistantMessage(tuple(parts), stop_for(stop, tuple(parts)), self._usage, self._model)

    def _grown(self, delta: Chunk) -> list[ModelEvent]:
        news: list[ModelEvent] = []
        for name in _REASONING:
            if delta.get(name):
                self._thoughts[name] = self._thoughts.get(name, "") + delta[name]
                news.append(ThinkingDelta(delta[name]))
                break
        self._refused = self._refused or bool(delta.get("refusal"))
        text = delta.get("content") or delta.get("refusal")
        if text:
            self._text += text
            news.append(TextDelta(text))
        news += [self._called(piece) for piece in delta.get("tool_calls") or ()]
        return news

    def _called(self, piece: Chunk) -> ModelEvent:
        function = nested(piece, "function")
        call = self._open_call(piece, function)
        text = function.get("arguments") or ""
        if not isinstance(text, str):  # some servers send the object itself
            text = json.dumps(text)
        call.text += text
        return CallDelta(call.id, self._edge.inward_name(call.name), text)

    def _open_call(self, piece: Chunk, function: Chunk) -> _Call:
        """Find the call a piece belongs to. Some servers number all calls 0, some none; a new id is a new call."""
        key: object = piece.get("index")
        known = self._calls.get(key) if key is not None else None
        fresh = piece.get("id")
        if known is not None and (not fresh or fresh == known.id):
            return known
        if known is None and not fresh and not function.get("name") and self._calls:
            return list(self._calls.values())[-1]
        if known is not None or key is None:
            key = (key, fresh or token_hex(8))
            if key in self._calls:
                return self._calls[key]
        call = self._calls[key] = _Call(fresh or f"call_{token_hex(8)}", function.get("name") or "")
        return call
