"""The errors of the package: raised inside a tool, returned as values by the executor.

CallwrightError
├── UsageError             the programmer's mistake: raised, never shown to a model
└── ToolError              code           at fault   retried
    ├── UnknownTool        not_found      model      never
    ├── InvalidArguments   invalid_input  model      never
    ├── Unsafe             safety         model      never
    ├── Denied             denied         user       never
    │   ├── Declined       denied         user       never
    │   └── Halted         denied         user       never; the whole run ends
    ├── ToolFailed         tool_failed    tool       never
    ├── Transient          transient      world      up to the retry policy's attempts
    ├── TimedOut           timed_out      world      only if the tool is idempotent
    ├── Cancelled          cancelled      user       never
    └── Crashed            crashed        tool       never

`ApprovalRequired` and `AuthRequired` are not failures: they interrupt a call until the user has answered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal, Self, TypeAlias, cast

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
_SHOWN_LEAVES = 5


class CallwrightError(Exception):
    """The base class of every exception of this package."""

    def __reduce__(self) -> tuple[object, ...]:
        """Let pools of processes bring it to their caller: `__init__` may take other arguments than the text."""
        return _restore, (type(self), self.args), self.__dict__


def _restore(kind: type[CallwrightError], arguments: tuple[Any, ...]) -> CallwrightError:
    return kind.__new__(kind, *arguments)


class UsageError(CallwrightError):
    """A mistake in the program that uses callwright; never shown to a model."""


class ToolError(CallwrightError):
    """A failure that is reported to the model. `message` is for the model, `str()` for the operator."""

    code: ClassVar[Code]
    fault: ClassVar[Fault]
    prefix: ClassVar[str] = ""

    def __init__(self, message: str) -> None:
        text = message if type(cast(object, message)) is str else safe_str(message)
        super().__init__(text)
        self.message = text

    def __str__(self) -> str:
        return self.prefix + self.message

    def with_message(self, message: str) -> Self:
        """Return a copy with another message; this error may be shared between calls and stays as it is."""
        other = type(self).__new__(type(self), message)  # not by calling it: a subclass may take other arguments
        vars(other).update(vars(self), message=message)
        other.__cause__ = self.__cause__
        return other.with_traceback(self.__traceback__)

    @property
    def is_transient(self) -> bool:
        """Whether the same call may succeed when repeated."""
        return self.code == "transient"


class UnknownTool(ToolError):
    """There is no tool of that name; the message suggests the nearest ones.

    Args:
        name: The name that was called.
        nearest: Tools with a similar name.
        advice: What to do instead, added to the message.
    """

    code = "not_found"
    fault = "model"

    def __init__(self, name: str, nearest: Sequence[str] = (), *, advice: str = "") -> None:
        shown = shorten(name, _SHOWN_CHARS) or "(no name)"
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
    """The call was refused for safety: a path outside the workspace, a forbidden address."""

    code = "safety"
    fault = "model"
    prefix = "safety check failed: "


class Denied(ToolError):
    """A policy or a hook denied the call, or the user declined it."""

    code = "denied"
    fault = "user"
    prefix = "denied: "


class Declined(Denied):
    """The user declined the call."""


class Halted(Denied):
    """A hook halted the run; the calls of its turn get this error."""

    prefix = "halted: "


class ToolFailed(ToolError):
    """The tool failed and explains why."""

    code = "tool_failed"
    fault = "tool"
    prefix = "tool failed: "


class Transient(ToolError):
    """A failure that may pass; the executor retries the call.

    Args:
        message: For the model.
        retry_after: The delay in seconds that the server asked for.
    """

    code = "transient"
    fault = "world"
    prefix = "transient failure (worth retrying): "

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = read_wait(retry_after)
        """The delay in seconds that the server asked for."""
        self.inferred = False
        """Inferred from another exception, not raised by the tool: retried only if repeating is harmless."""


def read_wait(asked: Any) -> float | None:
    """Return the seconds to wait, which tools also give as they stand in a header, or as a `timedelta`; None if none.

    A date is left to the backoff, as is whatever else is no number of seconds.
    """
    try:
        seconds = float(asked.total_seconds() if hasattr(asked, "total_seconds") else asked)
    except OverflowError:  # a whole number of hundreds of digits
        return float("inf") if asked > 0 else None
    except (TypeError, ValueError):
        return None
    return seconds if seconds >= 0 else None  # also for NaN


class TimedOut(ToolError):
    """The call did not end within its time limit; it may have had an effect."""

    code = "timed_out"
    fault = "world"


class Cancelled(ToolError):
    """The call was cancelled."""

    code = "cancelled"
    fault = "user"


class Crashed(ToolError):
    """The tool raised an unexpected exception, which is the `__cause__`, for operators."""

    code = "crashed"
    fault = "tool"


class ApprovalRequired(CallwrightError):
    """Raised by a tool in `accesses`, in `bind` or while it runs: the user must approve the call first.

    Raised while the tool runs, it interrupts the call. With the user's approval the call runs again from its start and
    finds the approval in `context.answer`.

    Args:
        reason: Why; shown to the user.
        invocation: What runs after the approval; required when raised in `bind`.
    """

    def __init__(self, reason: str, invocation: object = None) -> None:
        super().__init__(reason)
        self.reason = safe_str(reason)  # perhaps an exception that says why
        self.invocation = invocation


class InputRequired(ApprovalRequired):
    """Raised by a tool while it runs: the user must reply first.

    The call then runs again from its start and finds the reply in `context.answer.arguments`. The reply is data; it
    does not approve anything.

    Args:
        reason: The question, as the user reads it.
    """


class Unanswered(CallwrightError):
    """Raised by an `ask` whose user has left: the calls are interrupted, and their questions stay open."""


class AuthRequired(CallwrightError):
    """Raised by a tool in `bind`, in `accesses` or while it runs: the user must sign in first.

    Args:
        reason: Why; shown to the user.
        url: Where to sign in.
    """

    def __init__(self, reason: str, *, url: str = "") -> None:
        super().__init__(reason)
        self.reason = safe_str(reason)
        self.url = safe_str(url or "")


def join_first(items: Sequence[Any], most: int, separator: str = ", ", *, show: Callable[[Any], str] = str) -> str:
    """Join the texts of the first items; of the others, say how many there are."""
    more = f"{separator.strip(', ')} and {len(items) - most} more" if len(items) > most else ""
    return f"{separator.join(map(show, items[:most]))}{more}"


def safe_str(value: object) -> str:
    """Return the text of any value, of a group of exceptions what it holds; never fails, whatever `__str__` does."""
    if isinstance(value, BaseExceptionGroup):
        leaves = list_leaves(cast("BaseExceptionGroup[BaseException]", value))
        return join_first(leaves, _SHOWN_LEAVES, "; ", show=describe_raised)
    try:
        return str.__str__(str(value))
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001 - the value is foreign, and an error message must not fail
        return f"a {type(value).__name__} without a readable text"


def describe_raised(raised: BaseException) -> str:
    """Return the type and the text of an exception, and of those in a group; never fails."""
    text = safe_str(raised)
    if text and isinstance(raised, BaseExceptionGroup):
        return text  # names the exceptions in it already
    return f"{type(raised).__name__}: {text}" if text else type(raised).__name__


def list_leaves(raised: BaseException) -> list[BaseException]:
    """Return the exceptions inside a group and its groups; an exception that is no group, as a list of one."""
    if not isinstance(raised, BaseExceptionGroup):
        return [raised]
    group = cast("BaseExceptionGroup[BaseException]", raised)
    return [leaf for inner in group.exceptions for leaf in list_leaves(inner)]


def shorten(text: str, chars: int) -> str:
    """Return the beginning of a text, with an ellipsis in place of what is cut off."""
    return text if len(text) <= chars else f"{text[:chars]}…"


def safe_repr(value: object) -> str:
    """Return a short text for any value; never fails, whatever its `__repr__` does."""
    try:
        shown = value.__name__ if isinstance(value, type) else repr(value)
        return shorten(shown, _SHOWN_CHARS)
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001 - the value is foreign, and an error message must not fail
        return f"a {type(value).__name__}"


def check_number(
    name: str, value: object, least: float, *, most: float | None = None, whole: bool = False, above: bool = False
) -> None:
    """Refuse a limit that is no number, such as a text, NaN or True: compared with it, nothing would be too much.

    Args:
        name: What the value is, for the message.
        value: The value of the caller.
        least: The least that is accepted.
        most: The most that is accepted; None for any.
        whole: Whether it must be a whole number.
        above: Whether `least` itself is refused.

    Raises:
        UsageError: It is not such a number.
    """
    kinds = (int,) if whole else (int, float)
    number = value if isinstance(value, kinds) and not isinstance(value, bool) else None
    if number is None or not (number > least if above else number >= least) or (most is not None and number > most):
        kind = "" if number is not None else ", a whole number" if whole else ", a number"
        bounds = f"{'above' if above else 'at least'} {least:g}{'' if most is None else f' and at most {most:,}'}"
        raise UsageError(f"{name} must be {bounds}{kind}, got {safe_repr(value)}")


def check_kind(name: str, value: object, kind: type, advice: str) -> None:
    """Refuse a value of another kind where it is given, not where it is used.

    Raises:
        UsageError: It is not of its kind.
    """
    if not isinstance(value, kind):
        raise UsageError(f"expected {kind.__name__} as {name}, got {safe_repr(value)}; {advice}")


def check_callable(name: str, value: object, advice: str) -> None:
    """Refuse what cannot be called where it is given, not where it would be.

    Raises:
        UsageError: It cannot be called.
    """
    if not callable(value):
        raise UsageError(f"expected a function as {name}, got {safe_repr(value)}; {advice}")


def check_members(given: object, contract: type, expected: str, advice: str = "pass an instance of one") -> None:
    """Refuse an object that lacks a member of a protocol, or inherits the protocol's empty body.

    Args:
        given: The object of the caller.
        contract: The protocol.
        expected: What is expected.
        advice: What to do.

    Raises:
        UsageError: A member is missing; the message names all that are.
    """
    if isinstance(given, type):
        raise UsageError(f"expected {expected}, got the class {given.__name__}; pass an instance of it")
    kind = type(given)
    members = {name: member for name, member in vars(contract).items() if not name.startswith("_")}
    empty = {name for name, member in members.items() if getattr(kind, name, None) is member}
    # the class is asked first: reading a property of the object may run anything
    absent = {name for name in members if not hasattr(kind, name) and not hasattr(given, name)}
    if absent == members.keys():
        raise UsageError(f"expected {expected}, got {safe_repr(given)}; {advice}")
    if empty or absent:
        missing = ", ".join(sorted(empty | absent))
        raise UsageError(f"{kind.__name__} does not define {missing}; a {contract.__name__} needs them")


def describe_exception(error: Exception) -> str:
    """Return an exception's message for users; an `OSError` without its number and path."""
    return error.strerror.lower() if isinstance(error, OSError) and error.strerror else str(error)
