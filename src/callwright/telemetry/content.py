"""What was said, in the shape the conventions give messages; for those who asked for it, with secrets taken out."""

import json
from collections.abc import Sequence
from typing import Any

from callwright.core.calls import Completed, Failed, ToolCall
from callwright.core.content import File, Image, Part, Text
from callwright.core.messages import AssistantMessage, Message, Thinking, ToolMessage, UserMessage, encoded
from callwright.hooks.builtin import Redact
from callwright.telemetry.attributes import FINISHES


class Content:
    """Writes messages, arguments and outputs as JSON text."""

    def __init__(self, redact: Redact) -> None:
        self._clean = redact.clean

    def messages(self, messages: Sequence[Message]) -> str:
        """A conversation; each message is written once, however often the conversation is."""
        return f"[{','.join(encoded(messages, self, self._line))}]"

    def said(self, message: AssistantMessage) -> str:
        """A model's message, as the list of one that the conventions make of it."""
        return _json([{**self._message(message), "finish_reason": FINISHES.get(message.stop, message.stop)}])

    def system(self, text: str) -> str:
        """The system prompt."""
        return _json([self._part(Text(text))])

    def arguments(self, call: ToolCall) -> str:
        """A call's arguments as the model wrote them."""
        return self._clean(_arguments_text(call.arguments))

    def outcome(self, outcome: Completed | Failed) -> str:
        """What the model reads of a call."""
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
                return {"type": "tool_call", "id": part.id, "name": part.name, "arguments": self.arguments(part)}
            case Image() | File():  # megabytes of it would be lost on the way, and with them the span
                return {"type": "omitted", "mime_type": part.media_type, "bytes": len(part.data)}

    def _response(self, outcome: Completed | Failed) -> dict[str, Any]:
        return {"type": "tool_call_response", "id": outcome.call.id, "response": self.outcome(outcome)}


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _arguments_text(arguments: object) -> str:
    if isinstance(arguments, str):
        return arguments
    if isinstance(arguments, bytes):
        return arguments.decode(errors="replace")
    return json.dumps(arguments, ensure_ascii=False, default=str)
