"""Where the members of objects and lists stand in JSON text."""

import json
from dataclasses import dataclass

_SPACE = " \t\r\n"
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class Member:
    """One value with its key, or with its place in a list, by where they stand."""

    name: str | int
    begin: int
    value: int
    end: int


def members_at(text: str, at: int) -> list[Member]:
    """Every member of the object or list at a position, in order; none of any other value. The text must be valid."""
    found: list[Member] = []
    if text[at] not in "{[":
        return found
    keyed, at = text[at] == "{", skip_space(text, at + 1)
    while text[at] not in "}]":
        name: str | int = len(found)
        begin = at
        if keyed:
            name, at = _DECODER.raw_decode(text, at)
            at = skip_space(text, skip_space(text, at) + 1)
        end = _DECODER.raw_decode(text, at)[1]
        found.append(Member(name, begin, at, end))
        at = skip_space(text, end)
        at = skip_space(text, at + 1) if text[at] == "," else at
    return found


def skip_space(text: str, at: int) -> int:
    """The next position that is not blank."""
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at
