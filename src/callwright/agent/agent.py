"""The `Agent` class, which runs a model with tools until there is a result."""

import os
from collections import OrderedDict
from collections.abc import AsyncGenerator, Coroutine, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from callwright.agent.cancel_watch import CancelWatch
from callwright.agent.compaction import Compaction
from callwright.agent.handover import Handover
from callwright.agent.loop import Loop, make_output_schema, read_finished_result
from callwright.agent.model_request import Requests
from callwright.agent.replay import SessionReplay, find_outcomes
from callwright.agent.results import AgentEvent, Done, Paused, Result, Stopped, Value
from callwright.agent.run_limits import RunLimits, Spending
from callwright.agent.run_request import (
    Prompt,
    RunRequest,
    check_parts,
    check_prompt,
    find_used_seconds,
    hold_for,
    make_toolset,
    release_hold,
    restore_approvals,
    run_blocking,
)
from callwright.agent.subagent import Lineage, SubAgent, inherit_ask, inherit_executor
from callwright.agent.text_replies import TextReplies
from callwright.agent.tool_calls import RunDependencies
from callwright.agent.transcript import Transcript
from callwright.agent.undo import add_prompt, attach_recorder
from callwright.clip import StoredOutputs
from callwright.core.calls import Answers
from callwright.core.decisions import check_answers
from callwright.core.errors import UsageError
from callwright.core.messages import AssistantMessage, Message
from callwright.core.spec import Limits
from callwright.executor.executor import Executor, Observer
from callwright.executor.turn_context import AskPerson
from callwright.providers.base import Provider, require_provider
from callwright.providers.pricing import find_prices
from callwright.providers.resolve import provider_for
from callwright.registry.catalog import Toolset, find_snapshot
from callwright.registry.visibility import recall_reveals
from callwright.sessions.base import SessionError, SessionHold, SessionStore, no_such_session, require_store
from callwright.sessions.memory import MemoryStore
from callwright.tool.base import OUTERMOST, Cancellation, OuterSession, State, Tool

if TYPE_CHECKING:
    from callwright.system.undo.undo_store import UndoStore

_LIMITS = RunLimits()
_COMPACTION = Compaction()
_REQUESTS = Requests()
_MAX_STATES = 256
_SUBAGENT_SECONDS = 3600.0
"""Time limit of a call of an agent that has none: a call without any would block its turn for good."""


class Agent:
    """Runs a model with tools until it answers, reaches a limit or needs an approval.

    Args:
        model: A provider, or the name of a model: `"anthropic:…"`, `"openai:…"`, `"google:…"`, `"http://host/v1#name"`.
        tools: A registry or another toolset, or an iterable of tools. By default the tools of `executor`.
        executor: Runs the calls, with its policies and hooks. By default one that asks before changes.
        sessions: Where conversations are stored. By default in memory, and only while a run needs them.
        system: The system prompt.
        limits: What one run may use.
        ask: Async function that takes questions and returns `Answers`. Without it the run returns `Paused`.
        compaction: When and how a long conversation is shortened; None turns it off.
        requests: Size, options and retries of model requests.
        name: The agent's name in traces and logs. As a tool of another agent it defaults to the tool's name.
        observe: Observers of the run's events. With an `executor`, pass them to the executor instead.
        undo: Keeps what tools change in files, so that it can be undone; see `UndoHistory`.

    Raises:
        UsageError: An argument has the wrong type, or `observe` is given together with `executor`.
    """

    def __init__(
        self,
        model: Provider | str,
        tools: Toolset | Iterable[Tool] = (),
        *,
        executor: Executor | None = None,
        sessions: SessionStore | None = None,
        system: str = "",
        limits: RunLimits = _LIMITS,
        ask: AskPerson | None = None,
        compaction: Compaction | None = _COMPACTION,
        requests: Requests = _REQUESTS,
        name: str = "",
        observe: Observer | Iterable[Observer] = (),
        undo: "UndoStore | None" = None,
    ) -> None:
        if executor is not None and observe:
            raise UsageError("pass observe to the executor: its observers also receive the agent's events")
        check_parts(executor, system, limits, ask, compaction, requests)
        self.provider = provider_for(model) if isinstance(model, str) else require_provider(model)
        self.registry = make_toolset(tools, executor)
        self.executor = executor or Executor(self.registry, observe=observe)
        self.executor.outputs.reader()  # from now on, notes in cut outputs name it
        self.sessions: SessionStore = MemoryStore() if sessions is None else require_store(sessions)
        self.limits, self.ask, self.compaction, self.requests = limits, ask, compaction, requests
        self.name, self.system, self.undo = name, system, undo
        self._temporary = sessions is None
        self._paused: set[str] = set()
        """Temporary sessions without a name that wait for an answer, or for another try."""
        self._states: OrderedDict[str, State] = OrderedDict()

    async def run(
        self,
        prompt: Prompt,
        *,
        session: str | None = None,
        output: type[Value] | object = None,
        cancellation: Cancellation | None = None,
        key: str = "",
        handover: Handover | None = None,
    ) -> Done[Value] | Paused | Stopped:
        """Run the model on a prompt, in a new session or as the next message of an existing one.

        Failures of the model and of tools are part of the result and never raised. Cancelling the task raises
        `CancelledError` after every open call has its outcome.

        Args:
            prompt: The user's message.
            session: The session to continue, or the id of the new one.
            output: A type. The final answer must be JSON of this type, or for `str` any text, and is `Done.output`.
            cancellation: Ends the run from outside; the result is then `Stopped`.
            key: Identifies the prompt: a session gets it once. With the same key again, the run is continued.
            handover: Ends the run between two turns, so that another process can continue it.

        Raises:
            SessionBusy: Another run is writing this session.
            SessionError: The session cannot be stored, or a later prompt followed the one with this key.
            UsageError: The prompt is neither a text nor a tuple of parts, or the key is no text.
        """
        check_prompt(prompt, key)
        request = RunRequest(session or "", prompt, None, output, cancellation, key=key, handover=handover)
        return await self._run_session(request)

    async def resume(
        self,
        session: str,
        answers: Answers | None = None,
        *,
        prompt: Prompt | None = None,
        output: type[Value] | object = None,
        cancellation: Cancellation | None = None,
        handover: Handover | None = None,
    ) -> Done[Value] | Paused | Stopped:
        """Continue a session after a pause, a limit or a crash.

        A call that had ended is not repeated. A call that had started is repeated, with the same idempotency key, only
        if its tool is idempotent or read-only; otherwise the model is told that the outcome is unknown.

        Args:
            session: The session to continue.
            answers: The answers to the questions of a `Paused` run.
            prompt: A further message, added after the outcomes of the answered calls unless the run pauses again.
            output: As for `run`.
            cancellation: As for `run`.
            handover: As for `run`.

        Raises:
            SessionBusy: Another run is writing this session.
            SessionError: There is no such session, or it cannot be stored.
            UsageError: `answers` is not `Answers`, or comes with a prompt where no question is pending.
        """
        checked = None if answers is None else check_answers(answers)
        if prompt is not None:
            check_prompt(prompt)
        return await self._run_session(RunRequest(session, prompt, checked, output, cancellation, handover=handover))

    def stream(
        self,
        prompt: Prompt | None = None,
        *,
        session: str | None = None,
        answers: Answers | None = None,
        output: object = None,
        cancellation: Cancellation | None = None,
    ) -> AsyncGenerator[AgentEvent, None]:
        """Run as `run` does, or as `resume` without a prompt or with answers, and yield the events, the result last.

        Args:
            prompt: The user's message; None to continue, as `resume` does.
            session: The session to continue, or the id of a new one.
            answers: The answers to the questions of a `Paused` run.
            output: As for `run`.
            cancellation: As for `run`.

        Raises:
            UsageError: `answers` is not `Answers`, or the prompt is not valid.
        """
        if prompt is not None:
            check_prompt(prompt)
        checked = None if answers is None else check_answers(answers)
        request = RunRequest(session or "", prompt, checked, output, cancellation)
        from callwright.agent.event_stream import stream_events  # loaded with the first streamed run

        return stream_events(lambda emit: self._run_session(replace(request, emit=emit)))

    def run_sync(
        self, prompt: Prompt, *, session: str | None = None, output: type[Value] | object = None
    ) -> Done[Value] | Paused | Stopped:
        """Run as `run` does, and block until there is a result.

        Args:
            prompt: The user's message.
            session: As for `run`.
            output: As for `run`.

        Raises:
            UsageError: An event loop is running in this thread, or the prompt is not valid.
        """
        return run_blocking(lambda: self.run(prompt, session=session, output=output))

    async def compact(
        self, session: str, focus: str = "", *, cancellation: Cancellation | None = None
    ) -> tuple[int, int]:
        """Replace a session's messages with a summary; return the estimated tokens before and after.

        Runs also compact a session by themselves when it grows too long. If this raises, the session is unchanged.

        Args:
            session: The session to compact.
            focus: What the summary must keep above all.
            cancellation: Ends the request to the model from outside.

        Raises:
            ProviderError: The request to the model failed.
            SessionError: There is no such session, it waits for an approval, or the request was stopped.
        """
        request, spending = RunRequest(session, cancellation=cancellation), Spending(self.limits)
        hold = await self.sessions.hold(session)
        watch = CancelWatch(cancellation, spending.deadline, self.limits.seconds)
        try:
            transcript = Transcript(hold, spending, watch, None)
            if not hold.records:
                raise no_such_session(session)
            if transcript.open is not None:
                raise SessionError(f"session {session!r} cannot be compacted: an approval is pending")
            before = transcript.tokens
            await Loop(self._dependencies(request, transcript), transcript, None).summarise(focus)
            return before, transcript.tokens
        except TimeoutError:
            _, reason = watch.find_stop_reason() or ("", "the request was stopped")
            raise SessionError(f"session {session!r} was not compacted: {reason}") from None
        finally:
            watch.end()
            await release_hold(hold)

    async def messages(self, session: str) -> list[Message]:
        """Return the conversation as the model would see it."""
        return list(SessionReplay(await self.sessions.read(session)).history)

    def as_tool(self, name: str, description: str, *, limits: Limits | None = None) -> Tool:
        """Return a tool that runs this agent for another one.

        The inner agent keeps its own tools, policies and limits, and inherits the outer agent's denials, hooks,
        cancellation and `ask`. What it uses counts for both. Without an `ask`, approval requests are declined.

        Args:
            name: The name of the tool.
            description: Tells the outer model what the agent is for.
            limits: Limits of one call; by default the time limit of the agent.
        """
        allowed = limits or Limits(seconds=self.limits.seconds or _SUBAGENT_SECONDS)
        return SubAgent(self).tool(name, description, allowed)

    @property
    def durable(self) -> bool:
        """Whether sessions survive the end of the process."""
        return self.sessions.durable

    async def run_inside(self, prompt: str, session_id: str, lineage: Lineage, name: str) -> Result:
        """Run `prompt` inside a call of another agent; continue `session_id` if the call is a repetition.

        `lineage` is what the run inherits, `name` how events and questions name an agent without a name.
        """
        return await self._run_session(RunRequest(session_id, prompt, lineage=lineage, name=name))

    async def _run_session(self, request: RunRequest) -> Result:
        """Run, and delete a temporary session that has no name and does not wait for an answer."""
        paused = request.session_id in self._paused
        unnamed = self._temporary and (not request.session_id or request.lineage is not None or paused)
        kept = not unnamed or paused  # a second resume, for example, may fail while the first one runs
        request.session_id = request.session_id or os.urandom(16).hex()
        hold = watch = transcript = None
        try:
            if self.limits.prices is None and (self.executor.observe is not None or request.lineage is not None):
                await find_prices(self.provider.model)  # loaded now: the end of a run must not wait or block the loop
            used_seconds = 0.0 if self.limits.seconds is None else await find_used_seconds(self.sessions, request)
            hold = await hold_for(self.sessions, request)
            spending = Spending(self.limits, used_seconds)
            if request.lineage is not None:
                spending.report_to(request.lineage.add_inner, self.provider.model, request.lineage.spending)
            watch = CancelWatch(request.cancellation, spending.deadline, self.limits.seconds)
            transcript = Transcript(hold, spending, watch, request.emit, request.outer_handover)
            result = await self._open_session(request, hold, transcript) or await self._continue(request, transcript)
            if unnamed and (kept := isinstance(result, Paused) or (paused and not isinstance(result, Done))):
                self._paused.add(request.session_id)
            return result
        finally:
            if watch is not None:
                watch.end()
            if transcript is not None and (state := self._states.get(request.session_id)) is not None:
                state.get(Lineage).end_run(transcript.note)  # it outlasts the run, and must not keep its history
            if hold is not None:
                await release_hold(hold)
            if not kept:
                await self._delete(request.session_id)

    async def _delete(self, session_id: str) -> None:
        with suppress(SessionError):  # the run may have failed before the session was created
            await self.sessions.delete(session_id)
        self._paused.discard(session_id)
        self._states.pop(session_id, None)
        self.executor.policies.forget(session_id)
        if self.undo is not None:
            self.undo.forget(session_id)

    def _continue(self, request: RunRequest, transcript: Transcript) -> Coroutine[Any, Any, Result]:
        """Return what runs an open session to its result; not a coroutine of its own, which would wait with it."""
        dependencies = self._dependencies(request, transcript)
        loop = Loop(dependencies, transcript, make_output_schema(request.output), request.handover)
        if request.prompt is not None and request.answers is not None and not transcript.has_heard(request.key):
            loop.then = partial(add_prompt, transcript, request, self.undo)
        if (observe := dependencies.executor.observe) is None:
            return loop.run()
        from callwright.agent.observation import run_observed  # an unobserved run must not pay for loading it

        return run_observed(observe, request, self.name, self.provider, transcript, loop.run())

    async def _open_session(self, request: RunRequest, hold: SessionHold, transcript: Transcript) -> Result | None:
        """Apply the prompt or the answers; return the result of a session that has ended already."""
        heard = transcript.has_heard(request.key) or (request.lineage is not None and bool(hold.records))
        if request.prompt is not None and request.answers is None and not heard:
            await add_prompt(transcript, request, self.undo)
            return None
        if not hold.records:
            raise no_such_session(request.session_id)
        transcript.carry_spending()
        if transcript.open is not None:
            transcript.add_replies(transcript.open, {} if request.answers is None else dict(request.answers))
            return None
        if request.prompt is not None and not heard:
            raise UsageError(f"no question of session {request.session_id!r} is pending: leave out the answers")
        last = transcript.history[-1] if transcript.history else None
        if isinstance(last, AssistantMessage):
            catalog = find_snapshot(self.registry, self.state(request.session_id))()
            problem = partial(TextReplies(self.provider).find_problem, catalog=catalog, history=transcript.history)
            return await read_finished_result(transcript, last, make_output_schema(request.output), problem)
        return None

    def _dependencies(self, request: RunRequest, transcript: Transcript) -> RunDependencies:
        lineage, ask, executor = request.lineage, self.ask, self.executor
        if lineage is not None:
            executor = inherit_executor(executor, lineage)
            ask = inherit_ask(lineage, ask, self.name or request.name)
        state = self.state(request.session_id)
        inherited = state.get(Lineage)
        if inherited.executor is None and transcript.hold.records:  # restarted: show again what searches revealed
            recall_reveals(state, find_outcomes(transcript.history))
        if durable := self.sessions.durable:
            state.get(StoredOutputs).load = partial(self.sessions.read_output, request.session_id)
        restore_approvals(executor.policies, transcript)
        inherited.undo = attach_recorder(state, self.undo, request.session_id, lineage, self.sessions)
        inherited.executor, inherited.ask, inherited.spending = executor, ask, transcript.spending
        inherited.begin_run(transcript.note, transcript.fail if durable else None, request.outer_handover)
        state.put(OUTERMOST if lineage is None else OuterSession(lineage.session_id))
        inherited.depth = 0 if lineage is None else lineage.depth + 1
        return RunDependencies(
            self.provider,
            self.registry,
            executor,
            state,
            ask,
            durable,
            self.system,
            self.requests,
            self.compaction,
            inherited.undo,
            transcript.keep,
        )

    def state(self, session: str) -> State:
        """Return the state that the session's tools share; kept for the sessions used most recently."""
        state = self._states.pop(session, None) or self.executor.state.copy()
        self._states[session] = state  # popped and inserted again: the dict is ordered by last use
        if len(self._states) > _MAX_STATES:
            self._states.popitem(last=False)
        return state
