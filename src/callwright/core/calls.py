"""A call, how it can end, and what a person may be asked about it."""

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

_NO_ARGUMENTS: JsonObject = FrozenDict()
QuestionKind: TypeAlias = Literal["approval", "auth"]
GrantScope: TypeAlias = Literal["once", "session", "always"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """What the model asked for. Text arguments are kept exactly as it wrote them."""

    id: str
    name: str
    arguments: JsonObject | str | bytes = _NO_ARGUMENTS


@dataclass(frozen=True, slots=True)
class Completed:
    """The call ran, or was answered in its place, and gave an output."""

    call: ToolCall
    output: Output
    seconds: float = 0.0
    attempts: int = 1

    @property
    def text(self) -> str:
        """What the model reads."""
        return self.output.text


@dataclass(frozen=True, slots=True)
class Interrupted:
    """Nothing ran. Answer the questions and execute the batch again; () means a sibling is waiting."""

    call: ToolCall
    questions: tuple["Question", ...] = ()

    @property
    def text(self) -> str:
        """What a person must decide, a line each; no model reads it."""
        return "\n".join(question.summary for question in self.questions) or "waits for a call beside it"


@dataclass(frozen=True, slots=True)
class Failed:
    """The call did not work out."""

    call: ToolCall
    error: ToolError
    started: bool = False
    """The tool may have had an effect."""
    seconds: float = 0.0
    attempts: int = 0

    @property
    def text(self) -> str:
        """What the model reads."""
        return self.error.message


Outcome: TypeAlias = Completed | Interrupted | Failed


def digest_of(tool: str, arguments: JsonObject, accesses: Iterable[Access], *, session_id: str = "") -> str:
    """Name exactly what would run: an approval holds for this digest and no other."""
    touched = list(map(repr, accesses))
    return sha256(canonical([session_id, tool, arguments, touched]).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Question:
    """What a person must decide before a call may run."""

    call_id: str
    tool: str
    arguments: JsonObject
    digest: str
    summary: str
    """One line to show: `Allow bash: rm -rf target?`"""
    reason: str = ""
    """Why nobody but a person may decide this."""
    accesses: tuple[Access, ...] = ()
    kind: QuestionKind = "approval"
    url: str = ""
    """Where to sign in, for a question of kind `auth`."""
    expires_at: int = 0
    """Unix time after which an answer no longer counts; 0 for never."""
    nonce: str = field(default_factory=lambda: secrets.token_hex(8))

    @property
    def id(self) -> str:
        """Unique, and bound to the digest: an answer to this id counts for exactly this call, once."""
        return f"{self.digest}.{self.call_id}.{self.expires_at:x}.{self.nonce}"


@dataclass(frozen=True, slots=True)
class Approve:
    """Yes; with `arguments`, yes to these instead, which are judged again."""

    arguments: JsonObject | None = None
    scope: GrantScope = "once"


@dataclass(frozen=True, slots=True)
class Decline:
    """No; the reason is told to the model."""

    reason: str = ""


Reply: TypeAlias = Approve | Decline


class Answers:
    """A person's answers by question id. Each counts once, for its digest, until it expires."""

    def __init__(self, given: Mapping[str, Reply] | None = None) -> None:
        self._given = dict(given or {})

    def __len__(self) -> int:
        return len(self._given)

    def __iter__(self) -> Iterator[tuple[str, Reply]]:
        return iter(self._given.items())

    @classmethod
    def approving(cls, questions: Iterable[Question]) -> "Answers":
        """Say yes to all of them."""
        return cls({question.id: Approve() for question in questions})

    def approve(
        self, question: Question, *, arguments: JsonObject | None = None, scope: GrantScope = "once"
    ) -> "Answers":
        """Say yes to one, perhaps with other arguments or for longer; returns itself to be chained."""
        self._given[question.id] = Approve(arguments, scope)
        return self

    def decline(self, question: Question, reason: str = "") -> "Answers":
        """Say no to one; returns itself to be chained."""
        self._given[question.id] = Decline(reason)
        return self

    def find(
        self, digest: str, call_id: str, *, besides: Container[str] = (), now: float | None = None
    ) -> tuple[str, Reply] | None:
        """Look up the last unexpired answer given for exactly this digest and call, with its question's id."""
        stamp = time.time() if now is None else now
        for question_id, answer in reversed(self._given.items()):
            if question_id in besides:
                continue
            bound, _, rest = question_id.partition(".")
            about, _, tail = rest.rpartition(".")[0].rpartition(".")
            if bound == digest and about == call_id and (int(tail, 16) == 0 or stamp < int(tail, 16)):
                return question_id, answer
        return None
