"""The calls of one LangGraph task, which stop and go on together: a stopped task is run again from its start."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

from langgraph.errors import GraphInterrupt
from langgraph.types import interrupt

from callwright.core.calls import Answers, Approve, Decline, Outcome, Question, Reply, ToolCall
from callwright.core.json import thaw
from callwright.interop.approvals import PendingApprovals

_GATHER_SECONDS = 0.01
"""How long a question waits for calls that are about to begin; the person it is for will not notice."""
_LINGER_SECONDS = 1.0
_MAX_KEPT_OUTCOMES = 1024
_NOT_UNDERSTOOD = Decline("the answer was not understood: it has to be approve, edit or reject")


class GraphTask:
    """Calls that LangGraph runs in one task. They are asked about when none is running any more, all at once."""

    def __init__(self, pending: PendingApprovals, session_id: str, name: str) -> None:
        self.calls = 0
        self.ended: dict[str, tuple[ToolCall, Outcome]] = {}
        self.stopped = False
        self._pending = pending
        self._session_id = session_id
        self._name = name
        self._running = 0
        self._idle = asyncio.Event()
        self._asked: list[Question] = []
        self._settled: asyncio.Future[Answers | None] | None = None
        self._rounds = 0

    def enter(self) -> None:
        """A call begins, or goes on."""
        self._running += 1
        self._idle.clear()

    def leave(self) -> None:
        """A call has ended, or waits for an answer."""
        self._running -= 1
        if self._running == 0:
            self._idle.set()

    async def ask(self, questions: Sequence[Question]) -> Answers | None:
        """Stop the graph until a person has answered; None when nobody knows what the answer was given to."""
        settled = self._settled = self._settled or asyncio.get_running_loop().create_future()
        self._asked += questions
        self.leave()
        try:
            await asyncio.sleep(_GATHER_SECONDS)
            if not settled.done():
                await self._idle.wait()
            if not settled.done():  # the first to wake up speaks for all
                self._settle(settled)
            return settled.result()
        finally:
            self.enter()

    def _settle(self, settled: "asyncio.Future[Answers | None]") -> None:
        key, questions = f"{self._name}#{self._rounds}", self._asked
        self._rounds, self._asked, self._settled = self._rounds + 1, [], None
        try:
            reply = interrupt(_make_request(questions))
        except GraphInterrupt as stop:  # only now it is shown to anybody
            self._pending.keep(self._session_id, key, questions)
            self.stopped = True
            settled.set_exception(stop)
            return
        shown = self._pending.find(self._session_id, key)
        settled.set_result(None if shown is None else Answers(_decode_replies(shown.ids, reply)))

    def forget(self) -> None:
        """Drop what was asked: every call has its outcome."""
        for number in range(self._rounds):
            self._pending.drop(self._session_id, f"{self._name}#{number}")


class GraphTasks:
    """The tasks that run at present, and what calls had come to when their task was stopped."""

    def __init__(self, pending: PendingApprovals) -> None:
        self._pending = pending
        self._present: dict[tuple[str, str], GraphTask] = {}
        self._kept: dict[tuple[str, str, str], tuple[ToolCall, Outcome]] = {}

    async def run(
        self, session_id: str, name: str, call: ToolCall, converse: Callable[[GraphTask], Awaitable[Outcome]]
    ) -> Outcome:
        """Bring a call of a task to its outcome, once: what had ended before the task was stopped is not done again."""
        task = self._present.setdefault((session_id, name), GraphTask(self._pending, session_id, name))
        task.calls += 1
        task.enter()
        try:
            before = self._kept.pop((session_id, name, call.id), None)
            same = before is not None and before[0] == call
            outcome = before[1] if before is not None and same else await converse(task)
            task.ended[call.id] = (call, outcome)
            return outcome
        finally:
            task.leave()
            task.calls -= 1
            if task.stopped:
                self._stop(task, session_id, name)
            elif task.calls == 0:  # the next call of the task may be about to begin
                asyncio.get_running_loop().call_later(_LINGER_SECONDS, self._end, task, session_id, name)

    def _stop(self, task: GraphTask, session_id: str, name: str) -> None:
        """Keep what has ended for when the task is run again, which makes a new one of it."""
        if self._present.get((session_id, name)) is task:
            del self._present[session_id, name]
        self._kept |= {(session_id, name, call_id): ended for call_id, ended in task.ended.items()}
        while len(self._kept) > _MAX_KEPT_OUTCOMES:
            del self._kept[next(iter(self._kept))]

    def _end(self, task: GraphTask, session_id: str, name: str) -> None:
        if task.calls == 0 and self._present.get((session_id, name)) is task:
            del self._present[session_id, name]
            task.forget()


def _make_request(questions: Sequence[Question]) -> dict[str, Any]:
    """Questions in LangChain's own form, which its user interfaces know how to show."""
    return {
        "action_requests": [
            {"name": question.tool, "args": thaw(question.arguments), "description": _describe(question)}
            for question in questions
        ],
        "review_configs": [
            {"action_name": question.tool, "allowed_decisions": ["approve", "edit", "reject"]} for question in questions
        ],
    }


def _describe(question: Question) -> str:
    return "\n".join(line for line in (question.summary, question.reason, question.url) if line)


def _decode_replies(ids: Sequence[str], said: Any) -> dict[str, Reply]:
    """What was said to each question: yes or no to all, one decision, or LangChain's list of them."""
    decisions = cast("dict[str, Any]", said).get("decisions") if isinstance(said, dict) else None
    if isinstance(decisions, list) and len(cast("list[Any]", decisions)) == len(ids):
        return {
            question_id: _decode_reply(one) for question_id, one in zip(ids, cast("list[Any]", decisions), strict=True)
        }
    return dict.fromkeys(ids, _decode_reply(said))


def _decode_reply(said: Any) -> Reply:
    match said:
        case True | {"type": "approve"}:
            return Approve()
        case False | None:
            return Decline()
        case {"type": "reject"}:
            return Decline(str(said.get("message") or ""))
        case {"type": "edit", "edited_action": {"args": dict()}}:
            return Approve(said["edited_action"]["args"])
        case _:
            return _NOT_UNDERSTOOD
