"""Calls, their repairs and outcomes; questions and answers are in `decisions.py` and importable from here."""

from typing import Final, Literal, TypeAlias

from callwright.core._fast import frozen
from callwright.core.content import Output
from callwright.core.decisions import (
    Answers,
    Approve,
    Decline,
    GrantScope,
    Question,
    QuestionKind,
    Reply,
    digest_of,
)
from callwright.core.errors import ToolError
from callwright.core.json import FrozenDict, JsonObject

__all__ = [
    "Answers",
    "Approve",
    "Completed",
    "Decline",
    "Failed",
    "GrantScope",
    "Interrupted",
    "Outcome",
    "Question",
    "QuestionKind",
    "Repair",
    "RepairKind",
    "Reply",
    "ToolCall",
    "digest_of",
]
_NO_ARGUMENTS: JsonObject = FrozenDict()
RepairKind: TypeAlias = Literal[
    "name",
    "json",
    "empty",
    "wrapped",
    "key",
    "nested",
    "null",
    "list",
    "command",
    "literal",
    "choice",
    "path",
    "text",
    "edited",
]


@frozen
class ToolCall:
    """A call the model asked for. Arguments given as text are kept exactly as the model wrote them."""

    id: str
    name: str
    arguments: JsonObject | str | bytes = _NO_ARGUMENTS


@frozen
class Repair:
    """One change to a call, made before the call was judged."""

    kind: str
    """One of `RepairKind`; a record of a later version may have others."""
    note: str
    """What was changed, in a few words for the model."""


@frozen
class Completed:
    """The call gave an output: the tool ran, or a hook answered in its place."""

    call: ToolCall
    output: Output
    seconds: float = 0.0
    attempts: int = 1
    repairs: tuple[Repair, ...] = ()
    """What was changed in the call before it was judged."""

    @property
    def text(self) -> str:
        """The text for the model."""
        content = self.output.content
        return content if type(content) is str else self.output.text


@frozen
class Interrupted:
    """The call waits: answer the questions and execute the batch again; () means another call of it is waiting.

    It has not run, unless it asked a question while it ran, itself or by a call that it made.
    """

    call: ToolCall
    questions: tuple[Question, ...] = ()

    @property
    def text(self) -> str:
        """The questions for the user, one line each; not for the model."""
        return "\n".join(question.summary for question in self.questions) or "waits for the questions of another call"


@frozen
class Failed:
    """The call gave an error."""

    call: ToolCall
    error: ToolError
    started: bool = False
    """The tool may have had an effect."""
    seconds: float = 0.0
    attempts: int = 0
    repairs: tuple[Repair, ...] = ()
    """What was changed in the call before it was judged."""

    @property
    def text(self) -> str:
        """The text for the model."""
        return self.error.message


Outcome: TypeAlias = Completed | Interrupted | Failed

SEARCH_NAME: Final = "tool_search"
SEARCH_ALIASES: Final = ("ToolSearch", "search_tools")
_SPELLINGS = frozenset((SEARCH_NAME, *SEARCH_ALIASES))


def find_revealed(outcome: Outcome) -> tuple[str, ...]:
    """Return the tools that a tool search revealed, in order; none for any other call."""
    if not isinstance(outcome, Completed) or outcome.call.name not in _SPELLINGS:
        return ()
    found = outcome.output.structured
    names = found.get("revealed") if isinstance(found, dict) else None
    return tuple(name for name in names if isinstance(name, str)) if isinstance(names, list) else ()
