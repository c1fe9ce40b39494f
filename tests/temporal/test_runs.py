"""Runs on a real Temporal server and a real database: results, questions, payloads."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.temporal.conftest import PATIENCE_SECONDS, Cluster, plan, wait_for_questions
from tests.waiting import until

from callwright import Answers, Approve, Done, Stopped
from callwright.app.waiting_runs import answer_run, list_waiting_runs, open_run_store
from callwright.core.messages import ToolMessage, UserMessage
from callwright.sessions import PostgresStore, QuestionClosed, SessionBusy, record_answers
from callwright.sessions.records import Answered, Record, Said
from callwright.temporal import Run, Runs, TemporalError
from callwright.temporal.workflow import SIGNAL, question_key

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


async def read_records(cluster: Cluster, session: str) -> Sequence[Record]:
    async with PostgresStore(cluster.store) as store:
        return await store.read(session)


async def read_outcomes(cluster: Cluster, session: str) -> list[str]:
    said = [record.message for record in await read_records(cluster, session) if isinstance(record, Said)]
    return [outcome.text for message in said if isinstance(message, ToolMessage) for outcome in message.outcomes]


async def test_session_goes_on_with_several_runs(cluster: Cluster, runs: Runs) -> None:
    cluster.start_worker()
    run = await runs.start("desk", plan("note keyed", "note"), session="s1")
    result = await run.result()
    assert isinstance(result, Done) and result.text == "done after 2 turns" and result.turns == 3
    again = await runs.start("desk", plan("keyed", answer="more"), session="s1")
    assert (await again.result()).text == "more after 1 turns"
    assert (await run.result()).text == "done after 2 turns"
    assert sum(words[0] == "note" for words in cluster.read_effects()) == 2
    assert {entry.session_id for entry in await runs.list() if entry.agent == "desk"} >= {"s1"}


async def test_running_session_cannot_be_started_again(cluster: Cluster, runs: Runs) -> None:
    run = await runs.start("desk", plan("note"), session="s1")
    with pytest.raises(SessionBusy, match="has not ended"):
        await runs.start("desk", plan("note"), session="s1")
    cluster.start_worker()
    await run.result()
    async with PostgresStore(cluster.store) as store:
        said = [record for record in await store.read("s1") if isinstance(record, Said)]
    assert sum(isinstance(record.message, UserMessage) for record in said) == 1


async def test_answers_without_a_worker_are_kept(cluster: Cluster, runs: Runs) -> None:
    worker = cluster.start_worker()
    started = [await runs.start("asking", plan("note"), session=f"s{n}") for n in range(5)]
    for run in started:
        await wait_for_questions(run)
    cluster.kill(worker)
    waiting = await runs.waiting()
    assert {each.session_id for each in waiting} == {f"s{n}" for n in range(5)}
    for n, run in enumerate(started):
        (question,) = await run.questions()
        await (run.decline(question, "not today") if n == 4 else run.approve(question, by="ada"))
    cluster.start_worker()
    results = [await run.result() for run in started]
    assert all(isinstance(result, Done) for result in results)
    assert sorted(words[1] for words in cluster.read_effects()) == ["s0", "s1", "s2", "s3"]
    assert "not today" in (await read_outcomes(cluster, "s4"))[0]
    assert not await runs.waiting()


async def send(run: Run, signal: Any) -> None:
    await run._handle.signal(SIGNAL, signal)  # pyright: ignore[reportPrivateUsage] - as a foreign program would


async def test_signals_answer_nothing(cluster: Cluster, runs: Runs) -> None:
    cluster.start_worker("asking")
    run = await runs.start("asking", plan("note", "note"), session="signals")
    (question,) = await wait_for_questions(run)
    key = question_key(question.id)
    replies: list[Any] = [True, {"approved": True}, {"question": question.id, "approved": True}]
    keys: list[Any] = [key, [1, None], ["x" * 9999], [key], [key]]
    nothing: list[Any] = [None, 1, "yes", [], {}]
    for signal in (*nothing, *replies, *({"keys": each} for each in keys)):
        await send(run, signal)
    other = await runs.start("asking", plan("keyed"), session="s2")  # the worker has handled what came before
    await other.decline((await wait_for_questions(other))[0])
    await other.result()
    assert await run.questions() == (question,) and not cluster.read_effects()
    await run.decline(question)
    (second,) = await wait_for_other(run, question.digest)
    await run.approve(second)
    assert isinstance(await run.result(), Done)
    assert [words[2] for words in cluster.read_effects()] == ["1"]


async def test_strangers_answer_nothing(cluster: Cluster, runs: Runs) -> None:
    cluster.start_worker("asking")
    run = await runs.start("asking", plan("note"), session="s1")
    other = await runs.start("asking", plan("keyed"), session="s2")
    (question,), (foreign,) = await wait_for_questions(run), await wait_for_questions(other)
    forged = [
        foreign,
        replace(question, digest="0" * 64),
        replace(question, expires_at=1),
        replace(question, call_id="x"),
    ]
    for each in forged:
        with pytest.raises(QuestionClosed):
            await run.approve(each)
    assert await run.questions() == (question,)
    await run.decline(question)
    await other.decline(foreign)
    assert isinstance(await run.result(), Done) and isinstance(await other.result(), Done)
    assert not cluster.read_effects()
    with pytest.raises(QuestionClosed, match="declined"):
        await run.approve(question)


async def test_answers_in_the_store_wake_the_run(cluster: Cluster, runs: Runs) -> None:
    worker = cluster.start_worker("asking")
    late = await runs.start("asking", plan("note"), session="late")
    (question,) = await wait_for_questions(late)
    cluster.kill(worker)
    async with open_run_store(cluster.store) as store:  # as the terminal and the page do: they know no server
        assert [shown["session"] for shown in await list_waiting_runs(store)] == ["late"]
        await answer_run(store, "late", question.id, {"approved": True}, place="the terminal")
        assert not await list_waiting_runs(store)
        cluster.start_worker("asking")
        assert isinstance(await late.result(), Done)
        early = await runs.start("asking", plan("note keyed"), session="early")
        for each in await wait_for_questions(early, 2):  # at once, while a worker runs
            await answer_run(store, "early", each.id, {"approved": True}, place="the page")
        assert isinstance(await early.result(), Done)
    assert sorted(words[:2] for words in cluster.read_effects()) == [
        ["keyed", "early"],
        ["note", "early"],
        ["note", "late"],
    ]
    (answered,) = [record for record in await read_records(cluster, "late") if isinstance(record, Answered)]
    assert answered.replies[question.id].by.endswith("the terminal")


async def wait_for_other(run: Run, digest: str) -> Any:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            questions = await run.questions()
            if questions and questions[0].digest != digest:
                return questions
            await asyncio.sleep(0.05)


async def test_answer_counts_for_one_call(cluster: Cluster, runs: Runs) -> None:
    cluster.start_worker("asking")
    run = await runs.start("asking", plan("note", "note"), session="s1")
    (question,) = await wait_for_questions(run)
    await run.approve(question)
    for _ in range(2):
        with pytest.raises(QuestionClosed):
            await run.approve(question)
    (second,) = await wait_for_other(run, question.digest)
    with pytest.raises(QuestionClosed):
        await run.approve(question)
    await cluster.wait_for_effects(1)
    assert [words[2] for words in cluster.read_effects()] == ["0"]
    await run.decline(second)
    assert isinstance(await run.result(), Done)
    assert [words[2] for words in cluster.read_effects()] == ["0"]


async def test_changed_arguments_travel_through_the_store(cluster: Cluster, runs: Runs) -> None:
    cluster.start_worker("asking")
    run = await runs.start("asking", plan("note"), session="s1")
    (question,) = await wait_for_questions(run)
    await run.approve(question, arguments={"n": 77, "seconds": 0.0})
    (changed,) = await wait_for_other(run, question.digest)  # what was changed is judged, and asked about, again
    await run.approve(changed)
    assert isinstance(await run.result(), Done)
    assert [words[2] for words in cluster.read_effects()] == ["77"]


async def test_all_questions_of_a_turn_are_answered_together(cluster: Cluster, runs: Runs) -> None:
    cluster.start_worker("asking")
    run = await runs.start("asking", plan("note keyed"), session="s1")
    first, second = await wait_for_questions(run, 2)
    await run.approve(first)
    await asyncio.sleep(0.3)
    assert not cluster.read_effects()
    await run.decline(second, "only one")
    assert isinstance(await run.result(), Done)
    assert [words[0] for words in cluster.read_effects()] == ["note"]


async def test_more_questions_in_a_turn_than_early_answers_are_kept(cluster: Cluster, runs: Runs) -> None:
    cluster.start_worker("asking")
    run = await runs.start("asking", plan(" ".join(["note"] * 120)), session="s1")
    questions = await wait_for_questions(run, 120)
    async with PostgresStore(cluster.store) as store:
        await record_answers(store, "s1", Answers({question.id: Approve() for question in questions}))
    async with asyncio.timeout(PATIENCE_SECONDS):
        assert isinstance(await run.result(), Done)
    assert len(cluster.read_effects()) == 120


async def test_question_expires(cluster: Cluster, runs: Runs) -> None:
    cluster.start_worker("hasty")
    run = await runs.start("hasty", plan("note"), session="s1")
    assert isinstance(await run.result(), Done)
    assert not cluster.read_effects()
    assert "no answer came in time" in (await read_outcomes(cluster, "s1"))[0]
    assert not await runs.waiting()


async def test_cancel_inside_a_tool(cluster: Cluster, runs: Runs) -> None:
    cluster.start_worker("agent")
    run = await runs.start("desk", plan("note", seconds=600), session="s1")
    await cluster.wait_for_effects(1)
    await run.cancel()
    result = await asyncio.wait_for(run.result(), PATIENCE_SECONDS)
    assert isinstance(result, Stopped) and result.kind == "cancelled"
    assert len(await read_outcomes(cluster, "s1")) == 1
    with pytest.raises(TemporalError, match="'s1' has ended; there is nothing to cancel"):
        await run.cancel()
    again = await runs.start("desk", plan("keyed"), session="s1")
    assert isinstance(await again.result(), Done)


async def test_cancel_after_its_worker_was_killed(cluster: Cluster, runs: Runs) -> None:
    worker = cluster.start_worker("agent")
    run = await runs.start("desk", plan("note", seconds=600), session="s1")
    await cluster.wait_for_effects(1)
    cluster.kill(worker)
    await run.cancel()
    cluster.start_worker("agent")
    result = await asyncio.wait_for(run.result(), PATIENCE_SECONDS)
    assert isinstance(result, Stopped) and result.kind == "cancelled"
    assert (await run.info()).status == "cancelled"
    assert "it may have had an effect" in (await read_outcomes(cluster, "s1"))[0]


async def test_cancel_while_a_question_waits(cluster: Cluster, runs: Runs) -> None:
    worker = cluster.start_worker("asking")
    run = await runs.start("asking", plan("note"), session="s1")
    (question,) = await wait_for_questions(run)
    cluster.kill(worker)
    await run.cancel()  # kept until there is a worker
    cluster.start_worker("asking")
    result = await run.result()
    assert isinstance(result, Stopped) and result.kind == "cancelled"
    assert not await runs.waiting() and not cluster.read_effects()
    assert question.id


async def test_large_payloads_stay_in_the_store(cluster: Cluster, runs: Runs) -> None:
    cluster.start_worker("agent")
    run = await runs.start("desk", plan("big", "big", padding="x" * 5_000_000), session="s1")
    assert isinstance(await run.result(), Done)
    history = await run.fetch_history()
    assert sum(event.ByteSize() for event in history.events) < 10_000
    assert (await run.info()).history_bytes < 10_000
    async with PostgresStore(cluster.store) as store:
        (prompt, *_) = await store.read("s1")
        assert isinstance(prompt, Said) and isinstance(prompt.message, UserMessage)
        assert len(str(prompt.message.content)) > 5_000_000
        assert await store.read_blob(prompt.key) is None  # it is in the session now


async def test_long_runs_have_short_histories(cluster: Cluster) -> None:
    cluster.start_worker("agent")
    async with PostgresStore(cluster.store) as store:
        runs = await Runs.connect(cluster.address, sessions=store, queue=cluster.queue, turns=3)
        run = await runs.start("desk", plan(*["keyed"] * 60), session="long")
        result = await run.result()
        assert isinstance(result, Done) and result.turns == 61
        handles = [each async for each in runs._client.list_workflows("WorkflowId = 'callwright/long'")]  # pyright: ignore[reportPrivateUsage]
        for each in handles:
            handle = runs._client.get_workflow_handle(each.id, run_id=each.run_id)  # pyright: ignore[reportPrivateUsage]
            history = await handle.fetch_history()
            assert sum(event.ByteSize() for event in history.events) < 10_000


async def test_seconds_are_those_of_the_whole_run(cluster: Cluster) -> None:
    worker = cluster.start_worker("brief")
    async with PostgresStore(cluster.store) as store:
        runs = await Runs.connect(
            cluster.address, sessions=store, queue=cluster.queue, turns=1, heartbeat_seconds=1, attempts=99
        )
        run = await runs.start("brief", plan(*["keyed"] * 45, seconds=0.3), session="s1")  # 13 s of work, 4 allowed
        ended = asyncio.ensure_future(run.result())
        await until(lambda: cluster.read_effects() or ended.done())  # a slow machine may do nothing within the limit
        cluster.kill(worker)
        cluster.start_worker("brief")
        result = await ended
        assert isinstance(result, Stopped) and result.kind == "seconds"
        assert len(cluster.read_effects()) < 45


async def test_watch_from_another_place(cluster: Cluster, runs: Runs) -> None:
    cluster.start_worker("agent")
    run = await runs.start("desk", plan(*["keyed"] * 5, seconds=0.1), session="s1")
    seen = [stored.position async for stored in runs.get("s1").watch()]
    async with PostgresStore(cluster.store) as store:
        total = len(await store.read("s1"))
    assert seen == list(range(total))
    assert [stored.position async for stored in run.watch(total - 2)] == [total - 2, total - 1]


async def test_questions_are_answered_while_the_run_is_watched(cluster: Cluster, runs: Runs) -> None:
    cluster.start_worker()
    run = await runs.start("asking", plan("note", "note"), session="s1")
    asked = 0
    async for _ in run.watch():  # as docs/howto/cluster.md does: right after the start nothing has been asked
        for question in await run.questions():
            await run.approve(question, by="ada")
            asked += 1
    assert asked == 2 and isinstance(await run.result(), Done)


async def test_sub_agents_and_programs_continue_on_another_worker(cluster: Cluster, runs: Runs) -> None:
    worker = cluster.start_worker("outer", "coder")
    outer = await runs.start("outer", "go", session="outer")
    coder = await runs.start("coder", "go", session="coder")
    await cluster.wait_for_effects(4)
    cluster.kill(worker)
    cluster.start_worker("outer", "coder")
    assert (await outer.result()).text == "the helper is done"
    assert (await coder.result()).text == "the program is done"
    assert not cluster.find_doubled()
    keys = {(words[1], words[2]): set[str]() for words in cluster.read_effects() if words[0] == "keyed"}
    for words in cluster.read_effects():
        if words[0] == "keyed":
            keys[words[1], words[2]].add(words[3])
    assert all(len(found) == 1 for found in keys.values()), keys
    assert sum(session.startswith("coder") for session, _ in keys) == 5


async def test_tools_of_an_mcp_server(cluster: Cluster, runs: Runs) -> None:
    cluster.start_worker("clerk")
    run = await runs.start("clerk", "go", session="s1")
    assert "hello" in (await run.result()).text
