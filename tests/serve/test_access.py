"""Access to the gateway: exact host names and origins, clients kept apart, limits on headers and sessions."""

import asyncio
import json
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

import httpx2
import pytest
from mcp import MCPError
from mcp.server.session import ServerSession
from starlette.types import Receive, Scope, Send
from tests.serve.test_http import ACCEPT, HELLO
from tests.waiting import LONG_SECONDS, close_stream

from callwright import Executor, Registry, ToolContext, ToolSpec, tool
from callwright.policy import AllowEverything
from callwright.serve import Gateway, HttpOptions
from callwright.serve.access import CLIENT_ID, CLIENT_RETURNED, ClientIds, TimedProtocol
from callwright.serve.call import SuspendableCall, SuspendedCalls
from callwright.serve.clients import Caller, ClientStates, ListChangeNotifier
from callwright.serve.http import listen
from callwright.tool.base import State
from callwright.tool.schema_tool import SchemaTool

if TYPE_CHECKING:
    from tests.serve.conftest import Desk


async def status(desk: "Desk", **headers: str) -> int:
    async with httpx2.AsyncClient(timeout=LONG_SECONDS) as client:
        given = {**ACCEPT, "Authorization": "Bearer sesame", **headers}
        return (await client.post(desk.url, json=HELLO, headers=given)).status_code


@pytest.mark.parametrize(
    "host",
    [
        *("localhost:80@evil.example", "localhost:80.evil.example", "localhost.evil.example", "localhost:evil"),
        *("127.0.0.1:80:80", "127.0.0.1.evil.example", "evil.example#localhost", "localhost/", "localhost:", "[::1]x"),
        *("evil.example:localhost", "localhost,evil.example", "xlocalhost", "127.0.0.1:123456", "localhost:8*"),
    ],
)
async def test_only_whole_host_names_are_accepted(desk: "Desk", host: str) -> None:
    assert await status(desk, Host=host) == 421


@pytest.mark.parametrize("host", ["localhost", "localhost:8808", "127.0.0.1:1", "[::1]:80"])
async def test_names_of_this_machine_are_accepted(desk: "Desk", host: str) -> None:
    assert await status(desk, Host=host) == 200


@pytest.mark.parametrize(
    "origin",
    [
        *("http://localhost:3000.evil.example", "http://localhost:3000@evil.example", "http://localhost.evil.example"),
        *("https://evil.example", "null", "http://evil.example:3000", "http://localhost:3000/x", "file://localhost"),
    ],
)
async def test_only_whole_origins_are_accepted(desk: "Desk", origin: str) -> None:
    assert await status(desk, Origin=origin) == 403
    assert await status(desk, Origin="http://localhost:3000") == 200


@pytest.mark.slow
async def test_slow_headers_are_cut_off(desk: "Desk", monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TimedProtocol, "header_seconds", 0.2)
    place = urlsplit(desk.url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    writer.write(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n")

    async def trickle() -> None:
        for _ in range(100):
            writer.write(b"X: y\r\n")
            await asyncio.sleep(0.05)

    trickling = asyncio.ensure_future(trickle())
    try:
        with suppress(ConnectionResetError):  # what was on its way when it was closed
            assert await asyncio.wait_for(reader.read(), LONG_SECONDS) == b""  # closed without an answer
    finally:
        trickling.cancel()
        await close_stream(writer)


@pytest.mark.parametrize("token", ["sesame", "wrong"])
@pytest.mark.parametrize("before", [b"", b"GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n"])
async def test_slow_bodies_are_cut_off(
    desk: "Desk", monkeypatch: pytest.MonkeyPatch, token: str, before: bytes
) -> None:
    monkeypatch.setattr(TimedProtocol, "body_seconds", 0.1)
    place = urlsplit(desk.url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    head = f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nContent-Length: 10000\r\n\r\n"
    writer.write(before + head.encode())  # both at once: the second request is read after the first response

    async def trickle() -> None:
        while True:
            await asyncio.sleep(0.02)
            writer.write(b"x")

    trickling = asyncio.ensure_future(trickle() if token == "wrong" else asyncio.sleep(0))
    try:
        with suppress(ConnectionResetError):  # what was on its way when it was closed
            await asyncio.wait_for(reader.read(), LONG_SECONDS)  # a refused one is answered, and goes on
    finally:
        trickling.cancel()
        await close_stream(writer)


async def test_long_call_is_not_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    @tool
    async def swap(text: str) -> str:
        """Take longer than a request may."""
        await asyncio.sleep(float(text))
        return "done"

    registry = Registry(swap)
    gateway = Gateway(registry, Executor(registry, AllowEverything()))
    headers = {**ACCEPT, "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "swap"}
    async with listen(gateway, HttpOptions(port=0, token="")) as (url, _):
        for seconds in ("0", "0.3"):  # the first loads what the second needs
            async with httpx2.AsyncClient(timeout=LONG_SECONDS) as client:
                assert "done" in (await client.post(url, json=modern_call(seconds), headers=headers)).text
            for name in ("header_seconds", "body_seconds"):
                monkeypatch.setattr(TimedProtocol, name, 0.2)


async def test_sessions_are_capped_with_an_error() -> None:
    registry = Registry()
    gateway = Gateway(registry, Executor(registry, AllowEverything()))
    options = HttpOptions(port=0, token="", max_sessions=2)
    async with listen(gateway, options) as (url, _), httpx2.AsyncClient(timeout=LONG_SECONDS) as client:
        answers = [await client.post(url, json=HELLO, headers=ACCEPT) for _ in range(3)]
    assert [answer.status_code for answer in answers[:2]] == [200, 200]
    assert answers[2].status_code >= 400 and "session" in answers[2].text.lower()


class Notes:
    """The state of one client."""

    text = ""


@tool
async def swap(text: str, context: ToolContext) -> str:
    """Return the client's last text and keep another."""
    notes = context.state.get(Notes)
    last, notes.text = notes.text, text
    return f"<{last}>"


def modern_call(text: str, name: str = "same") -> dict[str, Any]:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": name, "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": "swap", "arguments": {"text": text}, "_meta": meta}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


@pytest.mark.slow
async def test_clients_without_sessions_do_not_share_state(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = Registry(swap)
    executor = Executor(registry, AllowEverything())
    gateway = Gateway(registry, executor)
    monkeypatch.setattr(gateway, "_states", ClientStates(executor.state.copy, most=10))
    headers = {**ACCEPT, "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "swap"}
    async with listen(gateway, HttpOptions(port=0, token="")) as (url, _):

        async def say(client: httpx2.AsyncClient, text: str, **more: str) -> str:
            answer = await client.post(url, json=modern_call(text), headers={**headers, **more})
            assert answer.status_code == 200, answer.text
            return answer.text

        async with httpx2.AsyncClient(timeout=LONG_SECONDS) as one, httpx2.AsyncClient(timeout=LONG_SECONDS) as other:
            assert "<>" in await say(one, "mine")
            assert "<mine>" in await say(one, "mine")  # the cookie came back
            assert "<>" in await say(other, "x")  # the same name, machine and credentials
            stolen = {"Mcp-Session-Id": "mine", "Cookie": "callwright-client=guess.0"}
            other.cookies.clear()
            assert "<>" in await say(other, "x", **stolen)
            for number in range(30):  # clients that never return their id displace no other
                other.cookies.clear()
                await say(other, str(number))
            assert "<mine>" in await say(one, "mine")


async def test_client_without_session_keeps_its_state_with_its_cookie() -> None:
    registry = Registry(swap)
    gateway = Gateway(registry, Executor(registry, AllowEverything()))
    headers = {**ACCEPT, "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "swap"}
    async with (
        listen(gateway, HttpOptions(port=0, token="")) as (url, _),
        httpx2.AsyncClient(timeout=LONG_SECONDS) as client,
    ):
        for text, last in (("a", ""), ("b", "a"), ("c", "b")):
            assert f"<{last}>" in (await client.post(url, json=modern_call(text), headers=headers)).text
        client.cookies.clear()
        assert "<>" in (await client.post(url, json=modern_call("d"), headers=headers)).text


async def test_sessions_of_one_program_do_not_share_state() -> None:
    registry = Registry(swap)
    gateway = Gateway(registry, Executor(registry, AllowEverything()))
    async with (
        listen(gateway, HttpOptions(port=0, token="")) as (url, _),
        httpx2.AsyncClient(timeout=LONG_SECONDS) as client,  # which returns its cookie in both of them
    ):
        opened = [await client.post(url, json=HELLO, headers=ACCEPT) for _ in range(2)]
        sessions = [{**ACCEPT, "Mcp-Session-Id": each.headers["mcp-session-id"]} for each in opened]
        ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        for headers, text, last in ((sessions[0], "a", ""), (sessions[1], "b", ""), (sessions[0], "c", "a")):
            await client.post(url, json=ready, headers=headers)
            params = {"name": "swap", "arguments": {"text": text}}
            request = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}
            assert f"<{last}>" in (await client.post(url, json=request, headers=headers)).text


async def test_call_goes_on_with_answers_of_a_client_that_declares_nothing_more() -> None:
    runs: list[str] = []

    @tool
    async def save(text: str) -> str:
        """Save a text; asks first."""
        runs.append(text)
        return f"saved {text}"

    registry = Registry(save)
    gateway = Gateway(registry, Executor(registry))
    headers = {**ACCEPT, "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "save"}
    async with (
        listen(gateway, HttpOptions(port=0, token="")) as (url, _),
        httpx2.AsyncClient(timeout=LONG_SECONDS) as client,
    ):

        async def send(capabilities: dict[str, Any], **more: Any) -> dict[str, Any]:
            request = modern_call("it")
            request["params"] |= {"name": "save", **more}
            request["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities
            answer = await client.post(url, json=request, headers=headers)
            return json.loads(answer.text.rpartition("data: ")[2])

        asked = (await send({"elicitation": {}}))["result"]
        (key,) = asked["inputRequests"]
        yes = {key: {"action": "accept", "content": {"decision": "yes"}}}
        refused = await send({}, requestState="of no call", inputResponses=yes)
        assert "no call is suspended" in refused["error"]["message"] and not runs
        done = await send({}, requestState=asked["requestState"], inputResponses=yes)
        assert done["result"]["content"][0]["text"] == "saved it" and runs == ["it"]


async def test_headers_that_differ_from_the_arguments_are_refused() -> None:
    ran: list[Any] = []
    schema = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}

    async def deploy(arguments: Any) -> str:
        ran.append(arguments["region"])
        return "deployed"

    registry = Registry(SchemaTool(ToolSpec("deploy", "Deploy.", schema), deploy))
    gateway = Gateway(registry, Executor(registry, AllowEverything()))
    headers = {**ACCEPT, "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "deploy"}
    request = modern_call("")
    request["params"] |= {"name": "deploy", "arguments": {"region": "eu"}}
    async with (
        listen(gateway, HttpOptions(port=0, token="")) as (url, _),
        httpx2.AsyncClient(timeout=LONG_SECONDS) as client,
    ):

        async def send(name: str, region: str | None) -> httpx2.Response:
            named = {**request, "params": {**request["params"], "name": name}}
            given = {} if region is None else {"Mcp-Param-Region": region}
            return await client.post(url, json=named, headers={**headers, "Mcp-Name": name, **given})

        for name in ("deploy", "Deploy", "functions.deploy"):  # in whatever spelling the call would run
            for region, status_code in (("us", 400), (None, 400), ("eu", 200)):  # a proxy goes by the header
                assert (await send(name, region)).status_code == status_code, (name, region)
        assert "did you mean deploy" in (await send("deplyo", "us")).text
    assert ran == ["eu"] * 3


def test_too_many_clients_get_an_error_and_displace_no_other() -> None:
    now = 0.0
    states = ClientStates(State, most=3, clock=lambda: now)
    first = [states.find(str(number), known=True) for number in range(3)]
    with pytest.raises(MCPError, match="3 clients, its limit"):
        states.find("fourth", known=True)
    for number in range(1_100):
        states.find(f"new {number}", known=False)
    assert [states.find(str(number), known=True) for number in range(3)] == first
    now = 1_000.0
    states.find("1", known=True)
    now = 2_000.0
    states.find("fourth", known=True)  # in the place of 0, which has been idle the longest
    assert states.find("1", known=True) is first[1]


def test_client_that_returns_its_id_keeps_its_state() -> None:
    states = ClientStates(State)
    first = states.find("one", known=False)
    assert states.find("one", known=False) is first and states.find("two", known=False) is not first
    assert states.find("one", known=True) is first and states.find("one", known=True) is first
    assert states.find("one", known=False) is not first  # who returns no id must not get what belongs to it


def suspend(about: str) -> SuspendableCall[None]:
    async def wait(asker: object) -> None:
        await asyncio.Event().wait()

    return SuspendableCall(about, wait, cast("Caller", None))


def is_cancelled(call: SuspendableCall[None]) -> bool:
    try:
        return call.result is not None
    except asyncio.InvalidStateError:
        return False
    except asyncio.CancelledError:
        return True


async def test_calls_are_suspended_while_others_make_room() -> None:
    suspended = SuspendedCalls()
    old = [suspend("old") for _ in range(64)]
    waiting = [await suspended.keep(each, "one") for each in old]
    tokens = await asyncio.gather(*(suspended.keep(suspend("new"), "one") for _ in range(2)))
    assert [suspended.take(token, "old") for token in waiting[:2]] == [None, None] and all(map(is_cancelled, old[:2]))
    assert not any(map(is_cancelled, old[2:]))
    new = [suspended.take(token, "new") for token in tokens]
    assert None not in new
    await suspended.stop()
    assert all(map(is_cancelled, old))
    for call in new:
        if call is not None:
            await call.stop()


async def test_call_whose_client_does_not_come_back_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    suspended, late, taken = SuspendedCalls(), suspend("late"), suspend("taken")
    monkeypatch.setattr("callwright.serve.call._WAIT_SECONDS", 0.02)
    first, second = await suspended.keep(late, "one"), await suspended.keep(taken, "one")
    assert suspended.take(second, "taken") is taken
    async with asyncio.timeout(LONG_SECONDS):
        while not is_cancelled(late):  # noqa: ASYNC110 - nobody is told
            await asyncio.sleep(0.01)
    assert suspended.take(first, "late") is None and not is_cancelled(taken)
    await taken.stop()


async def test_suspended_calls_of_one_client_displace_only_its_own() -> None:
    suspended = SuspendedCalls()
    other = await suspended.keep(suspend("other"), "other")
    tokens = [await suspended.keep(suspend("one"), "one") for _ in range(70)]
    kept = [suspended.take(token, "one") for token in tokens]
    assert kept[0] is None and sum(call is not None for call in kept) == 64
    waiting = suspended.take(other, "other")
    assert waiting is not None
    for call in (waiting, *kept):
        if call is not None:
            await call.stop()
    many = [await suspended.keep(suspend("many"), f"client {number // 60}") for number in range(1_024)]
    refused = suspend("more")
    with pytest.raises(MCPError, match="1024 calls wait for answers"):
        await suspended.keep(refused, "more")
    assert is_cancelled(refused)
    answered = suspended.take(many[0], "many")
    assert answered is not None
    await answered.stop()
    await suspended.keep(suspend("more"), "more")  # the one that was refused takes no room
    await suspended.stop()


async def test_clients_that_list_again_are_notified_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    class Session:
        def __init__(self) -> None:
            self.notified = asyncio.Event()

        async def send_tool_list_changed(self) -> None:
            self.notified.set()

    monkeypatch.setattr("callwright.serve.clients._MOST_CLIENTS", 3)
    notifier, registry, stays = ListChangeNotifier(), Registry(), Session()
    async with notifier.follow(registry):
        for key in ("stays", "gone", "stays", "gone too", "new"):
            notifier.remember(key, cast("ServerSession", stays if key == "stays" else Session()))
        notifier.notify()
        await asyncio.wait_for(stays.notified.wait(), LONG_SECONDS)


async def test_registry_is_followed_only_while_it_is_served() -> None:
    heard: list[Any] = []

    class Source:
        def subscribe(self, listener: Any) -> Any:
            heard.append(listener)
            return lambda: heard.remove(listener)

    notifier = ListChangeNotifier()
    async with notifier.follow(Source()):
        assert heard == [notifier.notify]
    assert heard == []
    async with notifier.follow(object()):  # a toolset that never changes
        pass


async def test_clients_are_notified_of_changes_in_other_threads() -> None:
    class Session:
        def __init__(self) -> None:
            self.notified = asyncio.Event()

        async def send_tool_list_changed(self) -> None:
            self.notified.set()

    @tool
    async def added() -> str:
        """Do nothing."""
        return ""

    notifier, registry, session = ListChangeNotifier(), Registry(), Session()
    notifier.remember("one", cast("ServerSession", session))
    async with notifier.follow(registry):
        await asyncio.sleep(0)  # it waits for changes now, and nothing else wakes the event loop
        change = threading.Thread(target=lambda: (time.sleep(0.05), registry.add(added)))
        change.start()
        await asyncio.wait_for(session.notified.wait(), LONG_SECONDS)
        change.join()


async def test_client_that_takes_no_notice_holds_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    class Session:
        def __init__(self, *, stuck: bool) -> None:
            self.stuck = stuck
            self.notified = asyncio.Event()

        async def send_tool_list_changed(self) -> None:
            self.notified.set()
            if self.stuck:
                await asyncio.Event().wait()

    monkeypatch.setattr("callwright.serve.clients._NOTICE_SECONDS", 0.05)
    notifier, stuck, reads = ListChangeNotifier(), Session(stuck=True), Session(stuck=False)
    async with notifier.follow(Registry()):
        for key, session in (("stuck", stuck), ("reads", reads)):
            notifier.remember(key, cast("ServerSession", session))
        for expected in (True, False):  # it is not waited for again
            notifier.notify()
            await asyncio.wait_for(reads.notified.wait(), LONG_SECONDS)
            assert stuck.notified.is_set() is expected
            stuck.notified.clear()
            reads.notified.clear()


async def test_ids_of_clients_are_issued_returned_and_never_guessed() -> None:
    seen: list[tuple[str, bool]] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append((scope[CLIENT_ID], scope[CLIENT_RETURNED]))
        await send({"type": "http.response.start", "status": 200, "headers": []})

    ids, other_server = ClientIds(app), ClientIds(app)

    async def ask(server: ClientIds, cookie: str = "", token: str = "") -> list[str]:
        given = {b"cookie": cookie.encode(), b"authorization": token.encode()}
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        headers = [(name, value) for name, value in given.items() if value]
        await server({"type": "http", "headers": headers}, cast("Receive", None), send)
        return [value.decode().partition(";")[0] for name, value in sent[0]["headers"] if name == b"set-cookie"]

    (first,) = await ask(ids)
    (second,) = await ask(ids)
    assert await ask(ids, first) == []  # it has one already
    new, other, again = seen
    assert new[0] == again[0] != other[0] and (new[1], other[1], again[1]) == (False, False, True)
    await ask(ids, first, token="another")
    assert seen[-1][0] != new[0]
    name, _, value = first.partition("=")
    issued, _, signature = value.partition(".")
    forged = [issued, f"{issued}.", f"{issued}.0", f".{signature}", f"x{value}", f"{issued}.{second.partition('.')[2]}"]
    for server, cookie in (*((ids, f"{name}={each}") for each in forged), (other_server, first), (ids, "\x00=;=")):
        assert len(await ask(server, cookie)) == 1
        assert seen[-1][0] not in {each for each, _ in seen[:-1]} and seen[-1][1] is False
