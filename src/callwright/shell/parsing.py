"""Parses bash with tree-sitter, and splits scripts that need no parser or that it cannot read.

A line that tree-sitter cannot parse is split roughly, so that deny rules still see its commands.
"""

from __future__ import annotations

import gc
import re
from functools import cache
from time import thread_time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node, Parser

SHORT_BYTES = 300
"""What is shorter is always parsed in time."""
_CHUNK_BYTES = 1024
_SECONDS = 0.015
_SECONDS_PER_BYTE = 3e-7  # ten times what well-formed source takes

_NO_START = re.compile(rb"\s*[|&;)]")
_BEYOND_ASCII = re.compile(rb"[\xc0-\xff][\x80-\xbf]*|[\x80-\xbf]")
_BREAK = re.compile(r"[;&|\n(){}`]+|\$\(|<\(|>\(")
_BRACED = re.compile(r"\{([^\s{},]*(?:,[^\s{},]*)+)\}")
_WORD = re.compile(r"""(?:[^\s"'\\<>]|\\.|"(?:[^"\\]|\\.)*"?|'[^']*'?)+""", re.DOTALL)
_QUOTES = re.compile(r"""["']|\\(?=.)""", re.DOTALL)


@cache
def _parser() -> Parser:
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


def parse_source(source: bytes) -> Node | None:
    """Parse a script; return None when it is not bash or parsing takes too long."""
    if _NO_START.match(source):
        return None
    source = _BEYOND_ASCII.sub(_mask, source)
    parser = _parser()  # loaded before the time begins
    if len(source) <= SHORT_BYTES:
        return parser.parse(source).root_node
    collecting = gc.isenabled()
    gc.disable()  # in a large process a collection takes longer than the line may
    try:
        return _parse_in_time(parser, source, thread_time() + _SECONDS + len(source) * _SECONDS_PER_BYTE)
    finally:
        if collecting:
            gc.enable()


def _mask(found: re.Match[bytes]) -> bytes:
    """Return ordinary letters of the same length for a character beyond ASCII, which to bash is a part of a word.

    The parser looks characters up in tables of 256 entries: one such as U+729B8 after a brace ended the process.
    """
    character = found[0]
    letter = b"\xc3" + bytes([0x80 + character[-1] % 16])  # À to Ï: lines of a text stay different mostly
    return letter * (len(character) // 2) + b"%" * (len(character) % 2)


def _parse_in_time(parser: Parser, source: bytes, deadline: float) -> Node | None:
    # recovering from errors takes quadratic time, and the parser can only be stopped by ending its input
    late = False

    def read(offset: int, _: object) -> bytes:
        nonlocal late
        late = late or thread_time() > deadline
        return b"" if late else source[offset : offset + _CHUNK_BYTES]

    root = parser.parse(read).root_node
    return None if late else root


_HEREDOC = re.compile(r"(?<!<)<<-?[ \t]*(['\"]?)([A-Za-z_]\w*)\1(?![^\s;&|)])")


def close_heredoc(line: str) -> str:
    """Add the end of a heredoc that has neither text nor end: bash takes it for empty, the parser cannot read it."""
    found = _HEREDOC.search(line) if line.count("<<") == 1 and "\n" not in line else None
    return line if found is None else f"{line}\n{found[2]}\n"


_PLAIN_SCRIPT = re.compile(r"[A-Za-z0-9_./:=,+%@^; -]+\Z")
_NOT_COMMANDS = frozenset(
    "if then elif else fi for while until do done case esac in function select time coproc declare typeset export"
    " readonly local unset unsetenv".split()
)


def split_plain(text: str) -> list[str] | None:
    """Split a script of plain words and semicolons into its commands; None if anything else is in it.

    Nothing in such a script needs a parser, and without one its analysis takes half the time.
    """
    if not _PLAIN_SCRIPT.match(text):
        return None
    commands = [part.strip(" ") for part in text.split(";")]
    if len(commands) > 1 and not commands[-1]:
        commands.pop()
    for command in commands:
        name = command.partition(" ")[0]
        if not name or "=" in name or name in _NOT_COMMANDS:
            return None
    return commands


def split_roughly(text: str) -> Iterator[list[str]]:
    """Yield word lists that may be commands, ignoring quotes; better too many than too few: `{rm,x}` is `rm x`."""
    loose = _BRACED.sub(lambda found: found[1].replace(",", " "), text)
    for part in _BREAK.split(text if loose == text else f"{text}\n{loose}"):
        words = _WORD.findall(part)
        if _QUOTES.search(part):
            words = [_QUOTES.sub("", word) for word in words]
        if words:
            yield words
