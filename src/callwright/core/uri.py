"""Normalises resource URIs and lists the other texts a server could take a URI for.

normalize_uri("DB://Host/a/../%75sers")     db://host/users
uri_readings("db://host/a/..%2fusers")      db://host/a/..%2Fusers, db://host/a/../users, db://host/users
"""

import re
import unicodedata
from functools import lru_cache
from urllib.parse import quote, unquote

_PARTS = re.compile(r"([^:/?#]+:)?(//[^/?#]*)?([^?#]*)(.*)", re.DOTALL)  # RFC 3986, appendix B
ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+-]{0,20}://[^\s'\"]*")
"""Finds an address in a word of a command line."""
_LONE_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
_UNRESERVED = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~")
_IGNORED = re.compile(r"[\x00-\x1f\x7f]")
_SLASHES = re.compile(r"/{2,}")
_ENCODINGS = 5
"""How many times a URI may be percent-encoded before its readings count as unknown."""


@lru_cache(maxsize=1024)
def normalize_uri(uri: str) -> str:
    """Return the normal form of RFC 3986, section 6.2.2.

    Scheme and host are in lower case, needless percent-encoding is undone, dot segments are removed. Two URIs with one
    normal form name the same resource.
    """
    return _build(_encode(unicodedata.normalize("NFC", uri)))


@lru_cache(maxsize=1024)
def uri_readings(uri: str) -> tuple[str, ...]:
    """Return every text a server may understand a URI as, the most decoded last; empty when they cannot be listed.

    Servers differ in how often they decode, in whether they remove dot segments, and in what they do with backslashes,
    repeated slashes and control characters. A URI that is not valid UTF-8, or is encoded many times, has no readings.
    """
    found = [normalize_uri(uri)]
    text = uri
    for _ in range(_ENCODINGS):
        plain = _IGNORED.sub("", unicodedata.normalize("NFKC", text)).replace("\\", "/").strip()
        found += [_build(plain, keep_dots=True), _build(plain, collapse=True)]
        decoded = unquote(text)
        if "\ufffd" in decoded:
            return ()
        if decoded == text:
            return tuple(reversed(dict.fromkeys(reversed(found))))  # keeps the last place of what occurs twice
        text = decoded
    return ()


def split_uri(uri: str) -> tuple[str, str, str, str]:
    """Return the scheme with its colon, the authority with its slashes, the path, and query and fragment together.

    A part that is missing is empty; joined they are the URI again.
    """
    found = _PARTS.fullmatch(uri)
    if found is None:  # cannot happen, because every part may be empty
        return "", "", uri, ""
    scheme, authority, path, rest = found.groups(default="")
    return scheme, authority, path, rest


def _encode(text: str) -> str:
    """Spell each character in its one normal way: unreserved ones plain, escapes in capitals."""

    def respell(escape: "re.Match[str]") -> str:
        character = chr(int(escape[1], 16))
        return character if character in _UNRESERVED else escape[0].upper()

    return _ESCAPE.sub(respell, _NOT_ASCII.sub(lambda found: quote(found[0]), _LONE_PERCENT.sub("%25", text)))


def _build(uri: str, *, keep_dots: bool = False, collapse: bool = False) -> str:
    scheme, authority, path, rest = split_uri(uri)
    path = _SLASHES.sub("/", path) if collapse else path
    path = path if keep_dots else _remove_dots(path)
    user, at, host = authority.rpartition("@")
    authority = f"{user}{at}{host.lower()}"
    authority = authority[:-1] if authority.endswith(":") else authority  # an empty port
    # what is left of a path must not be taken for an authority or a scheme
    if not authority and path.startswith("//"):
        path = f"/.{path}"
    elif not scheme and not authority and ":" in path.partition("/")[0]:
        path = f"./{path}"
    return f"{scheme.lower()}{authority}{path}{rest}"


def _remove_dots(path: str) -> str:
    if "." not in path:
        return path
    kept = list[str]()
    segments = path.split("/")
    for segment in segments:
        if segment == "..":
            if kept and kept != [""]:  # the first slash stays
                kept.pop()
        elif segment != ".":
            kept.append(segment)
    ends_in_folder = segments[-1] in (".", "..") and kept and kept[-1]
    return "/".join(kept) + ("/" if ends_in_folder or kept == [""] else "")
