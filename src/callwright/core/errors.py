"""What can go wrong, drawn once. Raised inside a tool, returned as a value by the executor.

CallwrightError
├── UsageError             the programmer's mistake: raised, never shown to a model
└── ToolError              code           at fault   tried again by us
    ├── UnknownTool        not_found      model      never
    ├── InvalidArguments   invalid_input  model      never
    ├── Unsafe             safety         model      never
    ├── Denied             denied         user       never
    │   └── Halted         denied         user       never; the whole run ends
    ├── ToolFailed         tool_failed    tool       never
    ├── Transient          transient      world      up to the retry policy's attempts
    ├── TimedOut           timed_out      world      only if the tool is idempotent
    ├── Cancelled          cancelled      user       never
    └── Crashed            crashed        tool       never

`ApprovalRequired` and `AuthRequired` are not failures: they interrupt a call until a person has answered.
"""

from collections.abc import Sequence
from typing import ClassVar, Literal, Self, TypeAlias

Code: TypeAlias = Literal[
    "not_found",
    "invalid_input",
    "safety",
    "denied",
    "tool_failed",
    "transient",
    "timed_out",
    "cancelled",
    "crashed",
]
Fault: TypeAlias = Literal["model", "user", "tool", "world"]


_SHOWN_CHARS = 100


class CallwrightError(Exception):
    """Root of everything this package raises on purpose."""


class UsageError(CallwrightError):
    """A mistake in the program that uses callwright; never shown to a model."""


class ToolError(CallwrightError):
    """A failure the model is told about. `message` is for the model, `str()` for the operator."""

    code: ClassVar[Code]
    fault: ClassVar[Fault]
    prefix: ClassVar[str] = ""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def __str__(self) -> str:
        return self.prefix + self.message

    def with_message(self, message: str) -> Self:
        """The same error in other words; this one may be shared between calls and stays as it is."""
        other = type(self).__new__(type(self), message)  # not by calling it: a subclass may want other arguments
        vars(other).update(vars(self), message=message)
        other.__cause__ = self.__cause__
        return other.with_traceback(self.__traceback__)

    @property
    def is_transient(self) -> bool:
        """Whether trying the same call again may help."""
        return self.code == "transient"


class UnknownTool(ToolError):
    """No tool of that name; the message offers the nearest ones."""

    code = "not_found"
    fault = "model"

    def __init__(self, name: str, nearest: Sequence[str] = (), *, advice: str = "") -> None:
        shown = name if len(name) <= _SHOWN_CHARS else f"{name[:_SHOWN_CHARS]}…"
        hint = f"; did you mean {' or '.join(nearest)}?" if nearest else ""
        super().__init__(f"unknown tool: {shown}{hint}{'; ' + advice if advice else ''}")
        self.name = name
        self.nearest = tuple(nearest)


class InvalidArguments(ToolError):
    """The arguments do not fit the tool; the message names each bad field."""

    code = "invalid_input"
    fault = "model"

    def __init__(self, detail: str) -> None:
        super().__init__(f"invalid arguments: {detail}")
        self.detail = detail


class Unsafe(ToolError):
    """The call was refused for what it would touch: a path escape, a forbidden address."""

    code = "safety"
    fault = "model"
    prefix = "safety check failed: "


class Denied(ToolError):
    """A rule, a hook or a person said no."""

    code = "denied"
    fault = "user"
    prefix = "denied: "


class Halted(Denied):
    """A hook ended the run; calls that were still to come get this."""

    prefix = "halted: "


class ToolFailed(ToolError):
    """The tool tried and says in its own words why it did not work."""

    code = "tool_failed"
    fault = "tool"
    prefix = "tool failed: "


class Transient(ToolError):
    """It may work next time; the executor tries again by itself."""

    code = "transient"
    fault = "world"
    prefix = "transient failure (worth retrying): "

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        """Seconds the other side asked us to wait."""
        self.inferred = False
        """Concluded from a broken connection, not said by the tool: repeated only where that is harmless."""


class TimedOut(ToolError):
    """The call used up its time; it may have had an effect."""

    code = "timed_out"
    fault = "world"


class Cancelled(ToolError):
    """The call was stopped from outside."""

    code = "cancelled"
    fault = "user"


class Crashed(ToolError):
    """The tool raised something it did not mean to; the traceback is for operators (`__cause__`)."""

    code = "crashed"
    fault = "tool"


class ApprovalRequired(CallwrightError):
    """Raised in `accesses`, or in `bind` with the invocation that may run then: a person must agree first."""

    def __init__(self, reason: str, invocation: object = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.invocation = invocation


class AuthRequired(CallwrightError):
    """Raised in `bind` or `accesses`: somebody must sign in first, usually at `url`."""

    def __init__(self, reason: str, *, url: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.url = url


def plainly(error: Exception) -> str:
    """An exception in words for people; of the system's own, without number and path."""
    return error.strerror.lower() if isinstance(error, OSError) and error.strerror else str(error)
