"""Records as JSON text and back: one object each, `kind` first, nothing lost on the way."""

import json
from collections.abc import Callable
from typing import Any, cast

from callwright.core.call import Approve, Decline, Question, Reply
from callwright.core.errors import UsageError
from callwright.core.message import AssistantMessage, Message, ToolMessage, Usage, UserMessage
from callwright.sessions.parts import (
    access_from,
    access_to,
    content_from,
    content_to,
    outcome_from,
    outcome_to,
    part_from,
    part_to,
)
from callwright.sessions.records import Answered, Asked, Began, Checkpoint, Compacted, Ended, Record, Said

Data = dict[str, Any]
_write = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, default=str).encode


def to_text(record: Record, redact: Callable[[str], str] | None = None) -> str:
    """Write a record as one line of JSON; `redact` is shown every text in it."""
    data = to_data(record)
    if redact is not None:
        data = _redacted(data, redact)
    text = _write(data)
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate, which only an escape can carry
        return json.dumps(data, separators=(",", ":"), default=str)
    return text


def from_text(text: str) -> Record:
    """Read what `to_text` wrote."""
    return from_data(json.loads(text))


def to_data(record: Record) -> Data:
    """A record as a JSON object."""
    match record:
        case Said(message, turn_id):
            return {**message_to(message), "turn": turn_id} if turn_id else message_to(message)
        case Began(digests):
            return {"kind": "began", "digests": dict(digests)}
        case Ended(outcome):
            return {"kind": "ended", **outcome_to(outcome)}
        case Asked(questions):
            return {"kind": "asked", "questions": [_question_to(question) for question in questions]}
        case Answered(replies):
            return {"kind": "answered", "replies": {key: _reply_to(reply) for key, reply in replies.items()}}
        case Compacted(messages, usage):
            kept = [message_to(message) for message in messages]
            return {"kind": "compacted", "messages": kept, "usage": _usage_to(usage)}
        case Checkpoint(step, state, waiting):
            return {"kind": "checkpoint", "step": step, "state": state, "waiting": waiting}


def from_data(data: Data) -> Record:
    """A record from a JSON object."""
    match data["kind"]:
        case "user" | "assistant" | "outcomes":
            return Said(message_from(data), data.get("turn", ""))
        case "began":
            return Began(data["digests"])
        case "ended":
            return Ended(outcome_from(data))
        case "asked":
            return Asked(tuple(_question_from(question) for question in data["questions"]))
        case "answered":
            return Answered({key: _reply_from(reply) for key, reply in data["replies"].items()})
        case "compacted":
            return Compacted(tuple(message_from(kept) for kept in data["messages"]), Usage(*data["usage"]))
        case "checkpoint":
            return Checkpoint(data["step"], data["state"], data["waiting"])
        case kind:
            raise UsageError(f"a session holds a record of kind {kind!r}, which this version does not know")


def message_to(message: Message) -> Data:
    """A message as a JSON object."""
    match message:
        case UserMessage(content):
            return {"kind": "user", "content": content_to(content)}
        case AssistantMessage(parts, stop, usage, model):
            written = [part_to(part) for part in parts]
            return {"kind": "assistant", "parts": written, "stop": stop, "usage": _usage_to(usage), "model": model}
        case ToolMessage(outcomes):
            return {"kind": "outcomes", "outcomes": [outcome_to(outcome) for outcome in outcomes]}


def message_from(data: Data) -> Message:
    """A message from a JSON object."""
    match data["kind"]:
        case "user":
            return UserMessage(content_from(data["content"]))
        case "assistant":
            parts = tuple(part_from(part) for part in data["parts"])
            return AssistantMessage(parts, data["stop"], Usage(*data["usage"]), data["model"])
        case _:
            return ToolMessage(tuple(outcome_from(outcome) for outcome in data["outcomes"]))


def _usage_to(usage: Usage) -> list[int]:
    return [usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens]


def _question_to(question: Question) -> Data:
    data = {name: getattr(question, name) for name in question.__slots__}
    return {**data, "accesses": [access_to(access) for access in question.accesses]}


def _question_from(data: Data) -> Question:
    touched: Any = tuple(access_from(access) for access in data["accesses"])
    return Question(**{**data, "accesses": touched})


def _reply_to(reply: Reply) -> Data:
    if isinstance(reply, Decline):
        return {"decline": reply.reason}
    return {"approve": reply.scope, "arguments": reply.arguments}


def _reply_from(data: Data) -> Reply:
    return Decline(data["decline"]) if "decline" in data else Approve(data["arguments"], data["approve"])


def _redacted(value: Any, redact: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {key: _redacted(part, redact) for key, part in cast("Data", value).items()}
    if isinstance(value, (list, tuple)):
        return [_redacted(part, redact) for part in cast("list[Any]", value)]
    return value
