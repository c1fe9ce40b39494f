"""Rules from the settings, conditions of hooks, and the policies for remembered approvals and for hooks."""

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from callwright.app.locations import Locations
from callwright.app.settings import Settings, repository_layers
from callwright.app.settings_file import SettingsLayer
from callwright.app.trust import Trust
from callwright.core.access import Access, Allow, Decision
from callwright.core.calls import Approve, Question, digest_of
from callwright.core.errors import CallwrightError, UsageError
from callwright.core.spec import SHADOWS
from callwright.hooks.base import PendingCall
from callwright.hooks.shell.config import ShellHook
from callwright.hooks.shell.hooks import ShellHooks
from callwright.policy.base import Policy, Subject, Tier
from callwright.policy.dry_run import DryRunCall, accesses_to_judge
from callwright.policy.grants import Grants
from callwright.policy.paths import PathContext
from callwright.policy.rules.loading import LoadedRules, RuleProblem, check_examples, check_rules, concerns
from callwright.policy.rules.rule import Rule, RuleKind, parse_rule, rules_of
from callwright.policy.rules.saving import remove_rule, save_rules
from callwright.registry import Toolset
from callwright.system.paths import resolve_links

_log = logging.getLogger("callwright")


@dataclass(frozen=True, slots=True)
class Conditions:
    """Decides whether a hook's `if` condition, written like a permission rule, applies to a call.

    It matches as deny rules do, through quotes, wrappers and links. In doubt the hook runs, because it may be a guard.
    """

    toolset: Toolset
    here: PathContext

    def __call__(self, condition: str, pending: PendingCall) -> bool:
        rule = _condition_rule(condition)
        if rule is None:
            return True
        tool = self.toolset.snapshot().get(pending.call.name)
        try:
            accesses = () if tool is None else tool.bind(pending.arguments).accesses()
        except (CallwrightError, ValueError, LookupError):
            return True  # the accesses are unknown
        call = DryRunCall(pending.spec, pending.arguments, pending.session_id)
        return concerns(rule, accesses_to_judge(pending.spec, accesses), call, self.here)


def condition_fault(hook: ShellHook) -> str:
    """Return why a hook's condition is not valid; empty if it is."""
    if not hook.condition or _condition_rule(hook.condition) is not None:
        return ""
    return (
        f"{hook}: the condition {hook.condition!r} is not a rule such as Bash(git *), so the hook runs for every call"
    )


@cache
def _condition_rule(condition: str) -> Rule | None:
    try:
        return parse_rule("deny", condition, written_in="a condition")
    except UsageError:
        return None


class ProjectGrants(Grants):
    """Saves rules approved with "always" in the project's local settings.

    A trusted project stays trusted after such a change.
    """

    def __init__(self, here: PathContext, locations: Locations) -> None:
        self._trust = Trust(locations)
        # a rule saved in an untrusted folder would not count, and behind a link it would count in another project
        self._own_file = resolve_links(locations.local_settings).is_relative_to(locations.project)
        self._saves = self._own_file and self._trust.given
        super().__init__(here, locations.local_settings if self._saves else None)

    def remember(self, question: Question, answer: Approve, *, session: str = "") -> tuple[str, ...]:
        # read first: saving the rule changes a file that the trust covers
        before = self._trust.review()
        rules = super().remember(question, answer, session=session)
        if rules:
            own = {f"allow {rule}" for rule in rules}
            self._trust.keep(before, added=own.__contains__)
        if rules and not self._saves:
            why = "this folder is not trusted" if self._own_file else "the settings of this folder lead out of it"
            _log.warning("%s, so %s is not saved: it counts until the end", why, ", ".join(rules))
        return rules


def rule_file(locations: Locations, scope: str) -> Path:
    """Return the settings file that holds the rules of a scope: `local`, `project` or `user`.

    Raises:
        UsageError: Rules of this scope cannot be changed here, or the file is a link that leads out of the project.
    """
    files = {
        "local": locations.local_settings,
        "project": locations.project_settings,
        "user": locations.user_settings,
    }
    if scope not in files:
        raise UsageError(f"expected the scope local, project or user, got {scope!r}")
    file = files[scope]
    if scope != "user" and not resolve_links(file).is_relative_to(locations.project):
        raise UsageError(f"{file} leads out of the project; change the rules there by hand")
    return file


def change_rule(locations: Locations, kind: RuleKind, text: str, scope: str, *, remove: bool = False) -> Path:
    """Save a rule in the settings of a scope, or remove it; a trusted project stays trusted.

    Args:
        locations: The project.
        kind: The list: `allow`, `ask` or `deny`.
        text: The rule.
        scope: `local`, `project` or `user`.
        remove: Remove it instead.

    Raises:
        UsageError: It is not a rule, the file is not valid, or the rule would not count because the project is not
            trusted.
    """
    file = rule_file(locations, scope)
    parse_rule(kind, text)
    trust = Trust(locations)
    before = trust.review()  # read first: the change is part of what the trust covers
    if kind == "allow" and scope != "user" and not remove and not trust.covers(before):
        raise UsageError("this folder is not trusted, so the rule would not count; run callwright trust first")
    if remove:
        remove_rule(file, text, kind)
    else:
        save_rules(file, [text], kind)
    if scope != "user":
        trust.keep(before, added=f"allow {text}".__eq__)
    return file


class HookAllows(Policy):
    """Allows calls that a hook allowed.

    It has the tier of a rule, so deny and ask rules still override it.
    """

    tier = Tier.RULE

    def __init__(self, hooks: ShellHooks) -> None:
        self._hooks = hooks

    def judge(self, access: Access, subject: Subject) -> Decision | None:
        allowed = self._hooks.allowed_calls | self._hooks.approved_calls
        if not allowed or subject.spec.metadata.get(SHADOWS):  # hooks go by the name, which is another server's
            return None
        mark = digest_of(subject.spec.name, subject.arguments, (), session_id=subject.session_id)
        return Allow("a hook allowed it", "hook") if mark in allowed else None


_FIELDS = frozenset({"rule", "match", "not_match"})
_KINDS: tuple[RuleKind, ...] = ("deny", "ask", "allow")


def load_rules(
    settings: Settings,
    here: PathContext,
    *,
    allow: Iterable[str] = (),
    ask: Iterable[str] = (),
    deny: Iterable[str] = (),
) -> LoadedRules:
    """Load the rules of the settings and the command line, and check their examples.

    Args:
        settings: The merged settings.
        here: The folders that relative patterns are resolved against.
        allow: Rules of `--allow`.
        ask: Rules of `--ask`.
        deny: Rules of `--deny`.

    Raises:
        UsageError: A rule cannot be parsed.
    """
    given = rules_of(allow=allow, ask=ask, deny=deny, written_in="the command line", scope="command line")
    entries = [entry for layer in settings.layers for entry in _entries(layer)]
    rules = (*(rule for rule, _ in entries), *given)
    failed = [problem for rule, fields in entries for problem in _examples(rule, fields, here)]
    return LoadedRules(tuple(dict.fromkeys(rules)), (*check_rules(rules), *failed))


def withheld_rules(locations: Locations, *, trusted: bool) -> tuple[Rule, ...]:
    """Return the allow rules of a repository that are ignored because it is not trusted."""
    layers = () if trusted else repository_layers(locations)
    return tuple(rule for layer in layers for rule, _ in _entries(layer) if rule.kind == "allow")


def _entries(layer: SettingsLayer) -> Iterator[tuple[Rule, Mapping[str, Any]]]:
    for kind in _KINDS:
        for place, entry in enumerate(layer.section("permissions").get(kind, ())):
            fields = {"rule": entry} if isinstance(entry, str) else entry
            where = layer.at("permissions", kind, place)
            try:
                rule = parse_rule(kind, fields["rule"], written_in=where, base=_base(layer), scope=layer.scope)
            except UsageError as error:
                raise UsageError(f"{where}: {error}{layer.column('permissions', kind, place)}") from None
            yield rule, fields


def _base(layer: SettingsLayer) -> str:
    if not Path(layer.source).is_absolute():
        return ""
    # patterns are relative to the project, wherever a link to the settings stands
    folder = Path(layer.source).resolve().parent
    return str(folder.parent if folder.name.startswith(".") else folder)


def _examples(rule: Rule, fields: Mapping[str, Any], here: PathContext) -> Iterator[RuleProblem]:
    for name in fields.keys() - _FIELDS:
        yield RuleProblem("example fails", rule, f"unknown field {name!r}; write examples as match and not_match")
    yield from check_examples(rule, here, match=fields.get("match", ()), not_match=fields.get("not_match", ()))
