"""Combines the decisions of several policies into one.

    any policy denies                     deny
    a guard asks                          ask
    a rule asks                           ask
    a rule allows                         allow
    the mode decides                      as it says; no policy decides: ask
    the result is an ask                  the mode may settle it (dontAsk, bypass), unless any of the asks is firm

A user's approval settles an ask before the policies are called again; it never changes a deny. Inside a tier the
strictest decision wins, so the order of policies never matters. A shell line is decided part by part, each command and
each thing it touches by itself, and runs only if all of them may.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, get_args

from callwright.core._fast import replace
from callwright.core.access import (
    Access,
    Allow,
    Ask,
    Confinement,
    Decision,
    DeletePath,
    Deny,
    Reach,
    RunCommand,
    WritePath,
)
from callwright.core.calls import Approve, Question
from callwright.core.errors import UsageError, join_first
from callwright.policy.base import LinePart, Policy, Subject, Tier

if TYPE_CHECKING:  # otherwise loaded with the first shell line
    from callwright.policy.shell_line import PartOfLine


class AllowEverything(Policy):
    """Allows every access that no other policy denies or asks about; for tests and trusted tools."""

    tier = Tier.MODE

    @property
    def cache_key(self) -> str | None:
        return "always"

    def judge(self, access: Access, subject: Subject) -> Decision | None:
        return _ALLOWED


_ALLOWED = Allow(source="AllowEverything")
_SHOWN = 3
_ACCESS_KINDS: tuple[type, ...] = get_args(Access)
_EXACT_KINDS = frozenset(_ACCESS_KINDS)
_UNDECIDED = Ask("no policy decides about this", source="default")
_UNPROVEN = Ask("a part of the line is not proven to read only, and another part needs more than a read-only sandbox")


def _cache_key_is_valid(kind: type[Policy]) -> bool:
    """Whether a class defines its cache key at least as deep as its decisions.

    A subclass that overrides `judge` or `settle` and inherits the key may decide by anything, so its key says nothing.
    """
    names = ("cache_key", "judge", "settle")
    own, *judging = (next(place for place, base in enumerate(kind.__mro__) if name in vars(base)) for name in names)
    return own <= min(judging)


def _strictest(decisions: Iterable[Decision | None]) -> Decision | None:
    return max((decision for decision in decisions if decision is not None), key=_key, default=None)


def _key(decision: object) -> tuple[int, int]:
    # of two that allow, the one with the narrower confinement is stricter
    return _rank(decision), -decision.confinement.value if isinstance(decision, Allow) else 0


def _rank(decision: object) -> int:
    match decision:
        case Deny():
            return 3
        case Ask(firm=firm):
            return 2 if firm else 1
        case Allow():
            return 0
        case _:  # a policy written with async def returns a coroutine, which must not count as no objection
            raise UsageError(f"a policy returned {decision!r}; return Allow(), Ask(reason), Deny(reason) or None")


def _needed_by(access: Access, allow: Allow) -> Confinement:
    """Return what one allowed part of a line may use; a read needs nothing that every command does not have."""
    match access:
        case RunCommand():
            return allow.confinement
        case Reach():
            return allow.confinement & Confinement.NETWORK
        case WritePath() | DeletePath():
            return allow.confinement & (Confinement.WORKSPACE | Confinement.NAMED)
        case _:
            return Confinement.READ_ONLY


def _combine_decisions(decisions: Sequence[Decision], confinement: Confinement) -> Decision:
    """Merge the decisions about the parts of a line, none of which is a deny."""
    asks = dict.fromkeys(decision for decision in decisions if isinstance(decision, Ask))
    if not asks:
        allowed = dict.fromkeys(decision for decision in decisions if isinstance(decision, Allow))
        return Allow(
            _join_distinct(allow.reason for allow in allowed),
            _join_distinct(allow.source for allow in allowed),
            confinement,
        )
    ordered = sorted(asks, key=_rank, reverse=True)  # only the first reasons are shown, so the firm ones come first
    return Ask(
        _join_distinct(ask.reason for ask in ordered),
        _join_distinct(ask.source for ask in ordered),
        any(ask.firm for ask in asks),
    )


def _join_distinct(texts: Iterable[str]) -> str:
    return join_first([text for text in dict.fromkeys(texts) if text], _SHOWN, "; ")


class Policies:
    """Several policies that decide as one.

    Args:
        policies: Their order does not matter.

    Raises:
        UsageError: An argument is not a policy.
    """

    def __init__(self, *policies: Policy) -> None:
        for policy in list[object](policies):
            if not isinstance(policy, Policy):
                raise UsageError(
                    f'expected a Policy, got {policy!r}; write one such as ByMode("auto"), or Policies(one, another)'
                )
        self._set_policies(*policies)

    def _set_policies(self, *policies: Policy) -> None:
        self.policies = policies
        self._tiers = tuple(tuple(policy for policy in policies if policy.tier is tier) for tier in Tier)
        self._only_mode = policies[0] if len(policies) == 1 and policies[0].tier is Tier.MODE else None
        self.cacheable = (
            self._only_mode if self._only_mode is not None and _cache_key_is_valid(type(self._only_mode)) else None
        )
        """The lone mode policy whose decisions may be cached under its key; None if there is none."""

    @property
    def cache_key(self) -> str | None:
        """The cache key of a lone mode policy; None for several policies, whose decisions are never cached."""
        return None if self.cacheable is None else self.cacheable.cache_key

    def decide(self, access: Access, subject: Subject) -> Decision:
        """Ask every policy about one access and combine their decisions. Changes nothing, so it may be repeated.

        Args:
            access: What the call would touch.
            subject: The call, with its final arguments.
        """
        # AllowEverything would let through what no other policy can judge; the set spares most calls nine comparisons
        if type(access) not in _EXACT_KINDS and not isinstance(access, _ACCESS_KINDS):
            return Deny(f"expected an access such as WritePath(path), got {access!r}", source="default")
        if isinstance(access, RunCommand) and not isinstance(subject, LinePart):
            return self._decide_line(access, subject)
        return self._decide_one(access, subject)

    def parts(self, access: RunCommand, subject: Subject) -> Iterator[tuple[Access, "PartOfLine", Decision]]:
        """Yield the parts of a shell line in their order, each with its decision; `decide` combines them.

        Args:
            access: The shell line.
            subject: The call it belongs to.
        """
        from callwright.policy.shell_line import iterate_parts
        from callwright.shell import analyze  # the parser is loaded when a line is judged, not before
        from callwright.shell.words import absolute_folder

        if access.cwd[:1] != "/":
            access = replace(access, cwd=absolute_folder(access.cwd))
        for part, view in iterate_parts(access, subject, analyze(access.line, access.cwd)):
            yield part, view, self._decide_one(part, view)

    def _decide_line(self, access: RunCommand, subject: Subject) -> Decision:
        decisions = list[Decision]()
        confinement = Confinement.READ_ONLY
        for part, _, decision in self.parts(access, subject):
            if isinstance(decision, Deny):
                return decision  # the rest of the line cannot change this, and resolving its paths costs system calls
            decisions.append(decision)
            if isinstance(decision, Allow):
                confinement |= _needed_by(part, decision)
        if confinement and any(isinstance(decision, Allow) and decision.walled for decision in decisions):
            # one wall holds the whole line, and this one would let the unproven part write or connect
            asked = self.settle(_UNPROVEN)
            if isinstance(asked, Deny):
                return asked
            decisions.append(asked)
            confinement |= asked.confinement if isinstance(asked, Allow) else confinement
        return _combine_decisions(decisions, confinement)

    def remember(self, question: Question, answer: Approve, *, session: str = "") -> None:
        """Let every policy keep an approval that was given for longer than once; adds `Grants` if there is none.

        Args:
            question: What was approved.
            answer: The approval, with its scope.
            session: The session it was given in.
        """
        self._add_grants()
        for policy in self.policies:
            policy.remember(question, answer, session=session)

    def restore(self, question: Question, answer: Approve, *, session: str) -> None:
        """Let every policy take up an approval from the record of a session that is resumed.

        Args:
            question: What was approved.
            answer: The approval, with its scope.
            session: The session it was given in; it holds there only.
        """
        self._add_grants()
        for policy in self.policies:
            policy.restore(question, answer, session=session)

    def forget(self, session: str) -> None:
        """Let every policy drop what was approved in a session that was deleted.

        Args:
            session: The session.
        """
        for policy in self.policies:
            policy.forget(session)

    def _add_grants(self) -> None:
        from callwright.policy.grants import Grants  # most runs never need it, and it loads the rule parser
        from callwright.policy.paths import PathContext

        if not any(isinstance(policy, Grants) for policy in self.policies):
            self._set_policies(*self.policies, Grants(PathContext.of(".")))

    def _decide_one(self, access: Access, subject: Subject) -> Decision:
        if self._only_mode is not None:  # the usual case of a library: one mode, nothing else
            return self.settle(_strictest((self._only_mode.judge(access, subject),)) or _UNDECIDED)
        guards, rules, modes = self._tiers
        guard = _strictest(policy.judge(access, subject) for policy in guards)
        rule = _strictest(policy.judge(access, subject) for policy in rules)
        mode = _strictest(policy.judge(access, subject) for policy in modes)
        for decision in (guard, rule, mode):
            if isinstance(decision, Deny):
                return decision
        ask = guard if isinstance(guard, Ask) else rule  # an allow rule must not lift a guard
        if isinstance(ask, Ask):
            # what asks firmly must reach the user, also where another question would be settled by the mode
            firm = [each for each in (rule, mode) if each is not ask and isinstance(each, Ask) and each.firm]
            return self.settle(_combine_decisions((ask, *firm), Confinement.READ_ONLY) if firm else ask)
        if isinstance(rule, Allow) and isinstance(access, (WritePath, DeletePath)):
            # the rule is about this path: the sandbox opens it for the line that names it
            return Allow(rule.reason, rule.source, rule.confinement | Confinement.NAMED)
        return self.settle(rule or mode or guard or _UNDECIDED)

    def settle(self, decision: Decision) -> Decision:
        """Let the mode answer an ask in the user's place: a mode that never asks denies it."""
        for policy in self._tiers[Tier.MODE]:
            if isinstance(decision, Ask):
                decision = policy.settle(decision)
        return decision
