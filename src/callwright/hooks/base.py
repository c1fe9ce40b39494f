"""The base class of hooks, and the verdicts a hook may return."""

import inspect
from collections.abc import Awaitable, Sequence
from typing import Any, Literal, Self, TypeAlias

from callwright.core._fast import frozen
from callwright.core.access import Ask, Deny
from callwright.core.calls import Outcome, ToolCall
from callwright.core.content import Output
from callwright.core.errors import UsageError
from callwright.core.json import JsonObject
from callwright.core.spec import ToolSpec


@frozen
class PendingCall:
    """The call a hook decides about, with the arguments it would run with."""

    call: ToolCall
    spec: ToolSpec
    arguments: JsonObject
    session_id: str = ""
    turn_id: str = ""
    tool: object = None
    """The tool itself: those of one class share a spec. None outside an executor."""


@frozen
class InnerAgent:
    """An agent that runs inside a call of another agent."""

    name: str
    call_id: str
    session_id: str = ""
    tool: str = ""
    """The tool whose call it runs in."""
    own_session_id: str = ""
    """The session of the agent itself, which its own calls have."""


@frozen
class Proceed:
    """Let the call continue unchanged."""


@frozen
class Rewrite:
    """Run the call with other arguments, which are validated and judged like the model's own."""

    arguments: JsonObject


@frozen
class Answer:
    """Do not run the call; use this output, as from a cache. Policies still judge the call."""

    output: Output | str


@frozen
class Halt:
    """End the run. No call of this turn runs; each still gets an outcome."""

    reason: str


Verdict: TypeAlias = Proceed | Rewrite | Deny | Answer | Ask | Halt


class Hook:
    """May change or stop calls; subclass it and override methods. Methods may be sync or async.

    A hook that raises or takes longer than `seconds` fails its call. In `before`, the tool has not run; in `after`, the
    outcome is withheld, because a broken redactor must not leak what it should hide.
    """

    seconds: float = 60.0

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Refuse a subclass that overrides nothing, such as one with `pre_tool` instead of `before`."""
        names = ("before", "after", "agent_began", "agent_ended")
        if cls is not Hook and all(getattr(cls, name) is getattr(Hook, name) for name in names):
            raise UsageError(
                f"{cls.__name__} overrides none of the methods that are called; define before(self, pending)"
            )
        return super().__new__(cls)

    def before(self, pending: PendingCall) -> Verdict | Awaitable[Verdict | None] | None:
        """Decide about a call before policies judge it. Hooks run in registration order; None means `Proceed`.

        Args:
            pending: The call, with arguments as earlier hooks rewrote them.
        """
        return None

    def after(self, pending: PendingCall, outcome: Outcome) -> Outcome | Awaitable[Outcome | None] | None:
        """See the outcome of a call, also of a failed or denied one. Hooks run in registration order.

        Args:
            pending: The call.
            outcome: The outcome as earlier hooks left it.

        Returns:
            Another outcome, or None to keep this one.
        """
        return None

    def agent_began(self, agent: InnerAgent) -> str | Awaitable[str | None] | None:
        """Called when an agent starts inside a call. Its own calls pass `before` and `after` like any call.

        Args:
            agent: The agent and the call it runs in.

        Returns:
            A text that the agent reads after its task, or None.
        """
        return None

    def agent_ended(self, agent: InnerAgent, answer: str) -> str | Awaitable[str | None] | None:
        """See the answer of an agent inside a call.

        Args:
            agent: The agent and the call it ran in.
            answer: The answer as earlier hooks left it.

        Returns:
            Another answer, or None to keep this one.
        """
        return None


def select_hooks(hooks: Sequence[Hook], method: Literal["before", "after"]) -> tuple[Hook, ...]:
    """Return the hooks that define a method themselves; the others have nothing to say there."""
    return tuple(hook for hook in hooks if getattr(type(hook), method) is not getattr(Hook, method))


async def await_if_needed(value: Any) -> Any:
    """Await the result of an async method; return the result of a plain one."""
    return await value if inspect.isawaitable(value) else value
