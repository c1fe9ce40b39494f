"""What a hook may say before a call runs, and do after it."""

import inspect
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any, TypeAlias

from callwright.core.access import Ask, Deny
from callwright.core.calls import Outcome, ToolCall
from callwright.core.content import Output
from callwright.core.json import JsonObject
from callwright.core.spec import ToolSpec


@dataclass(frozen=True, slots=True)
class PendingCall:
    """The call a hook is asked about, with its arguments as they would run."""

    call: ToolCall
    spec: ToolSpec
    arguments: JsonObject
    session_id: str = ""
    turn_id: str = ""


@dataclass(frozen=True, slots=True)
class InnerAgent:
    """An agent that works inside a call of another one."""

    name: str
    call_id: str
    session_id: str = ""


@dataclass(frozen=True, slots=True)
class Proceed:
    """Nothing to say."""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Run with these arguments instead; they are bound and judged like the model's own."""

    arguments: JsonObject


@dataclass(frozen=True, slots=True)
class Answer:
    """Do not run; this is the output, as from a cache. Policies are still asked."""

    output: Output | str


@dataclass(frozen=True, slots=True)
class Halt:
    """End the run; no call of this turn runs, each still gets its outcome."""

    reason: str


Verdict: TypeAlias = Proceed | Rewrite | Deny | Answer | Ask | Halt


class Hook:
    """May change or stop a call; this one does nothing. Methods may be sync or async.

    A hook that raises or outlives `seconds` fails its call: before, nothing ran; after, the outcome is withheld,
    because a broken redactor must not leak what it was there to hide.
    """

    seconds: float = 60.0

    def before(self, pending: PendingCall) -> Verdict | Awaitable[Verdict | None] | None:
        """Asked in registration order, each seeing what the ones before it rewrote; None is `Proceed`."""
        return None

    def after(self, pending: PendingCall, outcome: Outcome) -> Outcome | Awaitable[Outcome | None] | None:
        """Asked in registration order, for failures, refusals and answers too; may return another outcome."""
        return None

    def agent_began(self, agent: InnerAgent) -> Awaitable[None] | None:
        """Hear that an agent begins to work inside a call; what it calls is asked about like any call."""
        return None

    def agent_ended(self, agent: InnerAgent, answer: str) -> str | Awaitable[str | None] | None:
        """Hear the answer of an agent inside a call; may return another one."""
        return None


async def await_if_needed(value: Any) -> Any:
    """Await what an async method returned; pass on what a plain one did."""
    return await value if inspect.isawaitable(value) else value
