"""The calls of one LangGraph task, which stop and resume together: a stopped task is run again from its start."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, cast

from langgraph.errors import GraphInterrupt
from langgraph.types import interrupt

from callwright.core.calls import Answers, Approve, Decline, Interrupted, Outcome, Question, Reply, ToolCall
from callwright.core.decisions import make_reply
from callwright.core.json import canonical, hash_text, thaw
from callwright.interop.bridge import PendingApprovals

_GATHER_SECONDS = 0.01
"""How long a question waits for sibling calls that are about to start; not noticeable for the user."""
_LINGER_SECONDS = 1.0
"""How long a task without calls is kept, in case its next call is about to start."""
_MAX_KEPT_OUTCOMES = 1024
_NOT_UNDERSTOOD = Decline("the answer was not understood: expected a bare approve, edit or reject")


class GraphTask:
    """The calls that LangGraph runs in one task. All questions are asked together, when no call is running."""

    def __init__(self, pending: PendingApprovals, session_id: str, name: str) -> None:
        self.calls = 0
        self.begun: Counter[str] = Counter()
        """How many equal calls have begun, by what they are."""
        self.ended: dict[str, list[Outcome]] = {}
        self.recalled: set[str] = set()
        """What has outcomes of an earlier run of the task."""
        self.stopped = False
        self._pending = pending
        self._session_id = session_id
        self._name = name
        self._running = 0
        self._idle = asyncio.Event()
        self._questions: list[Question] = []
        self._answered: asyncio.Future[Answers | None] | None = None
        self._rounds = 0
        self._shown: dict[str, str] = {}
        """The id under which each question was shown, perhaps by an earlier run of this task."""

    def enter(self) -> None:
        """Count a call that starts or continues."""
        self._running += 1
        self._idle.clear()

    def leave(self) -> None:
        """Count a call that has ended or waits for an answer."""
        self._running -= 1
        if self._running == 0:
            self._idle.set()

    async def ask(self, questions: Sequence[Question]) -> Answers | None:
        """Stop the graph until the user has answered; None if the questions that were shown are no longer saved."""
        answered = self._answered = self._answered or asyncio.get_running_loop().create_future()
        self._questions += questions
        self.leave()
        try:
            await asyncio.sleep(_GATHER_SECONDS)
            if not answered.done():
                await self._idle.wait()
            if not answered.done():  # the first call to wake up asks for all
                self._interrupt(answered)
            return answered.result()
        finally:
            self.enter()

    def _interrupt(self, answered: "asyncio.Future[Answers | None]") -> None:
        key, questions = f"{self._name}#{self._rounds}", self._questions
        self._rounds, self._questions, self._answered = self._rounds + 1, [], None
        try:
            reply = interrupt(_make_request(questions))
        except GraphInterrupt as stop:  # only now will the questions be shown
            self._pending.save(self._session_id, key, questions)
            self._pending.allow_claims(self._session_id, (question.id for question in questions))
            self.stopped = True
            answered.set_exception(stop)
            return
        shown = self._pending.find(self._session_id, key)
        if shown is None:
            answered.set_result(None)
            return
        matched = shown.match(questions)
        self._shown |= matched
        # by what was shown: the tasks of a step may ask in another order when they are repeated
        tools = {matched[question.id]: question.tool for question in questions if question.id in matched}
        replies = _decode_replies(shown.ids, reply, tools)
        answered.set_result(Answers({now: replies[then] for now, then in matched.items()}))

    def claim(self, questions: Sequence[Question], answers: Answers | None) -> tuple[str, ...] | None:
        """Use the approvals of these questions, each once in all runs of the task; None if one was used before."""
        approved = [key for key, reply in answers or () if isinstance(reply, Approve)]
        claimed: list[str] = []
        for question in questions:
            if question.id not in approved:
                continue
            if not self._pending.claim(self._session_id, self._shown[question.id]):
                self.give_back(claimed)
                return None
            claimed.append(self._shown[question.id])
        return tuple(claimed)

    def give_back(self, claimed: Sequence[str]) -> None:
        """Let approvals be claimed again: the call asked another question, and its task will be repeated for it."""
        self._pending.allow_claims(self._session_id, claimed)

    def forget(self) -> None:
        """Remove the saved questions; every call has its outcome."""
        for number in range(self._rounds):
            key = f"{self._name}#{number}"
            shown = self._pending.find(self._session_id, key)
            for question_id in () if shown is None else shown.ids:
                self._pending.claim(self._session_id, question_id)
            self._pending.drop(self._session_id, key)


class GraphTasks:
    """The running tasks, and the outcomes of calls whose task was stopped."""

    def __init__(self, pending: PendingApprovals) -> None:
        self._pending = pending
        self._running: dict[tuple[str, str], GraphTask] = {}
        self._kept: dict[tuple[str, str, str], list[Outcome]] = {}

    async def run(
        self, session_id: str, name: str, call: ToolCall, run_call: Callable[[GraphTask], Awaitable[Outcome]]
    ) -> Outcome:
        """Run a call of a task once: a call that ended before its task was stopped is not repeated."""
        task = self._running.setdefault((session_id, name), GraphTask(self._pending, session_id, name))
        task.calls += 1
        task.enter()
        try:
            what = _identify(call)
            before = self._find_ended(session_id, name, what)
            if before:
                task.recalled.add(what)
            number = task.begun[what]
            task.begun[what] += 1
            outcome = before[number] if number < len(before) else await run_call(task)
            task.ended.setdefault(what, []).append(outcome)
            return outcome
        finally:
            task.leave()
            task.calls -= 1
            if task.stopped:
                self._stop(task, session_id, name)
            elif task.calls == 0:  # its next call may be about to start
                asyncio.get_running_loop().call_later(_LINGER_SECONDS, self._end, task, session_id, name)

    def _find_ended(self, session_id: str, name: str, what: str) -> Sequence[Outcome]:
        kept = self._kept.get((session_id, name, what))
        return self._pending.find_outcomes(session_id, f"{name}={what}") if kept is None else kept

    def _stop(self, task: GraphTask, session_id: str, name: str) -> None:
        """Keep the outcomes for the next run of the task, which will be a new `GraphTask`."""
        if self._running.get((session_id, name)) is task:
            del self._running[session_id, name]
        for what, outcomes in task.ended.items():
            self._kept[session_id, name, what] = outcomes
            ended = [outcome for outcome in outcomes if not isinstance(outcome, Interrupted)]
            self._pending.keep_outcomes(session_id, f"{name}={what}", ended)
        while len(self._kept) > _MAX_KEPT_OUTCOMES:
            del self._kept[next(iter(self._kept))]

    def _end(self, task: GraphTask, session_id: str, name: str) -> None:
        if task.calls == 0 and self._running.get((session_id, name)) is task:
            del self._running[session_id, name]
            task.forget()
            for what in task.recalled:
                self._kept.pop((session_id, name, what), None)
                self._pending.drop(session_id, f"{name}={what}")


def _identify(call: ToolCall) -> str:
    """Return what a call is: a model may use one id for several calls."""
    try:
        return hash_text(canonical([call.id, call.name, call.arguments]))[:32]
    except (TypeError, ValueError):  # arguments that are not JSON, which the executor refuses
        return hash_text(repr(call))[:32]


def _make_request(questions: Sequence[Question]) -> dict[str, Any]:
    """Return questions in LangChain's format, which its user interfaces can show."""
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


def _decode_replies(ids: Sequence[str], answer: object, tools: Mapping[str, str]) -> dict[str, Reply]:
    """Return the reply to each question: a yes or no to all, one decision, or LangChain's list of decisions.

    Args:
        ids: The questions as they were shown.
        answer: What the graph was resumed with.
        tools: The tool of each question, by its id.
    """
    decisions: object = None
    given = cast("dict[str, object]", answer) if type(answer) is dict else {}
    if given.keys() == {"decisions"}:
        decisions = given["decisions"]
    if type(decisions) is list and len(cast("list[object]", decisions)) == len(ids):
        each = cast("list[object]", decisions)
        return {key: _decode_reply(one, tools.get(key, "")) for key, one in zip(ids, each, strict=True)}
    return {key: _decode_reply(cast("object", answer), tools.get(key, "")) for key in ids}


def _decode_reply(answer: object, tool: str) -> Reply:
    """Return the reply that one decision stands for. Only a bare one approves: a note may take a part of it back."""
    if answer is True or answer is False or answer is None:
        return make_reply(answer)
    decision = {**cast("dict[str, Any]", answer)} if isinstance(answer, dict) else {}
    kind = decision.pop("type", None)
    if type(kind) is not str:
        return _NOT_UNDERSTOOD
    if kind == "reject":
        return make_reply(False, reason=str(decision.get("message") or ""))
    if kind == "approve" and not decision:
        return make_reply(True)
    action: Any = decision.pop("edited_action", None)
    if kind == "edit" and not decision and type(action) is dict:
        edited = dict(cast("dict[str, Any]", action))
        arguments = edited.pop("args", None)
        if type(arguments) is dict and edited in ({}, {"name": tool}):
            return make_reply(True, arguments=cast("dict[str, Any]", arguments))
    return _NOT_UNDERSTOOD
