"""A tool that yields: what it yields is progress, the last of it is the result."""

import inspect
from collections.abc import AsyncGenerator, Awaitable, Generator
from contextlib import aclosing, closing
from typing import cast

from callwright.tool.base import ToolContext

# asked first, because finding out that a value is neither awaitable nor a stream costs more than a thread hop's share
_PLAIN: frozenset[type] = frozenset({str, int, float, bool, dict, list, tuple, type(None)})


async def settle(value: object, context: ToolContext) -> object:
    """Await or exhaust what a call gave, whichever it wants; a plain value is returned as it is."""
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
    """The same for a plain generator, on the thread it runs in; what it returns at the end beats what it yielded."""
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
            if not first:
                context.report(last)
            last, first = item, False
