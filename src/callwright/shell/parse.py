"""The door to tree-sitter: bash source in, syntax tree out; and a rough split for what it cannot parse."""

from __future__ import annotations

import re
from functools import cache
from time import thread_time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node, Parser

_SHORT_BYTES = 300
_CHUNK_BYTES = 1024
_SECONDS = 0.015
_SECONDS_PER_BYTE = 3e-7  # ten times what well-formed source takes

_NO_START = re.compile(rb"\s*[|&;)]")
_BREAK = re.compile(r"[;&|\n(){}`]+|\$\(|<\(|>\(")
_WORD = re.compile(r"""(?:[^\s"'\\<>]|\\.|"(?:[^"\\]|\\.)*"?|'[^']*'?)+""", re.DOTALL)
_QUOTES = re.compile(r"""["']|\\(?=.)""", re.DOTALL)


@cache
def _parser() -> Parser:
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


def tree(source: bytes) -> Node | None:
    """Parse a script; None when it is so far from bash that the parser would search for long."""
    if _NO_START.match(source):
        return None
    if len(source) <= _SHORT_BYTES:
        return _parser().parse(source).root_node
    return _tree_in_time(source, thread_time() + _SECONDS + len(source) * _SECONDS_PER_BYTE)


def _tree_in_time(source: bytes, deadline: float) -> Node | None:
    # recovering from errors takes quadratic time, and the parser can only be stopped by ending its input
    late = False

    def read(offset: int, _: object) -> bytes:
        nonlocal late
        late = late or thread_time() > deadline
        return b"" if late else source[offset : offset + _CHUNK_BYTES]

    root = _parser().parse(read).root_node
    return None if late else root


def rough_commands(text: str) -> Iterator[list[str]]:
    """Yield word lists that may be commands, ignoring quotes: too many rather than too few."""
    for part in _BREAK.split(text):
        words = [_QUOTES.sub("", word) for word in _WORD.findall(part)]
        if words:
            yield words
