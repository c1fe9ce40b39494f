"""One call from name and arguments to its outcome."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from callwright import (
    Allow,
    Completed,
    Crashed,
    Denied,
    Deny,
    Effect,
    Executor,
    Failed,
    Interrupted,
    InvalidArguments,
    Policy,
    Registry,
    ToolCall,
    ToolFailed,
    Transient,
    Turn,
    UnknownTool,
    Unsafe,
    UsageError,
    tool,
)
from callwright.core.access import Access
from callwright.policy import AllowEverything, ByMode, Policies, Subject, Tier
from callwright.registry import withheld
from callwright.testing import FakeClock, Recorder
from callwright.tool.function import FunctionTool


@tool(effect=Effect.READ)
async def greet(name: str, times: int = 1) -> str:
    """Greet a person.

    Args:
        name: Whom to greet.
        times: How often.
    """
    return " ".join([f"hello {name}"] * times)


@tool(effect=Effect.READ)
def add(a: int, b: int) -> dict[str, int]:
    """Add two numbers."""
    return {"sum": a + b}


@tool(effect=Effect.READ)
async def explode(message: str) -> str:
    """Raise something unforeseen."""
    raise KeyError(message)


@tool(effect=Effect.READ)
async def leave() -> str:
    """Try to end the program."""
    raise SystemExit(3)


@tool(effect=Effect.READ)
async def refuse() -> str:
    """Fail in the tool's own words."""
    raise ToolFailed("the printer is out of paper")


async def test_call_with_text_arguments_completes() -> None:
    outcome = await Executor(Registry(greet)).run("greet", '{"name": "Ada", "times": 2}')
    assert isinstance(outcome, Completed)
    assert outcome.text == "hello Ada hello Ada"
    assert outcome.attempts == 1
    assert outcome.seconds > 0


async def test_structured_output_is_compact_json_and_data() -> None:
    outcome = await Executor(Registry(add)).run("add", {"a": 2, "b": 3})
    assert isinstance(outcome, Completed)
    assert outcome.text == '{"sum":5}'
    assert outcome.output.structured == {"sum": 5}


async def test_tool_instead_of_its_name_fails_with_what_to_pass() -> None:
    given: Any = greet
    outcome = await Executor(Registry(greet)).run(given, {})
    assert isinstance(outcome, Failed) and isinstance(outcome.error, UnknownTool)
    assert outcome.text == "unknown tool: <tool greet>; pass the name of the tool, as text"


async def test_unknown_tool_fails_with_the_nearest_name() -> None:
    outcome = await Executor(Registry(greet)).run("gret", {})
    assert isinstance(outcome, Failed)
    assert isinstance(outcome.error, UnknownTool)
    assert outcome.text == "unknown tool: gret; did you mean greet?"
    assert not outcome.started


async def test_invalid_arguments_do_not_reach_the_function() -> None:
    ran: list[str] = []

    @tool(effect=Effect.READ)
    async def touchy(path: str) -> str:
        """Record that it ran."""
        ran.append(path)
        return path

    outcome = await Executor(Registry(touchy)).run("touchy", '{"path": 5, "mode": 1}')
    assert isinstance(outcome, Failed)
    assert isinstance(outcome.error, InvalidArguments)
    assert "path" in outcome.text and "mode" in outcome.text
    assert ran == []
    assert not outcome.started


async def test_exception_becomes_an_error_with_its_cause() -> None:
    outcome = await Executor(Registry(explode)).run("explode", {"message": "lost"})
    assert isinstance(outcome, Failed)
    assert isinstance(outcome.error, Crashed)
    assert outcome.text == "KeyError: 'lost'"
    assert isinstance(outcome.error.__cause__, KeyError)
    assert outcome.started


@pytest.mark.parametrize(
    ("raised", "code", "text"),
    [
        (TimeoutError("the database"), "timed_out", "inside the tool timed out: the database"),
        (Unsafe("that leads out"), "safety", "that leads out"),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_raised_error_keeps_its_code(raised: Exception, code: str, text: str) -> None:
    @tool(effect=Effect.READ)
    async def trouble() -> str:
        """Raise what was prepared."""
        raise raised

    outcome = await Executor(Registry(trouble)).run("trouble")
    assert isinstance(outcome, Failed) and outcome.started
    assert outcome.error.code == code and text in outcome.text


async def test_tool_cannot_exit_the_program() -> None:
    outcome = await Executor(Registry(leave)).run("leave")
    assert isinstance(outcome, Failed)
    assert outcome.error.code == "crashed"


async def test_model_and_operator_read_different_texts() -> None:
    outcome = await Executor(Registry(refuse)).run("refuse")
    assert isinstance(outcome, Failed)
    assert outcome.text == "the printer is out of paper"
    assert str(outcome.error) == "tool failed: the printer is out of paper"


async def test_default_policy_allows_reads_and_asks_for_writes() -> None:
    @tool
    async def save(text: str) -> str:
        """Save a text."""
        return text

    executor = Executor(Registry(save, greet))
    assert isinstance(await executor.run("greet", {"name": "Ada"}), Completed)
    assert isinstance(await executor.run("save", {"text": "x"}), Interrupted)


async def test_batch_outcomes_are_in_call_order() -> None:
    executor = Executor(Registry(greet, add, explode), AllowEverything())
    calls = [
        ToolCall("1", "greet", {"name": "a"}),
        ToolCall("2", "missing", {}),
        ToolCall("3", "explode", {"message": "x"}),
        ToolCall("4", "add", '{"a": 1}'),
        ToolCall("5", "add", '{"a": 1, "b": 2}'),
    ]
    outcomes = await executor.execute(calls)
    assert [outcome.call.id for outcome in outcomes] == ["1", "2", "3", "4", "5"]
    assert [type(outcome).__name__ for outcome in outcomes] == ["Completed", "Failed", "Failed", "Failed", "Completed"]


async def test_empty_batch_has_no_outcomes() -> None:
    assert await Executor(Registry()).execute([]) == []


async def test_failing_call_does_not_cancel_the_others() -> None:
    done = asyncio.Event()

    @tool(effect=Effect.READ)
    async def slow() -> str:
        """Wait until the sibling has failed."""
        await done.wait()
        return "finished"

    @tool(effect=Effect.READ)
    async def fails() -> str:
        """Fail first."""
        done.set()
        raise RuntimeError("first")

    slowly, failed = await Executor(Registry(slow, fails)).execute([ToolCall("a", "slow"), ToolCall("b", "fails")])
    assert isinstance(slowly, Completed) and slowly.text == "finished"
    assert isinstance(failed, Failed)


async def test_sync_tools_run_in_named_threads() -> None:
    @tool(effect=Effect.READ)
    def where() -> str:
        """Name the thread."""
        return threading.current_thread().name

    outcome = await Executor(Registry(where)).run("where")
    assert isinstance(outcome, Completed)
    assert outcome.text.startswith("callwright-tool-")


def test_run_sync_blocks_until_the_call_is_done() -> None:
    executor = Executor(Registry(greet))
    for _ in range(2):  # each makes a loop of its own: nothing may be kept from the one before
        outcome = executor.run_sync("greet", {"name": "Ada"})
        assert isinstance(outcome, Completed)


async def test_run_sync_in_a_running_loop_raises() -> None:
    with pytest.raises(UsageError, match=r"await executor\.run"):
        Executor(Registry(greet)).run_sync("greet", {"name": "Ada"})


async def test_observers_receive_every_event_once_in_order() -> None:
    recorder = Recorder()
    executor = Executor(Registry(greet, explode), observe=recorder)
    await executor.run("greet", {"name": "Ada"})
    assert recorder.names == ["BatchBegan", "CallBegan", "CallEnded"]
    recorder.events.clear()
    await executor.run("missing")
    assert recorder.names == ["BatchBegan", "CallEnded"]


async def test_turn_observer_receives_every_call() -> None:
    executor = Executor(Registry(greet))
    for _ in range(3):  # the tool is known and allowed from the second call on
        recorder = Recorder()
        await executor.run("greet", {"name": "Ada"}, turn=Turn(observe=recorder))
        assert recorder.names == ["BatchBegan", "CallBegan", "CallEnded"]
        await executor.run("greet", {"name": "Ada"})


async def test_failing_observer_is_logged_and_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def broken(event: object) -> None:
        raise ValueError("observer")

    recorder = Recorder()
    outcome = await Executor(Registry(greet), observe=[broken, recorder]).run("greet", {"name": "Ada"})
    assert isinstance(outcome, Completed)
    assert recorder.names[-1] == "CallEnded"
    assert "an observer failed on CallEnded" in caplog.text


async def test_failing_turn_observer_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def broken(event: object) -> None:
        raise ValueError("observer")

    calls = [ToolCall("1", "greet", {"name": "Ada"}), ToolCall("2", "greet", {"name": "Bob"})]
    outcomes = await Executor(Registry(greet)).execute(calls, turn=Turn(observe=broken))
    assert [type(outcome) for outcome in outcomes] == [Completed, Completed]
    assert "an observer failed on CallEnded" in caplog.text


def test_wrong_toolset_or_policy_raises() -> None:
    wrong: Any
    for wrong in ([greet], greet):
        with pytest.raises(UsageError, match=r"write Executor\(Registry\(\*tools\)\)"):
            Executor(wrong)
    for wrong in ("auto", [ByMode("auto")], AllowEverything, Allow):
        with pytest.raises(UsageError, match="expected a Policy"):
            Executor(Registry(greet), policies=wrong)


async def test_execute_with_a_single_call_raises() -> None:
    wrong: Any = ToolCall("1", "greet", {"name": "Ada"})
    with pytest.raises(UsageError, match=r"write execute\(\[ToolCall"):
        await Executor(Registry(greet)).execute(wrong)


@pytest.mark.parametrize("returned", [True, "deny", Deny, object()], ids=["true", "text", "class", "object"])
async def test_wrong_policy_decision_allows_nothing(returned: object) -> None:
    """Also where the policy is the only one, and where another one would allow."""

    class Confused(Policy):
        def judge(self, access: Access, subject: Subject) -> Any:
            return returned

    class ConfusedMode(Confused):
        tier = Tier.MODE

    class ConfusedGuard(Confused):
        tier = Tier.GUARD

    for policies in (Policies(ConfusedMode()), Policies(Confused(), AllowEverything()), ConfusedGuard()):
        outcome = await Executor(Registry(greet), policies).run("greet", {"name": "Ada"})
        assert isinstance(outcome, Failed) and not outcome.started
        assert "a policy returned" in outcome.text


async def test_shared_error_object_is_not_changed() -> None:
    shared = Transient("busy")

    @tool(effect=Effect.READ)
    async def crowded() -> str:
        """Raise what was made once."""
        raise shared

    executor = Executor(Registry(crowded), clock=FakeClock())
    outcomes = [await executor.run("crowded"), await executor.run("crowded")]
    texts = [outcome.text for outcome in outcomes if isinstance(outcome, Failed)]
    assert texts == ["busy (tried 3 times)"] * 2 and shared.message == "busy"


async def test_progress_reaches_observers_before_the_end() -> None:
    @tool(effect=Effect.READ)
    async def count_async() -> AsyncIterator[int]:
        """Count with progress."""
        for number in range(3):
            yield number

    @tool(effect=Effect.READ)
    def count_sync() -> Iterator[int]:
        """Count with progress, in a thread."""
        yield from range(3)

    for counting in (count_async, count_sync):
        recorder = Recorder()
        outcome = await Executor(Registry(counting), observe=recorder).run(counting.name)
        assert isinstance(outcome, Completed) and outcome.text == "2"
        assert recorder.names == ["BatchBegan", "CallBegan", "CallProgressed", "CallProgressed", "CallEnded"]


async def test_removed_tool_can_be_called_from_its_snapshot() -> None:
    from callwright import Turn

    registry = Registry(greet)
    executor = Executor(registry)
    turn = Turn(catalog=registry.snapshot())
    registry.remove("greet")
    assert isinstance(await executor.run("greet", {"name": "Ada"}, turn=turn), Completed)
    assert isinstance(await executor.run("greet", {"name": "Ada"}), Failed)


async def test_turn_calls_the_tool_from_its_catalog() -> None:
    def saying(word: str) -> FunctionTool:
        @tool(name="say", effect=Effect.READ)
        async def say() -> str:
            """Say a word."""
            return word

        return say

    registry = Registry(saying("old"))
    executor = Executor(registry)
    turn = Turn(catalog=registry.snapshot())
    registry.add(saying("new"))
    for _ in range(3):  # the tool is known and allowed from the second call on
        now, then = await executor.run("say"), await executor.run("say", turn=turn)
        assert isinstance(now, Completed) and now.text == "new"
        assert isinstance(then, Completed) and then.text == "old"


async def test_tools_share_state_by_type() -> None:
    from callwright import ToolContext

    class Counter:
        def __init__(self) -> None:
            self.value = 0

    @tool(effect=Effect.READ)
    async def count(context: ToolContext) -> int:
        """Count calls."""
        counter = context.state.get(Counter)
        counter.value += 1
        return counter.value

    executor = Executor(Registry(count))
    await executor.run("count")
    outcome = await executor.run("count")
    assert isinstance(outcome, Completed) and outcome.text == "2"


async def test_cancelled_awaitable_fails_only_its_call() -> None:
    @tool(effect=Effect.READ)
    async def unlucky() -> str:
        """Await something that was cancelled."""
        future = asyncio.get_running_loop().create_future()
        future.cancel()
        return await future

    executor = Executor(Registry(unlucky))
    for _ in range(2):  # the long way first, then the short one
        outcome = await executor.run("unlucky")
        assert isinstance(outcome, Failed) and outcome.error.code == "crashed"
    both = await executor.execute([ToolCall("1", "unlucky"), ToolCall("2", "unlucky")])
    assert [type(outcome) for outcome in both] == [Failed, Failed]


async def test_unencodable_text_is_repaired() -> None:
    @tool(effect=Effect.READ)
    async def listing() -> str:
        """Name a file that cannot be decoded."""
        return "caf\udce9 é"

    executor = Executor(Registry(listing))
    for _ in range(2):
        outcome = await executor.run("listing")
        assert isinstance(outcome, Completed) and outcome.text == "caf? é"


async def test_long_unknown_name_is_cut_in_the_message() -> None:
    outcome = await Executor(Registry(greet)).run("x" * 100_000)
    assert isinstance(outcome, Failed) and len(outcome.text) < 300


async def test_withheld_tool_is_denied_and_not_unknown() -> None:
    source = withheld(Registry(greet), lambda spec: "greetings are switched off" if spec.name == "greet" else "")
    outcome = await Executor(source, AllowEverything()).run("greet", {"name": "Ada"})
    assert isinstance(outcome, Failed) and isinstance(outcome.error, Denied)
    assert outcome.text == "greetings are switched off"


@pytest.mark.parametrize("name", ["functions.greet-all", "GREET-ALL", "greetAll"])
async def test_call_of_a_withheld_tool_is_not_one_of_a_similar_name(name: str) -> None:
    @tool(name="greet-all")
    async def withheld_one(name: str) -> str:
        """Greet everybody."""
        return f"hello all, {name}"

    @tool(name="greet_all")
    async def similar(name: str) -> str:
        """Greet everybody else."""
        return f"hello others, {name}"

    source = withheld(Registry(withheld_one, similar), lambda spec: "off" if spec.name == "greet-all" else "")
    outcome = await Executor(source, AllowEverything()).run(name, {"name": "Ada"})
    assert isinstance(outcome, Failed)


async def test_catalog_with_the_reader_keeps_the_reasons_of_withheld_tools() -> None:
    source = withheld(Registry(greet, add), lambda spec: "switched off" if spec.name == "greet" else "")
    executor = Executor(source, AllowEverything())
    turn = Turn(catalog=executor.with_reader(source.snapshot()))
    (outcome,) = await executor.execute([ToolCall("1", "greet", {"name": "Ada"})], turn=turn)
    assert isinstance(outcome, Failed) and isinstance(outcome.error, Denied) and outcome.text == "switched off"


class Switchable(Policy):
    """A mode that another thread may switch at any moment: here, when it is asked for the n-th time from now on."""

    tier = Tier.MODE

    def __init__(self) -> None:
        self.is_open = True
        self.switches_after = 0

    def _count(self) -> None:
        self.switches_after -= 1
        if self.switches_after == 0:
            self.is_open = not self.is_open

    @property
    def cache_key(self) -> str | None:
        key = str(self.is_open)
        self._count()
        return key

    def judge(self, access: Access, subject: Subject) -> Allow | Deny:
        decision = Allow() if self.is_open else Deny("closed")
        self._count()
        return decision


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("is_open", [True, False])
@pytest.mark.parametrize("after", range(1, 8))
async def test_mode_switched_during_a_decision_holds_for_the_next_call(known: bool, is_open: bool, after: int) -> None:
    @tool(effect=Effect.WRITE)
    async def change() -> str:
        """Change something."""
        return "changed"

    policy = Switchable()
    executor = Executor(Registry(change), policy)
    if known:
        await executor.run("change")
    policy.is_open, policy.switches_after = is_open, after
    await executor.run("change")
    policy.is_open, policy.switches_after = False, 0
    for _ in range(2):
        assert isinstance(await executor.run("change"), Failed)
