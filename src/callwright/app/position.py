"""Finds the line a value stands on in JSON text, so that a complaint can point at it."""

from collections.abc import Sequence

from callwright.core.json_text import members_at, skip_space


def line_of(text: str, path: Sequence[str | int]) -> int:
    """The line of the value at a path of keys and places; where the path ends early, of the last part that is there."""
    return text.count("\n", 0, _find(text, skip_space(text, 0), path)) + 1


def _find(text: str, at: int, path: Sequence[str | int]) -> int:
    if not path:
        return at
    for member in members_at(text, at):
        if member.name == path[0]:
            found = _find(text, member.value, path[1:])
            return member.begin if found == member.value else found
    return at
