"""Attribute names of OpenTelemetry's conventions for generative AI and of callwright, and `Content`, their JSON values.

The names are copied here because the package that defines them marks all of them as unstable.
"""

import json
from collections.abc import Sequence
from typing import Any

from callwright.core.calls import Completed, Failed, ToolCall
from callwright.core.content import File, Image, Part, Text
from callwright.core.messages import (
    AssistantMessage,
    Message,
    Stop,
    Thinking,
    ToolMessage,
    Usage,
    UserMessage,
    encode_messages,
)
from callwright.hooks.builtin import Redact

OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
AGENT = "gen_ai.agent.name"
CONVERSATION = "gen_ai.conversation.id"
REQUEST_MODEL = "gen_ai.request.model"
REQUEST_STREAM = "gen_ai.request.stream"
MAX_TOKENS = "gen_ai.request.max_tokens"
OUTPUT_TYPE = "gen_ai.output.type"
RESPONSE_MODEL = "gen_ai.response.model"
FINISH_REASONS = "gen_ai.response.finish_reasons"
FIRST_CHUNK = "gen_ai.response.time_to_first_chunk"
TOKEN_TYPE = "gen_ai.token.type"
TOOL = "gen_ai.tool.name"
TOOL_TYPE = "gen_ai.tool.type"
CALL = "gen_ai.tool.call.id"
ARGUMENTS = "gen_ai.tool.call.arguments"
RESULT = "gen_ai.tool.call.result"
SYSTEM = "gen_ai.system_instructions"
INPUT = "gen_ai.input.messages"
OUTPUT = "gen_ai.output.messages"
ERROR = "error.type"
EXCEPTION = "exception.type"

COST = "callwright.cost_usd"
ENDED = "callwright.ended"
OUTCOME = "callwright.outcome"
STARTED = "callwright.started"
ATTEMPTS = "callwright.attempts"
TURN = "callwright.turn.id"
TURNS = "callwright.turns"
QUESTION = "callwright.question.kind"
DELAY = "callwright.delay_seconds"

UNKNOWN = "_OTHER"
"""The conventions' value for anything outside their lists."""

FINISHES: dict[Stop, str] = {"end": "stop", "calls": "tool_call", "refusal": "content_filter"}
"""Stop reasons that the conventions name differently."""


def usage_attributes(usage: Usage) -> dict[str, int]:
    """Return token counts as the conventions define them.

    Input tokens include tokens read from the cache and written to it, unlike in `Usage`. Counts of 0 are left out.
    """
    counts = {
        "gen_ai.usage.input_tokens": usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read_tokens,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens,
    }
    return {name: count for name, count in counts.items() if count}


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
