"""`mcp__server__tool`: names under which no server can pass its tool off as another's."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from hashlib import sha256

_SERVER_FORBIDDEN = re.compile(r"[^a-zA-Z0-9-]+")
_TOOL_FORBIDDEN = re.compile(r"[^a-zA-Z0-9_.-]")
_LONGEST = 128
_HASH_CHARS = 7


def server_names(names: Iterable[str]) -> dict[str, str]:
    """Give every server a name without a double underscore or one at an edge: where it ends can then be told.

    Otherwise the tool `c` of a server `a__b` and the tool `b__c` of a server `a` would be one.
    """
    return _told_apart({name: _SERVER_FORBIDDEN.sub("_", name).strip("_") for name in sorted(set(names))}, "")


def tool_names(server: str, names: Iterable[str]) -> dict[str, str]:
    """Give every tool of one server its full name; two that differ only in case do not share a rule.

    `server` is a name `server_names` gave.
    """
    return _told_apart({name: _TOOL_FORBIDDEN.sub("_", name) for name in sorted(set(names))}, f"mcp__{server}__")


def _told_apart(wishes: dict[str, str], prefix: str) -> dict[str, str]:
    """A name that had to be changed or cut, or that differs from another in case only, carries a hash of itself."""
    room = _LONGEST - len(prefix)
    plain = Counter(name.casefold() for name, wish in wishes.items() if wish == name and 0 < len(wish) <= room)
    given = {name: prefix + name for name in wishes if plain[name.casefold()] == 1 and wishes[name] == name}
    used = {full.casefold() for full in given.values()}
    for name, wish in wishes.items():
        if name not in given:
            given[name] = next(full for full in _hashed(prefix, wish, name) if full.casefold() not in used)
            used.add(given[name].casefold())
    return given


def _hashed(prefix: str, wish: str, name: str) -> Iterator[str]:
    """Ever longer hashes of the name, for the case that a shorter one is somebody's name."""
    digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    for chars in range(_HASH_CHARS, len(digest)):
        room = _LONGEST - len(prefix) - chars - 1
        yield f"{prefix}{wish[:room]}-{digest[:chars]}" if wish else prefix + digest[:chars]
