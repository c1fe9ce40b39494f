"""Compares the arguments of a call with what a rule says about them: `Agent(model:opus)`, `deploy(env:prod)`."""

from collections.abc import Iterable

from callwright.core.json import JsonObject
from callwright.core.spec import CLAUDE_CODE_NAMES
from callwright.policy.rules.patterns import wildcard
from callwright.policy.rules.rule import Rule

_JUDGED_ELSEWHERE = frozenset({"command", "file_path", "path", "url"})


def parse_named_arguments(rule: Rule, arguments: JsonObject, family: str) -> list[tuple[str, str]]:
    """Parse `model:opus,type:code`; empty unless every key is an argument of the call, or another name of one.

    An allow rule is also not about arguments that rules about paths, commands and addresses judge.
    """
    pieces = [piece.partition(":") for piece in (rule.specifier or "").split(",")]
    others = CLAUDE_CODE_NAMES.get(family, {})  # the tools rename them before rules judge a call
    keys = [key.strip() for key, _, _ in pieces]
    keys = [key if key in arguments else others.get(key, key) for key in keys]
    named = [(key, value) for key, (_, _, value) in zip(keys, pieces, strict=True)]
    judged = frozenset[str]() if rule.restricts else _JUDGED_ELSEWHERE
    return named if all(key in arguments and key not in judged for key, _ in named) else []


def iterate_given(arguments: JsonObject, primary: tuple[str, ...], rule: Rule) -> Iterable[object]:
    """Return the arguments that a specifier without a key is compared with."""
    if primary:
        return (arguments[name] for name in primary if name in arguments)
    return (value for value in arguments.values() if isinstance(value, str)) if rule.restricts else ()


def fits_value(wanted: str, given: object) -> bool:
    """Whether an argument has a value, in which `*` stands for anything."""
    if not isinstance(given, (str, int, float)):  # a bool is an int, and reads "true" or "false"
        return False
    text, pattern = str(given).casefold(), wanted.strip().casefold()
    trailing = wildcard(pattern.removesuffix(" *")).matches(text) if pattern.endswith(" *") else False
    return trailing or wildcard(pattern).matches(text)
