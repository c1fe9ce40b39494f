"""Sign-in: the callback of the browser, and the storage of tokens."""

import asyncio
import json
import socket
import stat
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from mcp.client.auth import OAuthFlowError
from mcp.shared.auth import OAuthToken
from tests.waiting import LONG_SECONDS, until

from callwright import Completed, Executor, Registry
from callwright.mcp import McpServers, ServerConfig, TokenFile
from callwright.mcp.oauth import SignIn, Tokens, registered_port
from callwright.policy import AllowEverything


def a_sign_in() -> tuple[SignIn, str]:
    sign_in = SignIn(ServerConfig("x", url="http://127.0.0.1:9/mcp"), Tokens(), lambda: None)
    uris = sign_in.auth.context.client_metadata.redirect_uris
    assert uris is not None
    return sign_in, str(uris[0])


async def visit(url: str) -> int:
    async with httpx2.AsyncClient(timeout=LONG_SECONDS) as browser:
        return (await browser.get(url)).status_code


async def visit_soon(url: str) -> int:
    """Visit an address whose port may not be open yet."""
    while True:
        with suppress(httpx2.ConnectError):
            return await visit(url)
        await asyncio.sleep(0.01)


async def test_code_is_received_on_callback_path_only():
    sign_in, address = a_sign_in()
    assert urlsplit(address).hostname == "127.0.0.1"
    await sign_in._request_sign_in("https://auth.example/authorize?state=s%201")  # pyright: ignore[reportPrivateUsage] - the SDK calls it
    waiting = asyncio.create_task(sign_in.wait_for_browser())
    await visit_soon(address.replace("/callback", "/favicon.ico"))
    await visit(f"{address}?nothing=1")
    assert not waiting.done()
    await visit(f"{address}?code=abc&state=s%201")
    result = await waiting
    assert (result.code, result.state) == ("abc", "s 1")
    sign_in.close()


async def test_refused_sign_in_reports_reason():
    sign_in, address = a_sign_in()
    await sign_in._request_sign_in("https://auth.example/authorize?state=s%201")  # pyright: ignore[reportPrivateUsage] - the SDK calls it
    waiting = asyncio.create_task(sign_in.wait_for_browser())
    await visit_soon(f"{address}?error=access_denied<script>&state=s%201")
    with pytest.raises(OAuthFlowError, match="access_deniedscript"):
        await waiting
    sign_in.close()


async def test_failed_sign_in_is_raised_and_leaves_no_traceback_in_the_log(caplog: pytest.LogCaptureFixture):
    def answer(request: httpx2.Request) -> httpx2.Response:
        if "oauth-protected-resource" not in request.url.path:
            return httpx2.Response(401)
        resource = {"resource": "http://127.0.0.1:9/other", "authorization_servers": ["http://127.0.0.1:9"]}
        return httpx2.Response(200, json=resource)

    sign_in, _ = a_sign_in()
    async with httpx2.AsyncClient(transport=httpx2.MockTransport(answer), auth=sign_in.auth) as client:
        with pytest.raises(OAuthFlowError, match="does not match"):
            await client.get("http://127.0.0.1:9/mcp")
    sign_in.close()
    assert not [record for record in caplog.records if record.exc_info]


async def test_port_is_closed_without_sign_in():
    sign_in, address = a_sign_in()
    with pytest.raises(httpx2.ConnectError):
        await visit(address)
    assert parse_qs(urlsplit(address).query) == {}
    sign_in.close()


async def test_token_file_is_private(tmp_path: Path):
    file = tmp_path / "tokens" / "x.json"
    await TokenFile(file).set_tokens(OAuthToken(access_token="secret", token_type="Bearer"))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    kept = await TokenFile(file).get_tokens()
    assert kept is not None
    assert kept.access_token == "secret"
    assert list(file.parent.iterdir()) == [file]


async def test_token_file_that_cannot_be_written_is_named(tmp_path: Path):
    (tmp_path / "tokens").write_text("not a folder")
    with pytest.raises(OAuthFlowError, match=r"it cannot be kept in .*/tokens/x\.json: .*; make the folder writable"):
        await TokenFile(tmp_path / "tokens" / "x.json").set_tokens(OAuthToken(access_token="secret"))


class AuthorizedServer:
    """A server and its sign-in page, which accepts only addresses that were registered. Its first token ends soon."""

    def __init__(self) -> None:
        self.accepted = ""
        self.registered: list[str] = []
        self.asked: list[str] = []
        """The grant types of the requests for tokens."""
        self.revoked = False
        """Whether the token that was given last is not accepted any more."""
        self.refresh_errors: list[httpx2.Response] = []
        """Answers to the next requests to renew a token."""

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        path, form = request.url.path, parse_qs(request.content.decode())
        if request.url.host == "mcp.example" and path == "/mcp":
            valid = (
                self.accepted and not self.revoked and request.headers.get("authorization") == f"Bearer {self.accepted}"
            )
            return httpx2.Response(200 if valid else 401)
        if path == "/.well-known/oauth-protected-resource/mcp":
            found = {"resource": "https://mcp.example/mcp", "authorization_servers": ["https://sign-in.example"]}
            return httpx2.Response(200, json=found)
        if path == "/.well-known/oauth-authorization-server":
            paths = {"authorization_endpoint": "/page", "token_endpoint": "/give", "registration_endpoint": "/register"}
            endpoints = {name: f"https://sign-in.example{path}" for name, path in paths.items()}
            return httpx2.Response(200, json={"issuer": "https://sign-in.example", **endpoints})
        if path == "/register":
            given = json.loads(request.content)
            self.registered += given["redirect_uris"]
            return httpx2.Response(201, json={**given, "client_id": f"client-{len(self.registered)}"})
        if (request.url.host, path) == ("sign-in.example", "/give"):
            self.asked += form["grant_type"]
            if form["grant_type"] == ["refresh_token"] and self.refresh_errors:
                return self.refresh_errors.pop(0)
            if form["grant_type"] == ["refresh_token"] and form["refresh_token"] != [f"again-{self.accepted}"]:
                return httpx2.Response(400, json={"error": "invalid_grant"})
            self.accepted, self.revoked = f"token-{len(self.asked)}", False
            seconds = 0 if len(self.asked) == 1 else 3600
            given = {"access_token": self.accepted, "token_type": "Bearer", "expires_in": seconds}
            return httpx2.Response(200, json={**given, "refresh_token": f"again-{self.accepted}"})
        return httpx2.Response(404)


async def request_once(server: AuthorizedServer, file: Path) -> tuple[int, list[str]]:
    """Send a request as a new process would; return the status, and the addresses that a sign-in was sent to."""
    sent_to: list[str] = []
    tokens = TokenFile(file)
    visits: list[asyncio.Task[int]] = []

    def sign_in_now() -> None:
        fields = parse_qs(urlsplit(sign_in.url).query)
        [address], [state] = fields["redirect_uri"], fields["state"]
        sent_to.append(address)
        assert address in server.registered  # what a server that compares addresses refuses
        visits.append(asyncio.create_task(visit_soon(f"{address}?code=abc&state={state}")))

    port = registered_port(await tokens.get_client_info())
    sign_in = SignIn(ServerConfig("x", url="https://mcp.example/mcp"), tokens, sign_in_now, port=port)
    try:
        async with httpx2.AsyncClient(transport=httpx2.MockTransport(server), auth=sign_in.auth) as client:
            response = await asyncio.wait_for(client.get("https://mcp.example/mcp"), LONG_SECONDS)
        await asyncio.gather(*visits)
    finally:
        sign_in.close()
    return response.status_code, sent_to


async def test_expired_token_is_renewed_after_a_restart_without_a_sign_in(tmp_path: Path):
    server, file = AuthorizedServer(), tmp_path / "x.json"
    assert await request_once(server, file) == (200, server.registered)
    assert await request_once(server, file) == (200, [])
    assert server.asked == ["authorization_code", "refresh_token"]


async def test_later_sign_in_returns_to_the_registered_address(tmp_path: Path):
    server, file = AuthorizedServer(), tmp_path / "x.json"
    _, first = await request_once(server, file)
    kept = json.loads(file.read_text())
    del kept["tokens"]
    file.write_text(json.dumps(kept))
    assert await request_once(server, file) == (200, first)
    assert server.registered == first


async def test_token_that_the_server_ended_early_is_renewed_without_a_sign_in(tmp_path: Path):
    server, file = AuthorizedServer(), tmp_path / "x.json"
    await request_once(server, file)
    await request_once(server, file)
    server.revoked = True  # the token of the file would be valid for an hour
    assert await request_once(server, file) == (200, [])
    assert server.asked == ["authorization_code", "refresh_token", "refresh_token"]


@pytest.mark.parametrize("by_clock", [False, True])
async def test_token_that_another_process_renewed_is_used(tmp_path: Path, *, by_clock: bool):
    server, file = AuthorizedServer(), tmp_path / "x.json"
    await request_once(server, file)
    await request_once(server, file)
    sign_in = SignIn(ServerConfig("x", url="https://mcp.example/mcp"), TokenFile(file), lambda: None)
    async with httpx2.AsyncClient(transport=httpx2.MockTransport(server), auth=sign_in.auth) as client:
        assert (await client.get("https://mcp.example/mcp")).status_code == 200
        server.revoked = True
        await request_once(server, file)
        asked = len(server.asked)
        if by_clock:
            sign_in.auth.context.token_expiry_time = 1.0
        assert (await client.get("https://mcp.example/mcp")).status_code == 200
    sign_in.close()
    assert len(server.asked) == asked


@pytest.mark.parametrize("by_clock", [False, True])
async def test_token_that_another_process_removed_is_not_renewed(tmp_path: Path, *, by_clock: bool):
    server, file = AuthorizedServer(), tmp_path / "x.json"
    await request_once(server, file)
    await request_once(server, file)

    def refuse() -> None:
        raise OAuthFlowError("the user must sign in")

    sign_in = SignIn(ServerConfig("x", url="https://mcp.example/mcp"), TokenFile(file), refuse)
    async with httpx2.AsyncClient(transport=httpx2.MockTransport(server), auth=sign_in.auth) as client:
        assert (await client.get("https://mcp.example/mcp")).status_code == 200
        file.unlink()  # as `callwright mcp logout` does
        asked = len(server.asked)
        server.revoked = True
        if by_clock:
            sign_in.auth.context.token_expiry_time = 1.0
        with pytest.raises(OAuthFlowError, match="must sign in"):
            await client.get("https://mcp.example/mcp")
    sign_in.close()
    assert len(server.asked) == asked
    assert "tokens" not in json.loads(file.read_text())


async def test_process_without_the_registered_port_registers_for_a_sign_in_only(tmp_path: Path):
    server, file = AuthorizedServer(), tmp_path / "x.json"
    _, (address,) = await request_once(server, file)
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", urlsplit(address).port or 0))
        other.listen()
        assert await request_once(server, file) == (200, [])
        server.revoked = True
        server.refresh_errors.append(httpx2.Response(400, json={"error": "invalid_grant"}))
        status, (second,) = await request_once(server, file)
    assert status == 200 and server.registered == [address, second]


async def test_client_that_the_server_forgot_is_registered_again(tmp_path: Path):
    server, file = AuthorizedServer(), tmp_path / "x.json"
    _, first = await request_once(server, file)
    server.refresh_errors.append(httpx2.Response(401, json={"error": "invalid_client"}))
    status, sent_to = await request_once(server, file)
    assert (status, len(sent_to), len(server.registered)) == (200, 1, 2)
    assert sent_to == first


@pytest.mark.parametrize("failure", [425, 503])
async def test_failure_to_renew_that_may_pass_costs_no_sign_in(tmp_path: Path, failure: int):
    server, file = AuthorizedServer(), tmp_path / "x.json"
    await request_once(server, file)
    server.refresh_errors.append(httpx2.Response(failure))
    assert await request_once(server, file) == (failure, [])
    assert await request_once(server, file) == (200, [])


class RevokingHandler(BaseHTTPRequestHandler):
    """An MCP server with a sign-in of its own; only the last of `tokens` is accepted."""

    tokens: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        base = f"http://{self.headers['host']}"
        if "oauth-protected-resource" in self.path:
            self._answer(200, {"resource": f"{base}/mcp", "authorization_servers": [base]})
        elif "oauth-authorization-server" in self.path:
            names = ("authorization", "token", "registration")
            self._answer(200, {"issuer": base, **{f"{name}_endpoint": f"{base}/{name}" for name in names}})
        else:
            self._answer(405)

    def do_POST(self) -> None:
        given = self.rfile.read(int(self.headers["content-length"]))
        if self.path == "/registration":
            self._answer(201, {**json.loads(given), "client_id": "client"})
        elif self.path == "/token":
            self.tokens.append(f"token-{len(self.tokens)}")
            self._answer(200, {"access_token": self.tokens[-1], "token_type": "Bearer"})
        elif not self.tokens or self.headers["authorization"] != f"Bearer {self.tokens[-1]}":
            self._answer(401)
        else:
            self._answer_message(json.loads(given))

    def _answer_message(self, message: dict[str, Any]) -> None:
        results: dict[str, Any] = {
            "initialize": {
                "protocolVersion": "2025-06-18",
                "serverInfo": {"name": "x", "version": "1"},
                "capabilities": {"tools": {}},
            },
            "tools/list": {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]},
            "tools/call": {"content": [{"type": "text", "text": "done"}]},
        }
        found = results.get(message["method"])
        answer = {"error": {"code": -32601, "message": "no such method"}} if found is None else {"result": found}
        if "id" in message:
            self._answer(200, {"jsonrpc": "2.0", "id": message["id"], **answer})
        else:
            self._answer(202)

    def _answer(self, status: int, content: dict[str, Any] | None = None) -> None:
        body = b"" if content is None else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
        return None


async def sign_in_to(servers: McpServers) -> None:
    await until(lambda: bool(servers.status()[0].sign_in_url))
    fields = parse_qs(urlsplit(servers.status()[0].sign_in_url).query)
    await visit_soon(f"{fields['redirect_uri'][0]}?code=abc&state={fields['state'][0]}")


class PostponedRenewal(RevokingHandler):
    """Cannot renew a token at first; opens the stream of the first call at once, and ends it when `released` is set."""

    refused: ClassVar[threading.Event]
    started: ClassVar[threading.Event]
    released: ClassVar[threading.Event]

    def do_POST(self) -> None:
        if self.path == "/token" and self.tokens and not self.refused.is_set():
            self.refused.set()
            self._answer(503)
        else:
            super().do_POST()

    def _answer_message(self, message: dict[str, Any]) -> None:
        if message["method"] != "tools/call" or self.started.is_set():
            super()._answer_message(message)
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        self.started.set()
        self.released.wait(LONG_SECONDS)
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": {"content": [{"type": "text", "text": "first"}]}}
        with suppress(OSError):  # a client that left
            self.wfile.write(f"event: message\ndata: {json.dumps(answer)}\n\n".encode())

    def _answer(self, status: int, content: dict[str, Any] | None = None) -> None:
        if content is not None and "access_token" in content:
            content = {**content, "refresh_token": "again"}
        super()._answer(status, content)


@asynccontextmanager
async def signed_in(handler: type[BaseHTTPRequestHandler]) -> AsyncGenerator[tuple[McpServers, Registry]]:
    """Serve a handler, and lend servers that are signed in to it and ready."""
    registry = Registry()
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        config = ServerConfig("x", url=f"http://127.0.0.1:{server.server_address[1]}/mcp", seconds=LONG_SECONDS)
        async with McpServers([config], registry) as servers:
            await sign_in_to(servers)
            await until(lambda: servers.status()[0].condition == "ready")
            yield servers, registry
        server.shutdown()


@pytest.mark.slow
async def test_failure_to_renew_a_token_leaves_running_calls_alone():
    events = {name: threading.Event() for name in ("refused", "started", "released")}
    handler = type("Handler", (PostponedRenewal,), {"tokens": list[str](), **events})
    async with signed_in(handler) as (_, registry):
        executor = Executor(registry, AllowEverything())
        running = asyncio.create_task(executor.run("mcp__x__echo", {}))
        await until(handler.started.is_set)
        handler.tokens.append("another")  # the one of the session is not accepted any more
        repeated = await executor.run("mcp__x__echo", {})
        handler.released.set()
        first = await running
    assert isinstance(first, Completed) and first.text == "first"
    assert isinstance(repeated, Completed) and repeated.attempts == 2


async def test_server_is_ready_again_after_a_sign_in_in_the_middle_of_a_session():
    handler = type("Handler", (RevokingHandler,), {"tokens": list[str]()})
    async with signed_in(handler) as (servers, registry):
        assert servers.status()[0].seconds > 0
        handler.tokens.append("another")  # the one of the session is not accepted any more
        call = asyncio.create_task(Executor(registry, AllowEverything()).run("mcp__x__echo", {}))
        await sign_in_to(servers)
        assert isinstance(await call, Completed)
        assert servers.status()[0].condition == "ready"
