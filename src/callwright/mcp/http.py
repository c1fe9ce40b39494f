"""Streamable HTTP transport in which one failing request fails one call, not the session."""

import asyncio
import ipaddress
import json
import re
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import cast

import httpx2
import mcp_types as types
from mcp.client.stdio import get_default_environment
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import CONNECTION_CLOSED, INTERNAL_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND

from callwright.core.errors import ToolFailed
from callwright.mcp.config import ServerConfig
from callwright.mcp.lines import RateLimit
from callwright.mcp.listing import ListingFilter
from callwright.mcp.oauth import cannot_renew_now
from callwright.mcp.translate import OWN_MARK, SESSION_ENDED
from callwright.system.addresses import is_loopback, is_public
from callwright.system.piped_process import PipedProcess

_CONNECT_SECONDS = 20.0
_SILENCE_SECONDS = 300.0
_HELPER_SECONDS = 10.0
_MOST_HELPER_BYTES = 1 << 16
_BUSY = frozenset({429, 502, 503, 504})
_SESSION_CODES = frozenset({-32000, -32001, INVALID_REQUEST})
_NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
_CREDENTIALS = "the server does not accept these credentials"
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_MEANING = {401: _CREDENTIALS, 403: _CREDENTIALS, 404: "there is no MCP server at this path"}


@asynccontextmanager
async def http_transport(
    config: ServerConfig, auth: httpx2.Auth | None, listing_filter: ListingFilter
) -> AsyncGenerator[tuple["RateLimitedReader", object], None]:
    """Open the transport; nothing is sent yet."""
    helped = await _help_headers(config) if config.headers_helper else {}
    headers = {**config.headers, **helped}
    _check_headers(headers)
    async with (
        httpx2.AsyncClient(
            headers=headers,
            timeout=httpx2.Timeout(_CONNECT_SECONDS, read=_SILENCE_SECONDS),
            auth=auth,
            transport=_GuardedTransport(config, signs_in=auth is not None),
        ) as client,
        streamable_http_client(config.url, http_client=client, max_sse_event_size=config.message_bytes) as (
            reader,
            writer,
        ),
    ):
        yield RateLimitedReader(reader, listing_filter), writer


async def _help_headers(config: ServerConfig) -> dict[str, str]:
    """Run the helper of an entry, and return the headers it prints.

    Raises:
        ToolFailed: It fails, takes too long or prints anything but an object of texts.
    """
    names = {"CLAUDE_CODE_MCP_SERVER_NAME": config.name, "CLAUDE_CODE_MCP_SERVER_URL": config.url}
    # the variables a server gets: our own keys are not among them
    process = await PipedProcess.start(
        ("bash", "-c", config.headers_helper), cwd=str(Path.cwd()), environment={**get_default_environment(), **names}
    )
    try:
        async with asyncio.timeout(_HELPER_SECONDS):
            process.stdin.close()
            printed = b""
            while len(printed) < _MOST_HELPER_BYTES and (piece := await process.stdout.read(_MOST_HELPER_BYTES)):
                printed += piece
            code = await process.wait()
        given: object = json.loads(printed)
    except TimeoutError:
        raise ToolFailed(f"its headersHelper did not end within {_HELPER_SECONDS:g} s") from None
    except (ValueError, RecursionError) as error:
        raise ToolFailed(f"its headersHelper printed no JSON: {error}") from None
    finally:
        await asyncio.shield(asyncio.ensure_future(process.close()))
    pairs = cast("dict[str, object]", given).items() if isinstance(given, dict) else [("", None)]
    if code or not all(isinstance(value, str) and value.isprintable() and name.isprintable() for name, value in pairs):
        raise ToolFailed(f"its headersHelper ended with code {code}, or printed no object of texts")
    return dict(cast("dict[str, str]", given))


def _check_headers(headers: Mapping[str, str]) -> None:
    """Raise `ToolFailed` for headers that cannot be sent.

    The HTTP library would refuse them with their values, which are often secret, in an error that the model reads.
    """
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name):
            raise ToolFailed(f"its header {name!r} cannot be sent: the name is not valid; correct the name")
        if not value.isascii() or value != value.strip() or any(char in "\0\r\n" for char in value):
            raise ToolFailed(
                f"its header {name!r} cannot be sent: the value has a space or line break at an end, a line break"
                " inside, or a character that is not ASCII; correct the value, or the variable that it is from"
            )


class RateLimitedReader:
    """A stream of the SDK, read at a limited rate; listings pass the filter."""

    def __init__(self, inner: object, listing_filter: ListingFilter) -> None:
        self._inner = inner
        self._listing_filter = listing_filter
        self._rate_limit = RateLimit()

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    def __aiter__(self) -> "RateLimitedReader":
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        await self._rate_limit.wait()
        message: object = await self._inner.__anext__()  # type: ignore[attr-defined] - every stream of the SDK has it
        return self._listing_filter.apply(cast("SessionMessage | Exception", message))

    async def __aenter__(self) -> "RateLimitedReader":
        await self._inner.__aenter__()  # type: ignore[attr-defined] - every stream of the SDK has it
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._inner.__aexit__(kind, raised, trace)  # type: ignore[attr-defined] - every stream of the SDK has it


class _GuardedTransport(httpx2.AsyncBaseTransport):
    """HTTP transport that turns a failing request into an error response, where the SDK would end the session."""

    def __init__(self, config: ServerConfig, *, signs_in: bool) -> None:
        self._inner = httpx2.AsyncHTTPTransport()
        self._message_bytes = config.message_bytes
        self._own = httpx2.URL(config.url)
        self._signs_in = signs_in

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        try:
            await self._check_address(request)
            # a small message could be unpacked to one that fills the memory
            request.headers["accept-encoding"] = "identity"
            response = await self._inner.handle_async_request(request)
        except httpx2.TransportError as error:
            if request.method != "POST":  # the SDK reopens its listening stream itself
                raise
            why, sent = _describe_unreached(request, error), not isinstance(error, _NOT_SENT)
            return _refusal(request, 502, CONNECTION_CLOSED, why, data=_busy("", sent=sent))
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            await response.aclose()
            return _refusal(request, 502, INTERNAL_ERROR, "it sent a compressed response, which was not asked for")
        kind = response.headers.get("content-type", "").lower()
        if _is_message(request) and not kind.startswith(("application/json", "text/event-stream")):
            refusal = self._refusal_for(request, response, kind)
            if refusal is not None:
                await response.aclose()
                return refusal
        if not kind.startswith("text/event-stream"):
            response.stream = _CappedStream(cast("httpx2.AsyncByteStream", response.stream), self._message_bytes)
        if not _is_message(request) and cannot_renew_now(request, response.status_code):
            await response.aclose()  # it precedes a message that the server did not get or accept
            why = f"the token cannot be renewed now: HTTP status {response.status_code}"
            after = response.headers.get("retry-after", "")
            return _refusal(request, response.status_code, INTERNAL_ERROR, why, data=_busy(after, sent=False))
        if _is_message(request) and response.status_code in (400, 404) and "mcp-session-id" in request.headers:
            return await _end_lost_session(request, response)
        signing_in = self._signs_in and _requires_sign_in(response)
        if _is_message(request) and response.status_code >= 400 and kind.startswith("application/json"):
            return response if signing_in else await self._explain_status(request, response, kind)
        return response

    async def _explain_status(self, request: httpx2.Request, response: httpx2.Response, kind: str) -> httpx2.Response:
        """Return an error of the protocol as it is, and another one, as of a proxy, by its status."""
        body, error = await _read_error(response)
        refusal = self._refusal_for(request, response, kind) if error is None else None
        return refusal or _copy(request, response, body)

    async def _check_address(self, request: httpx2.Request) -> None:
        """Apply the rules of web_fetch to hosts that the server names, such as those of its sign-in."""
        url = request.url
        if (url.scheme, url.host, url.port) == (self._own.scheme, self._own.host, self._own.port):
            return
        loop = asyncio.get_running_loop()
        port = url.port or (443 if url.scheme == "https" else 80)
        try:
            found = await loop.getaddrinfo(url.host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise httpx2.ConnectError(f"cannot find the host {url.host!r}: {error}") from error
        addresses = [ipaddress.ip_address(str(place[0]).partition("%")[0]) for _, _, _, _, place in found]
        for address in addresses:
            # a server on this machine may use a sign-in on this machine
            if not is_public(address) and not (address.is_loopback and is_loopback(self._own.host)):
                raise httpx2.ConnectError(f"{url.host} is at {address}, which is not on the public network")
        # the address that was checked is the one to connect to: a second lookup may return another
        request.extensions = {**request.extensions, "sni_hostname": url.host}
        request.url = url.copy_with(host=str(addresses[0]))

    def _refusal_for(self, request: httpx2.Request, response: httpx2.Response, kind: str) -> httpx2.Response | None:
        """Return an error response that names the status; None for responses that the SDK must see unchanged."""
        status = response.status_code
        if status < 400:
            no_server = f"it responds with {kind}, so it is not an MCP server" if kind and status == 200 else ""
            return _refusal(request, 404, METHOD_NOT_FOUND, no_server) if no_server else None
        if status in _BUSY:
            after = response.headers.get("retry-after", "")
            # a proxy gives the others too when the server ended the connection after it had got the request
            sent = status != 429 and not (status == 503 and after)
            return _refusal(request, 503, INTERNAL_ERROR, f"HTTP status {status}", data=_busy(after, sent=sent))
        # the SDK handles sign-ins, and a 404 inside a session, which means that the session ended
        if (self._signs_in and _requires_sign_in(response)) or (status == 404 and "mcp-session-id" in request.headers):
            return None
        meaning = _MEANING.get(status) or _phrase(status)
        code = METHOD_NOT_FOUND if status == 404 else INTERNAL_ERROR
        return _refusal(request, status, code, f"HTTP status {status}: {meaning}")

    async def aclose(self) -> None:
        await self._inner.aclose()


def _is_message(request: httpx2.Request) -> bool:
    """Whether the request carries an MCP message, not an OAuth exchange."""
    return request.method == "POST" and "text/event-stream" in request.headers.get("accept", "")


def _requires_sign_in(response: httpx2.Response) -> bool:
    return response.status_code == 401 or (response.status_code == 403 and "www-authenticate" in response.headers)


def _describe_unreached(request: httpx2.Request, error: httpx2.TransportError) -> str:
    place = f"{request.url.scheme}://{request.url.netloc.decode()}"
    return f"no response from {place}: {error or type(error).__name__}"


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase.lower()
    except ValueError:
        return "the server refused the request"


def _refusal(
    request: httpx2.Request, status: int, code: int, message: str, *, data: dict[str, object] | None = None
) -> httpx2.Response:
    """Build an error response; `data` says what callwright makes of it."""
    error: dict[str, object] = {"code": code, "message": message, **({} if data is None else {"data": data})}
    body = json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode()
    return httpx2.Response(status, headers={"content-type": "application/json"}, content=body, request=request)


def _busy(seconds: str, *, sent: bool) -> dict[str, object]:
    """Mark an error as retryable after a wait in seconds, if known.

    `sent` says that the server may have got the request, so that only a harmless one can be repeated.
    """
    return {"busy": OWN_MARK, "retryAfter": seconds, "sent": sent}


async def _end_lost_session(request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
    """Return an error of our own for a session that the server does not know, also if it says so in its own words.

    The SDK passes on the words of the server, and the session would stay lost: after every restart of a server.
    """
    body, error = await _read_error(response)
    code, message = (0, "") if error is None else (error.code, error.message)
    # many servers answer with 400 where the protocol wants 404; other codes are about arguments, such as a session_id
    unknown = code in _SESSION_CODES and "session" in message.lower()
    lost = code != METHOD_NOT_FOUND if response.status_code == 404 else unknown
    if lost:
        return _refusal(request, 404, INVALID_REQUEST, SESSION_ENDED, data={"ended": OWN_MARK})
    return _copy(request, response, body)


async def _read_error(response: httpx2.Response) -> tuple[bytes, types.ErrorData | None]:
    """Read a response to its end; return its body and the error of the protocol in it, if it is one."""
    body = b""
    try:
        body = await response.aread()
        return body, types.JSONRPCError.model_validate_json(body, by_name=False).error
    except (httpx2.StreamError, httpx2.TransportError, ValueError):
        return body, None
    finally:
        await response.aclose()


def _copy(request: httpx2.Request, response: httpx2.Response, body: bytes) -> httpx2.Response:
    kind = {"content-type": response.headers.get("content-type", "")}
    return httpx2.Response(response.status_code, headers=kind, content=body, request=request)


class _CappedStream(httpx2.AsyncByteStream):
    """A body that is limited to the size of a message."""

    def __init__(self, inner: httpx2.AsyncByteStream, max_bytes: int) -> None:
        self._inner = inner
        self._max_bytes = max_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        count = 0
        async for chunk in self._inner:
            count += len(chunk)
            if count > self._max_bytes:
                raise httpx2.StreamError(f"it sent one message of more than {self._max_bytes} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()
