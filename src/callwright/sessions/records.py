"""The records of a session, in the order of one turn, and their encoding as JSON.

Said(assistant) ─► Asked? ─► Answered? ─► Began ─► Ended* ─► Said(outcomes)
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from callwright.core import access as accesses, errors
from callwright.core.access import Access
from callwright.core.calls import Approve, Completed, Decline, Failed, Question, Reply, ToolCall
from callwright.core.content import File, Image, Output, Part, Text
from callwright.core.errors import ToolError, ToolFailed, UsageError
from callwright.core.json import Json
from callwright.core.messages import AssistantMessage, AssistantPart, Message, Thinking, ToolMessage, Usage, UserMessage
from callwright.core.spec import Effect

Data = dict[str, Any]

_ACCESSES = {kind.__name__: kind for kind in accesses.Access.__args__}
_ERRORS: dict[str, type[ToolError]] = {
    name: kind for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, ToolError)
}
_PLAIN: Any = (str, int, float, bool, tuple, type(None))


def encode_content(content: str | tuple[Part, ...]) -> str | list[Data]:
    """Encode text unchanged and parts as objects."""
    return content if isinstance(content, str) else [_encode_content_part(part) for part in content]


def decode_content(data: str | list[Data]) -> str | tuple[Part, ...]:
    """Decode what `encode_content` returned."""
    return data if isinstance(data, str) else tuple(_decode_content_part(part) for part in data)


def _encode_content_part(part: Part) -> Data:
    match part:
        case Text(text):
            return {"text": text}
        case Image(data, media_type):
            return {"image": b64encode(data).decode(), "media_type": media_type}
        case File(data, media_type, name):
            return {"file": b64encode(data).decode(), "media_type": media_type, "name": name}


def _decode_content_part(data: Data) -> Part:
    if "text" in data:
        return Text(data["text"])
    if "image" in data:
        return Image(b64decode(data["image"]), data["media_type"])
    return File(b64decode(data["file"]), data["media_type"], data["name"])


def encode_part(part: AssistantPart) -> Data:
    """Encode a part of a model message."""
    match part:
        case Text(text):
            return {"text": text}
        case Thinking(text, opaque):
            return {"thinking": text, "opaque": opaque}
        case ToolCall():
            return encode_call(part)


def decode_part(data: Data) -> AssistantPart:
    """Decode a part of a model message."""
    if "text" in data:
        return Text(data["text"])
    if "thinking" in data:
        return Thinking(data["thinking"], data["opaque"])
    return decode_call(data)


def encode_call(call: ToolCall) -> Data:
    """Encode a call; text arguments stay exactly as the model wrote them."""
    if isinstance(call.arguments, bytes):
        return {"call": call.id, "name": call.name, "bytes": b64encode(call.arguments).decode()}
    return {"call": call.id, "name": call.name, "arguments": call.arguments}


def decode_call(data: Data) -> ToolCall:
    """Decode a call."""
    arguments = b64decode(data["bytes"]) if "bytes" in data else data["arguments"]
    return ToolCall(data["call"], data["name"], arguments)


def encode_outcome(outcome: Completed | Failed) -> Data:
    """Encode the outcome of a call."""
    base: Data = {**encode_call(outcome.call), "seconds": outcome.seconds, "attempts": outcome.attempts}
    if isinstance(outcome, Completed):
        output = outcome.output
        data = {} if output.structured is None else {"structured": output.structured}
        return {**base, "content": encode_content(output.content), **data}
    return {**base, "started": outcome.started, "error": _encode_error(outcome.error)}


def decode_outcome(data: Data) -> Completed | Failed:
    """Decode the outcome of a call."""
    call = decode_call(data)
    if "error" in data:
        return Failed(call, _decode_error(data["error"]), data["started"], data["seconds"], data["attempts"])
    output = Output(decode_content(data["content"]), data.get("structured"))
    return Completed(call, output, data["seconds"], data["attempts"])


def _encode_error(error: ToolError) -> Data:
    known = {name: value for name, value in vars(error).items() if isinstance(value, _PLAIN)}
    kind = next((kind.__name__ for kind in type(error).__mro__ if kind.__name__ in _ERRORS), "ToolFailed")
    return {"type": kind, **known, "message": error.message}


def _decode_error(data: Data) -> ToolError:
    kind = _ERRORS.get(data["type"], ToolFailed)
    # Constructors differ and compose the message, so restore the stored attributes without calling them.
    error = ToolError(data["message"])
    error.__class__ = kind
    for name, value in data.items():
        if name != "type":
            setattr(error, name, tuple(cast("list[Any]", value)) if isinstance(value, list) else value)
    return error


def encode_access(access: Access) -> Data:
    """Encode an access."""
    return {"type": type(access).__name__, **{name: getattr(access, name) for name in access.__slots__}}


def decode_access(data: Data) -> Access:
    """Decode an access."""
    fields = {name: Effect(value) if name == "effect" else value for name, value in data.items() if name != "type"}
    return _ACCESSES[data["type"]](**fields)


@dataclass(frozen=True, slots=True)
class Said:
    """A message that joined the conversation."""

    message: Message
    turn_id: str = ""
    """The turn that a model message begins; part of its calls' idempotency keys."""


@dataclass(frozen=True, slots=True)
class Began:
    """The open turn's calls are about to run; after this only idempotent ones may be repeated."""

    digests: Mapping[str, str]
    """Digests of what will run, by call id."""


@dataclass(frozen=True, slots=True)
class Ended:
    """One call of the open turn has ended; others may still be running."""

    outcome: Completed | Failed


@dataclass(frozen=True, slots=True)
class Asked:
    """The open turn waits for approvals."""

    questions: tuple[Question, ...]


@dataclass(frozen=True, slots=True)
class Answered:
    """The user's replies, by question id; a reply is used up when its turn starts."""

    replies: Mapping[str, Reply]


@dataclass(frozen=True, slots=True)
class Compacted:
    """These messages replace all earlier ones."""

    messages: tuple[Message, ...]
    usage: Usage = Usage()


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The position of a graph: its next step and the state for that step."""

    step: str
    state: Json
    waiting: str = ""
    """The question that the graph waits for, if any."""


Record: TypeAlias = Said | Began | Ended | Asked | Answered | Compacted | Checkpoint


def sum_usage(records: Iterable[Record]) -> Usage:
    """Return the total usage of a session's model requests."""
    total = Usage()
    for record in records:
        if isinstance(record, Compacted):
            total += record.usage
        elif isinstance(record, Said) and isinstance(record.message, AssistantMessage):
            total += record.message.usage
    return total


def count_settled_records(records: Sequence[Record]) -> int:
    """Count the records before the open turn; all records if no turn is open."""
    for index in range(len(records) - 1, -1, -1):
        record = records[index]
        if isinstance(record, (Compacted, Checkpoint)):
            break
        if isinstance(record, Said):
            message = record.message
            open_turn = isinstance(message, AssistantMessage) and bool(message.calls)
            return index if open_turn else len(records)
    return len(records)


def find_first_prompt(records: Iterable[Record]) -> str:
    """Return the text of the first user message, used as the title."""
    for record in records:
        if isinstance(record, Said) and not isinstance(record.message, (AssistantMessage, ToolMessage)):
            content = record.message.content
            return content if isinstance(content, str) else " ".join(getattr(part, "text", "") for part in content)
    return ""


_write_json = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, default=str).encode


def dump_record(record: Record, redact: Callable[[str], str] | None = None) -> str:
    """Encode a record as one line of JSON; `redact` is applied to every text in it."""
    data = encode_record(record)
    if redact is not None:
        data = _redact_value(data, redact)
    text = _write_json(data)
    try:
        text.encode()
    except UnicodeEncodeError:  # UTF-8 cannot encode a lone surrogate, an escape sequence can
        return json.dumps(data, separators=(",", ":"), default=str)
    return text


def load_record(text: str) -> Record:
    """Decode what `dump_record` wrote."""
    return decode_record(json.loads(text))


def encode_record(record: Record) -> Data:
    """Encode a record as a JSON object."""
    match record:
        case Said(message, turn_id):
            return {**encode_message(message), "turn": turn_id} if turn_id else encode_message(message)
        case Began(digests):
            return {"kind": "began", "digests": dict(digests)}
        case Ended(outcome):
            return {"kind": "ended", **encode_outcome(outcome)}
        case Asked(questions):
            return {"kind": "asked", "questions": [_encode_question(question) for question in questions]}
        case Answered(replies):
            return {"kind": "answered", "replies": {key: _encode_reply(reply) for key, reply in replies.items()}}
        case Compacted(messages, usage):
            kept = [encode_message(message) for message in messages]
            return {"kind": "compacted", "messages": kept, "usage": _encode_usage(usage)}
        case Checkpoint(step, state, waiting):
            return {"kind": "checkpoint", "step": step, "state": state, "waiting": waiting}


def decode_record(data: Data) -> Record:
    """Decode a record.

    Raises:
        UsageError: the kind of record is unknown; a later version wrote it.
    """
    match data["kind"]:
        case "user" | "assistant" | "outcomes":
            return Said(decode_message(data), data.get("turn", ""))
        case "began":
            return Began(data["digests"])
        case "ended":
            return Ended(decode_outcome(data))
        case "asked":
            return Asked(tuple(_decode_question(question) for question in data["questions"]))
        case "answered":
            return Answered({key: _decode_reply(reply) for key, reply in data["replies"].items()})
        case "compacted":
            return Compacted(tuple(decode_message(kept) for kept in data["messages"]), Usage(*data["usage"]))
        case "checkpoint":
            return Checkpoint(data["step"], data["state"], data["waiting"])
        case kind:
            raise UsageError(f"the session contains a record of unknown kind {kind!r}; upgrade callwright to read it")


def encode_message(message: Message) -> Data:
    """Encode a message as a JSON object."""
    match message:
        case UserMessage(content):
            return {"kind": "user", "content": encode_content(content)}
        case AssistantMessage(parts, stop, usage, model):
            encoded = [encode_part(part) for part in parts]
            return {"kind": "assistant", "parts": encoded, "stop": stop, "usage": _encode_usage(usage), "model": model}
        case ToolMessage(outcomes):
            return {"kind": "outcomes", "outcomes": [encode_outcome(outcome) for outcome in outcomes]}


def decode_message(data: Data) -> Message:
    """Decode a message from a JSON object."""
    match data["kind"]:
        case "user":
            return UserMessage(decode_content(data["content"]))
        case "assistant":
            parts = tuple(decode_part(part) for part in data["parts"])
            return AssistantMessage(parts, data["stop"], Usage(*data["usage"]), data["model"])
        case _:
            return ToolMessage(tuple(decode_outcome(outcome) for outcome in data["outcomes"]))


def _encode_usage(usage: Usage) -> list[int]:
    return [usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens]


def _encode_question(question: Question) -> Data:
    data = {name: getattr(question, name) for name in question.__slots__}
    return {**data, "accesses": [encode_access(access) for access in question.accesses]}


def _decode_question(data: Data) -> Question:
    touched: Any = tuple(decode_access(access) for access in data["accesses"])
    return Question(**{**data, "accesses": touched})


def _encode_reply(reply: Reply) -> Data:
    if isinstance(reply, Decline):
        return {"decline": reply.reason}
    return {"approve": reply.scope, "arguments": reply.arguments}


def _decode_reply(data: Data) -> Reply:
    return Decline(data["decline"]) if "decline" in data else Approve(data["arguments"], data["approve"])


def _redact_value(value: Any, redact: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {key: _redact_value(part, redact) for key, part in cast("Data", value).items()}
    if isinstance(value, (list, tuple)):
        return [_redact_value(part, redact) for part in cast("list[Any]", value)]
    return value
