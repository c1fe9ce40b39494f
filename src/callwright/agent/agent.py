"""`Agent`: a model, its tools, and the sessions they are used in.

Ways to drive a run: as a stream of its events, or blocking.
"""

import asyncio
import secrets
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, TypeVar, cast

from callwright.agent.cancel_watch import CancelWatch
from callwright.agent.compaction import Compaction
from callwright.agent.loop import Loop, RunDependencies, Shape
from callwright.agent.model_request import Requests
from callwright.agent.results import AgentEvent, Paused, Result
from callwright.agent.run_limits import RunLimits, Spending
from callwright.agent.subagent import Lineage, SubAgent, decline_all, inherit_executor
from callwright.agent.transcript import SessionReplay, Transcript
from callwright.core.calls import Answers
from callwright.core.content import Part
from callwright.core.errors import InvalidArguments, UsageError
from callwright.core.messages import AssistantMessage, Message, ToolMessage, UserMessage
from callwright.core.spec import Limits
from callwright.executor.executor import Executor, Observer
from callwright.executor.turn import AskPerson
from callwright.providers.base import Provider, vendor_of
from callwright.providers.resolve import provider_for
from callwright.registry.catalog import Toolset
from callwright.registry.registry import Registry
from callwright.registry.visibility import recall_reveals
from callwright.sessions.base import SessionError, SessionHold, SessionStore, no_such_session
from callwright.sessions.memory import MemoryStore
from callwright.tool.base import Cancellation, State, Tool

Value = TypeVar("Value")
Emit = Callable[[AgentEvent], None]


async def stream_events(perform: Callable[[Emit], Awaitable[Result]]) -> AsyncGenerator[AgentEvent, None]:
    """Give a run's events as they come and its result last; leaving early cancels the run and waits for its end.

    The run has a task of its own, so that a slow reader or one that leaves cannot stop it between two steps.
    """
    events: asyncio.Queue[AgentEvent | None] = asyncio.Queue()
    run = asyncio.ensure_future(perform(events.put_nowait))
    run.add_done_callback(lambda _: events.put_nowait(None))
    try:
        while (event := await events.get()) is not None:
            yield event
        yield await run
    finally:
        if not run.done():
            run.cancel()
            with suppress(asyncio.CancelledError):
                await run


def run_blocking(work: Callable[[], Coroutine[Any, Any, Value]], instead: str) -> Value:
    """Run to the end in an event loop of its own; refuse inside a running one."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work())
    raise UsageError(f"run_sync blocks, and an event loop is running here; write `{instead}` instead")


Prompt = str | tuple[Part, ...]
_LIMITS, _COMPACTION, _REQUESTS = RunLimits(), Compaction(), Requests()
_REMEMBERED_STATES = 256
_NO_LIMIT_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What one run was asked for."""

    session_id: str
    prompt: Prompt | None = None
    answers: Answers | None = None
    output: object = None
    cancellation: Cancellation | None = None
    emit: Emit | None = None
    lineage: Lineage | None = None
    name: str = ""
    """What the agent is called where it has no name of its own."""


class Agent:
    """Runs a model with tools until it is done, a limit is reached or a person must decide.

    The model is a provider or the name of one: `"anthropic:…"`, `"openai:…"`, `"google:…"`, `"http://host/v1#name"`.
    """

    def __init__(
        self,
        provider: Provider | str,
        registry: Toolset | Iterable[Tool] = (),
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
    ) -> None:
        if executor is not None and observe:
            raise UsageError("give observe to the executor: its observers hear the agent's runs too")
        self.provider = provider_for(provider) if isinstance(provider, str) else _check_provider(provider)
        self.registry = _make_toolset(registry, executor)
        self.executor = executor or Executor(self.registry, observe=observe)
        self.sessions: SessionStore = MemoryStore() if sessions is None else _check_store(sessions)
        self.system = system
        self.limits = limits
        self.ask = ask
        """Answers questions on the spot; without it a run that needs an answer is `Paused`."""
        self.compaction = compaction
        self.requests = requests
        self.name = name
        """What traces and logs call it; inside another agent, the tool's name where it has none."""
        self._passing = sessions is None
        self._states: OrderedDict[str, State] = OrderedDict()

    async def run(
        self,
        prompt: Prompt,
        *,
        session: str | None = None,
        output: object = None,
        cancellation: Cancellation | None = None,
    ) -> Result:
        """Take up a session, or begin one, with something a person says; never raises for what a model or tool did.

        With `output`, a type, the answer must be JSON of that type and is handed over as a value. Cancelling the
        task raises `CancelledError` after every open call has its outcome; a `cancellation` returns `Stopped`.
        Raises `SessionBusy` while another run writes the session, `SessionError` when it cannot be stored.
        """
        return await self._passed(RunRequest(session or "", prompt, output=output, cancellation=cancellation))

    async def resume(
        self,
        session: str,
        answers: Answers | None = None,
        *,
        output: object = None,
        cancellation: Cancellation | None = None,
    ) -> Result:
        """Go on where a session stands: after a pause, a limit or a crash.

        A call that had ended is not made again; one that had started is made again only if that is harmless, with
        the same idempotency key, and is otherwise reported to the model as unknown.
        """
        return await self._passed(RunRequest(session, None, answers, output, cancellation))

    def stream(
        self,
        prompt: Prompt | None = None,
        *,
        session: str | None = None,
        answers: Answers | None = None,
        output: object = None,
        cancellation: Cancellation | None = None,
    ) -> AsyncGenerator[AgentEvent, None]:
        """As `run`, or as `resume` without a prompt, event by event; the result comes last."""
        order = RunRequest(session or "", prompt, answers, output, cancellation)
        return stream_events(lambda emit: self._passed(replace(order, emit=emit)))

    def run_sync(self, prompt: Prompt, *, session: str | None = None, output: object = None) -> Result:
        """As `run`, blocking."""
        return run_blocking(lambda: self.run(prompt, session=session, output=output), "await agent.run(…)")

    async def compact(
        self, session: str, focus: str = "", *, cancellation: Cancellation | None = None
    ) -> tuple[int, int]:
        """Put a summary in the place of a session, keeping `focus` above all; returns its tokens before and after.

        Happens by itself when a session grows too long. Raises `ProviderError` where the model cannot be asked and
        `SessionError` where the session waits for an answer: then it is as it was.
        """
        hold = await self.sessions.hold(session)
        spending = Spending(self.limits)
        watch = CancelWatch(cancellation, spending.deadline, self.limits.seconds)
        try:
            talk = Transcript(hold, spending, watch, None)
            if not hold.records:
                raise no_such_session(session)
            if talk.open is not None:
                raise SessionError(f"session {session} waits for an answer; answer before it is made shorter")
            before = talk.tokens
            await Loop(self._machinery(RunRequest(session), talk), talk, None).summarise(focus)
            return before, talk.tokens
        except TimeoutError:
            raise SessionError(f"session {session} is as it was: {(watch.stopped() or ('', 'stopped'))[1]}") from None
        finally:
            watch.end()
            await asyncio.shield(asyncio.ensure_future(hold.release()))

    async def messages(self, session: str) -> list[Message]:
        """The conversation so far, as the model would be shown it."""
        return list(SessionReplay(await self.sessions.read(session)).history)

    def as_tool(self, name: str, description: str, *, limits: Limits | None = None) -> Tool:
        """Make this agent a tool of another one.

        It keeps its own tools, policies and budget, and inherits the outer agent's denials, hooks, stop switch and
        person; what it spends counts for both. Without a person on the spot, what must be asked is declined.
        """
        allowed = limits or Limits(seconds=self.limits.seconds or _NO_LIMIT_SECONDS)
        return SubAgent(self).tool(name, description, allowed)

    @property
    def durable(self) -> bool:
        """Whether its sessions outlive the process."""
        return self.sessions.durable

    async def run_inside(self, prompt: str, session_id: str, lineage: Lineage, name: str) -> Result:
        """Run for a call of another agent; taken up where it was, if the call is being repeated."""
        return await self._passed(RunRequest(session_id, prompt, lineage=lineage, name=name))

    async def _passed(self, order: RunRequest) -> Result:
        """Perform; a session nobody named and nobody waits for is not kept."""
        if order.session_id and order.lineage is None:
            return await self._perform(order)
        named = order if order.session_id else replace(order, session_id=secrets.token_hex(16))
        kept = not self._passing
        try:
            result = await self._perform(named)
            kept = kept or isinstance(result, Paused)
            return result
        finally:
            if not kept:
                with suppress(SessionError):  # it may not have come to be
                    await self.sessions.delete(named.session_id)
                self._states.pop(named.session_id, None)

    async def _perform(self, order: RunRequest) -> Result:
        hold = await self.sessions.hold(order.session_id)
        spending = Spending(self.limits)
        watch = CancelWatch(order.cancellation, spending.deadline, self.limits.seconds)
        try:
            talk = Transcript(hold, spending, watch, order.emit)
            ended = await self._opened(order, hold, talk)
            if ended is not None:
                return ended
            machinery = self._machinery(order, talk)
            loop = Loop(machinery, talk, _output_schema(order.output))
            observe = machinery.executor.observe
            return await (loop.run() if observe is None else self._observed(order, observe, talk, loop))
        finally:
            watch.end()
            await asyncio.shield(asyncio.ensure_future(hold.release()))

    async def _observed(self, order: RunRequest, observe: Observer, talk: Transcript, loop: Loop) -> Result:
        from callwright.agent.model_request import run_observed  # loaded by those who watch
        from callwright.core.run_events import RunBegan

        provider = self.provider
        name = self.name or order.name
        began = RunBegan(order.session_id, name, provider.model, vendor_of(provider), order.prompt)
        return await run_observed(observe, began, talk.spending, loop.run())

    async def _opened(self, order: RunRequest, hold: SessionHold, talk: Transcript) -> Result | None:
        """Take in what the run was started with; a session that has come to its end has its result already."""
        repeated = order.lineage is not None and bool(hold.records)
        if order.prompt is not None and not repeated:
            await talk.hear(UserMessage(order.prompt))
            return None
        if not hold.records:
            raise no_such_session(order.session_id)
        if talk.open is not None:
            talk.answer(talk.open, dict(order.answers or ()))
            return None
        last = talk.history[-1] if talk.history else None
        if isinstance(last, AssistantMessage) and last.stop != "paused":
            return _finished_result(talk, last.text, _output_schema(order.output))
        return None

    def _machinery(self, order: RunRequest, talk: Transcript) -> RunDependencies:
        lineage, ask = order.lineage, self.ask
        executor = self.executor
        if lineage is not None:
            executor, ask = inherit_executor(executor, lineage), lineage.ask or ask or decline_all
        state = self.state(order.session_id)
        handed = state.get(Lineage)
        if handed.executor is None:  # taken up after a restart: what earlier searches revealed is shown again
            heard = (message for message in talk.history if isinstance(message, ToolMessage))
            recall_reveals(state, (outcome for message in heard for outcome in message.outcomes))
        handed.executor, handed.ask, handed.spending = executor, ask, talk.spending
        handed.depth = 0 if lineage is None else lineage.depth + 1
        return RunDependencies(
            self.provider,
            self.registry,
            executor,
            state,
            ask,
            self.sessions.durable,
            self.system,
            self.requests,
            self.compaction,
        )

    def state(self, session: str) -> State:
        """What the session's tools share, for as long as it is among the last used ones."""
        state = self._states.pop(session, None) or self.executor.state.copy()
        self._states[session] = state
        if len(self._states) > _REMEMBERED_STATES:
            self._states.popitem(last=False)
        return state


def _finished_result(talk: Transcript, text: str, shape: Shape | None) -> Result:
    """The result of a session that has come to its end already."""
    if shape is None:
        return talk.done(text)
    try:
        return talk.done(text, shape.read(text))
    except InvalidArguments as error:
        return talk.stopped("output", shape.complaint(error))


def _output_schema(output: object) -> Shape | None:
    if output is None:
        return None
    from callwright.agent.loop import OutputShape

    return OutputShape(output)


def _check_provider(given: Provider) -> Provider:
    if not hasattr(given, "stream"):
        raise UsageError(f"{given!r} is no model; give a name such as 'anthropic:claude-sonnet-5-5', or a provider")
    return given


def _check_store(given: SessionStore) -> SessionStore:
    if isinstance(given, (str, PathLike)):
        raise UsageError(f"sessions={str(given)!r} is no store; write sessions=SqliteStore({str(given)!r})")
    return given


def _make_toolset(given: Toolset | Iterable[Tool], executor: Executor | None) -> Toolset:
    if hasattr(given, "snapshot"):
        return cast(Toolset, given)
    tools = tuple(cast("Iterable[Any]", given))
    return executor.registry if executor is not None and not tools else Registry(*tools)
