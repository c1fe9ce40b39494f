"""Agents as tools: own tools and limits, inherited denials, hooks, `ask` and cancellation."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.waiting import LoopClock, until

from callwright import (
    Annotations,
    Answers,
    Completed,
    Deny,
    Effect,
    Executor,
    Failed,
    Limits,
    MemoryStore,
    Policy,
    Question,
    Registry,
    ToolCall,
    ToolContext,
    Turn,
    tool,
)
from callwright.agent import Agent, Done, Prices, RunLimits, Stopped
from callwright.agent.subagent import decline_all
from callwright.core.access import Access, Confinement, Decision, RunCommand, UseTool
from callwright.core.calls import digest_of
from callwright.core.messages import AssistantMessage, ToolMessage, Usage, UserMessage
from callwright.hooks import Halt, Hook, InnerAgent
from callwright.policy import AllowEverything, ByMode, Policies
from callwright.providers.base import ModelRequest
from callwright.sessions import SessionError, SqliteStore
from callwright.sessions.records import Began, Record, Said, Spent
from callwright.sessions.sqlite import SqliteHold
from callwright.testing import Recorder, ScriptedHook
from callwright.testing.fakes import Line, ScriptedProvider
from callwright.tool.base import Cancellation

wrote: list[str] = []


@pytest.fixture(autouse=True)
def _clean() -> None:
    wrote.clear()


@tool
async def note(text: str) -> str:
    """Write something down."""
    wrote.append(text)
    return "noted"


@tool(effect=Effect.READ)
async def hang() -> str:
    """Wait for ever."""
    wrote.append("hanging")
    await asyncio.Event().wait()
    return "late"


class NoNotes(Policy):
    """Forbids one tool by name."""

    def judge(self, access: Access, subject: object) -> Decision | None:
        return Deny("no notes") if isinstance(access, UseTool) and access.name == "note" else None


def inner(*script: object, tools: Sequence[object] = (note, hang), limits: RunLimits = RunLimits()) -> Agent:  # noqa: B008 - frozen
    registry = Registry(*tools)  # type: ignore[arg-type] - tools
    provider = ScriptedProvider(*script)  # type: ignore[arg-type] - lines
    return Agent(provider, executor=Executor(registry, AllowEverything()), limits=limits)


DELEGATE = ToolCall("1", "helper", {"prompt": "write it down"})
NOTE = ToolCall("n", "note", {"text": "x"})


async def outcome_of(outer: Agent) -> Completed | Failed:
    """What the outer model was told about the helper."""
    result = await outer.run("go", session="outer")
    assert isinstance(result, Done), result
    told = [message for message in await outer.messages("outer") if isinstance(message, ToolMessage)]
    return told[-1].outcomes[0]


def outer(child: Agent, executor: Executor | None = None, **more: object) -> Agent:
    helper = child.as_tool("helper", "Does things.")
    if executor is None:
        executor = Executor(Registry(helper), AllowEverything())
    else:
        executor.registry.add(helper)  # type: ignore[attr-defined] - a Registry
    return Agent(ScriptedProvider(DELEGATE, "done"), executor=executor, **more)  # type: ignore[arg-type] - as Agent takes them


async def test_inner_answer_is_the_call_output() -> None:
    outcome = await outcome_of(outer(inner(NOTE, "written")))
    assert isinstance(outcome, Completed) and outcome.text == "written" and wrote == ["x"]


async def test_child_never_exceeds_parent_permissions() -> None:
    for mode in ("plan", "default", "dontAsk"):
        bypass = Executor(Registry(note), ByMode("bypass"))
        child = Agent(ScriptedProvider(NOTE, "could not"), executor=bypass)
        outcome = await outcome_of(outer(child, Executor(Registry(), ByMode(mode))))
        assert isinstance(outcome, Completed) and outcome.text == "could not"
        assert wrote == []


@pytest.mark.parametrize("own", [AllowEverything(), ByMode("bypass")])
@pytest.mark.parametrize(
    ("line", "by_mode", "wall"),
    [
        ("python -c 1", ByMode("default", auto_allow="walled"), Confinement.READ_ONLY),
        ("python -c 1", ByMode("auto", sandboxed=True), Confinement.WORKSPACE),
        # each part may run, but not both behind one wall
        ("python -c 1; curl http://a.example", ByMode("default", network_reads="allow", auto_allow="walled"), None),
    ],
)
async def test_child_command_has_no_wider_wall_than_in_parent(
    own: Policy, line: str, by_mode: ByMode, wall: Confinement | None
) -> None:
    walls: list[Confinement] = []

    @tool(accesses=lambda arguments: [RunCommand(str(arguments["line"]), "/w")])
    async def run(line: str, context: ToolContext) -> str:
        """Run a line."""
        walls.append(context.confinement)
        return "ran"

    call = ToolCall("r", "run", {"line": line})
    for agent in (
        Agent(ScriptedProvider(call, "done"), executor=Executor(Registry(run), by_mode), ask=decline_all),
        outer(
            Agent(ScriptedProvider(call, "done"), executor=Executor(Registry(run), own)), Executor(Registry(), by_mode)
        ),
    ):
        assert isinstance(await agent.run("go"), Done)
    assert walls == ([] if wall is None else [wall, wall])


async def test_parent_rules_and_hooks_apply_to_child() -> None:
    for executor in (
        Executor(Registry(), Policies(NoNotes(), AllowEverything())),
        Executor(
            Registry(),
            AllowEverything(),
            hooks=[ScriptedHook(lambda p: Deny("no") if p.call.name == "note" else None)],
        ),
    ):
        await outcome_of(outer(inner(NOTE, "could not"), executor))
        assert wrote == []


async def test_parent_hook_that_halts_inside_the_child_ends_the_run() -> None:
    halting = ScriptedHook(lambda p: Halt("enough") if p.call.name == "note" else None)
    agent = outer(inner(NOTE, "could not"), Executor(Registry(), AllowEverything(), hooks=[halting]))
    result = await agent.run("go")
    assert isinstance(result, Stopped) and (result.kind, result.reason) == ("halted", "enough") and wrote == []


async def test_child_hook_that_halts_ends_the_child_only() -> None:
    halting = ScriptedHook(Halt("enough"))
    child = Agent(ScriptedProvider(NOTE), executor=Executor(Registry(note), AllowEverything(), hooks=[halting]))
    outcome = await outcome_of(outer(child))
    assert isinstance(outcome, Failed) and "enough" in outcome.text and wrote == []


async def test_child_keeps_its_own_choice_about_repairs() -> None:
    misspelt = ToolCall("n", "Note", {"text": "x"})
    for repairs in ("on", "report", "off"):
        executor = Executor(Registry(note), AllowEverything(), repairs=repairs)
        await outcome_of(outer(Agent(ScriptedProvider(misspelt, "done"), executor=executor)))
    assert wrote == ["x"]


async def test_hook_about_an_agent_has_a_time_limit() -> None:
    class Hanging(Hook):
        seconds = 0.01

        async def agent_began(self, agent: InnerAgent) -> None:
            await asyncio.Event().wait()

    executor = Executor(Registry(), AllowEverything(), hooks=[Hanging()])
    outcome = await outcome_of(outer(inner(NOTE, "written"), executor))
    assert isinstance(outcome, Failed) and "the hook Hanging did not end within 0.01 s" in outcome.text
    assert wrote == []


async def test_child_question_reaches_parent_ask_with_its_name() -> None:
    asked: list[tuple[str, str]] = []

    async def ask(questions: Sequence[Question]) -> Answers:
        asked.extend((question.tool, question.origin) for question in questions)
        return Answers.approving(questions)

    outcome = await outcome_of(outer(inner(NOTE, "written"), Executor(Registry()), ask=ask))
    assert isinstance(outcome, Completed) and wrote == ["x"]
    assert asked == [("note", "the sub-agent helper")]


async def test_child_question_without_ask_is_declined() -> None:
    child = inner(NOTE, "could not")
    outcome = await outcome_of(outer(child, Executor(Registry())))
    assert isinstance(outcome, Completed) and outcome.text == "could not" and wrote == []


async def test_cancellation_reaches_the_child() -> None:
    cancellation = Cancellation()
    agent = outer(inner(ToolCall("h", "hang")))
    run = asyncio.create_task(agent.run("go", session="outer", cancellation=cancellation))
    await until(lambda: wrote == ["hanging"])
    cancellation.cancel()
    result = await run
    assert isinstance(result, Stopped) and result.kind == "cancelled"


async def test_stopped_child_is_a_failed_call_with_reason() -> None:
    calls = [ToolCall(f"n{number}", "note", {"text": f"{number}"}) for number in range(3)]
    outcome = await outcome_of(outer(inner(*calls, limits=RunLimits(turns=2))))
    assert isinstance(outcome, Failed) and "2 turns" in outcome.text
    assert wrote == ["0", "1"]


@pytest.mark.parametrize(
    "limits", [RunLimits(tokens=300), RunLimits(money=0.0003, prices=Prices(1, 1))], ids=["tokens", "money"]
)
async def test_child_stops_when_the_limit_of_its_parent_is_used_up(limits: RunLimits) -> None:
    turns = [
        AssistantMessage((ToolCall(str(n), "note", {"text": str(n)}),), usage=Usage(100), stop="calls")
        for n in range(9)
    ]
    result = await outer(inner(*turns, "found"), limits=limits).run("go")
    assert isinstance(result, Stopped) and result.usage.total == 300


async def test_child_usage_counts_for_parent() -> None:
    dear = AssistantMessage((), usage=Usage(900, 100))
    agent = outer(inner(dear), limits=RunLimits(tokens=1000))
    result = await agent.run("go")
    assert isinstance(result, Stopped) and result.kind == "tokens"


async def test_parent_observers_receive_child_calls() -> None:
    recorder = Recorder()
    await outcome_of(outer(inner(NOTE, "written"), Executor(Registry(), AllowEverything(), observe=recorder)))
    assert recorder.names.count("CallEnded") == 2


async def test_agent_nesting_is_limited() -> None:
    registry = Registry()

    def again(request: ModelRequest) -> str | ToolCall:
        return "end" if isinstance(request.messages[-1], ToolMessage) else ToolCall("1", "me", {"prompt": "go on"})

    agent = Agent(ScriptedProvider.answering(again), executor=Executor(registry, AllowEverything()))
    registry.add(agent.as_tool("me", "Itself."))
    assert isinstance(await agent.run("go"), Done)


async def test_durable_child_continues_its_session_on_repeat(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path / "s.db") as store:
        provider = ScriptedProvider(NOTE, "written")
        child = Agent(provider, executor=Executor(Registry(note), AllowEverything()), sessions=store)
        helper = child.as_tool("helper", "Does things.")
        assert helper.spec.annotations.idempotent
        for _ in range(2):  # the second time as after a crash: the same session, turn and call
            executor = Executor(Registry(helper), AllowEverything())
            (outcome,) = await executor.execute([DELEGATE], turn=Turn("outer", "t1"))
            assert isinstance(outcome, Completed) and outcome.text == "written"
        assert wrote == ["x"]


async def test_effects_inside_an_agent_are_not_repeated_after_a_crash(tmp_path: Path) -> None:
    child = inner(NOTE, "written", NOTE, "written")
    helper = child.as_tool("helper", "Does things.")
    assert not helper.spec.annotations.repeatable, "without a store its effects would be done again"
    async with SqliteStore(tmp_path / "s.db") as store:
        hold = await store.hold("outer")
        await hold.append(
            Said(UserMessage("go")),
            Said(AssistantMessage((DELEGATE,), "calls"), "t1"),
            Began({"1": digest_of("helper", {"prompt": "write it down"}, (), session_id="outer")}),
        )
        await hold.release()
        executor = Executor(Registry(helper), AllowEverything())
        agent = Agent(ScriptedProvider("I see."), executor=executor, sessions=store)
        assert isinstance(await agent.resume("outer"), Done)
        told = [message for message in await agent.messages("outer") if isinstance(message, ToolMessage)]
    (outcome,) = told[-1].outcomes
    assert isinstance(outcome, Failed) and outcome.started and wrote == []


class LeasedStore(MemoryStore):
    """A store whose sessions stay held for a while when their process has died."""

    durable = True

    def expire(self, session_id: str) -> None:
        """Let a lease run out."""
        self._sessions[session_id].holder = None


async def test_child_of_a_process_that_died_is_continued_before_its_own_lease_runs_out() -> None:
    store, began = LeasedStore(), asyncio.Event()

    @tool(annotations=Annotations(Effect.WRITE, idempotent=True))
    async def work() -> str:
        """Work; the first time for ever."""
        if not began.is_set():
            began.set()
            await asyncio.Event().wait()
        return "done"

    def make(*script: Line) -> Agent:
        work_alone = Executor(Registry(work), AllowEverything())
        child = Agent(ScriptedProvider(ToolCall("w", "work", {}), "found"), executor=work_alone, sessions=store)
        executor = Executor(Registry(child.as_tool("helper", "Help.")), AllowEverything())
        return Agent(ScriptedProvider(*script), executor=executor, sessions=store)

    dead = asyncio.ensure_future(make(ToolCall("c", "helper", {"prompt": "p"})).run("go", session="s"))
    await began.wait()
    store.expire("s")  # the session of the child is still held
    agent = make("end")
    await agent.resume("s")
    outcomes = [message.outcomes[0] for message in await agent.messages("s") if isinstance(message, ToolMessage)]
    assert isinstance(outcomes[0], Completed)
    dead.cancel()
    await asyncio.wait([dead])


async def test_child_that_cannot_be_stored_goes_on_when_the_run_is_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append, failing = SqliteHold.append, [True]

    async def lose(hold: SqliteHold, *records: Record) -> None:
        outcomes = [
            record for record in records if isinstance(record, Said) and isinstance(record.message, ToolMessage)
        ]
        if hold.session_id.startswith("in-") and outcomes and failing:
            failing.clear()
            raise SessionError("the database is away for a moment")
        await append(hold, *records)

    monkeypatch.setattr(SqliteHold, "append", lose)
    async with SqliteStore(tmp_path / "s.db") as store:
        work = Executor(Registry(note), AllowEverything())
        child = Agent(ScriptedProvider(NOTE, "written"), executor=work, sessions=store)
        executor = Executor(Registry(child.as_tool("helper", "Does things.")), AllowEverything())
        agent = Agent(ScriptedProvider(DELEGATE, "I see."), executor=executor, sessions=store)
        with pytest.raises(SessionError, match="away for a moment"):
            await agent.run("go", session="outer")
        assert isinstance(await agent.resume("outer"), Done) and len(wrote) == 1
        told = [message for message in await agent.messages("outer") if isinstance(message, ToolMessage)]
    assert [outcome.text for outcome in told[0].outcomes] == ["written"]


async def test_second_equal_call_does_not_take_the_session_of_the_first(tmp_path: Path) -> None:
    went_on = asyncio.Event()

    @tool(effect=Effect.READ)
    async def look() -> str:
        """Look."""
        await went_on.wait()
        return "seen"

    @tool(effect=Effect.READ)
    async def both(context: ToolContext) -> str:
        """Ask the same twice, under one id."""
        first = asyncio.ensure_future(context.execute(ToolCall("h", "helper", {"prompt": "p"})))
        await asyncio.sleep(0.05)
        second = await context.execute(ToolCall("h", "helper", {"prompt": "p"}))
        went_on.set()
        return " ".join(outcome.text for outcome in (*await first, *second))

    async with SqliteStore(tmp_path / "s.db") as store:
        looking = Executor(Registry(look), AllowEverything())
        child = Agent(ScriptedProvider(ToolCall("l", "look", {}), "found"), executor=looking, sessions=store)
        executor = Executor(Registry(both, child.as_tool("helper", "Help.")), AllowEverything())
        agent = Agent(ScriptedProvider(ToolCall("b", "both", {}), "end"), executor=executor, sessions=store)
        assert isinstance(await agent.run("go", session="s"), Done)
        told = [message.outcomes[0].text for message in await agent.messages("s") if isinstance(message, ToolMessage)]
        assert told[0].startswith("found ") and "running already" in told[0]


async def test_durable_child_does_not_answer_another_task(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path / "s.db") as store:
        provider = ScriptedProvider("the first answer", "the second answer")
        helper = Agent(provider, [note], sessions=store).as_tool("helper", "Does things.")
        texts: list[str] = []
        for prompt in ("one", "two", "one"):  # the same session, turn and call
            executor = Executor(Registry(helper), AllowEverything())
            call = ToolCall("1", "helper", {"prompt": prompt})
            (outcome,) = await executor.execute([call], turn=Turn("outer", "t1"))
            texts.append(outcome.text)
        assert texts == ["the first answer", "the second answer", "the first answer"]


@pytest.mark.parametrize("known", [True, False])
async def test_child_that_timed_out_costs_its_own_price(known: bool) -> None:
    dear = AssistantMessage((ToolCall("h", "hang"),), "calls", Usage(1_000_000, 0))
    limits = RunLimits(prices=Prices(3, 0)) if known else RunLimits()
    helper = inner(dear, limits=limits).as_tool("helper", "Does things.", limits=Limits(seconds=600))
    agent = Agent(
        ScriptedProvider(DELEGATE, "done"),
        executor=Executor(Registry(helper), AllowEverything()),
        sessions=MemoryStore(),
        limits=RunLimits(prices=Prices(1, 0)),
    )
    clock = LoopClock()
    run = asyncio.create_task(agent.run("go", session="s"))
    await until(lambda: wrote == ["hanging"])
    clock.pass_seconds(601)
    result = await run
    assert isinstance(result, Done) and result.usage.input_tokens == 1_000_000
    assert result.cost == pytest.approx(3.0 if known else 1.0)
    spent = [record for record in await agent.sessions.read("s") if isinstance(record, Spent)]
    assert spent == [Spent(Usage(1_000_000, 0), 3.0 if known else None)]


async def test_usage_of_a_killed_child_counts_after_a_restart(tmp_path: Path) -> None:
    """What the inner agent had used is on the record of the outer one before its run ends."""
    copies: dict[str, list[Record]] = {}

    @tool(effect=Effect.READ)
    async def look() -> str:
        """Look."""
        copies.update({entry.session_id: list(await store.read(entry.session_id)) for entry in await store.list()})
        return "seen"

    dear = AssistantMessage((ToolCall("l", "look"),), "calls", Usage(900, 100))

    def agents(*script: AssistantMessage | ToolCall | str) -> Agent:
        child = Agent(ScriptedProvider(*script), executor=Executor(Registry(look), AllowEverything()), sessions=store)
        return outer(child, sessions=store, limits=RunLimits(tokens=1000))

    async with SqliteStore(tmp_path / "killed.db") as store:
        assert isinstance(await agents(dear, "seen").run("go", session="outer"), Stopped)
    async with SqliteStore(tmp_path / "restarted.db") as store:
        for session, records in copies.items():
            hold = await store.hold(session)
            await hold.append(*records)
            await hold.release()
        agent = agents("seen")
        agent.provider = ScriptedProvider("done")
        result = await agent.resume("outer")
    assert len(copies) == 2 and isinstance(result, Stopped) and result.kind == "tokens"
