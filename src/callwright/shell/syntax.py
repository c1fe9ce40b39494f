"""The door to tree-sitter: bash source in, syntax tree out; and a rough split for what it cannot parse.

Walks the syntax tree of a line and reports every simple command in it, following cd.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from time import thread_time
from typing import TYPE_CHECKING, ClassVar

from callwright.shell.command_reader import CommandReader, Exits, plain_pattern
from callwright.shell.findings import Around, Found, Ledger, handed_on
from callwright.shell.words import Folders, Word, either

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


_MAX_DEPTH = 60
_PUNCTUATION = frozenset(
    "; & \n ;; ;& ;;& ( ) { } do done then fi if elif else while until for in case esac | |& && || ! function".split(
        " "
    )
)
_MOVES = re.compile(rb"\b(?:cd|pushd|popd)\b")


class Walk(CommandReader):
    """One pass over one script."""

    def __init__(self, source: bytes, ledger: Ledger, around: Around, report: Callable[[Found], None]) -> None:
        super().__init__(source, ledger, around, report)
        self._depth = 0
        self._entered: dict[tuple[Around, str], Around] = {}

    def visit(self, node: Node, folders: Folders) -> Exits:
        """Report what is below a node and say where the shell may stand afterwards."""
        method = self.methods.get(node.type)
        if method is None:
            return self._strange(node, folders)
        if self._depth > _MAX_DEPTH:
            self.ledger.object("it is nested too deeply")
            self.sweep(node, folders)
            return None, None
        self._depth += 1
        exits = method(self, node, folders)
        self._depth -= 1
        return exits

    def sweep(self, node: Node, folders: Folders) -> None:
        """Report every command below a node without recursion: for what is too deep or not understood."""
        pending = [node]
        while pending:
            here = pending.pop()
            if here.type == "command":
                words = tuple(Word(self.text(child)) for child in here.children if child.type != "variable_assignment")
                self.report(Found(words, self.text(here), None, self.around))
            pending.extend(reversed(here.children))

    def substitution(self, node: Node) -> None:
        """Report what runs in a subshell of its own."""
        kept = self.around
        if not kept.inside:
            self.around = self._inside(kept, node.type.replace("_", " "))
        self._sequence(node, self.folders)
        self.around = kept

    def _inside(self, around: Around, kind: str) -> Around:
        """The same value for the same surroundings: commands that were met in them before are known by it."""
        known = self._entered.get((around, kind))
        if known is None:
            known = self._entered[around, kind] = around._replace(inside=kind)
        return known

    def statements(self, node: Node) -> None:
        """Report what a construct holds that is not understood."""
        if node.type in self.visits:
            self.visit(node, self.folders)
            return
        for child in node.children:
            if child.is_named:
                if child.type in self.visits:
                    self.visit(child, self.folders)
                else:
                    self.word(child)

    def _strange(self, node: Node, folders: Folders) -> Exits:
        self.ledger.object(f"{node.type.replace('_', ' ')} is not understood")
        for child in node.children:
            if child.is_named:
                self.visit(child, folders)
        return None, None

    def _sequence(self, node: Node, folders: Folders) -> Exits:
        ok = bad = before = folders
        for child in node.children:
            kind = child.type
            if kind in self.visits:
                before = either(ok, bad)
                ok, bad = self.visit(child, before)
            elif kind == "&":
                ok = bad = before
            elif kind in ("((", "$(", "`", "<(", ">(", "))"):
                if kind == "((":
                    self.ledger.object("arithmetic may run what variables contain")
            elif kind not in _PUNCTUATION:
                ok, bad = self._strange(child, either(ok, bad))
        return ok, bad

    def _apart(self, node: Node, folders: Folders) -> Exits:
        self._sequence(node, folders)
        return folders, folders

    def _list(self, node: Node, folders: Folders) -> Exits:
        # a list of three thousand commands is three thousand nodes deep on its left side
        chain: list[tuple[str, Node]] = []
        while node.type == "list":
            parts = node.children
            if len(parts) > 3:  # left, operator, right
                parts = [child for child in parts if child.type != "comment"]
            if len(parts) != 3 or parts[1].type not in ("&&", "||"):  # left, operator, right
                return self._strange(node, folders)
            chain.append((parts[1].type, parts[2]))
            node = parts[0]
        ok, bad = self.visit(node, folders)
        for operator, right in reversed(chain):
            if operator == "&&":
                ok, failed = self.visit(right, ok)
                bad = either(bad, failed)
            else:
                succeeded, bad = self.visit(right, bad)
                ok = either(ok, succeeded)
        return ok, bad

    def _pipeline(self, node: Node, folders: Folders) -> Exits:
        starts: list[int] = []
        kept = self.feed
        for child in node.children:
            if child.type in self.visits:
                starts.append(len(self.ledger.commands))
                self.visit(child, folders)
                self.feed = handed_on(self.ledger.commands[starts[-1] :], self.feed, folders)
            elif child.type not in _PUNCTUATION:
                self._strange(child, folders)
        self.feed = kept
        self.follow_pipes(starts)
        return folders, folders

    def _negated(self, node: Node, folders: Folders) -> Exits:
        ok, bad = self._sequence(node, folders)
        return bad, ok

    def _branches(self, node: Node, folders: Folders) -> Exits:
        ok, bad = self._loose(node, folders)
        after = either(either(ok, bad), folders)
        return after, after

    def _loose(self, node: Node, folders: Folders) -> Exits:
        """Walk parts that may or may not run, in any number: a cd among them may have happened or not."""
        if _MOVES.search(self.source, node.start_byte, node.end_byte):
            folders = None
        for child in node.children:
            if child.type in self.visits:
                self.visit(child, folders)
            elif child.type not in _PUNCTUATION:
                self._part(child, folders)
        return folders, folders

    def _part(self, node: Node, folders: Folders) -> None:
        self.folders = folders
        if node.type in ("select", "extglob_pattern", "ERROR"):
            if node.type != "extglob_pattern" or not plain_pattern(self.text(node)):
                self._strange(node, folders)
        elif node.type == "variable_name":
            self.set_variable(self.text(node), None)
        else:
            self.word(node)

    def _function(self, node: Node, folders: Folders) -> Exits:
        self.ledger.object("a function may stand in for a program")
        kept = self.around
        self.around = kept._replace(inside="a function", doubt="it is in a function")
        for child in node.children:
            if child.type in self.visits:
                self.visit(child, None)
        self.around = kept
        return folders, folders

    def _quiet(self, node: Node, folders: Folders) -> Exits:
        return folders, folders

    methods: ClassVar[dict[str, Callable[[Walk, Node, Folders], Exits]]] = {
        "program": _sequence,
        "list": _list,
        "pipeline": _pipeline,
        "command": CommandReader.command,
        "redirected_statement": CommandReader.redirected,
        "negated_command": _negated,
        "compound_statement": _sequence,
        "do_group": _sequence,
        "subshell": _apart,
        "if_statement": _branches,
        "elif_clause": _branches,
        "else_clause": _branches,
        "while_statement": _branches,
        "for_statement": _branches,
        "case_statement": _branches,
        "case_item": _branches,
        "function_definition": _function,
        "test_command": CommandReader.test,
        "declaration_command": CommandReader.declaration,
        "unset_command": CommandReader.declaration,
        "variable_assignment": CommandReader.assignments,
        "variable_assignments": CommandReader.assignments,
        "file_redirect": CommandReader.lone_redirect,
        "comment": _quiet,
    }
    visits = frozenset(methods)
