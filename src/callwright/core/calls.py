"""Calls, their outcomes, and the questions and answers of an approval."""

import secrets
import time
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Literal, TypeAlias

from callwright.core.access import Access
from callwright.core.content import Output
from callwright.core.errors import ToolError
from callwright.core.json import FrozenDict, JsonObject, canonical
from callwright.core.repairs import Repair

_NO_ARGUMENTS: JsonObject = FrozenDict()
QuestionKind: TypeAlias = Literal["approval", "auth"]
GrantScope: TypeAlias = Literal["once", "session", "always"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call the model asked for. Arguments given as text are kept exactly as the model wrote them."""

    id: str
    name: str
    arguments: JsonObject | str | bytes = _NO_ARGUMENTS


@dataclass(frozen=True, slots=True)
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
        return self.output.text


@dataclass(frozen=True, slots=True)
class Interrupted:
    """Nothing ran. Answer the questions and execute the batch again; () means another call of it is waiting."""

    call: ToolCall
    questions: tuple["Question", ...] = ()

    @property
    def text(self) -> str:
        """The questions for the user, one line each; not for the model."""
        return "\n".join(question.summary for question in self.questions) or "waits for the questions of another call"


@dataclass(frozen=True, slots=True)
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


def digest_of(tool: str, arguments: JsonObject, accesses: Iterable[Access], *, session_id: str = "") -> str:
    """Return a digest of exactly what would run; an approval is valid for this digest only."""
    touched = list(map(repr, accesses))
    return sha256(canonical([session_id, tool, arguments, touched]).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Question:
    """What the user must decide before a call may run."""

    call_id: str
    tool: str
    arguments: JsonObject
    digest: str
    summary: str
    """One line to show: `Allow bash: rm -rf target?`"""
    reason: str = ""
    """Why the user is asked."""
    accesses: tuple[Access, ...] = ()
    kind: QuestionKind = "approval"
    url: str = ""
    """Where to sign in, for kind `auth`."""
    expires_at: int = 0
    """Unix time after which an answer is ignored; 0 for never."""
    nonce: str = field(default_factory=lambda: secrets.token_hex(8))

    @property
    def id(self) -> str:
        """Unique, and bound to the digest: an answer to this id is valid for exactly this call, once."""
        return f"{self.digest}.{self.call_id}.{self.expires_at:x}.{self.nonce}"


@dataclass(frozen=True, slots=True)
class Approve:
    """A yes. With `arguments`, the call runs with these instead, after hooks and policies have judged them again."""

    arguments: JsonObject | None = None
    scope: GrantScope = "once"
    by: str = ""
    """Who approved, for the record: a user's name, a hook; empty for the user who was asked."""


@dataclass(frozen=True, slots=True)
class Decline:
    """A no; the model reads the reason."""

    reason: str = ""
    by: str = ""
    """Who declined, for the record; empty for the user who was asked."""


Reply: TypeAlias = Approve | Decline


class Answers:
    """The user's answers by question id. Each is valid once, for its digest, until it expires."""

    def __init__(self, given: Mapping[str, Reply] | None = None) -> None:
        self._given = dict(given or {})

    def __len__(self) -> int:
        return len(self._given)

    def __iter__(self) -> Iterator[tuple[str, Reply]]:
        return iter(self._given.items())

    @classmethod
    def approving(cls, questions: Iterable[Question]) -> "Answers":
        """Return answers that approve every question once."""
        return cls({question.id: Approve() for question in questions})

    def approve(
        self, question: Question, *, arguments: JsonObject | None = None, scope: GrantScope = "once"
    ) -> "Answers":
        """Approve a question and return these answers, for chaining.

        Args:
            question: The question to answer.
            arguments: Run the call with these arguments instead; they are judged again.
            scope: How long the approval lasts: this call, the session, or always.
        """
        self._given[question.id] = Approve(arguments, scope)
        return self

    def decline(self, question: Question, reason: str = "") -> "Answers":
        """Decline a question and return these answers, for chaining; the model reads the reason."""
        self._given[question.id] = Decline(reason)
        return self

    def find(
        self, digest: str, call_id: str, *, besides: Container[str] = (), now: float | None = None
    ) -> tuple[str, Reply] | None:
        """Return the last unexpired answer to exactly this digest and call, with its question's id."""
        stamp = time.time() if now is None else now
        for question_id, answer in reversed(self._given.items()):
            if question_id in besides:
                continue
            bound, _, rest = question_id.partition(".")
            about, _, tail = rest.rpartition(".")[0].rpartition(".")
            if bound == digest and about == call_id and (int(tail, 16) == 0 or stamp < int(tail, 16)):
                return question_id, answer
        return None
