"""What a policy is told about the call that is being judged."""

from enum import IntEnum
from typing import ClassVar, Protocol

from callwright.core.access import Access, Ask, Decision
from callwright.core.calls import Approve, Question
from callwright.core.json import JsonObject
from callwright.core.spec import ToolSpec


class Subject(Protocol):
    """The call that is being judged, as it would run. It carries no description: policies never read prose."""

    @property
    def spec(self) -> ToolSpec: ...

    @property
    def arguments(self) -> JsonObject: ...

    @property
    def session_id(self) -> str: ...


class Tier(IntEnum):
    """Whose voice it is."""

    GUARD = 0
    RULE = 1
    MODE = 2


class Policy:
    """A voice in the decision; this one has no opinion."""

    tier: ClassVar[Tier] = Tier.RULE

    def judge(self, access: Access, subject: Subject) -> Decision | None:
        """Say what should happen to one access; None is no opinion. Changes nothing, so it may be asked again."""
        return None

    @property
    def cache_key(self) -> str | None:
        """While this stays the same, so does the answer for a tool that declares no accesses; None: ask every time."""
        return None

    def remember(self, question: Question, answer: Approve, *, session: str = "") -> object:
        """Hear of a yes that was given for longer than once, where keeping it is this policy's office."""
        return None

    def settle(self, ask: Ask) -> Decision:
        """Answer a question in the person's place, where that is this policy's office (modes only)."""
        return ask
