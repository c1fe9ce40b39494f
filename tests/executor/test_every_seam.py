"""Throws and returns everything Python can at every seam: one outcome per call, never a hang."""

import asyncio
import types
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import suppress
from typing import Any, cast

import pytest
from tests.waiting import LONG_SECONDS

from callwright import (
    Agent,
    Allow,
    Answers,
    ApprovalRequired,
    AuthRequired,
    CallwrightError,
    Effect,
    Executor,
    InvalidArguments,
    Limits,
    Outcome,
    Policy,
    Question,
    Registry,
    ToolCall,
    ToolContext,
    ToolFailed,
    ToolSpec,
    Transient,
    Turn,
    UsageError,
    tool,
)
from callwright.agent import Done, Paused, Requests, Stopped
from callwright.core.access import Access, Decision
from callwright.core.calls import Completed, Failed, Interrupted
from callwright.core.messages import AssistantMessage
from callwright.core.spec import Annotations
from callwright.hooks import Hook, PendingCall
from callwright.policy import Subject
from callwright.providers.base import MessageDone, ModelRequest, ProviderError
from callwright.sessions import SessionError
from callwright.sessions.memory import MemoryStore
from callwright.testing import FakeClock, ScriptedProvider


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


class WrongText(Exception):
    def __str__(self) -> str:
        return cast(str, 5)


class Odd(BaseException):
    pass


class NoMessage(ToolFailed):
    def __init__(self) -> None:
        pass


class Slippery:
    """Fails whatever is done with it."""

    def __repr__(self) -> str:
        raise Odd

    __str__ = __bool__ = __iter__ = __len__ = __hash__ = __repr__  # type: ignore[assignment]

    def __getattr__(self, name: str) -> Any:
        raise Odd


def throw(make: Callable[[], BaseException]) -> Callable[[], Any]:
    def behave() -> Any:
        raise make()

    return behave


def cyclic() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


async def _fail_later() -> Any:
    await asyncio.sleep(0)
    raise Unprintable


async def _await_cancelled() -> Any:
    future = asyncio.get_running_loop().create_future()
    future.cancel()
    return await future


async def _cancel_itself_and_go_on() -> Any:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(0)
    task.uncancel()
    return "went on"


_made: list[Coroutine[Any, Any, Any]] = []


def _note(made: Coroutine[Any, Any, Any]) -> Coroutine[Any, Any, Any]:
    _made.append(made)
    return made


@pytest.fixture(autouse=True)
def _close_made() -> Iterator[None]:
    yield
    while _made:  # some seams do not await, and Python would report it
        _made.pop().close()


async def _yield_stream() -> AsyncIterator[int]:
    yield 1
    raise Odd


def _generate() -> Any:
    yield 1
    raise Odd


THROWN: tuple[Callable[[], BaseException], ...] = (
    Unprintable,
    WrongText,
    Odd,
    NoMessage,
    SystemExit,
    GeneratorExit,
    StopIteration,
    StopAsyncIteration,
    RecursionError,
    MemoryError,
    TimeoutError,
    ConnectionResetError,
    NotImplementedError,
    asyncio.CancelledError,
    asyncio.InvalidStateError,
    lambda: KeyError(Unprintable()),
    lambda: ToolFailed(5),  # type: ignore[arg-type]
    lambda: ToolFailed("\udc80"),
    lambda: Transient("busy"),
    lambda: UsageError("wrong"),
    lambda: InvalidArguments("wrong"),
    lambda: ApprovalRequired("why"),
    lambda: AuthRequired("why"),
    lambda: ProviderError("down", fault="unavailable"),
    lambda: SessionError("gone"),
    lambda: ExceptionGroup("several", [Unprintable()]),
    lambda: BaseExceptionGroup("several", [Odd()]),
)
RETURNED: tuple[Callable[[], Any], ...] = (
    lambda: None,
    lambda: 5,
    lambda: float("nan"),
    lambda: b"\xff",
    lambda: "\udc80",
    lambda: ...,
    lambda: object,
    Slippery,
    Unprintable,
    cyclic,
    lambda: {b"key": {1, 2}},
    _generate,
    _yield_stream,
    lambda: _note(_fail_later()),
    lambda: _note(_await_cancelled()),
    lambda: _note(_cancel_itself_and_go_on()),
)
BEHAVIOURS = tuple(throw(make) for make in THROWN) + RETURNED
Behave = Callable[[], Any]


class Seams:
    """An executor with one seam that misbehaves."""

    def __init__(self, seam: str, behave: Behave) -> None:
        self.seam = seam
        self.behave = behave
        self.executor = Executor(
            Registry(self._make_tool(), self._make_sync(), _Binding(self)),
            self._make_policy(),
            hooks=[self._make_hook()],
            observe=self._observe,
            clock=FakeClock(),
        )

    def at(self, seam: str, otherwise: Any = None) -> Any:
        return self.behave() if seam == self.seam else otherwise

    @property
    def tool_name(self) -> str:
        return {"sync tool": "sync", "bind": "binding"}.get(self.seam, "work")

    def _make_tool(self) -> Any:
        @tool(effect=Effect.WRITE, accesses=lambda arguments: self.at("accesses", ()), limits=Limits(seconds=20))
        async def work(context: ToolContext) -> Any:
            """Work."""
            value = self.at("tool", "done")
            return await value if asyncio.iscoroutine(value) else value

        return work

    def _make_sync(self) -> Any:
        @tool(effect=Effect.READ, limits=Limits(seconds=20))
        def sync() -> Any:
            """Work in a thread."""
            return self.at("sync tool", "done")

        return sync

    def _make_hook(self) -> Hook:
        seams = self

        class Misbehaving(Hook):
            seconds = 20

            def before(self, pending: PendingCall) -> Any:
                return seams.at("before")

            def after(self, pending: PendingCall, outcome: Outcome) -> Any:
                return seams.at("after")

        return Misbehaving()

    def _make_policy(self) -> Policy:
        seams = self

        class Judge(Policy):
            def judge(self, access: Access, subject: Subject) -> Decision | None:
                return cast("Decision | None", seams.at("policy", None if seams.seam == "ask" else Allow()))

        return Judge()

    def _observe(self, event: object) -> None:
        self.at("observer")

    def ask(self, questions: Sequence[Question]) -> Any:
        return self.at("ask", _decline())


class _Binding:
    """A tool whose `bind` misbehaves."""

    spec = ToolSpec("binding", "Bind.", {"type": "object"}, annotations=Annotations(Effect.READ))

    def __init__(self, seams: Seams) -> None:
        self._seams = seams

    def bind(self, arguments: object) -> Any:
        return self._seams.at("bind")


async def _decline() -> Answers:
    return Answers()


class Provider:
    """A provider that misbehaves at one point of its first answer."""

    model = "scripted"

    def __init__(self, behave: Behave, place: str) -> None:
        self._behave = behave
        self._place = place

    def stream(self, request: ModelRequest) -> Any:
        return self._behave() if self._place == "stream" else self._events()

    async def _events(self) -> AsyncIterator[Any]:
        value = self._behave()
        yield await value if asyncio.iscoroutine(value) else value
        yield MessageDone(cast(AssistantMessage, value))


class Store(MemoryStore):
    """A store whose records cannot be written."""

    def __init__(self, behave: Behave) -> None:
        super().__init__()
        self._behave = behave

    async def hold(self, session_id: str, *, owner: str = "") -> Any:
        hold = await super().hold(session_id, owner=owner)
        held: Any = types.SimpleNamespace(
            session_id=hold.session_id, records=hold.records, note=hold.note, release=hold.release
        )

        async def append(*records: Any) -> None:
            value = self._behave()
            if asyncio.iscoroutine(value):
                await value

        held.append = append
        return held


async def bounded(running: Any) -> Any:
    """Await without a way to swallow the limit; fail instead of hanging."""
    task = asyncio.ensure_future(running)
    done, _ = await asyncio.wait([task], timeout=LONG_SECONDS)
    assert done, "it hangs"
    assert not task.cancelled(), "it was cancelled from inside"
    return task.result()


SEAMS = ("tool", "sync tool", "bind", "accesses", "before", "after", "policy", "ask", "observer")
WARNINGS = pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::pytest.PytestUnraisableExceptionWarning")


@WARNINGS
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("seam", SEAMS)
async def test_every_call_has_one_outcome(seam: str, count: int) -> None:
    for behave in BEHAVIOURS:
        seams = Seams(seam, behave)
        calls = [ToolCall(str(number), seams.tool_name) for number in range(count)]
        outcomes = await bounded(seams.executor.execute(calls, turn=Turn(ask=seams.ask)))
        assert [outcome.call.id for outcome in outcomes] == [call.id for call in calls]
        for outcome in outcomes:
            assert isinstance(outcome, (Completed, Failed, Interrupted)) and isinstance(outcome.text, str)


@WARNINGS
@pytest.mark.parametrize("count", [pytest.param(1, marks=pytest.mark.slow), 3])
@pytest.mark.parametrize("seam", SEAMS)
async def test_agent_always_returns_a_result(seam: str, count: int) -> None:
    for behave in BEHAVIOURS:
        seams = Seams(seam, behave)
        calls = [ToolCall(str(number), seams.tool_name) for number in range(count)]
        agent = Agent(ScriptedProvider(calls, "done"), executor=seams.executor, ask=seams.ask, sessions=MemoryStore())
        result = await bounded(agent.run("go", session="s"))
        assert isinstance(result, (Done, Paused, Stopped))
        await agent.messages("s")


@WARNINGS
@pytest.mark.parametrize("place", ["stream", "event"])
async def test_provider_failures_are_part_of_the_result(place: str) -> None:
    for behave in BEHAVIOURS:
        agent = Agent(Provider(behave, place), requests=Requests(clock=FakeClock()))
        try:
            result = await bounded(agent.run("go"))
        except UsageError:  # the programmer's mistake
            continue
        assert isinstance(result, Stopped) and result.kind in ("provider", "empty")


@WARNINGS
async def test_store_failures_are_session_errors() -> None:
    for behave in BEHAVIOURS:
        agent = Agent(ScriptedProvider("done"), sessions=Store(behave))
        with suppress(CallwrightError):
            assert isinstance(await bounded(agent.run("go", session="s")), (Done, Stopped))


@pytest.mark.parametrize("seam", ["tool", "bind", "accesses", "before", "after", "policy", "observer"])
async def test_keyboard_interrupt_passes(seam: str) -> None:
    for count in (1, 2):
        seams = Seams(seam, throw(KeyboardInterrupt))
        calls = [ToolCall(str(number), seams.tool_name) for number in range(count)]
        if count > 1 and seam in ("tool", "after", "observer"):
            continue  # raised in a task of its own, asyncio ends the event loop with it
        with pytest.raises(KeyboardInterrupt):
            await seams.executor.execute(calls, turn=Turn(ask=seams.ask))
