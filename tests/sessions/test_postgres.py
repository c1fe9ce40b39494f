"""`PostgresStore` on a real server: the contract, leases and their epochs, commits together, failures."""

import asyncio
import socket
import subprocess
import sys
import textwrap
import time
import traceback
from contextlib import AsyncExitStack
from typing import Any

import pytest
from tests.sessions.conftest import check_extremes, check_fork_into_held, connect, execute, said, texts_of
from tests.waiting import LONG_SECONDS, LoopClock

from callwright import Agent, Answers, Effect, Executor, Registry, tool
from callwright.agent import Done, Paused
from callwright.core.errors import UsageError
from callwright.core.messages import UserMessage
from callwright.sessions import PostgresStore, SessionBusy, SessionDamaged, SessionError, StoreTooNew, name_attempt
from callwright.sessions.records import Said
from callwright.testing import ScriptedProvider, check_store

pytestmark = pytest.mark.timeout(600)  # of processes that start, and databases, on the slowest machine


async def test_contract(postgres: str) -> None:
    async with AsyncExitStack() as opened:
        # long enough for a slow machine to renew its leases in time
        stores = [await opened.enter_async_context(PostgresStore(postgres, lease_seconds=8)) for _ in range(2)]
        assert await check_store(stores.pop) == ()


async def test_lost_lease_cannot_write(postgres: str) -> None:
    async with PostgresStore(postgres, lease_seconds=0.1) as slow, PostgresStore(postgres) as other:
        zombie = await slow.hold("s")
        await zombie.append(said("one"))
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()  # a machine that stands still: the lease is not renewed
        while True:
            try:
                hold = await other.hold("s")
                break
            except SessionBusy:
                await asyncio.sleep(0.02)
        assert texts_of(hold.records) == ["one"]
        await hold.append(said("two"))
        with pytest.raises(SessionBusy, match="taken over"):
            await zombie.append(said("zombie"))
        with pytest.raises(SessionBusy, match="taken over"):
            await zombie.append(said("again"))
        await zombie.release()
        await hold.append(said("three"))
        await hold.release()
        assert len(await other.read("s")) == 3


async def test_same_owner_takes_over_at_once(postgres: str) -> None:
    async with PostgresStore(postgres) as store:
        first = await store.hold("s", owner="worker-1")
        with pytest.raises(SessionBusy):
            await store.hold("s", owner="worker-2")
        second = await store.hold("s", owner="worker-1")
        with pytest.raises(SessionBusy):
            await first.append(said("old"))
        await second.append(said("new"))
        await first.release()
        with pytest.raises(SessionBusy):  # releasing a lost lease does not release the new one
            await store.hold("s")
        await second.release()


async def test_extreme_limits_and_letters_are_as_in_other_stores(postgres: str) -> None:
    async with PostgresStore(postgres) as store:
        await check_extremes(store)


async def test_fork_into_an_id_that_is_held_fails(postgres: str) -> None:
    async with PostgresStore(postgres) as store:
        await check_fork_into_held(store)


async def test_clock_of_a_machine_does_not_change_the_order(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = time.time()
    async with PostgresStore(postgres) as store:
        for name, behind in (("first", 0.0), ("slow", 3600.0), ("fast", -3600.0), ("last", 0.0)):
            with monkeypatch.context() as patch:
                patch.setattr(time, "time", lambda behind=behind: right - behind)
                hold = await store.hold(name)
                await hold.append(said(name))
                await hold.release()
        assert [entry.session_id for entry in await store.list()] == ["last", "fast", "slow", "first"]
        await store.fork("slow", "fork")
        fork = await store.find("fork")
        assert fork is not None and abs(fork.created_at - right) < LONG_SECONDS


async def test_earlier_attempt_never_takes_over_from_a_later_one(postgres: str) -> None:
    async with PostgresStore(postgres) as store:
        first = await store.hold("s", owner=name_attempt("w", 9))
        later = await store.hold("s", owner=name_attempt("w", 10))  # as numbers: "10" sorts before "9"
        for owner in (name_attempt("w", 9), "w", "w attempt", "", name_attempt("other", 11)):
            with pytest.raises(SessionBusy):
                await store.hold("s", owner=owner)
        with pytest.raises(SessionBusy):
            await first.append(said("old"))
        await later.append(said("new"))
        again = await store.hold("s", owner=name_attempt("w", 10))
        await again.release()
        await later.release()
        await (await store.hold("s", owner=name_attempt("w", 9))).release()  # it is free


async def test_leases_of_deleted_sessions_are_deleted(postgres: str) -> None:
    connection = await connect(postgres)

    async def leases() -> Any:
        return await connection.fetchval("SELECT count(*) FROM callwright_leases")

    async with PostgresStore(postgres) as store:
        held = await store.hold("held")
        for number in range(3):
            hold = await store.hold(f"s{number}")
            await hold.append(said("one"))
            await hold.release()
        await store.fork("s0", "fork")
        await (await store.hold("never written")).release()
        assert await leases() == 1
        # as an earlier version left it
        await connection.execute("INSERT INTO callwright_leases VALUES ('old', '', '', 3, '-infinity')")
        for name in ("s0", "s1", "fork"):
            await store.delete(name)
        assert await leases() == 1
        await held.append(said("still here"))
        await held.release()
    await connection.close()


async def test_lease_is_renewed(postgres: str) -> None:
    clock, connection = LoopClock(), await connect(postgres)

    async def expires() -> Any:
        return await connection.fetchval("SELECT expires FROM callwright_leases")

    async with PostgresStore(postgres, lease_seconds=600) as store, PostgresStore(postgres) as other:
        hold = await store.hold("s")
        for _ in range(3):
            before = await expires()
            clock.pass_seconds(200)
            while await expires() == before:  # noqa: ASYNC110 - the database has no event of ours
                await asyncio.sleep(0.01)
            with pytest.raises(SessionBusy):
                await other.hold("s")
        await hold.append(said("still mine"))
        await hold.release()
    await connection.close()


async def test_many_sessions_share_commits(postgres: str) -> None:
    async with PostgresStore(postgres, lease_seconds=3600) as store:  # renewals are commits too
        holds = [await store.hold(f"s{number}") for number in range(50)]
        before = await _commits(postgres)
        for turn in range(4):
            await asyncio.gather(*(hold.append(said(f"turn {turn}")) for hold in holds))
        commits = await _commits(postgres) - before
        await asyncio.gather(*(hold.release() for hold in holds))
        assert all(entry.records == 4 for entry in await store.list()) and commits < 60


async def test_large_records_do_not_become_one_statement(postgres: str) -> None:
    async with PostgresStore(postgres, lease_seconds=3600) as store:
        holds = [await store.hold(f"s{number}") for number in range(9)]
        before = await _commits(postgres)
        await asyncio.gather(*(hold.append(said("x" * 5_000_000)) for hold in holds))
        commits = await _commits(postgres) - before
        await asyncio.gather(*(hold.release() for hold in holds))
        assert all(entry.records == 1 for entry in await store.list()) and commits >= 3


async def _commits(address: str) -> int:
    connection = await connect(address)
    await connection.execute("SELECT pg_stat_clear_snapshot()")
    count = await connection.fetchval("SELECT pg_current_xact_id()::text::bigint")
    await connection.close()
    return int(count)


async def test_notes_keep_their_place(postgres: str) -> None:
    async with PostgresStore(postgres) as store:
        hold = await store.hold("s")
        for number in range(20):
            if number % 3:
                hold.note(said(str(number)))
            else:
                await hold.append(said(str(number)))
        await hold.release()
        assert texts_of(await store.read("s")) == [str(number) for number in range(20)]


async def test_another_process_continues(postgres: str) -> None:
    paid: list[int] = []

    @tool(effect=Effect.WRITE)
    async def pay(amount: int) -> str:
        """Pay."""
        paid.append(amount)
        return "paid"

    script = textwrap.dedent(
        f"""
        import asyncio
        from callwright import Agent, Executor, Registry, ToolCall, tool
        from callwright.sessions import PostgresStore
        from callwright.testing import ScriptedProvider

        @tool
        async def pay(amount: int) -> str:
            '''Pay.'''
            raise AssertionError

        async def main():
            async with PostgresStore({postgres!r}) as store:
                model = ScriptedProvider([ToolCall("1", "pay", {{"amount": 7}})])
                await Agent(model, executor=Executor(Registry(pay)), sessions=store).run("go", session="s")

        asyncio.run(main())
        """
    )
    done = await asyncio.to_thread(subprocess.run, [sys.executable, "-c", script], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    async with PostgresStore(postgres) as store:
        agent = Agent(ScriptedProvider("done"), executor=Executor(Registry(pay)), sessions=store)
        waiting = await agent.resume("s")
        assert isinstance(waiting, Paused) and waiting.questions[0].arguments == {"amount": 7}
        result = await agent.resume("s", Answers.approving(waiting.questions))
        assert isinstance(result, Done) and paid == [7]


async def test_damaged_record_is_named(postgres: str) -> None:
    async with PostgresStore(postgres) as store:
        hold = await store.hold("s")
        await hold.append(said("one"), said("two"))
        await hold.release()
        await execute(postgres, "UPDATE callwright_records SET body = '{' WHERE position = 1")
        with pytest.raises(SessionDamaged) as damaged:
            await store.read("s")
        assert list(damaged.value.faults) == [1] and len(damaged.value.readable) == 1


async def test_texts_that_databases_dislike(postgres: str) -> None:
    async with PostgresStore(postgres) as store:
        hold = await store.hold("s")
        await hold.append(said("nul \0, surrogate \ud800, quote ' \" \\"))
        hold.keep_output("o", "nul \0")
        await hold.release()
        assert texts_of(await store.read("s")) == ["nul \0, surrogate \ud800, quote ' \" \\"]
        assert await store.read_output("s", "o") == "nul \ufffd"


async def test_later_schema_is_refused(postgres: str) -> None:
    async with PostgresStore(postgres) as store:
        await store.list()
    await execute(postgres, "UPDATE callwright_schema SET version = 99")
    with pytest.raises(SessionError, match="version 99"):
        await PostgresStore(postgres).list()


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("postgresql://me:hunter2@127.0.0.1:1/none", "127.0.0.1:1/none cannot be used"),
        ("postgresql://127.0.0.1:1/none?user=me&password=hunter2", "127.0.0.1:1/none cannot be used"),
        ("postgresql://me:hunter2@127.0.0.1:1/none?x=a@hunter2", "of the given address cannot be used"),
        ("postgresql://me:hunter2?hunter2@127.0.0.1:1/none", "of the given address cannot be"),
        ("postgresql://me:hunter2/hunter2@127.0.0.1:1/none", "127.0.0.1:1/none cannot be read; expected"),
        ("postgresql://me:hunter2@127.0.0.1:99999/none", "127.0.0.1:99999/none cannot be read; expected"),
        ("postgresql://me:hunter2@127.0.0.1:1,/none", "127.0.0.1:1,/none cannot be read; expected"),
    ],
)
async def test_unreachable_database_is_named_without_password(address: str, message: str) -> None:
    with pytest.raises(SessionError) as failed:
        await PostgresStore(address).list()
    assert message in str(failed.value)
    assert "hunter2" not in "".join(traceback.format_exception(failed.value))


async def test_database_that_does_not_answer_is_named_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("callwright.sessions.postgres_connection._CONNECT_SECONDS", 0.05)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = f"127.0.0.1:{silent.getsockname()[1]}/none"
        with pytest.raises(SessionError, match=f"{address} cannot be used: it did not answer in time"):
            await PostgresStore(f"postgresql://me@{address}").list()


@pytest.mark.parametrize(
    "wrong",
    [
        {"address": "sqlite:///x"},
        {"address": "postgresql+asyncpg://me:hunter2@host/name"},
        {"address": "host=h password=hunter2"},
        {"lease_seconds": 0},
        {"lease_seconds": float("inf")},
        {"connections": 0},
    ],
)
def test_bad_arguments_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as failed:
        arguments: dict[str, Any] = {"address": "postgresql://x/y", **wrong}
        PostgresStore(**arguments)
    assert "hunter2" not in str(failed.value)


WRITER = """
import asyncio, os, signal, sys
from callwright.core.messages import UserMessage
from callwright.sessions import PostgresStore
from callwright.sessions.records import Said

async def write(hold):
    number = len(hold.records)
    while True:
        await hold.append(Said(UserMessage(str(number))))
        print(hold.session_id, number, flush=True)  # confirmed: it must never be lost
        if hold.session_id == "s0" and number == len(hold.records):  # the first of this process
            asyncio.get_running_loop().call_later(float(sys.argv[2]), os.kill, os.getpid(), signal.SIGKILL)
        number += 1

async def main():
    async with PostgresStore(sys.argv[1], lease_seconds=0.2) as store:
        holds = [await store.hold(f"s{n}", owner="writer") for n in range(4)]
        await asyncio.gather(*map(write, holds))

asyncio.run(main())
"""


async def test_killed_writers_lose_no_confirmed_record(postgres: str) -> None:
    confirmed: dict[str, int] = {}
    for number in range(10):
        command = [sys.executable, "-c", WRITER, postgres, str(0.05 + 0.01 * number)]
        done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=False)
        assert done.returncode == -9, done.stderr
        for line in done.stdout.splitlines():
            session, position = line.split()
            confirmed[session] = max(confirmed.get(session, -1), int(position))
    async with PostgresStore(postgres) as store:
        assert confirmed
        for session, last in confirmed.items():
            stored = texts_of(await store.read(session))
            assert len(stored) > last and stored == [str(n) for n in range(len(stored))]


async def test_writer_that_stands_still_blocks_no_other_process(postgres: str) -> None:
    """A process that is stopped between preparing a statement and running it holds locks on the tables."""
    async with PostgresStore(postgres) as store:
        await (await store.hold("s")).release()
        connection = await connect(postgres)
        async with connection.transaction():
            await connection.execute("LOCK TABLE callwright_sessions, callwright_leases IN ROW EXCLUSIVE MODE")
            async with asyncio.timeout(LONG_SECONDS), PostgresStore(postgres) as other:
                hold = await other.hold("s")
                await hold.append(Said(UserMessage("hi")))
                await hold.release()
        await connection.close()


async def test_failed_store_can_be_closed(postgres: str) -> None:
    async with PostgresStore(postgres) as store:
        await store.list()
    await execute(postgres, "UPDATE callwright_schema SET version = 99")
    async with PostgresStore(postgres) as late:
        with pytest.raises(StoreTooNew):
            await late.list()


async def test_listener_hears_of_every_append(postgres: str) -> None:
    async with PostgresStore(postgres) as here, PostgresStore(postgres) as there:
        hold, other = await there.hold("heard"), await there.hold("other")
        async with here.listen("heard") as changed, here.listen("heard") as also:
            await other.append(said("not about this one"))
            for number in range(3):
                changed.clear()
                await hold.append(said(str(number)))
                await asyncio.wait_for(changed.wait(), LONG_SECONDS)
                assert len(await here.read("heard")) == number + 1
            assert also.is_set()
            changed.clear()
            await other.append(said("again"))
            await here.read("heard")
            assert not changed.is_set()
        await hold.release()
        await other.release()


async def test_error_of_the_listening_caller_stays_what_it_is(postgres: str) -> None:
    async with PostgresStore(postgres) as store:
        with pytest.raises(TimeoutError):
            async with store.listen("s") as changed:
                await asyncio.wait_for(changed.wait(), 0)
