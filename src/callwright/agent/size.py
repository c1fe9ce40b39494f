"""About how many tokens messages take."""

from callwright.core.call import Completed, Failed, ToolCall
from callwright.core.content import Part, Text
from callwright.core.message import AssistantMessage, AssistantPart, Message, Thinking, ToolMessage
from callwright.core.tokens import tokens_for

_MESSAGE_CHARS = 16
"""What the frame around a message or a call comes to."""
_PICTURE_CHARS = 6_000


def message_tokens(message: Message) -> int:
    """About how many tokens one message takes."""
    chars = _MESSAGE_CHARS
    if isinstance(message, ToolMessage):
        for outcome in message.outcomes:
            chars += _outcome_chars(outcome)
    elif isinstance(message, AssistantMessage):
        for part in message.parts:
            chars += _part_chars(part)
    else:
        chars += content_chars(message.content)
    return tokens_for(chars)


def content_chars(content: str | tuple[Part, ...]) -> int:
    """About how many characters' worth of context a content takes."""
    if isinstance(content, str):
        return len(content)
    return sum(len(part.text) if isinstance(part, Text) else _PICTURE_CHARS for part in content)


def _outcome_chars(outcome: Completed | Failed) -> int:
    if isinstance(outcome, Completed):
        return _MESSAGE_CHARS + content_chars(outcome.output.content)
    return _MESSAGE_CHARS + len(outcome.error.message)


def _part_chars(part: AssistantPart) -> int:
    if isinstance(part, ToolCall):
        arguments = part.arguments
        written = len(arguments) if isinstance(arguments, (str, bytes)) else len(repr(arguments))
        return _MESSAGE_CHARS + len(part.name) + written
    if isinstance(part, Thinking):
        return len(part.text) + (0 if part.opaque is None else len(repr(part.opaque)))
    return len(part.text)
