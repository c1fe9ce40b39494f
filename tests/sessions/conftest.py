"""A real PostgreSQL server for the tests that need one, and records to store."""

import asyncio
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from tests.waiting import find_port

from callwright.core.messages import UserMessage
from callwright.sessions import SessionError, SessionStore
from callwright.sessions.records import Record, Said

connect: Any = getattr(asyncpg, "connect")  # noqa: B009 - it has no types


def said(text: str) -> Said:
    return Said(UserMessage(text))


def texts_of(records: Sequence[Record]) -> list[object]:
    return [
        record.message.content
        for record in records
        if isinstance(record, Said) and isinstance(record.message, UserMessage)
    ]


async def execute(address: str, statement: str) -> None:
    """Run a statement on a connection of its own."""
    connection = await connect(address)
    await connection.execute(statement)
    await connection.close()


async def check_extremes(store: SessionStore) -> None:
    """Read, list and search with numbers that databases do not take, and letters that they fold differently."""
    hold = await store.hold("s")
    await hold.append(*(said(text) for text in ("\u0130stanbul", "Istanbul", "\u00c4rger \u00e4rger")))
    await hold.release()
    for position in (2**31, 2**63, 2**70):
        assert not await store.read_from("s", position)
    for most in (-1, 0, -(2**70)):
        assert not await store.read_from("s", limit=most)
        assert not await store.list(limit=most) and not await store.search("istanbul", limit=most)
    for most in (2**31, 2**63, 2**70):
        assert len(await store.read_from("s", limit=most)) == 3
        assert len(await store.list(limit=most)) == 1 and len(await store.search("istanbul", limit=most)) == 1
    for query, where in (("\u0130", [0]), ("ISTANBUL", [1]), ("\u00c4RGER", [2]), ("i\u0307", []), ("\u00c4", [2])):
        assert [hit.position for hit in await store.search(query)] == where, ascii(query)
    (hit,) = await store.search("RGER \u00e4")
    assert "\u00c4rger \u00e4rger" in hit.excerpt
    assert await store.read_output("s", "o") is None and await store.read_output("other", "o") is None


async def check_fork_into_held(store: SessionStore) -> None:
    """A run that holds the new id has not written yet; the fork fails, and not that run."""
    origin, held = await store.hold("s"), await store.hold("t")
    await origin.append(said("go"))
    with pytest.raises(SessionError, match=r"session 't' already exists; choose another id"):
        await store.fork("s", "t")
    await held.append(said("first"))
    assert len(await store.read("t")) == 1
    await held.release()
    await origin.release()
    with pytest.raises(SessionError, match=r"session 't' already exists; choose another id"):
        await store.fork("s", "t")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run what needs the server with the slow tests: each worker would start its own."""
    for item in items:
        if "postgres" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)


def _find_programs() -> Path | None:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if found:
        return found[-1].parent
    initdb = shutil.which("initdb")
    return Path(initdb).parent if initdb else None


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The address of a server on loopback, started for this test run."""
    programs = _find_programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        data = Path(folder, "data")
        data.mkdir(mode=0o700)
        user: int | None = None
        if os.getuid() == 0:  # initdb refuses root
            try:
                user = pwd.getpwnam("postgres").pw_uid
            except KeyError:
                user = pwd.getpwnam("nobody").pw_uid
            Path(folder).chmod(0o755)
            os.chown(data, user, -1)

        def run(*command: str) -> None:
            subprocess.run(
                [str(programs / command[0]), *command[1:]], user=user, check=True, capture_output=True, cwd="/"
            )

        run("initdb", "-D", str(data), "-A", "trust", "-U", "tester", "--no-sync")
        port = find_port()
        options = (
            f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off -c autovacuum=off"
        )
        run("pg_ctl", "-D", str(data), "-w", "-t", "300", "-l", str(data / "log"), "-o", options, "start")
        try:
            yield f"postgresql://tester@127.0.0.1:{port}"
        finally:
            run("pg_ctl", "-D", str(data), "-m", "immediate", "stop")


@pytest.fixture
def postgres(postgres_server: str) -> str:
    """The address of an empty database: always the same one, because the files of each take long to remove."""

    async def empty() -> None:
        connection = await connect(f"{postgres_server}/postgres")
        if not await connection.fetchval("SELECT count(*) FROM pg_database WHERE datname = 'tests'"):
            await connection.execute("CREATE DATABASE tests")
        await connection.close()
        connection = await connect(f"{postgres_server}/tests")
        # what the test before left connected would keep its locks
        await connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        await connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        await connection.close()

    asyncio.run(empty())
    return f"{postgres_server}/tests"
