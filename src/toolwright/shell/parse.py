"""The door to tree-sitter: bash source in, syntax tree out; and a rough split for what it cannot parse."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node, Parser

_BREAK = re.compile(r"[;&|\n(){}`]+|\$\(|<\(|>\(")
_WORD = re.compile(r"""(?:[^\s"'\\<>]|\\.|"(?:[^"\\]|\\.)*"?|'[^']*'?)+""", re.DOTALL)
_QUOTES = re.compile(r"""["']|\\(?=.)""", re.DOTALL)


@cache
def _parser() -> Parser:
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


def tree(source: bytes) -> Node:
    """Parse a script; a tree comes back whatever the source."""
    return _parser().parse(source).root_node


def rough_commands(text: str) -> Iterator[list[str]]:
    """Yield word lists that may be commands, ignoring quotes: too many rather than too few."""
    for part in _BREAK.split(text):
        words = [_QUOTES.sub("", word) for word in _WORD.findall(part)]
        if words:
            yield words
