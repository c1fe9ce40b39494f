"""Rules from settings files: read, checked against their own examples, and told what is wrong with them."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from callwright.core.access import Access
from callwright.core.errors import UsageError
from callwright.policy.check import Problem, check_rules
from callwright.policy.decide import Policies
from callwright.policy.judged import JudgedCall, call_of
from callwright.policy.places import Surroundings
from callwright.policy.rule import Rule, RuleKind, parse_rule
from callwright.policy.rules import Rules

_KINDS: tuple[RuleKind, ...] = ("deny", "ask", "allow")


@dataclass(frozen=True, slots=True)
class LoadedRules:
    """Rules and what a person should know about them."""

    rules: tuple[Rule, ...] = ()
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class _Entry:
    rule: Rule
    match: tuple[str, ...] = ()
    not_match: tuple[str, ...] = ()


def load_rules(*files: str | Path, tools: Iterable[str] = (), cwd: str | Path | None = None) -> LoadedRules:
    """Read `{"permissions": {"deny": […], "ask": […], "allow": […]}}` from each file.

    An entry is a rule's text, or `{"rule": …, "match": […], "not_match": […]}` with examples that are tried at once. A
    file or rule that cannot be read is a `UsageError`: a protection must not be lost in silence.
    """
    entries = [entry for file in files for entry in _entries(Path(file))]
    rules = tuple(dict.fromkeys(entry.rule for entry in entries))
    here = Surroundings.of(cwd or Path.cwd())
    failed = [
        problem
        for entry in entries
        for problem in failed_examples(entry.rule, here, match=entry.match, not_match=entry.not_match)
    ]
    return LoadedRules(rules, (*check_rules(rules, tools), *failed))


def _entries(file: Path) -> Iterable[_Entry]:
    try:
        content: object = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"the rules in {file} cannot be read: {error}") from None
    permissions = _mapping(_mapping(content, file).get("permissions", content), file)
    folder = file.resolve().parent
    base = str(folder.parent if folder.name.startswith(".") else folder)
    for kind in _KINDS:
        listed = permissions.get(kind, [])
        if not isinstance(listed, list):
            raise UsageError(f"{kind} in {file} must be a list of rules, not {listed!r}")
        for item in cast("list[object]", listed):
            yield _entry(kind, item, file, base)


def _mapping(value: object, file: Path) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise UsageError(f"the rules in {file} must be an object with deny, ask and allow")
    return cast("Mapping[str, object]", value)


def _entry(kind: RuleKind, item: object, file: Path, base: str) -> _Entry:
    if isinstance(item, str):
        return _Entry(parse_rule(kind, item, written_in=str(file), base=base))
    fields = _mapping(item, file)
    text = fields.get("rule")
    if not isinstance(text, str):
        raise UsageError(f"an entry of {kind} in {file} has no rule: {item!r}")
    rule = parse_rule(kind, text, written_in=str(file), base=base)
    return _Entry(rule, _texts(fields.get("match", ()), file), _texts(fields.get("not_match", ()), file))


def _texts(value: object, file: Path) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)) or not all(
        isinstance(item, str) for item in cast("Sequence[object]", value)
    ):
        raise UsageError(f"match and not_match in {file} must be lists of examples, not {value!r}")
    return tuple(cast("Sequence[str]", value))


def failed_examples(
    rule: Rule, here: Surroundings, *, match: Iterable[str], not_match: Iterable[str]
) -> Iterator[Problem]:
    """Try a rule on what its author says it matches and does not match."""
    for example in match:
        if not _applies(rule, example, here):
            yield Problem("example fails", rule, f"it does not match {example!r}")
    for example in not_match:
        if _applies(rule, example, here):
            yield Problem("example fails", rule, f"it matches {example!r}")


def _applies(rule: Rule, example: str, here: Surroundings) -> bool:
    access, call = call_of(rule.tool, example, here.cwd)
    return concerns(rule, (access,), call, here)


def concerns(rule: Rule, accesses: Iterable[Access], call: JudgedCall, here: Surroundings) -> bool:
    """Whether a rule, alone in the world, has a say about anything a call touches."""
    alone = Policies(Rules([rule], here))
    return any(rule.source in alone.decide(access, call).source for access in accesses)
