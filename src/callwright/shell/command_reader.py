"""Reads simple commands, their redirects, assignments and conditions from syntax nodes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from callwright.shell.assignments import record_assignment
from callwright.shell.findings import (
    NO_REDIRECTS,
    STDIN_SCRIPT,
    Findings,
    FoundCommand,
    Redirects,
    ScriptContext,
    XargsInput,
    merge_redirects,
)
from callwright.shell.reader import WordReader, plain_pattern
from callwright.shell.words import (
    WORDS,
    Folders,
    Word,
    enter_folder,
    home_folder,
    is_harmless_variable,
    is_name,
    literal_words,
)
from callwright.shell.wrapper_tables import KEYWORDS

if TYPE_CHECKING:
    from tree_sitter import Node

Exits: TypeAlias = tuple[Folders, Folders]
"""The folders the shell may be in after success, and after failure."""

_SPACE = ord(" ")
_PLAIN_COMMAND = re.compile(r"[A-Za-z0-9_./:,+%@^-]+(?: [A-Za-z0-9_./:=,+%@^ -]*)?\Z")
_MAY_HOLD_BRACES = ("word", "concatenation", "brace_expression")
_BEFORE_MOVERS = frozenset(("command", "builtin", "time", *KEYWORDS))
_MOVERS = frozenset(("cd", "pushd", "popd", "chdir", *_BEFORE_MOVERS))
_WRAPPER_OPTION = re.compile(r"-(?:-|p+)\Z")  # with -v, command only tells what it would run
_BODY_RUNS = re.compile(r"(?<!\\)`([^`]*)`|\$\(([^()]*)\)")
_EQUALITY = frozenset(("-eq", "-ne", "-lt", "-gt", "-le", "-ge"))
_WHOLE_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)\Z")


class CommandReader(WordReader):
    """Reports simple commands; `SyntaxWalker` adds the nodes that contain further ones."""

    visits: ClassVar[frozenset[str]] = frozenset()

    def __init__(
        self, source: bytes, findings: Findings, context: ScriptContext, report: Callable[[FoundCommand], None]
    ) -> None:
        super().__init__(source, findings)
        self.context = context
        self.xargs_input = context.xargs_input
        self.report = report
        self.moved = False  # whether a command so far may have changed the folder
        self._attached: dict[int, list[Node]] = {}
        self._known_in: tuple[Folders, ScriptContext, XargsInput] = (None, context, None)
        self._known_exits: Exits = (None, None)
        self._known_commands: dict[str, tuple[int, int, Exits]] = {}
        """Where the commands of a text begin and end among the findings, and where the shell may be after them."""

    def visit(self, node: Node, folders: Folders) -> Exits:
        """Report the commands below a node; implemented by `SyntaxWalker`."""
        raise NotImplementedError

    def read_test(self, node: Node, folders: Folders) -> Exits:
        """Report a condition, and record an objection to anything it would evaluate."""
        self.folders = folders
        self._check_test(node, evaluates=self.source[node.start_byte : node.start_byte + 2] == b"[[")
        text = self.text(node)
        if "\n" in text:
            self.findings.doubt_parser("a condition goes over several lines")
        self.report(FoundCommand(tuple(Word(word) for word in text.split()), text, folders, self.context))
        return folders, folders

    def _check_test(self, node: Node, *, evaluates: bool) -> None:
        for child in node.children:
            kind = child.type
            if kind == "test_operator":
                self._check_operator(node, self.text(child), evaluates=evaluates)
            elif kind in ("unary_expression", "binary_expression", "parenthesized_expression", "negation_expression"):
                self._check_test(child, evaluates=evaluates)
            elif kind in ("regex", "extglob_pattern"):
                if not plain_pattern(self.text(child)):
                    self.findings.add_objection("the pattern is not understood")
                    self.statements(child)
            elif kind == "((":
                self.findings.add_objection("arithmetic may run what variables contain")
            elif child.is_named:
                word = self.word(child)
                # [ $x = y ] splits x into words, and one of them may be -v with a subscript that runs something
                quoted = kind == "string" and "@" not in self.text(child)  # also if it stands for a glob of a loop
                if not evaluates and ((word.form is WORDS and not quoted) or word.text in ("-v", "-R")):
                    self.findings.add_objection(f"{word.text} may become an operator of the condition")

    def _check_operator(self, node: Node, operator: str, *, evaluates: bool) -> None:
        if operator in ("-v", "-R"):
            self.findings.add_objection(f"{operator} evaluates subscripts")
        if evaluates and operator in _EQUALITY:
            operands = [self.text(child) for child in node.children if child.type != "test_operator"]
            # [[ x -eq 1 ]] evaluates x, and with it any $(...) in a subscript
            if not all(_WHOLE_NUMBER.match(operand) for operand in operands):
                self.findings.add_objection(f"{operator} evaluates what is not a plain number")

    def read_declaration(self, node: Node, folders: Folders) -> Exits:
        """Report declare, export, unset and similar commands."""
        self.check_gaps(node.children)
        self.folders = folders
        words: list[Word] = []
        for child in node.children:
            if child.type == "variable_assignment":
                name, value = self._read_assignment(child)
                self.set_variable(name, value, self.text(child))
                words.append(Word(f"{name}={'' if value is None else value}"))
            elif child.is_named and child.type != "variable_name":
                words.append(self.word(child))
            else:
                words.append(Word(self.text(child)))
        self.report(FoundCommand(tuple(words), self.text(node), folders, self.context))
        return folders, folders

    def read_assignments(self, node: Node, folders: Folders) -> Exits:
        """Report a statement that only sets variables."""
        self.folders = folders
        parts = node.children if node.type == "variable_assignments" else [node]
        self.check_gaps(parts)
        assignments = tuple(self._read_assignment(part, exported=False) for part in parts)
        for part, (name, value) in zip(parts, assignments, strict=True):
            self.set_variable(name, value, self.text(part))
        self.report(FoundCommand((), self.text(node), folders, self.context, assignments))
        return folders, folders

    def _read_assignment(self, node: Node, *, exported: bool = True) -> tuple[str, str | None]:
        name, value = "", Word("")
        self.check_adjacent(node.children)
        for child in node.children:
            if child.type == "variable_name":
                name = self.text(child)
            elif child.type == "=":
                continue
            elif child.type in ("subscript", "array", "+="):
                self.findings.add_objection("arrays and appended values are not followed")
                self.sweep_words(child)
                value = Word(self.text(child), WORDS)
                name = name or self.text(child).partition("[")[0]
            else:
                value = self.word(child)
        harmless = is_harmless_variable(name, value.text if value.literal else None, exported=exported)
        if not harmless and not (name == "IFS" and self.calls_read(node.parent)):
            self.findings.add_objection(f"it sets {name or 'a variable'}, which may change what programs do")
        return name, value.text if value.literal else None

    def set_variable(self, name: str, value: str | None, assignment: str = "") -> None:
        """Record the value that the line itself gives to a variable, by an assignment or in another way."""
        if not is_name(name) or not is_harmless_variable(name, value, exported=False):
            self.findings.add_objection(f"it sets {name}, which may change what programs do")
        record_assignment(name, value, self.fill_constants(assignment), self.findings)

    def read_redirected(self, node: Node, folders: Folders) -> Exits:
        """Report a statement with redirects."""
        body: Node | None = None
        redirects: list[Node] = []
        for child in node.children:
            if child.type in self.visits and child.type != "file_redirect":
                body = child
            else:
                redirects.append(child)
        target = body
        while target is not None and target.type in ("list", "pipeline", "negated_command"):
            target = target.children[-1]
        parts = redirects if target is not None and target.type == "command" else node.children
        heredocs = [place for place, part in enumerate(parts) if part.type == "heredoc_redirect"]
        self.check_gaps(parts[: heredocs[0] + 1] if heredocs else parts)  # what follows a heredoc is inside its node
        if body is not None and target is not None and target.type == "command":
            # the parser hangs the redirect on the whole of "a && b > x", bash on b
            self._attached[target.id] = redirects
            return self.visit(body, folders)
        self.folders, kept, context = folders, self.xargs_input, self.context
        read, extra, rest = self._read_redirects(redirects)
        self.xargs_input = None
        self.context = context._replace(stdin_texts=read.stdin_texts or context.stdin_texts)
        exits = self.visit(body, folders) if body is not None else (folders, folders)
        self.xargs_input, self.folders, self.context = kept, folders, context
        if extra:
            self.findings.add_objection("words after a redirect belong to no command")
        self.report(FoundCommand((), self.text(node), folders, self.context, redirects=read))
        self._visit_rest(rest, folders)
        return exits

    def read_lone_redirect(self, node: Node, folders: Folders) -> Exits:
        """Report a redirect without a command."""
        self.folders = folders
        read, _, _ = self._read_redirects((node,))
        self.report(FoundCommand((), self.text(node), folders, self.context, redirects=read))
        return folders, folders

    def read_command(self, node: Node, folders: Folders) -> Exits:
        """Report a simple command and return the folders the shell may be in afterwards."""
        after = self._attached.pop(node.id, ()) if self._attached else ()
        text = self.slice(node.start_byte, after[-1].end_byte if after else node.end_byte)
        if not after and _PLAIN_COMMAND.match(text):
            return self.read_plain_command(text, folders)
        self.folders = folders
        outer_trees, self.substituted_trees = self.substituted_trees, ()
        words: list[Word] = []
        assignments: list[tuple[str, str | None]] = []
        redirects: list[Node] = []
        constants, self.constants = self.constants, {}
        source, end = self.source, -1
        for child in node.children:
            kind, start = child.type, child.start_byte
            if start != end + 1 or source[end] != _SPACE:
                words.extend(self._read_gap(end, start))
            end = child.end_byte
            if kind in _MAY_HOLD_BRACES and b"{" in source[start:end]:
                words.extend(self.braced_words(child))
            elif kind == "word":
                words.append(self.bare_word(self.slice(start, end)))
            elif kind == "command_name":
                words.append(self.word(child.children[0]) if child.child_count == 1 else self._read_odd_name(child))
                self.constants = constants
            elif kind == "variable_assignment":
                assignments.append(self._read_assignment(child))
            elif kind.endswith("_redirect"):
                redirects.append(child)
            else:
                words.append(self.word(child))
        if after and after[0].start_byte > end:  # a redirect may touch the word before it
            words.extend(self._read_gap(end, after[0].start_byte))
        redirects.extend(after)
        found = FoundCommand(
            tuple(words),
            text,
            folders,
            self.context,
            tuple(assignments),
            xargs_input=self.xargs_input,
            trees=self.substituted_trees,
        )
        self.substituted_trees = outer_trees
        exits = self._read_redirected_command(found, redirects) if redirects else None
        self.constants = constants
        if exits:
            return exits
        self.report(found)
        return self._find_exits(words, folders) if words and words[0].text in _MOVERS else (folders, folders)

    def read_plain_command(self, text: str, folders: Folders) -> Exits:
        """Read a command that consists of plain words by splitting its text, which is faster than its nodes.

        Results are cached per text, because hostile lines repeat one command thousands of times.
        """
        commands = self.findings.commands
        if (
            folders is not self._known_in[0]
            or self.context is not self._known_in[1]
            or self.xargs_input is not self._known_in[2]
        ):
            self._known_in = (folders, self.context, self.xargs_input)
            self._known_exits = folders, folders
            self._known_commands = {}
        known = self._known_commands.get(text)
        if known is not None:
            start, end, exits = known
            commands.extend(commands[start:end])
            return exits
        start = len(commands)
        words = literal_words(text.split())
        self.report(FoundCommand(words, text, folders, self.context, (), NO_REDIRECTS, self.xargs_input))
        exits = self._find_exits(words, folders) if words[0].text in _MOVERS else self._known_exits
        self._known_commands[text] = start, len(commands), exits
        return exits

    def _read_redirected_command(self, found: FoundCommand, redirects: Sequence[Node]) -> Exits:
        read, extra, rest = self._read_redirects(redirects)
        words = (*found.words, *extra)
        fed = any(b"<" in self.source[node.start_byte : node.end_byte] for node in redirects)
        self.report(found._replace(words=words, redirects=read, xargs_input=None if fed else found.xargs_input))
        before = len(self.findings.commands)
        self._visit_rest(rest, found.folders)
        if any(command.reason == STDIN_SCRIPT for command in self.findings.commands[before:]):
            for text in read.stdin_texts:
                self.script(text, "a heredoc")
        return self._find_exits(words, found.folders)

    def _read_gap(self, end: int, start: int) -> tuple[Word, ...]:
        """Return the words between two nodes of a command: none, or the `-` that the parser drops before a redirect."""
        gap = self.source[end:start].strip(b" \t") if end >= 0 else b""
        if gap == b"-":
            return literal_words(["-"])
        if gap or start == end:
            self.findings.doubt_parser("the gap between two words is ambiguous")
        return ()

    def _read_odd_name(self, node: Node) -> Word:
        self.findings.add_objection("the program name is not literal")
        for child in node.children:
            self.word(child)
        return Word(self.text(node), WORDS)

    def _visit_rest(self, nodes: Iterable[Node], folders: Folders) -> None:
        """Visit the commands that follow the start of a heredoc on the same line."""
        starts = [len(self.findings.commands) - 1]
        for node in nodes:
            starts.append(len(self.findings.commands))
            self.visit(node, folders)
        self.follow_pipes(starts)

    def _read_redirects(self, nodes: Iterable[Node]) -> tuple[Redirects, tuple[Word, ...], tuple[Node, ...]]:
        parts: list[Redirects] = []
        extra: list[Word] = []
        rest: list[Node] = []
        for node in nodes:
            if node.type == "heredoc_redirect":
                inner, words, following = self._read_heredoc(node)
                rest.extend(following)
            else:
                inner, words = self.redirect(node)
            extra.extend(words)
            parts.append(inner)
        return merge_redirects(parts), tuple(extra), tuple(rest)

    def _read_heredoc(self, node: Node) -> tuple[Redirects, tuple[Word, ...], tuple[Node, ...]]:
        raw, body, delimiter, end = False, "", "", None
        parts = [Redirects(present=True)]
        words: list[Word] = []
        rest: list[Node] = []
        for child in node.children:
            kind = child.type
            if kind == "heredoc_start":
                # only quoting turns expansion off: the body of `<< 1` or `<< -c` is expanded like that of `<< END`
                delimiter = self.text(child)
                raw = any(character in delimiter for character in "'\"\\")
            elif kind == "heredoc_body":
                body = self.text(child)
                if not raw:
                    self._read_heredoc_body(child, body)
            elif kind in ("file_redirect", "herestring_redirect"):
                inner, extra = self.redirect(child)
                words.extend(extra)
                parts.append(inner)
            elif kind in self.visits:
                rest.append(child)
            elif kind == "heredoc_end":
                end = self.text(child).strip("\t\n")
            elif child.is_named:
                words.append(self.word(child))
        if end != re.sub(r"[\'\"\\]", "", delimiter):
            # the parser guessed an end that bash does not see: what follows belongs to the body, or is a command
            self.findings.add_objection("the end of the heredoc is not clear")
        return merge_redirects([*parts, Redirects(stdin_texts=(body,))]), tuple(words), tuple(rest)

    def _read_heredoc_body(self, node: Node, body: str) -> None:
        if "`" in body or "$" in body or "\\" in body:
            self.findings.add_objection("the heredoc is expanded")
        for child in node.children:
            if child.type != "heredoc_content":
                self.word(child)
        for match in _BODY_RUNS.finditer(body):
            self.script(match[1] or match[2] or "", "a heredoc")

    def _find_exits(self, words: Sequence[Word], folders: Folders) -> Exits:
        name = words[0].text if words else ""
        if name in _BEFORE_MOVERS:
            ok, bad = self._find_exits([word for word in words[1:] if not _WRAPPER_OPTION.match(word.text)], folders)
            certain = ok is folders or name in ("command", "builtin")  # others are programs if quoted, and stay here
            return (ok if certain else None), bad
        if name not in _MOVERS:
            return folders, folders
        self.moved = True
        targets = [word for word in words[1:] if word.text not in ("-P", "-L", "-e", "--")]
        if not targets:
            return (frozenset((home_folder(),)) if name == "cd" else None), folders
        target = targets[0]
        if name == "popd" or any(word.text[:1] == "-" and "P" in word.text for word in words[1:]):
            return None, folders  # it follows links, so a later `..` leads to a folder that only the disk knows
        if len(targets) > 1 or not target.literal or target.text[:1] in ("-", "+", ""):
            return None, folders
        return enter_folder(folders, target.text), folders

    def script(self, text: str, inside: str) -> None:
        """Report the commands of a script found inside this one."""
        self.report(FoundCommand((Word("eval"), Word(text)), text, self.folders, self.context._replace(inside=inside)))

    def follow_pipes(self, starts: Sequence[int]) -> None:
        """Analyze the output of echo and printf as a script when it is piped into a shell."""
        commands = self.findings.commands
        shells = [place for place in starts[1:] if place < len(commands) and commands[place].reason == STDIN_SCRIPT]
        if not shells:
            return
        for command in commands[starts[0] : shells[-1]]:
            if command.words[:1] in (("echo",), ("printf",)):
                self.script(" ".join(command.words[1:]), "a pipe into a shell")
