"""Checks which URLs may be fetched: http and https, allowed domains, hosts on the public network only."""

import ipaddress
import re
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, urlsplit

from callwright.core.errors import ToolFailed, Unsafe
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
        wanted = domain.lower().rstrip(".")
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
    host = (parts.hostname or "").rstrip(".")
    try:
        host = host if host.isascii() else host.encode("idna").decode("ascii")
    except UnicodeError:
        host = ""
    if not host or "%" in host:
        raise Unsafe(f"{url!r} has no valid host name")
    return host


def _percent_encode(text: str) -> str:
    return "".join(
        character if character.isascii() else "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "replace"))
        for character in text
    )
