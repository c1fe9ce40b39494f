"""Anthropic's stream of events as a message that grows."""

import json
from typing import Any

from callwright.core.content import Text
from callwright.core.message import AssistantMessage, AssistantPart, Stop, Thinking, Usage
from callwright.providers.anthropic_messages import PROVIDER
from callwright.providers.base import CallDelta, ModelEvent, TextDelta, ThinkingDelta
from callwright.providers.edge import Edge
from callwright.providers.encoding import kept, parsed_object
from callwright.providers.faults import broken

Event = dict[str, Any]

_STOPS: dict[str, Stop] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "tool_use": "calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
    "pause_turn": "paused",
}
_GROWING = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}
_COUNTS = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


class AnthropicDraft:
    """The message so far."""

    def __init__(self, edge: Edge) -> None:
        self._edge = edge
        self._blocks: dict[int, Event] = {}
        self._model = ""
        self._reason: str | None = None
        self._counts: dict[str, int] = {}
        self._finished = False

    def take(self, event: Event) -> list[ModelEvent]:
        """Take in one event; say what of it is news."""
        match event.get("type"):
            case "message_start":
                self._model = event["message"].get("model", "")
                self._count(event["message"].get("usage"))
            case "content_block_start":
                return self._started(event["index"], event["content_block"])
            case "content_block_delta":
                return self._grown(event["index"], event["delta"])
            case "message_delta":
                self._reason = event["delta"].get("stop_reason") or self._reason
                self._count(event.get("usage"))
            case "message_stop":
                self._finished = True
            case _:  # pings, and kinds that are not there yet
                pass
        return []

    def message(self) -> AssistantMessage:
        """The whole message; raises if the stream ended without saying so."""
        if not self._finished or self._reason is None:
            raise broken("it ended before the message did")
        parts = tuple(self._part(block) for _, block in sorted(self._blocks.items()))
        counts = [self._counts.get(name, 0) for name in _COUNTS]
        return AssistantMessage(parts, _STOPS.get(self._reason, "other"), Usage(*counts), self._model)

    def _count(self, usage: Event | None) -> None:
        for name in _COUNTS:  # each report is of the whole request so far
            value = (usage or {}).get(name)
            if value is not None:
                self._counts[name] = value

    def _started(self, index: int, block: Event) -> list[ModelEvent]:
        self._blocks[index] = {**block, "_json": ""}
        if block.get("type") == "tool_use":
            return [CallDelta(block["id"], self._edge.inward_name(block["name"]), "")]
        if block.get("type") == "text" and block.get("text"):
            return [TextDelta(block["text"])]
        return []

    def _grown(self, index: int, delta: Event) -> list[ModelEvent]:
        block, kind = self._blocks[index], delta.get("type", "")
        if kind == "input_json_delta":
            block["_json"] += delta["partial_json"]
            if block.get("type") == "tool_use" and delta["partial_json"]:
                return [CallDelta(block["id"], self._edge.inward_name(block["name"]), delta["partial_json"])]
        elif kind in _GROWING:
            field = _GROWING[kind]
            block[field] = (block.get(field) or "") + delta[field]
            if kind != "signature_delta" and delta[field]:
                return [TextDelta(delta[field]) if kind == "text_delta" else ThinkingDelta(delta[field])]
        elif kind == "citations_delta":
            block["citations"] = [*(block.get("citations") or ()), delta["citation"]]
        return []

    def _part(self, block: Event) -> AssistantPart:
        text: str = block.pop("_json")
        match block.get("type"):
            case "text":
                return Text(block["text"])
            case "tool_use":
                written = text or (json.dumps(block["input"]) if block.get("input") else "")
                return self._edge.inward(block["id"], block["name"], written, cut=self._is_cut(block))
            case "thinking":
                signature = block.get("signature", "")
                return Thinking(block.get("thinking", ""), kept(PROVIDER, {"type": "thinking", "signature": signature}))
            case _:  # redacted thoughts, and tools the API runs itself: handed back as they are
                if text:
                    block["input"] = parsed_object(text) or {}
                return Thinking("", kept(PROVIDER, block))

    def _is_cut(self, block: Event) -> bool:
        last = self._blocks[max(self._blocks)]
        return block is last and _STOPS.get(self._reason or "") == "length"
