"""What a tool returned to what the model reads."""

from collections.abc import Sequence
from typing import Any, cast

from pydantic_core import PydanticSerializationError, from_json, to_json

from toolwright.core.content import File, Image, Output, Part, Text
from toolwright.core.errors import ToolFailed

_NOTHING = Output("(no output)")


def render(value: object) -> Output:
    """Make an output of any return value; raise `ToolFailed` where it cannot be written as JSON."""
    if isinstance(value, str):
        return Output(value)
    if value is None:
        return _NOTHING
    if isinstance(value, Output):
        return value
    if isinstance(value, (Text, Image, File)):
        return Output((value,))
    if _is_parts(value):
        return Output(tuple(Text(part) if isinstance(part, str) else part for part in cast("Sequence[Part]", value)))
    return _structured(value)


def _is_parts(value: object) -> bool:
    """A list with at least one part in it, the rest parts or text: a mixed answer, not data."""
    if not isinstance(value, (list, tuple)) or not value:
        return False
    items = cast("Sequence[object]", value)
    return any(isinstance(item, (Text, Image, File)) for item in items) and all(
        isinstance(item, (Text, Image, File, str)) for item in items
    )


def _structured(value: Any) -> Output:
    try:
        written = to_json(value)
    except (PydanticSerializationError, ValueError, RecursionError) as error:
        raise ToolFailed(f"output serialize: {type(value).__name__} is not JSON: {error}") from error
    return Output(written.decode(), from_json(written))
