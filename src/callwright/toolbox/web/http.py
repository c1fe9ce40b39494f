"""One HTTP GET to the public network, connected to exactly the address that was checked, limited in size and time."""

import http.client
import ipaddress
import re
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from email.message import Message
from typing import Any
from urllib.parse import SplitResult, urlsplit

from callwright.core.errors import ToolFailed, Transient, Unsafe
from callwright.system.addresses import is_public

_PORTS = {"http": 80, "https": 443}
# URL parsers disagree about these characters, so one host could be checked and another one reached
_ODD = re.compile(r"[\x00-\x20\x7f\\]")


@dataclass(frozen=True, slots=True)
class Target:
    """A parsed and well-formed URL."""

    url: str
    scheme: str
    host: str
    """Lower case, in ASCII, without a final dot."""
    port: int
    path: str

    @property
    def authority(self) -> str:
        """The value of the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


def parse_url(url: str) -> Target:
    """Parse a URL.

    Raises:
        Unsafe: It is not a plain http or https URL.
    """
    if _ODD.search(url):
        raise Unsafe(f"{url!r} contains whitespace, a backslash or a control character; write it percent-encoded")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise Unsafe(f"{url!r} is not a valid URL: {error}") from None
    if parts.scheme not in _PORTS:
        raise Unsafe(f"{url!r} cannot be fetched: only http:// and https:// can")
    if "@" in parts.netloc:
        raise Unsafe(f"{url!r} contains a user name, which can disguise the host; remove the part before the @")
    host = _host(parts, url)
    query = f"?{parts.query}" if parts.query else ""
    path = _percent_encode((parts.path or "/") + query)
    return Target(url, parts.scheme, host, _PORTS[parts.scheme] if port is None else port, path)


def domain_allowed(domains: Sequence[str], host: str) -> bool:
    """Tell whether a host is in a list of domains, compared by whole labels; `*.` matches all subdomains."""
    for domain in domains:
        wanted = _spell_in_ascii(domain.lower().rstrip("."))
        if host == wanted or (wanted.startswith("*.") and host.endswith(wanted[1:])):
            return True
    return False


def resolve(target: Target, *, loopback: bool = False) -> list[tuple[Any, ...]]:
    """Resolve a host and return the addresses to connect to.

    Connect to these, never to the name: a second lookup may return another address.

    Raises:
        Unsafe: Any of its addresses is not public.
        ToolFailed: The host is unknown.
    """
    try:
        found = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise ToolFailed(f"cannot find the host {target.host!r}: {error}") from None
    for _, _, _, _, place in found:
        address = ipaddress.ip_address(str(place[0]).partition("%")[0])
        if not (is_public(address) or (loopback and address.is_loopback)):
            raise Unsafe(f"{target.host} is at {address}, which is not on the public network and must not be fetched")
    return [(family, place) for family, _, _, _, place in found]


def _host(parts: SplitResult, url: str) -> str:
    host = _spell_in_ascii((parts.hostname or "").rstrip("."))
    if not host or "%" in host:
        raise Unsafe(f"{url!r} has no valid host name")
    return host


def _spell_in_ascii(name: str) -> str:
    """Return a host name as it is looked up; empty if there is no such name."""
    try:
        return name if name.isascii() else name.encode("idna").decode("ascii")
    except UnicodeError:
        return ""


def _percent_encode(text: str) -> str:
    return "".join(
        character if character.isascii() else "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "replace"))
        for character in text
    )


_CHUNK = 64 * 1024
_CONNECT_SECONDS = 10.0
_HEADERS = {
    "User-Agent": "callwright (web_fetch)",
    "Accept": "text/markdown, text/html;q=0.9, text/plain;q=0.8, */*;q=0.1",
    "Accept-Encoding": "gzip, deflate",
    "Connection": "close",  # one request per connection: nothing to pool, nothing to leak
}


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """The limits of one fetch."""

    seconds: float = 30.0
    bytes: int = 5 * 1024 * 1024
    """Size of the body after decompression."""


@dataclass(frozen=True, slots=True)
class HttpReply:
    """The response of the server."""

    status: int
    phrase: str
    headers: Message
    body: bytes
    cut: bool = False
    """The body was longer than the limit, or its packed data broke off."""


class HttpExchange:
    """One GET request. It blocks, so it runs in a thread; `abort` ends it from another.

    Args:
        limits: Time and size.
        tls: TLS settings instead of the default ones.
        loopback: Allow this machine, for tests.
    """

    def __init__(self, limits: FetchLimits, *, tls: ssl.SSLContext | None = None, loopback: bool = False) -> None:
        self._limits = limits
        self._tls = tls
        self._loopback = loopback
        self._deadline = time.monotonic() + limits.seconds
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._aborted = False

    def get(self, target: Target) -> HttpReply:
        """Send the request and read the response; redirects, proxies and cookies are not used.

        Raises:
            Unsafe: The address is not public, or the certificate is not valid.
            Transient: The connection failed or timed out.
            ToolFailed: The host is unknown, or the body cannot be decompressed.
        """
        connection = http.client.HTTPConnection(target.host, target.port)
        connection.auto_open = 0  # it would resolve the name again, perhaps to another address
        try:
            connection.sock = self._connect(target)
            connection.putrequest("GET", target.path, skip_host=True, skip_accept_encoding=True)
            for name, value in {"Host": target.authority, **_HEADERS}.items():
                connection.putheader(name, value)
            connection.endheaders()
            with connection.getresponse() as response:  # closed here: what it holds of the socket outlives an error
                body, cut = self._body(response)
                return HttpReply(response.status, response.reason, response.headers, body, cut)
        except ssl.SSLCertVerificationError as error:
            raise Unsafe(f"the certificate of {target.host} is not valid: {error.verify_message}") from None
        except TimeoutError:
            raise Transient(f"{target.host} did not answer in time") from None
        except (OSError, http.client.HTTPException) as error:
            raise Transient(f"the connection to {target.host} failed: {error or type(error).__name__}") from None
        finally:
            connection.close()

    def abort(self) -> None:
        """Shut down the connection, so that a blocked read returns."""
        with self._lock:
            self._aborted = True
            if self._socket is not None:
                with suppress(OSError):
                    self._socket.shutdown(socket.SHUT_RDWR)

    def _connect(self, target: Target) -> socket.socket:
        failure: OSError = ConnectionError("no address to connect to")
        for family, place in resolve(target, loopback=self._loopback):
            connected = socket.socket(family, socket.SOCK_STREAM)
            try:
                connected.settimeout(min(_CONNECT_SECONDS, self._remaining()))
                connected.connect(place)
                return self._hold(self._secure(connected, target))
            except OSError as error:
                connected.close()
                if isinstance(error, ssl.SSLError):  # another address of the host would fail the same way
                    raise
                failure = error
            except BaseException:
                connected.close()
                raise
        raise failure

    def _secure(self, connected: socket.socket, target: Target) -> socket.socket:
        connected.settimeout(self._remaining())
        if target.scheme == "http":
            return connected
        context = self._tls or ssl.create_default_context()
        return context.wrap_socket(connected, server_hostname=target.host)

    def _hold(self, connected: socket.socket) -> socket.socket:
        with self._lock:
            self._socket = connected
            if self._aborted:
                connected.close()  # with TLS it is not the one that was connected
                raise TimeoutError
        return connected

    def _remaining(self) -> float:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def _body(self, response: http.client.HTTPResponse) -> tuple[bytes, bool]:
        unpack = _make_unpacker(response.headers.get("Content-Encoding", ""))
        expected = response.length or 0
        body = bytearray()
        received = 0
        # both sides are limited: a body may be huge packed, or huge unpacked
        while received <= self._limits.bytes and len(body) <= self._limits.bytes:
            if self._socket is not None:
                self._socket.settimeout(self._remaining())
            data = response.read1(_CHUNK)
            if not data:
                if received < expected:  # which http.client does not mind
                    raise http.client.IncompleteRead(bytes(body), expected - received)
                return bytes(body), unpack is not None and not unpack.complete
            received += len(data)
            body += data if unpack is None else unpack(data, self._limits.bytes + 1 - len(body))
        return bytes(body[: self._limits.bytes]), True


def _make_unpacker(encoding: str) -> "_Unpacker | None":
    names = [name.strip().lower() for name in encoding.split(",") if name.strip().lower() not in ("", "identity")]
    if not names:
        return None
    if len(names) > 1 or names[0] not in ("gzip", "x-gzip", "deflate"):
        raise ToolFailed(f"the response is encoded as {encoding!r}, which was not requested and cannot be decoded")
    return _Unpacker()


class _Unpacker:
    """Decompresses at most the requested number of bytes, so that a small body cannot fill the memory."""

    def __init__(self) -> None:
        self._engine: Any = zlib.decompressobj(zlib.MAX_WBITS | 32)
        self._begun = False

    @property
    def complete(self) -> bool:
        """Whether the end of the packed data has come; a server may break off, or send nothing at all."""
        return self._engine.eof or not self._begun

    def __call__(self, data: bytes, room: int) -> bytes:
        try:
            out = self._engine.decompress(data, room)
        except zlib.error as error:
            if self._begun:
                raise ToolFailed(f"the response cannot be decompressed: {error}") from None
            self._engine = zlib.decompressobj(-zlib.MAX_WBITS)  # some servers send a raw stream as deflate
            out = self._raw(data, room)
        self._begun = True
        return out

    def _raw(self, data: bytes, room: int) -> bytes:
        try:
            return self._engine.decompress(data, room)
        except zlib.error as error:
            raise ToolFailed(f"the response cannot be decompressed: {error}") from None
