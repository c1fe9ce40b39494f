"""Reading a response into a message: checks of its body, its stream of events, and passing them to a callback."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, Protocol

from callwright.core.messages import AssistantMessage
from callwright.providers.base import (
    CallDelta,
    MessageDone,
    ModelEvent,
    ModelRequest,
    Provider,
    ProviderError,
    ProviderWrapper,
    TextDelta,
    ThinkingDelta,
    closing_events,
)
from callwright.providers.encoding import FIRST_HALVES, join_halves, parse_object
from callwright.providers.errors import find_body_error, reading_errors, status_failure, vendor_errors

_MAX_ERROR_BYTES = 1 << 16
_DRAIN_SECONDS = 1.0
_PAGE_TYPES = ("text/html", "application/xhtml+xml")
_SPACE = b" \t\r\n\xef\xbb\xbf"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_EVENT_BEGINNINGS = (b":", b"data:", b"event:", b"id:", b"retry:")


def check_body(response: Any) -> None:
    """Make what a server sends in place of an answer a `ProviderError`: a web page, or an error as JSON or text.

    A web page is a proxy's login page, or that of an address without the API.

    Args:
        response: The HTTP response, not yet read; a page that is declared as something else fails when it is read.
    """
    kind = str(response.headers.get("content-type", "")).partition(";")[0].strip().lower()
    if kind in _PAGE_TYPES:
        raise _web_page(response)
    read = response.aiter_bytes

    async def read_checked(*arguments: Any, **options: Any) -> AsyncGenerator[bytes]:
        response.__dict__.pop("aiter_bytes", None)  # a cycle would hold the request's body after the response was read
        begun, line, whole = False, bytearray(), b""
        async for piece in read(*arguments, **options):
            if not begun:
                piece = piece.removeprefix(_BYTE_ORDER_MARK)  # with it the first event would be lost
            beginning = b"" if begun else piece.lstrip(_SPACE)
            if beginning.startswith(b"<"):  # with which neither JSON nor an event stream begins
                raise _web_page(response)
            bare = beginning and not beginning.startswith(_EVENT_BEGINNINGS)
            if bare or (whole and len(whole) < _MAX_ERROR_BYTES):
                whole += piece
            begun = begun or bool(beginning)
            line += piece
            if b"\n" in piece:
                del line[: line.rstrip(_SPACE).rfind(b"\n") + 1]
            yield piece
        error = find_body_error(whole)
        if error is not None or _is_whole_event(bytes(line.strip(_SPACE))):
            yield b"\n\n"  # the SDKs drop a last event without the blank line after it; Google's reads errors too
        if error is not None:
            raise status_failure(response.status_code, error, response.headers)

    response.aiter_bytes = read_checked


def _is_whole_event(line: bytes) -> bool:
    """Whether the last line of a response can end it: with half of an event, the message before it would be lost."""
    data = line.removeprefix(b"data:").strip()
    return data == b"[DONE]" or parse_object(data) is not None


def _web_page(response: Any) -> ProviderError:
    hosts = [each.url.netloc.decode("ascii", "replace") for each in (*response.history, response)]
    moved = f" after a redirect from {hosts[0]}" if hosts[0] != hosts[-1] else ""
    return ProviderError(
        f"the server at {hosts[-1]} answered with HTML instead of the API's format{moved}: check base_url, and whether "
        "a proxy or a login page stands in front of the API",
        fault="unavailable",
    )


class Draft(Protocol):
    """A message under construction, fed with the pieces one vendor sends."""

    @property
    def ended(self) -> bool:
        """Whether the API's last piece has come; always false for an API that does not mark it."""
        ...

    def take(self, piece: Any, /) -> Sequence[ModelEvent]:
        """Add one piece and return the events it causes."""
        ...

    def message(self) -> AssistantMessage:
        """Return the finished message; raises `ProviderError` if the stream ended early."""
        ...


async def read_stream(
    draft: Draft, opened: AbstractAsyncContextManager[AsyncIterator[Any]], *, key: str
) -> AsyncIterator[ModelEvent]:
    """Read a response into a draft; `key` is the environment variable to name for a missing key.

    Closing the iterator ends the request. Nothing is sent before the first event is requested.
    """
    halves: dict[type[ModelEvent], str] = {}
    async with vendor_errors(key=key), opened as opened_pieces:
        pieces = aiter(opened_pieces)  # once: leaving the loop must not begin the stream again
        async for piece in pieces:
            with reading_errors():
                events = draft.take(piece)
                for event in events:
                    _check_event(event)
            for event in events:
                if isinstance(event, (TextDelta, ThinkingDelta)):
                    event, halves[type(event)] = _hold_half(event, halves.get(type(event), ""))
                    if not event.text:
                        continue
                yield event
            if draft.ended:
                await _drain(pieces)
                break
    with reading_errors():
        message = draft.message()
    yield MessageDone(message)


async def _drain(pieces: AsyncIterator[Any]) -> None:
    """Read to the end after the last piece, so that the connection can be used again.

    A gateway may leave the response open, or break it off: the message is complete all the same.
    """
    with suppress(Exception):
        async with asyncio.timeout(_DRAIN_SECONDS):
            async for _ in pieces:
                pass


def _hold_half(event: TextDelta | ThinkingDelta, half: str) -> tuple[TextDelta | ThinkingDelta, str]:
    """Return a piece of text with the half character before it, and the half at its end, which is held back."""
    if not half and event.text[-1:] not in FIRST_HALVES:
        return event, ""
    text = join_halves(half + event.text)
    end = len(text) - (text[-1:] in FIRST_HALVES)
    return type(event)(text[:end]), text[end:]


def _check_event(event: ModelEvent) -> None:
    """Refuse an event with another value than text: a server may send anything, and it is shown while it arrives."""
    match event:
        case TextDelta(text) | ThinkingDelta(text):
            fields: list[object] = [text]
        case CallDelta(call_id, name, arguments):
            fields = [call_id, name, arguments]
        case MessageDone():
            fields = []
    for field in fields:
        if not isinstance(field, str):
            raise TypeError(f"expected text, got {field!r:.80}")


class TappedProvider(ProviderWrapper):
    """A provider whose events also go to a callback, except for requests whose answer the user is not shown.

    Args:
        inner: The provider to use.
        tell: Called with each event before the agent gets it.
    """

    def __init__(self, inner: Provider, tell: Callable[[ModelEvent], None]) -> None:
        super().__init__(inner)
        self._tell = tell

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Send the request and pass each event to the callback, then on."""
        async with closing_events(self._inner.stream(request)) as events:
            async for event in events:
                if request.shown:
                    self._tell(event)
                yield event
