"""Gemini's stream of chunks as a message that grows."""

from base64 import b64encode
from dataclasses import dataclass
from secrets import token_hex
from typing import TYPE_CHECKING

from callwright.core.call import ToolCall
from callwright.core.content import Text
from callwright.core.json import compact
from callwright.core.message import AssistantMessage, AssistantPart, Stop, Thinking, Usage
from callwright.providers.base import CallDelta, ModelEvent, TextDelta, ThinkingDelta
from callwright.providers.edge import Edge, stop_for
from callwright.providers.encoding import kept
from callwright.providers.faults import broken
from callwright.providers.google_messages import PROVIDER

if TYPE_CHECKING:
    from google.genai import types

_STOPS: dict[str, Stop] = {"STOP": "end", "MAX_TOKENS": "length", "CONTINUATION": "paused"}
_REFUSALS = frozenset(("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE"))
_MALFORMED = frozenset(("MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL"))


@dataclass(slots=True)
class _Stretch:
    """Text or thought that may still grow; a signature closes it."""

    text: str
    thought: bool
    signature: bytes | None


class GoogleDraft:
    """The message so far."""

    def __init__(self, edge: Edge) -> None:
        self._edge = edge
        self._parts: list[_Stretch | tuple[ToolCall, bytes | None]] = []
        self._model = ""
        self._reason: str | None = None
        self._usage = Usage()

    def take(self, chunk: "types.GenerateContentResponse") -> list[ModelEvent]:
        """Take in one chunk; say what of it is news."""
        self._model = chunk.model_version or self._model
        if chunk.usage_metadata is not None:
            self._usage = _usage(chunk.usage_metadata)
        if chunk.prompt_feedback is not None and chunk.prompt_feedback.block_reason is not None:
            self._reason = "SAFETY"
        news: list[ModelEvent] = []
        for candidate in (chunk.candidates or ())[:1]:
            parts = (candidate.content.parts if candidate.content is not None else None) or ()
            news += [event for part in parts if (event := self._grown(part)) is not None]
            if candidate.finish_reason is not None:
                self._reason = candidate.finish_reason.value
        return news

    def message(self) -> AssistantMessage:
        """The whole message; raises if the stream ended without saying so."""
        if self._reason is None:
            raise broken("it ended before the message did")
        if self._reason in _MALFORMED:  # a slip of the model's pen, not part of the conversation
            raise broken(f"the model stopped with {self._reason}")
        parts = tuple(part for grown in self._parts for part in _finished(grown))
        stop: Stop = "refusal" if self._reason in _REFUSALS else _STOPS.get(self._reason, "other")
        return AssistantMessage(parts, stop_for(stop, parts), self._usage, self._model)

    def _grown(self, part: "types.Part") -> ModelEvent | None:
        signature = part.thought_signature
        if part.function_call is not None:
            call = self._call(part.function_call)
            self._parts.append((call, signature))
            return CallDelta(call.id, call.name, call.arguments if isinstance(call.arguments, str) else "{}")
        if part.text is None:
            return None
        thought = bool(part.thought)
        last = self._parts[-1] if self._parts else None
        if isinstance(last, _Stretch) and last.thought == thought and last.signature is None:
            last.text += part.text
            last.signature = signature
        else:
            self._parts.append(_Stretch(part.text, thought, signature))
        if not part.text:
            return None
        return ThinkingDelta(part.text) if thought else TextDelta(part.text)

    def _call(self, call: "types.FunctionCall") -> ToolCall:
        # older models give no ids, and answers are matched by name and order
        return self._edge.inward(call.id or f"call_{token_hex(8)}", call.name or "", compact(call.args or {}))


def _finished(grown: "_Stretch | tuple[ToolCall, bytes | None]") -> list[AssistantPart]:
    if isinstance(grown, tuple):
        call, signature = grown
        return [*_signed(signature), call]
    if grown.thought:
        signed = {"signature": b64encode(grown.signature).decode()} if grown.signature else {}
        return [Thinking(grown.text, kept(PROVIDER, {"thought": True, **signed}))]
    return [*_signed(grown.signature), Text(grown.text)]


def _signed(signature: bytes | None) -> list[AssistantPart]:
    """A signature goes before the part it was on."""
    if signature is None:
        return []
    return [Thinking("", kept(PROVIDER, {"signature": b64encode(signature).decode()}))]


def _usage(counts: "types.GenerateContentResponseUsageMetadata") -> Usage:
    cached = counts.cached_content_token_count or 0
    fresh = (counts.prompt_token_count or 0) + (counts.tool_use_prompt_token_count or 0) - cached
    return Usage(max(0, fresh), (counts.candidates_token_count or 0) + (counts.thoughts_token_count or 0), cached)
