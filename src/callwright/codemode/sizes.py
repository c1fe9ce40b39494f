"""How long values of a program are when written out: in it, one list in a thousand places takes hardly any memory."""

from typing import Any, cast

import pydantic_monty as monty

MAX_CHARS = 10_000_000
"""How long the arguments of one call may be, and the value of the last expression; they are written in one go."""
_PART_CHARS = 8
_BITS_PER_DIGIT = 3


def measure(value: object, most: int = MAX_CHARS) -> int:
    """Return about how many characters a value takes; if there are more than `most`, any number above it.

    Args:
        value: The value.
        most: Where to stop counting.
    """
    chars = 0
    rest: list[Any] = [value]
    while rest and chars <= most:
        part = rest.pop()
        chars += _PART_CHARS
        if isinstance(part, (str, bytes)):
            chars += len(part)
        elif isinstance(part, int):
            chars += part.bit_length() // _BITS_PER_DIGIT
        elif isinstance(part, dict):
            held = cast("dict[Any, Any]", part)
            rest += held.keys()
            rest += held.values()
        elif isinstance(part, (list, tuple, set, frozenset)):
            rest += cast("list[Any]", part)
        elif isinstance(part, monty.MontyClassProxy):
            rest.append(part.attributes)
        elif isinstance(part, BaseException):
            rest += part.args
    return chars
