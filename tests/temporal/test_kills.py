"""Workers that are killed, stopped and replaced: nothing is done twice, and nothing is lost."""

import asyncio
import random
import signal

import pytest
from tests.temporal.conftest import PATIENCE_SECONDS, Cluster, is_alive, plan

from callwright import Done
from callwright.core.calls import Completed, Failed
from callwright.core.messages import AssistantMessage, ToolMessage, UserMessage
from callwright.sessions import PostgresStore
from callwright.sessions.records import Said
from callwright.temporal import Run, Runs

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


async def connect(cluster: Cluster, store: PostgresStore, heartbeat_seconds: float = 0.7) -> Runs:
    return await Runs.connect(
        cluster.address,
        sessions=store,
        queue=cluster.queue,
        heartbeat_seconds=heartbeat_seconds,
        attempts=200,
        turns=4,
    )


async def check_sessions(cluster: Cluster, store: PostgresStore, started: list[Run], turns: int) -> int:
    """Check what every run must have in common; return how many calls the model was told an unknown fate of."""
    results = [await run.result() for run in started]
    assert all(isinstance(result, Done) for result in results), results
    unknown, effects = 0, cluster.read_effects()
    for run in started:
        said = [record.message for record in await store.read(run.session_id) if isinstance(record, Said)]
        assert sum(isinstance(message, UserMessage) for message in said) == 1, "a prompt was heard twice"
        calls = [call.id for message in said if isinstance(message, AssistantMessage) for call in message.calls]
        outcomes = [outcome for message in said if isinstance(message, ToolMessage) for outcome in message.outcomes]
        assert [outcome.call.id for outcome in outcomes] == calls and len(set(calls)) == len(calls)
        assert len([message for message in said if isinstance(message, ToolMessage)]) == turns
        for outcome in outcomes:
            number = outcome.call.id.removeprefix("c").partition(".")[0]
            made = [words for words in effects if words[:3] == [outcome.call.name, run.session_id, number]]
            match outcome:
                case Completed():
                    assert made, "a call that is said to be done was not made"
                case Failed():
                    assert outcome.call.name == "note", f"a call that may be repeated was given up: {outcome.text}"
                    assert "the process ended" in outcome.text, outcome.text
                    assert "it may have had an effect" in outcome.text if made else True
                    unknown += 1
            if outcome.call.name == "keyed":
                assert len({words[3] for words in made}) == 1, "a repeated call had another key"
    assert not cluster.find_doubled()
    return unknown


async def test_random_kills(cluster: Cluster) -> None:
    chance = random.Random(7)
    turns = ["note keyed", "keyed", "note"] * 4
    async with PostgresStore(cluster.store) as store:
        runs = await connect(cluster, store)
        workers = [cluster.start_worker("agent") for _ in range(2)]
        await (await runs.start("desk", plan("keyed"), session="warm")).result()
        started = [await runs.start("desk", plan(*turns, seconds=0.1), session=f"s{n}") for n in range(6)]
        for _ in range(30):
            await asyncio.sleep(chance.uniform(0.05, 0.5))
            victim = workers.pop(chance.randrange(2))
            cluster.kill(victim)
            workers.append(cluster.start_worker("agent"))
        await check_sessions(cluster, store, started, len(turns))


async def test_kills_inside_a_tool(cluster: Cluster) -> None:
    turns = ["note"] * 24  # more calls than the kills use up: one kill may end a call of each of the eight sessions
    async with PostgresStore(cluster.store) as store:
        runs = await connect(cluster, store)
        for _ in range(2):
            cluster.start_worker("agent")
        started = [await runs.start("desk", plan(*turns, seconds=0.3), session=f"t{n}") for n in range(8)]
        ended = asyncio.gather(*(run.result() for run in started))  # on a slow machine the calls may run out first
        seen = kills = 0
        while kills < 32 and not ended.done():
            effects = cluster.read_effects()
            if len(effects) == seen:
                await asyncio.sleep(0.01)
                continue
            seen = len(effects)
            victim = int(effects[-1][-2])
            if is_alive(victim):
                cluster.kill(victim)
                cluster.start_worker("agent")
                kills += 1
        await ended
        unknown = await check_sessions(cluster, store, started, len(turns))
        assert kills >= 8 and unknown >= kills, "every kill was aimed inside a call, so the model must be told of each"


async def test_stopped_worker_is_fenced_off(cluster: Cluster) -> None:
    async with PostgresStore(cluster.store) as store:
        runs = await connect(cluster, store)
        for n in range(2):
            frozen = cluster.start_worker("agent")
            run = await runs.start("desk", plan(*["note keyed"] * 3, seconds=0.2), session=f"z{n}")
            await cluster.wait_for_effects(2, f"z{n}")
            cluster.kill(frozen, signal.SIGSTOP)  # past its heartbeat
            other = cluster.start_worker("agent")
            await check_sessions(cluster, store, [run], 3)
            before = len(await store.read(f"z{n}"))
            cluster.kill(frozen, signal.SIGCONT)
            cluster.kill(other)
            # the worker that stood still has given its run up, and goes on with others
            later = await runs.start("desk", plan("keyed"), session=f"later{n}")
            assert isinstance(await asyncio.wait_for(later.result(), PATIENCE_SECONDS), Done)
            assert len(await store.read(f"z{n}")) == before
            cluster.kill(frozen)
        assert not cluster.find_doubled()


async def test_worker_that_lost_its_heartbeat_repeats_what_may_be_repeated(cluster: Cluster) -> None:
    async with PostgresStore(cluster.store) as store:
        runs = await connect(cluster, store)
        worker = cluster.start_worker("agent")
        run = await runs.start("desk", plan("keyed", seconds=5), session="h")
        await cluster.wait_for_effects(1, "h")
        cluster.kill(worker, signal.SIGSTOP)
        await asyncio.sleep(4)  # the server gives the attempt up, and no other worker takes the session
        cluster.kill(worker, signal.SIGCONT)
        assert await check_sessions(cluster, store, [run], 1) == 0
        assert len(await cluster.wait_for_effects(2, "h")) == 2, "the attempt was not given up, so nothing was tested"


async def test_rolling_restart_loses_nothing(cluster: Cluster) -> None:
    turns = ["note"] * 30
    async with PostgresStore(cluster.store) as store:
        runs = await connect(cluster, store, heartbeat_seconds=20)  # none may be given up because it is slow
        workers = [cluster.start_worker("agent") for _ in range(2)]
        await (await runs.start("desk", plan("keyed"), session="warm-r")).result()
        started = [await runs.start("desk", plan(*turns, seconds=0.1), session=f"r{n}") for n in range(4)]
        for n in range(4):
            await cluster.wait_for_effects(20 * n + 10)
            workers.append(cluster.start_worker("agent"))
            old = workers.pop(0)
            cluster.kill(old, signal.SIGTERM)
            await asyncio.to_thread(cluster.wait, old)
        assert await check_sessions(cluster, store, started, len(turns)) == 0
        assert sum(words[0] == "note" for words in cluster.read_effects()) == 120
