"""Whether a hook's condition, written like a permission rule, is about a call.

Where a person's lasting yes goes, and what a hook's yes is worth.

The rules of every layer, with what is wrong with them.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from callwright.app.locations import Locations
from callwright.app.settings import Settings, repository_layers
from callwright.app.settings_file import Layer
from callwright.app.trust import Trust
from callwright.core.access import Access, Allow, Decision
from callwright.core.calls import Approve, Question, digest_of
from callwright.core.errors import CallwrightError, UsageError
from callwright.hooks.base import PendingCall
from callwright.hooks.shell.config import ShellHook
from callwright.hooks.shell.hooks import ShellHooks
from callwright.policy.base import Policy, Subject, Tier
from callwright.policy.dry_run import JudgedCall, judged_by
from callwright.policy.grants import Grants
from callwright.policy.paths import PathContext
from callwright.policy.rules.loading import LoadedRules, Problem, check_rules, concerns, failed_examples
from callwright.policy.rules.rule import Rule, RuleKind, parse_rule, rules_of
from callwright.registry import Toolset


@dataclass(frozen=True, slots=True)
class Conditions:
    """Matches the way deny rules do, through quotes, wrappers and links: in doubt the hook runs, because it guards."""

    toolset: Toolset
    here: PathContext

    def __call__(self, condition: str, pending: PendingCall) -> bool:
        rule = _rule(condition)
        if rule is None:
            return True
        tool = self.toolset.snapshot().get(pending.call.name)
        try:
            accesses = () if tool is None else tool.bind(pending.arguments).accesses()
        except (CallwrightError, ValueError, LookupError):
            return True  # what it would touch cannot be told
        call = JudgedCall(pending.spec, pending.arguments, pending.session_id)
        return concerns(rule, judged_by(pending.spec, accesses), call, self.here)


def faulty_condition(hook: ShellHook) -> str:
    """What is wrong with a hook's condition, in words for a person; empty where nothing is."""
    if not hook.condition or _rule(hook.condition) is not None:
        return ""
    return f"{hook}: the condition {hook.condition!r} is not a rule such as Bash(git *), so it runs every time"


@cache
def _rule(condition: str) -> Rule | None:
    try:
        return parse_rule("deny", condition, written_in="a condition")
    except UsageError:
        return None


class ProjectGrants(Grants):
    """Keeps "always" in the project's local settings, which stay trusted when we are the ones who added to them."""

    def __init__(self, here: PathContext, places: Locations) -> None:
        self._trust = Trust(places)
        # a saved rule would not count in a folder that is not trusted, and too far where a link leads out of it
        own = places.local_settings.resolve().is_relative_to(places.project)
        super().__init__(here, places.local_settings if own and self._trust.given else None)

    def remember(self, question: Question, answer: Approve, *, session: str = "") -> tuple[str, ...]:
        trusted = self._trust.given
        rules = super().remember(question, answer, session=session)
        if rules and trusted:
            self._trust.give()
        return rules


class HookAllows(Policy):
    """Speaks for hooks that allowed a call: a rule's voice, so that every deny and ask rule is still stronger."""

    tier = Tier.RULE

    def __init__(self, hooks: ShellHooks) -> None:
        self._hooks = hooks

    def judge(self, access: Access, subject: Subject) -> Decision | None:
        allowed = self._hooks.allowed | self._hooks.granted
        if not allowed:
            return None
        mark = digest_of(subject.spec.name, subject.arguments, (), session_id=subject.session_id)
        return Allow("a hook allowed it", "hook") if mark in allowed else None


_FIELDS = frozenset({"rule", "match", "not_match"})
_KINDS: tuple[RuleKind, ...] = ("deny", "ask", "allow")


def rules_in(
    settings: Settings,
    here: PathContext,
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


def withheld_rules(places: Locations, *, trusted: bool) -> tuple[Rule, ...]:
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


def _examples(rule: Rule, fields: Mapping[str, Any], here: PathContext) -> Iterator[Problem]:
    for name in fields.keys() - _FIELDS:
        yield Problem("example fails", rule, f"{name!r} is not read; examples are written as match and not_match")
    yield from failed_examples(rule, here, match=fields.get("match", ()), not_match=fields.get("not_match", ()))
