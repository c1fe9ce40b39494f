"""Middleware of the page: checks host, origin and token of every request, and adds headers that keep pages apart.

A request is refused with a status and one line. There is no cookie: a page on another port could send it along.
"""

import hmac
import json
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any, Final

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Header = tuple[bytes, bytes]
AsgiApp = Callable[[Scope, Receive, Send], Awaitable[None]]

CONTENT_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src 'self' blob: data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
DOCUMENT_HEADERS: Final = (
    (b"content-security-policy", CONTENT_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-embedder-policy", b"require-corp"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=()"),
    (b"cache-control", b"no-store"),
)
DATA_HEADERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)
"""For JSON and live events, which no browser shows as a document: scripts read them, with the token."""
FILE_HEADERS: Final = (
    *DATA_HEADERS[:-1],
    (b"cache-control", b"private, max-age=31536000, immutable"),
)
"""For scripts, styles and pictures, whose address changes with their content."""
_ONCE: Final = (b"host", b"authorization", b"origin", b"content-type", b"sec-fetch-site")


class Guard:
    """Refuses requests that do not come from the page itself, and adds headers to every response.

    Args:
        app: The application behind it.
        token: What the page must send to everything below `/api/`.
        hosts: The values of the Host header that this server answers to, with the port.
    """

    def __init__(self, app: AsgiApp, token: str, hosts: Iterable[str]) -> None:
        self._app = app
        self._token = f"Bearer {token}".encode()
        self.hosts = frozenset(host.encode() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # there is nothing else to talk to
            return
        refusal = self._find_refusal(scope)
        if refusal is not None:
            await _refuse(send, *refusal)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = {name for name, _ in DOCUMENT_HEADERS}
                kept = [(name, value) for name, value in message.get("headers", ()) if name.lower() not in own]
                message["headers"] = [*kept, *_find_headers(scope["path"], message["status"], kept)]
            await send(message)

        await self._app(scope, receive, send_with_headers)

    def _find_refusal(self, scope: Scope) -> tuple[int, str, str] | None:
        """Return the status, code and message of a refusal; None if the request may pass."""
        found: dict[bytes, bytes] = {}
        for raw, value in scope["headers"]:
            name = raw.lower()
            if name in _ONCE and name in found:
                return 400, "invalid", f"the header {name.decode()} is given twice"
            found[name] = value
        host = found.get(b"host")
        if host not in self.hosts:
            return 403, "host", "this server does not answer to this host name; use the link it printed"
        origin = found.get(b"origin")
        if origin is not None and origin != b"http://" + host:
            return 403, "origin", "requests from other pages are refused"
        site = found.get(b"sec-fetch-site")
        api = scope["path"].startswith("/api/")
        if site is not None and site != b"same-origin" and (api or site != b"none"):
            return 403, "origin", "requests from other pages are refused"
        if api and not hmac.compare_digest(found.get(b"authorization", b""), self._token):
            return 401, "token", "the token is missing or wrong; open the link that callwright web printed"
        return None


def _find_headers(path: str, status: int, given: Iterable[Header]) -> tuple[Header, ...]:
    """Return the headers for a response; whatever is not known to need fewer gets those of a document."""
    media_type = next((value for name, value in given if name.lower() == b"content-type"), b"").partition(b";")[0]
    if path.startswith("/static/") and status == 200 and media_type in (b"text/javascript", b"text/css"):
        return FILE_HEADERS
    return DATA_HEADERS if media_type in (b"application/json", b"text/event-stream") else DOCUMENT_HEADERS


async def _refuse(send: Send, status: int, code: str, message: str) -> None:
    body = json.dumps({"error": message, "code": code}).encode() + b"\n"
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
        *DOCUMENT_HEADERS,
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
