"""Which rules a lasting yes would become: shown before they are saved, one for each command, file, host or tool."""

from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

from callwright.core.access import Access, DeletePath, Reach, ReadPath, RunCommand, UseTool, WritePath
from callwright.policy.broad import prefix_words, why_not_saved
from callwright.policy.cover import covers, outermost
from callwright.policy.judged import shell_call
from callwright.policy.line import PartOfLine, shown
from callwright.policy.patterns import command_pattern, escaped
from callwright.shell.plan import SimpleCommand, Verdict

_GLOB_CHARACTERS = frozenset("*?[]\\!#")


@dataclass(frozen=True, slots=True)
class Proposal:
    """The rules a lasting yes would become, to be shown before it is given."""

    rules: tuple[str, ...] = ()
    """Exactly what would be saved; empty when only a yes for once can be offered."""
    refusal: str = ""
    """Why nothing lasting can be offered."""


def propose(accesses: Iterable[Access], *, prefix: bool = False) -> Proposal:
    """Say which rules would allow these accesses again: one for each command, file, host or tool.

    With `prefix` a command's rule also covers other arguments, where that does not mean "anything".
    """
    texts = list[str]()
    for access in accesses:
        found = _for_line(access, prefix=prefix) if isinstance(access, RunCommand) else _for_thing(access)
        if found.refusal:
            return found
        texts.extend(found.rules)
    return Proposal(tuple(dict.fromkeys(texts)))


def _for_thing(access: Access) -> Proposal:
    match access:
        case ReadPath(path):
            return Proposal((f"Read({_path_text(path)})",))
        case WritePath(path) | DeletePath(path):
            return Proposal((f"Edit({_path_text(path)})",))
        case Reach(url):
            host = urlsplit(url).hostname or ""
            return Proposal((f"WebFetch(domain:{host})",)) if host else Proposal(refusal=f"{shown(url)} names no host")
        case UseTool(name):
            return Proposal((name,))
        case RunCommand():
            return _for_line(access, prefix=False)


def _path_text(path: str) -> str:
    """Write a path as a pattern that matches it alone: gitignore's own characters are escaped."""
    text = "".join(f"\\{character}" if character in _GLOB_CHARACTERS else character for character in path)
    return f"/{text}" if text.startswith("/") else f"./{text}"


def _for_line(access: RunCommand, *, prefix: bool) -> Proposal:
    from callwright.shell import analyse  # the parser is loaded when a line is judged, not before

    plan = analyse(access.line, access.cwd)
    if not plan.proven or plan.dangers or not plan.commands:
        return Proposal(refusal=plan.problem or plan.reason or "the line is not fully understood")
    texts = list[str]()
    for command in plan.commands:
        if command.verdict is Verdict.READ_ONLY:
            continue
        part = PartOfLine(shell_call(access.line), access, plan, command)
        found = _for_command(part, command, prefix=prefix)
        if found.refusal:
            return found
        texts.extend(found.rules)
    return Proposal(tuple(dict.fromkeys(texts)))


def _for_command(part: PartOfLine, command: SimpleCommand, *, prefix: bool) -> Proposal:
    outer = outermost(command)
    refusal = why_not_saved(outer, prefix=prefix) or why_not_saved(command.words, prefix=prefix)
    chosen = prefix_words(outer) if prefix and not refusal else outer
    if refusal or not chosen:
        return Proposal(refusal=refusal or f"{shown(' '.join(outer))}: the rule would leave open what is run")
    text = " ".join(map(_word_text, chosen)) + (" *" if prefix else "")
    pattern = command_pattern(text)
    if pattern.exact is prefix or not covers(pattern, part):
        return Proposal(refusal=f"{shown(' '.join(outer))} cannot be written as a rule")
    return Proposal((f"Bash({text})",))


def _word_text(word: str) -> str:
    text = escaped(word)
    if not word or any(character in " '\"" for character in word):
        quote = "'" if "'" not in word else '"'
        return f"{quote}{text}{quote}"
    return text
