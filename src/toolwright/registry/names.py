"""Names as providers allow them, and back."""

import re
from collections.abc import Iterable
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
    given = {name: name for name in taken}
    for name, wish in wishes.items():
        alone = len(wish) <= _LONGEST and wish not in taken and counts[wish] == 1
        given[name] = wish if alone else _hashed(name, wish)
    return given


def _hashed(name: str, wish: str) -> str:
    mark = sha256(name.encode()).hexdigest()[:_HASH_CHARS]
    return f"{wish[: _LONGEST - _HASH_CHARS - 1]}_{mark}"
