"""Access control over HTTP: tokens, origins and host names."""

import asyncio
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from tests.waiting import LONG_SECONDS, close_stream

from callwright import Executor, Registry, UsageError
from callwright.serve import Gateway, HttpOptions
from callwright.serve.http import app_of, listen, wait_until_served
from callwright.system.addresses import is_loopback

if TYPE_CHECKING:
    from tests.serve.conftest import Desk

HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
ACCEPT = {"Accept": "application/json, text/event-stream"}


async def knock(desk: "Desk", **headers: str) -> int:
    """The status a plain request is answered with."""
    async with httpx2.AsyncClient(timeout=LONG_SECONDS) as client:
        return (await client.post(desk.url, json=HELLO, headers={**ACCEPT, **headers})).status_code


@pytest.mark.parametrize("given", ["", "Bearer wrong", "sesame", "Basic sesame", "bearer sesame", "Bearer sesame2"])
async def test_request_without_token_is_rejected(desk: "Desk", given: str):
    headers = {"Authorization": given} if given else {}
    assert await knock(desk, **headers) == 401


async def test_request_with_token_is_accepted(desk: "Desk"):
    assert await knock(desk, Authorization="Bearer sesame") == 200


async def test_foreign_origin_is_rejected(desk: "Desk"):
    assert await knock(desk, Authorization="Bearer sesame", Origin="https://evil.example") == 403


async def test_browser_lets_only_named_pages_call():
    registry = Registry()
    gateway, page = Gateway(registry, Executor(registry)), "https://app.example"
    asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization,mcp-session-id"}
    options = HttpOptions(port=0, token="sesame", origins=(page,))
    async with listen(gateway, options) as (url, _), httpx2.AsyncClient(timeout=LONG_SECONDS) as client:
        for origin, status, named in (
            (page, 200, page),
            ("https://evil.example", 400, None),
            (f"{page}.evil", 400, None),
        ):
            answer = await client.options(
                url, headers={"Origin": origin, **asked}
            )  # as browsers ask, without the token
            assert (answer.status_code, answer.headers.get("access-control-allow-origin")) == (status, named)
        assert (
            "mcp-session-id"
            in (await client.options(url, headers={"Origin": page, **asked})).headers["access-control-allow-headers"]
        )
        for method, status in (("GET", 200), ("DELETE", 200), ("PUT", 400)):
            wanted = {"Origin": page, "Access-Control-Request-Method": method}
            assert (await client.options(url, headers=wanted)).status_code == status
        refused = await client.post(url, json=HELLO, headers={**ACCEPT, "Origin": page})
        assert refused.status_code == 401
        headers = {**ACCEPT, "Origin": page, "Authorization": "Bearer sesame"}
        answer = await client.post(url, json=HELLO, headers=headers)
        assert answer.status_code == 200 and answer.headers["access-control-allow-origin"] == page
        assert "mcp-session-id" in answer.headers["access-control-expose-headers"]
        foreign = await client.post(url, json=HELLO, headers={**headers, "Origin": "https://evil.example"})
        assert foreign.status_code == 403 and "access-control-allow-origin" not in foreign.headers


async def test_browser_is_told_of_no_page_by_default(desk: "Desk"):
    asked = {"Origin": "http://localhost:3000", "Access-Control-Request-Method": "POST"}
    async with httpx2.AsyncClient(timeout=LONG_SECONDS) as client:
        answer = await client.options(desk.url, headers=asked)
    assert answer.status_code == 401 and not any(name.startswith("access-control") for name in answer.headers)


async def test_rebound_host_name_is_rejected(desk: "Desk"):
    assert await knock(desk, Authorization="Bearer sesame", Host="evil.example:80") == 421


async def knock_at(options: HttpOptions, **headers: str) -> int:
    """The status of a request to a server that may listen elsewhere than on this machine."""
    registry = Registry()
    gateway = Gateway(registry, Executor(registry))
    app = app_of(gateway, options)
    async with (
        gateway.running(),
        gateway.server.session_manager.run(),
        httpx2.AsyncClient(transport=httpx2.ASGITransport(app)) as client,
    ):
        given = {**ACCEPT, "Authorization": f"Bearer {options.token}", **headers}
        return (await client.post(f"http://localhost{options.path}", json=HELLO, headers=given)).status_code


@pytest.mark.parametrize(("host", "shown"), [("192.0.2.1", "192.0.2.1"), ("2001:db8::1", "[2001:db8::1]")])
async def test_public_server_answers_to_its_own_names_only(host: str, shown: str):
    options = HttpOptions(host=host, names=("tools.example",))
    for name in (shown, f"{shown}:8808", "tools.example", "tools.example:443"):
        assert await knock_at(options, Host=name) == 200, name
    for name in ("localhost:8808", "127.0.0.1", "[::1]", "2001:db8::1", "[192.0.2.1]", "evil.tools.example"):
        assert await knock_at(options, Host=name) == 421, name
    for page in ("http://localhost:3000", "http://127.0.0.1", f"http://{shown}", "http://tools.example"):
        assert await knock_at(options, Host=shown, Origin=page) == 403, page


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "[::1]"])
async def test_pages_of_this_machine_may_call(name: str):
    for host in ("localhost", "::1"):
        for page in (f"http://{name}", f"http://{name}:3000"):
            assert await knock_at(HttpOptions(host=host), Host=f"{name}:8808", Origin=page) == 200


async def test_token_given_twice_is_rejected(desk: "Desk"):
    given = [*ACCEPT.items(), ("Authorization", "Bearer sesame")]
    async with httpx2.AsyncClient(timeout=LONG_SECONDS) as client:
        for other in ("Bearer sesame", "Bearer wrong"):
            for headers in ([*given, ("Authorization", other)], [("Authorization", other), *given]):
                assert (await client.post(desk.url, json=HELLO, headers=headers)).status_code == 401


@pytest.mark.parametrize(("given", "status"), [("sesame2", 401), ("sesame", 421)])
async def test_websocket_is_no_way_around_the_checks(desk: "Desk", given: str, status: int):
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
    headers = {**upgrade, "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Host": "evil.example"}
    async with httpx2.AsyncClient(timeout=LONG_SECONDS) as client:
        answer = await client.get(desk.url, headers={**headers, "Authorization": f"Bearer {given}"})
    assert answer.status_code == status


async def test_port_in_use_is_rejected(desk: "Desk"):
    port = httpx2.URL(desk.url).port
    assert port is not None
    with pytest.raises(UsageError, match="cannot listen"):
        async with listen(desk.gateway, HttpOptions(port=port)):
            pass


@pytest.mark.parametrize("wrong", [{"max_sessions": 0}, {"max_connections": 0}, {"path": "mcp"}, {"path": ""}])
def test_server_that_could_not_be_reached_is_rejected(wrong: dict[str, Any]):
    with pytest.raises(UsageError, match="must"):
        HttpOptions(**wrong)
    assert HttpOptions(max_sessions=1, max_connections=1, path="/").token


async def test_connections_are_limited():
    registry = Registry()
    options = HttpOptions(port=0, max_connections=1)
    async with listen(Gateway(registry, Executor(registry)), options) as (url, _):
        place = httpx2.URL(url)
        _, held = await asyncio.open_connection(place.host, place.port)
        async with httpx2.AsyncClient(timeout=LONG_SECONDS) as client:
            assert (await client.post(url, json=HELLO, headers=ACCEPT)).status_code == 503
        await close_stream(held)


def test_public_host_needs_token():
    with pytest.raises(UsageError, match="token"):
        HttpOptions(host="0.0.0.0", token="")
    assert HttpOptions(host="0.0.0.0").token


@pytest.mark.parametrize(
    "origin", ["app.example.com", "https://app.example.com/", "https://App.example.com", "null", ""]
)
def test_origin_that_no_browser_sends_is_rejected(origin: str):
    with pytest.raises(UsageError, match="without a path"):
        HttpOptions(origins=(origin,))
    assert HttpOptions(origins=("https://app.example.com:8443", "vscode-webview://1f2e")).origins


@pytest.mark.parametrize("port", [-1, 65_536, "80", True])
def test_impossible_port_is_rejected(port: object):
    with pytest.raises(UsageError, match="port must be at least 0 and at most 65,535"):
        HttpOptions(port=port)  # type: ignore[arg-type] - what is tested


async def test_cancelled_server_ends_in_order(caplog: pytest.LogCaptureFixture):
    registry = Registry()
    gateway, stopped = Gateway(registry, Executor(registry)), asyncio.Event()

    async def serve() -> None:
        async with listen(gateway, HttpOptions(port=0)) as (_, serving):
            serving.add_done_callback(lambda ended: stopped.set() if not ended.cancelled() else None)
            asyncio.get_running_loop().call_soon(running.cancel)
            await wait_until_served(serving)

    running = asyncio.create_task(serve())
    with pytest.raises(asyncio.CancelledError):
        await running
    assert stopped.is_set() and not caplog.records  # uvicorn logs a traceback for a server that is torn down


def test_default_host_is_loopback():
    assert is_loopback(HttpOptions().host)


@pytest.mark.parametrize(
    ("host", "here"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("127.8.9.1", True), ("0.0.0.0", False), ("host", False)],
)
def test_loopback_is_decided_by_address(host: str, here: bool):
    assert is_loopback(host) is here


def test_token_is_not_in_repr():
    assert "sesame" not in repr(HttpOptions(token="sesame"))
