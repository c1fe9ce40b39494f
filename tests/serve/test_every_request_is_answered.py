"""Every request to the gateway has one answer, whatever is in it or in the tool's result."""

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.serve.conftest import OpenDesk, text_of
from tests.waiting import LONG_SECONDS

from callwright import Effect, Executor, Registry, ToolContext, tool
from callwright.core.content import File, Output, Text
from callwright.mcp.lines import LineReader, LineWriter
from callwright.serve import Gateway
from callwright.serve.stdio import CallFastPath


@tool(effect=Effect.READ)
async def fail() -> str:
    """Fail with a file name that is not UTF-8."""
    raise RuntimeError("bad \ud800 name")


@tool(effect=Effect.READ)
async def show() -> Output:
    """Show what is not UTF-8."""
    return Output((Text("a\ud800b"), File(b"x", "text/plain", "n\ud800")))


@tool(effect=Effect.READ)
async def report(context: ToolContext) -> str:
    """Report what is not UTF-8."""
    context.report("at \ud800")
    return "reported"


class Wire:
    """The client's end of the pipes of a gateway."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer

    def send(self, line: str) -> None:
        self.writer.write(line.encode() + b"\n")

    def call(self, number: int | str, name: str, **params: Any) -> None:
        self.send(
            json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": name, **params}})
        )

    async def receive(self) -> dict[str, Any]:
        async with asyncio.timeout(LONG_SECONDS):
            return json.loads(await self._reader.readline())


@asynccontextmanager
async def open_wire(
    *tools: Any,
    executor: type[Executor] = Executor,
    capabilities: Mapping[str, Any] | None = None,
    greet: bool = True,
) -> AsyncGenerator[Wire, None]:
    registry = Registry(*tools)
    gateway = Gateway(registry, executor(registry))
    ours, theirs = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=ours)
    calls = CallFastPath(gateway, writer)
    lines: Any = LineReader(reader, calls.take, refuse=calls.refuse)
    out: Any = LineWriter(writer)
    client = Wire(*await asyncio.open_connection(sock=theirs))
    options = gateway.server.create_initialization_options()
    serving = asyncio.create_task(gateway.server.run(lines, out, options))
    about: dict[str, Any] = {"protocolVersion": "2025-06-18", "clientInfo": {"name": "t", "version": "1"}}
    about["capabilities"] = capabilities or {}
    if greet:
        client.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about}))
        await client.receive()
        client.send('{"jsonrpc":"2.0","method":"notifications/initialized"}')
    try:
        yield client
    finally:
        await calls.stop()
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        for each in (writer, client.writer):
            each.close()
            await each.wait_closed()


async def test_lone_surrogates_in_results_are_replaced_over_pipes() -> None:
    async with open_wire(fail, show, report) as wire:
        wire.call(2, "fail")
        failed = await wire.receive()
        assert (failed["id"], failed["result"]["isError"]) == (2, True)
        assert failed["result"]["content"][0]["text"].endswith("bad ? name")
        wire.call(3, "show")
        shown = (await wire.receive())["result"]["content"]
        assert shown[0]["text"] == "a?b"
        assert shown[1]["resource"]["uri"] == "file:///n%3F"
        wire.call(4, "report", _meta={"progressToken": 7})
        assert (await wire.receive())["params"]["message"] == "at ?"
        assert (await wire.receive())["id"] == 4


@pytest.mark.parametrize("name", ["fail", "show", "report"])
async def test_lone_surrogates_in_results_are_replaced_over_http(name: str, open_desk: OpenDesk) -> None:
    async def hear(progress: float, total: float | None, message: str | None) -> None:
        assert message == "at ?"

    async with asyncio.timeout(LONG_SECONDS), open_desk(fail, show, report) as desk, desk.client() as client:
        result = await client.call_tool(name, {}, progress_callback=hear)
    assert text_of(result) in ("RuntimeError: bad ? name", "a?b", "reported")


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ('{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"fail\\ud800"}}', -32700),
        ('{"jsonrpc":"2.0","id":5,"method":"tools/list","params":{"cursor":"\\ud800"}}', -32700),
        ('{"jsonrpc":"2.0","id":5,"method":"tools/list","params":[1]}', -32600),
    ],
)
async def test_an_invalid_request_is_refused(line: str, code: int) -> None:
    async with open_wire(fail) as wire:
        wire.send("noise")
        wire.send(line)
        answer = await wire.receive()
        assert (answer["id"], answer["error"]["code"]) == (5, code)
        wire.call(6, "fail")
        assert (await wire.receive())["id"] == 6


async def test_a_call_with_the_id_of_a_running_one_is_refused() -> None:
    go, runs = asyncio.Event(), list[int]()

    @tool(effect=Effect.READ)
    async def wait() -> str:
        """Wait."""
        runs.append(1)
        await go.wait()
        return "done"

    async with open_wire(wait) as wire:
        wire.call(9, "wait")
        wire.call(9, "wait")
        refused = await wire.receive()
        assert (refused["id"], refused["error"]["code"]) == (9, -32600)
        go.set()
        assert (await wire.receive())["result"]["content"][0]["text"] == "done"
        assert len(runs) == 1
        wire.call(9, "wait")
        assert (await wire.receive())["id"] == 9


class Broken(Executor):
    """An executor that raises, as none should."""

    def execute(self, *given: object, **named: object) -> Any:
        raise RuntimeError("broken")


async def test_a_call_that_cannot_be_answered_gets_an_error() -> None:
    async with open_wire(fail, executor=Broken) as wire:
        wire.call(3, "fail")
        answer = await wire.receive()
    assert (answer["id"], answer["error"]["code"]) == (3, -32603)
