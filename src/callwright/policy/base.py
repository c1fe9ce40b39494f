"""The base class of policies, their tiers, and the call a policy judges."""

from enum import IntEnum
from functools import lru_cache
from inspect import iscoroutinefunction
from typing import Any, ClassVar, Protocol, Self

from callwright.core.access import Access, Ask, Decision
from callwright.core.calls import Approve, Question
from callwright.core.errors import UsageError
from callwright.core.json import JsonObject
from callwright.core.spec import ToolSpec


class Subject(Protocol):
    """The call that is being judged, as it would run.

    It carries no description of the call: a policy that read prose could be talked into a decision.
    """

    @property
    def spec(self) -> ToolSpec: ...

    @property
    def arguments(self) -> JsonObject: ...

    @property
    def session_id(self) -> str: ...


class LinePart:
    """The base class of `shell_line.PartOfLine`, which is loaded with the first shell line."""

    __slots__ = ()


class Tier(IntEnum):
    """The weight of a policy's decision; `decide.py` says how the tiers combine."""

    GUARD = 0
    RULE = 1
    MODE = 2


class Policy:
    """Judges accesses; subclass it and override `judge`. This base class decides nothing."""

    tier: ClassVar[Tier] = Tier.RULE

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Refuse a subclass whose decisions would not count, such as one with `decide` instead of `judge`."""
        _check_methods(cls)
        return super().__new__(cls)

    def judge(self, access: Access, subject: Subject) -> Decision | None:
        """Decide about one access of a call. Must change nothing: it is called again after an approval or a restart.

        Args:
            access: What the call would touch.
            subject: The call, with its final arguments.

        Returns:
            `Allow`, `Ask` or `Deny`, or None to leave the decision to other policies.
        """
        return None

    @property
    def cache_key(self) -> str | None:
        """While this stays the same, the decision about a tool without accesses may be cached; None: never cache."""
        return None

    def restore(self, question: Question, answer: Approve, *, session: str) -> None:
        """Take up an approval from the record of a resumed session. Override if this policy remembers approvals.

        Args:
            question: What was approved.
            answer: The approval, with its scope.
            session: The session that is resumed.
        """
        return

    def remember(self, question: Question, answer: Approve, *, session: str = "") -> object:
        """Keep an approval that was given for longer than once. Override if this policy persists approvals.

        Args:
            question: What was approved.
            answer: The approval, with its scope.
            session: The session it was given in.
        """
        return None

    def forget(self, session: str) -> None:
        """Drop what was approved in a session that was deleted. Override if this policy remembers approvals.

        Args:
            session: The session; another one may get its id.
        """
        return

    def settle(self, ask: Ask) -> Decision:
        """Answer a question in the user's place. Only policies of the tier MODE are called; the default asks."""
        return ask


@lru_cache(maxsize=256)
def _check_methods(kind: type[Policy]) -> None:
    """Raise an error for a class whose decisions would not count; one that is right is checked once."""
    names = ("judge", "settle", "remember")
    if kind is not Policy and all(getattr(kind, name) is getattr(Policy, name) for name in names):
        raise UsageError(f"{kind.__name__} overrides none of the methods that are called; define judge")
    if iscoroutinefunction(kind.judge) or iscoroutinefunction(kind.settle):
        raise UsageError(f"{kind.__name__} decides with async def; write a plain function, and wait in a Hook")


CUT = " … "
"""Stands where a long text was cut."""


def make_printable(text: str, *, chars: int = 120) -> str:
    """Escape control characters and cut long text in its middle, so that a question cannot hide anything."""
    from callwright.core.escaping import visible_line  # loaded with the first question

    shown = visible_line(text)
    return shown if len(shown) <= chars else f"{shown[: chars // 2]}{CUT}{shown[-chars // 2 :]}"
