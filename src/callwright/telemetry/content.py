"""Renders messages, arguments and outputs as the conventions' JSON, with secrets redacted; used only on request."""

import json
from collections.abc import Sequence
from typing import Any

from callwright.core.calls import Completed, Failed, ToolCall
from callwright.core.content import File, Image, Part, Text
from callwright.core.messages import AssistantMessage, Message, Thinking, ToolMessage, UserMessage, encode_messages
from callwright.hooks.builtin import Redact
from callwright.telemetry.attributes import FINISHES


class Content:
    """Renders messages, arguments and outputs as JSON text."""

    def __init__(self, redact: Redact) -> None:
        self._clean = redact.clean

    def render_messages(self, messages: Sequence[Message]) -> str:
        """Render a conversation; messages are cached, because every request contains all earlier ones."""
        return f"[{','.join(encode_messages(messages, self, self._line))}]"

    def render_reply(self, message: AssistantMessage) -> str:
        """Render a model message as a list of one, as the conventions require."""
        return _json([{**self._message(message), "finish_reason": FINISHES.get(message.stop, message.stop)}])

    def render_system(self, text: str) -> str:
        """Render the system prompt."""
        return _json([self._part(Text(text))])

    def render_arguments(self, call: ToolCall) -> str:
        """Render a call's arguments as the model wrote them."""
        return self._clean(_arguments_text(call.arguments))

    def render_outcome(self, outcome: Completed | Failed) -> str:
        """Render the text that the model reads."""
        return self._clean(outcome.text)

    def _line(self, message: Message) -> str:
        return _json(self._message(message))

    def _message(self, message: Message) -> dict[str, Any]:
        match message:
            case UserMessage(content):
                parts = (Text(content),) if isinstance(content, str) else content
                return {"role": "user", "parts": [self._part(part) for part in parts]}
            case AssistantMessage():
                return {"role": "assistant", "parts": [self._part(part) for part in message.parts]}
            case ToolMessage(outcomes):
                return {"role": "tool", "parts": [self._response(outcome) for outcome in outcomes]}

    def _part(self, part: Part | Thinking | ToolCall) -> dict[str, Any]:
        match part:
            case Text(text):
                return {"type": "text", "content": self._clean(text)}
            case Thinking(text):
                return {"type": "reasoning", "content": self._clean(text)}
            case ToolCall():
                return {"type": "tool_call", "id": part.id, "name": part.name, "arguments": self.render_arguments(part)}
            case Image() | File():  # exporters drop spans that are megabytes large
                return {"type": "omitted", "mime_type": part.media_type, "bytes": len(part.data)}

    def _response(self, outcome: Completed | Failed) -> dict[str, Any]:
        return {"type": "tool_call_response", "id": outcome.call.id, "response": self.render_outcome(outcome)}


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _arguments_text(arguments: object) -> str:
    if isinstance(arguments, str):
        return arguments
    if isinstance(arguments, bytes):
        return arguments.decode(errors="replace")
    return json.dumps(arguments, ensure_ascii=False, default=str)
