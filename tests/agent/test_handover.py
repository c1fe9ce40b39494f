"""Several processes carry out one run: a prompt is heard once, turns are handed over, a stuck holder is fenced off."""

import asyncio
import gc
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from callwright import (
    Agent,
    Annotations,
    Answers,
    Done,
    Effect,
    Executor,
    Paused,
    Registry,
    RunLimits,
    SqliteStore,
    Stopped,
    ToolCall,
    ToolContext,
    tool,
)
from callwright.agent import Handover
from callwright.core.calls import Completed, Failed, Outcome
from callwright.core.errors import UsageError
from callwright.core.events import BatchBegan
from callwright.core.messages import AssistantMessage, Message, ToolMessage, UserMessage
from callwright.policy import AllowEverything, Policies
from callwright.providers.base import ModelEvent, ModelRequest
from callwright.sessions import MemoryStore, SessionBusy, SessionError, SessionStore, name_attempt
from callwright.sessions.records import Said, find_open_questions
from callwright.testing import ScriptedProvider
from callwright.testing.fakes import Line
from callwright.tool.base import Cancellation, Tool

_ALLOWED = Policies(AllowEverything())


@tool
async def count(n: int) -> str:
    """Count."""
    return str(n)


def make_agent(store: SessionStore, *lines: Line, turns: int = 50) -> Agent:
    executor = Executor(Registry(count), Policies(AllowEverything()))
    return Agent(ScriptedProvider(*lines), executor=executor, sessions=store, limits=RunLimits(turns=turns))


def call(n: int) -> ToolCall:
    return ToolCall(f"c{n}", "count", {"n": n})


async def count_prompts(store: SessionStore, session: str) -> int:
    records = await store.read(session)
    return sum(isinstance(record, Said) and isinstance(record.message, UserMessage) for record in records)


async def test_prompt_with_key_is_heard_once(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path / "s.db") as store:
        first = await make_agent(store, "hello").run("hi", session="s", key="k")
        again = await make_agent(store).run("hi", session="s", key="k")  # its model would fail if it were asked
        assert isinstance(first, Done) and isinstance(again, Done) and again.text == "hello"
        assert await count_prompts(store, "s") == 1
        await make_agent(store, "more").run("hi", session="s", key="k2")
        assert await count_prompts(store, "s") == 2
        with pytest.raises(SessionError, match="another prompt"):
            await make_agent(store).run("hi", session="s", key="k")


async def test_prompts_without_key_are_all_heard() -> None:
    store = MemoryStore()
    for _ in range(2):
        await make_agent(store, "hello").run("hi", session="s")
    assert await count_prompts(store, "s") == 2


async def test_turns_are_handed_over(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path / "s.db") as store:
        stopped = await make_agent(store, call(1), call(2)).run("go", session="s", handover=Handover(2))
        assert isinstance(stopped, Stopped) and stopped.kind == "handover" and stopped.turns == 2
        stopped = await make_agent(store, call(3)).resume("s", handover=Handover(1))
        assert isinstance(stopped, Stopped) and stopped.kind == "handover"
        done = await make_agent(store, "three").resume("s", handover=Handover(1))
        assert isinstance(done, Done) and done.text == "three"


async def test_handover_keeps_the_limits_of_the_run(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path / "s.db") as store:
        await make_agent(store, call(1), call(2), turns=3).run("go", session="s", handover=Handover(2))
        result = await make_agent(store, call(3), call(4), turns=3).resume("s", handover=Handover(2))
        assert isinstance(result, Stopped) and result.kind == "turns"


async def test_requested_handover_ends_the_running_turn(tmp_path: Path) -> None:
    handover = Handover()

    @tool
    async def slow() -> str:
        """Take a moment."""
        handover.request()
        await asyncio.sleep(0)
        return "kept"

    async with SqliteStore(tmp_path / "s.db") as store:
        executor = Executor(Registry(slow), Policies(AllowEverything()))
        agent = Agent(ScriptedProvider(ToolCall("c1", "slow", {}), "never"), executor=executor, sessions=store)
        result = await agent.run("go", session="s", handover=handover)
        assert isinstance(result, Stopped) and result.kind == "handover"
        assert "kept" in str((await store.read("s"))[-1])


def test_handover_needs_a_turn() -> None:
    with pytest.raises(UsageError, match="at least 1"):
        Handover(0)


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_owner_takes_over_from_a_stuck_run(kind: str, tmp_path: Path) -> None:
    store: SessionStore = MemoryStore() if kind == "memory" else SqliteStore(tmp_path / "s.db")
    started, go_on = asyncio.Event(), asyncio.Event()

    @tool(annotations=Annotations(Effect.WRITE, idempotent=True))
    async def stuck() -> str:
        """Wait in the first run only."""
        if not started.is_set():
            started.set()
            await go_on.wait()
        return "done"

    def make() -> Agent:
        executor = Executor(Registry(stuck), Policies(AllowEverything()))
        return Agent(ScriptedProvider(ToolCall("c1", "stuck", {}), "end"), executor=executor, sessions=store)

    zombie = asyncio.create_task(make().run("go", session="s", handover=Handover(owner="w")))
    await started.wait()
    with pytest.raises(SessionBusy):
        await make().run("go", session="s", handover=Handover(owner="other"))
    result = await make().resume("s", handover=Handover(owner="w")) if kind == "sqlite" else None
    if kind == "memory":  # nothing of the open turn is on record there
        await (await store.hold("s", owner="w")).release()
    go_on.set()
    with pytest.raises(SessionBusy, match="taken over"):
        await zombie
    assert result is None or isinstance(result, Done)
    if isinstance(store, SqliteStore):
        store.close()


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_earlier_attempt_never_takes_over_from_a_later_one(kind: str, tmp_path: Path) -> None:
    store: SessionStore = MemoryStore() if kind == "memory" else SqliteStore(tmp_path / "s.db")
    await store.hold("s", owner=name_attempt("w", 9))
    later = await store.hold("s", owner=name_attempt("w", 10))
    for owner in (name_attempt("w", 9), "w", "w attempt", "", name_attempt("other", 11)):
        with pytest.raises(SessionBusy):
            await store.hold("s", owner=owner)
    await later.append(Said(UserMessage("still mine")))
    await (await store.hold("s", owner=name_attempt("w", 10))).release()
    if isinstance(store, SqliteStore):
        store.close()


async def test_inner_agent_belongs_to_the_owner_of_the_outer_one() -> None:
    owners: dict[str, str] = {}

    class Store(MemoryStore):
        async def hold(self, session_id: str, *, owner: str = ""):
            owners[session_id] = owner
            return await super().hold(session_id, owner=owner)

    store = Store()
    inner = Agent(ScriptedProvider("inner answer"), sessions=store)
    outer = Agent(
        ScriptedProvider(ToolCall("c1", "helper", {"prompt": "help"}), "end"),
        [inner.as_tool("helper", "Helps.")],
        sessions=store,
    )
    assert isinstance(await outer.run("go", session="s", handover=Handover(owner="w")), Done)
    assert len(owners) == 2 and set(owners.values()) == {"w"}


class SlowModel(ScriptedProvider):
    """A model that answers when it is told to."""

    def __init__(self, *script: Line) -> None:
        super().__init__(*script)
        self.asked, self.go_on = asyncio.Event(), asyncio.Event()

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        self.asked.set()
        await self.go_on.wait()
        async for event in super().stream(request):
            yield event


@pytest.mark.parametrize("first", ["look", "note"])
async def test_fenced_run_starts_no_call_of_a_turn_that_is_not_on_record(tmp_path: Path, first: str) -> None:
    keys: list[str] = []

    @tool(annotations=Annotations(Effect.WRITE, idempotent=True))
    async def keyed(context: ToolContext) -> str:
        """Do something once per key."""
        keys.append(context.idempotency_key)
        return "done"

    look = tool(name="look", effect=Effect.READ)(count.function)
    executor = Executor(Registry(keyed, look, tool(name="note")(count.function)), _ALLOWED)
    calls = [ToolCall("a", first, {"n": 1}), ToolCall("b", "keyed", {})]
    async with SqliteStore(tmp_path / "s.db") as store:
        model = SlowModel(calls, "end")
        stuck = Agent(model, executor=executor, sessions=store)
        zombie = asyncio.create_task(stuck.run("go", session="s", handover=Handover(owner=name_attempt("w", 1))))
        await model.asked.wait()
        agent = Agent(ScriptedProvider(calls, "end"), executor=executor, sessions=store)
        assert isinstance(await agent.resume("s", handover=Handover(owner=name_attempt("w", 2))), Done)
        model.go_on.set()
        with pytest.raises(SessionBusy, match="taken over"):
            await zombie
        assert len(keys) == 1  # no service could tell that a second key meant the same


@tool
async def change(n: int) -> str:
    """Change something; asks first."""
    return f"changed {n}"


async def test_partly_answered_session_still_waits(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path / "s.db") as store:
        calls = [ToolCall(f"c{n}", "change", {"n": n}) for n in (1, 2)]
        agent = Agent(ScriptedProvider(calls, "end"), [change], sessions=store)
        paused = await agent.run("go", session="s")
        assert isinstance(paused, Paused)
        assert [entry.session_id for entry in await store.list(waiting=True)] == ["s"]
        again = await agent.resume("s", Answers().approve(paused.questions[0]))
        assert isinstance(again, Paused)
        records = await store.read("s")
        (left,) = find_open_questions(records)
        assert left.matches(paused.questions[1].id)
        assert [entry.session_id for entry in await store.list(waiting=True)] == ["s"]
        assert isinstance(await agent.resume("s", Answers().approve(paused.questions[1])), Done)
        assert not await store.list(waiting=True)


class Works:
    """Tools that note that they began, and last until they are cancelled or told to go on."""

    def __init__(self) -> None:
        self.began: asyncio.Queue[str] = asyncio.Queue()
        self._go_on = asyncio.Event()
        self.registry = Registry(
            self._make("keyed", idempotent=True),
            self._make("note"),
            tool(name="count", effect=Effect.READ)(count.function),
        )

    def _make(self, name: str, *, idempotent: bool = False) -> Tool:
        async def work() -> str:
            """Work."""
            await self.began.put(name)
            await self._go_on.wait()
            return "done"

        return tool(name=name, annotations=Annotations(effect=Effect.WRITE, idempotent=idempotent))(work)

    async def leave(self, agent: Agent) -> None:
        """Run the agent until a tool has begun; then give the run up and cancel it."""
        handover = Handover(owner=name_attempt("w", 1))
        running = asyncio.ensure_future(agent.run("go", session="s", handover=handover))
        await self.began.get()
        handover.give_up()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        self._go_on.set()


def find_ends(messages: Sequence[Message]) -> list[Outcome]:
    return [outcome for message in messages if isinstance(message, ToolMessage) for outcome in message.outcomes]


@pytest.mark.parametrize("names", [("keyed",), ("note",), ("keyed", "note"), ("note", "keyed")])
async def test_given_up_run_is_continued_as_after_a_crash(tmp_path: Path, names: tuple[str, ...]) -> None:
    works = Works()
    calls = AssistantMessage(tuple(ToolCall(name, name, {}) for name in names))
    async with SqliteStore(tmp_path / "s.db") as store:
        agent = Agent(ScriptedProvider(calls, "ended"), executor=Executor(works.registry, _ALLOWED), sessions=store)
        await works.leave(agent)  # the second call waits for the first one
        result = await agent.resume("s", handover=Handover(owner=name_attempt("w", 2)))
        assert isinstance(result, Done) and result.text == "ended"
        for outcome in find_ends(await agent.messages("s")):
            if outcome.call.name == "keyed":
                assert isinstance(outcome, Completed)
            else:
                assert isinstance(outcome, Failed) and ("may have had an effect" in outcome.text) == (
                    names[0] == "note"
                )
        assert works.began.qsize() == names.count("keyed")


@pytest.mark.parametrize("names", [("keyed",), ("count", "keyed")])
@pytest.mark.parametrize("stopped", [False, True], ids=["next prompt", "stopped"])
async def test_call_that_is_not_repeated_after_all_may_have_had_an_effect(
    tmp_path: Path, names: tuple[str, ...], stopped: bool
) -> None:
    works = Works()
    calls = [ToolCall(name, name, {"n": 1} if name == "count" else {}) for name in names]
    async with SqliteStore(tmp_path / "s.db") as store:
        executor = Executor(works.registry, _ALLOWED)
        agent = Agent(ScriptedProvider(calls, "ended"), executor=executor, sessions=store)
        await works.leave(agent)
        if stopped:
            cancellation = Cancellation()
            cancellation.cancel("enough")
            assert isinstance(await agent.resume("s", cancellation=cancellation), Stopped)
        else:
            assert isinstance(await agent.run("something else", session="s"), Done)
        outcome = find_ends(await agent.messages("s"))[-1]
        assert isinstance(outcome, Failed) and outcome.started and "may have had an effect" in outcome.text
        assert "had not started" not in outcome.text and works.began.empty()


async def test_run_that_is_given_up_before_its_calls_start_leaves_nothing_to_report(tmp_path: Path) -> None:
    works, handover, reported = Works(), Handover(), list[object]()
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))

    def leave(event: object) -> None:
        if isinstance(event, BatchBegan):
            handover.give_up()
            asyncio.get_running_loop().call_soon(running.cancel)

    async with SqliteStore(tmp_path / "s.db") as store:
        executor = Executor(works.registry, _ALLOWED, observe=leave)
        calls = [ToolCall(name, name, {}) for name in ("keyed", "note")]
        agent = Agent(ScriptedProvider(calls), executor=executor, sessions=store)
        running = asyncio.ensure_future(agent.run("go", session="s", handover=handover))
        with pytest.raises(asyncio.CancelledError):
            await running
    gc.collect()
    assert reported == [] and works.began.empty()


async def test_calls_of_an_inner_agent_are_continued_too(tmp_path: Path) -> None:
    works = Works()
    async with SqliteStore(tmp_path / "s.db") as store:
        inner = Agent(
            ScriptedProvider(ToolCall("k", "keyed", {}), "inner ended"),
            executor=Executor(works.registry, _ALLOWED),
            sessions=store,
        )
        executor = Executor(Registry(inner.as_tool("helper", "Help.")), _ALLOWED)
        lines = (ToolCall("h", "helper", {"prompt": "help"}), "ended")
        agent = Agent(ScriptedProvider(*lines), executor=executor, sessions=store)
        await works.leave(agent)
        assert isinstance(await agent.resume("s", handover=Handover(owner=name_attempt("w", 2))), Done)
        outcome = find_ends(await agent.messages("s"))[0]
        assert isinstance(outcome, Completed) and "inner ended" in outcome.text and works.began.qsize() == 1
