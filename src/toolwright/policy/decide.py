"""How many voices become one decision.

    any deny, from anyone                 deny
    a guard asks                          ask
    a rule asks                           ask
    a rule allows                         allow
    the mode's default                    as it says; nobody speaks: ask
    what is still an ask                  the mode may settle it (dontAsk, bypass), unless it is firm

A person's answer settles an ask before this is heard again; it never softens a deny. The strictest voice wins
inside a tier, so the order of policies never matters.
"""

from collections.abc import Iterable
from enum import IntEnum
from typing import ClassVar, Protocol

from toolwright.core.access import Access, Allow, Ask, Decision, Deny
from toolwright.core.json import JsonObject
from toolwright.core.spec import ToolSpec


class Tier(IntEnum):
    """Whose voice it is."""

    GUARD = 0
    RULE = 1
    MODE = 2


class Subject(Protocol):
    """The call that is being judged, as it would run. It carries no description: policies never read prose."""

    @property
    def spec(self) -> ToolSpec: ...

    @property
    def arguments(self) -> JsonObject: ...

    @property
    def session_id(self) -> str: ...


class Policy:
    """A voice in the decision; this one has no opinion."""

    tier: ClassVar[Tier] = Tier.RULE

    def judge(self, access: Access, subject: Subject) -> Decision | None:
        """Say what should happen to one access; None is no opinion. Changes nothing, so it may be asked again."""
        return None

    def settle(self, ask: Ask) -> Decision:
        """Answer a question in the person's place, where that is this policy's office (modes only)."""
        return ask


class AllowEverything(Policy):
    """Allows whatever nobody else forbids: for tests and for people who mean it."""

    tier = Tier.MODE

    def judge(self, access: Access, subject: Subject) -> Decision | None:
        return _ALLOWED


_ALLOWED = Allow(source="AllowEverything")
_UNDECIDED = Ask("no policy has an opinion", source="default")


def _strictest(decisions: Iterable[Decision | None]) -> Decision | None:
    found: Decision | None = None
    for decision in decisions:
        if decision is not None and (found is None or _rank(decision) > _rank(found)):
            found = decision
    return found


def _rank(decision: Decision) -> int:
    match decision:
        case Deny():
            return 3
        case Ask(firm=firm):
            return 2 if firm else 1
        case Allow():
            return 0


class Policies:
    """Several policies heard as one."""

    def __init__(self, *policies: Policy) -> None:
        self.policies = policies
        self._tiers = tuple(tuple(p for p in policies if p.tier is tier) for tier in Tier)

    def decide(self, access: Access, subject: Subject) -> Decision:
        """Hear everyone on one access. Changes nothing, so it may be asked again."""
        guards, rules, modes = self._tiers
        if not guards and not rules and len(modes) == 1:  # the usual case of a library: one mode, nothing else
            return self._settled(modes[0].judge(access, subject) or _UNDECIDED)
        guard = _strictest(policy.judge(access, subject) for policy in guards)
        rule = _strictest(policy.judge(access, subject) for policy in rules)
        mode = _strictest(policy.judge(access, subject) for policy in modes)
        for voice in (guard, rule, mode):
            if isinstance(voice, Deny):
                return voice
        if isinstance(guard, Ask):
            return self._settled(guard)
        return self._settled(rule or mode or guard or _UNDECIDED)

    def _settled(self, decision: Decision) -> Decision:
        for policy in self._tiers[Tier.MODE]:
            if isinstance(decision, Ask):
                decision = policy.settle(decision)
        return decision
