"""How long values of a program are when written out: in it, one list in a thousand places takes hardly any memory."""

from collections import deque
from collections.abc import Collection
from typing import Any, cast

import pydantic_monty as monty

MAX_CHARS = 10_000_000
"""How long the arguments of one call may be, and the value of the last expression; they are written in one go."""
_PART_CHARS = 8
_BITS_PER_DIGIT = 3
_PLAIN = frozenset((bool, float, type(None)))
"""Types whose values are counted by their number alone: a result may hold a million, and the event loop waits."""


def measure(value: object, most: int = MAX_CHARS) -> int:
    """Return about how many characters a value takes; if there are more than `most`, any number above it.

    Args:
        value: The value.
        most: Where to stop counting.
    """
    if isinstance(value, str):  # what most arguments are
        return _PART_CHARS + len(value)
    chars = _PART_CHARS
    rest: deque[Any] = deque([value])  # wide parts first: what is repeated is seen soon
    while rest and chars <= most:
        part = rest.popleft()
        if isinstance(part, (str, bytes)):
            chars += len(part)
        elif isinstance(part, int):
            chars += part.bit_length() // _BITS_PER_DIGIT
        else:
            for held in _held_by(part):
                chars += _PART_CHARS * len(held)
                rest += [each for each in held if type(each) not in _PLAIN] if chars <= most else ()
    return chars


def _held_by(part: object) -> tuple[Collection[Any], ...]:
    match part:
        case dict():
            held = cast("dict[Any, Any]", part)
            return held.keys(), held.values()
        case list() | tuple() | set() | frozenset():
            return (cast("Collection[Any]", part),)
        case monty.MontyClassProxy():
            return ((part.attributes,),)
        case BaseException():
            return (part.args,)
        case _:
            return ()
