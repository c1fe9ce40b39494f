"""The encoding of records as JSON, and a strict decoder: what it returns has the types the program relies on."""

import json
from base64 import b64decode, b64encode
from collections.abc import Callable
from dataclasses import fields
from typing import Any, cast

from pydantic_core import to_json

from callwright.core import access as accesses, errors
from callwright.core._fast import make_constructor
from callwright.core.access import Access
from callwright.core.calls import Completed, Decline, Failed, Question, Repair, Reply, ToolCall
from callwright.core.content import File, Image, Output, Part, Text
from callwright.core.decisions import check_reply, make_reply
from callwright.core.errors import CallwrightError, ToolError, ToolFailed, UsageError, safe_repr
from callwright.core.json import make_json_writer, map_texts
from callwright.core.messages import AssistantMessage, AssistantPart, Message, Thinking, ToolMessage, Usage, UserMessage
from callwright.core.spec import Effect
from callwright.sessions.records import (
    Answered,
    Asked,
    Began,
    Checkpoint,
    Compacted,
    Ended,
    Kept,
    LimitReached,
    Record,
    Rewound,
    Said,
    Spent,
    Started,
    UndoPoint,
)

Data = dict[str, Any]

_ACCESSES = {kind.__name__: kind for kind in accesses.Access.__args__}
_ERRORS: dict[str, type[ToolError]] = {
    name: kind for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, ToolError)
}
_PLAIN: Any = (str, int, float, bool, tuple, type(None))
_MANY_DIGITS = 4_000  # Python reads no number of more than 4,300
_QUESTION_KINDS = {"arguments": dict, "expires_at": int, "running": bool}  # all others are texts
_output = make_constructor(Output)  # what was read from JSON needs no check


class UnreadableRecord(CallwrightError):
    """A stored record is damaged, or a later version wrote it; or one that is to be stored could not be read again."""


def dump_record(record: Record, redact: Callable[[str], str] | None = None) -> str:
    """Encode a `record` as one line of JSON; `redact` is applied to every text in it."""
    data = encode_record(record) if redact is None else map_texts(encode_record(record), redact)
    try:
        encoded = to_json(data, fallback=str)  # half the time of the standard library
        if len(encoded) < _MANY_DIGITS:  # a longer one may hold a number that could not be read back
            return encoded.decode()
    except ValueError:  # a lone surrogate, bytes, or nested too deep
        pass
    text = _write_json(data)
    try:
        text.encode()
    except UnicodeEncodeError:  # UTF-8 cannot encode a lone surrogate, an escape sequence can
        return json.dumps(data, separators=(",", ":"), default=str)
    return text


def load_record(text: str | bytes) -> Record:
    """Decode what `dump_record` wrote.

    Raises:
        UnreadableRecord: the text is damaged, or a later version wrote it.
    """
    try:
        data: object = json.loads(text if isinstance(text, str) else text.decode())
        if not isinstance(data, dict):
            raise UnreadableRecord(f"expected a JSON object, got {safe_repr(data)}")
        return decode_record(cast("Data", data))
    except UnreadableRecord:
        raise
    except RecursionError:
        raise UnreadableRecord("it is nested too deeply") from None
    # Whatever a constructor or decoder makes of foreign values: a damaged record must not crash the reader.
    except Exception as error:
        raise UnreadableRecord(f"{type(error).__name__}: {error}") from error


_write_json = make_json_writer(json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, default=str))


def _take(data: Data, name: str, *kinds: type) -> Any:
    """Return a field that must exist and have one of these types."""
    if name not in data:
        raise UnreadableRecord(f"the field {name!r} is missing")
    return _check(data[name], name, *kinds)


def _check(value: Any, name: str, *kinds: type) -> Any:
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):  # a bool is an int too
        expected = " or ".join(kind.__name__ for kind in kinds)
        raise UnreadableRecord(f"{name!r} must be {expected}, got {safe_repr(value)}")
    return value


def _take_list(data: Data, name: str, kind: type = dict) -> list[Any]:
    return [_check(item, name, kind) for item in _take(data, name, list)]


def encode_record(record: Record) -> Data:
    """Encode a record as a JSON object."""
    match record:
        case Said(message, turn_id, key):
            said = encode_message(message)
            if turn_id:
                said["turn"] = _check(turn_id, "turn", str)
            if key:
                said["key"] = _check(key, "key", str)
            return said
        case Began(digests, each):
            return {"kind": "began", "digests": dict(digests), **({"each": True} if each else {})}
        case Started(call_ids):
            return {"kind": "started", "calls": list(call_ids)}
        case Ended(outcome):
            return {"kind": "ended", **encode_outcome(outcome)}
        case Asked(questions, paused):
            asked: Data = {"kind": "asked", "questions": list(map(_encode_question, questions))}
            return {**asked, "paused": True} if paused else asked
        case Answered(replies):
            return {"kind": "answered", "replies": {key: _encode_reply(reply) for key, reply in replies.items()}}
        case Kept(path, note):
            return {"kind": "kept", "path": path, "note": note}
        case Compacted(messages, usage):
            return {"kind": "compacted", "messages": [*map(encode_message, messages)], "usage": _encode_usage(usage)}
        case Spent(usage, cost):
            return {"kind": "spent", "usage": _encode_usage(usage), "cost": cost}
        case LimitReached(kind):
            return {"kind": "limit", "limit": kind}
        case Checkpoint(step, state, waiting):
            return {"kind": "checkpoint", "step": step, "state": state, "waiting": waiting}
        case UndoPoint(point_id, label, data):
            return {"kind": "undo_point", "id": point_id, "label": label, "data": data}
        case Rewound(position, restored, redo, note):
            return {"kind": "rewound", "position": position, "restored": restored, "redo": redo, "note": note}
        case _:
            raise UnreadableRecord(f"expected a record, got {safe_repr(record)}")


def decode_record(data: Data) -> Record:
    """Decode a record.

    Raises:
        UnreadableRecord: the kind of record is unknown, so a later version wrote it, or a field is not as it must be.
    """
    match _take(data, "kind", str):
        case "user" | "assistant" | "outcomes":
            turn_id, key = (_check(data.get(name, ""), name, str) for name in ("turn", "key"))
            return Said(decode_message(data), turn_id, key)
        case "began":
            return Began(_decode_texts(data, "digests"), each=_check(data.get("each", False), "each", bool))
        case "started":
            return Started(tuple(_take_list(data, "calls", str)))
        case "kept":
            return Kept(_take(data, "path", str), data.get("note"))
        case "ended":
            return Ended(decode_outcome(data))
        case "asked":
            asked = tuple(_decode_question(question) for question in _take_list(data, "questions"))
            return Asked(asked, paused=_check(data.get("paused", False), "paused", bool))
        case "answered":
            replies: Data = _take(data, "replies", dict)
            return Answered({key: _decode_reply(_check(reply, "replies", dict)) for key, reply in replies.items()})
        case "compacted":
            kept = tuple(decode_message(message) for message in _take_list(data, "messages"))
            return Compacted(kept, _decode_usage(data))
        case "spent":
            return Spent(_decode_usage(data), _take(data, "cost", int, float, type(None)))
        case "limit":
            return LimitReached(_take(data, "limit", str))
        case "checkpoint":
            return Checkpoint(_take(data, "step", str), _take(data, "state", object), _take(data, "waiting", str))
        case "undo_point":
            return UndoPoint(_take(data, "id", str), _take(data, "label", str), data.get("data"))
        case "rewound":
            position, redo = _take(data, "position", int), _take(data, "redo", bool)
            return Rewound(position, _take(data, "restored", str), redo, _take(data, "note", str))
        case kind:
            raise UnreadableRecord(f"unknown kind {kind!r}; upgrade callwright to read it")


def encode_message(message: Message) -> Data:
    """Encode a message as a JSON object."""
    match message:
        case UserMessage(content):
            return {"kind": "user", "content": encode_content(content)}
        case AssistantMessage(parts, stop, usage, model):
            known = {"parts": [encode_part(part) for part in parts], "stop": _check(stop, "stop", str)}
            return {"kind": "assistant", **known, "usage": _encode_usage(usage), "model": _check(model, "model", str)}
        case ToolMessage(outcomes):
            return {"kind": "outcomes", "outcomes": [encode_outcome(outcome) for outcome in outcomes]}


def decode_message(data: Data) -> Message:
    """Decode a message from a JSON object.

    Raises:
        UnreadableRecord: a field is not as it must be.
    """
    match _take(data, "kind", str):
        case "user":
            return UserMessage(decode_content(_take(data, "content", str, list)))
        case "assistant":
            parts = tuple(decode_part(part) for part in _take_list(data, "parts"))
            stop: Any = _take(data, "stop", str)
            return AssistantMessage(parts, stop, _decode_usage(data), _take(data, "model", str))
        case "outcomes":
            return ToolMessage(tuple(decode_outcome(outcome) for outcome in _take_list(data, "outcomes")))
        case kind:
            raise UnreadableRecord(f"unknown kind of message {kind!r}")


def encode_content(content: str | tuple[Part, ...]) -> str | list[Data]:
    """Encode text unchanged and parts as objects."""
    return content if isinstance(content, str) else [_encode_content_part(part) for part in content]


def decode_content(data: str | list[Any]) -> str | tuple[Part, ...]:
    """Decode what `encode_content` returned."""
    if isinstance(data, str):
        return data
    return tuple(_decode_content_part(_check(part, "content", dict)) for part in data)


def _encode_content_part(part: Part) -> Data:
    match part:
        case Text(text):
            return {"text": text}
        case Image(data, media_type):
            return {"image": b64encode(data).decode(), "media_type": media_type}
        case File(data, media_type, name):
            return {"file": b64encode(data).decode(), "media_type": media_type, "name": name}
        case _:
            raise UnreadableRecord(f"expected Text, Image or File, got {safe_repr(part)}")


def _decode_content_part(data: Data) -> Part:
    if "text" in data:
        return Text(_take(data, "text", str))
    if "image" in data:
        return Image(_decode_bytes(data, "image"), _take(data, "media_type", str))
    return File(_decode_bytes(data, "file"), _take(data, "media_type", str), _take(data, "name", str))


def _decode_bytes(data: Data, name: str) -> bytes:
    return b64decode(_take(data, name, str), validate=True)


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
        return Text(_take(data, "text", str))
    if "thinking" in data:
        return Thinking(_take(data, "thinking", str), _take(data, "opaque", object))
    return decode_call(data)


def encode_call(call: ToolCall) -> Data:
    """Encode a call; text arguments stay exactly as the model wrote them."""
    if isinstance(call.arguments, bytes):
        return {"call": call.id, "name": call.name, "bytes": b64encode(call.arguments).decode()}
    return {"call": call.id, "name": call.name, "arguments": call.arguments}


def decode_call(data: Data) -> ToolCall:
    """Decode a call."""
    arguments = _decode_bytes(data, "bytes") if "bytes" in data else _take(data, "arguments", str, dict)
    return ToolCall(_take(data, "call", str), _take(data, "name", str), arguments)


def encode_outcome(outcome: Completed | Failed) -> Data:
    """Encode the outcome of a call."""
    data = encode_call(outcome.call)
    data["seconds"], data["attempts"] = outcome.seconds, outcome.attempts
    if outcome.repairs:
        data["repairs"] = [{"kind": repair.kind, "note": repair.note} for repair in outcome.repairs]
    if isinstance(outcome, Completed):
        output = outcome.output
        data["content"] = encode_content(output.content)
        if output.structured is not None:
            data["structured"] = output.structured
    else:
        data["started"], data["error"] = outcome.started, _encode_error(outcome.error)
    return data


def decode_outcome(data: Data) -> Completed | Failed:
    """Decode the outcome of a call."""
    call = decode_call(data)
    seconds, attempts = _take(data, "seconds", int, float), _take(data, "attempts", int)
    repairs = tuple(
        Repair(_take(repair, "kind", str), _take(repair, "note", str))
        for repair in (_take_list(data, "repairs") if "repairs" in data else ())
    )
    if "error" in data:
        error = _decode_error(_take(data, "error", dict))
        return Failed(call, error, _take(data, "started", bool), seconds, attempts, repairs)
    output = _output(decode_content(_take(data, "content", str, list)), data.get("structured"))
    return Completed(call, output, seconds, attempts, repairs)


def _encode_error(error: ToolError) -> Data:
    known = {name: value for name, value in vars(error).items() if _is_writable(value)}
    kind = next((kind.__name__ for kind in type(error).__mro__ if kind.__name__ in _ERRORS), "ToolFailed")
    return {**known, "type": kind, "message": error.message}


def _is_writable(value: object) -> bool:
    try:
        return isinstance(value, _PLAIN) and bool(_write_json(value))
    except Exception:  # noqa: BLE001 - a tool's own data, such as a number of thousands of digits
        return False


def _decode_error(data: Data) -> ToolError:
    kind = _ERRORS.get(str(data.get("type")), ToolFailed)  # any other may be an attribute, as once written
    # Constructors differ and compose the message, so restore the stored attributes without calling them.
    error = ToolError(_take(data, "message", str))
    error.__class__ = kind
    for name, value in data.items():
        if name != "type" and not name.startswith("_"):
            setattr(error, name, tuple(cast("list[Any]", value)) if isinstance(value, list) else value)
    return error


def encode_access(access: Access) -> Data:
    """Encode an access."""
    data: Data = {"type": type(access).__name__, **{each.name: getattr(access, each.name) for each in fields(access)}}
    return data | {"touches": list(map(encode_access, data["touches"]))} if "touches" in data else data


def decode_access(data: Data) -> Access:
    """Decode an access."""
    fields = {name: Effect(value) if name == "effect" else value for name, value in data.items() if name != "type"}
    if "touches" in data:  # texts, as once written, are left out: they are for display only
        listed: list[Any] = _take(data, "touches", list)
        fields["touches"] = tuple(decode_access(cast("Data", part)) for part in listed if isinstance(part, dict))
    return _ACCESSES[_take(data, "type", str)](**fields)


def _encode_usage(usage: Usage) -> list[int]:
    counts = usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens
    return [_check(count, "usage", int) for count in counts]


def _decode_usage(data: Data) -> Usage:
    return Usage(*_take_list(data, "usage", int))


def _decode_texts(data: Data, name: str) -> dict[str, str]:
    return {key: _check(value, name, str) for key, value in _take(data, name, dict).items()}


def _encode_question(question: Question) -> Data:
    data = {each.name: getattr(question, each.name) for each in fields(question)}
    return {**data, "accesses": [encode_access(access) for access in question.accesses]}


def _decode_question(data: Data) -> Question:
    touched: Any = tuple(decode_access(access) for access in _take_list(data, "accesses"))
    for name in sorted({"call_id", "tool", "digest", "summary", "arguments", *data} - {"accesses", "approved"}):
        _take(data, name, _QUESTION_KINDS.get(name, str))
    approved: Any = tuple(_take_list(data, "approved", str)) if "approved" in data else ()
    return Question(**{**data, "accesses": touched, "approved": approved})


def _encode_reply(reply: Reply) -> Data:
    checked = check_reply(reply)
    by = {"by": checked.by} if checked.by else {}
    if isinstance(checked, Decline):
        return {"decline": checked.reason, **by}
    return {"approve": checked.scope, "arguments": checked.arguments, **by}


def _decode_reply(data: Data) -> Reply:
    by = _check(data.get("by", ""), "by", str)
    if "decline" in data:
        return Decline(_take(data, "decline", str), by)
    scope: Any = _take(data, "approve", str)
    reply = make_reply(True, arguments=_take(data, "arguments", dict, type(None)), scope=scope, by=by)
    if isinstance(reply, Decline):
        raise UsageError(reply.reason)
    return reply
