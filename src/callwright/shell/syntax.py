"""Walks the syntax tree of a script: reports every simple command and follows cd."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from callwright.shell import parsing
from callwright.shell.command_reader import CommandReader, Exits
from callwright.shell.constants import is_set_once
from callwright.shell.findings import TOO_DEEP, Findings, FoundCommand, ScriptContext, find_xargs_input
from callwright.shell.reader import plain_pattern
from callwright.shell.words import Folders, Word, merge_folders

if TYPE_CHECKING:
    from tree_sitter import Node

_MAX_DEPTH = 60
_PUNCTUATION = frozenset(
    "; & \n ;; ;& ;;& ( ) { } do done then fi if elif else while until for in case esac | |& && || ! function".split(
        " "
    )
)
_LOOP_GLOB = re.compile(r"[A-Za-z0-9_./-]*\*[A-Za-z0-9_./*?-]*\Z")
_BLANKS = re.compile(rb"(?:[ \t\n]|\\\n)*")
_NO_LOOP_WORDS = ("variable_name", "do_group", "comment")
_RUNS_ARGUMENTS = re.compile(r"""(?:[;&|{(\n]|\b(?:do|then|else|eval|exec|command|sudo|time))\s*"?\$\{?[@*]""")
_MOVES = re.compile(rb"\b(?:cd|pushd|popd)\b")


class SyntaxWalker(CommandReader):
    """Walks the syntax tree of one script."""

    def __init__(
        self, source: bytes, findings: Findings, context: ScriptContext, report: Callable[[FoundCommand], None]
    ) -> None:
        super().__init__(source, findings, context, report)
        self._depth, self._repeats = 0, False
        self._contexts: dict[str, tuple[ScriptContext, ScriptContext]] = {}
        self._substitutions: dict[str, list[str] | None] = {}

    def visit(self, node: Node, folders: Folders) -> Exits:
        """Report the commands below a node and return the folders the shell may be in afterwards."""
        method = self.methods.get(node.type)
        if method is None:
            return self._visit_unknown(node, folders)
        if self._depth > _MAX_DEPTH:
            self.findings.give_up(TOO_DEEP)
            self.sweep(node, folders)
            return None, None
        self._depth += 1
        exits = method(self, node, folders)
        self._depth -= 1
        return exits

    def visit_plain(self, commands: list[str], folders: Folders) -> None:
        """Report the commands of a script that was split without a parser."""
        for command in commands:
            ok, bad = self.read_plain_command(command, folders)
            folders = ok if ok is bad else merge_folders(ok, bad)

    def sweep(self, node: Node, folders: Folders) -> None:
        """Report every command below a node without recursion: for what is too deep or not understood."""
        pending = [node]
        while pending:
            here = pending.pop()
            if here.type == "command":
                words = tuple(Word(self.text(child)) for child in here.children if child.type != "variable_assignment")
                self.report(FoundCommand(words, self.text(here), None, self.context))
            pending.extend(reversed(here.children))

    def substitution(self, node: Node) -> bool:
        """Report the commands of a substitution, which run in a subshell."""
        kept, kept_input, folders = self.context, self.xargs_input, self.folders  # its input is that of the command
        if not kept.inside:
            self.context = self._enter_context(kept, node.type)
        before = len(self.findings.commands)
        plain = self._split_substitution(self.text(node)) if self._depth <= _MAX_DEPTH else None
        if plain is None:
            self._visit_sequence(node, folders)
        else:
            self.visit_plain(plain, folders)
        self.context, self.xargs_input, self.folders = kept, kept_input, folders
        names = find_xargs_input(self.findings.commands[before:], None, folders)
        if names is None or names.loose or not names.trees:
            return False
        self.substituted_trees += names.trees
        return True

    def _split_substitution(self, source: str) -> list[str] | None:
        """Split a substitution of plain commands, which needs no look at its nodes; None for any other."""
        if source not in self._substitutions:
            opened, closed = ("`", "`") if source[:1] == "`" else (source[:2], ")")
            # the parser also makes up an end that is missing
            whole = len(source) > len(opened) and source.endswith(closed)
            self._substitutions[source] = parsing.split_plain(source[len(opened) : -1]) if whole else None
        return self._substitutions[source]

    def _enter_context(self, context: ScriptContext, kind: str) -> ScriptContext:
        """Return one context object per kind: the cache of plain commands compares contexts by identity."""
        outer, inner = self._contexts.get(kind, (None, context))
        if outer is not context:
            inner = context._replace(inside=kind.replace("_", " "))
            self._contexts[kind] = context, inner
        return inner

    def statements(self, node: Node) -> None:
        """Report the statements inside a construct that is not understood."""
        if node.type in self.visits:
            self.visit(node, self.folders)
            return
        for child in node.children:
            if child.is_named:
                if child.type in self.visits:
                    self.visit(child, self.folders)
                else:
                    self.word(child)

    def _check_all_read(self, node: Node) -> None:
        """Doubt the tree when it leaves out more than blanks: the parser drops `-` in `- a=b`, and `\\ ` in `\\ ls`."""
        end, last = (0, len(self.source)) if node.type == "program" else (node.start_byte, node.end_byte)
        whole = True
        for child in node.children:
            start = child.start_byte
            if start > end:  # not where the body of a heredoc overlaps the next node
                whole = whole and _BLANKS.fullmatch(self.source, end, start) is not None
            end = max(end, child.end_byte)
        if not whole or (last > end and not _BLANKS.fullmatch(self.source, end, last)):
            self.findings.doubt_parser("a part of it belongs to no command")

    def _visit_unknown(self, node: Node, folders: Folders) -> Exits:
        self.findings.add_objection(f"{node.type.replace('_', ' ')} is not understood")
        for child in node.children:
            if child.is_named:
                self.visit(child, folders)
        return None, None

    def _visit_sequence(self, node: Node, folders: Folders) -> Exits:
        self._check_all_read(node)
        ok = bad = before = folders
        for child in node.children:
            kind = child.type
            if node.type == "program":
                self.learn_constants(child)
            if kind in self.visits:
                before = merge_folders(ok, bad)
                ok, bad = self.visit(child, before)
            elif kind == "&":
                ok = bad = before
            elif kind in ("((", "$(", "`", "<(", ">(", "))"):
                if kind == "((":
                    self.findings.add_objection("arithmetic may run what variables contain")
            elif kind not in _PUNCTUATION:
                ok, bad = self._visit_unknown(child, merge_folders(ok, bad))
        return ok, bad

    def _visit_subshell(self, node: Node, folders: Folders) -> Exits:
        self._visit_sequence(node, folders)
        return folders, folders

    def _visit_list(self, node: Node, folders: Folders) -> Exits:
        # a list of three thousand commands is three thousand nodes deep on its left side
        chain: list[tuple[str, Node]] = []
        while node.type == "list":
            self._check_all_read(node)
            parts = node.children
            if len(parts) > 3:  # left, operator, right
                parts = [child for child in parts if child.type != "comment"]
            if len(parts) != 3 or parts[1].type not in ("&&", "||"):  # left, operator, right
                return self._visit_unknown(node, folders)
            chain.append((parts[1].type, parts[2]))
            node = parts[0]
        ok, bad = self.visit(node, folders)
        for operator, right in reversed(chain):
            if operator == "&&":
                ok, failed = self.visit(right, ok)
                bad = merge_folders(bad, failed)
            else:
                succeeded, bad = self.visit(right, bad)
                ok = merge_folders(ok, succeeded)
        return ok, bad

    def _visit_pipeline(self, node: Node, folders: Folders) -> Exits:
        self._check_all_read(node)
        starts: list[int] = []
        kept = self.xargs_input
        children = node.children
        for child in children:
            if child.type in self.visits:
                starts.append(len(self.findings.commands))
                self.visit(child, folders)
                if child is not children[-1]:
                    printed = self.findings.commands[starts[-1] :]
                    self.xargs_input = find_xargs_input(printed, self.xargs_input, folders)
            elif child.type not in _PUNCTUATION:
                self._visit_unknown(child, folders)
        self.xargs_input = kept
        self.follow_pipes(starts)
        return folders, folders

    def _visit_negated(self, node: Node, folders: Folders) -> Exits:
        ok, bad = self._visit_sequence(node, folders)
        return bad, ok

    def _visit_loop(self, node: Node, folders: Folders) -> Exits:
        """Visit a for loop; in its body a variable that runs over one glob or plain words stands for these.

        Beside a word that is not known, the others are read too, for rules and guards.
        """
        names = [self.text(child) for child in node.children if child.type == "variable_name"]
        parts = [child for child in node.children if child.is_named and child.type not in _NO_LOOP_WORDS]
        texts = [self.text(child) for child in parts]
        if len(names) != 1 or not is_set_once(names[0], self.text(node)):
            return self._visit_branches(node, folders)
        constants, globs, exits = self.constants, self.loop_globs, None
        values, complete = self.list_loop_values(node, parts)
        for value in values:
            self.hold_constant(names[0], value)
            exits = self._visit_branches(node, folders)
            folders = exits[0]
        if not complete:
            self.constants, exits = constants, None
        plain = len(parts) == 1 and parts[0].type in ("word", "concatenation")
        if plain and self.findings.holds_globs and _LOOP_GLOB.match(texts[0]):
            self.folders = folders
            self.set_variable(names[0], None)
            self.loop_globs = {**globs, names[0]: texts[0]}
        exits = exits or self._visit_branches(node, folders)
        self.constants, self.loop_globs = constants, globs
        return exits

    def _visit_branches(self, node: Node, folders: Folders) -> Exits:
        ok, bad = self._visit_optional_parts(node, folders)
        after = merge_folders(merge_folders(ok, bad), folders)
        return after, after

    def _visit_optional_parts(self, node: Node, folders: Folders) -> Exits:
        """Visit parts that run any number of times or never, so after a cd among them the folder is unknown."""
        self._check_all_read(node)
        if _MOVES.search(self.source, node.start_byte, node.end_byte):
            folders = None
        moved, self.moved = self.moved, False
        repeats, self._repeats = self._repeats, self._repeats or folders is not None
        self._visit_parts(node, folders)
        self._repeats = repeats
        if self.moved and folders is not None:  # c\d: only reading it told
            folders = None
            if not repeats:  # or the parts around these do so for all levels at once
                self._visit_parts(node, folders)
        self.moved |= moved
        return folders, folders

    def _visit_parts(self, node: Node, folders: Folders) -> None:
        for child in node.children:
            if child.type in self.visits:
                self.visit(child, folders)
            elif child.type not in _PUNCTUATION:
                self._visit_part(child, folders)

    def _visit_part(self, node: Node, folders: Folders) -> None:
        self.folders = folders
        if node.type in ("select", "extglob_pattern", "ERROR"):
            if node.type != "extglob_pattern" or not plain_pattern(self.text(node)):
                self._visit_unknown(node, folders)
        elif node.type == "variable_name":
            self.set_variable(name := self.text(node), None)
            if (value := self.constants.get(name)) is not None:  # what a loop puts into it this time
                self.findings.add_value(name, value)
        else:
            self.word(node)

    def _visit_function(self, node: Node, folders: Folders) -> Exits:
        self._check_all_read(node)
        self.findings.add_objection("a function may stand in for a program")
        kept = self.context
        self.context = kept._replace(inside="a function", doubt="it is in a function")
        for child in node.children:
            if child.type in self.visits:
                self.visit(child, None)
        self.context = kept
        name = node.child_by_field_name("name")
        if name is not None and _RUNS_ARGUMENTS.search(self.text(node)):
            self.findings.runners.add(self.text(name))
        return folders, folders

    def _skip(self, node: Node, folders: Folders) -> Exits:
        return folders, folders

    methods: ClassVar[dict[str, Callable[[SyntaxWalker, Node, Folders], Exits]]] = {
        "program": _visit_sequence,
        "list": _visit_list,
        "pipeline": _visit_pipeline,
        "command": CommandReader.read_command,
        "redirected_statement": CommandReader.read_redirected,
        "negated_command": _visit_negated,
        "compound_statement": _visit_sequence,
        "do_group": _visit_sequence,
        "subshell": _visit_subshell,
        "if_statement": _visit_branches,
        "elif_clause": _visit_branches,
        "else_clause": _visit_branches,
        "while_statement": _visit_branches,
        "for_statement": _visit_loop,
        "case_statement": _visit_branches,
        "case_item": _visit_branches,
        "function_definition": _visit_function,
        "test_command": CommandReader.read_test,
        "declaration_command": CommandReader.read_declaration,
        "unset_command": CommandReader.read_declaration,
        "variable_assignment": CommandReader.read_assignments,
        "variable_assignments": CommandReader.read_assignments,
        "file_redirect": CommandReader.read_lone_redirect,
        "comment": _skip,
    }
    visits = frozenset(methods)
