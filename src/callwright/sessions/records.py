"""What a session is made of: records, only ever added, from which everything else can be told.

Said(assistant) ─► Asked? ─► Answered? ─► Began ─► Ended* ─► Said(outcomes)
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from callwright.core.call import Completed, Failed, Question, Reply
from callwright.core.json import Json
from callwright.core.message import AssistantMessage, Message, ToolMessage, Usage


@dataclass(frozen=True, slots=True)
class Said:
    """A message joined the conversation."""

    message: Message
    turn_id: str = ""
    """Which turn a model's message begins; part of its calls' idempotency keys."""


@dataclass(frozen=True, slots=True)
class Began:
    """The open turn's calls are about to run: from here on none may be repeated that is not idempotent."""

    digests: Mapping[str, str]
    """What exactly would run, by call id."""


@dataclass(frozen=True, slots=True)
class Ended:
    """One call of the open turn has its outcome while others are still running."""

    outcome: Completed | Failed


@dataclass(frozen=True, slots=True)
class Asked:
    """The open turn waits for a person."""

    questions: tuple[Question, ...]


@dataclass(frozen=True, slots=True)
class Answered:
    """A person's replies, by question id; an id that stands here is spent once its turn has begun."""

    replies: Mapping[str, Reply]


@dataclass(frozen=True, slots=True)
class Compacted:
    """The conversation goes on from these messages instead of all before."""

    messages: tuple[Message, ...]
    usage: Usage = Usage()


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Where a graph stands: the step that comes next and the state it will be given."""

    step: str
    state: Json
    waiting: str = ""
    """What the graph waits to be told, if it does."""


Record: TypeAlias = Said | Began | Ended | Asked | Answered | Compacted | Checkpoint


def usage_of(records: Iterable[Record]) -> Usage:
    """What a session's model requests came to."""
    total = Usage()
    for record in records:
        if isinstance(record, Compacted):
            total += record.usage
        elif isinstance(record, Said) and isinstance(record.message, AssistantMessage):
            total += record.message.usage
    return total


def settled_length(records: Sequence[Record]) -> int:
    """How many of the records come before the turn that is still open; all of them if none is."""
    for place in range(len(records) - 1, -1, -1):
        record = records[place]
        if isinstance(record, (Compacted, Checkpoint)):
            break
        if isinstance(record, Said):
            message = record.message
            open_turn = isinstance(message, AssistantMessage) and bool(message.calls)
            return place if open_turn else len(records)
    return len(records)


def first_prompt(records: Iterable[Record]) -> str:
    """What the conversation began with, to be recognised by."""
    for record in records:
        if isinstance(record, Said) and not isinstance(record.message, (AssistantMessage, ToolMessage)):
            content = record.message.content
            return content if isinstance(content, str) else " ".join(getattr(part, "text", "") for part in content)
    return ""
