"""Servers over HTTP whose connections and proxies fail."""

import gzip
import json
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from callwright import Completed, Executor, Failed, Registry
from callwright.mcp import McpServers, ServerConfig
from callwright.policy import AllowEverything
from callwright.retry import RetryPolicy


class Site(ThreadingHTTPServer):
    """A server with one tool, whose calls fail in one way."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.calls = 0
        """How many calls have come."""
        self.status = 0
        """The status of calls; 0 to end the connection without a response."""
        self.body, self.kind = b"busy", "text/plain"
        self.sessions = 0
        self.lost: tuple[int, int, str] | None = None
        """How the first session of the client ends: the status, and the code and message of the error."""
        self.packs = False
        """Whether results are compressed, although they were not asked for like that."""
        self.headers: dict[str, str] = {}

    @property
    def config(self) -> ServerConfig:
        return ServerConfig("site", url=f"http://127.0.0.1:{self.server_address[1]}/mcp")


class _Handler(BaseHTTPRequestHandler):
    server: Site  # pyright: ignore[reportIncompatibleVariableOverride] - always made by it

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if message["method"] == "tools/call" and self.server.lost and self.headers.get("mcp-session-id") == "1":
            status, code, said = self.server.lost
            body = {"jsonrpc": "2.0", "id": message["id"], "error": {"code": code, "message": said}}
            self._send(status, json.dumps(body).encode(), "application/json")
        elif message["method"] == "tools/call" and self.server.lost:
            body = {"jsonrpc": "2.0", "id": message["id"], "result": {"content": [{"type": "text", "text": "paid"}]}}
            self._send(200, json.dumps(body).encode(), "application/json")
        elif message["method"] == "tools/call":
            self.server.calls += 1
            if self.server.packs:
                result: dict[str, Any] = {"content": [], "_meta": {"x": "x" * 1_000_000}}
                body = {"jsonrpc": "2.0", "id": message["id"], "result": result}
                packed = gzip.compress(json.dumps(body).encode())
                self._send(200, packed, "application/json", **{"content-encoding": "gzip"})
            elif self.server.status:
                self._send(self.server.status, self.server.body, self.server.kind, **self.server.headers)
            else:
                self.connection.shutdown(socket.SHUT_RDWR)
        elif "id" not in message:
            self._send(202, b"", "text/plain")
        else:
            self.server.sessions += message["method"] == "initialize"
            body = {"jsonrpc": "2.0", "id": message["id"], **self._answer(message["method"])}
            session = {"mcp-session-id": str(self.server.sessions)} if self.server.lost else {}
            self._send(200, json.dumps(body).encode(), "application/json", **session)

    def _answer(self, method: str) -> dict[str, Any]:
        match method:
            case "initialize":
                told = {"protocolVersion": "2025-06-18", "serverInfo": {"name": "site", "version": "1"}}
                return {"result": {**told, "capabilities": {"tools": {}}}}
            case "tools/list":
                return {"result": {"tools": [{"name": "pay", "inputSchema": {"type": "object"}}]}}
            case _:
                return {"error": {"code": -32601, "message": "there is no such method"}}

    def _send(self, status: int, body: bytes, kind: str, **more: str) -> None:
        self.send_response(status)
        for name, value in {"content-type": kind, "content-length": str(len(body)), **more}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        self.send_error(405)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
        return None


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


@pytest.mark.parametrize(
    ("status", "headers", "times"),
    [
        (0, {}, 1),
        (502, {}, 1),
        (504, {}, 1),
        (503, {}, 1),
        (503, {"retry-after": "0"}, 3),
        (429, {}, 3),
    ],
)
async def test_call_that_may_have_run_is_not_repeated(site: Site, status: int, headers: dict[str, str], times: int):
    site.status, site.headers = status, headers
    registry = Registry()
    executor = Executor(registry, AllowEverything(), retry=RetryPolicy(initial_seconds=0))
    async with McpServers([site.config], registry):
        outcome = await executor.run("mcp__site__pay", {})
    assert isinstance(outcome, Failed)
    assert site.calls == times


async def test_compressed_response_is_refused(site: Site):
    site.packs, registry = True, Registry()
    async with McpServers([replace(site.config, message_bytes=100_000)], registry):
        outcome = await Executor(registry, AllowEverything()).run("mcp__site__pay", {})
    assert isinstance(outcome, Failed) and "compressed response" in outcome.text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lost", "renewed"),
    [
        ((404, -32600, "Session not found"), True),
        ((404, -32001, "Session not found"), True),
        ((400, -32000, "Bad Request: No valid session ID provided"), True),
        ((404, -32601, "Method not found"), False),
        ((400, -32602, "Invalid params: session_id is required"), False),
        ((200, -32600, "Session terminated"), False),
    ],
)
async def test_session_that_the_server_forgot_is_renewed(site: Site, lost: tuple[int, int, str], renewed: bool):
    site.lost, registry = lost, Registry()
    async with McpServers([site.config], registry):
        outcome = await Executor(registry, AllowEverything()).run("mcp__site__pay", {})
    assert isinstance(outcome, Completed) is renewed
    assert site.sessions == 1 + renewed
    assert renewed or lost[2] in outcome.text


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Authorization", "Bearer secret\n"),
        ("Authorization", " Bearer secret"),
        ("Authorization", "Bearer secret\r\nX: y"),
        ("Authorization", "Bearer \u201csecret\u201d"),
        ("My Key", "secret"),
        ("", "secret"),
    ],
)
async def test_header_that_cannot_be_sent_is_named_without_its_value(site: Site, name: str, value: str):
    async with McpServers([replace(site.config, headers={name: value})], Registry()) as servers:
        [status] = servers.status()
    assert status.reason.startswith(f"its header {name!r} cannot be sent")
    assert "secret" not in status.reason
    assert site.sessions == 0


@pytest.mark.parametrize(
    ("status", "body", "times", "told"),
    [
        (429, {"error": "slow down"}, 3, "site: HTTP status 429"),
        (500, {"error": "no database"}, 1, "site: HTTP status 500: internal server error"),
        (403, {"message": "no"}, 1, "site: HTTP status 403: the server does not accept these credentials"),
        (400, {"jsonrpc": "2.0", "id": None, "error": {"code": -32602, "message": "no such coin"}}, 1, "no such coin"),
    ],
)
async def test_status_counts_beside_json_that_is_not_of_the_protocol(
    site: Site, status: int, body: dict[str, Any], times: int, told: str
):
    site.status, site.body, site.kind = status, json.dumps(body).encode(), "application/json"
    registry = Registry()
    executor = Executor(registry, AllowEverything(), retry=RetryPolicy(initial_seconds=0))
    config = replace(site.config, headers={"Authorization": "Bearer key"})
    async with McpServers([config], registry):
        outcome = await executor.run("mcp__site__pay", {})
    assert isinstance(outcome, Failed)
    assert told in outcome.text
    assert site.calls == times
