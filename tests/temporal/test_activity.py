"""The activity by itself, in Temporal's environment for tests: retries after a kill at awkward moments."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from temporalio.activity import ActivityCancellationDetails
from temporalio.common import RetryPolicy as TemporalRetryPolicy
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.testing import ActivityEnvironment
from tests.waiting import LONG_SECONDS

from callwright import Agent, Answers, Done, Effect, Executor, Paused, Registry, RunLimits, SqliteStore, ToolCall, tool
from callwright.agent import Requests
from callwright.agent.run_request import count_active_seconds
from callwright.core.calls import Completed, Failed, Outcome
from callwright.core.errors import Cancelled
from callwright.core.messages import ToolMessage, UserMessage
from callwright.hooks.base import Halt, Hook
from callwright.providers.base import ModelEvent, ModelRequest, ProviderError, TextDelta
from callwright.retry import RetryPolicy
from callwright.sessions import QuestionClosed, SessionStore, StoredRecord, list_waiting, record_answers
from callwright.sessions.records import Said
from callwright.temporal import activity
from callwright.temporal.activity import Advance
from callwright.temporal.blobs import keep_prompt
from callwright.temporal.workflow import RunWorkflow, question_key
from callwright.testing import ScriptedHook, ScriptedProvider
from callwright.testing.fakes import Line
from callwright.tool.base import Tool

_LIMITS = RunLimits()


@tool
async def change(n: int) -> str:
    """Change something; asks first."""
    return f"changed {n}"


async def advance(
    store: SessionStore,
    *lines: Line,
    attempt: int = 1,
    limits: RunLimits = _LIMITS,
    tools: Sequence[Tool] = (),
    scheduled: datetime = datetime.fromtimestamp(0, UTC),  # noqa: B008 - it is the same each time
    hooks: Sequence[Hook] = (),
    environment: ActivityEnvironment | None = None,
    told: list[Any] | None = None,
    **order: Any,
) -> dict[str, Any]:
    executor = Executor(Registry(*(tools or [change])), hooks=hooks)
    once = Requests(retry=RetryPolicy(max_attempts=1))
    agent = Agent(
        ScriptedProvider(*lines), executor=executor, sessions=store, name="desk", limits=limits, requests=once
    )
    environment = environment or ActivityEnvironment()
    policy = TemporalRetryPolicy(maximum_attempts=20)
    about = {"scheduled_time": scheduled, "workflow_id": "callwright/s", "retry_policy": policy}
    environment.info = replace(environment.info, attempt=attempt, **about)
    given: dict[str, Any] = {
        "agent": "desk",
        "session": "s",
        "turns": 5,
        "prompt": "",
        "open": [],
        "lapsed": False,
    }
    told = [] if told is None else told
    made = Advance({"desk": agent}, lambda store, session: told.append((store, session)))
    return await environment.run(made.advance, {**given, "position": 0, **order})


async def test_retry_does_not_start_a_reached_limit_again(store: SqliteStore) -> None:
    key = await keep_prompt(store, "go")
    call, once = ToolCall("c1", "missing", {}), RunLimits(turns=1)
    first = await advance(store, call, limits=once, prompt=key, key=key)
    assert (first["state"], first["kind"]) == ("stopped", "turns")
    again = await advance(store, call, limits=once, prompt=key, key=key, attempt=2)  # the report had not arrived
    assert (again["state"], again["kind"], again["position"]) == ("stopped", "turns", first["position"])


async def test_retry_of_a_later_slice_does_not_start_a_reached_limit_again(store: SqliteStore) -> None:
    key, once = await keep_prompt(store, "go"), RunLimits(turns=1)
    paused = await advance(store, ToolCall("c1", "change", {"n": 1}), prompt=key, key=key)
    order: dict[str, Any] = {"key": key, "open": paused["open"], "position": paused["position"], "limits": once}
    assert (await advance(store, attempt=2, **order))["state"] == "paused"  # the first attempt had done nothing
    (waiting,) = await list_waiting(store)
    await record_answers(store, "s", Answers.approving(waiting.questions))
    first = await advance(store, ToolCall("c2", "missing", {}), **order)
    assert (first["state"], first["kind"]) == ("stopped", "turns")
    again = await advance(store, attempt=2, **order)  # its model would fail if it were asked
    assert (again["state"], again["kind"], again["position"]) == ("stopped", "turns", first["position"])


async def test_retry_does_not_go_on_with_a_halted_run(store: SqliteStore) -> None:
    key = await keep_prompt(store, "go")
    halt = ScriptedHook(Halt("enough"))
    first = await advance(store, ToolCall("c1", "change", {"n": 1}), hooks=[halt], prompt=key, key=key)
    assert (first["state"], first["kind"]) == ("stopped", "halted")
    again = await advance(store, prompt=key, key=key, attempt=2)  # its model would fail if it were asked
    assert (again["state"], again["kind"], again["reason"]) == ("stopped", "halted", first["reason"])
    following = await keep_prompt(store, "go on")
    assert (await advance(store, "gone on", prompt=following, key=following, attempt=2))["state"] == "done"


async def test_provider_that_is_away_is_tried_again(store: SqliteStore) -> None:
    key, away = await keep_prompt(store, "go"), ProviderError("overloaded", fault="transient")
    delays: list[float] = []
    for attempt in (1, 2, 19):
        with pytest.raises(ApplicationError, match="overloaded") as failed:
            await advance(store, away, prompt=key, key=key, attempt=attempt)
        assert failed.value.type == "ProviderError" and not failed.value.non_retryable
        delays.append(failed.value.next_retry_delay.total_seconds() if failed.value.next_retry_delay else 0.0)
    assert delays == [2.0, 4.0, 300.0]
    last = await advance(store, away, prompt=key, key=key, attempt=20)
    assert (last["state"], last["kind"]) == ("stopped", "provider")
    assert (await advance(store, "hello", prompt=key, key=key, attempt=3))["state"] == "done"
    assert len(await store.read("s")) == 2


async def test_provider_that_refuses_ends_the_run(store: SqliteStore) -> None:
    key, refused = await keep_prompt(store, "go"), ProviderError("no such key", fault="unavailable")
    ended = await advance(store, refused, prompt=key, key=key)
    assert (ended["state"], ended["kind"]) == ("stopped", "provider")


async def test_limit_of_an_earlier_run_does_not_end_a_retried_one(store: SqliteStore) -> None:
    first, second = await keep_prompt(store, "one"), await keep_prompt(store, "two")
    await advance(store, ToolCall("c1", "missing", {}), limits=RunLimits(turns=1), prompt=first, key=first)
    hold = await store.hold("s")
    with pytest.raises(ApplicationError, match="SessionBusy"):
        await advance(store, prompt=second, key=second)  # as after a worker that died
    await hold.release()
    again = await advance(store, "heard", prompt=second, key=second, attempt=2)
    assert again["state"] == "done"


async def test_retry_after_the_prompt_was_heard_and_deleted(store: SqliteStore) -> None:
    key = await keep_prompt(store, "go")
    assert (await advance(store, "hello", prompt=key, key=key))["state"] == "done"
    assert await store.read_blob(key) is None
    again = await advance(store, prompt=key, key=key, attempt=2)  # its model would fail if it were asked
    assert again["state"] == "done"


async def test_prompt_that_was_lost_is_final(store: SqliteStore) -> None:
    with pytest.raises(ApplicationError, match="not in the store of this worker") as failed:
        await advance(store, prompt="prompt-none", key="prompt-none")
    assert failed.value.type == "PromptLost" and failed.value.non_retryable


async def test_prompt_of_a_run_that_fails_for_good_is_deleted(store: SqliteStore) -> None:
    key = await keep_prompt(store, "a private prompt")
    with pytest.raises(ApplicationError, match="there is no agent 'dsek'"):
        await advance(store, agent="dsek", prompt=key, key=key)
    assert await store.read_blob(key) is None
    key = await keep_prompt(store, "a prompt that is tried again")
    with pytest.raises(ApplicationError):
        await advance(store, ProviderError("overloaded", fault="transient"), prompt=key, key=key)
    await advance(store, "done", prompt=key, key=key, attempt=2)
    assert await store.read_blob(key) is None
    key, hold = await keep_prompt(store, "a prompt of a session that stays busy"), await store.hold("s")
    for attempt, kept in ((19, True), (20, False)):  # of 20
        with pytest.raises(ApplicationError) as busy:
            await advance(store, prompt=key, key=key, attempt=attempt)
        assert busy.value.type == "SessionBusy" and (await store.read_blob(key) is not None) == kept
    await hold.release()


async def test_answer_is_not_for_another_version_of_the_tool(store: SqliteStore) -> None:
    def make_tool(version: int) -> Tool:
        if version == 1:

            async def change(n: int) -> str:
                """Change something; asks first."""
                return f"first {n}"
        else:

            async def change(n: int) -> str:
                """Change something; asks first."""
                return f"second {n}"

        return tool(change)

    key = await keep_prompt(store, "go")
    call = ToolCall("c1", "change", {"n": 1})
    paused = await advance(store, call, tools=[make_tool(1)], prompt=key, key=key)
    ((shown,),) = [run.questions for run in await list_waiting(store)]
    await record_answers(store, "s", Answers().approve(shown))
    again = await advance(store, tools=[make_tool(2)], key=key, open=paused["open"], position=paused["position"])
    ((asked,),) = [run.questions for run in await list_waiting(store)]  # a worker with other code asks for itself
    assert again["state"] == "paused" and asked.digest != shown.digest
    with pytest.raises(QuestionClosed):
        await record_answers(store, "s", Answers().approve(shown))
    await record_answers(store, "s", Answers().approve(asked))
    last = await advance(store, "done", tools=[make_tool(2)], key=key, open=again["open"], position=again["position"])
    assert last["state"] == "done"
    said = [record.message for record in await store.read("s") if isinstance(record, Said)]
    (outcomes,) = [message.outcomes for message in said if isinstance(message, ToolMessage)]
    assert [outcome.text for outcome in outcomes] == ["second 1"]


async def test_run_is_not_asked_again_until_its_answers_are_on_record(store: SqliteStore) -> None:
    key = await keep_prompt(store, "go")
    call = ToolCall("c1", "change", {"n": 1})
    paused = await advance(store, call, prompt=key, key=key)
    (run,) = await list_waiting(store)
    woken = await advance(store, key=key, open=paused["open"])  # a signal without an answer: the model is not asked
    assert woken == paused and (await list_waiting(store)) == [run]
    await record_answers(store, "s", Answers().approve(run.questions[0]))
    done = await advance(store, "done", key=key, open=paused["open"])
    assert done["state"] == "done"


async def test_question_without_an_answer_in_time_is_declined(store: SqliteStore) -> None:
    key = await keep_prompt(store, "go")
    first = await advance(store, ToolCall("c1", "change", {"n": 1}), prompt=key, key=key)
    report = await advance(store, "understood", key=key, open=first["open"], position=first["position"], lapsed=True)
    assert report["state"] == "done" and not await list_waiting(store)
    (outcome,) = await _read_outcomes(store)
    assert not isinstance(outcome, Completed) and "no answer came in time" in outcome.text


async def test_question_that_was_not_open_at_the_end_of_the_time_waits(store: SqliteStore) -> None:
    key = await keep_prompt(store, "go")
    first = await advance(store, ToolCall("c1", "change", {"n": 1}), prompt=key, key=key)
    (waiting,) = await list_waiting(store)
    await record_answers(store, "s", Answers.approving(waiting.questions))  # at the last moment
    following = ToolCall("c2", "change", {"n": 2})
    report = await advance(store, following, key=key, open=first["open"], position=first["position"], lapsed=True)
    assert report["state"] == "paused" and report["open"] != first["open"]
    assert [outcome.text for outcome in await _read_outcomes(store)] == ["changed 1"]


async def test_answer_at_the_last_moment_counts(store: SqliteStore) -> None:
    key = await keep_prompt(store, "go")
    first = await advance(store, ToolCall("c1", "change", {"n": 1}), prompt=key, key=key)
    (waiting,) = await list_waiting(store)
    await record_answers(store, "s", Answers.approving(waiting.questions))
    report = await advance(store, "done", key=key, open=first["open"], position=first["position"], lapsed=True)
    assert report == {"state": "done", "position": len(await store.read("s")), "open": [], "expires": 0}
    assert [outcome.text for outcome in await _read_outcomes(store)] == ["changed 1"]


async def test_worker_is_told_of_runs_that_wait(store: SqliteStore) -> None:
    told: list[Any] = []
    key = await keep_prompt(store, "go")
    first = await advance(store, ToolCall("c1", "change", {"n": 1}), told=told, prompt=key, key=key)
    assert told == [(store, "s")]
    (waiting,) = await list_waiting(store)
    await record_answers(store, "s", Answers.approving(waiting.questions))
    await advance(store, "done", told=told, key=key, open=first["open"], position=first["position"])
    assert told == [(store, "s")]


async def begin_to_wait(store: SqliteStore, environment: ActivityEnvironment) -> "tuple[str, asyncio.Task[Any]]":
    began = asyncio.Event()

    @tool(effect=Effect.READ)
    async def wait() -> str:
        """Wait for ever."""
        began.set()
        await asyncio.Event().wait()
        return "never said"

    key = await keep_prompt(store, "go")
    call = ToolCall("c1", "wait", {})
    running = asyncio.create_task(
        advance(store, call, "gone on", tools=[wait], environment=environment, prompt=key, key=key)
    )
    await began.wait()
    return key, running


async def test_cancelled_run_stops_its_call(store: SqliteStore) -> None:
    environment = ActivityEnvironment()
    _, running = await begin_to_wait(store, environment)
    environment.cancel(cancellation_details=ActivityCancellationDetails(cancel_requested=True))
    with pytest.raises(asyncio.CancelledError):
        await running
    (outcome,) = await _read_outcomes(store)
    assert isinstance(outcome, Failed) and isinstance(outcome.error, Cancelled) and outcome.started


async def test_cancelled_run_that_does_not_end_is_cut(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(activity, "_CLOSING_SECONDS", 0.05)
    began, ended = asyncio.Event(), asyncio.Event()

    class Stubborn(ScriptedProvider):
        async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
            began.set()
            try:
                await asyncio.Event().wait()
            finally:
                with suppress(asyncio.CancelledError):
                    await asyncio.Event().wait()  # closes a connection that does not answer
                ended.set()
            yield TextDelta("never said")

    environment, key = ActivityEnvironment(), await keep_prompt(store, "go")
    agent = Agent(Stubborn(), sessions=store, name="desk")
    environment.info = replace(environment.info, workflow_id="callwright/s")
    order: dict[str, Any] = {
        "agent": "desk",
        "session": "s",
        "turns": 5,
        "prompt": key,
        "key": key,
        "open": [],
        "lapsed": False,
    }
    made = Advance({"desk": agent}, lambda store, session: None)
    running = asyncio.create_task(environment.run(made.advance, {**order, "position": 0}))
    await began.wait()
    environment.cancel(cancellation_details=ActivityCancellationDetails(cancel_requested=True))
    with pytest.raises(asyncio.CancelledError):
        await running
    async with asyncio.timeout(LONG_SECONDS):
        await ended.wait()


async def test_run_of_a_stopped_worker_is_left_to_another(store: SqliteStore, caplog: pytest.LogCaptureFixture) -> None:
    environment = ActivityEnvironment()
    key, running = await begin_to_wait(store, environment)
    environment.cancel(cancellation_details=ActivityCancellationDetails(worker_shutdown=True))
    with pytest.raises(ApplicationError, match="the worker was stopped") as stopped:
        await running
    assert stopped.value.type == "WorkerStopped" and not stopped.value.non_retryable
    assert await _read_outcomes(store) == [] and not caplog.records  # a restart is no failure

    @tool(effect=Effect.READ)
    async def wait() -> str:
        """Wait no more."""
        return "waited"

    assert (await advance(store, "done", tools=[wait], attempt=2, prompt=key, key=key))["state"] == "done"
    assert len(await _read_outcomes(store)) == 1


def test_flood_of_signals_neither_holds_up_a_run_nor_hides_its_answers() -> None:
    waiting = question_key("about.c1.0.n")
    run = RunWorkflow({"open": [waiting]})
    run.note_answered({"keys": [waiting, waiting[:-1], 5, None]})
    run.note_answered({"keys": [f"{number:016x}" for number in range(100_000)]})
    run.note_answered({"keys": ["x" * 5_000, "x"]})  # they would be part of the next history
    for nonsense in (None, [waiting], {"keys": waiting}, {"keys": {waiting: 1}}):
        run.note_answered(nonsense)
    assert run._answered == [waiting, *(f"{number:016x}" for number in range(99_900, 100_000))]  # pyright: ignore[reportPrivateUsage] - the server shows it to no one


async def _read_outcomes(store: SqliteStore) -> list[Outcome]:
    messages = [record.message for record in await store.read("s") if isinstance(record, Said)]
    return [outcome for message in messages if isinstance(message, ToolMessage) for outcome in message.outcomes]


async def test_call_id_with_a_lone_surrogate_is_asked_and_answered(store: SqliteStore) -> None:
    key = await keep_prompt(store, "go")
    paused = await advance(store, ToolCall("\ud800", "change", {"n": 1}), prompt=key, key=key)
    ((question,),) = [run.questions for run in await list_waiting(store)]
    await record_answers(store, "s", Answers().approve(question))
    assert (await advance(store, "done", key=key, open=paused["open"]))["state"] == "done"


async def test_cancelled_run_closes_its_turn_once(store: SqliteStore) -> None:
    key = await keep_prompt(store, "go")
    paused = await advance(store, ToolCall("c1", "change", {"n": 1}), prompt=key, key=key)
    assert paused["state"] == "paused" and len(paused["open"]) == 1 and paused["expires"] > 0
    assert await store.list(waiting=True)
    for _ in range(2):
        closed = await advance(store, key=key, cancel=True)
        assert (closed["state"], closed["kind"]) == ("stopped", "cancelled")
        assert not await store.list(waiting=True)


async def test_cancelled_before_it_began(store: SqliteStore) -> None:
    key = await keep_prompt(store, "go")
    closed = await advance(store, prompt=key, key=key, cancel=True)
    assert closed["state"] == "stopped" and closed["position"] == 0
    assert not await store.list() and await store.read_blob(key) is None


@pytest.mark.parametrize(("kind", "final"), [("UsageError", True), ("SessionBusy", False)])
async def test_errors_say_whether_a_retry_helps(store: SqliteStore, kind: str, final: bool) -> None:
    hold = await store.hold("s")
    session = "s" if kind == "SessionBusy" else "\n"
    key = await keep_prompt(store, "go")
    with pytest.raises(ApplicationError) as failed:
        await advance(store, prompt=key, key=key, session=session)
    assert (failed.value.type, failed.value.non_retryable) == (kind, final)
    assert failed.value.next_retry_delay is None  # the delays of the workflow count
    await hold.release()


async def test_session_that_was_deleted_ends_its_run(store: SqliteStore) -> None:
    key = await keep_prompt(store, "go")
    paused = await advance(store, ToolCall("c1", "change", {"n": 1}), prompt=key, key=key)
    await store.delete("s")
    order: dict[str, Any] = {"key": key, "open": paused["open"], "position": paused["position"]}
    for lapsed in (False, True):
        with pytest.raises(ApplicationError, match="no session 's'") as failed:
            await advance(store, **order, lapsed=lapsed)
        assert failed.value.type == "SessionMissing" and failed.value.non_retryable
    closed = await advance(store, **order, cancel=True)
    assert closed["state"] == "stopped" and not await store.list()


async def test_attempt_that_stood_still_does_not_take_the_session_back(store: SqliteStore) -> None:
    waits, go_on = asyncio.Event(), asyncio.Event()

    @tool(effect=Effect.READ)
    async def wait() -> str:
        """Wait."""
        waits.set()
        await go_on.wait()
        return "waited"

    key = await keep_prompt(store, "go")
    call = ToolCall("c1", "wait", {})
    newer = asyncio.create_task(advance(store, call, "done", tools=[wait], attempt=2, prompt=key, key=key))
    await waits.wait()
    with pytest.raises(ApplicationError, match="being written") as failed:  # it wakes up and wants to begin
        await advance(store, call, "done", tools=[wait], attempt=1, prompt=key, key=key)
    assert failed.value.type == "SessionBusy"
    go_on.set()
    assert (await newer)["state"] == "done"


async def test_next_slice_takes_the_session_from_one_that_stands_still(store: SqliteStore) -> None:
    waits, go_on = asyncio.Event(), asyncio.Event()

    @tool(effect=Effect.READ)
    async def wait() -> str:
        """Wait."""
        if not waits.is_set():
            waits.set()
            await go_on.wait()
        return "waited"

    key, call = await keep_prompt(store, "go"), ToolCall("c1", "wait", {})
    stuck = asyncio.create_task(advance(store, call, tools=[wait], attempt=12, prompt=key, key=key))
    await waits.wait()
    later = datetime.fromtimestamp(60, UTC)
    assert (await advance(store, call, "done", tools=[wait], scheduled=later, key=key))["state"] == "done"
    go_on.set()
    with pytest.raises(ApplicationError, match="taken over"):
        await stuck


async def test_worker_says_what_failed_without_a_traceback_of_its_own(
    store: SqliteStore, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(ApplicationError) as failed:
        await advance(store, agent="nobody")
    assert failed.value.category is ApplicationErrorCategory.BENIGN, "the SDK logs a traceback for others"
    (said,) = caplog.records
    assert "there is no agent 'nobody' on this queue" in said.getMessage() and said.exc_info is None
    caplog.clear()
    with pytest.raises(ApplicationError, match="Error"):
        await advance(store, prompt="p", turns=None)
    assert caplog.records[0].exc_info, "what is not expected is shown with its place"


def make_older(path: Path, seconds: float) -> None:
    """Move everything on record into the past, as if time had passed."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE records SET at = at - ?", (seconds,))


async def test_seconds_count_across_slices(store: SqliteStore, tmp_path: Path) -> None:
    limits, call = RunLimits(seconds=600), ToolCall("c1", "missing", {})
    key = await keep_prompt(store, "go")
    first = await advance(store, call, limits=limits, prompt=key, key=key, turns=1)
    assert first["state"] == "more"
    make_older(tmp_path / "s.db", 300)
    second = await advance(store, call, limits=limits, key=key, turns=1)
    assert second["state"] == "more"
    make_older(tmp_path / "s.db", 301)
    for attempt in (1, 2):  # also if the report of the first attempt is lost
        last = await advance(store, limits=limits, key=key, attempt=attempt)
        assert (last["state"], last["kind"], last["position"]) == ("stopped", "seconds", second["position"])
    again = await keep_prompt(store, "go on")
    assert (await advance(store, "hello", limits=limits, prompt=again, key=again))["state"] == "done"


async def test_retry_of_the_first_slice_has_no_more_seconds(store: SqliteStore, tmp_path: Path) -> None:
    limits = RunLimits(seconds=600)
    key = await keep_prompt(store, "go")
    await advance(store, ToolCall("c1", "missing", {}), limits=limits, prompt=key, key=key, turns=1)
    make_older(tmp_path / "s.db", 601)
    again = await advance(store, limits=limits, prompt=key, key=key, attempt=2)
    assert (again["state"], again["kind"]) == ("stopped", "seconds")


async def test_seconds_do_not_count_while_a_question_waits(store: SqliteStore, tmp_path: Path) -> None:
    limits = RunLimits(seconds=600)
    key = await keep_prompt(store, "go")
    calls = [ToolCall(f"c{n}", "change", {"n": n}) for n in range(2)]
    paused = await advance(store, calls, limits=limits, prompt=key, key=key)
    for question in (await list_waiting(store))[0].questions:  # one answer after the other, an hour apart
        make_older(tmp_path / "s.db", 3_000)
        await record_answers(store, "s", Answers().approve(question))
    assert (await advance(store, "done", limits=limits, key=key, open=paused["open"]))["state"] == "done"


async def test_resume_without_an_owner_starts_the_seconds_again(store: SqliteStore, tmp_path: Path) -> None:
    limits = RunLimits(seconds=600)
    agent = Agent(ScriptedProvider(ToolCall("c1", "change", {"n": 1})), [change], sessions=store, limits=limits)
    paused = await agent.run("go", session="s")
    make_older(tmp_path / "s.db", 9_000)
    assert isinstance(paused, Paused)
    again = Agent(ScriptedProvider("done"), [change], sessions=store, limits=limits)
    assert isinstance(await again.resume("s", Answers().decline(paused.questions[0])), Done)


def test_clocks_that_differ_do_not_make_a_run_shorter_than_nothing() -> None:
    said = [StoredRecord(0, 1_000.0, Said(UserMessage("go"))), StoredRecord(1, 1_060.0, Said(UserMessage("x"), "t"))]
    assert count_active_seconds(said, 1_050.0) == 50  # another machine is ahead
    assert count_active_seconds(said, 900.0) == 0
    assert count_active_seconds([StoredRecord(0, 0.0, Said(UserMessage("go")))], 900.0) == 0  # no times on record
    assert count_active_seconds([], 900.0) == 0
