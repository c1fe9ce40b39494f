"""The rule value, the parser of a rule's text, and how certain it is that a rule is about an access."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal, TypeAlias

from callwright.core.errors import UsageError
from callwright.core.spec import REPOSITORY, SHADOWS, ToolSpec
from callwright.policy.rules.patterns import check_path_pattern
from callwright.policy.tool_names import FILE_FAMILIES, JUDGED_BY_ACCESS, canonical, is_known
from callwright.system.search.globs import BadClass

RuleKind: TypeAlias = Literal["deny", "ask", "allow"]
NAMED_ARGUMENTS = re.compile(r"\s*\w+:[^,]*(?:,\s*\w+:[^,]*)*")
"""A specifier that names arguments: `model:opus, type:code`."""
_NEXT_ARGUMENT = re.compile(r",\s*\w+:")
_SEPARATOR = re.compile(r"[,;|&]")
_SECOND_RULE = re.compile(r"[^()]*\)[\s,;|&]*([\w:*.-]+)\(")
"""Behind a parenthesis that closes what the rule opened, so that it is no text such as `f(a),g(b)`."""
_BACKGROUND = re.compile(r"(^|,\s*)(?:run_in|is)_background:")
"""Other agents' names of the argument `background`."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule as it was written: `Bash(git log *)`, `Read(~/.ssh/**)`, `mcp__github`."""

    kind: RuleKind
    text: str
    tool: str
    """The tool's name in the spelling rules are compared in; may hold `*`."""
    specifier: str | None = None
    """The text in the parentheses; None for a rule about the whole tool."""
    written_in: str = ""
    """The file, option or answer it comes from."""
    base: str = ""
    """The folder that a path pattern with one leading slash starts from; empty for the working folder."""
    session: str = ""
    """The only session it applies in; empty for all."""
    scope: str = ""
    """Whose rule it is: `user`, `managed`, `project`, `local`, `command line`; empty for an answer or a program's."""

    @property
    def source(self) -> str:
        """The rule's text and origin, as decisions name them."""
        return f"{self.kind} rule {self.text}" + (f" in {self.written_in}" if self.written_in else "")

    @property
    def restricts(self) -> bool:
        """It denies or asks, so it applies where a match is uncertain."""
        return self.kind != "allow"

    def may_cover(self, spec: ToolSpec) -> bool:
        """Whether the rule may decide about a tool: the user's allow rules are not about a repository's MCP server."""
        if self.restricts or not spec.metadata.get(REPOSITORY):
            return True
        if self.scope == "command line":  # given for this run, but perhaps with the user's own server in mind
            return not spec.metadata.get(SHADOWS)
        return self.scope in ("", "project", "local")


class Match(IntEnum):
    """How certain it is that a rule is about an access; only deny and ask rules act on `MAYBE`."""

    NO = 0
    MAYBE = 1
    YES = 2


def match_if(claim: bool) -> Match:
    """Return a certain match, or none."""
    return Match.YES if claim else Match.NO


def parse_rule(
    kind: RuleKind, text: str, *, written_in: str = "", base: str = "", session: str = "", scope: str = ""
) -> Rule:
    """Parse the text of a rule.

    Args:
        kind: Whether it denies, asks or allows.
        text: `Tool` or `Tool(specifier)`.
        written_in: The file, option or answer it comes from.
        base: The folder that a path pattern with one leading slash starts from.
        session: The only session it applies in.
        scope: Whose rule it is, as in `Rule.scope`.

    Raises:
        UsageError: The text has another form, or a class in its pattern can match nothing. No rule is dropped silently.
    """
    name, opened, rest = text.strip().partition("(")
    name = name.strip()
    if not name or (opened and not rest.endswith(")")) or any(character in name for character in " )"):
        raise UsageError(
            f"the {kind} rule {text!r} is not of the form Tool or Tool(specifier), such as Bash(git log *)"
        )
    if kind != "allow" and _names_several(name, rest):
        raise UsageError(
            f"the {kind} rule {text!r} names several tools, or one in another form; write one rule for each, such as "
            "Bash(git push *)"
        )
    specifier = rest[:-1].strip() if opened else None
    if kind == "allow" and specifier == "":
        raise UsageError(
            f"the allow rule {text!r} names nothing between its parentheses; write {name} to allow every call of the "
            "tool, or name what to allow"
        )
    judged_by_access = canonical(name) in JUDGED_BY_ACCESS
    if kind != "allow" and specifier:
        specifier = _without_argument_name(canonical(name), specifier)
    if kind != "allow" and specifier in ("*", ":*", "**") and not judged_by_access:
        specifier = None  # every call, also one without arguments
    if specifier and "[" in specifier and canonical(name) in (*FILE_FAMILIES, "group:file"):
        try:
            check_path_pattern(specifier)
        except BadClass as error:
            raise UsageError(
                f"the {kind} rule {text!r}: {error}; write \\[ for a bracket that is part of a name"
            ) from None
    return Rule(kind, text.strip(), canonical(name), specifier or None, written_in, base, session, scope)


def _names_several(name: str, rest: str) -> bool:
    """Whether a text holds several rules, of which none would apply: `Bash,Read`, `Read(a),Edit(b)`."""
    one = is_known(name) and not _SEPARATOR.search(name)
    if not one and any(is_known(part) for part in re.split(r"[^\w*.-]+", name) if part):
        return True
    second = _SECOND_RULE.match(rest)
    return second is not None and is_known(second[1])


def _without_argument_name(tool: str, specifier: str) -> str:
    """Read `Bash(command:rm *)` as `Bash(rm *)` and `Read(path:a)` as `Read(a)`: else such a rule denies nothing."""
    if tool == "bash" and NAMED_ARGUMENTS.fullmatch(specifier):  # else it is text of a command
        specifier = _BACKGROUND.sub(r"\1background:", specifier)
    names = ("command", "cmd") if tool == "bash" else ("file_path", "path") if tool in FILE_FAMILIES else ()
    key, _, value = specifier.partition(":")
    named = key.strip() in names and not _NEXT_ARGUMENT.search(value)
    return value.strip() if named and value.strip("* ") else specifier  # `command:*` is about the program `command`


def rules_of(
    *,
    allow: Iterable[str] = (),
    ask: Iterable[str] = (),
    deny: Iterable[str] = (),
    written_in: str = "",
    base: str = "",
    scope: str = "",
) -> tuple[Rule, ...]:
    """Parse lists of rules that come from one place.

    Args:
        allow: Rules that allow.
        ask: Rules that ask.
        deny: Rules that deny.
        written_in: The file or option they come from.
        base: The folder that a path pattern with one leading slash starts from.
        scope: Whose rules they are, as in `Rule.scope`.

    Raises:
        UsageError: A text is not a rule, or a list is one string.
    """
    lists: tuple[tuple[RuleKind, Iterable[str]], ...] = (("deny", deny), ("ask", ask), ("allow", allow))
    for kind, texts in lists:
        if isinstance(texts, str):  # each letter would become a rule about a tool of one letter, and protect nothing
            raise UsageError(f"{kind} expects a list of rules, got the string {texts!r}; write {kind}=[{texts!r}]")
    return tuple(
        parse_rule(kind, text, written_in=written_in, base=base, scope=scope) for kind, texts in lists for text in texts
    )
