"""Reads words and redirects from syntax nodes."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from callwright.core.access import Reach, ReadPath, WritePath
from callwright.shell.constants import is_set_once
from callwright.shell.filling import read_number
from callwright.shell.findings import Findings, Redirects
from callwright.shell.plan import Tree
from callwright.shell.words import (
    HARMLESS_TARGETS,
    WORDS,
    Folders,
    Piece,
    Word,
    home_folder,
    join_pieces,
    join_words,
    read_ansi_c,
    read_double_quoted,
    read_single_quoted,
    read_unquoted,
    resolve_as,
    resolve_paths,
    single_folder,
)
from callwright.system.environment import is_credential

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tree_sitter import Node

_PLAIN = re.compile(r"[A-Za-z0-9_./:=,+%@^-]+\Z")
_LIVE_IN_DOUBLE = re.compile(r"(?<!\\)(?:\\\\)*(?:`|\$[A-Za-z0-9_{(!?@#*$'\"\[-])")
_LIVE_BARE = re.compile(r"(?<!\\)(?:\\\\)*[`$]")
_DESCRIPTOR = re.compile(r"(?:\d+-?|-)\Z")
_UNUSUAL_DESCRIPTOR = 3
"""Stands for those with too many digits to be read."""
_HELD = re.compile(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})", re.ASCII)
_NAME = re.compile(r"\$\{?([A-Za-z_][A-Za-z0-9_]*)\}?\Z")
_SAFE_EXPANSION = re.compile(r"\$(?:\{#?(?:[A-Za-z_][A-Za-z0-9_]*|[0-9?$#@*])\}|[A-Za-z_][A-Za-z0-9_]*|[0-9?$#!@*-])\Z")
_SAFE_CHANGE = re.compile(
    r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?:\[\d+\])?"
    r"(?:(?::?[-+]|##?|%%?|//?)[\w ./*?:,+=^%#@\[\]-]*|\^\^?|,,?|:\d+(?::\d+)?)?\}\Z",
    re.ASCII,
)
"""A variable, or one element of an array, of which bash cuts or replaces a part that the line spells out."""
_NUMBERS_ONLY = re.compile(r"[\d\s()+*/%<>=!&|^~?:,-]*\Z")
_NUMBER = re.compile(r"\$(?:[?#]|\(\([\d\s+*/%-]+\)\))\Z", re.ASCII)
"""What bash always replaces by one number, so that it has nothing to split."""
_SOCKET = re.compile(r"/dev/(?:tcp|udp)/")
_IN_BACKTICKS = re.compile(r'\\([$`\\"])')
_NAMED_DESCRIPTOR = re.compile(rb"\{[A-Za-z_][A-Za-z0-9_]*(?:\[[^\]]*\])?\}\Z")
_EXTENDED = re.compile(r"\$\w+[{},]")
_STAND_IN = "/dev/fd/63"  # what bash puts in place of a process substitution
_ASSIGNS = re.compile(rb"[A-Za-z_]\w*=")
_CONSTANT = re.compile(r"""([A-Za-z_]\w*)=(?:([\w./:=,+%@^-]+)|'([^']+)'|"([^"$`\\]+)")[ \t]*(?:&&\s*|\Z)""", re.ASCII)
"""An assignment of a literal text that always happens."""
_MAX_CONSTANTS = 20
_MAX_REPEATED = 20_000  # characters that are read again because they stand in a loop
_LIVE = re.compile(r"[$`<>]")


def _read_unknown(source: str) -> Piece:
    return read_double_quoted(source, dynamic=True) if _NUMBER.match(source) else Piece(source, source, dynamic=True)


class WordReader:
    """Reads the words of one script; whatever is not literal is recorded in the findings or in the word."""

    def __init__(self, source: bytes, findings: Findings) -> None:
        self.source = source
        self.findings = findings
        self.folders: Folders = None
        self.substituted_trees: tuple[Tree, ...] = ()
        """Folders whose files the command that is being read receives from a substitution or a loop."""
        self.loop_globs: dict[str, str] = {}
        """The glob that a loop's variable stands for while its body is read."""
        self.constants: dict[str, str] = {}
        """The variables that hold one text wherever the rest of the line reads them, also those of loops."""
        self._tried = 0
        # in ASCII, byte offsets are string offsets, so a node's source is one slice without decoding
        self._letters = source.decode("ascii") if source.isascii() else None

    def text(self, node: Node) -> str:
        """Return a node's source."""
        if self._letters is not None:
            return self._letters[node.start_byte : node.end_byte]
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
        return join_pieces(self._pieces(node, source), source)

    def bare_word(self, source: str) -> Word:
        """Read an argument without quotes."""
        if _PLAIN.match(source):
            return Word(source)
        return join_pieces((self._bare(source),), source)

    def braced_words(self, node: Node) -> list[Word]:
        """Read an argument with braces, which may be several."""
        source = self.text(node)
        pieces = self._pieces(node, source)
        # braces come first: of $w{1,2} bash reads the variables w1 and w2
        return [Word(source, WORDS)] if _EXTENDED.search(source) else join_words(pieces, source)

    def sweep_words(self, node: Node) -> None:
        """Report the substitutions in a construct that is otherwise not followed."""
        for child in node.children:
            if child.is_named:
                self.word(child)

    def hold_constant(self, name: str, value: str) -> None:
        """Replace a variable by its text from here on."""
        if self.findings.holds_texts and name not in ("_", "COLUMNS", "LINES"):  # bash changes these itself
            self.constants = {**self.constants, name: value}
            self.findings.constants.add(name)

    def fill_constants(self, source: str) -> str:
        """Return an assignment with the texts of the variables that are replaced by these: in a loop, `x+=($i)`."""

        def fill(found: re.Match[str]) -> str:
            value = self.constants.get(found[1] or found[2])
            return value if value is not None and self.findings.may_fill(value) else found[0]

        return _HELD.sub(fill, source) if self.constants else source

    def learn_constants(self, statement: Node) -> None:
        """Hold what a statement of the line sets before anything else, unless a subshell does so: `n=5 && … &`."""
        if not _ASSIGNS.match(self.source, statement.start_byte):
            return
        following, text, place = statement.next_sibling, self.text(statement), 0
        while (found := _CONSTANT.match(text, place)) and self._tried < _MAX_CONSTANTS:
            place, self._tried = found.end(), self._tried + 1
            background = following is not None and following.type == "&"
            if not background and is_set_once(found[1], self.slice(0, len(self.source))):
                self.hold_constant(found[1], found[2] or found[3] or found[4])

    def list_loop_values(self, loop: Node, parts: Sequence[Node]) -> tuple[list[str], bool]:
        """Return the texts that a loop runs over, and whether these are all; none if they are too many."""
        if not self.findings.holds_texts:
            return [], False
        plain = [part for part in parts if not _LIVE.search(self.text(part))]
        words = [word for part in plain for word in self.braced_words(part)]
        self.findings.repeated += len(words) * (loop.end_byte - loop.start_byte)
        if self.findings.repeated > _MAX_REPEATED:
            return [], False
        known = [word.text for word in words if word.literal]
        return known, len(plain) == len(parts) and len(known) == len(words)

    def statements(self, node: Node) -> None:
        """Report statements in a place where none belongs; implemented by `SyntaxWalker`."""
        raise NotImplementedError

    def substitution(self, node: Node) -> bool:
        """Report the commands of a substitution, and return whether it only lists files of folders that are counted.

        Implemented by `SyntaxWalker`.
        """
        raise NotImplementedError

    def script(self, text: str, inside: str) -> None:
        """Report the commands of a script found inside this one; implemented by `CommandReader`."""
        raise NotImplementedError

    def _read_escaped_backticks(self, source: str) -> None:
        """Report what stands in backticks inside backticks, which the parser takes for plain words."""
        self.findings.add_objection("backticks are nested or hold escapes")
        self.script(_IN_BACKTICKS.sub(r"\1", source[1:-1]), "backticks")

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
                return [read_single_quoted(source[1:-1])]
            case "string":
                return self._string(node, source)
            case "ansi_c_string":
                return [self._ansi_c(source)]
            case _:
                return [self._expansion(node, source, quoted=False)]

    def _bare(self, source: str) -> Piece:
        if _LIVE_BARE.search(source):
            self.findings.add_objection(f"{source} hides an expansion")
        return read_unquoted(source)

    def _ansi_c(self, source: str) -> Piece:
        if "\\" in source:
            self.findings.add_objection("characters are written as escape codes")
        return read_ansi_c(source[2:-1])

    def _string(self, node: Node, source: str) -> list[Piece]:
        live = [child for child in node.children if child.type not in ('"', "string_content")]
        if not live and _LIVE_IN_DOUBLE.search(source[1:-1]):
            self.findings.add_objection(f"{source} hides an expansion")
        if not live:
            return [read_double_quoted(source[1:-1])]
        trees, end, glob = self.substituted_trees, node.start_byte + 1, False
        pieces: list[Piece] = []
        for child in live:
            # the parser counts the blanks between two expansions to the second one
            text = self.text(child).lstrip()
            before = self.slice(end, child.end_byte).removesuffix(text)
            piece, end = self._expansion(child, text, quoted=True), child.end_byte
            pieces.extend([read_double_quoted(before)] if before else [])
            pieces.append(read_single_quoted(piece.text)._replace(dynamic=piece.dynamic or piece.glob))
            glob = piece.glob and len(live) == 1
        after = self.slice(end, node.end_byte - 1)
        pieces.extend([read_double_quoted(after)] if after else [])
        if glob:
            self.substituted_trees = trees  # quoted, so its names are not split
            if all(piece.dynamic or _PLAIN.match(piece.text) for piece in pieces):
                text = "".join([piece.text for piece in pieces])
                return [Piece(text, text, glob=True)]
        return pieces

    def _expansion(self, node: Node, source: str, *, quoted: bool) -> Piece:
        match node.type:
            case "simple_expansion" | "expansion":
                return self._read_variable(node, source, quoted=quoted)
            case "command_substitution":
                if source[:1] == "`" and "\\" in source:
                    self._read_escaped_backticks(source)
                return Piece(source, source, dynamic=True, named=self.substitution(node))
            case "process_substitution":
                self.substitution(node)
                return read_single_quoted(_STAND_IN)
            case "arithmetic_expansion":
                return self._read_arithmetic(node, source)
            case _:
                self.findings.add_objection(f"{source} is not understood")
                self.statements(node)
                return Piece(source, source, dynamic=True)

    def _read_variable(self, node: Node, source: str, *, quoted: bool) -> Piece:
        name = _NAME.match(source)
        value = self._known_value(name[1], quoted=quoted) if name else None
        if value is not None:
            return read_single_quoted(value)
        if name and name[1] in self.loop_globs:
            glob = self.loop_globs[name[1]]
            folder, _, pattern = glob.rpartition("/")
            paths = resolve_paths(folder or ("/" if glob[:1] == "/" else "."), self.folders)
            self.substituted_trees += tuple([Tree(path, pattern, split=True) for path in paths])
            return Piece(glob, glob, glob=True)
        changed = _SAFE_CHANGE.match(source)
        if (held := name or changed) and is_credential(held[1]):
            self.findings.add_objection(f"{source} may be a credential")
        if not changed and not _SAFE_EXPANSION.match(source):
            self.findings.add_objection(f"{source} does more than read a variable")
            self.sweep_words(node)
        return _read_unknown(source)

    def calls_read(self, node: Node | None) -> bool:
        """Whether a node calls `read`, for which a variable before it lasts no longer: `IFS= read -r line`."""
        name = node.child_by_field_name("name") if node is not None and node.type == "command" else None
        return name is not None and self.text(name) == "read"

    def _known_value(self, name: str, *, quoted: bool) -> str | None:
        if (value := self.constants.get(name)) is not None:
            whole = quoted or _PLAIN.match(value)  # or bash splits it, and expands its globs
            return value if whole and self.findings.may_fill(value) else None
        if name in self.findings.values:
            return None
        if name == "HOME":
            return home_folder()
        return single_folder(self.folders) if name == "PWD" else None

    def _read_arithmetic(self, node: Node, source: str) -> Piece:
        if not _NUMBERS_ONLY.match(source.strip("$()[] ")):
            self.findings.add_objection("arithmetic may run what variables contain")
            self._sweep_arithmetic(node)
        return _read_unknown(source)

    def _sweep_arithmetic(self, node: Node) -> None:
        pending = list(node.children)
        while pending:
            child = pending.pop()
            if child.type == "command_substitution":
                self._expansion(child, self.text(child), quoted=True)
            else:
                pending.extend(child.children)

    def check_adjacent(self, nodes: Sequence[Node]) -> None:
        """Doubt the tree when parts of one word do not touch."""
        end = nodes[0].start_byte if nodes else 0
        for node in nodes:
            if node.start_byte != end:
                self.findings.doubt_parser("the parts of a word do not touch")
            end = node.end_byte

    def check_gaps(self, nodes: Sequence[Node]) -> None:
        """Doubt the tree when anything but blanks stands between words, such as the end of a line."""
        for one, other in pairwise(nodes):
            if self.source[one.end_byte : other.start_byte].strip(b" \t"):
                self.findings.doubt_parser("the gap between two words is ambiguous")

    def redirect(self, node: Node) -> tuple[Redirects, tuple[Word, ...]]:
        """Read a redirect: what it touches, and the words the parser swallowed after its target."""
        operator = descriptor = ""
        words: list[Word] = []
        self.check_gaps(node.children)
        if _NAMED_DESCRIPTOR.search(self.source, max(0, node.start_byte - 200), node.start_byte):
            self.findings.add_objection("a redirect with {name} sets a variable")
        for child in node.children:
            if child.type == "file_descriptor":
                descriptor = self.text(child)
            elif not operator and not child.is_named:
                operator = child.type
            else:
                words.append(self.word(child))
        if operator == "<<<":
            stdin_texts = tuple(word.text for word in words[:1])
            return Redirects(present=True, stdin_texts=stdin_texts), tuple(words[1:])
        if not words:
            # ">&-" and "<&-" close a descriptor and have no target of their own
            doubt = "" if operator in (">&-", "<&-") else "a redirect has no target"
            return Redirects(present=True, doubt=doubt), ()
        self._check_descriptors(operator, descriptor, words[0].text)
        target = self._read_target(operator, words[0])
        if operator == "<" and self.source.endswith(b"<<", 0, node.start_byte):
            # behind some compound commands the parser does not know <<<, and takes its end for a redirect
            target = target._replace(stdin_texts=(words[0].text,))
        return target, tuple(words[1:])

    def _check_descriptors(self, operator: str, descriptor: str, target: str) -> None:
        """Object to an input that takes the place of an output: `2< x > /dev/stderr` opens x again, to write to it."""
        own = _read_descriptor(descriptor) if descriptor.isdigit() else int(operator[:1] != "<")
        crosses = False
        if operator == "<":
            crosses = own in (1, 2)
            self.findings.inputs |= own > 2
        elif operator in (">&", "<&") and own and target != "-" and _DESCRIPTOR.match(target):
            source = _read_descriptor(target.rstrip("-"))
            crosses = source == 0
            self.findings.duplicates |= source > 2
        if crosses or (self.findings.inputs and self.findings.duplicates):
            self.findings.add_objection("an input takes the place of an output, which may be written to")

    def _read_target(self, operator: str, word: Word) -> Redirects:
        if operator in (">&", "<&") and word.literal and _DESCRIPTOR.match(word.text):
            return Redirects(present=True)
        text = word.text
        if not word.literal:
            self.findings.add_objection(f"the redirect's target {text} is not literal")
        if _SOCKET.match(text):
            return Redirects((Reach(text),), f"{text} is a network connection", True)
        if text in HARMLESS_TARGETS:
            return Redirects(present=True)
        if operator in ("<", "<&"):
            return Redirects(tuple(resolve_as(ReadPath, [text], self.folders)), "", True)
        return Redirects(tuple(resolve_as(WritePath, [text], self.folders)), f"it writes {text}", True)


def _read_descriptor(digits: str) -> int:
    number = read_number(digits)
    return _UNUSUAL_DESCRIPTOR if number is None else number


def plain_pattern(text: str) -> bool:
    """Whether a pattern holds nothing that bash would expand further."""
    return not any(letter in text for letter in "$`(<>\\")
