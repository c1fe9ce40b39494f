"""Approvals remembered for a session or permanently, and the rules that permanent ones become.

A remembered approval never covers more than the question showed: exact accesses for a session, and for always one
narrow rule for each command, file, host, resource or tool, shown to the user before it is saved.
"""

import os
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias
from urllib.parse import urlsplit

from callwright.core.access import (
    Access,
    Allow,
    Confinement,
    Decision,
    DeletePath,
    DeleteResource,
    Reach,
    ReadPath,
    ReadResource,
    RunCommand,
    UseTool,
    WritePath,
    WriteResource,
)
from callwright.core.calls import Approve, Question, digest_of
from callwright.core.errors import check_kind
from callwright.core.json import JsonObject
from callwright.policy.base import Policy, Subject, Tier, make_printable
from callwright.policy.dry_run import dry_run_line
from callwright.policy.paths import PathContext
from callwright.policy.rules.command_patterns import covers, outermost
from callwright.policy.rules.matching import Rules
from callwright.policy.rules.patterns import command_pattern, escape_wildcards, host_readings
from callwright.policy.rules.resource_patterns import escape_uri, resource_pattern
from callwright.policy.rules.rule import Rule, parse_rule
from callwright.policy.rules.saving import save_rules
from callwright.policy.rules.too_broad import (
    prefix_words,
    script_words,
    why_not_saved,
    why_too_broad,
)
from callwright.policy.shell_line import PartOfLine, plan_without_redirects
from callwright.policy.tool_names import JUDGED_BY_ACCESS, RESOURCE_FAMILIES, canonical, words
from callwright.shell.plan import SimpleCommand, Verdict
from callwright.shell.words import absolute_folder

# subcommands whose arguments choose among the project's own files and scripts; `npm install *` would run any package
_WIDENED = {
    "git": words("add commit"),
    "cargo": words("test check clippy fmt"),
    "go": words("test vet"),
    **dict.fromkeys(("npm", "pnpm", "yarn"), words("run test")),
}
_GLOB_CHARACTERS = frozenset("*?[]\\!#")
_NAME_CHARACTERS = frozenset("*() ")
"""What makes the name of a tool something else in a rule."""
_SHARED_NAMES = JUDGED_BY_ACCESS | RESOURCE_FAMILIES
"""Names under which rules cover what any tool reads, changes, runs or reaches."""
_ASKS_EVERY_TIME = ("guard ", "ask rule ", "deny rule ", "hook", "and ")
"""How the sources begin that no remembered approval settles; "and 2 more" may stand for one of them."""
_FENCE = "workspace fence"
_ProposeCommand: TypeAlias = "Callable[[PartOfLine, SimpleCommand], Proposal]"


@dataclass(frozen=True, slots=True)
class Proposal:
    """The rules a permanent approval would become, to be shown before it is given."""

    rules: tuple[str, ...] = ()
    """Exactly what would be saved; empty if the call can only be approved once or for the session."""
    refusal: str = ""
    """Why no rule can be offered."""


def propose(accesses: Iterable[Access], *, prefix: bool = False) -> Proposal:
    """Return the narrowest rules that would allow these accesses again.

    Args:
        accesses: What a question shows.
        prefix: Let a command's rule cover other arguments too, where that does not mean "run anything".
    """
    return _propose_all(accesses, partial(_propose_command, prefix=prefix))


def generalise(accesses: Iterable[Access]) -> Proposal:
    """Return rules that cover a little more than these accesses, where that is still easy to foresee.

    A script of the folder becomes the scripts of its kind there (`node *.mjs`), and a few subcommands get open
    arguments (`git commit *`). Anything else has the exact rules of `propose` only.

    Args:
        accesses: What a question shows.
    """
    shown = tuple(accesses)
    wider = _propose_all(shown, _widen_command)
    if wider.refusal or wider.rules != propose(shown).rules:
        return wider
    return Proposal(refusal="no wider rule is safe")


def can_last(question: Question) -> bool:
    """Whether an approval may be given for longer than once; guards, ask rules and hooks ask every time."""
    return question.kind == "approval" and not question.running and not _find_constant_source(question)


def _find_constant_source(question: Question) -> str:
    return next((source for source in _sources(question) if source.startswith(_ASKS_EVERY_TIME)), "")


def _sources(question: Question) -> list[str]:
    return question.source.split("; ")


def propose_for(question: Question, *, wider: bool = False) -> Proposal:
    """Return the rules that a permanent approval of a question becomes; none where it would be asked again.

    Args:
        question: What is shown to the user.
        wider: Return rules that cover a little more, as `generalise` does.
    """
    if source := _find_constant_source(question):
        return Proposal(refusal=f"it is asked about every time ({source})")
    if _FENCE in _sources(question) and any(isinstance(access, RunCommand) for access in question.accesses):
        return Proposal(refusal="a rule about a command does not cover what it changes outside the workspace")
    return generalise(question.accesses) if wider else propose(question.accesses)


def _propose_all(accesses: Iterable[Access], propose_command: _ProposeCommand) -> Proposal:
    texts = list[str]()
    for access in accesses:
        line = isinstance(access, RunCommand)
        found = _propose_line(access, propose_command) if line else _propose_one(access)
        if found.refusal:
            return found
        texts.extend(found.rules)
    return Proposal(tuple(dict.fromkeys(texts)))


def _propose_one(access: Access) -> Proposal:
    match access:
        case ReadPath(path) | WritePath(path) | DeletePath(path) if not _is_plain_path(path):
            return Proposal(refusal=f"the path {path!r} cannot be written as a rule")
        case WritePath(path) | DeletePath(path) if os.path.isdir(path):  # noqa: PTH112 - a path as text
            return Proposal(refusal=f"a rule about the folder {make_printable(path)} would cover everything in it")
        case ReadPath(path):
            return Proposal((f"Read({_path_text(path)})",))
        case WritePath(path) | DeletePath(path):
            return Proposal((f"Edit({_path_text(path)})",))
        case Reach(url):
            return _propose_host(url)
        case ReadResource(uri) | WriteResource(uri) | DeleteResource(uri):
            return _propose_resource(type(access).__name__, uri)
        case UseTool(name):
            return _propose_tool(name)
        case _:  # pyright: ignore[reportUnnecessaryComparison] - an unknown kind of access must not become a rule
            return Proposal(refusal=f"{access!r} cannot be written as a rule")


def _propose_host(url: str) -> Proposal:
    """Propose a rule for the host of an address, if it is a plain name: `https://*/` is no approval of every host."""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        host = ""
    if "*" in host or "\\" in url or not host_readings(host):
        return Proposal(refusal=f"{make_printable(url)} has no host that a rule can name")
    return Proposal((f"WebFetch(domain:{host})",))


def _propose_resource(kind: str, uri: str) -> Proposal:
    """Propose a rule for the kind of access that was shown: approving a read must not allow a delete."""
    text = escape_uri(uri)
    if not uri.isprintable() or text != text.strip() or not text or not resource_pattern(text).allows(uri):
        return Proposal(refusal=f"{make_printable(uri)} cannot be written as a rule")
    return Proposal((f"{kind}({text})",))


def _propose_tool(name: str) -> Proposal:
    """Propose a rule for one tool, if its name stands for no other: `edit` is a rule about every file."""
    tool = canonical(name)
    server = tool.startswith("mcp__") and tool.count("__") == 1
    if tool in _SHARED_NAMES or tool.startswith("group:") or server or not _NAME_CHARACTERS.isdisjoint(name):
        return Proposal(refusal=f"a rule about {name} would not be about this tool alone")
    return Proposal((name,))


def _is_plain_path(path: str) -> bool:
    """Whether a rule can be read as it is shown, and matches: blanks at the end are not read, `a/` and `..` differ."""
    return (
        path.isprintable()
        and path == os.path.normpath(path)
        and not path.startswith("//")
        and path not in ("/", "~")
        and not path[-1].isspace()
    )


def _path_text(path: str) -> str:
    """Write a path as a pattern that matches only this path, with the characters of gitignore escaped."""
    text = "".join(f"\\{character}" if character in _GLOB_CHARACTERS else character for character in path)
    if text.startswith("~/"):  # the home folder, as it is for the policies
        return text
    return f"/{text}" if text.startswith("/") else f"./{text}"


def _propose_line(access: RunCommand, propose_command: _ProposeCommand) -> Proposal:
    from callwright.shell import analyze  # the parser is loaded when a line is judged, not before

    plan = analyze(access.line, access.cwd)
    # a rule made from a line that is only partly understood could allow more than the user saw
    if not plan.proven or plan.dangers or not plan.commands:
        return Proposal(refusal=plan.problem or plan.reason or "the line is not fully understood")
    texts = list[str]()
    for command in plan.commands:
        if command.verdict is Verdict.READ_ONLY:
            continue  # every mode runs it unasked
        if _redirects_to_file(command):  # no rule about a command covers that, and the call would be asked about again
            return Proposal(refusal="a rule about a command does not cover a redirect to a file")
        part = PartOfLine(dry_run_line(access.line), access, plan, command)
        found = propose_command(part, command)
        if found.refusal:
            return found
        texts.extend(found.rules)
    return Proposal(tuple(dict.fromkeys(texts)))


def _redirects_to_file(command: SimpleCommand) -> bool:
    own = plan_without_redirects(command).accesses if command.redirected else command.accesses
    return any(isinstance(access, WritePath) and access not in own for access in command.accesses)


def _widen_command(part: PartOfLine, command: SimpleCommand) -> Proposal:
    """Return a wider rule for a script of the folder or a subcommand; for other commands the exact one."""
    script = script_words(command.words) if outermost(command) == command.words else None
    if script is not None:
        text = f"{script[0]} {'./' if command.words[1].startswith('./') else ''}*{script[1]}"
        pattern = command_pattern(text)
        if not why_too_broad(pattern) and covers(pattern, part):
            return Proposal((f"Bash({text})",))
    exact = _propose_command(part, command, prefix=False)
    if exact.refusal or not set(command.words[1:2]) & _WIDENED.get(command.words[0], frozenset()):
        return exact
    wider = _propose_command(part, command, prefix=True)
    return wider if wider.rules and not why_too_broad(command_pattern(wider.rules[0][5:-1])) else exact


def _propose_command(part: PartOfLine, command: SimpleCommand, *, prefix: bool) -> Proposal:
    outer = outermost(command)
    refusal = why_not_saved(outer, prefix=prefix) or why_not_saved(command.words, prefix=prefix)
    chosen = prefix_words(outer) if prefix and not refusal else outer
    if refusal or not chosen:
        return Proposal(refusal=refusal or f"{make_printable(' '.join(outer))}: the rule would leave open what is run")
    text = " ".join(map(_word_text, chosen)) + (" *" if prefix else "")
    pattern = command_pattern(text)
    # the text is parsed again: quoting that does not survive the round trip must not become a wider rule
    if pattern.exact is prefix or not covers(pattern, part):
        return Proposal(refusal=f"{make_printable(' '.join(outer))} cannot be written as a rule")
    return Proposal((f"Bash({text})",))


def _word_text(word: str) -> str:
    text = escape_wildcards(word)
    if not word or any(character in " '\"" for character in word):
        quote = "'" if "'" not in word else '"'
        return f"{quote}{text}{quote}"
    return text


class Grants(Policy):
    """Remembers approvals: exact accesses for a session, and rules for longer.

    Args:
        here: The folders that paths in rules start from.
        file: The settings file that keeps permanent approvals; without one they end with the process.
    """

    tier = Tier.RULE

    def __init__(self, here: PathContext, file: str | Path | None = None) -> None:
        check_kind("here", here, PathContext, "write Grants(PathContext.of(folder), settings_file)")
        self._here = here
        self._file = file
        self._exact: dict[str, set[Access]] = {}
        self._answered: dict[str, tuple[set[Access], set[str]]] = {}
        """By session: the accesses and the digests of calls that answers in it allowed."""
        self._rules = Rules((), here)

    def grant(self, accesses: Iterable[Access], *, session: str) -> None:
        """Allow exactly these accesses for the rest of a session.

        Args:
            accesses: What calls of the session may touch.
            session: The session; others still ask.
        """
        self._exact.setdefault(session, set()).update(_without_claims(access) for access in accesses)

    def grant_rules(
        self, texts: Iterable[str], *, session: str = "", written_in: str = "an answer"
    ) -> tuple[Rule, ...]:
        """Allow what the given rules allow, in one session or, without `session`, in all of them.

        Args:
            texts: The rules, such as `Bash(git status)`.
            session: The session they are for; empty means every session.
            written_in: Where they come from, for messages.

        Raises:
            UsageError: A rule cannot be read.
        """
        added = tuple(parse_rule("allow", text, written_in=written_in, session=session) for text in texts)
        self._rules = Rules((*self._rules.rules, *added), self._here)
        return added

    def remember(self, question: Question, answer: Approve, *, session: str = "") -> tuple[str, ...]:
        """Keep an approval for as long as it was given for, and return the rules it became.

        A permanent approval that cannot be written as a narrow rule is kept for the session only.
        """
        if answer.scope == "once":
            return ()
        rules = _lasting_rules(question, answer)
        if not rules:
            self._grant_for_session(question, session)
            return ()
        if self._file is not None:
            save_rules(self._file, rules)
        self.grant_rules(rules)
        return rules

    def restore(self, question: Question, answer: Approve, *, session: str) -> None:
        """Take up an approval from the record of a resumed session.

        A permanent one that became rules is not restored: the rules are in the settings, unless the user removed them.
        """
        if answer.scope != "once" and not _lasting_rules(question, answer):
            self._grant_for_session(question, session)

    def _grant_for_session(self, question: Question, session: str) -> None:
        declared = [access for access in question.accesses if not isinstance(access, UseTool)]
        accesses, calls = self._answered.setdefault(session, (set(), set()))
        accesses.update(map(_without_claims, declared))
        if len(declared) < len(question.accesses):
            # only its tool and its arguments say what such a call would do, and another tool may take the name
            calls.add(_digest_call(question.tool, question.arguments, session, question.implementation))

    def forget(self, session: str) -> None:
        """Drop what answers in a deleted session allowed; what the program itself granted stays."""
        self._answered.pop(session, None)

    def judge(self, access: Access, subject: Subject) -> Decision | None:
        # a line was approved as a whole, so each of its parts is looked up by the line and not by itself
        whole = _without_claims(subject.access if isinstance(subject, PartOfLine) else access)
        accesses, calls = self._answered.get(subject.session_id, _NO_ANSWERS)
        if whole in accesses or whole in self._exact.get(subject.session_id, ()):
            return _GRANTED
        if isinstance(access, UseTool) and calls and _is_granted(subject, calls):
            return _GRANTED
        return self._rules.judge(access, subject)


def _is_granted(subject: Subject, calls: Container[str]) -> bool:
    # a dry run stands for a call of some tool, and no approval is for that
    implementation = str(getattr(subject, "implementation", ""))
    digest = _digest_call(subject.spec.name, subject.arguments, subject.session_id, implementation)
    return bool(implementation) and digest in calls


def _lasting_rules(question: Question, answer: Approve) -> tuple[str, ...]:
    """Return the rules that an answer becomes; empty for one that is not permanent, or has no rule."""
    if answer.scope == "pattern":
        return propose_for(question, wider=True).rules
    return propose_for(question).rules if answer.scope == "always" else ()


_NO_ANSWERS: tuple[frozenset[Access], frozenset[str]] = frozenset(), frozenset()
_GRANTED = Allow("the user allowed exactly this for the session", "answer for this session", Confinement.APPROVED)


def _digest_call(tool: str, arguments: JsonObject, session: str, implementation: str) -> str:
    return digest_of(tool, arguments, (), session_id=session, implementation=implementation)


def _without_claims(access: Access) -> Access:
    """Drop a command's claims about itself, which the tool may word differently the next time."""
    return RunCommand(access.line, absolute_folder(access.cwd)) if isinstance(access, RunCommand) else access
