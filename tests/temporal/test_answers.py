"""Prompts as they travel, answers in the store, and the checks of clients and workers; without a server."""

import asyncio
import gc
import json
import os
import shlex
import socket
import sqlite3
import ssl
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from temporalio.client import WorkflowFailureError
from temporalio.exceptions import ActivityError, ApplicationError, CancelledError, TerminatedError
from temporalio.service import RPCError, RPCStatusCode
from tests.waiting import LONG_SECONDS, LoopClock, until

from callwright import Agent, Answers, Done, Image, MemoryStore, Question, SqliteStore, Stopped, Text, ToolCall, tool
from callwright.cli.main import run as run_command
from callwright.core.errors import UsageError
from callwright.core.messages import AssistantMessage, ToolMessage, Usage
from callwright.sessions import SessionError, list_waiting, record_answers
from callwright.sessions.base import SessionEntry, SessionMissing
from callwright.temporal import AgentWorker, Run, RunFailed, Runs, TemporalError
from callwright.temporal.blobs import keep_prompt, read_prompt
from callwright.temporal.client import read_security
from callwright.temporal.worker import AnswerWatch
from callwright.temporal.workflow import question_key
from callwright.testing import ScriptedProvider
from callwright.testing.fakes import Line
from callwright.toolbox.ask_user import AskUser


@tool
async def change_something(n: int) -> str:
    """Change something; asks first."""
    return str(n)


QUESTION = Question("c.1", "pay", {}, "d" * 64, "Allow pay?")


class Server:
    """A client of a server: a start fails, a signal is passed on."""

    def __init__(self, status: RPCStatusCode, signalled: Callable[[], None]) -> None:
        self.orders: list[Any] = []
        self.running: list[str] = []
        self.signalled = ""
        self.scans = 0
        self._status = status
        self._signalled = signalled

    async def start_workflow(self, kind: str, order: dict[str, Any], **options: Any) -> None:
        self.orders.append(order)
        raise RPCError("failed", self._status, b"")

    async def list_workflows(self, query: str) -> AsyncGenerator[Any, None]:
        self.scans += 1
        for workflow_id in self.running:
            yield SimpleNamespace(task_queue="queue", id=workflow_id)

    def get_workflow_handle(self, workflow_id: str) -> "Server":
        self.signalled = workflow_id
        return self

    async def signal(self, name: str, given: object) -> None:
        self._signalled()


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove what the machine says about a server of its own."""
    for name in [name for name in os.environ if name.startswith("TEMPORAL_")]:
        monkeypatch.delenv(name)


@pytest.mark.parametrize("prompt", ["hello \N{SNOWMAN}", "x" * 5_000_000, (Text("see"), Image(b"\x00\xff"))])
async def test_prompt_travels_as_a_reference(store: SqliteStore, prompt: Any) -> None:
    reference = await keep_prompt(store, prompt)
    assert len(reference) < 50
    assert await read_prompt(store, reference) == prompt
    await store.delete_blobs([reference, "unknown"])
    assert await read_prompt(store, reference) is None


async def test_prompt_is_redacted_like_records(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path / "r.db", redact=lambda text: text.replace("secret", "***")) as store:
        assert await read_prompt(store, await keep_prompt(store, "my secret")) == "my ***"


async def test_order_has_what_the_workflow_reads(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(RPCStatusCode.UNAVAILABLE, lambda: None)

    async def connect(address: str, namespace: str) -> Server:
        return server

    monkeypatch.setattr("callwright.temporal.client.connect_client", connect)
    runs = await Runs.connect(sessions=store, turns=7, heartbeat_seconds=3, attempts=5)
    with pytest.raises(TemporalError, match="does not answer"):
        await runs.start("desk", "go", session="s")
    (order,) = server.orders  # a field that is missing would fail in the workflow, and be tried without end
    assert await read_prompt(store, order["prompt"]) == "go"
    assert order == {
        "turns": 7,
        "heartbeat": 3,
        "attempts": 5,
        "agent": "desk",
        "session": "s",
        "prompt": order["prompt"],
        "key": order["prompt"],
        "open": [],
        "expires": 0,
        "lapsed": False,
        "position": 0,
    }


@pytest.mark.parametrize(
    ("status", "kept"),
    [
        (RPCStatusCode.DEADLINE_EXCEEDED, True),
        (RPCStatusCode.UNAVAILABLE, True),
        (RPCStatusCode.INVALID_ARGUMENT, False),
        (RPCStatusCode.NOT_FOUND, False),
        (RPCStatusCode.PERMISSION_DENIED, False),
        (RPCStatusCode.UNAUTHENTICATED, False),
        (RPCStatusCode.UNIMPLEMENTED, False),
    ],
)
async def test_prompt_of_a_start_that_may_have_arrived_is_kept(
    store: SqliteStore, status: RPCStatusCode, kept: bool
) -> None:
    server = Server(status, lambda: None)
    with pytest.raises(TemporalError, match="failed"):
        await Runs(cast("Any", server), store, "queue", {}).start("desk", "go", session="own")
    (order,) = server.orders
    assert (order["agent"], order["session"]) == ("desk", "own")
    assert (await store.read_blob(order["prompt"]) is not None) == kept


@pytest.mark.parametrize("wrong", ["", None, 7, Agent(ScriptedProvider(), name="desk")])
async def test_start_needs_the_name_of_an_agent(store: SqliteStore, wrong: Any) -> None:
    server = Server(RPCStatusCode.OK, lambda: None)
    with pytest.raises(UsageError, match="expected the name of an agent of the workers"):
        await Runs(cast("Any", server), store, "queue", {}).start(wrong, "go")
    assert not server.orders


def test_address_and_files_of_other_programs_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = tmp_path / "temporal.toml"
    settings.write_text('[profile.default]\naddress = "elsewhere:7233"\napi_key = "of another program"\n')
    monkeypatch.setenv("TEMPORAL_CONFIG_FILE", str(settings))
    monkeypatch.setenv("TEMPORAL_ADDRESS", "elsewhere:7233")
    monkeypatch.setenv("TEMPORAL_NAMESPACE", "other")
    assert read_security() == {}  # the command and the caller name the server


class EndedWorkflow:
    """The handle of a workflow that has ended."""

    def __init__(self, cause: BaseException | None = None) -> None:
        self._cause = cause

    async def result(self) -> dict[str, Any]:
        if self._cause is not None:
            raise WorkflowFailureError(cause=self._cause)
        return {"state": "done"}


async def test_result_counts_what_agents_inside_calls_used(store: SqliteStore) -> None:
    usage = Usage(3, 4)
    child = Agent(ScriptedProvider(AssistantMessage((Text("found"),), usage=usage)), sessions=store)
    delegate = AssistantMessage((ToolCall("c", "helper", {"prompt": "p"}),), "calls", usage)
    script = (delegate, AssistantMessage((Text("end"),), usage=usage))
    agent = Agent(ScriptedProvider(*script), [child.as_tool("helper", "Help.")], sessions=store)
    done = await agent.run("go", session="s", key="k")
    assert isinstance(done, Done) and done.usage == Usage(9, 12)
    await Agent(ScriptedProvider("later"), sessions=store).run("more", session="s")  # without a worker
    result = await Run(cast("Any", EndedWorkflow()), store, "s").result()
    assert isinstance(result, Done)
    assert (result.usage, result.text, result.turns) == (done.usage, done.text, done.turns)


async def test_result_of_a_cancelled_run_has_nothing_of_later_runs(store: SqliteStore) -> None:
    usage = Usage(3, 4)
    for number in range(3):
        script = ScriptedProvider(AssistantMessage((Text(f"reply {number}"),), usage=usage))
        await Agent(script, sessions=store).run(f"prompt {number}", session="s", key=f"k{number}")
    cancelled = EndedWorkflow(CancelledError("cancelled"))
    for number in range(3):
        result = await Run(cast("Any", cancelled), store, "s", f"k{number}").result()
        assert (result.text, result.usage, result.turns) == (f"reply {number}", usage, 1)
    latest = await Run(cast("Any", cancelled), store, "s").result()
    assert isinstance(latest, Stopped) and (latest.kind, latest.text) == ("cancelled", "reply 2")
    nothing = await Run(cast("Any", cancelled), store, "s", "k9").result()  # it was cancelled before it began
    assert (nothing.text, nothing.usage, nothing.turns) == ("", Usage(), 0)


async def test_failed_run_says_what_ended_it(store: SqliteStore) -> None:
    about: dict[str, Any] = {"scheduled_event_id": 1, "started_event_id": 2, "identity": "", "activity_type": ""}
    failed = ActivityError("Activity task failed", **about, activity_id="1", retry_state=None)
    failed.__cause__ = ApplicationError("there is no agent 'dsek'", type="UnknownAgent")
    alone = ActivityError("Activity task timed out", **about, activity_id="1", retry_state=None)
    for cause, kind, reason in (
        (failed, "UnknownAgent", "there is no agent 'dsek'"),
        (alone, "ActivityError", "timed out"),
        (ApplicationError("broken"), "ApplicationError", "broken"),
        (TerminatedError("ended by an operator"), "TerminatedError", "ended by an operator"),
    ):
        with pytest.raises(RunFailed, match=reason) as raised:
            await Run(cast("Any", EndedWorkflow(cause)), store, "s").result()
        assert (raised.value.kind, raised.value.session_id) == (kind, "s")
    stopped = await Run(cast("Any", EndedWorkflow(CancelledError("cancelled"))), store, "s").result()
    assert isinstance(stopped, Stopped) and stopped.turns == 0  # before it began
    with pytest.raises(SessionMissing):  # a run that is done had a session
        await Run(cast("Any", EndedWorkflow()), store, "s").result()


async def test_run_that_pauses_while_it_is_woken_is_looked_at_again(store: SqliteStore) -> None:
    agent = Agent(ScriptedProvider(ToolCall("c", "change_something", {"n": 1})), [change_something], sessions=store)
    await agent.run("go", session="s")
    ((question,),) = [run.questions for run in await list_waiting(store)]
    await record_answers(store, "s", Answers().approve(question))
    watch, clock, woken, done = AnswerWatch("queue", [store]), LoopClock(), list[int](), asyncio.Event()

    def hear() -> None:
        woken.append(1)
        if len(woken) == 1:
            watch.add(store, "s")  # it went on, asked again, and was answered in the store
        else:
            done.set()

    watch.add(store, "s")
    watching = asyncio.ensure_future(watch.run(cast("Any", Server(RPCStatusCode.OK, hear))))
    for _ in range(10):
        await until(lambda: woken or watching.done())
        clock.pass_seconds(2)
        await asyncio.sleep(0.01)
    await asyncio.wait_for(done.wait(), LONG_SECONDS)
    watching.cancel()


@pytest.mark.parametrize(
    "error",
    [
        RPCError("the server does not answer", RPCStatusCode.UNAVAILABLE, b""),
        SessionError("the database does not answer"),
    ],
)
async def test_run_that_could_not_be_woken_is_woken_later(
    store: SqliteStore, error: Exception, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    agent = Agent(ScriptedProvider(ToolCall("c", "change_something", {"n": 1})), [change_something], sessions=store)
    await agent.run("go", session="s")
    ((question,),) = [run.questions for run in await list_waiting(store)]
    await record_answers(store, "s", Answers().approve(question))
    away, done = [True, True], asyncio.Event()

    def hear() -> None:
        if away:
            away.pop()
            raise error
        done.set()

    monkeypatch.setattr("callwright.temporal.worker._LOOK_SECONDS", 0.0)
    watch = AnswerWatch("queue", [store])
    watch.add(store, "s")  # nothing else happens to the store from now on
    watching = asyncio.ensure_future(watch.run(cast("Any", Server(RPCStatusCode.OK, hear))))
    await asyncio.wait_for(done.wait(), LONG_SECONDS)
    watching.cancel()
    assert [record.getMessage().count("does not answer") for record in caplog.records] == [1]


class CountingStore(MemoryStore):
    """Counts how often its sessions are listed, and how often it is asked whether it has changed."""

    def __init__(self) -> None:
        super().__init__()
        self.listed = self.asked = 0

    async def version(self) -> str:
        self.asked += 1
        return await super().version()

    async def list(self, *, limit: int = 100, waiting: bool = False) -> Sequence[SessionEntry]:
        self.listed += 1
        return await super().list(limit=limit, waiting=waiting)


async def test_waiting_sessions_are_listed_only_when_something_changed() -> None:
    store, clock, woken = CountingStore(), LoopClock(), asyncio.Event()
    agent = Agent(ScriptedProvider(ToolCall("c", "change_something", {"n": 1})), [change_something], sessions=store)
    await agent.run("go", session="s")
    watch, server = AnswerWatch("queue", [store]), Server(RPCStatusCode.OK, woken.set)
    watching = asyncio.ensure_future(watch.run(cast("Any", server)))

    async def pass_looks(count: int) -> None:
        wanted = store.asked + count
        while store.asked < wanted:
            clock.pass_seconds(2)
            await asyncio.sleep(0.001)

    await pass_looks(10)
    assert store.listed == server.scans == 1
    watch.add(store, "other")  # it may have been answered before it was added
    await pass_looks(10)
    assert store.listed == 2
    ((question,),) = [run.questions for run in await list_waiting(store)]
    await record_answers(store, "s", Answers().approve(question))
    await pass_looks(3)
    await asyncio.wait_for(woken.wait(), LONG_SECONDS)
    watching.cancel()


async def test_answer_in_a_session_without_a_run_is_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    store, clock, signalled = CountingStore(), LoopClock(), list[str]()
    agent = Agent(ScriptedProvider(ToolCall("c", "change_something", {"n": 1})), [change_something], sessions=store)
    await agent.run("go", session="s")  # in a process of its own, with the store of the workers
    ((question,),) = [run.questions for run in await list_waiting(store)]
    await record_answers(store, "s", Answers().approve(question))

    def refuse() -> None:
        signalled.append(server.signalled)
        raise RPCError("no such workflow", RPCStatusCode.NOT_FOUND, b"")

    server, watch = Server(RPCStatusCode.OK, refuse), AnswerWatch("queue", [store])
    watch.add(store, "s")
    watching = asyncio.ensure_future(watch.run(cast("Any", server)))
    while store.asked < 10:
        clock.pass_seconds(2)
        await asyncio.sleep(0.001)
    watching.cancel()
    assert signalled == ["callwright/s"] and not caplog.records


@pytest.mark.parametrize("unreadable", [0, 3])
async def test_session_that_cannot_be_read_does_not_hide_answers_of_others(
    store: SqliteStore, tmp_path: Path, unreadable: int
) -> None:
    for session in ("damaged", "sound"):
        agent = Agent(ScriptedProvider(ToolCall("c", "change_something", {"n": 1})), [change_something], sessions=store)
        await agent.run("go", session=session)
    for run in await list_waiting(store):
        await record_answers(store, run.session_id, Answers().approve(run.questions[0]))
    with closing(sqlite3.connect(tmp_path / "s.db")) as connection, connection:
        damage = (
            "UPDATE records SET body = '{}' WHERE position = ? AND session = (SELECT key FROM sessions WHERE id = ?)"
        )
        connection.execute(damage, (unreadable, "damaged"))
    done = asyncio.Event()
    server = Server(RPCStatusCode.OK, lambda: done.set() if server.signalled == "callwright/sound" else None)
    server.running = ["callwright/not begun", "callwright/damaged", "callwright/sound"]
    watching = asyncio.ensure_future(AnswerWatch("queue", [store]).run(cast("Any", server)))
    await asyncio.wait_for(done.wait(), LONG_SECONDS)
    watching.cancel()


@pytest.mark.parametrize(("status", "woken"), [(RPCStatusCode.RESOURCE_EXHAUSTED, 1), (RPCStatusCode.UNAVAILABLE, 0)])
async def test_run_that_takes_no_signal_does_not_hold_up_others(
    store: SqliteStore, caplog: pytest.LogCaptureFixture, status: RPCStatusCode, woken: int
) -> None:
    refused = [f"full {number}" for number in range(9)]  # the order of looking is not known
    for session in (*refused, "sound"):
        agent = Agent(ScriptedProvider(ToolCall("c", "change_something", {"n": 1})), [change_something], sessions=store)
        await agent.run("go", session=session)
    for run in await list_waiting(store):
        await record_answers(store, run.session_id, Answers().approve(run.questions[0]))
    signalled = list[str]()

    def hear() -> None:
        signalled.append(server.signalled)
        if server.signalled != "callwright/sound" or not woken:
            raise RPCError("refused", status, b"")

    server, watch = Server(RPCStatusCode.OK, hear), AnswerWatch("queue", [store])
    for session in (*refused, "sound"):
        watch.add(store, session)
    watching = asyncio.ensure_future(watch.run(cast("Any", server)))
    await until(lambda: caplog.records)
    watching.cancel()
    assert len(signalled) == (10 if woken else 1)  # a server that is away is not asked for each of them
    assert "refused" in caplog.records[0].getMessage()


async def test_store_that_is_away_is_told_once_each_time(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    away, done = [True, False, True, True], asyncio.Event()

    async def version() -> str:
        if not away:
            done.set()
            await asyncio.Event().wait()
        if away.pop(0):
            raise SessionError("the database does not answer")
        return "1"

    monkeypatch.setattr(store, "version", version)
    monkeypatch.setattr("callwright.temporal.worker._LOOK_SECONDS", 0.0)
    server = Server(RPCStatusCode.OK, lambda: None)
    watching = asyncio.ensure_future(AnswerWatch("queue", [store]).run(cast("Any", server)))
    await asyncio.wait_for(done.wait(), LONG_SECONDS)
    watching.cancel()
    assert [record.getMessage().count("does not answer") for record in caplog.records] == [1, 1]


def test_key_is_bound_to_digest_and_call() -> None:
    again = Question("c.1", "pay", {}, "d" * 64, "Allow pay?", expires_at=99)
    assert question_key(again.id) == question_key(QUESTION.id)
    for other in (Question("c.2", "pay", {}, "d" * 64, ""), Question("c.1", "pay", {}, "e" * 64, "")):
        assert question_key(other.id) != question_key(QUESTION.id)


async def test_unreachable_server_is_named(store: SqliteStore) -> None:
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{door.getsockname()[1]}"
    with pytest.raises(TemporalError, match=f"{address} cannot be reached; start one"):
        await Runs.connect(address, sessions=store)
    agent = Agent(ScriptedProvider(), sessions=store, name="desk")
    with pytest.raises(TemporalError, match="cannot be reached"):
        await AgentWorker([agent]).run(address)


def make_certificate(folder: Path) -> tuple[str, str]:
    """Return the files of a certificate for localhost and of its key."""
    made, key = str(folder / "certificate.pem"), str(folder / "key.pem")
    kind = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    leaf = ["-addext", "basicConstraints=critical,CA:FALSE"]  # of a server, not of an authority
    name = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", *leaf]
    try:
        subprocess.run(["openssl", "req", *kind, *name, "-keyout", key, "-out", made], check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("openssl is needed to make a certificate")
    return made, key


async def test_variables_say_how_to_identify_at_a_server(
    store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, key = make_certificate(tmp_path)
    wall = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    wall.load_cert_chain(made, key)
    wall.load_verify_locations(made)
    wall.verify_mode = ssl.CERT_REQUIRED
    wall.set_alpn_protocols(["h2"])
    came: list[object] = []

    def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        came.append(writer.get_extra_info("peercert"))
        writer.close()

    server = await asyncio.start_server(greet, "127.0.0.1", 0, ssl=wall)
    address = f"localhost:{server.sockets[0].getsockname()[1]}"
    async with server:
        with pytest.raises(TemporalError, match="cannot be reached; start one"):
            await Runs.connect(address, sessions=store)
        assert not came
        for name, file in (("CLIENT_CERT", made), ("CLIENT_KEY", key), ("SERVER_CA_CERT", made)):
            monkeypatch.setenv(f"TEMPORAL_TLS_{name}_PATH", file)
        with pytest.raises(TemporalError, match="cannot be reached with TLS, as the variables TEMPORAL_… say"):
            await Runs.connect(address, sessions=store)
        assert came and all(came)
    monkeypatch.setenv("TEMPORAL_TLS_CLIENT_CERT_PATH", str(tmp_path / "none.pem"))
    with pytest.raises(TemporalError, match=r"cannot be used: .*none.pem"):
        await Runs.connect(address, sessions=store)


def test_key_of_a_server_turns_tls_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TEMPORAL_API_KEY", "")
    assert read_security() == {}
    monkeypatch.setenv("TEMPORAL_API_KEY", "hunter2")
    assert read_security() == {"api_key": "hunter2", "tls": True}
    (tmp_path / "keyed_desk.py").write_text(
        "from callwright import Agent, SqliteStore\n"
        "from callwright.testing import ScriptedProvider\n"
        "agent = Agent(ScriptedProvider(), sessions=SqliteStore('s.db'), name='desk')\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])
    assert run_command(["worker", "keyed_desk:agent", "--dev"]) == 2
    told = capsys.readouterr().err
    assert "--dev starts a server without TLS" in told and "hunter2" not in told
    monkeypatch.delenv("TEMPORAL_API_KEY")
    for port in ("99999", "9" * 5000):
        assert run_command(["worker", "keyed_desk:agent", "--dev", "--address", f"localhost:{port}"]) == 2
        assert "--address must be localhost:PORT" in capsys.readouterr().err


async def test_worker_that_is_stopped_before_it_serves_does_not_begin(store: SqliteStore) -> None:
    worker = AgentWorker([Agent(ScriptedProvider(), sessions=store, name="desk")])
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{door.getsockname()[1]}"
    worker.stop()
    await worker.run(address)
    with pytest.raises(TemporalError, match="cannot be reached"):
        await worker.run(address)  # it may run again


async def test_worker_that_is_stopped_while_it_connects_does_not_begin(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def connect(address: str, namespace: str) -> Server:
        worker.stop()
        return Server(RPCStatusCode.OK, lambda: None)

    monkeypatch.setattr("callwright.temporal.worker.Worker", None)  # it would fail to be made
    monkeypatch.setattr("callwright.temporal.worker.connect_client", connect)
    worker = AgentWorker([Agent(ScriptedProvider(), sessions=store, name="desk")])
    await worker.run()


async def test_error_of_a_caller_is_not_one_of_the_server(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    @asynccontextmanager
    async def serve(*given: object, **options: object) -> AsyncGenerator[None, None]:
        yield

    async def connect(address: str, namespace: str) -> Server:
        return Server(RPCStatusCode.OK, lambda: None)

    def fail() -> None:
        raise RuntimeError("no log to write to")

    monkeypatch.setattr("callwright.temporal.worker.Worker", serve)
    monkeypatch.setattr("callwright.temporal.worker.connect_client", connect)
    with pytest.raises(RuntimeError, match="no log to write to"):
        await AgentWorker([Agent(ScriptedProvider(), sessions=store, name="desk")]).run(serving=fail)


async def test_worker_says_that_the_server_refuses_it(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    @asynccontextmanager
    async def serve(*given: object, **options: object) -> AsyncGenerator[None, None]:
        yield
        raise RuntimeError("Workflow worker failed") from RuntimeError("Poll failure: Namespace x is not found")

    async def connect(address: str, namespace: str) -> Server:
        return Server(RPCStatusCode.NOT_FOUND, lambda: None)

    monkeypatch.setattr("callwright.temporal.worker.Worker", serve)
    monkeypatch.setattr("callwright.temporal.worker.connect_client", connect)
    worker = AgentWorker([Agent(ScriptedProvider(), sessions=store, name="desk")])
    with pytest.raises(TemporalError, match="cannot go on: Poll failure: Namespace x is not found"):
        await worker.run(serving=worker.stop)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("worker desk", "expected MODULE:NAME"),
        ("worker no_such_module:agent", "No module named 'no_such_module'"),
        ("worker json:agent", "the module has no 'agent'"),
        ("worker json:loads", "expected"),
        ("worker json:JSONDecoder", "expected an Agent"),
        ("runs waiting", "name the store"),
        ("runs ask desk '' --store new.db", "no prompt: give one after the name of the agent"),
        ("runs ask desk hello --store mysql://me:hunter2@host/name", "the store mysql://…: expected postgresql://"),
        ("runs waiting --store missing.db", "no such file"),
        ("runs list --store missing.db", "no such file"),
        ("runs ask desk hello --store new.db --session ''", "invalid session id ''"),
        ("runs approve '' --store missing.db", "invalid session id ''"),
    ],
)
def test_bad_command_lines(
    line: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CALLWRIGHT_STORE", raising=False)
    assert run_command(shlex.split(line)) in (1, 2)
    told = capsys.readouterr().err
    assert message in told and "hunter2" not in told
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import os\nos.nothing", "cannot be imported: AttributeError: module 'os' has no attribute 'nothing'"),
        ("import no_such_dependency", "cannot be imported: ModuleNotFoundError: No module named 'no_such_dependency'"),
        ("agent = (", "cannot be imported: SyntaxError"),
    ],
)
def test_worker_names_what_is_wrong_in_the_module(
    text: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "wrong_module.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])
    assert run_command(["worker", "wrong_module:agent"]) == 2
    told = capsys.readouterr().err
    assert message in told and "run this in the folder" not in told


def test_commands_name_a_server_or_database_that_is_away(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    database = "postgresql://me:hunter2@127.0.0.1:1/none"
    for action in (["waiting"], ["approve", "s"], ["decline", "s"], ["list"]):
        assert run_command(["runs", *action, "--store", database, "--address", "127.0.0.1:1"]) == 1
        told = capsys.readouterr().err
        assert "cannot be " in told and "hunter2" not in told
    store = str(tmp_path / "s.db")
    assert run_command(["runs", "ask", "desk", "hi", "--store", store, "--address", "127.0.0.1:1"]) == 1
    assert "127.0.0.1:1 cannot be reached" in capsys.readouterr().err


@tool
async def pay(amount: int) -> str:
    """Pay an amount."""
    return f"paid {amount}"


def make_agent(store: SqliteStore, *lines: Line) -> Agent:
    return Agent(ScriptedProvider(*lines), [pay], sessions=store)


async def pause(path: Path, *amounts: int, session: str = "invoice") -> None:
    async with SqliteStore(path) as store:
        calls = [ToolCall(str(amount), "pay", {"amount": amount}) for amount in amounts]
        await make_agent(store, calls).run(f"Pay {amounts[0]}", session=session)


async def go_on(path: Path, session: str = "invoice") -> list[str]:
    """Resume as the next process would; return the outcomes of the calls."""
    async with SqliteStore(path) as store:
        agent = make_agent(store, "done")
        await agent.resume(session)
        messages = await agent.messages(session)
    return [outcome.text for message in messages if isinstance(message, ToolMessage) for outcome in message.outcomes]


def test_commands_answer_in_the_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "s.db"
    asyncio.run(pause(path, 7))
    asyncio.run(pause(path, 8, 9, session="two"))
    assert run_command(["runs", "waiting", "--store", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "invoice  Pay 7" in shown and "1. Allow pay: amount=7?" in shown and "2. Allow pay: amount=9?" in shown
    assert run_command(["runs", "approve", "invoice", "--store", str(path)]) == 0
    assert "approved: Allow pay: amount=7?" in capsys.readouterr().out
    assert run_command(["runs", "approve", "invoice", "--store", str(path)]) == 2
    assert "waits for no answer" in capsys.readouterr().err
    assert run_command(["runs", "decline", "two", "--store", str(path)]) == 2
    assert "choose one with --number" in capsys.readouterr().err
    assert run_command(["runs", "decline", "two", "--number", "2", "--reason", "not me", "--store", str(path)]) == 0
    assert run_command(["runs", "approve", "two", "--store", str(path)]) == 0
    capsys.readouterr()
    assert run_command(["runs", "waiting", "--store", str(path), "--json"]) == 0
    assert capsys.readouterr().out.strip() == "[]"
    assert asyncio.run(go_on(path)) == ["paid 7"]
    first, second = asyncio.run(go_on(path, "two"))
    assert first == "paid 8" and "not me" in second


def test_command_does_not_approve_what_asks_for_a_reply(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "s.db"

    async def ask() -> None:
        async with SqliteStore(path) as store:
            call = ToolCall("1", "ask_user", {"question": "Which one?", "choices": ["a", "b"]})
            await Agent(ScriptedProvider(call), [AskUser()], sessions=store).run("go", session="s")

    asyncio.run(ask())
    for more in ([], ["--all"], ["--number", "1"]):
        assert run_command(["runs", "approve", "s", *more, "--store", str(path)]) == 2
        assert "asks for a reply, which is not an approval: reply with /runs" in capsys.readouterr().err
    assert run_command(["runs", "decline", "s", "--store", str(path)]) == 0


def test_command_answers_what_was_shown_or_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "s.db")
    asyncio.run(pause(tmp_path / "s.db", 7))
    assert run_command(["runs", "waiting", "--json", "--store", path]) == 0
    (shown,) = json.loads(capsys.readouterr().out)
    assert shown["arguments"] == {"amount": 7}

    async def move_on() -> None:
        """Decline it elsewhere; the run then asks for something else."""
        async with SqliteStore(path) as store:
            ((question,),) = [run.questions for run in await list_waiting(store)]
            await record_answers(store, "invoice", Answers().decline(question))
            await make_agent(store, ToolCall("8", "pay", {"amount": 1_000_000})).resume("invoice")

    asyncio.run(move_on())
    for code in (shown["question"], "0", "x"):
        assert run_command(["runs", "approve", "invoice", "--question", code, "--store", path]) == 2
        assert "does not wait for question" in capsys.readouterr().err
    assert run_command(["runs", "waiting", "--json", "--store", path]) == 0
    (other,) = json.loads(capsys.readouterr().out)
    assert other["question"] != shown["question"]
    assert run_command(["runs", "decline", "invoice", "--question", other["question"], "--store", path]) == 0


class _StartedRun:
    """A run that waits for an answer, until the server is away or the user stops waiting."""

    def __init__(self, session_id: str, end: BaseException, asked: Sequence[Question]) -> None:
        self.session_id = session_id
        self._end = end
        self._questions = [*asked]
        self._asked, self._looked_for = asyncio.Event(), asyncio.Event()

    async def questions(self) -> tuple[Question, ...]:
        question = self._questions.pop(0)
        if not self._questions:
            self._questions = [question]
            self._asked.set()
        return (question,)

    async def is_taken(self) -> bool:
        self._looked_for.set()
        raise TemporalError("the server does not answer")

    async def result(self) -> Done:
        await self._asked.wait()  # who asks tells it before it lets others run
        await self._looked_for.wait()
        raise self._end


def ask_in_vain(
    path: str, end: BaseException, monkeypatch: pytest.MonkeyPatch, asked: Sequence[Question] = (QUESTION,)
) -> int:
    """Run the command that starts a run and waits for it, which ends as given."""

    async def start(agent: str, prompt: str, *, session: str) -> _StartedRun:
        return _StartedRun(session, end, asked)

    async def connect(*given: object, **options: object) -> object:
        return SimpleNamespace(start=start)

    monkeypatch.setattr(Runs, "connect", connect)
    monkeypatch.setattr("callwright.cli.commands.runs._UNSERVED_SECONDS", 0.0)
    return run_command(["runs", "ask", "desk", "hi", "--session", "Pay; now", "--store", path, "--queue", "q"])


def test_ask_tells_commands_that_can_be_copied(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.delenv("CALLWRIGHT_STORE", raising=False)
    path = str(tmp_path / "my runs.db")
    assert ask_in_vain(path, TemporalError("away"), monkeypatch) == 1
    told = capsys.readouterr().err
    assert f"callwright runs approve 'Pay; now' --question dddddddd --store '{path}'" in told
    for action in ("watch", "cancel"):
        assert f"callwright runs {action} 'Pay; now' --address" in told
    monkeypatch.setenv("CALLWRIGHT_STORE", path)
    assert ask_in_vain(path, KeyboardInterrupt(), monkeypatch) == 130
    assert "runs approve 'Pay; now' --question dddddddd)" in capsys.readouterr().err
    gc.collect()
    assert not caplog.records  # an error of a task that nobody waits for


def test_ask_tells_of_a_call_that_is_wanted_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = [QUESTION, QUESTION, replace(QUESTION, nonce="later")]  # as after a decline: the same call in a later turn
    assert ask_in_vain(str(tmp_path / "s.db"), TemporalError("away"), monkeypatch, asked) == 1
    assert capsys.readouterr().err.count("waiting: ") == 2


def test_ask_does_not_print_the_password_of_the_store(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("CALLWRIGHT_STORE", raising=False)
    assert ask_in_vain("postgresql://me:hunter2@127.0.0.1:1/none", TemporalError("away"), monkeypatch) == 1
    told = capsys.readouterr().err
    assert "--question dddddddd --store ADDRESS" in told and "hunter2" not in told


def test_waiting_shows_arguments_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    @tool
    async def send(text: str) -> str:
        """Send a text."""
        return text

    async def ask() -> None:
        async with SqliteStore(tmp_path / "s.db") as store:
            call = ToolCall("1", "send", {"text": "hello " * 200 + "and delete everything"})
            await Agent(ScriptedProvider(call), [send], sessions=store).run("go", session="s")

    asyncio.run(ask())
    assert run_command(["runs", "waiting", "--store", str(tmp_path / "s.db")]) == 0
    assert "delete everything" in capsys.readouterr().out
