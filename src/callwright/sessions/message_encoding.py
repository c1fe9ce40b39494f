"""The encoding of messages, calls and outcomes as JSON, and a strict decoder for them."""

import json
from base64 import b64decode, b64encode
from typing import Any, cast

from callwright.core import errors
from callwright.core._fast import make_constructor
from callwright.core.calls import Completed, Failed, Repair, ToolCall
from callwright.core.content import File, Image, Output, Part, Text
from callwright.core.errors import CallwrightError, ToolError, ToolFailed, safe_repr
from callwright.core.json import make_json_writer
from callwright.core.messages import AssistantMessage, AssistantPart, Message, Thinking, ToolMessage, Usage, UserMessage

Data = dict[str, Any]

_ERRORS: dict[str, type[ToolError]] = {
    name: kind for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, ToolError)
}
_PLAIN: Any = (str, int, float, bool, tuple, type(None))
_WHOLE = {int}
_output = make_constructor(Output)  # what was read from JSON needs no check
write_json = make_json_writer(json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, default=str))


class UnreadableRecord(CallwrightError):
    """A stored record is damaged, or a later version wrote it; or one that is to be stored could not be read again."""


def take_field(data: Data, name: str, *kinds: type) -> Any:
    """Return a field that must exist and have one of these types."""
    if name not in data:
        raise UnreadableRecord(f"the field {name!r} is missing")
    return check_field(data[name], name, *kinds)


def check_field(value: Any, name: str, *kinds: type) -> Any:
    """Return a value that must have one of these types."""
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):  # a bool is an int too
        expected = " or ".join(kind.__name__ for kind in kinds)
        raise UnreadableRecord(f"{name!r} must be {expected}, got {safe_repr(value)}")
    return value


def take_list(data: Data, name: str, kind: type = dict) -> list[Any]:
    """Return a field that must be a list of values of this type."""
    return [check_field(item, name, kind) for item in take_field(data, name, list)]


def encode_message(message: Message) -> Data:
    """Encode a message as a JSON object."""
    match message:
        case UserMessage(content):
            return {"kind": "user", "content": encode_content(content)}
        case AssistantMessage(parts, stop, usage, model):
            if type(stop) is not str or type(model) is not str:
                check_field(stop, "stop", str)
                check_field(model, "model", str)
            encoded = [encode_part(part) for part in parts]
            return {"kind": "assistant", "parts": encoded, "stop": stop, "usage": encode_usage(usage), "model": model}
        case ToolMessage(outcomes):
            return {"kind": "outcomes", "outcomes": [encode_outcome(outcome) for outcome in outcomes]}


def decode_message(data: Data) -> Message:
    """Decode a message from a JSON object.

    Raises:
        UnreadableRecord: A field is not as it must be.
    """
    match take_field(data, "kind", str):
        case "user":
            return UserMessage(decode_content(take_field(data, "content", str, list)))
        case "assistant":
            parts = tuple(decode_part(part) for part in take_list(data, "parts"))
            stop: Any = take_field(data, "stop", str)
            return AssistantMessage(parts, stop, decode_usage(data), take_field(data, "model", str))
        case "outcomes":
            return ToolMessage(tuple(decode_outcome(outcome) for outcome in take_list(data, "outcomes")))
        case kind:
            raise UnreadableRecord(f"unknown kind of message {kind!r}")


def encode_content(content: str | tuple[Part, ...]) -> str | list[Data]:
    """Encode text unchanged and parts as objects."""
    return content if isinstance(content, str) else [_encode_content_part(part) for part in content]


def decode_content(data: str | list[Any]) -> str | tuple[Part, ...]:
    """Decode what `encode_content` returned."""
    if isinstance(data, str):
        return data
    return tuple(_decode_content_part(check_field(part, "content", dict)) for part in data)


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
        return Text(take_field(data, "text", str))
    if "image" in data:
        return Image(_decode_bytes(data, "image"), take_field(data, "media_type", str))
    return File(_decode_bytes(data, "file"), take_field(data, "media_type", str), take_field(data, "name", str))


def _decode_bytes(data: Data, name: str) -> bytes:
    return b64decode(take_field(data, name, str), validate=True)


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
        return Text(take_field(data, "text", str))
    if "thinking" in data:
        return Thinking(take_field(data, "thinking", str), take_field(data, "opaque", object))
    return decode_call(data)


def encode_call(call: ToolCall) -> Data:
    """Encode a call; text arguments stay exactly as the model wrote them."""
    if isinstance(call.arguments, bytes):
        return {"call": call.id, "name": call.name, "bytes": b64encode(call.arguments).decode()}
    arguments = call.arguments if isinstance(call.arguments, (str, dict)) else dict(call.arguments)
    return {"call": call.id, "name": call.name, "arguments": arguments}


def decode_call(data: Data) -> ToolCall:
    """Decode a call."""
    arguments = _decode_bytes(data, "bytes") if "bytes" in data else take_field(data, "arguments", str, dict)
    return ToolCall(take_field(data, "call", str), take_field(data, "name", str), arguments)


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
    seconds, attempts = take_field(data, "seconds", int, float), take_field(data, "attempts", int)
    repairs = tuple(
        Repair(take_field(repair, "kind", str), take_field(repair, "note", str))
        for repair in (take_list(data, "repairs") if "repairs" in data else ())
    )
    if "error" in data:
        error = _decode_error(take_field(data, "error", dict))
        return Failed(call, error, take_field(data, "started", bool), seconds, attempts, repairs)
    output = _output(decode_content(take_field(data, "content", str, list)), data.get("structured"))
    return Completed(call, output, seconds, attempts, repairs)


def _encode_error(error: ToolError) -> Data:
    known = {name: value for name, value in vars(error).items() if _is_writable(value)}
    kind = next((kind.__name__ for kind in type(error).__mro__ if kind.__name__ in _ERRORS), "ToolFailed")
    return {**known, "type": kind, "message": error.message}


def _is_writable(value: object) -> bool:
    try:
        return isinstance(value, _PLAIN) and bool(write_json(value))
    except Exception:  # noqa: BLE001 - a tool's own data, such as a number of thousands of digits
        return False


def _decode_error(data: Data) -> ToolError:
    kind = _ERRORS.get(str(data.get("type")), ToolFailed)  # any other may be an attribute, as once written
    # Constructors differ and compose the message, so restore the stored attributes without calling them.
    error = ToolError(take_field(data, "message", str))
    error.__class__ = kind
    for name, value in data.items():
        # not over a method or a property: a tool's own error may have an attribute of that name
        if name != "type" and not name.startswith("_") and isinstance(getattr(kind, name, ""), str):
            setattr(error, name, tuple(cast("list[Any]", value)) if isinstance(value, list) else value)
    return error


def encode_usage(usage: Usage) -> list[int]:
    """Encode the counts of a usage."""
    counts = [usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens]
    return counts if {*map(type, counts)} == _WHOLE else [check_field(count, "usage", int) for count in counts]


def decode_usage(data: Data) -> Usage:
    """Decode the field `usage`."""
    return Usage(*take_list(data, "usage", int))
