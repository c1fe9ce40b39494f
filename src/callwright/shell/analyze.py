"""The door of the package: a line in, what it would do out.

Turns what the walk finds into judged simple commands: wrappers off, scripts inside opened.
"""

import os
import re
from collections.abc import Sequence
from functools import lru_cache

from callwright.core._fast import maker
from callwright.core.access import Access
from callwright.shell import syntax as parse
from callwright.shell.findings import STDIN_SCRIPT, Around, Found, Ledger, Redirects
from callwright.shell.judge import danger_of, fork_bomb, judge
from callwright.shell.plan import Judgement, ShellPlan, SimpleCommand, Verdict, worst
from callwright.shell.syntax import Walk
from callwright.shell.words import LITERAL, Folders, Word, entered, home, normal, only
from callwright.shell.wrappers import SHELLS, Layer, unwrap

_command = maker(SimpleCommand)
_FOREIGN = "git would follow the settings of another folder's repository, and those can run programs"
NOT_BASH = "it cannot be parsed as bash"
_READ_ONLY = Verdict.READ_ONLY
_MAX_LAYERS = 24
_MAX_BROKEN_BYTES = 2_000
_MAX_JUDGED_GUESSES = 300
_MAX_SCRIPTS = 400


class Reporter:
    """Judges every command of one line into one ledger."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger

    def script(self, text: str, folders: Folders, around: Around) -> None:
        """Report the commands of a script: the line itself, or one found inside it."""
        self.ledger.scripts += 1
        if self.ledger.scripts > _MAX_SCRIPTS:
            self.ledger.object("it holds too many scripts inside scripts")
            return
        source = text.encode("utf-8", "replace")
        root = parse.tree(source)
        if root is None or root.has_error:
            self.ledger.object(NOT_BASH)
        # scripts found inside this one have parsers' mistakes of their own
        outer, self.ledger.misread = self.ledger.misread, root is None or root.has_error
        if root is not None and not (root.has_error and len(source) > _MAX_BROKEN_BYTES):
            Walk(source, self.ledger, around, self.report).visit(root, folders)
        misread, self.ledger.misread = self.ledger.misread, outer
        if misread:
            self._guess(text, around._replace(doubt="it is a guess"))

    def _guess(self, text: str, around: Around) -> None:
        """Split a script that cannot be parsed at everything that may start a command."""
        for place, words in enumerate(parse.rough_commands(text)):
            if place < _MAX_JUDGED_GUESSES:
                self.report(Found(tuple(map(Word, words)), " ".join(words), None, around))
            else:
                command = SimpleCommand(tuple(words), " ".join(words), inside=around.inside, reason=around.doubt)
                self.ledger.commands.append(command)

    def report(self, found: Found) -> None:
        """Judge one command, and whatever it runs in turn."""
        if not found.words:
            self._record(found, Judgement(Verdict.READ_ONLY, "it only sets or redirects"))
            return
        if self.ledger.variables and any(not word.literal for word in found.words):
            self._report_filled(found)
        layer = unwrap(found.words) if len(found.around.wrappers) < _MAX_LAYERS else None
        if layer is None:
            self._report_bare(found)
        else:
            self._report_layer(found, layer)

    def _report_filled(self, found: Found) -> None:
        """Report the command as it reads with the line's own variables put in, for whoever denies."""
        words: list[Word] = []
        for word in found.words:
            value = None if word.literal else self._filled(word.text)
            words.extend([word] if value is None else map(Word, value.split() or [""]))
        if tuple(words) != found.words:
            self.report(found._replace(words=tuple(words)))

    def _filled(self, text: str) -> str | None:
        filled = text.strip('"')
        for name, value in self.ledger.variables.items():
            if value is not None:
                filled = filled.replace(f"${{{name}}}", value).replace(f"${name}", value)
        return None if filled == text.strip('"') or "$" in filled or "`" in filled else filled

    def _report_layer(self, found: Found, layer: Layer) -> None:
        around = found.around
        doubt = around.doubt or layer.doubt
        wrapped = (*around.wrapped, tuple(word.text for word in found.words))
        inside = around._replace(wrappers=(*around.wrappers, layer.name), wrapped=wrapped, doubt=doubt)
        folders = self._moved(found.folders, layer)
        if layer.name == "xargs" and found.feed is not None:
            found, layer = _fed(found, layer)
        if layer.script is None:
            assignments = (*found.assignments, *layer.assignments)
            self.report(found._replace(words=layer.inner, around=inside, folders=folders, assignments=assignments))
            return
        if not layer.script.literal:
            self.ledger.object(f"the script {layer.script.text} is not literal")
        if found.redirects.present:
            self._record(found._replace(words=()), Judgement(Verdict.READ_ONLY, "it only redirects"))
        before = len(self.ledger.commands)
        self.script(layer.script.text, folders, inside._replace(inside=layer.name))
        if len(self.ledger.commands) == before:
            self._record(found, Judgement(Verdict.UNKNOWN, f"{layer.name} runs a text nothing is known about"))

    def _moved(self, folders: Folders, layer: Layer) -> Folders:
        if layer.folder is None:
            return folders
        return entered(folders, layer.folder.text) if layer.folder.literal else None

    def _report_bare(self, found: Found) -> None:
        name = found.words[0].text
        if name in SHELLS or name.rpartition("/")[2] in SHELLS:
            self._report_shell(found)
            return
        judgement = judge(found.words, found.folders)
        if name == "git" and found.folders != self.ledger.start and judgement.verdict is Verdict.READ_ONLY:
            judgement = judgement._replace(verdict=Verdict.UNKNOWN, reason=_FOREIGN)
        self._record(found, judgement)
        for layer in judgement.layers:
            self._report_layer(found._replace(redirects=Redirects()), layer)

    def _report_shell(self, found: Found) -> None:
        operands = [word for word in found.words[1:] if word.text[:1] != "-"]
        reason = f"it runs the script {operands[0].text}" if operands else STDIN_SCRIPT
        self._record(found, Judgement(Verdict.UNKNOWN, reason))
        for text in found.redirects.fed:
            around = found.around._replace(inside="a heredoc", doubt="it is fed to a shell")
            self.script(text, found.folders, around)

    def _record(self, found: Found, judgement: Judgement) -> None:
        around, redirects = found.around, found.redirects
        texts, literal = _texts(found.words)
        verdict, reason = judgement.verdict, judgement.reason
        if redirects.doubt:
            verdict, reason = _worse(verdict, reason, Verdict.WRITES, redirects.doubt)
            if redirects.doubt.endswith("connection"):
                verdict = Verdict.UNKNOWN
        if around.doubt:
            verdict, reason = _worse(verdict, reason, Verdict.UNKNOWN, around.doubt)
        if not literal and verdict is not _READ_ONLY:
            self.ledger.object("a word that matters is not literal")
        accesses = judgement.accesses
        if redirects.accesses or len(accesses) > 1:
            accesses = tuple(dict.fromkeys((*accesses, *redirects.accesses)))
        command = _command(
            texts,
            found.text,
            literal,
            around.wrappers,
            _layers(texts, around.wrapped),
            found.assignments,
            only(found.folders),
            redirects.present,
            around.inside,
            verdict,
            reason,
            accesses,
        )
        self.ledger.commands.append(command)
        self.ledger.fear(danger_of(texts, accesses))


def _worse(verdict: Verdict, reason: str, floor: Verdict, why: str) -> tuple[Verdict, str]:
    return (verdict, reason) if verdict.rank >= floor.rank else (worst(verdict, floor), why)


def _fed(found: Found, layer: Layer) -> tuple[Found, Layer]:
    """Charge a command behind xargs with what the line is seen to hand it."""
    if any(word.text.startswith(("-a", "--arg-file")) for word in found.words):
        return found, layer
    named = tuple([word if word.literal else word._replace(named=True) for word in layer.inner])
    redirects = found.redirects._replace(accesses=(*found.redirects.accesses, *(found.feed or ())))
    return found._replace(redirects=redirects), layer._replace(inner=named)


def _texts(words: Sequence[Word]) -> tuple[tuple[str, ...], bool]:
    literal = True
    texts: list[str] = []
    for text, certainty, _ in words:
        texts.append(text)
        literal = literal and certainty is LITERAL
    return tuple(texts), literal


def _layers(texts: tuple[str, ...], wrapped: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, ...], ...]:
    """Keep the words as written, and let those who deny see the program's plain name as well."""
    if not texts or "/" not in texts[0]:
        return wrapped
    return (*wrapped, (texts[0].rpartition("/")[2], *texts[1:]))


MAX_PROVEN_CHARS = 10_000
"""A longer line is never proven: nobody can read it before agreeing to it."""
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


def analyse(line: str, cwd: str | os.PathLike[str]) -> ShellPlan:
    """Say what a bash line would do if it ran in a folder. Runs nothing, reads no file, never raises."""
    folder = normal(os.path.join("/", os.fspath(cwd)))  # noqa: PTH118 - lexical: the disk is not asked
    if len(line) > MAX_PROVEN_CHARS:  # seldom and large: not worth the memory
        return analyse_anew(line, folder)
    return _remembered(line, folder, home())


@lru_cache(maxsize=256)
def _remembered(line: str, folder: str, _home: str) -> ShellPlan:
    """A call's line is looked at by the tool, by each policy that asks, and often again on the next turn."""
    return analyse_anew(line, folder)


def analyse_anew(line: str, folder: str) -> ShellPlan:
    """Analyse without looking at what was analysed before, for a folder that is absolute and tidy."""
    ledger = Ledger(start=frozenset((folder,)))
    problem = _problem(line)
    reporter = Reporter(ledger)
    for script in _scripts(line, ledger):
        try:
            reporter.script(script, ledger.start, Around())
        except (RecursionError, MemoryError, ValueError):
            problem = problem or "it is too tangled to be analysed"
    ledger.fear(fork_bomb(line))
    return _plan(line, ledger, problem)


def _problem(line: str) -> str:
    if len(line) > MAX_PROVEN_CHARS:
        return f"it is {len(line):,} characters long; split it into lines of at most {MAX_PROVEN_CHARS:,}"
    if _UNREADABLE.search(line):
        return "it holds characters that are not text"
    if hidden := _HIDDEN.search(line):
        return f"it holds the invisible or control character U+{ord(hidden[0]):04X}"
    return ""


def _scripts(line: str, ledger: Ledger) -> list[str]:
    """Return what to read: the line as bash reads it, in pieces when it is far too long."""
    if len(line) > MAX_READ_CHARS:
        return [line[:_EDGE_CHARS], line[-_EDGE_CHARS:]]
    line = line.replace("\x00", "").replace("\r\n", "\n")
    if "\\\n" in line:
        if any(mark in line for mark in ("'", "#", "<<", "\\\\")):
            ledger.object("it continues over several lines in a way that is hard to follow")
        line = _CONTINUED.sub("", line)
    return [line]


def _plan(line: str, ledger: Ledger, problem: str) -> ShellPlan:
    commands = tuple(ledger.commands)
    verdict = worst(*{command.verdict for command in commands})
    if not problem and NOT_BASH in ledger.objections:
        problem = NOT_BASH
    proven = not problem and not ledger.objections
    reason = _reason(commands, verdict)
    if not proven and verdict is not Verdict.UNKNOWN:
        verdict, reason = Verdict.UNKNOWN, problem or ledger.objections[0]
    return ShellPlan(
        line, commands, _accesses(commands), verdict, problem or reason, proven, tuple(ledger.dangers), problem
    )


def _accesses(commands: tuple[SimpleCommand, ...]) -> tuple[Access, ...]:
    return tuple(dict.fromkeys(access for command in commands for access in command.accesses))


def _reason(commands: tuple[SimpleCommand, ...], verdict: Verdict) -> str:
    return next((command.reason for command in commands if command.verdict is verdict), "it does nothing")
