"""`PostgresStore` when connections are lost, callers are cancelled and holders stand still."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import pytest
from tests.sessions.conftest import connect, execute, said, texts_of
from tests.waiting import LONG_SECONDS, LoopClock, close_stream

from callwright import Agent
from callwright.sessions import PostgresStore, SessionBusy, SessionError
from callwright.sessions.base import SessionMissing
from callwright.sessions.postgres_connection import Connections
from callwright.sessions.records import Record
from callwright.testing import ScriptedProvider

pytestmark = pytest.mark.timeout(600)
BLOCKED = "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
OTHERS = "FROM pg_stat_activity WHERE datname = '{name}' AND pid <> pg_backend_pid()"


@asynccontextmanager
async def locked(postgres: str, table: str) -> AsyncGenerator[Any]:
    """Let nothing write a table; gives the connection that holds the lock."""
    connection = await connect(postgres)
    try:
        async with connection.transaction():
            await connection.execute(f"LOCK TABLE {table} IN EXCLUSIVE MODE")
            yield connection
    finally:
        await connection.close()


async def until_blocked(connection: Any) -> int:
    """Wait until a statement waits for a lock; return its process."""
    async with asyncio.timeout(LONG_SECONDS):
        while True:
            await connection.execute("SELECT pg_stat_clear_snapshot()")  # within a transaction it stays as it was
            if found := await connection.fetch(BLOCKED):
                return int(found[0][0])
            await asyncio.sleep(0.01)


def end_connections(postgres: str) -> None:
    """End the connections of a database while this event loop stands still, so that it learns of it too late."""
    place, _, name = postgres.rpartition("/")

    async def end() -> None:
        connection = await connect(f"{place}/postgres")
        others = OTHERS.format(name=name)
        while await connection.fetchval(f"SELECT count(*) {others}"):
            await connection.execute(f"SELECT pg_terminate_backend(pid) {others}")
            await asyncio.sleep(0.01)
        await connection.close()

    thread = threading.Thread(target=lambda: asyncio.run(end()))
    thread.start()
    thread.join()


class Proxy:
    """Stands between a store and its server, and can hold back or swallow what the server replies."""

    def __init__(self, postgres: str) -> None:
        place = urlsplit(postgres)
        self._server = place.hostname, place.port
        self._path = place.path
        self.cut_at = b""
        """Ends the connection instead of bringing a reply that contains this."""
        self.drop = b""
        """A request that contains this does not arrive."""
        self.dropped = asyncio.Event()
        self.open = asyncio.Event()
        self.open.set()
        self.address = ""
        self._serving: list[asyncio.Future[None]] = []

    @asynccontextmanager
    async def run(self) -> AsyncGenerator["Proxy"]:
        listening = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.address = f"postgresql://tester@127.0.0.1:{listening.sockets[0].getsockname()[1]}{self._path}"
        try:
            yield self
        finally:
            listening.close()
            for task in self._serving:
                task.cancel()
            await asyncio.gather(*self._serving, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._serving.append(asyncio.ensure_future(self._serve(reader, writer)))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        replies, requests = await asyncio.open_connection(*self._server)
        ways = self._ask(reader, requests), self._reply(replies, writer)
        tasks = [asyncio.ensure_future(way) for way in ways]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(close_stream(requests), close_stream(writer), *tasks, return_exceptions=True)

    async def _ask(self, reader: asyncio.StreamReader, requests: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            if self.drop and self.drop in data:
                self.dropped.set()
            else:
                requests.write(data)

    async def _reply(self, replies: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await replies.read(65536):
            if self.cut_at and self.cut_at in data:
                self.cut_at = b""
                return
            await self.open.wait()
            writer.write(data)


async def test_idle_connections_that_were_ended_cost_nothing(postgres: str) -> None:
    async with PostgresStore(postgres) as store:
        holds = [await store.hold(name) for name in "ab"]
        await asyncio.gather(*(hold.append(said("one")) for hold in holds))
        end_connections(postgres)
        await holds[0].append(said("two"))
        end_connections(postgres)
        await asyncio.gather(*(hold.append(said("three")) for hold in holds))
        end_connections(postgres)
        holds[0].keep_output("o", "whole")
        await holds[0].release()
        end_connections(postgres)
        assert texts_of(await store.read("a")) == ["one", "two", "three"]
        assert texts_of(await store.read("b")) == ["one", "three"]
        assert await store.read_output("a", "o") == "whole"
        end_connections(postgres)
        await (await store.hold("a")).release()
        await holds[1].release()


async def test_server_that_is_away_is_told_to_callers_only(postgres: str, caplog: pytest.LogCaptureFixture) -> None:
    async with Proxy(postgres).run() as proxy:
        store = PostgresStore(proxy.address)
        await store.version()
    with pytest.raises(SessionError, match="cannot be used"):  # nothing listens there any more
        await store.version()
    await asyncio.sleep(0.2)  # the driver's own attempts to connect
    assert not caplog.records
    await store.aclose()


async def test_append_whose_reply_was_lost_is_stored_once(postgres: str) -> None:
    async with Proxy(postgres).run() as proxy, PostgresStore(proxy.address) as store:
        holds = [await store.hold(name) for name in "ab"]
        await holds[0].append(said("one"))
        for text in ("two", "three"):
            proxy.cut_at = b"SELECT 1\0"  # what the server says after the commit
            await holds[0].append(said(text))
            assert not proxy.cut_at
        proxy.cut_at = b"SELECT 2\0"
        await asyncio.gather(*(hold.append(said("together")) for hold in holds))
        assert not proxy.cut_at
        await asyncio.gather(*(hold.release() for hold in holds))
        assert texts_of(await store.read("a")) == ["one", "two", "three", "together"]
        assert texts_of(await store.read("b")) == ["together"]


async def test_lease_whose_taking_was_interrupted_is_free(postgres: str) -> None:
    connection = await connect(postgres)
    async with Proxy(postgres).run() as proxy, PostgresStore(proxy.address) as store, PostgresStore(postgres) as other:
        await other.list()
        await store.list()
        proxy.open.clear()
        taking = asyncio.ensure_future(store.hold("s"))
        async with asyncio.timeout(LONG_SECONDS):
            while not await connection.fetchval("SELECT count(*) FROM callwright_leases"):
                await asyncio.sleep(0.01)
                proxy.open.set()  # the reply to the preparation; that of the statement comes later
                await asyncio.sleep(0)
                proxy.open.clear()
            taking.cancel()
            proxy.open.set()
            with pytest.raises(asyncio.CancelledError):
                await taking
        await (await other.hold("s")).release()
    await connection.close()


async def test_deleted_session_of_a_holder_that_stood_still(postgres: str) -> None:
    async with PostgresStore(postgres) as store, PostgresStore(postgres) as other:
        zombie = await store.hold("s")
        await zombie.append(said("one"), said("two"))
        await execute(postgres, "UPDATE callwright_leases SET expires = now() - interval '1 second'")
        await other.delete("s")
        with pytest.raises(SessionBusy, match="taken over"):
            await zombie.append(said("three"))  # would be a session that begins with its third record
        await zombie.release()
        assert not await other.list()
        hold = await other.hold("s")
        await hold.append(said("anew"))
        with pytest.raises(SessionBusy):
            await other.delete("s")
        await hold.release()
        assert texts_of(await other.read("s")) == ["anew"]


async def test_release_waits_for_a_cancelled_append(postgres: str) -> None:
    async with PostgresStore(postgres) as store, PostgresStore(postgres) as other:
        hold = await store.hold("s")
        async with locked(postgres, "callwright_records") as connection:
            appending = asyncio.ensure_future(hold.append(said("one")))
            await until_blocked(connection)
            appending.cancel()
            with pytest.raises(asyncio.CancelledError):
                await appending
            releasing = asyncio.ensure_future(hold.release())
            await store.list()  # time enough for a release that does not wait
            assert not releasing.done()
        await releasing
        again = await other.hold("s")
        assert texts_of(again.records) == ["one"]
        await again.release()
        assert not await store.renew(hold)  # a late renewal must not make it busy again
        await (await other.hold("s")).release()


async def test_closed_store_gives_its_sessions_up(postgres: str) -> None:
    store, clock = PostgresStore(postgres), LoopClock()
    hold = await store.hold("s")
    hold.note(said("one"))
    await store.aclose()
    for _ in range(3):
        with pytest.raises(SessionError, match="closed"):
            await hold.append(said("two"))
    clock.pass_seconds(20)
    for _ in range(5):
        await asyncio.sleep(0)
    connection = await connect(postgres)
    name = postgres.rpartition("/")[2]
    async with asyncio.timeout(LONG_SECONDS):
        while await connection.fetchval(f"SELECT count(*) {OTHERS.format(name=name)}"):  # noqa: ASYNC110 - they end
            await asyncio.sleep(0.01)
    await connection.close()
    async with PostgresStore(postgres) as other:
        assert texts_of(await other.read("s")) == ["one"]


async def test_hold_of_a_closed_store_opens_nothing(postgres: str, caplog: pytest.LogCaptureFixture) -> None:
    store = PostgresStore(postgres)
    hold = await store.hold("s")
    await hold.append(said("one"))
    hold.keep_output("o", "whole")
    await store.aclose()
    await hold.release()
    connection = await connect(postgres)
    name = postgres.rpartition("/")[2]
    async with asyncio.timeout(LONG_SECONDS):
        while await connection.fetchval(f"SELECT count(*) {OTHERS.format(name=name)}"):  # noqa: ASYNC110 - they end
            await asyncio.sleep(0.01)
    await connection.close()
    async with PostgresStore(postgres) as other:
        assert await other.read_output("s", "o") == "whole"
        await (await other.hold("s")).release()  # its lease was given up
    assert not caplog.records


async def test_close_ends_while_the_server_does_not_answer(postgres: str) -> None:
    clock = LoopClock()
    async with Proxy(postgres).run() as proxy:
        store = PostgresStore(proxy.address)
        await (await store.hold("s")).append(said("one"))
        proxy.open.clear()
        closing = asyncio.ensure_future(store.aclose())
        for _ in range(60):
            clock.pass_seconds(1)
            await asyncio.wait([closing], timeout=0.001)
        assert closing.done()


def test_event_loops_that_end_leave_no_connections(postgres: str) -> None:
    store = PostgresStore(postgres)
    for text in ("one", "two"):
        result = Agent(ScriptedProvider(text), sessions=store).run_sync("go", session="s")
        assert result.text == text
    asyncio.run(store.hold("s"))  # never released
    assert len(asyncio.run(store.read("s"))) == 4

    async def end() -> None:
        place, _, name = postgres.rpartition("/")
        connection = await connect(f"{place}/postgres")
        async with asyncio.timeout(LONG_SECONDS):
            while await connection.fetchval(f"SELECT count(*) {OTHERS.format(name=name)}"):  # noqa: ASYNC110 - they end
                await asyncio.sleep(0.01)
        await connection.close()
        async with store:
            await (await store.hold("s")).release()

    asyncio.run(end())


@pytest.mark.parametrize("foreign", ["a\0b", "a\udc80"])
async def test_id_that_the_database_cannot_hold_is_missing(postgres: str, foreign: str) -> None:
    async with PostgresStore(postgres) as store:
        hold = await store.hold("s")
        await hold.append(said("one"))
        await hold.release()
        for asked in (store.read(foreign), store.delete(foreign), store.rename(foreign, "t"), store.fork(foreign, "t")):
            with pytest.raises(SessionMissing, match="there is no session"):
                await asked
        assert await store.read_output("s", foreign) is None
        assert await store.read_output(foreign, "o") is None


async def test_fork_of_a_session_that_is_deleted_meanwhile_fails(postgres: str) -> None:
    class DeletesWhatItReads(PostgresStore):
        async def read(self, session_id: str) -> Sequence[Record]:
            records = await super().read(session_id)
            await self.delete(session_id)
            return records

    async with DeletesWhatItReads(postgres) as store:
        hold = await store.hold("s")
        await hold.append(said("one"))
        await hold.release()
        with pytest.raises(SessionMissing, match="there is no session 's'"):
            await store.fork("s", "fork")
        assert not await store.list()


async def test_fork_that_the_database_refuses_tells_why(postgres: str) -> None:
    async with PostgresStore(postgres) as store:
        hold = await store.hold("s")
        await hold.append(said("one"))
        await hold.release()
        await execute(postgres, "ALTER TABLE callwright_sessions ADD CHECK (id <> 'fork')")
        with pytest.raises(SessionError) as failed:
            await store.fork("s", "fork")
        assert type(failed.value.__cause__).__name__ == "CheckViolationError"


async def test_no_append_waits_for_a_writer_that_was_stopped(postgres: str) -> None:
    async with PostgresStore(postgres) as store, asyncio.timeout(LONG_SECONDS):
        holds = [await store.hold(name) for name in "ab"]
        known = asyncio.all_tasks()
        async with locked(postgres, "callwright_records") as connection:
            appends = [asyncio.ensure_future(holds[0].append(said("under way")))]
            await until_blocked(connection)
            appends.append(asyncio.ensure_future(holds[1].append(said("waits"))))
            await asyncio.sleep(0)
            for task in asyncio.all_tasks() - known - {*appends}:
                task.cancel()
            for append in appends:
                with pytest.raises(SessionError, match="was stopped"):
                    await append
        for hold in holds:
            with pytest.raises(SessionError, match="was stopped"):
                await hold.append(said("later"))
            await hold.release()


async def test_lost_output_does_not_stop_the_session(postgres: str, caplog: pytest.LogCaptureFixture) -> None:
    async with PostgresStore(postgres) as store:
        hold = await store.hold("s")
        await hold.append(said("one"))
        await execute(postgres, "DROP TABLE callwright_outputs")
        hold.keep_output("o", "whole")
        await hold.append(said("two"))
        await hold.release()
        assert texts_of(await store.read("s")) == ["one", "two"]
        assert "an output of session 's' was not kept" in caplog.text


async def test_failed_release_does_not_fail_a_run_that_is_done(postgres: str, caplog: pytest.LogCaptureFixture) -> None:
    async with PostgresStore(postgres) as store:
        hold = await store.hold("s")
        await hold.append(said("one"))
        await execute(postgres, "ALTER TABLE callwright_leases RENAME TO away")
        await hold.release()
        assert "session 's' stays busy until its lease runs out" in caplog.text
        assert texts_of(await store.read("s")) == ["one"]


async def test_writer_that_never_began_is_replaced(postgres: str) -> None:
    async with PostgresStore(postgres) as store, asyncio.timeout(LONG_SECONDS):
        hold, known = await store.hold("s"), asyncio.all_tasks()
        hold.note(said("one"))
        for task in asyncio.all_tasks() - known:
            task.cancel()
        await asyncio.sleep(0)
        await hold.append(said("two"))
        await hold.release()
        assert texts_of(await store.read("s")) == ["one", "two"]


async def test_listener_hears_again_after_its_connection_was_lost(postgres: str) -> None:
    place, _, name = postgres.rpartition("/")
    listening = f"SELECT pid FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND datname = '{name}'"
    connection = await connect(f"{place}/postgres")
    async with PostgresStore(postgres) as store, asyncio.timeout(LONG_SECONDS), store.listen("s") as changed:
        hold = await store.hold("s")
        lost = await connection.fetchval(listening)
        await connection.execute("SELECT pg_terminate_backend($1)", lost)
        await changed.wait()
        while await connection.fetchval(listening) in (None, lost):  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.01)
        await store.list()
        changed.clear()
        await hold.append(said("one"))
        await changed.wait()
        await hold.release()
    await connection.close()


async def test_cancelled_listener_leaves_no_deaf_connection(postgres: str) -> None:
    async with Proxy(postgres).run() as proxy, PostgresStore(proxy.address) as store:
        hold, listening = await store.hold("s"), asyncio.Event()

        async def listen() -> None:
            async with store.listen("s") as changed:
                listening.set()
                await changed.wait()

        async with asyncio.timeout(LONG_SECONDS):
            proxy.drop = b"LISTEN"
            first = asyncio.ensure_future(listen())
            await proxy.dropped.wait()
            proxy.drop = b""
            second = asyncio.ensure_future(listen())
            await asyncio.sleep(0)
            first.cancel()
            await listening.wait()
            await hold.append(said("one"))
            await second
        await hold.release()


async def test_append_ends_when_connections_are_lost(postgres: str) -> None:
    place, _, name = postgres.rpartition("/")
    query = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
    confirmed: list[str] = []

    async def cut() -> None:
        """End the connections of the database in the middle of the work, again and again."""
        connection = await connect(f"{place}/postgres")
        for number in range(12):
            before = len(confirmed)
            while len(confirmed) < before + 3:  # noqa: ASYNC110 - the writers go on
                await asyncio.sleep(0.001 * (number % 3))
            await connection.execute(query)
        await connection.close()

    async def write(store: PostgresStore, session: str) -> None:
        while not cutting.done():
            try:
                hold = await store.hold(session, owner="me")
                number = len(hold.records)
                while not cutting.done():
                    hold.note(said(f"{session} {number}"))  # waits when the append behind it does: both or neither
                    await hold.append(said(f"{session} {number + 1}"))
                    confirmed.append(f"{session} {number + 1}")
                    number += 2
            except SessionError:
                await asyncio.sleep(0.01)

    async with PostgresStore(postgres) as store, asyncio.timeout(LONG_SECONDS):
        await store.list()
        cutting = asyncio.ensure_future(cut())
        await asyncio.gather(*(write(store, f"s{n}") for n in range(4)))
    async with PostgresStore(postgres) as store:
        for entry in await store.list():
            stored = texts_of(await store.read(entry.session_id))
            assert stored == [f"{entry.session_id} {n}" for n in range(len(stored))]
            assert {text for text in confirmed if text.startswith(entry.session_id)} <= {*stored}


async def test_nothing_is_added_after_a_record_that_was_lost(postgres: str) -> None:
    async with PostgresStore(postgres) as store, asyncio.timeout(LONG_SECONDS):
        hold = await store.hold("s", owner="me")
        await hold.append(said("one"))
        async with locked(postgres, "callwright_records") as connection:
            hold.note(said("two"))
            lost = await until_blocked(connection)
            hold.note(said("three"))  # waits for the next commit
            await connection.execute("SELECT pg_terminate_backend($1)", lost)
            while (again := await until_blocked(connection)) == lost:  # noqa: ASYNC110 - it tries a second time
                await asyncio.sleep(0.01)
            await connection.execute("SELECT pg_terminate_backend($1)", again)
        with pytest.raises(SessionError, match="cannot be used"):
            await hold.append(said("four"))
        await hold.release()
        hold = await store.hold("s", owner="me")
        await hold.append(said("five"))
        await hold.release()
        assert texts_of(await store.read("s")) == ["one", "five"]


async def test_record_that_was_committed_before_its_connection_was_lost(postgres: str) -> None:
    async with PostgresStore(postgres) as store:
        hold = await store.hold("s")
        await hold.append(said("one"))
        connection = await connect(postgres)
        bodies = [store.encode(said(text)) for text in ("two", "other")]
        insert = "INSERT INTO callwright_records SELECT key, $1, 1.0, $2 FROM callwright_sessions"
        await connection.execute(insert, 1, bodies[0])
        await hold.append(said("two"))  # as stored: the reply to the first attempt was lost
        await connection.execute(insert, 2, bodies[1])
        with pytest.raises(SessionError):
            await hold.append(said("three"))
        await connection.close()
        await hold.release()
        assert texts_of(await store.read("s")) == ["one", "two", "other"]


async def limit_connections(postgres: str, most: int) -> str:
    """Return the address for a user of whom the server accepts so many connections; the usual one has no limit."""
    async with PostgresStore(postgres) as store:  # makes the tables
        await store.list()
    made = "IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'few') THEN CREATE ROLE few LOGIN; END IF"
    rights = "GRANT ALL ON SCHEMA public TO few; GRANT ALL ON ALL TABLES IN SCHEMA public TO few"
    await execute(postgres, f"DO $$ BEGIN {made}; END $$; ALTER ROLE few CONNECTION LIMIT {most}; {rights}")
    return postgres.replace("tester@", "few@")


async def test_server_with_few_connections_left_is_waited_for(postgres: str) -> None:
    address = await limit_connections(postgres, 2)
    async with PostgresStore(address, connections=10) as store:

        async def write(number: int) -> None:
            hold = await store.hold(f"s{number}")
            for _ in range(5):
                await hold.append(said("x"))
                await store.read(f"s{number}")
            await hold.release()

        await asyncio.gather(*(write(number) for number in range(30)))
        assert sum([entry.records for entry in await store.list()]) == 150
        await write(30)  # alone, also if the pool offers what was refused first


async def test_cancelled_caller_leaves_its_connection_to_others(postgres: str) -> None:
    address = await limit_connections(postgres, 1)
    async with PostgresStore(address, connections=10) as store:
        for _ in range(20):
            reading = [asyncio.ensure_future(store.list()) for _ in range(6)]
            await asyncio.sleep(0)
            for each in reading[::2]:
                each.cancel()
            ended = await asyncio.gather(*reading, return_exceptions=True)
            assert [each for each in ended[1::2] if isinstance(each, BaseException)] == []
        assert await asyncio.wait_for(store.list(), LONG_SECONDS) == []


async def test_server_without_a_connection_left_is_told(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("callwright.sessions.postgres_connection._CONNECT_SECONDS", 1)
    address = await limit_connections(postgres, 1)
    other = await connect(address)
    async with PostgresStore(address) as store:
        with pytest.raises(SessionError, match="too many connections"):
            await store.list()
        await other.close()
        assert await store.list() == []


class OnePlace:
    """A pool of a server that accepts one connection, and that connection."""

    def __init__(self) -> None:
        self._taken = False
        self.released: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def acquire(self) -> "OnePlace":
        if self._taken:
            raise asyncpg.TooManyConnectionsError("too many connections")
        self._taken = True
        return self

    async def release(self, connection: object) -> None:
        self._taken = False
        if not self.released.done():
            self.released.set_result(None)

    def get_idle_size(self) -> int:
        return 0

    async def fetch(self, query: str) -> list[str]:
        if query == "for ever":
            await asyncio.Event().wait()
        return [query]


async def test_caller_that_is_cancelled_when_it_is_woken_wakes_the_next() -> None:
    pool = OnePlace()
    connections = Connections(pool, 1)
    first, second, third = [asyncio.ensure_future(connections.fetch(each)) for each in ("for ever", "two", "three")]
    for _ in range(3):  # until the others wait for the connection of the first
        await asyncio.sleep(0)
    pool.released.add_done_callback(lambda _: second.cancel())  # called before the second goes on
    first.cancel()
    assert await third == ["three"]
    assert first.cancelled() and second.cancelled()
