"""Matches the text of a `Resource(…)` rule with resource URIs: narrowly to allow, in every spelling to deny.

`*` stays within a `/` segment, `**` crosses segments, and a backslash before either makes it literal. `?` and `[` are
ordinary characters, because URIs use them.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import unquote

from callwright.core.uri import normalize_uri, split_uri, uri_readings
from callwright.policy.rules.patterns import escape_wildcards

# control characters stand for wildcards while a pattern is normalised: no rule can hold them
_ONE, _MANY = "\x01", "\x02"
_TOKENS = re.compile(r"\\([*\\])|(\*\*+)|(\*)|([\x00-\x1f\x7f]+)")
_STARS = re.compile(r"([\x01\x02])")
_PORT = re.compile(r":\d*\Z")
_DEFAULT_PORTS = {
    "http:": "80",
    "https:": "443",
    "ws:": "80",
    "wss:": "443",
    "ftp:": "21",
    "ssh:": "22",
    "sftp:": "22",
    "postgres:": "5432",
    "postgresql:": "5432",
    "mysql:": "3306",
    "redis:": "6379",
    "mongodb:": "27017",
    "amqp:": "5672",
    "ldap:": "389",
    "ldaps:": "636",
}


@dataclass(frozen=True, slots=True)
class UriGlob:
    """Literal texts with wildcards between them."""

    literals: tuple[str, ...]
    stars: tuple[str, ...] = ()

    @classmethod
    def of(cls, marked: str) -> "UriGlob":
        """Split a text whose wildcards are marked already."""
        pieces = _STARS.split(marked)
        return cls(tuple(pieces[::2]), tuple(pieces[1::2]))

    def matches(self, text: str, *, narrow: bool) -> bool:
        """Compare the whole text, in time linear in its length for each wildcard.

        A narrow wildcard matches no `?` and no `#` unless the pattern has one before it.
        """
        return len(text) in _ends(self.literals, self.stars, text, narrow=narrow)

    def may_lie_below(self, text: str) -> bool:
        """Whether a URI this matches may lie below the text, judged by what stands before the first `**`."""
        folder = text.rstrip("/") + "/"
        first = self.stars.index(_MANY) if _MANY in self.stars else len(self.stars)
        for place, literal in enumerate(self.literals[: first + 1]):
            begins = _ends((*self.literals[:place], ""), self.stars[:place], folder, narrow=False) if place else {0}
            if any(
                start < len(folder) <= start + len(literal) and literal.startswith(folder[start:]) for start in begins
            ):
                return True
        return False


def _ends(literals: tuple[str, ...], stars: tuple[str, ...], text: str, *, narrow: bool) -> set[int]:
    """Return every place in the text a pattern can end at; sets of places, so that no pattern makes it slow."""
    ends = {len(literals[0])} if text.startswith(literals[0]) else set[int]()
    in_query = False
    for star, before, literal in zip(stars, literals, literals[1:], strict=False):
        in_query = in_query or "?" in before or "#" in before
        stops = ("/" if star == _ONE else "") + ("?#" if narrow and not in_query else "")
        spans = _spans(text, ends, stops)
        ends = {place + len(literal) for span in spans for place in _find(text, literal, *span)}
    return ends


def _spans(text: str, starts: set[int], stops: str) -> Iterator[tuple[int, int]]:
    """Yield where a wildcard that begins at one of the starts may end, without reading any place twice."""
    until = -1
    for start in sorted(starts):
        if start > until:
            until = min((place for stop in stops if (place := text.find(stop, start)) >= 0), default=len(text))
            yield start, until


def _find(text: str, literal: str, first: int, last: int) -> Iterator[int]:
    place = text.find(literal, first)
    while 0 <= place <= last:
        yield place
        place = text.find(literal, place + 1)


@dataclass(frozen=True, slots=True)
class ResourcePattern:
    """A URI with wildcards, in the spellings URIs are compared in."""

    normal: UriGlob
    loose: tuple[UriGlob, ...]
    """Without regard to case, encoded and decoded, with and without a slash at the end."""
    names_user: bool

    @property
    def exact(self) -> bool:
        """It matches one resource only."""
        return not self.normal.stars

    def allows(self, uri: str) -> bool:
        """Whether a URI matches in its normal form and in every other way a server could read it."""
        normal = normalize_uri(uri)
        if self.exact:
            return normal == self.normal.literals[0]
        if "@" in split_uri(normal)[1] and not self.names_user:
            return False  # a wildcard in the place of a host must not pass a user name off as one
        readings = uri_readings(uri)
        return bool(readings) and all(self.normal.matches(reading, narrow=True) for reading in readings)

    def catches(self, uri: str) -> bool:
        """Whether a URI matches in any way a server could read it."""
        return any(glob.matches(text, narrow=False) for text in _disguises(uri) for glob in self.loose)

    def may_lie_below(self, uri: str) -> bool:
        """Whether deleting a URI may delete what the pattern names."""
        return any(glob.may_lie_below(text) for text in _disguises(uri) for glob in self.loose)


@lru_cache(maxsize=4096)
def resource_pattern(text: str) -> ResourcePattern:
    """Parse the text in the parentheses of a `Resource` rule."""
    marked = _TOKENS.sub(_mark, text)
    normal = normalize_uri(marked)
    decoded = unicodedata.normalize("NFKC", unquote(normal))
    loose = (each.casefold() for each in (normal, decoded))
    spellings = dict.fromkeys(form for each in loose for form in (each, each.rstrip("/")))
    return ResourcePattern(UriGlob.of(normal), tuple(map(UriGlob.of, spellings)), "@" in split_uri(normal)[1])


def escape_uri(uri: str) -> str:
    """Return the normal form of a URI, escaped so that a rule matches it literally."""
    return escape_wildcards(normalize_uri(uri))


def _mark(token: "re.Match[str]") -> str:
    literal, many, one, _ = token.groups()
    return literal or (_MANY if many else _ONE if one else "")


def _with_default_port(scheme: str, starts: tuple[str, str, str]) -> Iterator[str]:
    """Yield the spellings with the port that the scheme implies, for a pattern that writes it out."""
    port = _DEFAULT_PORTS.get(scheme)
    written = _PORT.search(starts[1])
    if port and (written is None or int(written[0][1:] or port) == int(port)):
        yield from (f"{_PORT.sub('', start)}:{port}" for start in starts)


@lru_cache(maxsize=1024)
def _disguises(uri: str) -> tuple[str, ...]:
    """Return the readings of a URI as a deny rule compares them: also without user, port, query and last slash."""
    found = list[str]()
    for reading in uri_readings(uri) or (normalize_uri(uri),):
        scheme, authority, path, rest = split_uri(reading.casefold())
        host = authority[:2] + authority[2:].rpartition("@")[2]
        bare = _PORT.sub("", host).rstrip(".")
        found += [
            f"{scheme}{start}{end}"
            # a pattern without user or port is meant for all of them, so each URI is also compared without
            for start in (authority, host, bare, *_with_default_port(scheme, (authority, host, bare)))
            for end in (path + rest, path, path.rstrip("/"))
        ]
    return tuple(dict.fromkeys(found))
