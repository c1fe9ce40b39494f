"""Nothing raises and nothing hangs: whatever a tool, hook, policy or observer throws becomes an outcome."""

import asyncio
import gc
import sys
import weakref
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest
from tests.waiting import LONG_SECONDS

from callwright import (
    Allow,
    Answers,
    Approve,
    Completed,
    Deny,
    Effect,
    Executor,
    Failed,
    Interrupted,
    Policy,
    Question,
    Registry,
    ToolCall,
    ToolContext,
    ToolFailed,
    Transient,
    Turn,
    TurnCancelled,
    UsageError,
    WritePath,
    tool,
)
from callwright.core.access import Access, Confinement, Decision
from callwright.hooks import Hook, PendingCall, Rewrite
from callwright.policy import AllowEverything, Policies, Subject
from callwright.testing import FakeClock
from callwright.tool.base import Cancellation
from callwright.tool.function import FunctionTool

ran: list[str] = []


@pytest.fixture(autouse=True)
def _clean() -> None:
    ran.clear()


class Watching(Hook):
    """Sees calls and changes nothing."""

    async def before(self, pending: PendingCall) -> None:
        return None


class Unprintable(Exception):
    """Has no text."""

    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


class Odd(BaseException):
    """Neither an `Exception` nor one of Python's own."""


class NoMessage(ToolFailed):
    """A tool error that never called the base class."""

    def __init__(self) -> None:
        pass


THROWN: Sequence[Callable[[], BaseException]] = (
    Unprintable,
    Odd,
    SystemExit,
    GeneratorExit,
    NoMessage,
    RecursionError,
    MemoryError,
    StopAsyncIteration,
    asyncio.CancelledError,
    lambda: ToolFailed(5),  # type: ignore[arg-type] - on purpose
    lambda: ExceptionGroup("several", [Unprintable()]),
)
SEAMS = ("tool", "accesses", "before", "after", "policy", "observer", "ask")


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("seam", SEAMS)
@pytest.mark.parametrize("make", THROWN, ids=range(len(THROWN)))
async def test_whatever_is_thrown_becomes_an_outcome(make: Callable[[], BaseException], seam: str, count: int) -> None:
    def throw(at: str) -> None:
        if at == seam:
            raise make()

    def declare(arguments: Any) -> list[Access]:
        throw("accesses")
        return []

    @tool(effect=Effect.WRITE, accesses=declare)
    async def work() -> str:
        """Work."""
        throw("tool")
        return "done"

    class Throwing(Hook):
        def before(self, pending: PendingCall) -> None:
            throw("before")

        def after(self, pending: PendingCall, outcome: object) -> None:
            throw("after")

    class Judge(Policy):
        def judge(self, access: Access, subject: Subject) -> Decision | None:
            throw("policy")
            return None if seam == "ask" else Allow()

    async def ask(questions: Sequence[Question]) -> Answers:
        throw("ask")
        return Answers()

    executor = Executor(Registry(work), Judge(), hooks=[Throwing()], observe=lambda event: throw("observer"))
    calls = [ToolCall(str(number), "work") for number in range(count)]
    async with asyncio.timeout(LONG_SECONDS):
        outcomes = await executor.execute(calls, turn=Turn(ask=ask))
    assert len(outcomes) == count
    expected = Completed if seam == "observer" else Failed
    assert all(isinstance(outcome, expected) and isinstance(outcome.text, str) for outcome in outcomes)


on_start: list[Callable[[], None]] = []


@tool(effect=Effect.READ)
async def sleep(context: ToolContext) -> str:
    """Sleep for long."""
    if on_start:
        on_start.pop()()
    await asyncio.sleep(3600)
    return "slept"


@pytest.mark.parametrize("count", [1, 2])
async def test_asyncio_timeout_works_as_usual(count: int) -> None:
    executor = Executor(Registry(sleep), AllowEverything())
    calls = [ToolCall(str(number), "sleep") for number in range(count)]
    with pytest.raises(TimeoutError) as caught:
        async with asyncio.timeout(None) as limit:
            on_start[:] = [lambda: limit.reschedule(0)]  # when a call has begun, not after some time
            await executor.execute(calls)
    cancelled = TurnCancelled.find(caught.value)
    assert cancelled is not None and [outcome.call.id for outcome in cancelled.outcomes] == [call.id for call in calls]
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(executor.execute(calls), 0.01)


async def test_task_group_works_as_usual() -> None:
    executor = Executor(Registry(sleep), AllowEverything())

    async def fail() -> None:
        await asyncio.sleep(0.01)
        raise ValueError("a sibling failed")

    with pytest.raises(ExceptionGroup) as caught:
        async with asyncio.TaskGroup() as group:
            group.create_task(executor.run("sleep"))
            group.create_task(fail())
    assert [type(error) for error in caught.value.exceptions] == [ValueError]


async def _fail_in_group(*, wait: float = 0) -> str:
    async def fail() -> None:
        raise ValueError("inner reason")

    async with asyncio.TaskGroup() as group:
        group.create_task(fail())
        group.create_task(asyncio.sleep(LONG_SECONDS))
        await asyncio.sleep(wait)
    return "not reached"


@tool(effect=Effect.READ)
async def fails_in_group() -> str:
    """Fail in a task of a group, while the group is being left."""
    return await _fail_in_group()


@tool(effect=Effect.READ)
async def fails_in_block() -> str:
    """Fail in a task of a group, inside its block."""
    return await _fail_in_group(wait=LONG_SECONDS)


@tool(effect=Effect.READ)
async def fails_in_generator() -> AsyncIterator[str]:
    """Fail in a task of a group, in an async generator."""
    yield "progress"
    yield await _fail_in_group()


@tool(effect=Effect.READ)
async def recovers() -> str:
    """Handle what fails in a group."""
    try:
        return await _fail_in_group()
    except ExceptionGroup:
        return "recovered"


@pytest.mark.parametrize("hooks", [(), (Watching(),)], ids=["quick way", "with a hook"])
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize(
    "used", [fails_in_group, fails_in_block, fails_in_generator, recovers], ids=lambda used: used.name
)
async def test_failing_task_group_of_a_tool_is_its_own_failure(
    used: FunctionTool, count: int, hooks: tuple[Hook, ...]
) -> None:
    executor = Executor(Registry(used), hooks=hooks)
    task = asyncio.current_task()
    assert task is not None

    outcomes = await executor.execute([ToolCall(str(number), used.name, {}) for number in range(count)])

    assert {outcome.text for outcome in outcomes} == {"recovered" if used is recovers else "ValueError: inner reason"}
    assert task.cancelling() == 0  # asyncio before 3.13 leaves the request of the group behind


async def test_cancellation_while_a_task_group_is_left_still_ends_the_caller() -> None:
    cleaning, free = asyncio.Event(), asyncio.Event()

    async def clean_up() -> None:
        try:
            await asyncio.sleep(LONG_SECONDS)
        finally:
            cleaning.set()
            await free.wait()

    async def fail() -> None:
        raise ValueError("inner reason")

    @tool(effect=Effect.READ)
    async def slow_to_leave() -> str:
        """Leave a group slowly."""
        async with asyncio.TaskGroup() as group:
            group.create_task(clean_up())
            await asyncio.sleep(0)
            group.create_task(fail())
        return "not reached"

    running = asyncio.create_task(Executor(Registry(slow_to_leave)).run("slow_to_leave"))
    await cleaning.wait()
    running.cancel()
    await asyncio.sleep(0)
    free.set()

    with pytest.raises(asyncio.CancelledError) as caught:
        await running
    assert isinstance(caught.value.__cause__, TurnCancelled)


async def test_exceptions_in_a_group_are_named_and_a_single_one_counts_as_itself() -> None:
    @tool(effect=Effect.READ)
    async def fails_often(times: int) -> str:
        """Fail several times."""
        raise ExceptionGroup("all", [ExceptionGroup("inner", [ValueError(str(number)) for number in range(times)])])

    @tool(effect=Effect.READ)
    async def busy() -> str:
        """Fail for a short time."""
        raise ExceptionGroup("all", [Transient("busy")])

    executor = Executor(Registry(fails_often, busy), clock=FakeClock())
    assert (await executor.run("fails_often", {"times": 2})).text == "ValueError: 0; ValueError: 1"
    assert (await executor.run("fails_often", {"times": 9})).text.endswith("ValueError: 4; and 4 more")
    assert (await executor.run("busy")).text == "busy (tried 3 times)"

    class Careless(Hook):
        async def before(self, pending: PendingCall) -> None:
            raise ExceptionGroup("all", [KeyError("k")])

    refused = await Executor(Registry(busy), hooks=[Careless()]).run("busy")
    assert refused.text == "the hook Careless failed, so nothing ran: KeyError: 'k'"


async def test_failure_without_a_message_says_so() -> None:
    @tool(effect=Effect.READ)
    async def silent() -> str:
        """Fail without a word."""
        raise ToolFailed(" ")

    assert (await Executor(Registry(silent)).run("silent")).text == "failed; the tool gave no reason"


async def test_cancellation_ends_a_turn_that_waits_for_the_user() -> None:
    stop, asked = Cancellation(), asyncio.Event()

    @tool
    async def work() -> str:
        """Work."""
        ran.append("work")
        return "done"

    async def ask(questions: Sequence[Question]) -> Answers:
        asked.set()
        await asyncio.Event().wait()
        return Answers.approving(questions)

    running = asyncio.create_task(
        Executor(Registry(work)).execute([ToolCall("1", "work")], turn=Turn(ask=ask, cancellation=stop))
    )
    await asked.wait()
    stop.cancel()
    (outcome,) = await asyncio.wait_for(running, LONG_SECONDS)
    assert isinstance(outcome, Failed) and not ran


async def test_long_retry_after_fails_and_names_the_wait() -> None:
    @tool(effect=Effect.READ)
    async def busy() -> str:
        """Be busy."""
        ran.append("busy")
        raise Transient("busy", retry_after=86_400)

    outcome = await Executor(Registry(busy), AllowEverything(), clock=FakeClock()).run("busy")
    assert isinstance(outcome, Failed) and "86400 s" in outcome.text and ran == ["busy"]


@tool
async def pay(amount: int) -> str:
    """Pay."""
    ran.append(f"pay {amount}")
    return "paid"


async def test_outcome_shows_the_edited_arguments_and_who_edited() -> None:
    executor, call = Executor(Registry(pay)), ToolCall("1", "pay", {"amount": 500})
    (asked,) = await executor.execute([call])
    assert isinstance(asked, Interrupted)
    answers = Answers().approve(asked.questions[0], arguments={"amount": 5})
    (again,) = await executor.execute([call], answers=answers)
    if isinstance(again, Interrupted):  # the edit touches more than was shown, so it is asked about
        (again,) = await executor.execute([call], answers=Answers({**dict(answers), again.questions[0].id: Approve()}))
    assert isinstance(again, Completed) and ran == ["pay 5"]
    assert again.call.arguments == {"amount": 5} and "changed by the user" in again.text
    assert [repair.kind for repair in again.repairs] == ["edited"]


async def test_outcome_shows_what_a_hook_rewrote() -> None:
    class Cheaper(Hook):
        def before(self, pending: PendingCall) -> Rewrite:
            return Rewrite({"amount": 1})

    executor = Executor(Registry(pay), AllowEverything(), hooks=[Cheaper()])
    outcome = await executor.run("pay", {"amount": 500})
    assert isinstance(outcome, Completed) and outcome.call.arguments == {"amount": 1} and outcome.text == "paid"
    assert "Cheaper" in outcome.repairs[0].note


async def test_replaced_tool_is_asked_about_again() -> None:
    def make(log: list[str]) -> Any:
        @tool(name="work")
        async def work() -> str:
            """Work."""
            log.append("work")
            return "done"

        return work

    first, second = list[str](), list[str]()
    registry = Registry(make(first))
    executor, call = Executor(registry), ToolCall("1", "work")
    (asked,) = await executor.execute([call])
    assert isinstance(asked, Interrupted)
    registry.add(make(second))
    (again,) = await executor.execute([call], answers=Answers.approving(asked.questions))
    assert isinstance(again, Interrupted) and not first and not second


async def test_one_answer_serves_one_of_two_identical_calls() -> None:
    executor, call = Executor(Registry(pay)), ToolCall("1", "pay", {"amount": 5})
    outcomes = await executor.execute([call, call])
    assert isinstance(outcomes[0], Interrupted)
    again = await executor.execute([call, call], answers=Answers.approving(outcomes[0].questions))
    assert all(isinstance(outcome, Interrupted) for outcome in again) and not ran


async def test_concurrent_uses_of_an_answer_run_the_call_once() -> None:
    class Slow(Hook):
        async def before(self, pending: PendingCall) -> None:
            await asyncio.sleep(0.01)

    executor, call = Executor(Registry(pay), hooks=[Slow()]), ToolCall("1", "pay", {"amount": 5})
    (asked,) = await executor.execute([call])
    assert isinstance(asked, Interrupted)
    answers = Answers.approving(asked.questions)
    await asyncio.gather(*(executor.execute([call], answers=answers) for _ in range(6)))
    assert ran == ["pay 5"]


def test_policy_or_hook_that_overrides_nothing_is_a_usage_error() -> None:
    class Misnamed(Policy):
        def decide(self, access: Access, subject: Subject) -> Decision | None:
            return None

    class Unasked(Hook):
        def pre_tool(self, pending: PendingCall) -> None:
            return None

    with pytest.raises(UsageError, match="define judge"):
        Misnamed()
    with pytest.raises(UsageError, match="define before"):
        Unasked()


async def test_answer_claimed_by_two_turns_lets_one_call_run() -> None:
    @tool(effect=Effect.READ)
    async def look() -> str:
        """Look at something."""
        return "seen"

    class SlowLook(Hook):
        async def before(self, pending: PendingCall) -> None:
            await asyncio.sleep(0.02 if pending.call.name == "look" else 0)  # the other call has its answer by then

    executor = Executor(Registry(pay, look), hooks=[SlowLook()])
    calls = [ToolCall("1", "pay", {"amount": 5}), ToolCall("2", "look", {})]
    asked = (await executor.execute(calls))[0]
    assert isinstance(asked, Interrupted)
    answers = Answers.approving(asked.questions)
    turns = await asyncio.gather(*(executor.execute(calls, answers=answers) for _ in range(4)))
    assert ran == ["pay 5"]
    assert sum(isinstance(outcomes[0], Completed) for outcomes in turns) == 1


async def test_approval_of_arguments_that_are_denied_is_not_remembered() -> None:
    class Limited(Policy):
        def judge(self, access: Access, subject: Subject) -> Decision | None:
            amount = subject.arguments["amount"]
            return Deny("too much") if isinstance(amount, int) and amount > 100 else None

    executor, call = Executor(Registry(pay), Policies(Limited())), ToolCall("1", "pay", {"amount": 5})
    turn = Turn(session_id="s")
    (asked,) = await executor.execute([call], turn=turn)
    assert isinstance(asked, Interrupted)
    answers = Answers({asked.questions[0].id: Approve({"amount": 500}, "session")})
    (denied,) = await executor.execute([call], answers=answers, turn=turn)
    assert isinstance(denied, Failed) and "too much" in denied.text
    (again,) = await executor.execute([call], turn=turn)
    assert isinstance(again, Interrupted) and ran == []


async def test_allowed_paths_do_not_widen_what_commands_may_use() -> None:
    @tool(accesses=lambda arguments: [WritePath("/w/a")])
    async def build(context: ToolContext) -> str:
        """Build something."""
        return context.confinement.describe()

    outcome = await Executor(Registry(build), AllowEverything()).run("build")
    assert outcome.text == Confinement.READ_ONLY.describe()


@tool(effect=Effect.READ)
async def fail_late() -> str:
    """Fail after a wait."""
    await asyncio.sleep(0)
    raise ToolFailed("late")


@tool(effect=Effect.READ)
def fail_in_a_thread() -> str:
    """Fail in a thread."""
    raise ToolFailed("there")


_LINKS_FRAMES = pytest.mark.skipif(
    sys.version_info >= (3, 12),
    reason="an error in a coroutine that waited leads to all frames that awaited it: only the collector frees those",
)
FAILING = [
    [ToolCall("1", "fail_late", {})],
    pytest.param([ToolCall("1", "fail_in_a_thread", {})], marks=_LINKS_FRAMES),
    [ToolCall("1", "fail_late", {"x": 1})],
    [ToolCall("1", "none", {})],
    pytest.param([ToolCall("1", "fail_late", {}), ToolCall("2", "fail_in_a_thread", {})], marks=_LINKS_FRAMES),
]


@pytest.mark.parametrize("calls", FAILING)
async def test_failed_call_is_freed_without_the_garbage_collector(calls: list[ToolCall]) -> None:
    executor = Executor(Registry(fail_late, fail_in_a_thread))
    await executor.run("fail_late")  # only a later call may take the fast path
    gc.collect()
    gc.disable()
    try:
        outcomes = await executor.execute(calls)
        errors = [weakref.ref(outcome.error) for outcome in outcomes if isinstance(outcome, Failed)]
        del outcomes
        await asyncio.sleep(0)
        assert len(errors) == len(calls) and not any(error() for error in errors)
    finally:
        gc.enable()
