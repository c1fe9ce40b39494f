"""The records of a session, in the order of one turn.

Said(assistant) ─► Asked? ─► Answered? ─► Began ─► Started* ─► Ended* ─► Said(outcomes)
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from callwright.core._fast import frozen
from callwright.core.calls import Completed, Failed, Question, Reply
from callwright.core.content import Part, Text
from callwright.core.json import Json
from callwright.core.messages import AssistantMessage, Message, ToolMessage, Usage, UserMessage


@frozen
class Said:
    """A message that joined the conversation."""

    message: Message
    turn_id: str = ""
    """The turn that a model message begins; part of its calls' idempotency keys.

    Of a user message: the run that added it by itself, for example to have an answer corrected; empty for a prompt.
    """
    key: str = ""
    """Of a prompt: identifies it, so that it is heard once, however often it is sent."""


@frozen
class Began:
    """The open turn's calls are about to run; after this only idempotent ones may be repeated."""

    digests: Mapping[str, str]
    """Digests of what will run, by call id."""
    each: bool = False
    """Whether the start of each call follows as `Started`; otherwise all of them have started."""


@frozen
class Started:
    """These calls of the open turn are about to run; others of it may never have."""

    call_ids: tuple[str, ...]


@frozen
class Ended:
    """One call of the open turn has ended; others may still be running."""

    outcome: Completed | Failed


@frozen
class Asked:
    """The open turn waits for approvals."""

    questions: tuple[Question, ...]
    paused: bool = False
    """Whether the calls inside which they were asked have ended, to run again with the answers; or they still ran."""


@frozen
class Answered:
    """The user's replies, by question id; a reply is used up when its turn starts."""

    replies: Mapping[str, Reply]


@frozen
class Kept:
    """A note that a running tool keeps for when its call runs again: after a question, or after a crash."""

    path: str
    """The ids of the calls from the model's down to the one that keeps it, separated by `/`."""
    note: Json


@frozen
class Compacted:
    """These messages replace all earlier ones."""

    messages: tuple[Message, ...]
    usage: Usage = Usage()


@frozen
class Spent:
    """What agents inside a call used, or requests for a summary that was none; counts for the limits of the run."""

    usage: Usage
    cost: float | None = None
    """The cost at the inner agent's prices; None if they are not known."""


@frozen
class LimitReached:
    """The run was stopped at this limit; if it is resumed, the limit starts again."""

    kind: str


@frozen
class Checkpoint:
    """The position of a graph: its next step and the state for that step."""

    step: str
    state: Json
    waiting: str = ""
    """The question that the graph waits for, if any."""


@frozen
class UndoPoint:
    """A state that the session can return to: its position among the records, and what was kept under its id."""

    point_id: str
    label: str = ""
    """For the user: the prompt or command that came next."""
    data: Json = None
    """What the undo needs beside the conversation, such as the contents that files had."""


@frozen
class Rewound:
    """The conversation goes on from an earlier state; the records in between stay, but the model does not see them."""

    position: int
    """The state after so many records of the session; its own position if only files were restored."""
    restored: str = ""
    """Identifies the files that were restored with it; empty if there were none."""
    redo: bool = False
    """Whether it takes back the last undo."""
    note: str = ""
    """What the model is told."""


Record: TypeAlias = (
    Said
    | Began
    | Started
    | Ended
    | Asked
    | Answered
    | Kept
    | Compacted
    | Spent
    | LimitReached
    | Checkpoint
    | UndoPoint
    | Rewound
)


def follow_rewinds(records: Sequence[Record]) -> list[int]:
    """Return the positions of the records that count now, in order: without those that were rewound."""
    if not any(isinstance(record, Rewound) for record in records):
        return list(range(len(records)))
    last = [-1]  # after so many records, the position of the last one that counts
    previous: list[int] = []
    for index, record in enumerate(records):
        at = record.position if isinstance(record, Rewound) and 0 <= record.position <= index else index
        previous.append(last[at])
        last.append(index)
    counting: list[int] = []
    at = last[-1]
    while at >= 0:
        counting.append(at)
        at = previous[at]
    return counting[::-1]


class OpenQuestions:
    """The questions of the open turn that have no answer yet; follows the records of a session as they come.

    Args:
        records: The records of the session so far.
    """

    def __init__(self, records: Sequence[Record] = ()) -> None:
        self._open: dict[tuple[str, str], Question] = {}
        for index in follow_rewinds(records):
            self._add(records[index])

    def __bool__(self) -> bool:
        return bool(self._open)

    def __iter__(self) -> Iterator[Question]:
        return iter(self._open.values())

    def follow(self, before: Sequence[Record], added: Sequence[Record]) -> None:
        """Follow records that are added to those before."""
        for record in added:
            if isinstance(record, Rewound):
                questions = OpenQuestions([*before, *added])
                self._open = {(question.call_id, question.digest): question for question in questions}
                return
            if self._open or isinstance(record, Asked):  # nothing else changes that there are none
                self._add(record)

    def _add(self, record: Record) -> None:
        match record:
            case Asked(questions):
                # a question that was asked again, because the first one expired, replaces it
                self._open.update({(question.call_id, question.digest): question for question in questions})
            case Answered(replies):
                self._open = {key: question for key, question in self._open.items() if question.id not in replies}
            case Said() | Compacted():
                self._open.clear()
            case _:
                pass


def find_open_questions(records: Sequence[Record]) -> tuple[Question, ...]:
    """Return the questions that a session waits for, also those that have expired."""
    return tuple(OpenQuestions(records))


def list_asked_ids(records: Sequence[Record]) -> set[str]:
    """Return the ids of all questions of the open turn: of those with an answer, and of those that were asked again."""
    found: set[str] = set()
    for index in reversed(follow_rewinds(records)):
        match records[index]:
            case Asked(questions):
                found.update(question.id for question in questions)
            case Said() | Compacted():
                break
            case _:
                pass
    return found


def sum_usage(records: Iterable[Record]) -> Usage:
    """Return the total usage of a session's model requests, with those of agents inside its calls."""
    total = Usage()
    for record in records:
        if isinstance(record, (Compacted, Spent)):
            total += record.usage
        elif isinstance(record, Said) and isinstance(record.message, AssistantMessage):
            total += record.message.usage
    return total


def count_settled_records(records: Sequence[Record]) -> int:
    """Count the records before the open turn; all records if no turn is open."""
    for index in range(len(records) - 1, -1, -1):
        record = records[index]
        if isinstance(record, (Compacted, Checkpoint)):
            break
        if isinstance(record, Rewound) and 0 <= record.position < index:  # otherwise only files were restored
            # a redo may lead back into a turn that is still open
            inside = count_settled_records(records[: record.position]) < record.position
            return index if inside else len(records)
        if isinstance(record, Said):
            message = record.message
            open_turn = isinstance(message, AssistantMessage) and bool(message.calls)
            return index if open_turn else len(records)
    return len(records)


def is_prompt(record: Record) -> bool:
    """Whether a record is a message of the user that begins a run."""
    return isinstance(record, Said) and isinstance(record.message, UserMessage) and not record.turn_id


def find_first_prompt(records: Iterable[Record]) -> str:
    """Return what the user wrote in the first message, used as the title."""
    for record in records:
        if isinstance(record, Said) and not isinstance(record.message, (AssistantMessage, ToolMessage)):
            return find_prompt_text(record.message.content)
    return ""


def find_prompt_text(content: str | Sequence[Part]) -> str:
    """Return the first text of a prompt: what the user wrote, without attached files and outputs of commands."""
    if isinstance(content, str):
        return content
    texts = (part.text for part in content if isinstance(part, Text))
    return next((text for text in texts if text.strip()), "")
