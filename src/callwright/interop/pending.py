"""What people have been shown, until they answer: an approval counts for that and nothing else."""

from collections.abc import Iterable, MutableMapping
from dataclasses import dataclass
from typing import Any

from callwright.core.call import Answers, Question, Reply, ToolCall
from callwright.core.json import Json, compact, thaw
from callwright.tool.parse import from_text

_MOST_KEPT = 4096


@dataclass(frozen=True, slots=True)
class ShownQuestions:
    """Questions as they were put to a person; each id is bound to exactly what would have run."""

    ids: tuple[str, ...]
    arguments: Json = None
    """Of the call they are about, as the framework gave them."""

    def replied(self, reply: Reply) -> Answers:
        """The same reply to all of them."""
        return Answers(dict.fromkeys(self.ids, reply))


class Pending:
    """Shown questions by session and a key of the adapter's, in a mapping of texts: a persistent one outlives us."""

    def __init__(self, kept: MutableMapping[str, str] | None = None) -> None:
        self._own = kept is None
        self._kept: MutableMapping[str, str] = {} if kept is None else kept

    def keep(self, session_id: str, key: str, questions: Iterable[Question], arguments: Json = None) -> None:
        """Remember what is being asked."""
        while self._own and len(self._kept) >= _MOST_KEPT:  # nobody came back to the oldest
            del self._kept[next(iter(self._kept))]
        ids = [question.id for question in questions]
        self._kept[_joined(session_id, key)] = compact({"ids": ids, "arguments": arguments})

    def find(self, session_id: str, key: str) -> ShownQuestions | None:
        """What was asked; None where nobody remembers."""
        text = self._kept.get(_joined(session_id, key))
        if text is None:
            return None
        record: Any = from_text(text)
        return ShownQuestions(tuple(record["ids"]), record["arguments"])

    def drop(self, session_id: str, key: str) -> None:
        """Forget what has been answered."""
        self._kept.pop(_joined(session_id, key), None)


def given(call: ToolCall) -> Any:
    """A call's arguments as plain values, however the framework gave them."""
    return from_text(call.arguments) if isinstance(call.arguments, (str, bytes)) else thaw(call.arguments)


def _joined(session_id: str, key: str) -> str:
    return compact([session_id, key])
