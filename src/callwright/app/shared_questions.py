"""Questions that are open in several places at once: the first answer counts, the other places learn who was first."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from callwright.app.session_view import reply_fields
from callwright.core.calls import Answers, Approve, Question, Reply
from callwright.core.errors import UsageError

_MOST_SETTLED = 1_000
Fields = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Settled:
    """A question that has an answer, and the place it was given in."""

    reply: Reply
    by: str

    def fields(self) -> Fields:
        """Return the answer as JSON, without edited arguments."""
        found = reply_fields(self.reply)
        return {**{name: found[name] for name in ("approved", "scope", "reason", "edited")}, "by": self.by}

    def describe(self) -> str:
        """Return the answer in words for the other places."""
        place = {"terminal": "in the terminal", "page": "on the page", "editor": "in the editor"}.get(self.by, self.by)
        if isinstance(self.reply, Approve):
            how = {"session": "allowed for this session", "always": "always allowed"}.get(
                self.reply.scope, "allowed once"
            )
            return f"answered {place}: {'allowed with other arguments' if self.reply.arguments is not None else how}"
        return f"answered {place}: declined{f', {self.reply.reason}' if self.reply.reason else ''}"


class SharedQuestions:
    """The questions that wait for an answer in any place.

    Args:
        where: The place of the agent itself.
        tell: Receives the events `asked` and `settled`.
    """

    def __init__(self, where: str, tell: Callable[[Fields], None]) -> None:
        self.where = where
        self._tell = tell
        self._waiting: dict[str, asyncio.Future[Settled]] = {}
        self._questions: dict[str, tuple[Question, float]] = {}
        self._settled: dict[str, Settled] = {}
        self._early: dict[str, Settled] = {}
        """Answers to questions on record, which a session that is resumed asks again under other ids."""
        self.describe: Callable[[Question, float], Fields] = lambda question, at: {"id": question.id}

    def __len__(self) -> int:
        return len(self._questions)

    def fields(self) -> list[Fields]:
        """Return the open questions as JSON."""
        return [self.describe(question, at) for question, at in self._questions.values()]

    def find(self, question_id: str) -> Question | None:
        """Return an open question that has not expired, and whose call still waits for it."""
        question, _ = self._questions.get(question_id, (None, 0.0))
        if question is None or question.is_expired() or self._waiting[question_id].cancelled():
            return None
        return question

    def find_settled(self, question_id: str) -> Settled | None:
        """Return the answer of a question that is no longer open."""
        return self._settled.get(question_id)

    def open(self, questions: Sequence[Question]) -> "list[asyncio.Future[Settled]]":
        """Show questions in every place; return their answers to come."""
        loop, now = asyncio.get_running_loop(), time.time()
        waiting = [loop.create_future() for _ in questions]
        for question, answer in zip(questions, waiting, strict=True):
            self._questions[question.id] = (question, now)
            self._waiting[question.id] = answer
        self._tell({"type": "asked", "questions": [self.describe(question, now) for question in questions]})
        self._settle_early()
        return waiting

    def settle_again(self, question_id: str, reply: Reply, by: str) -> None:
        """Give the answer of a question on record to the same question of the resumed session, now or when it asks."""
        self._early[question_id] = Settled(reply, by)
        self._settle_early()

    def forget_early(self) -> None:
        """Forget answers to questions on record: the run has ended, and asked none of them again."""
        self._early.clear()

    def _settle_early(self) -> None:
        for question_id, given in list(self._early.items()):
            asked = next((each for each, _ in self._questions.values() if each.matches(question_id)), None)
            if asked is not None and self.find(asked.id) is not None:
                del self._early[question_id]
                self.settle(asked.id, given.reply, given.by)

    def close(self, questions: Sequence[Question]) -> None:
        """Withdraw questions: those without an answer can no longer be answered here."""
        for question in questions:
            if self._questions.pop(question.id, None) is not None:
                self._waiting.pop(question.id).cancel()
                withdrawn = {"approved": False, "scope": "once", "edited": False, "by": "", "reason": "withdrawn"}
                self._tell({"type": "settled", "question": question.id, **withdrawn})

    def settle(self, question_id: str, reply: Reply, by: str) -> Settled | None:
        """Give the answer of a question; return the earlier answer, which counts, or None if this one does.

        Raises:
            UsageError: The question is not open.
        """
        earlier = self._settled.get(question_id)
        if earlier is not None:
            return earlier
        if self.find(question_id) is None:
            raise UsageError("the question is not open any more; look at the session again")
        given = self._settled[question_id] = Settled(reply, by)
        if len(self._settled) > _MOST_SETTLED:
            del self._settled[next(iter(self._settled))]
        del self._questions[question_id]
        self._waiting.pop(question_id).set_result(given)
        self._tell({"type": "settled", "question": question_id, **given.fields()})
        return None

    async def race(self, question: Question, ask_here: Awaitable[Reply]) -> tuple[Reply, Settled | None]:
        """Ask in the agent's own place until any place has an answer.

        Args:
            question: The question, already open.
            ask_here: Asks in the agent's own place; cancelled if another place is first.

        Returns:
            The reply, and who was first if it was another place.
        """
        asking = asyncio.ensure_future(ask_here)
        elsewhere = self._waiting.get(question.id)
        known = self._settled.get(question.id)
        try:
            if elsewhere is not None:
                await asyncio.wait({asking, elsewhere}, return_when=asyncio.FIRST_COMPLETED)
                known = self._settled.get(question.id)
            elif known is None:
                await asyncio.wait({asking})
        finally:
            if not asking.done():
                asking.cancel()
                with suppress(asyncio.CancelledError):
                    await asking
        if known is not None:
            if asking.done() and not asking.cancelled():
                asking.exception()  # retrieved: a place that left at the same moment is no failure
            return known.reply, known
        reply = asking.result()
        self.settle(question.id, reply, self.where)
        return reply, None

    async def ask(self, questions: Sequence[Question]) -> Answers:
        """Wait until every question has an answer from some place; for an agent without a place of its own."""
        waiting = self.open(questions)
        try:
            settled = await asyncio.gather(*waiting)
            return Answers({question.id: each.reply for question, each in zip(questions, settled, strict=True)})
        finally:
            self.close(questions)
