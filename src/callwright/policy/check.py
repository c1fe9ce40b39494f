"""What is wrong with rules, said when they are loaded rather than when they fail to protect."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from callwright.policy.broad import why_too_broad
from callwright.policy.names import FILE_FAMILIES, canonical, is_known, names_tool
from callwright.policy.patterns import CommandPattern, command_pattern
from callwright.policy.rule import Rule

ProblemKind: TypeAlias = Literal["unknown tool", "unreachable", "never matches", "too broad", "example fails"]
_PRIMARY_FIELDS = ("command:", "file_path:", "path:", "url:")
_SEPARATORS = re.compile(r"&&|\|\||[;|\n]|(?<![<>&\d])&(?![&>])|(?<!-)>|<")
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|\\.")


@dataclass(frozen=True, slots=True)
class Problem:
    """Something a person should know about one of their rules."""

    kind: ProblemKind
    rule: Rule
    text: str

    def __str__(self) -> str:
        return f"{self.rule.source}: {self.kind}: {self.text}"


def check_rules(rules: Sequence[Rule], tools: Iterable[str] = ()) -> tuple[Problem, ...]:
    """Look at rules together; `tools` are the names that exist beside the usual ones."""
    known = frozenset(canonical(name) for name in tools)
    found = (_first_problem(rule, rules, known) for rule in rules)
    return tuple(problem for problem in found if problem is not None)


def _first_problem(rule: Rule, rules: Sequence[Rule], known: frozenset[str]) -> Problem | None:
    checks: tuple[tuple[ProblemKind, str], ...] = (
        ("unknown tool", _unknown(rule, known)),
        ("never matches", _never(rule)),
        ("unreachable", _unreachable(rule, rules)),
        ("too broad", _too_broad(rule)),
    )
    return next((Problem(kind, rule, text) for kind, text in checks if text), None)


def _unknown(rule: Rule, known: frozenset[str]) -> str:
    if not rule.wide or is_known(rule.tool) or rule.tool in known:
        return ""
    return f"there is no tool {rule.text.partition('(')[0]}, so it protects nothing"


def _never(rule: Rule) -> str:
    specifier = rule.specifier or ""
    if not rule.wide and "*" in rule.tool and not re.match(r"mcp__[^*]+?__", rule.tool):
        return "an allow rule may use * in a tool's name only after mcp__server__"
    if specifier.startswith(_PRIMARY_FIELDS) and rule.tool in (*FILE_FAMILIES, "bash", "webfetch"):
        return f"write what it may be without {specifier.partition(':')[0]}:"
    if rule.tool == "bash" and specifier:
        return _never_command(rule, specifier)
    if rule.tool == "webfetch" and specifier and not rule.wide and not specifier.startswith("domain:"):
        return "write WebFetch(domain:example.com)"
    if rule.tool in FILE_FAMILIES and specifier.startswith("!"):
        return "patterns cannot be negated; write a rule of the other kind"
    return ""


def _never_command(rule: Rule, specifier: str) -> str:
    if _SEPARATORS.search(_QUOTED.sub("", specifier)):
        return "a line is judged command by command, and redirects by Edit rules; write one rule for each command"
    if ":*" in specifier[:-2] and "\\:*" not in specifier:
        return "`:*` means `anything` only at the end; write a space and * instead"
    pattern = command_pattern(specifier)
    if not rule.wide and not pattern.exact and re.match(r"(env|watch|setsid|ionice|flock|find\b.*-exec)\b", specifier):
        return "what it runs would be the wildcard's choice; only a rule without * covers it"
    return ""


def _unreachable(rule: Rule, rules: Sequence[Rule]) -> str:
    stricter = {"allow": ("deny", "ask"), "ask": ("deny",), "deny": ()}[rule.kind]
    for other in rules:
        if other.kind in stricter and not other.session and _includes(other, rule):
            return f"{other.source} always decides first"
    return ""


def _includes(wide: Rule, narrow: Rule) -> bool:
    if "*" in narrow.tool or not names_tool(wide.tool, (narrow.tool,), ""):
        return False
    if wide.specifier is None:
        return True
    if narrow.specifier is None:
        return False
    if narrow.tool == "bash":
        return _includes_command(command_pattern(wide.specifier), narrow.specifier)
    return wide.specifier in (narrow.specifier, "**", "//**") and wide.base in ("", narrow.base)


def _includes_command(wide: CommandPattern, narrow: str) -> bool:
    """Try what the narrow pattern could stand for, its wildcards filled with a word nobody would write."""
    pattern = command_pattern(narrow)
    filled = "\ue000".join(pattern.forms[0].pieces)
    samples = (filled, f"{filled} \ue000") if pattern.bounded else (filled,)
    return all(wide.matches(sample) for sample in samples)


def _too_broad(rule: Rule) -> str:
    if rule.wide:
        return ""
    if rule.tool == "bash":
        return why_too_broad(command_pattern(rule.specifier or "*"))
    if rule.tool == "edit" and rule.specifier in ("//**", "//*", "//", "~/**", "~"):
        return "it allows writing nearly anywhere"
    if rule.tool == "webfetch" and rule.specifier in (None, "domain:*"):
        return "it allows every address, also for sending data out"
    return ""
