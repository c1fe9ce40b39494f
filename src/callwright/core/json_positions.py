"""Where the members of objects and lists stand in JSON text, to report and change them there."""

from json import JSONDecoder

from callwright.core._fast import frozen

_SPACE = " \t\r\n"


@frozen
class Member:
    """The positions of one member of an object or list in JSON text."""

    name: str | int
    """The key, or the index in a list."""
    begin: int
    """Where the member begins, with its key."""
    value: int
    """Where its value begins."""
    end: int


def members_at(text: str, at: int) -> list[Member]:
    """Return the members of the object or list at a position of valid JSON text; none for any other value."""
    found: list[Member] = []
    decode = JSONDecoder().raw_decode
    if text[at] not in "{[":
        return found
    keyed, at = text[at] == "{", skip_space(text, at + 1)
    while text[at] not in "}]":
        name: str | int = len(found)
        begin = at
        if keyed:
            name, at = decode(text, at)
            at = skip_space(text, skip_space(text, at) + 1)
        end = decode(text, at)[1]
        found.append(Member(name, begin, at, end))
        at = skip_space(text, end)
        at = skip_space(text, at + 1) if text[at] == "," else at
    return found


def skip_space(text: str, at: int) -> int:
    """Return the next position that is not white space."""
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at
