"""The pieces of records as JSON and back: content, calls, outcomes, errors, accesses."""

from base64 import b64decode, b64encode
from typing import Any, cast

from callwright.core import access as accesses
from callwright.core import errors
from callwright.core.access import Access
from callwright.core.call import Completed, Failed, ToolCall
from callwright.core.content import File, Image, Output, Part, Text
from callwright.core.errors import ToolError, ToolFailed
from callwright.core.message import AssistantPart, Thinking
from callwright.core.spec import Effect

Data = dict[str, Any]
_ACCESSES = {kind.__name__: kind for kind in accesses.Access.__args__}
_ERRORS: dict[str, type[ToolError]] = {
    name: kind for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, ToolError)
}
_PLAIN: Any = (str, int, float, bool, tuple, type(None))


def content_to(content: str | tuple[Part, ...]) -> str | list[Data]:
    """Text as it is, parts as objects."""
    return content if isinstance(content, str) else [_content_part_to(part) for part in content]


def content_from(data: str | list[Data]) -> str | tuple[Part, ...]:
    """Text as it is, parts from objects."""
    return data if isinstance(data, str) else tuple(_content_part_from(part) for part in data)


def _content_part_to(part: Part) -> Data:
    match part:
        case Text(text):
            return {"text": text}
        case Image(data, media_type):
            return {"image": b64encode(data).decode(), "media_type": media_type}
        case File(data, media_type, name):
            return {"file": b64encode(data).decode(), "media_type": media_type, "name": name}


def _content_part_from(data: Data) -> Part:
    if "text" in data:
        return Text(data["text"])
    if "image" in data:
        return Image(b64decode(data["image"]), data["media_type"])
    return File(b64decode(data["file"]), data["media_type"], data["name"])


def part_to(part: AssistantPart) -> Data:
    """A part of a model's message."""
    match part:
        case Text(text):
            return {"text": text}
        case Thinking(text, opaque):
            return {"thinking": text, "opaque": opaque}
        case ToolCall():
            return call_to(part)


def part_from(data: Data) -> AssistantPart:
    """A part of a model's message."""
    if "text" in data:
        return Text(data["text"])
    if "thinking" in data:
        return Thinking(data["thinking"], data["opaque"])
    return call_from(data)


def call_to(call: ToolCall) -> Data:
    """A call; text arguments stay exactly as the model wrote them."""
    if isinstance(call.arguments, bytes):
        return {"call": call.id, "name": call.name, "bytes": b64encode(call.arguments).decode()}
    return {"call": call.id, "name": call.name, "arguments": call.arguments}


def call_from(data: Data) -> ToolCall:
    """A call."""
    arguments = b64decode(data["bytes"]) if "bytes" in data else data["arguments"]
    return ToolCall(data["call"], data["name"], arguments)


def outcome_to(outcome: Completed | Failed) -> Data:
    """How a call ended."""
    base: Data = {**call_to(outcome.call), "seconds": outcome.seconds, "attempts": outcome.attempts}
    if isinstance(outcome, Completed):
        output = outcome.output
        data = {} if output.structured is None else {"structured": output.structured}
        return {**base, "content": content_to(output.content), **data}
    return {**base, "started": outcome.started, "error": _error_to(outcome.error)}


def outcome_from(data: Data) -> Completed | Failed:
    """How a call ended."""
    call = call_from(data)
    if "error" in data:
        return Failed(call, _error_from(data["error"]), data["started"], data["seconds"], data["attempts"])
    output = Output(content_from(data["content"]), data.get("structured"))
    return Completed(call, output, data["seconds"], data["attempts"])


def _error_to(error: ToolError) -> Data:
    known = {name: value for name, value in vars(error).items() if isinstance(value, _PLAIN)}
    kind = next((kind.__name__ for kind in type(error).__mro__ if kind.__name__ in _ERRORS), "ToolFailed")
    return {"type": kind, **known, "message": error.message}


def _error_from(data: Data) -> ToolError:
    kind = _ERRORS.get(data["type"], ToolFailed)
    error = ToolError(data["message"])
    error.__class__ = kind
    for name, value in data.items():
        if name != "type":
            setattr(error, name, tuple(cast("list[Any]", value)) if isinstance(value, list) else value)
    return error


def access_to(access: Access) -> Data:
    """What a call would touch."""
    return {"type": type(access).__name__, **{name: getattr(access, name) for name in access.__slots__}}


def access_from(data: Data) -> Access:
    """What a call would touch."""
    fields = {name: Effect(value) if name == "effect" else value for name, value in data.items() if name != "type"}
    return _ACCESSES[data["type"]](**fields)
