"""Middleware of the HTTP gateway: checks Host and Origin, issues ids to clients, limits the time for requests."""

import asyncio
import hmac
import re
import secrets
from collections.abc import Iterable
from hashlib import sha256
from http.cookies import CookieError, SimpleCookie
from typing import Any

import h11
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

CLIENT_ID = "callwright.client"
"""Where the scope of a request holds the id of its client."""
CLIENT_RETURNED = "callwright.client_returned"
"""Whether the client sent the id back, so that it will be known again."""
_COOKIE = "callwright-client"
_PORT = r"(?::[0-9]{1,5})?"


class HostGuard:
    """Rejects requests for other host names (DNS rebinding) and from other web pages, compared as a whole.

    Args:
        app: What it protects.
        names: Host names of this server, with any port.
        page_names: Host names whose pages may call over plain http, with any port.
        origins: Further origins, exactly as browsers send them.
    """

    def __init__(
        self, app: ASGIApp, *, names: Iterable[str], page_names: Iterable[str], origins: Iterable[str]
    ) -> None:
        self._app = app
        self._host = _any_of(names, "")
        self._page = _any_of(page_names, "http://")
        self._origins = frozenset(origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (refusal := self._check(scope)) is not None:
            await refusal(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _check(self, scope: Scope) -> JSONResponse | None:
        hosts, origins = (_header_values(scope, name) for name in (b"host", b"origin"))
        if len(hosts) != 1 or not self._host.fullmatch(hosts[0]):
            return JSONResponse({"error": "this server does not have the host name of the request"}, 421)
        if len(origins) > 1 or any(not self._page.fullmatch(one) and one not in self._origins for one in origins):
            return JSONResponse({"error": "web pages of this origin may not call this server"}, 403)
        return None


def _any_of(names: Iterable[str], prefix: str) -> re.Pattern[str]:
    choices = "|".join(re.escape(name) for name in names) or r"(?!)"
    return re.compile(f"{re.escape(prefix)}(?:{choices}){_PORT}", re.IGNORECASE)


def _header_values(scope: Scope, wanted: bytes) -> list[str]:
    return [value.decode("latin-1") for name, value in scope["headers"] if name == wanted]


class ClientIds:
    """Gives every client an id that only this server can issue, as a cookie.

    The protocol of 2026-07-28 has no sessions, and a client's own name proves nothing. A client that does not return
    the cookie counts as a new one with every request, and so never sees the state of another.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._key = secrets.token_bytes(32)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        known = self._read(scope)
        issued = known or secrets.token_urlsafe(18)
        credentials = b"\0".join(value.encode("latin-1") for value in _header_values(scope, b"authorization"))
        identity = sha256(issued.encode() + b"\0" + credentials).hexdigest()[:32]
        scope = {**scope, CLIENT_ID: identity, CLIENT_RETURNED: bool(known)}

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start" and not known:
                cookie = f"{_COOKIE}={issued}.{self._sign(issued)}; HttpOnly; SameSite=Strict; Path=/"
                message = {**message, "headers": [*message.get("headers", ()), (b"set-cookie", cookie.encode())]}
            await send(message)

        await self._app(scope, receive, send_with_id)

    def _read(self, scope: Scope) -> str:
        try:
            cookies = SimpleCookie("; ".join(_header_values(scope, b"cookie")))
        except CookieError:
            return ""
        issued, _, signature = cookies[_COOKIE].value.partition(".") if _COOKIE in cookies else ("", "", "")
        valid = issued and hmac.compare_digest(signature.encode(), self._sign(issued).encode())
        return issued if valid else ""

    def _sign(self, issued: str) -> str:
        return hmac.new(self._key, issued.encode(), sha256).hexdigest()


class TimedProtocol(H11Protocol):
    """The HTTP protocol of a server; closes connections whose request does not arrive in time."""

    header_seconds = 10.0
    body_seconds = 60.0
    _timer: asyncio.TimerHandle | None = None
    _timed_state: Any = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] - as uvicorn declares it
        super().connection_made(transport)
        self._time_request()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._time_request()

    def on_response_complete(self) -> None:
        super().on_response_complete()  # which goes on with a request that was sent before this response
        self._time_request()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._stop_timer()

    def _time_request(self) -> None:
        """Limit the time for the headers, and for the body; a few bytes now and then do not extend it.

        Also after the response: what comes of the body of a refused request keeps its connection open.
        """
        state = self.conn.their_state
        if state is not self._timed_state:
            self._stop_timer()
            self._timed_state = state
            limits = {h11.IDLE: self.header_seconds, h11.SEND_BODY: self.body_seconds}
            if state in limits and not self.transport.is_closing():
                self._timer = self.loop.call_later(limits[state], self._give_up)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        self._timer = None
        if self.conn.their_state is self._timed_state and not self.transport.is_closing():
            self.transport.close()
