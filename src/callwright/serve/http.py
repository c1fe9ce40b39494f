"""Serving over HTTP: by default on this machine only, with a bearer token, and not to web pages."""

import asyncio
import hmac
import re
import secrets
import socket
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from callwright.core.errors import UsageError, check_number
from callwright.serve.access import ClientIds, HostGuard, TimedProtocol
from callwright.serve.gateway import Gateway
from callwright.system.addresses import is_loopback

_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^\s/?#A-Z]+")
_LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """Where to listen, and which clients to accept.

    Raises:
        UsageError: Another host than this machine without a token, a path without a leading slash, no such port, or
            an origin that no browser sends.
    """

    host: str = "127.0.0.1"
    port: int = 8808
    """0 picks a free port."""
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    """Clients must send it as `Authorization: Bearer …`; empty accepts every client, on this machine only."""
    origins: tuple[str, ...] = ()
    """Origins of web pages that may call, such as `https://app.example.com`; browsers let no others call."""
    names: tuple[str, ...] = ()
    """Further host names of this server, such as `tools.example.com`; others are rejected (DNS rebinding)."""
    path: str = "/mcp"
    max_sessions: int = 256
    """Sessions at the same time; a client beyond that gets an error. Idle sessions end after half an hour."""
    max_connections: int = 1024
    """Connections and requests at the same time; beyond that the answer is 503."""

    def __post_init__(self) -> None:
        if not self.token and not is_loopback(self.host):
            raise UsageError(
                f"serving on {self.host} without a token accepts every client; set a token or use a loopback host"
            )
        check_number("port", self.port, 0, most=65_535, whole=True)
        if self.max_sessions < 1 or self.max_connections < 1:
            raise UsageError("max_sessions and max_connections must be at least 1")
        for origin in self.origins:
            if not _ORIGIN.fullmatch(origin):  # compared as a whole, so it would never match
                raise UsageError(f"expected an origin such as https://app.example.com, without a path, got {origin!r}")
        if not self.path.startswith("/"):
            raise UsageError(f"the path must begin with '/', not {self.path!r}")


async def serve_http(gateway: Gateway, options: HttpOptions) -> None:
    """Serve until the task is cancelled or the server is stopped by a signal.

    Args:
        gateway: What to serve.
        options: Where to listen, and which clients to accept.
    """
    async with listen(gateway, options) as (_, serving):
        await wait_until_served(serving)


async def wait_until_served(serving: "asyncio.Task[None]") -> None:
    """Wait for the task of `listen`. A cancellation leaves it alone: `listen` ends it in order.

    Args:
        serving: The task.
    """
    await asyncio.wait({serving})
    serving.result()


@asynccontextmanager
async def listen(gateway: Gateway, options: HttpOptions) -> AsyncGenerator[tuple[str, "asyncio.Task[None]"], None]:
    """Serve while this is open; yields the URL and the serving task.

    Args:
        gateway: The gateway to serve.
        options: Where to listen, and the limits.
    """
    listener = _bind_socket(options)
    config = uvicorn.Config(
        app_of(gateway, options),
        log_level="warning",
        lifespan="on",
        timeout_graceful_shutdown=2,
        http=cast("Any", TimedProtocol),
        ws="none",  # the token and the host name are checked for HTTP
        limit_concurrency=options.max_connections,
    )
    server = _SignalFreeServer(config)
    async with gateway.running():
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            await asyncio.wait({serving, asyncio.ensure_future(server.up.wait())}, return_when=asyncio.FIRST_COMPLETED)
            yield f"http://{_shown_host(options)}:{listener.getsockname()[1]}{options.path}", serving
        finally:
            server.should_exit = True
            await asyncio.gather(serving, return_exceptions=True)


class _SignalFreeServer(uvicorn.Server):
    """A server that reports when it is up, and leaves signals to the owner of the loop."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.up = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.up.set()

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


def _bind_socket(options: HttpOptions) -> socket.socket:
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    listener = socket.socket(family)
    # a restarted server must not wait until old connections have expired
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((options.host, options.port))
    except OSError as error:
        listener.close()
        raise UsageError(f"cannot listen on {options.host} port {options.port}: {error}") from error
    return listener


def _shown_host(options: HttpOptions) -> str:
    """Return the host as URLs and the Host header have it."""
    return f"[{options.host}]" if ":" in options.host else options.host


def app_of(gateway: Gateway, options: HttpOptions) -> ASGIApp:
    """Return the ASGI application, for other servers; keep `gateway.running()` open around it."""
    loopback = [name for name in _LOOPBACK_NAMES if is_loopback(options.host)]
    names = [*loopback, _shown_host(options), *options.names]
    hosts = [shown for name in names for shown in (name, f"{name}:*")]
    pages = [shown for name in loopback for shown in (f"http://{name}", f"http://{name}:*")]
    security = TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=[*pages, *options.origins])
    app = gateway.server.streamable_http_app(
        streamable_http_path=options.path,
        transport_security=security,
        host=options.host,
        max_sessions=options.max_sessions,
    )
    # the SDK compares with wildcards, which accept localhost:80@evil.example
    guarded = HostGuard(ClientIds(app), names=names, page_names=loopback, origins=options.origins)
    checked = _BearerAuth(guarded, options.token) if options.token else guarded
    if not options.origins:
        return checked
    # a browser asks first, without the token, and shows the page only answers and headers that name it
    return CORSMiddleware(
        checked,
        allow_origins=options.origins,
        allow_methods=("GET", "POST", "DELETE"),
        allow_headers=("*",),
        expose_headers=("mcp-session-id", "www-authenticate"),
    )


class _BearerAuth:
    """Rejects requests without the token before anything else reads them."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not self._is_authorized(scope):
            answer = JSONResponse({"error": "unauthorized"}, 401, headers={"WWW-Authenticate": "Bearer"})
            await answer(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _is_authorized(self, scope: Scope) -> bool:
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        # two headers are rejected, since proxies differ on which one counts; compared in constant time
        return len(given) == 1 and hmac.compare_digest(given[0], self._expected)
