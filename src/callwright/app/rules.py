"""The rules of every layer, with what is wrong with them."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from callwright.app.layer import Layer
from callwright.app.places import Places
from callwright.app.settings import Settings, repository_layers
from callwright.core.errors import UsageError
from callwright.policy.check import Problem, check_rules
from callwright.policy.load import LoadedRules, failed_examples
from callwright.policy.places import Surroundings
from callwright.policy.rule import Rule, RuleKind, parse_rule, rules_of

_FIELDS = frozenset({"rule", "match", "not_match"})
_KINDS: tuple[RuleKind, ...] = ("deny", "ask", "allow")


def rules_in(
    settings: Settings,
    here: Surroundings,
    *,
    allow: Iterable[str] = (),
    ask: Iterable[str] = (),
    deny: Iterable[str] = (),
) -> LoadedRules:
    """Read every layer's rules and those of the command line, and try their examples."""
    given = rules_of(allow=allow, ask=ask, deny=deny, written_in="the command line")
    entries = [entry for layer in settings.layers for entry in _entries(layer)]
    rules = (*(rule for rule, _ in entries), *given)
    failed = [problem for rule, fields in entries for problem in _examples(rule, fields, here)]
    return LoadedRules(tuple(dict.fromkeys(rules)), (*check_rules(rules), *failed))


def withheld_rules(places: Places, *, trusted: bool) -> tuple[Rule, ...]:
    """The allow rules of a repository that do not count, because nobody trusts it."""
    layers = () if trusted else repository_layers(places)
    return tuple(rule for layer in layers for rule, _ in _entries(layer) if rule.kind == "allow")


def _entries(layer: Layer) -> Iterator[tuple[Rule, Mapping[str, Any]]]:
    for kind in _KINDS:
        for place, entry in enumerate(layer.section("permissions").get(kind, ())):
            fields = {"rule": entry} if isinstance(entry, str) else entry
            where = layer.at("permissions", kind, place)
            yield _parsed(kind, fields["rule"], where, _base(layer)), fields


def _parsed(kind: RuleKind, text: str, where: str, base: str) -> Rule:
    try:
        return parse_rule(kind, text, written_in=where, base=base)
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None


def _base(layer: Layer) -> str:
    if not Path(layer.source).is_absolute():
        return ""
    folder = Path(layer.source).resolve().parent
    return str(folder.parent if folder.name.startswith(".") else folder)


def _examples(rule: Rule, fields: Mapping[str, Any], here: Surroundings) -> Iterator[Problem]:
    for name in fields.keys() - _FIELDS:
        yield Problem("example fails", rule, f"{name!r} is not read; examples are written as match and not_match")
    yield from failed_examples(rule, here, match=fields.get("match", ()), not_match=fields.get("not_match", ()))
