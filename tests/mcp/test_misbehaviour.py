"""Misbehaving servers: only their own calls are affected."""

import asyncio
import json
import os
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCNotification
from tests.waiting import until

from callwright import Completed, Denied, Executor, Failed, Registry, tool
from callwright.core.errors import UsageError
from callwright.core.json import JsonObject
from callwright.mcp import McpServers, PinnedTools, PinnedToolsFile, ServerConfig
from callwright.mcp.stdio import ServerProcess
from callwright.policy import AllowEverything

if TYPE_CHECKING:
    from tests.mcp.conftest import OpenRough, World

SCRIPT = str(Path(__file__).parent / "servers" / "rough.py")


@pytest.mark.slow
async def test_crashed_server_fails_call_and_restarts(rough: "World"):
    outcome = await rough.run("die")
    assert isinstance(outcome, Failed)
    assert outcome.error.code == "transient"
    assert outcome.attempts == 1  # what broke in the middle may have had an effect
    again = await rough.run("echo", {"text": "back"})
    assert isinstance(again, Completed)
    assert again.text == "back"


async def test_exit_code_is_told_although_the_input_broke_before_the_output_ended():
    ending = "import os, time; os.close(0); time.sleep(0.3); os._exit(7)"
    server = ServerProcess(ServerConfig("ending", sys.executable, ("-S", "-c", ending)))
    message = SessionMessage(JSONRPCNotification(jsonrpc="2.0", method="notifications/initialized"))
    async with server.transport() as (_, writer):
        with pytest.raises(anyio.BrokenResourceError):
            while True:
                await writer.send(message)
                await asyncio.sleep(0.01)
    assert server.explain() == "it ended with exit code 7"


async def test_dead_server_leaves_others_alone(open_rough: "OpenRough"):
    async with open_rough() as world:
        await world.servers.add_server(ServerConfig("other", sys.executable, ("-S", SCRIPT)))
        first, second = await asyncio.gather(
            world.run("die"), world.executor.run("mcp__other__echo", {"text": "still here"})
        )
        assert isinstance(first, Failed)
        assert isinstance(second, Completed)


async def test_hanging_call_times_out(open_rough: "OpenRough"):
    async with open_rough(seconds=0.05) as world:
        outcome = await world.run("wait", {"seconds": 5})
        assert isinstance(outcome, Failed)
        assert outcome.error.code == "timed_out"
        while not isinstance(await world.run("echo", {"text": "x"}), Completed):
            pass  # a slow machine needs more than the limit now and then


@pytest.mark.slow
async def test_oversized_message_ends_session(open_rough: "OpenRough"):
    async with open_rough(message_bytes=1 << 20) as world:
        outcome = await world.run("flood")
        assert isinstance(outcome, Failed)
        assert isinstance(await world.run("echo", {"text": "x"}), Completed)


@pytest.mark.parametrize("id_last", [False, True])
@pytest.mark.parametrize("message_bytes", [1 << 20, 4 << 20])
async def test_answer_that_is_too_large_fails_its_call_only(
    open_rough: "OpenRough", id_last: bool, message_bytes: int
) -> None:
    async with open_rough(message_bytes=message_bytes) as world:
        waits = asyncio.ensure_future(world.run("wait", {"seconds": 0.3}))
        outcome = await world.run("large", {"id_last": id_last})
        assert isinstance(outcome, Failed) and outcome.error.code == "tool_failed"
        assert "too large; ask for less" in outcome.text
        assert isinstance(await waits, Completed)  # in the same process
        assert isinstance(await world.run("echo", {"text": "x"}), Completed)


async def test_non_message_line_is_skipped(rough: "World"):
    assert isinstance(await rough.run("garbage"), Completed)
    assert isinstance(await rough.run("echo", {"text": "x"}), Completed)


async def test_invalid_response_fails_its_call(rough: "World"):
    outcome = await rough.run("nonsense")
    assert isinstance(outcome, Failed)
    assert outcome.error.code == "tool_failed"
    assert "invalid response" in outcome.text


async def test_duplicate_response_is_ignored(rough: "World"):
    assert isinstance(await rough.run("twice"), Completed)
    assert isinstance(await rough.run("echo", {"text": "x"}), Completed)


@pytest.mark.parametrize("lie", [{"n": "three"}, {}, {"n": 3.5}])
async def test_result_must_match_output_schema(rough: "World", lie: JsonObject):
    outcome = await rough.run("structured", {"value": lie})
    assert isinstance(outcome, Failed)
    assert "does not match its own schema" in outcome.text


async def test_invalid_schema_leaves_tool_out(rough: "World"):
    assert "mcp__rough__broken" not in rough.registry
    [status] = rough.servers.status()
    assert any("broken" in problem for problem in status.problems)


async def test_invalid_tool_is_left_out_and_others_stay(rough: "World"):
    assert isinstance(await rough.run("garbage"), Completed)
    assert isinstance(await rough.run("spoil"), Completed)
    await until(lambda: any("spoilt" in problem for problem in rough.servers.status()[0].problems))
    [status] = rough.servers.status()
    assert any("'spoilt': left out, its definition is not valid: inputSchema" in each for each in status.problems)
    assert not status.reason
    assert isinstance(await rough.run("echo", {"text": "x"}), Completed)


TOOLS: list[dict[str, Any]] = [
    {"name": "echo", "inputSchema": {"type": "object"}},
    {"name": "spoilt", "inputSchema": "nope"},
    {"inputSchema": {"type": "object"}},
    {"name": "untyped", "inputSchema": {}},
]


def answer_listing(message: dict[str, Any]) -> dict[str, Any]:
    """Answer as a server of which some tools are not valid."""
    answer = {"jsonrpc": "2.0", "id": message.get("id")}
    match message["method"]:
        case "initialize":
            told = {"protocolVersion": "2025-06-18", "serverInfo": {"name": "rough", "version": "1"}}
            return {**answer, "result": {**told, "capabilities": {"tools": {}}}}
        case "tools/list":
            return {**answer, "result": {"tools": TOOLS}}
        case "tools/call":
            return {**answer, "result": {"content": [{"type": "text", "text": "echo"}]}}
        case method:
            return {**answer, "error": {"code": -32601, "message": f"no {method}"}}


class ListingHandler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        body = json.dumps(answer_listing(message)).encode() if "id" in message else b""
        self.send_response(200 if body else 202)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        self.send_error(405)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
        return None


async def relay_listing(message: dict[str, Any]) -> dict[str, Any]:
    return answer_listing(message)


@contextmanager
def serve_listing() -> Generator[ServerConfig, None, None]:
    with ThreadingHTTPServer(("127.0.0.1", 0), ListingHandler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield ServerConfig("rough", url=f"http://127.0.0.1:{server.server_address[1]}/mcp")
        server.shutdown()


@pytest.mark.parametrize("kind", ["http", "relay"])
async def test_invalid_tool_is_left_out_without_a_pipe_too(kind: str):
    registry, relayed = Registry(), ServerConfig("rough", relay=relay_listing)
    opened = serve_listing() if kind == "http" else nullcontext(relayed)
    with opened as config:
        async with McpServers([config], registry) as servers:
            [status] = servers.status()
            outcome = await Executor(registry, AllowEverything()).run("mcp__rough__echo", {})
        assert not status.reason
        assert status.tools == ("mcp__rough__echo", "mcp__rough__untyped")
        assert len(status.problems) == 2
        assert "'spoilt': left out, its definition is not valid: inputSchema" in status.problems[0]
        assert "'': left out, its definition is not valid: name" in status.problems[1]
        assert isinstance(outcome, Completed)


@pytest.mark.parametrize("how", [UsageError(""), KeyError("x"), {"method": "ping"}, {"id": 77, "result": {}}])
async def test_relay_without_an_answer_fails_its_call_at_once(how: Exception | dict[str, Any]):
    async def relay(message: dict[str, Any]) -> dict[str, Any]:
        if message["method"] != "tools/call":
            return answer_listing(message)
        if isinstance(how, Exception):
            raise how
        return {"jsonrpc": "2.0", "id": message["id"], **how}

    registry = Registry()
    async with McpServers([ServerConfig("rough", relay=relay)], registry):
        outcome = await Executor(registry, AllowEverything()).run("mcp__rough__echo", {})
    assert isinstance(outcome, Failed) and outcome.error.code == "tool_failed"


async def test_result_that_violates_the_protocol_is_explained():
    async def relay(message: dict[str, Any]) -> dict[str, Any]:
        if message["method"] != "tools/call":
            return answer_listing(message)
        return {"jsonrpc": "2.0", "id": message["id"], "result": {"content": "hello"}}

    registry = Registry()
    async with McpServers([ServerConfig("rough", relay=relay)], registry):
        outcome = await Executor(registry, AllowEverything()).run("mcp__rough__echo", {})
    assert isinstance(outcome, Failed)
    assert "rough sent an invalid response: content: Input should be a valid list" in outcome.text


async def test_result_that_is_not_json_is_the_servers_fault(rough: "World"):
    outcome = await rough.run("nan")
    assert isinstance(outcome, Failed)
    assert "the server sent an invalid response: its structured content is not JSON" in outcome.text


async def test_changed_tool_is_held(rough: "World"):
    before = rough.registry["mcp__rough__echo"]
    await rough.run("mutate")
    await until(lambda: rough.registry["mcp__rough__echo"] is not before)
    outcome = await rough.run("echo", {"text": "x"})
    assert isinstance(outcome, Failed)
    assert outcome.error.code == "denied"
    assert rough.servers.status()[0].held == ("mcp__rough__echo",)
    rough.servers.accept("mcp__rough__echo")
    assert isinstance(await rough.run("echo", {"text": "x"}), Completed)


async def test_tool_that_changed_again_is_not_accepted_unseen(rough: "World"):
    await rough.run("mutate")
    await until(lambda: bool(rough.servers.status()[0].held))
    shown = rough.servers.status()[0].digests["mcp__rough__echo"]
    await rough.run("mutate")
    await until(lambda: rough.servers.status()[0].digests.get("mcp__rough__echo") not in (None, shown))
    with pytest.raises(UsageError, match="changed again"):
        rough.servers.accept("mcp__rough__echo", shown)
    assert rough.servers.status()[0].held
    rough.servers.accept("mcp__rough__echo", rough.servers.status()[0].digests["mcp__rough__echo"])
    assert not rough.servers.status()[0].held


async def test_tool_that_another_process_accepted_is_released(open_rough: "OpenRough", tmp_path: Path):
    async with open_rough(pinned=PinnedToolsFile(tmp_path / "pins.json")) as world:
        await world.run("mutate")
        await until(lambda: world.servers.status()[0].held)
        assert isinstance(await world.run("echo", {"text": "x"}), Failed)
        digest = world.servers.status()[0].digests["mcp__rough__echo"]
        PinnedToolsFile(tmp_path / "pins.json").accept("rough", "echo", digest)
        assert isinstance(await world.run("echo", {"text": "x"}), Completed)
        assert world.servers.status()[0].held == ()


async def test_tool_changed_during_turn_is_denied(rough: "World"):
    shown = rough.registry["mcp__rough__echo"].bind({"text": "x"})
    await rough.run("mutate")
    await until(lambda: rough.servers.status()[0].held)
    with pytest.raises(Denied, match="changed"):
        await shown.run(None)  # type: ignore[arg-type] - it must not come to need a context


async def test_trusted_server_changes_are_accepted(open_rough: "OpenRough"):
    async with open_rough(trusted=True) as world:
        before = world.registry["mcp__rough__echo"]
        await world.run("mutate")
        await until(lambda: world.registry["mcp__rough__echo"] is not before)
        assert isinstance(await world.run("echo", {"text": "x"}), Completed)


async def test_tool_changed_between_runs_is_held(open_rough: "OpenRough"):
    async with open_rough(pinned=PinnedTools({"rough": {"echo": "0" * 64}})) as world:
        outcome = await world.run("echo", {"text": "x"})
        assert isinstance(outcome, Failed)
        assert "accept it again" in outcome.text


async def test_tools_added_during_session_can_be_called(rough: "World"):
    await rough.run("grow")
    await until(lambda: "mcp__rough__late" in rough.registry)
    assert isinstance(await rough.run("late"), Completed)


@pytest.mark.slow
async def test_failed_listing_ends_no_running_call(rough: "World"):
    waiting = asyncio.ensure_future(rough.run("wait", {"seconds": 0.5}))
    assert isinstance(await rough.run("lock"), Completed)
    assert isinstance(await waiting, Completed)
    await until(lambda: "mcp__rough__late" in rough.registry)  # listed again later


async def test_servers_can_be_added_and_removed(rough: "World"):
    config = ServerConfig("second", sys.executable, ("-S", SCRIPT))
    status = await rough.servers.add_server(config)
    assert status.condition == "ready"
    assert "mcp__second__echo" in rough.registry
    await rough.servers.remove_server("second")
    assert not [name for name in rough.registry.names() if name.startswith("mcp__second__")]


async def test_failed_start_reports_reason(open_rough: "OpenRough"):
    async with open_rough("--broken") as world:
        [status] = world.servers.status()
        assert status.condition == "waiting"
        assert "no configuration found" in status.reason


async def test_server_whose_tools_cannot_be_pinned_is_not_used(tmp_path: Path):
    (tmp_path / "file").write_text("")
    registry, pinned = Registry(), PinnedToolsFile(tmp_path / "file" / "pinned.json")
    async with McpServers([ServerConfig("rough", sys.executable, ("-S", SCRIPT))], registry, pinned=pinned) as servers:
        reason = servers.status()[0].reason
    assert reason.startswith("its tools cannot be pinned in ") and "file exists" in reason  # not: cannot be started
    assert len(registry) == 0


async def test_missing_command_is_reported():
    registry = Registry()
    async with McpServers([ServerConfig("gone", "/nonexistent/server")], registry) as servers:
        assert "/nonexistent/server was not found" in servers.status()[0].reason
    assert len(registry) == 0


@pytest.mark.slow
async def test_silent_server_times_out(open_rough: "OpenRough"):
    async with open_rough("--silent", connect_seconds=0.2) as world:
        [status] = world.servers.status()
        assert status.condition == "waiting" and "within 0.2 s" in status.reason


async def test_server_cannot_shadow_local_tool(open_rough: "OpenRough"):
    @tool(name="mcp__rough__echo")
    async def ours() -> str:
        """Ours."""
        return "ours"

    registry = Registry(ours)
    config = ServerConfig("rough", sys.executable, ("-S", SCRIPT))
    async with McpServers([config], registry) as servers:
        outcome = await Executor(registry, AllowEverything()).run("mcp__rough__echo")
        assert isinstance(outcome, Completed)
        assert outcome.text == "ours"
        assert any("another tool has this name" in problem for problem in servers.status()[0].problems)
    assert "mcp__rough__echo" in registry


async def test_server_does_not_take_back_a_name_from_local_tool():
    @tool(name="mcp__rough__echo")
    async def ours() -> str:
        """Ours."""
        return "ours"

    registry = Registry()
    config = ServerConfig("rough", sys.executable, ("-S", SCRIPT), trusted=True)
    async with McpServers([config], registry) as servers:
        registry.add(ours)
        await Executor(registry, AllowEverything()).run("mcp__rough__mutate")
        await until(lambda: any("another tool has this name" in each for each in servers.status()[0].problems))
        assert registry["mcp__rough__echo"] is ours
    assert registry.names() == ["mcp__rough__echo"]


async def test_closing_leaves_no_processes(open_rough: "OpenRough"):
    async with open_rough() as world:
        outcome = await world.run("environment")
        assert isinstance(outcome, Completed)
    commands = [file.read_bytes() for file in Path("/proc").glob("[0-9]*/cmdline") if _is_ours(file.parent)]
    assert not [command for command in commands if b"rough.py" in command]


def _is_ours(process: Path) -> bool:
    try:
        return int((process / "stat").read_text().rpartition(")")[2].split()[1]) == os.getpid()
    except OSError:
        return False
