"""Gemini's messages: encoding of a conversation as contents, reading of the chunk stream."""

import re
from base64 import b64encode
from dataclasses import dataclass
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from callwright.core.calls import Completed, Failed, ToolCall
from callwright.core.content import Image, Part, Text
from callwright.core.json import compact, thaw
from callwright.core.messages import AssistantMessage, AssistantPart, Message, Stop, Thinking, ToolMessage, Usage
from callwright.providers.base import CallDelta, ModelEvent, TextDelta, ThinkingDelta
from callwright.providers.encoding import (
    FIRST_HALVES,
    PDF,
    base64_text,
    file_text,
    fit_media,
    read_count,
    to_bytes,
    unwrap_opaque,
    wire_id,
    wrap_opaque,
)
from callwright.providers.errors import broken_stream
from callwright.providers.tool_encoding import EncodedTools, finish_message

if TYPE_CHECKING:
    from google.genai import types

Wire = dict[str, Any]

PROVIDER = "google"
_OLDER = re.compile(r"(?:.*/)?(?:gemini-(?:1|2)|gemma)")
_IMAGES = frozenset(("image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"))
_FILES = (PDF, "audio/", "video/")
_UNSIGNED = b64encode(b"skip_thought_signature_validator").decode()
"""What Google requires instead of a signature on calls that no Gemini model made."""


def is_older(model: str) -> bool:
    """Return whether a model is from before Gemini 3, which requires signatures and combines schemas with tools."""
    return _OLDER.match(model) is not None


def encode(message: Message, tools: EncodedTools, *, signed: bool = True) -> bytes:
    """Encode one message; `signed` if the model requires a signature on the first call of each message."""
    if isinstance(message, ToolMessage):
        return _encode_content("user", [part for outcome in message.outcomes for part in _outcome(outcome, tools)])
    if isinstance(message, AssistantMessage):
        return _encode_content("model", _assistant(message, tools, signed=signed))
    content = (Text(message.content),) if isinstance(message.content, str) else message.content
    return _encode_content("user", [_part(part) for part in content])


def _encode_content(role: str, parts: list[Wire]) -> bytes:
    # the API rejects an empty text, except as the carrier of a signature
    filled = [part for part in parts if part.get("text") != "" or "thoughtSignature" in part]
    return to_bytes({"role": role, "parts": filled or [{"text": "(nothing)"}]})


def _part(part: Part) -> Wire:
    part = fit_media(part, _IMAGES, _FILES)
    if isinstance(part, Text):
        return {"text": part.text}
    return {"inlineData": {"mimeType": part.media_type, "data": base64_text(part)}}


def _outcome(outcome: Completed | Failed, tools: EncodedTools) -> list[Wire]:
    response = {"error" if isinstance(outcome, Failed) else "output": outcome.text}
    named = {"id": wire_id(outcome.call.id), "name": tools.wire_name_of(outcome.call)}
    shown = outcome.output.parts if isinstance(outcome, Completed) else ()
    pictures = [_part(part) for part in shown if not isinstance(part, Text)]
    return [{"functionResponse": {**named, "response": response}}, *pictures]


def _assistant(message: AssistantMessage, tools: EncodedTools, *, signed: bool) -> list[Wire]:
    parts: list[Wire] = []
    signature: str | None = None
    described = False
    unsigned_call = signed
    for part in message.parts:
        if isinstance(part, Text):
            if not described:
                parts.append(_sign({"text": part.text}, signature))
            described = False
        elif isinstance(part, ToolCall):
            parts.append(
                _sign({"functionCall": _call(part, tools)}, signature or (_UNSIGNED if unsigned_call else None))
            )
            unsigned_call = False  # only the first of several calls is signed
        else:
            value: Any = unwrap_opaque(PROVIDER, part)
            signature = None if value is None else value.get("signature")
            if value is not None and "part" in value:  # the text after it describes it to other models
                parts.append(_sign(thaw(value["part"]), signature))
                described, signature = True, None
                continue
            if value is None or not value.get("thought"):
                continue  # it signs the next part
            parts.append(_sign({"text": part.text, "thought": True}, signature))
        signature = None
    return parts


def _sign(part: Wire, signature: str | None) -> Wire:
    return {**part, "thoughtSignature": signature} if signature else part


def _call(call: ToolCall, tools: EncodedTools) -> Wire:
    return {"id": wire_id(call.id), "name": tools.wire_name_of(call), "args": tools.wire_arguments(call)}


_STOPS: dict[str, Stop] = {"STOP": "end", "MAX_TOKENS": "length", "CONTINUATION": "paused"}
_REFUSALS = frozenset(
    "SAFETY RECITATION BLOCKLIST PROHIBITED_CONTENT SPII LANGUAGE IMAGE_SAFETY IMAGE_PROHIBITED_CONTENT "
    "IMAGE_RECITATION".split()
)
_MALFORMED = frozenset("MALFORMED_FUNCTION_CALL MALFORMED_RESPONSE UNEXPECTED_TOOL_CALL TOO_MANY_TOOL_CALLS".split())
_KEPT = ("inline_data", "file_data", "executable_code", "code_execution_result")
"""Parts that the model made itself: sent back unchanged, and described in text."""


@dataclass(slots=True)
class _Stretch:
    """Text or thinking that may still grow; a signature closes it."""

    text: str
    thought: bool
    signature: bytes | None


@dataclass(frozen=True, slots=True)
class _Kept:
    """A part that is sent back unchanged, and its description."""

    wire: Wire
    description: str
    signature: bytes | None


_Grown = _Stretch | _Kept | tuple[ToolCall, bytes | None]


class GoogleDraft:
    """A message under construction from Gemini's chunks."""

    def __init__(self, tools: EncodedTools) -> None:
        self._tools = tools
        self._parts: list[_Grown] = []
        self._model = ""
        self._reason: str | None = None
        self._usage = Usage()
        self._choice: int | None = None
        self.ended = False  # the API has no last event: older models finish with every chunk

    def take(self, chunk: "types.GenerateContentResponse") -> list[ModelEvent]:
        """Add one chunk and return the model events it causes."""
        self._model = chunk.model_version or self._model
        if chunk.usage_metadata is not None:
            self._usage = _usage(chunk.usage_metadata)
        if chunk.prompt_feedback is not None and chunk.prompt_feedback.block_reason is not None:
            self._reason = "SAFETY"
        events: list[ModelEvent] = []
        for candidate in chunk.candidates or ():
            if self._choice is None:
                self._choice = candidate.index or 0
            if (candidate.index or 0) != self._choice:  # several were asked for, and the message is made of one
                continue
            parts = (candidate.content.parts if candidate.content is not None else None) or ()
            events += [event for part in parts if (event := self._add_part(part)) is not None]
            if candidate.finish_reason is not None:
                self._reason = candidate.finish_reason.value
        return events

    def message(self) -> AssistantMessage:
        """Return the finished message; raises `ProviderError` if the stream ended early."""
        if self._reason is None:
            raise broken_stream("it ended before the message was complete")
        if self._reason in _MALFORMED:  # a malformed generation: worth a retry, not part of the conversation
            raise broken_stream(f"the model stopped with {self._reason}")
        parts = [part for grown in self._parts for part in _finish(grown)]
        stop: Stop = "refusal" if self._reason in _REFUSALS else _STOPS.get(self._reason, "other")
        return finish_message(parts, stop, self._usage, self._model)

    def _add_part(self, part: "types.Part") -> ModelEvent | None:
        signature = part.thought_signature
        if part.function_call is not None:
            call = self._call(part.function_call)
            self._parts.append((call, signature))
            return CallDelta(call.id, call.name, call.arguments if isinstance(call.arguments, str) else "{}")
        if any(getattr(part, kind, None) is not None for kind in _KEPT):
            kept = _Kept(_wire_of(part), _describe(part), signature)
            self._parts.append(kept)
            return TextDelta(kept.description)
        text = part.text or ""
        if not text and not signature:
            return None
        thought = bool(part.thought)
        last = self._parts[-1] if self._parts else None
        if isinstance(last, _Stretch) and last.thought == thought and last.signature is None:
            last.text += text
            last.signature = signature
        else:
            half = ""
            if isinstance(last, _Stretch) and last.thought == thought and last.text[-1:] in FIRST_HALVES:
                last.text, half = last.text[:-1], last.text[-1]  # the other half of the character follows the signature
            self._parts.append(_Stretch(half + text, thought, signature))
        if not text:
            return None
        return ThinkingDelta(text) if thought else TextDelta(text)

    def _call(self, call: "types.FunctionCall") -> ToolCall:
        if not call.name:
            raise broken_stream("a call has no name")
        # older models send no ids; Google matches responses by name and order
        return self._tools.read_call(call.id or f"call_{token_hex(8)}", call.name, compact(call.args or {}))


def _wire_of(part: "types.Part") -> Wire:
    wire: Wire = part.model_dump(mode="json", by_alias=True, exclude_none=True)
    wire.pop("thoughtSignature", None)
    return wire


def _describe(part: "types.Part") -> str:
    """Describe a part that the model made itself, for users and other models."""
    if part.executable_code is not None:
        language = str(part.executable_code.language.value if part.executable_code.language else "").lower()
        return f"\n```{language}\n{part.executable_code.code or ''}\n```\n"
    if part.code_execution_result is not None:
        return f"\n```\n{part.code_execution_result.output or ''}\n```\n"
    if part.inline_data is not None:
        return file_text(Image(part.inline_data.data or b"", part.inline_data.mime_type or "application/octet-stream"))
    found = part.file_data
    return f"[a file: {found.file_uri if found is not None else ''}]"


def _finish(grown: _Grown) -> list[AssistantPart]:
    if isinstance(grown, _Kept):
        signed = {"signature": b64encode(grown.signature).decode()} if grown.signature else {}
        return [Thinking("", wrap_opaque(PROVIDER, {"part": grown.wire, **signed})), Text(grown.description)]
    if isinstance(grown, tuple):
        call, signature = grown
        return [*_signature_part(signature), call]
    if grown.thought:
        signed = {"signature": b64encode(grown.signature).decode()} if grown.signature else {}
        return [Thinking(grown.text, wrap_opaque(PROVIDER, {"thought": True, **signed}))]
    return [*_signature_part(grown.signature), Text(grown.text)]


def _signature_part(signature: bytes | None) -> list[AssistantPart]:
    """Return the signature as a part of its own, placed before the part it was on."""
    if signature is None:
        return []
    return [Thinking("", wrap_opaque(PROVIDER, {"signature": b64encode(signature).decode()}))]


def _usage(counts: "types.GenerateContentResponseUsageMetadata") -> Usage:
    cached = read_count(counts.cached_content_token_count)
    fresh = read_count(counts.prompt_token_count) + read_count(counts.tool_use_prompt_token_count) - cached
    written = read_count(counts.candidates_token_count) + read_count(counts.thoughts_token_count)
    return Usage(max(0, fresh), written, cached)
