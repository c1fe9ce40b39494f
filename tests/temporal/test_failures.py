"""What does not work is one clear error, and never retried without end; and the commands."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from tests.temporal.conftest import HERE, PATIENCE_SECONDS, Cluster, plan, start_server, wait_for_questions
from tests.waiting import find_port

from callwright import Answers, Done
from callwright.core.messages import ToolMessage, UserMessage
from callwright.sessions import PostgresStore, StoreTooNew, record_answers
from callwright.sessions.records import Said
from callwright.temporal import RunFailed, Runs, TemporalError

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
connect: Any = getattr(asyncpg, "connect")  # noqa: B009 - it has no types


async def test_unknown_agent_fails_at_once(cluster: Cluster, runs: Runs) -> None:
    cluster.start_worker("agent")
    run = await runs.start("dsek", plan("note"), session="s1")
    with pytest.raises(RunFailed, match="there is no agent 'dsek' on this queue; its worker has: desk") as failed:
        await run.result()
    assert failed.value.kind == "UnknownAgent"
    assert (await run.info()).status == "failed"
    again = await runs.start("desk", plan("keyed"), session="s1")
    assert isinstance(await again.result(), Done)


async def test_database_that_is_gone_ends_the_run(cluster: Cluster) -> None:
    cluster.start_worker("agent")
    async with PostgresStore(cluster.store) as store:
        runs = await Runs.connect(cluster.address, sessions=store, queue=cluster.queue, attempts=3)
        run = await runs.start("desk", plan("note", "note", seconds=0.5), session="gone")
        await cluster.wait_for_effects(1)
    address, _, name = cluster.store.rpartition("/")
    connection = await connect(f"{address}/postgres")
    await connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
    await connection.close()
    with pytest.raises(RunFailed, match="cannot be used") as failed:
        await run.result()
    assert failed.value.kind == "SessionError"
    assert not cluster.find_doubled()


async def test_lost_connections_to_the_database_cost_nothing(cluster: Cluster) -> None:
    cluster.start_worker("agent")
    address, _, name = cluster.store.rpartition("/")
    query = f"SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = '{name}'"
    async with PostgresStore(cluster.store) as store:
        runs = await Runs.connect(cluster.address, sessions=store, queue=cluster.queue, attempts=200)
        started = [await runs.start("desk", plan(*["note keyed"] * 6, seconds=0.1), session=f"s{n}") for n in range(3)]
        connection, cut = await connect(f"{address}/postgres"), 0
        for number in range(6):
            await cluster.wait_for_effects(2 * number + 2)
            for _ in range(200):  # until the worker is connected again; it may have made all its calls
                if ended := await connection.fetchval(query):
                    cut += ended
                    break
                await asyncio.sleep(0.01)
        await connection.close()
    async with PostgresStore(cluster.store) as store:
        runs = await Runs.connect(cluster.address, sessions=store, queue=cluster.queue)
        for run in started:
            assert isinstance(await runs.get(run.session_id).result(), Done)
            said = [record.message for record in await store.read(run.session_id) if isinstance(record, Said)]
            assert sum(isinstance(message, UserMessage) for message in said) == 1
            assert sum(isinstance(message, ToolMessage) for message in said) == 6
    assert cut and not cluster.find_doubled()


async def test_server_that_is_killed_and_comes_back_costs_nothing(
    postgres: str, tmp_path: Path, farm: "subprocess.Popen[str]"
) -> None:
    port = find_port()
    server = start_server(port, str(tmp_path))
    cluster = Cluster(f"127.0.0.1:{port}", postgres, tmp_path, farm)
    try:
        cluster.start_worker("agent", "asking")
        async with PostgresStore(postgres) as store:
            runs = await Runs.connect(cluster.address, sessions=store, queue=cluster.queue, turns=2, attempts=200)
            await runs.start("desk", plan(*["note keyed"] * 8, seconds=0.1), session="s1")
            asking = await runs.start("asking", plan("note"), session="s2")
            (question,) = await wait_for_questions(asking)
            await cluster.wait_for_effects(4, "s1")
            server.kill()
            server.wait()
            await record_answers(store, "s2", Answers().approve(question))  # needs no server
            server = start_server(port, str(tmp_path))
            runs = await Runs.connect(cluster.address, sessions=store, queue=cluster.queue)
            result = await asyncio.wait_for(runs.get("s1").result(), PATIENCE_SECONDS)
            assert isinstance(result, Done) and result.text == "done after 8 turns"
            assert isinstance(await asyncio.wait_for(runs.get("s2").result(), PATIENCE_SECONDS), Done)
        assert not cluster.find_doubled()
        assert sum(words[:2] == ["note", "s2"] for words in cluster.read_effects()) == 1
    finally:
        cluster.end()
        server.kill()
        server.wait()


async def test_damaged_session_fails_at_once(cluster: Cluster, runs: Runs) -> None:
    cluster.start_worker("agent")
    await (await runs.start("desk", plan("keyed"), session="s1")).result()
    connection = await connect(cluster.store)
    await connection.execute("UPDATE callwright_records SET body = '{' WHERE position = 1")
    await connection.close()
    run = await runs.start("desk", plan("keyed"), session="s1")
    with pytest.raises(RunFailed) as failed:
        await run.result()
    assert failed.value.kind == "SessionDamaged"


async def test_later_schema_is_refused(cluster: Cluster, runs: Runs) -> None:
    await runs.waiting()
    connection = await connect(cluster.store)
    await connection.execute("UPDATE callwright_schema SET version = 99")
    await connection.close()
    refused = cluster.call("desk:agent", command="worker")
    assert refused.returncode == 1 and "version 99" in refused.stderr
    async with PostgresStore(cluster.store) as store:
        late = await Runs.connect(cluster.address, sessions=store, queue=cluster.queue)
        with pytest.raises(StoreTooNew):
            await late.start("desk", plan("note"), session="late")


async def test_run_that_does_not_exist_is_named(cluster: Cluster, runs: Runs) -> None:
    run = runs.get("nothing")
    for asked in (run.cancel(), run.result(), run.info()):
        with pytest.raises(TemporalError, match="'nothing' has no run"):
            await asked
    assert await run.questions() == ()


async def test_worker_without_database_or_server_says_so(cluster: Cluster) -> None:
    cluster.environment["CALLWRIGHT_STORE"] = f"postgresql://tester:secret@127.0.0.1:{find_port()}/x"
    refused = cluster.call("desk:agent", command="worker")
    assert refused.returncode == 1 and "cannot be used" in refused.stderr and "secret" not in refused.stderr
    cluster.address = f"127.0.0.1:{find_port()}"
    refused = cluster.call("desk:agent", command="worker")
    assert refused.returncode == 1 and "cannot be reached" in refused.stderr
    assert "worker for" not in refused.stderr  # said only by a worker that serves


def test_ask_says_that_no_worker_has_taken_the_run(cluster: Cluster) -> None:
    command = [sys.executable, "-m", "callwright", "runs", "ask", "asking", plan(answer="hello")]
    server = ["--address", cluster.address, "--queue", cluster.queue]
    with subprocess.Popen(
        [*command, *server],
        env=os.environ | cluster.environment,
        cwd=HERE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as asked:
        try:
            assert asked.stderr is not None
            while "no worker" not in (line := asked.stderr.readline()):
                assert line, "the command ended"
            assert cluster.queue in line and f"callwright worker MODULE:AGENT --address {cluster.address}" in line
            cluster.start_worker("asking")
            assert asked.communicate()[0] == "hello after 0 turns\n"
        finally:
            asked.kill()


def test_ask_prints_nothing_but_the_result_while_the_server_is_away(tmp_path: Path) -> None:
    port = find_port()
    server = start_server(port, str(tmp_path))
    order = ["ask", "desk", "hello", "--session", "s", "--store", str(tmp_path / "s.db")]
    command = [sys.executable, "-m", "callwright", "runs", *order, "--address", f"127.0.0.1:{port}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as asked:
        try:
            assert asked.stderr is not None
            while "no worker" not in (line := asked.stderr.readline()):  # it is connected, and waits
                assert line, "the command ended"
            server.kill()
            printed, told = asked.communicate(timeout=PATIENCE_SECONDS)
            assert (asked.returncode, printed) == (1, "")
            assert "the run goes on" in told and told.splitlines()[-1].startswith("callwright: the Temporal server")
        finally:
            asked.kill()
            server.kill()
            server.wait()


@pytest.mark.timeout(900)  # it starts fifteen processes, one after the other
async def test_commands(cluster: Cluster, runs: Runs) -> None:
    worker = cluster.start_worker("asking")
    started = cluster.call("ask", "asking", plan("note", "note"), "--session", "c1", "--no-wait")
    assert started.stdout.strip() == "c1"
    await wait_for_questions(runs.get("c1"))
    cluster.kill(worker)
    waiting = cluster.call("waiting").stdout
    assert "c1" in waiting and "Allow note" in waiting
    approved = cluster.call("approve", "c1")
    assert approved.returncode == 0 and "approved: Allow note" in approved.stdout
    cluster.start_worker("asking")
    await cluster.wait_for_effects(1)
    (question,) = await wait_for_questions(runs.get("c1"))
    assert question.arguments["n"] == 1
    assert "declined" in cluster.call("decline", "c1", "--reason", "enough").stdout
    watched = cluster.call("watch", "c1")
    assert "asked: Allow note" in watched.stdout and "enough" in watched.stdout
    assert "c1" in cluster.call("list").stdout
    assert "waits for no answer" in cluster.call("approve", "c1").stderr
    assert cluster.call("ask", "asking", plan(answer="hello"), "--session", "c2").stdout == "hello after 0 turns\n"
    unknown = cluster.call("ask", "nobody", "x", "--session", "c4")
    assert unknown.returncode == 1 and "there is no agent 'nobody' on this queue" in unknown.stderr
    busy = cluster.call("ask", "asking", plan("note"), "--session", "c3", "--no-wait")
    assert busy.returncode == 0
    assert "has not ended" in cluster.call("ask", "asking", "x", "--session", "c3").stderr
    assert cluster.call("cancel", "c3").returncode == 0
    assert (await runs.get("c3").result()).text == ""


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGHUP])  # SIGHUP: its terminal was closed
def test_worker_for_development(tmp_path: Path, ending: int) -> None:
    port, page = find_port(), find_port()
    server = ["--address", f"localhost:{port}", "--namespace", "team"]
    environment = os.environ | {
        "CALLWRIGHT_STORE": str(tmp_path / "s.db"),
        "CALLWRIGHT_HOME": str(tmp_path / "home"),
        "EFFECTS": str(tmp_path / "effects"),
    }
    program = [sys.executable, "-m", "callwright"]
    command = [*program, "worker", "desk:agent", "--dev", *server, "--ui-port", str(page)]
    worker = subprocess.Popen(
        command,
        env=environment,
        cwd=HERE,
        stderr=subprocess.PIPE,
        text=True,
        # tests that run under nohup ignore it
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),  # noqa: PLW1509 - takes no lock
    )
    try:
        assert worker.stderr is not None
        while "worker for desk" not in (line := worker.stderr.readline()):
            assert line or worker.poll() is None, "the worker ended"
        asked = subprocess.run(
            [*program, "runs", "ask", "desk", plan("note"), *server],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert asked.stdout == "done after 1 turns\n", asked.stderr
        worker.send_signal(ending)
        assert "stopping: turns that run have up to 20 s to end" in worker.stderr.readline()
        assert worker.wait(PATIENCE_SECONDS) == 0
    finally:
        worker.kill()
        worker.communicate()
    assert (tmp_path / "home").exists() and asyncio.run(_is_gone(port))


async def _is_gone(port: int) -> bool:
    try:
        await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return True
    return False
