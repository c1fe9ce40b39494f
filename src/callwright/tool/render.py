"""Converts what a tool returns or yields into an `Output`. Yielded values are progress, the last one is the result."""

import inspect
from collections.abc import AsyncGenerator, Awaitable, Generator, Sequence
from contextlib import aclosing, closing
from typing import cast

from callwright.core._fast import make_constructor
from callwright.core.content import File, Image, Output, Part, Text
from callwright.core.errors import Cancelled, ToolFailed, safe_str
from callwright.core.json import replace_surrogates
from callwright.tool.arguments import clip_value
from callwright.tool.base import ToolContext
from callwright.tool.validators import from_json, to_json

_NOTHING = Output("(no output)")
_DATA: frozenset[type] = frozenset({dict, int, float, bool})
"""Kinds that hold no content parts and are asked for first, because most calls return one of them."""
_output = make_constructor(Output)  # what was just read from JSON needs no check


def render(value: object) -> Output:
    """Convert any return value into an output.

    Raises:
        ToolFailed: The value cannot be written as JSON.
    """
    if type(value) in _DATA:
        return _render_structured(value)
    if isinstance(value, str):
        return Output(replace_surrogates(str.__str__(value)))  # of a string enum its value, not its name
    if value is None:
        return _NOTHING
    if isinstance(value, Output):
        return value
    if isinstance(value, (Text, Image, File)):
        return Output((value,))
    if _is_parts(value):
        parts = cast("Sequence[Part | str]", value)
        return Output(tuple(Text(replace_surrogates(part)) if isinstance(part, str) else part for part in parts))
    if isinstance(value, bytes):
        return _text(value)
    return _render_structured(value)


def _is_parts(value: object) -> bool:
    """Whether a list is content, not data: at least one content part, and otherwise only parts or text."""
    if not isinstance(value, (list, tuple)) or not value:
        return False
    items = cast("Sequence[object]", value)
    return any(isinstance(item, (Text, Image, File)) for item in items) and all(
        isinstance(item, (Text, Image, File, str)) for item in items
    )


def _text(value: bytes) -> Output:
    try:
        return Output(value.decode())
    except UnicodeDecodeError as error:
        raise ToolFailed("output serialize: bytes that are not text; return File(data) or Image(data)") from error


def _render_structured(value: object) -> Output:
    """Return data as compact JSON text for the model and as it is for programs; NaN becomes null."""
    try:
        written = to_json(value, inf_nan_mode="null")
        return _output(written.decode(), from_json(written))
    except Exception as error:  # whatever a value's own serialiser raised, it is the output that failed
        reason = clip_value(safe_str(error))
        raise ToolFailed(f"output serialize: {type(value).__name__} is not JSON: {reason}") from error


# asked first, because finding out that a value is neither awaitable nor a stream costs more than a thread hop's share
_PLAIN: frozenset[type] = frozenset({str, int, float, bool, dict, list, tuple, type(None)})


async def settle(value: object, context: ToolContext) -> object:
    """Await a coroutine or run a generator to its end; return a plain value as it is."""
    if type(value) in _PLAIN:
        return value
    if inspect.isawaitable(value):
        value = await cast("Awaitable[object]", value)
    if inspect.isasyncgen(value):
        return await _last(cast("AsyncGenerator[object, None]", value), context)
    return value


async def _last(stream: AsyncGenerator[object, None], context: ToolContext) -> object:
    last: object = None
    first = True
    async with aclosing(stream):
        async for value in stream:
            if not first:
                context.report(last)
            last, first = value, False
    return last


def exhaust(value: object, context: ToolContext) -> object:
    """Run a synchronous generator to its end in the calling thread; its return value wins over its last yield.

    Raises:
        Cancelled: The call was stopped meanwhile.
    """
    if type(value) in _PLAIN or not inspect.isgenerator(value):
        return value
    stream = cast("Generator[object, None, object]", value)
    last: object = None
    first = True
    with closing(stream):
        while True:
            try:
                item = next(stream)
            except StopIteration as end:
                if end.value is None:
                    return last
                if not first:
                    context.report(last)
                return end.value
            if context.cancelled:
                raise Cancelled("stopped before it was done; it had started, so it may have had an effect")
            if not first:
                context.report(last)
            last, first = item, False
