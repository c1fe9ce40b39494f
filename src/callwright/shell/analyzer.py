"""Analyzes a bash line: judges every simple command in it, unwraps wrappers, follows scripts inside scripts.

analyze ─► LineAnalyzer ─► SyntaxWalker (tree-sitter nodes ─► FoundCommand)
                ▲                      │
                └── unwrap, judge ◄────┘      every result goes into one Findings ─► ShellPlan
"""

import os
import re
from functools import lru_cache

from callwright.core._fast import make_constructor
from callwright.core.access import ReadPath
from callwright.shell import parsing
from callwright.shell.assignments import SETTERS, record_builtin, set_parameters
from callwright.shell.constants import sets_unclear, sets_unspelled
from callwright.shell.filling import PARAMETERS, fill_variables
from callwright.shell.findings import (
    MAX_FILLED_CHARS,
    STDIN_SCRIPT,
    TOO_DEEP,
    Findings,
    FoundCommand,
    Judgement,
    Redirects,
    ScriptContext,
    XargsInput,
)
from callwright.shell.judge import find_danger, find_fork_bomb, judge, program_name
from callwright.shell.named_programs import list_git_scripts, list_named_programs
from callwright.shell.plan import ShellPlan, SimpleCommand, Verdict, worst
from callwright.shell.programs.builtins import EVALUATORS, list_substitutions
from callwright.shell.programs.git import enter_repository, find_settings_problem
from callwright.shell.syntax import SyntaxWalker
from callwright.shell.words import (
    Folders,
    absolute_folder,
    all_literal,
    enter_folder,
    home_folder,
    literal_words,
    resolve_as,
    single_folder,
)
from callwright.shell.wrappers import SHELLS, InnerCommand, unwrap

_command = make_constructor(SimpleCommand)
_plan = make_constructor(ShellPlan)
_READING = (Verdict.READ_ONLY, Verdict.READS_NETWORK)
NOT_BASH = "it cannot be parsed as bash"
OVERFILLED = f"its variables stand for more than {MAX_FILLED_CHARS:,} characters; split it into several lines"
_READ_ONLY = Verdict.READ_ONLY
_MAX_WRAPPERS = 24
_MAX_BROKEN_BYTES = 10_000
_MAX_JUDGED_GUESSES = 1_000
_MAX_SCRIPTS = 400
OVERSPLIT = f"a rough split finds more than {_MAX_JUDGED_GUESSES:,} commands in it; split it into several lines"
OVERNESTED = f"it holds more than {_MAX_SCRIPTS - 1} scripts; split it into several lines"


class LineAnalyzer:
    """Judges every command of one line and records the results in one `Findings`."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings

    def analyze_script(self, text: str, folders: Folders, context: ScriptContext) -> None:
        """Judge the commands of a script: the line itself, or one found inside it."""
        self.findings.scripts += 1
        if self.findings.scripts > _MAX_SCRIPTS:
            self.findings.give_up(OVERNESTED)
            self.findings.add_danger(OVERNESTED)
            return
        if (plain := parsing.split_plain(text)) is not None:
            SyntaxWalker(b"", self.findings, context, self.judge_command).visit_plain(plain, folders)
            return
        source = text.encode("utf-8", "replace")
        root = parsing.parse_source(source)
        if root is None or root.has_error:
            self.findings.add_objection(NOT_BASH)
        # each script is parsed by itself, so a misread inner script says nothing about the outer one
        outer, self.findings.misread = self.findings.misread, root is None or root.has_error
        if root is not None and not (root.has_error and len(source) > _MAX_BROKEN_BYTES):
            SyntaxWalker(source, self.findings, context, self.judge_command).visit(root, folders)
        elif len(source) > parsing.SHORT_BYTES:  # no shell runs a shorter one, which would have been parsed in time
            self.findings.give_up(NOT_BASH)
        misread, self.findings.misread = self.findings.misread, outer
        if misread:
            self._guess(text, context._replace(doubt="it was found by a rough split of a line that cannot be parsed"))

    def _guess(self, text: str, context: ScriptContext) -> None:
        """Judge what a rough split finds in a script that cannot be parsed.

        Nothing here can be proven (every result carries a doubt); it exists so that deny rules and guards still match.
        """
        for place, words in enumerate(parsing.split_roughly(text)):
            if place < _MAX_JUDGED_GUESSES:
                self.judge_command(FoundCommand(literal_words(words), " ".join(words), None, context))
            else:
                self.findings.give_up(OVERSPLIT)
                command = SimpleCommand(tuple(words), " ".join(words), inside=context.inside, reason=context.doubt)
                self.findings.commands.append(command)

    def judge_command(self, found: FoundCommand) -> None:
        """Judge one command and the commands it runs."""
        if not found.words:
            self._record(found, Judgement(Verdict.READ_ONLY, "it only sets variables or redirects"))
            return
        if not all_literal(found.words):
            for words in fill_variables(found.words, self.findings):
                self._judge_words(found._replace(words=words))  # so that deny rules see what the variables hold
        self._judge_words(found)

    def _judge_words(self, found: FoundCommand) -> None:
        inner = unwrap(found.words)
        if inner is not None and self._may_unwrap(found):
            self._judge_inner(found, inner)
        else:
            self._judge_program(found)

    def _may_unwrap(self, found: FoundCommand) -> bool:
        if len(found.context.wrappers) < _MAX_WRAPPERS:
            return True
        self.findings.give_up(TOO_DEEP)
        return False

    def _judge_inner(self, found: FoundCommand, inner: InnerCommand) -> None:
        context = found.context
        if inner.loose:
            self.findings.add_objection(f"{inner.loose} may be an option or several words, and one of them the program")
        doubt = context.doubt or inner.doubt
        wrapped = (*context.wrapped, tuple(word.text for word in found.words))
        inside = context._replace(
            wrappers=(*context.wrappers, inner.name),
            wrapped=wrapped,
            doubt=doubt,
            cleared=context.cleared or inner.clears,
        )
        found = found._replace(trees=(*found.trees, *inner.trees))
        folders = self._change_folder(found.folders, inner)
        if inner.name in ("xargs", "gxargs"):
            found, inner = _charge_xargs_input(found, inner, found.xargs_input)
        if inner.script is None:
            assignments = (*found.assignments, *inner.assignments)
            self.judge_command(
                found._replace(words=inner.words, context=inside, folders=folders, assignments=assignments)
            )
            return
        if not inner.script.literal:
            self.findings.add_objection(f"the script {inner.script.text} is not literal")
        if found.redirects.present:
            self._record(found._replace(words=()), Judgement(Verdict.READ_ONLY, "it only redirects"))
        before = len(self.findings.commands)
        given = (*found.assignments, *inner.assignments)  # x=rm eval '$x y'
        if inner.words:  # sh -c '"$@"' name rm x
            given = (*given, (PARAMETERS, None))
        kept = {name: [*self.findings.values.get(name, [()])] for name in dict(given)}
        for name, value in given:
            self.findings.add_value(name, value)
        if inner.words:
            set_parameters([word.text for word in inner.words[1:]], self.findings)
        self.analyze_script(
            inner.script.text, folders, inside._replace(inside=inner.name, xargs_input=found.xargs_input)
        )
        for name, values in kept.items():  # which holds again after the script
            for texts in reversed(values):
                self.findings.add_value(name, *texts)
        if len(self.findings.commands) == before:
            self._record(found, Judgement(Verdict.UNKNOWN, f"{inner.name} runs a script whose content is unknown"))

    def _change_folder(self, folders: Folders, inner: InnerCommand) -> Folders:
        if inner.folder is None:
            return folders
        return enter_folder(folders, inner.folder.text, physical=True) if inner.folder.literal else None

    def _judge_program(self, found: FoundCommand) -> None:
        name = found.words[0].text
        plain = name.rpartition("/")[2] if "/" in name else name
        if plain in SHELLS:
            self._judge_shell(found)
            return
        if plain in EVALUATORS:
            self._analyze_subscripts(plain, found)
        if plain in SETTERS:
            record_builtin(plain, found, self.findings)
        if plain in self.findings.runners and len(found.words) > 1 and self._may_unwrap(found):
            context = found.context._replace(wrappers=(*found.context.wrappers, plain), doubt="a function runs it")
            self.judge_command(found._replace(words=found.words[1:], context=context, redirects=Redirects()))
        if plain == "git":
            found = enter_repository(found)
        judgement = judge(found.words, found.folders)
        if plain == "git" and judgement.verdict in _READING and (problem := find_settings_problem(found)):
            judgement = judgement._replace(verdict=Verdict.UNKNOWN, reason=problem)
        self._record(found, judgement)
        for script in list_named_programs(plain, found.words, found.assignments):
            context = found.context._replace(inside="a program that is named", doubt="another program runs it")
            self.analyze_script(script, found.folders, context)
        for script in list_git_scripts(found.words) if plain == "git" else ():
            wrapped = (*found.context.wrapped, tuple(word.text for word in found.words))
            context = found.context._replace(
                wrappers=(*found.context.wrappers, "git"), wrapped=wrapped, doubt="git runs it"
            )
            self.analyze_script(script, found.folders, context)
        for inner in judgement.inner_commands:
            self._judge_inner(found._replace(redirects=Redirects()), inner)

    def _analyze_subscripts(self, plain: str, found: FoundCommand) -> None:
        """Judge what an evaluated word runs: in `test -v 'a[$(x)]'` bash runs x although it is quoted."""
        for word in found.words[1:]:
            for script in list_substitutions(plain, word.text):
                self.findings.add_objection(f"{found.words[0].text} evaluates {word.text}")
                context = found.context._replace(inside="a subscript", doubt="it stands in an evaluated word")
                self.analyze_script(script, found.folders, context)

    def _judge_shell(self, found: FoundCommand) -> None:
        operands = [word for word in found.words[1:] if word.text[:1] != "-"]
        checks = len(found.words) == 3 and found.words[1].text == "-n"
        if checks and program_name(found.words[0]) in ("sh", "bash", "dash") and operands and operands[0].literal:
            reads = tuple(resolve_as(ReadPath, operands[:1], found.folders))
            self._record(found, Judgement(Verdict.READ_ONLY, "it only checks the syntax of a script", reads))
            return
        reason = f"it runs the script {operands[0].text}" if operands else STDIN_SCRIPT
        self._record(found, Judgement(Verdict.UNKNOWN, reason))
        for text in found.redirects.stdin_texts or found.context.stdin_texts:
            context = found.context._replace(inside="a heredoc", doubt="a shell runs it as a script", stdin_texts=())
            self.analyze_script(text, found.folders, context)

    def _record(self, found: FoundCommand, judgement: Judgement) -> None:
        context, redirects = found.context, found.redirects
        texts, literal = tuple([word[0] for word in found.words]), all_literal(found.words)
        verdict, reason = judgement.verdict, judgement.reason
        if redirects.doubt:
            verdict, reason = _raise_verdict(verdict, reason, Verdict.WRITES, redirects.doubt)
            if redirects.doubt.endswith("connection"):
                verdict = Verdict.UNKNOWN
        if context.doubt:
            verdict, reason = _raise_verdict(verdict, reason, Verdict.UNKNOWN, context.doubt)
        if not literal and verdict is not _READ_ONLY:
            self.findings.add_objection("a word that decides the effect is not literal")
        accesses = judgement.accesses
        if redirects.accesses or len(accesses) > 1:
            accesses = tuple(dict.fromkeys((*accesses, *redirects.accesses)))
        command = _command(
            texts,
            found.text,
            literal,
            context.wrappers,
            _add_plain_name(texts, context.wrapped) if texts and "/" in texts[0] else context.wrapped,
            found.assignments,
            single_folder(found.folders),
            redirects.present,
            context.inside,
            verdict,
            reason,
            accesses,
            (*judgement.trees, *found.trees) if judgement.trees or found.trees else (),
            judgement.copied,
        )
        if self.findings.links and accesses:
            self.findings.add_objection("it uses paths after it made a link, which may lead elsewhere")
        if judgement.links:
            self.findings.links = True
        self.findings.commands.append(command)
        if danger := find_danger(texts, accesses):
            self.findings.add_danger(danger)


def _raise_verdict(verdict: Verdict, reason: str, floor: Verdict, why: str) -> tuple[Verdict, str]:
    return (verdict, reason) if verdict.rank >= floor.rank else (worst(verdict, floor), why)


def _charge_xargs_input(
    found: FoundCommand, inner: InnerCommand, names: XargsInput
) -> tuple[FoundCommand, InnerCommand]:
    """Count the paths that the line pipes into xargs as accesses of the command behind it, if they are known."""
    if names is None or (names.loose and not inner.whole):
        return found, inner
    mark = inner.mark or "{}"
    # `{}nv` or `x/{}` is a path of its own, which the names alone do not tell
    named = tuple([word if word.literal or word.text != mark else word._replace(named=True) for word in inner.words])
    redirects = found.redirects._replace(accesses=(*found.redirects.accesses, *names.accesses))
    trees = (*found.trees, *(tree._replace(split=tree.split and not inner.whole) for tree in names.trees))
    return found._replace(redirects=redirects, trees=trees), inner._replace(words=named)


def _add_plain_name(texts: tuple[str, ...], wrapped: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, ...], ...]:
    """Add a form of the command with the program's plain name, so that a deny rule for `rm` covers `/bin/rm`."""
    return (*wrapped, (texts[0].rpartition("/")[2], *texts[1:]))


MAX_PROVEN_CHARS = 10_000
"""A longer line is never proven: a user could not read it before approving it."""
MAX_READ_CHARS = 120_000
"""Of a longer line only the beginning and the end are searched for commands."""
_EDGE_CHARS = 2_500

# what bash does not take for white space but a reader may, what hides text, and what is not text at all
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\xa0\xad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u2028-\u202f"
    "\u205f-\u206f\u2800\u3000\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)
_UNREADABLE = re.compile("[\x00\ud800-\udfff]")
_CONTINUED = re.compile(r"(?<!\\)\\\n")


def analyze(line: str, cwd: str | os.PathLike[str]) -> ShellPlan:
    """Determine what a bash line would do, without running it.

    Runs nothing, reads no file and never raises. Results are cached. What it proves holds for a line that runs with
    `git_env.SAFE_ENVIRONMENT`, as the bash tool runs it.

    Args:
        line: The bash line, which may hold several commands and line breaks.
        cwd: The folder the line would run in; relative paths are resolved against it lexically.
    """
    folder = absolute_folder(cwd)
    if len(line) > MAX_PROVEN_CHARS:  # rare and large: not worth the memory of the cache
        return analyze_uncached(line, folder)
    return _analyze_cached(line, folder, home_folder())


@lru_cache(maxsize=256)
def _analyze_cached(line: str, folder: str, _home: str) -> ShellPlan:
    """Analyze a line once: the tool and every policy ask about the same line, often again on the next turn.

    The home folder is part of the key because a tilde depends on it.
    """
    return analyze_uncached(line, folder)


def analyze_uncached(line: str, folder: str) -> ShellPlan:
    """Analyze a line without the cache; `folder` must be absolute and normalized."""
    problem = _find_problem(line)
    findings = Findings(holds_texts=len(line) <= MAX_PROVEN_CHARS)
    _read_line(line, folder, findings)
    if findings.holds_texts:  # a longer line is never proven, and is read only once
        unspelled = any(map(sets_unspelled, findings.commands))
        doubted = problem or findings.unread or findings.objections or any(map(sets_unclear, findings.commands))
        if unspelled or (findings.constants and doubted):
            filled = findings.commands
            findings = Findings(findings.dangers, findings.unread, holds_texts=False, holds_globs=not unspelled)
            _read_line(line, folder, findings)
            # what runs if the variables do hold these texts, for rules and guards: a command more allows nothing;
            # in front, because the last command decides what the exit code means
            read = set(findings.commands)
            findings.commands[:0] = [command for command in dict.fromkeys(filled) if command not in read]
    return _make_plan(line, findings, problem or findings.unread)


def _read_line(line: str, folder: str, findings: Findings) -> None:
    """Record what a line does."""
    analyzer = LineAnalyzer(findings)
    for script in _split_scripts(line, findings):
        try:
            analyzer.analyze_script(script, frozenset((folder,)), ScriptContext())
        except (RecursionError, MemoryError, ValueError):
            findings.give_up(TOO_DEEP)
    findings.add_danger(find_fork_bomb(line))
    if findings.overfilled:
        findings.give_up(OVERFILLED)
        findings.add_danger(OVERFILLED)


def _find_problem(line: str) -> str:
    if len(line) > MAX_PROVEN_CHARS:
        return f"it is {len(line):,} characters long; split it into lines of at most {MAX_PROVEN_CHARS:,}"
    hidden = _HIDDEN.search(line)
    if hidden is None:
        return ""
    if _UNREADABLE.search(line):
        return "it holds characters that are not text"
    return f"it holds the invisible or control character U+{ord(hidden[0]):04X}"


def _split_scripts(line: str, findings: Findings) -> list[str]:
    """Return the scripts to analyze: the line as bash reads it, or only its two ends when it is far too long."""
    if len(line) > MAX_READ_CHARS:
        findings.give_up(f"of more than {MAX_READ_CHARS:,} characters only the beginning and the end are searched")
        return [line[:_EDGE_CHARS], line[-_EDGE_CHARS:]]
    line = line.replace("\x00", "").replace("\r\n", "\n")
    if "\\\n" in line:
        if any(mark in line for mark in ("'", "#", "<<", "\\\\")):
            findings.add_objection("its line continuations are mixed with quotes, comments or heredocs")
        line = _CONTINUED.sub("", line)
    return [parsing.close_heredoc(line)]


def _make_plan(line: str, findings: Findings, problem: str) -> ShellPlan:
    commands = tuple(findings.commands)
    verdict = worst(*{command.verdict for command in commands})
    if not problem and NOT_BASH in findings.objections:
        problem = NOT_BASH
    proven = not problem and not findings.objections
    reason = next((command.reason for command in commands if command.verdict is verdict), "it does nothing")
    if not proven and verdict is not Verdict.UNKNOWN:
        verdict, reason = Verdict.UNKNOWN, problem or findings.objections[0]
    accesses = tuple(dict.fromkeys(access for command in commands for access in command.accesses))
    dangers, unread = tuple(findings.dangers), findings.unread
    return _plan(line, commands, accesses, verdict, problem or reason, proven, dangers, problem, unread)
