"""Finds the line a value stands on in JSON text, so that a complaint can point at it."""

import json
from collections.abc import Sequence

_SPACE = " \t\n\r"
_DECODER = json.JSONDecoder()


def line_of(text: str, path: Sequence[str | int]) -> int:
    """The line of the value at a path of keys and places; where the path ends early, of the last part that is there."""
    return text.count("\n", 0, _find(text, _skip(text, 0), path)) + 1


def _find(text: str, at: int, path: Sequence[str | int]) -> int:
    if not path:
        return at
    for name, key_at, value_at in _members(text, at):
        if name == path[0]:
            found = _find(text, value_at, path[1:])
            return key_at if found == value_at else found
    return at


def _members(text: str, at: int) -> Sequence[tuple[str | int, int, int]]:
    """Every key or place of the object or list at a position, with where it and its value begin."""
    found: list[tuple[str | int, int, int]] = []
    if text[at] not in "{[":
        return found
    named, at = text[at] == "{", _skip(text, at + 1)
    while text[at] not in "}]":
        name: str | int = len(found)
        key_at = at
        if named:
            name, at = _DECODER.raw_decode(text, at)
            at = _skip(text, _skip(text, at) + 1)
        found.append((name, key_at, at))
        at = _skip(text, _DECODER.raw_decode(text, at)[1])
        at = _skip(text, at + 1) if text[at] == "," else at
    return found


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at
