"""Names as providers allow them, and back."""

import re
from collections.abc import Iterable, Iterator
from hashlib import sha256

_ALLOWED = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_FORBIDDEN = re.compile(r"[^a-zA-Z0-9_-]")
_LONGEST = 64
_HASH_CHARS = 7


def wire_names(names: Iterable[str]) -> dict[str, str]:
    """Give every name one that `^[a-zA-Z0-9_-]{1,64}$` accepts; no two share one, whatever the order.

    A name that is allowed keeps itself. The others have their forbidden characters replaced and, where that is
    not unique or too long, carry a hash of the name they stand for.
    """
    ordered = sorted(set(names))
    taken = {name for name in ordered if _ALLOWED.fullmatch(name)}
    wishes = {name: _FORBIDDEN.sub("_", name) for name in ordered if name not in taken}
    counts: dict[str, int] = {}
    for wish in wishes.values():
        counts[wish] = counts.get(wish, 0) + 1
    free = {
        name: wish
        for name, wish in wishes.items()
        if 0 < len(wish) <= _LONGEST and wish not in taken and counts[wish] == 1
    }
    given = {name: name for name in taken} | free
    used = set(given.values())
    for name, wish in wishes.items():
        if name not in free:
            given[name] = next(wire for wire in _hashed(name, wish) if wire not in used)
            used.add(given[name])
    return given


def _hashed(name: str, wish: str) -> Iterator[str]:
    """Ever longer hashes of the name, for the case that a shorter one is somebody's name."""
    digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    for chars in range(_HASH_CHARS, _LONGEST):
        yield f"{wish[: _LONGEST - chars - 1]}_{digest[:chars]}"
