"""What `resume` does with each state that a killed process can leave."""

import sqlite3
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from tests.agent.histories import find_history_faults

from callwright import (
    Annotations,
    Answers,
    Approve,
    Completed,
    Effect,
    Executor,
    Failed,
    Registry,
    ToolCall,
    ToolContext,
    Turn,
    tool,
)
from callwright.agent import Agent, Done, Paused, RunLimits, Stopped
from callwright.core.calls import digest_of
from callwright.core.content import Output
from callwright.core.messages import AssistantMessage, ToolMessage, UserMessage
from callwright.hooks import Hook, Rewrite
from callwright.policy import AllowEverything
from callwright.sessions import SessionBusy, SessionError, SqliteStore
from callwright.sessions.records import Answered, Asked, Began, Ended, Record, Said
from callwright.testing.fakes import ScriptedHook, ScriptedProvider

ran: list[str] = []


@pytest.fixture(autouse=True)
def _clean() -> None:
    ran.clear()


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    async with SqliteStore(tmp_path / "s.db") as made:
        yield made


@tool
async def charge(n: int) -> str:
    """Must not happen twice."""
    ran.append(f"charge {n}")
    return f"charged {n}"


@tool(annotations=Annotations(Effect.WRITE, idempotent=True))
async def put(n: int, context: ToolContext) -> str:
    """May happen twice under one key."""
    ran.append(f"put {n} {context.idempotency_key}")
    return f"put {n}"


CHARGE = ToolCall("c", "charge", {"n": 1})
PUT = ToolCall("p", "put", {"n": 2})


def agent_on(store: SqliteStore, *script: str | ToolCall | Exception, executor: Executor | None = None) -> Agent:
    executor = executor or Executor(Registry(charge, put), AllowEverything())
    return Agent(ScriptedProvider(*script), executor=executor, sessions=store)


async def left(store: SqliteStore, *records: Record) -> None:
    """A session as a process left it that died after these records."""
    hold = await store.hold("s")
    await hold.append(Said(UserMessage("go")), *records)
    await hold.release()


def spoken(*calls: ToolCall) -> Said:
    return Said(AssistantMessage(calls, "calls"), "t1")


def begun(*calls: ToolCall) -> Began:
    """As it was written down before these calls ran, so that nothing but the rule keeps them from being repeated."""
    given = [(call, cast("dict[str, Any]", call.arguments)) for call in calls]
    return Began({call.id: digest_of(call.name, arguments, (), session_id="s") for call, arguments in given})


async def outcomes(store: SqliteStore) -> tuple[Completed | Failed, ...]:
    messages = await agent_on(store).messages("s")
    assert find_history_faults(messages) == []
    return next(message for message in messages if isinstance(message, ToolMessage)).outcomes


async def test_unanswered_prompt_is_requested_again(store: SqliteStore) -> None:
    await left(store)
    assert isinstance(await agent_on(store, "hello").resume("s"), Done)


async def test_calls_not_started_before_crash_run_now(store: SqliteStore) -> None:
    await left(store, spoken(CHARGE))
    assert isinstance(await agent_on(store, "ok").resume("s"), Done)
    assert ran == ["charge 1"]


async def test_started_call_is_reported_unknown_not_repeated(store: SqliteStore) -> None:
    await left(store, spoken(CHARGE), begun(CHARGE))
    assert isinstance(await agent_on(store, "ok").resume("s"), Done)
    (lost,) = await outcomes(store)
    assert isinstance(lost, Failed) and lost.error.code == "cancelled" and lost.started
    assert "may have had an effect" in lost.text
    assert ran == []


async def test_ended_call_keeps_outcome_beside_unknown_sibling(store: SqliteStore) -> None:
    other = ToolCall("d", "charge", {"n": 3})
    done = Completed(CHARGE, Output("charged 1"))
    await left(store, spoken(CHARGE, other), begun(CHARGE, other), Ended(done))
    assert isinstance(await agent_on(store, "ok").resume("s"), Done)
    first, second = await outcomes(store)
    assert isinstance(first, Completed) and first.text == "charged 1"
    assert isinstance(second, Failed) and second.started
    assert ran == []


async def test_idempotent_call_is_repeated_with_same_key(store: SqliteStore) -> None:
    await Executor(Registry(put), AllowEverything()).execute([PUT], turn=Turn("s", "t1"))
    before = ran.copy()
    await left(store, spoken(PUT), begun(PUT))
    assert isinstance(await agent_on(store, "ok").resume("s"), Done)
    assert ran == before * 2
    assert isinstance((await outcomes(store))[0], Completed)


async def test_repeated_call_may_make_inner_calls(store: SqliteStore) -> None:
    @tool(effect=Effect.READ)
    async def both(context: ToolContext) -> str:
        """Make two calls."""
        made = await context.execute(ToolCall("1", "put", {"n": 1}), ToolCall("2", "put", {"n": 2}))
        return " and ".join(outcome.text for outcome in made if isinstance(outcome, Completed))

    call = ToolCall("b", "both", {})
    await left(store, spoken(call), begun(call))
    executor = Executor(Registry(both, put), AllowEverything())
    assert isinstance(await agent_on(store, "ok", executor=executor).resume("s"), Done)
    (outcome,) = await outcomes(store)
    assert isinstance(outcome, Completed) and outcome.text == "put 1 and put 2"


async def test_changed_idempotent_call_is_not_repeated(store: SqliteStore) -> None:
    await left(store, spoken(PUT), Began({"p": "the digest of other arguments"}))
    assert isinstance(await agent_on(store, "ok").resume("s"), Done)
    assert ran == []
    assert isinstance((await outcomes(store))[0], Failed)


async def test_new_prompt_after_crash_closes_turn_unrun(store: SqliteStore) -> None:
    await left(store, spoken(CHARGE, PUT), Began({"c": "1", "p": "2"}), Ended(Completed(CHARGE, Output("charged"))))
    assert isinstance(await agent_on(store, "ok").run("what happened?", session="s"), Done)
    done, lost = await outcomes(store)
    assert isinstance(done, Completed)
    assert isinstance(lost, Failed) and lost.started
    assert ran == []


async def test_stored_answers_count_after_restart(store: SqliteStore) -> None:
    asking = Executor(Registry(charge))
    paused = await agent_on(store, CHARGE, executor=asking).run("go", session="s")
    assert isinstance(paused, Paused)
    hold = await store.hold("s")
    await hold.append(Answered({paused.questions[0].id: Approve()}))
    await hold.release()
    assert isinstance(await agent_on(store, "ok", executor=Executor(Registry(charge))).resume("s"), Done)
    assert ran == ["charge 1"]


async def test_paused_session_returns_questions_after_restart(store: SqliteStore) -> None:
    await agent_on(store, CHARGE, executor=Executor(Registry(charge))).run("go", session="s")
    assert any(isinstance(record, Asked) for record in await store.read("s"))
    again = await agent_on(store, executor=Executor(Registry(charge))).resume("s", Answers())
    assert isinstance(again, Paused) and again.questions[0].tool == "charge"
    assert ran == []


async def test_starts_and_outcomes_are_stored_first(
    store: SqliteStore,
) -> None:
    seen: list[list[str]] = []

    @tool
    async def spy() -> str:
        """Look at the session from the outside."""
        seen.append([type(record).__name__ for record in await store.read("s")])
        return "seen"

    executor = Executor(Registry(spy), AllowEverything())
    agent = agent_on(store, ToolCall("1", "spy"), "ok", executor=executor)
    await agent.run("go", session="s")
    assert seen == [["Said", "Said", "Began"]]


@pytest.mark.parametrize(
    "hooks", [(), (ScriptedHook(lambda p: Rewrite({"n": 9}) if p.call.name == "charge" else None),)]
)
async def test_outcome_is_stored_before_the_next_call_also_if_a_hook_changed_its_arguments(
    store: SqliteStore, hooks: Sequence[Hook]
) -> None:
    seen: list[Record] = []

    @tool
    async def spy() -> str:
        """Look at the session from the outside."""
        seen.extend(await store.read("s"))
        return "seen"

    executor = Executor(Registry(charge, spy), AllowEverything(), hooks=hooks)
    both = AssistantMessage((CHARGE, ToolCall("s", "spy")), "calls")
    await Agent(ScriptedProvider(both, "ok"), executor=executor, sessions=store).run("go", session="s")
    (ended,) = [record.outcome for record in seen if isinstance(record, Ended)]
    assert ended.call.id == "c" and ended.text.startswith("charged")


async def test_nothing_runs_if_its_start_cannot_be_stored(store: SqliteStore) -> None:
    agent = agent_on(store, "hi", CHARGE)
    await agent.run("hello", session="s")

    def sabotage(request: object) -> ToolCall:
        with sqlite3.connect(store.path) as other:
            other.execute("INSERT INTO records (session, position, body) VALUES (1, 3, '{}')")
        other.close()
        return CHARGE

    agent.provider = ScriptedProvider.answering(sabotage)
    with pytest.raises(SessionError, match="another process; nothing was added"):
        await agent.run("pay", session="s")
    assert ran == []


async def test_second_run_of_busy_session_is_rejected(store: SqliteStore) -> None:
    hold = await store.hold("s")
    with pytest.raises(SessionBusy, match="another run"):
        await agent_on(store, "hi").run("hello", session="s")
    await hold.release()


async def test_resume_continues_after_a_limit(store: SqliteStore) -> None:
    agent = agent_on(store, CHARGE, "ok")
    agent.limits = RunLimits(turns=1)
    assert isinstance(await agent.run("go", session="s"), Stopped)
    assert isinstance(await agent.resume("s"), Done)


async def test_turn_costs_two_synced_writes(store: SqliteStore) -> None:
    writes = 0
    hold_of = store.hold

    class Counting:
        def __init__(self, hold: object) -> None:
            self._hold = hold

        def __getattr__(self, name: str) -> object:
            nonlocal writes
            writes += name == "append"
            return getattr(self._hold, name)

    async def counted(session_id: str) -> Counting:
        return Counting(await hold_of(session_id))

    store.hold = counted  # type: ignore[method-assign, assignment] - counting is the point
    await agent_on(store, CHARGE, ToolCall("p", "put", {"n": 1}), "ok").run("go", session="s")
    assert writes == 1 + 2 + 2 + 1  # the prompt, two turns with calls, the answer
