"""Reads words and redirects out of syntax nodes."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from callwright.core.access import Access, Reach, ReadPath, WritePath
from callwright.shell.findings import Ledger, Redirects
from callwright.shell.words import (
    Certainty,
    Folders,
    Piece,
    Word,
    ansi_c,
    bare,
    home,
    join,
    only,
    places,
    protected,
    quoted,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tree_sitter import Node

_PLAIN = re.compile(r"[A-Za-z0-9_./:=,+%@^-]+\Z")
_LIVE_IN_DOUBLE = re.compile(r"(?<!\\)(?:\\\\)*(?:`|\$[A-Za-z0-9_{(!?@#*$'\"\[-])")
_LIVE_BARE = re.compile(r"(?<!\\)(?:\\\\)*[`$]")
_DESCRIPTOR = re.compile(r"(?:\d+-?|-)\Z")
_NAME = re.compile(r"\$\{?([A-Za-z_][A-Za-z0-9_]*)\}?\Z")
_SAFE_EXPANSION = re.compile(r"\$(?:\{#?(?:[A-Za-z_][A-Za-z0-9_]*|[0-9?$#@*])\}|[A-Za-z_][A-Za-z0-9_]*|[0-9?$#!@*-])\Z")
_NUMBERS_ONLY = re.compile(r"[\d\s()+*/%<>=!&|^~?:,-]*\Z")
_SOCKET = re.compile(r"/dev/(?:tcp|udp)/")
_HARMLESS_TARGETS = frozenset(("/dev/null", "/dev/stdout", "/dev/stderr", "/dev/fd/1", "/dev/fd/2"))
_STAND_IN = "/dev/fd/63"  # what bash puts in place of a process substitution


class Reader:
    """Reads the words of one script; what is not literal is noted in the ledger or in the word."""

    def __init__(self, source: bytes, ledger: Ledger) -> None:
        self.source = source
        self.ledger = ledger
        self.folders: Folders = None
        # where bytes and letters coincide a node's source is one slice
        self._letters = source.decode("ascii") if source.isascii() else None

    def text(self, node: Node) -> str:
        """Return a node's source."""
        return self.slice(node.start_byte, node.end_byte)

    def slice(self, start: int, end: int) -> str:
        """Return the source between two bytes."""
        if self._letters is not None:
            return self._letters[start:end]
        return self.source[start:end].decode("utf-8", "replace")

    def word(self, node: Node) -> Word:
        """Read one argument."""
        source = self.text(node)
        kind = node.type
        if kind == "word":
            return self.bare_word(source)
        if kind == "raw_string":
            return Word(source[1:-1])
        return join(self._pieces(node, source), source)

    def bare_word(self, source: str) -> Word:
        """Read an argument without quotes."""
        if _PLAIN.match(source):
            return Word(source)
        return join((self._bare(source),), source)

    def sweep_words(self, node: Node) -> None:
        """Report the substitutions in a construct that is otherwise not followed."""
        for child in node.children:
            if child.is_named:
                self.word(child)

    def statements(self, node: Node) -> None:
        """Report the statements in a place where no statement belongs; the walk knows how."""
        raise NotImplementedError

    def substitution(self, node: Node) -> None:
        """Report the commands of a substitution; the walk knows how."""
        raise NotImplementedError

    def _pieces(self, node: Node, source: str) -> list[Piece]:
        match node.type:
            case "concatenation":
                pieces: list[Piece] = []
                children = node.children
                self.check_adjacent(children)
                for child in children:
                    pieces.extend(self._pieces(child, self.text(child)))
                return pieces
            case "word" | "test_operator" | "=" | "==" | "=~":
                return [self._bare(source)]
            case "number" if not node.child_count:
                return [self._bare(source)]
            case "brace_expression" | "variable_name":
                return [Piece(source, source)]
            case "raw_string":
                return [protected(source[1:-1])]
            case "string":
                return [self._string(node, source)]
            case "ansi_c_string":
                return [self._ansi_c(source)]
            case _:
                return [self._expansion(node, source)]

    def _bare(self, source: str) -> Piece:
        if _LIVE_BARE.search(source):
            self.ledger.object(f"{source} hides an expansion")
        return bare(source)

    def _ansi_c(self, source: str) -> Piece:
        if "\\" in source:
            self.ledger.object("letters are spelled out as codes")
        return ansi_c(source[2:-1])

    def _string(self, node: Node, source: str) -> Piece:
        inner = source[1:-1]
        live = [child for child in node.children if child.type not in ('"', "string_content")]
        if not live:
            if _LIVE_IN_DOUBLE.search(inner):
                self.ledger.object(f"{source} hides an expansion")
            return quoted(inner)
        pieces = [self._expansion(child, self.text(child)) for child in live]
        if any(piece.dynamic for piece in pieces) or len(live) > 1:
            return quoted(inner, dynamic=True)
        return quoted(inner.replace(self.text(live[0]), pieces[0].text, 1))

    def _expansion(self, node: Node, source: str) -> Piece:
        match node.type:
            case "simple_expansion" | "expansion":
                return self._variable(node, source)
            case "command_substitution":
                self.substitution(node)
                return Piece(source, source, dynamic=True)
            case "process_substitution":
                self.substitution(node)
                return protected(_STAND_IN)
            case "arithmetic_expansion":
                return self._arithmetic(node, source)
            case _:
                self.ledger.object(f"{source} is not understood")
                self.statements(node)
                return Piece(source, source, dynamic=True)

    def _variable(self, node: Node, source: str) -> Piece:
        name = _NAME.match(source)
        value = self._known(name[1]) if name else None
        if value is not None:
            return protected(value)
        if not _SAFE_EXPANSION.match(source):
            self.ledger.object(f"{source} does more than read a variable")
            self.sweep_words(node)
        return Piece(source, source, dynamic=True)

    def _known(self, name: str) -> str | None:
        if name in self.ledger.variables:
            return None
        if name == "HOME":
            return home()
        return only(self.folders) if name == "PWD" else None

    def _arithmetic(self, node: Node, source: str) -> Piece:
        if not _NUMBERS_ONLY.match(source.strip("$()[] ")):
            self.ledger.object("arithmetic may run what variables contain")
            self._sweep_arithmetic(node)
        return Piece(source, source, dynamic=True)

    def _sweep_arithmetic(self, node: Node) -> None:
        pending = list(node.children)
        while pending:
            child = pending.pop()
            if child.type == "command_substitution":
                self.substitution(child)
            else:
                pending.extend(child.children)

    def check_adjacent(self, nodes: Sequence[Node]) -> None:
        """Doubt the tree when parts of one word do not touch."""
        if any(one.end_byte != other.start_byte for one, other in pairwise(nodes)):
            self.ledger.doubt_parser("parts of a word are apart")

    def check_gaps(self, nodes: Sequence[Node]) -> None:
        """Doubt the tree when anything but blanks stands between words, such as the end of a line."""
        for one, other in pairwise(nodes):
            if self.source[one.end_byte : other.start_byte].strip(b" \t"):
                self.ledger.doubt_parser("words are not clearly apart")

    def redirect(self, node: Node) -> tuple[Redirects, tuple[Word, ...]]:
        """Read a redirect: what it touches, and the words the parser swallowed after its target."""
        operator, words = "", list[Word]()
        self.check_gaps(node.children)
        for child in node.children:
            if child.type == "file_descriptor":
                continue
            if not operator and not child.is_named:
                operator = child.type
            else:
                words.append(self.word(child))
        if operator == "<<<":
            fed = tuple(word.text for word in words[:1])
            return Redirects(present=True, fed=fed), tuple(words[1:])
        if not words:
            # ">&-" and "<&-" close a descriptor and have no target of their own
            doubt = "" if operator in (">&-", "<&-") else "a redirect has no target"
            return Redirects(present=True, doubt=doubt), ()
        return self._target(operator, words[0]), tuple(words[1:])

    def _target(self, operator: str, word: Word) -> Redirects:
        if operator in (">&", "<&") and word.literal and _DESCRIPTOR.match(word.text):
            return Redirects(present=True)
        text = word.text
        if word.certainty is not Certainty.LITERAL:
            self.ledger.object(f"the redirect's target {text} is not literal")
        if _SOCKET.match(text):
            return Redirects((Reach(text),), f"{text} is a network connection", True)
        if text in _HARMLESS_TARGETS:
            return Redirects(present=True)
        if operator in ("<", "<&"):
            return Redirects(self._paths(ReadPath, text), "", True)
        return Redirects(self._paths(WritePath, text), f"it writes {text}", True)

    def _paths(self, kind: type[ReadPath] | type[WritePath], text: str) -> tuple[Access, ...]:
        return tuple(kind(path) for path in places(text, self.folders))
