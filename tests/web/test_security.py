"""Requests that do not come from the page itself are refused with a status and one line."""

import asyncio
import logging
import stat
from collections.abc import Iterator
from contextlib import suppress
from urllib.parse import urlsplit

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from tests.waiting import LONG_SECONDS, close_stream
from tests.web.conftest import Serve, Served

from callwright.app.locations import read_web_link
from callwright.core.errors import CallwrightError
from callwright.serve.access import TimedProtocol
from callwright.web import api, hub
from callwright.web.assets import PAGES, Assets
from callwright.web.guard import Guard, Message
from callwright.web.server import list_host_values

API = "/api/state"
SCRIPT = f"/static/{Assets().version}/app.js"


async def test_token_is_needed_for_data_and_not_for_the_page(serve: Serve) -> None:
    async with serve() as web:
        assert (await web.get(API)).status == 200
        host = ("host", web.host)
        for headers in (
            [host],
            [host, ("authorization", "Bearer x")],
            [host, ("authorization", web.server.token)],
            [host, ("authorization", f"bearer {web.server.token}")],
            [host, ("authorization", f"Bearer {web.server.token} ")][:1],
            [host, ("cookie", f"token={web.server.token}")],
        ):
            reply = await web.send("GET", API, headers)
            assert (reply.status, reply.data["code"]) == (401, "token") and web.server.token not in reply.body.decode()
        page = await web.send("GET", "/", [host])
        assert page.status == 200 and web.server.token.encode() not in page.body
        assert (await web.send("GET", f"{API}?token={web.server.token}", [host])).status == 401


@pytest.mark.parametrize(
    "name",
    ["evil.example", "127.0.0.1", "localhost", "127.0.0.1:1", "127.0.0.1.evil.example:{port}", "[::]:{port}", ""],
)
async def test_other_host_names_are_refused(serve: Serve, name: str) -> None:
    async with serve() as web:
        token = ("authorization", f"Bearer {web.server.token}")
        for path in ("/", SCRIPT, API):
            reply = await web.send("GET", path, [("host", name.format(port=web.port)), token])
            assert reply.status in (400, 403) and b"version" not in reply.body


async def test_names_of_this_machine_are_accepted(serve: Serve) -> None:
    async with serve() as web:
        for name in ("127.0.0.1", "localhost", "[::1]"):
            assert (await web.get(API, host=f"{name}:{web.port}")).status == 200


def test_usual_port_may_be_left_out() -> None:
    assert list_host_values(("127.0.0.1", "[::1]"), 80) == ("127.0.0.1:80", "[::1]:80", "127.0.0.1", "[::1]")
    assert list_host_values(("127.0.0.1",), 4870) == ("127.0.0.1:4870",)


async def test_link_names_the_address_that_is_served(serve: Serve) -> None:
    async with serve(host="localhost") as web:
        assert urlsplit(web.link).hostname in ("127.0.0.1", "::1")


async def test_other_origins_and_sites_are_refused(serve: Serve) -> None:
    async with serve() as web:
        own = f"http://{web.host}"
        for origin in (
            "http://evil.example",
            "null",
            f"https://{web.host}",
            f"{own}/",
            "http://127.0.0.1:1",
            f"{own}x",
        ):
            reply = await web.get(API, origin=origin)
            assert (reply.status, reply.data["code"]) == (403, "origin"), origin
        assert (await web.get(API, origin=f"http://localhost:{web.port}")).status == 403  # not the host it asked for
        for site in ("cross-site", "same-site", "x"):
            assert (await web.get(API, sec_fetch_site=site)).status == 403
            assert (await web.get("/", sec_fetch_site=site)).status == 403
        assert (await web.get(API, sec_fetch_site="none")).status == 403  # typed into the address bar
        assert (await web.get("/", sec_fetch_site="none")).status == 200
        assert (await web.get(API, origin=own, sec_fetch_site="same-origin")).status == 200


async def test_headers_given_twice_are_refused(serve: Serve) -> None:
    async with serve() as web:
        host, token = ("host", web.host), ("authorization", f"Bearer {web.server.token}")
        origin = ("origin", f"http://{web.host}")
        for headers in (
            [host, host, token],
            [host, ("host", "evil.example"), token],
            [host, ("authorization", "Bearer x"), token],
            [host, token, ("authorization", "Bearer x")],
            [host, token, origin, ("origin", "http://evil.example")],
            [host, token, ("sec-fetch-site", "cross-site"), ("sec-fetch-site", "same-origin")],
            [host, token, ("content-type", "application/json"), ("content-type", "text/plain")],
            [host, token, ("content-length", "0"), ("content-length", "1")],
            [host, token, ("transfer-encoding", "chunked"), ("transfer-encoding", "chunked")],
        ):
            assert (await web.send("GET", API, headers)).status in (400, 501), headers
        harmless = [("accept-language", "en"), ("accept-language", "de")]
        assert (await web.send("GET", API, [host, token, *harmless])).status == 200


async def test_guard_lets_nothing_pass_that_a_server_should_have_refused() -> None:
    async def answer(*given: object) -> None:
        raise AssertionError("the request has passed")

    async def receive() -> Message:
        return {"type": "http.request"}

    async def send(message: Message) -> None:
        sent.append(message)

    sent: list[Message] = []
    headers = [(b"host", b"evil.example"), (b"Host", b"localhost:1"), (b"authorization", b"Bearer sesame")]
    scope = {"type": "http", "method": "GET", "path": API, "headers": headers}
    await Guard(answer, "sesame", ["localhost:1"])(scope, receive, send)
    assert sent[0]["status"] == 400
    sent.clear()
    await Guard(answer, "sesame", ["localhost:1"])(
        {"type": "websocket", "path": API, "headers": headers[1:]}, receive, send
    )
    assert not sent


async def test_every_response_keeps_other_pages_out(serve: Serve) -> None:
    async with serve() as web:
        for path in ("/", "/session?id=a", "/static/nothing.js", SCRIPT + "x", "/favicon.ico", "/nothing"):
            reply = await web.get(path)
            if reply["content-type"] == "application/json":
                continue
            policy = reply["content-security-policy"]
            assert "default-src 'none'" in policy and "script-src 'self';" in policy, path
            assert "unsafe" not in policy and "require-trusted-types-for 'script'" in policy
            assert "frame-ancestors 'none'" in policy and "form-action 'none'" in policy
            assert "base-uri 'none'" in policy and "trusted-types 'none'" in policy.split("; ")
            assert (
                reply["cross-origin-embedder-policy"] == "require-corp" and "camera=()" in reply["permissions-policy"]
            )
            assert reply["x-content-type-options"] == "nosniff" and reply["referrer-policy"] == "no-referrer"
            assert reply["cross-origin-opener-policy"] == reply["cross-origin-resource-policy"] == "same-origin"
            assert reply["cache-control"] == "no-store" and not reply["access-control-allow-origin"]
            assert not reply["set-cookie"] and not reply["server"]
        for path in (API, "/api/nothing", "/nothing"):  # read by scripts, never shown as a document
            reply = await web.get(path)
            assert reply["content-type"] == "application/json" and reply["x-content-type-options"] == "nosniff", path
            assert reply["cross-origin-resource-policy"] == "same-origin" and reply["cache-control"] == "no-store"
            assert not reply["access-control-allow-origin"] and not reply["set-cookie"] and not reply["server"]
        script = await web.get(SCRIPT)
        assert script.status == 200 and script["content-type"].startswith("text/javascript")
        assert script["x-content-type-options"] == "nosniff" and "immutable" in script["cache-control"]
        assert script["cross-origin-resource-policy"] == "same-origin" and not script["access-control-allow-origin"]
        refused = await web.send("GET", API, [("host", web.host)])
        assert refused["x-content-type-options"] == "nosniff" and refused["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "path",
    [
        "/static/../server.py",
        "/static/..%2fserver.py",
        "/static/%2e%2e/server.py",
        "/static//etc/passwd",
        "/static/",
        "/static/server.py",
        SCRIPT + "%00.html",
        SCRIPT.replace("app.js", "index.html"),
        SCRIPT.replace("app.js", "vendor.LICENSE"),
        SCRIPT.replace("app.js", "../../server.py"),
        "/static/app.js",
        "/static/0123456789ab/app.js",
        "/server.py",
        "/.git/config",
    ],
)
async def test_files_come_from_a_fixed_table(serve: Serve, path: str) -> None:
    async with serve() as web:
        reply = await web.get(path)
        assert reply.status == 404 and b"import" not in reply.body and b"root:" not in reply.body


async def test_head_needs_the_token_like_get(serve: Serve) -> None:
    async with serve() as web:
        host = ("host", web.host)
        assert (await web.send("HEAD", API, [host])).status == 401
        known = await web.send("HEAD", API, [host, ("authorization", f"Bearer {web.server.token}")])
        assert (known.status, known.body) == (200, b"")


@pytest.mark.parametrize("method", ["OPTIONS", "PUT", "DELETE", "TRACE", "PATCH", "CONNECT"])
async def test_other_methods_are_refused(serve: Serve, method: str) -> None:
    async with serve() as web:
        token = ("authorization", f"Bearer {web.server.token}")
        for path in ("/", SCRIPT, API, "/api/say"):
            reply = await web.send(method, path, [("host", web.host), token])
            assert reply.status in (400, 405) and not reply["access-control-allow-methods"], path


async def test_bodies_are_json_and_not_too_long(serve: Serve) -> None:
    async with serve() as web:
        token = ("authorization", f"Bearer {web.server.token}")
        base, path = [("host", web.host), token], "/api/verdict"
        json_type = ("content-type", "application/json")
        for headers, body, status in (
            (base, b"{}", 415),
            ([*base, ("content-type", "text/plain")], b"{}", 415),
            ([*base, json_type], b"[]", 400),
            ([*base, json_type], b"{", 400),
            ([*base, json_type], b"[" * 100_000, 400),
            ([*base, json_type], b'{"tool": "bash", "arguments": {}, "x": 1}', 400),
            ([*base, json_type], b'{"tool": "bash", "tool": "read", "arguments": {}}', 400),
            ([*base, json_type], b'{"tool": 1, "arguments": {}}', 400),
            ([*base, json_type], b'{"tool": "bash", "arguments": {"a": NaN}}', 400),
            ([*base, json_type], b'{"tool": "' + b"x" * (1 << 20) + b'"}', 413),
        ):
            reply = await web.send("POST", path, headers, body)
            assert reply.status == status and "\n" not in reply.data["error"], (status, reply)


async def test_page_is_told_no_details_of_an_unexpected_error(caplog: pytest.LogCaptureFixture) -> None:
    async def fail(request: Request) -> None:
        raise errors[request.query_params["kind"]]

    errors = {"unexpected": RuntimeError("in /home/ann/secret"), "known": CallwrightError("this cannot be done")}
    app = Starlette(routes=[api.route("/api/fail", fail)])
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://localhost") as client:
        reply = await client.get("/api/fail?kind=unexpected")
        assert (reply.status_code, reply.json()["code"]) == (500, "internal") and "ann" not in reply.text
        assert "in /home/ann/secret" in caplog.text
        reply = await client.get("/api/fail?kind=known")
        assert (reply.status_code, reply.json()) == (400, {"error": "this cannot be done", "code": "invalid"})


def list_routes(web: Served) -> Iterator[tuple[str, set[str]]]:
    for each in web.server.routes:
        yield each.path, each.methods or set()


async def test_only_the_page_and_its_files_are_public(serve: Serve) -> None:
    async with serve() as web:
        public = {*PAGES, "/static/{name:path}", "/favicon.ico"}
        paths = {path for path, _ in list_routes(web)}
        assert public <= paths and all(path.startswith("/api/") for path in paths - public)
        host = ("host", web.host)
        for target in (
            "//api/state",
            "/./api/state",
            "/static/../api/state",
            "/static/%2e%2e/api/state",
            "/API/state",
            "/api%2fstate",
            "/api/state/",
            "/api//state",
            "/api/state%00",
            "/;/api/state",
            f"http://{web.host}/api/state",
            "http://evil.example/api/state",
            "*",
        ):
            reply = await web.send("GET", target, [host])
            assert reply.status in (307, 400, 401, 404) and b"version" not in reply.body, (target, reply)


async def test_read_only_page_refuses_every_change(serve: Serve) -> None:
    judging = {"/api/verdict", "/api/rules/test", "/api/rules/replay"}
    async with serve(read_only=True) as web:
        posts = {path for path, methods in list_routes(web) if "POST" in methods}
        assert len(posts) > 15 and judging < posts
        for path in sorted(posts - judging):
            reply = await web.post(path, {})
            assert (reply.status, reply.data["code"]) == (403, "read_only"), path


@pytest.mark.slow
async def test_head_of_a_request_that_does_not_arrive_ends_the_connection(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TimedProtocol, "header_seconds", 0.05)
    async with serve() as web:
        whole = f"GET / HTTP/1.1\r\nhost: {web.host}\r\n\r\n".encode()
        for sent in (b"", b"GET / HT"):
            stream, writer = await asyncio.open_connection("127.0.0.1", web.port)
            writer.write(sent)
            assert await asyncio.wait_for(stream.read(), LONG_SECONDS) == b""  # until the server ends the connection
            await close_stream(writer)
        answered = 0
        while not answered:  # a very slow machine may close it too early
            stream, writer = await asyncio.open_connection("127.0.0.1", web.port)
            writer.write(whole)
            with suppress(asyncio.IncompleteReadError):
                answered = (await stream.readuntil(b"\r\n\r\n")).count(b"HTTP/1.1 200")
            writer.write(b"GET / HT")  # the next request on the same connection
            await asyncio.wait_for(stream.read(), LONG_SECONDS)
            await close_stream(writer)
        stream, writer = await asyncio.open_connection("127.0.0.1", web.port)
        writer.write(b"GET / HTTP/1.1\r\nx: ")
        ended = asyncio.ensure_future(stream.read())
        while not ended.done():  # a byte now and then does not keep it open
            writer.write(b"x")
            await asyncio.sleep(0.01)
        await close_stream(writer)
        assert (await web.get(API)).status == 200


async def test_body_that_does_not_arrive_is_refused(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "BODY_SECONDS", 0.05)
    async with serve() as web:
        headers = [("host", web.host), ("authorization", f"Bearer {web.server.token}")]
        headers += [("content-type", "application/json"), ("content-length", "100")]
        reply = await asyncio.wait_for(web.send("POST", "/api/verdict", headers), LONG_SECONDS)
        assert (reply.status, reply.data["code"]) == (408, "too_slow")


async def test_long_heads_and_wrong_lengths_are_refused(serve: Serve) -> None:
    async with serve() as web:
        base = [("host", web.host), ("authorization", f"Bearer {web.server.token}")]
        for more in (
            [("x", "y" * 200_000)],
            [("content-length", "-1")],
            [("content-length", "1"), ("transfer-encoding", "chunked")],
            [("transfer-encoding", "gzip, chunked")],
        ):
            with suppress(ConnectionError):  # closed before all of it was read
                assert (await web.send("POST", "/api/verdict", [*base, *more])).status in (400, 415, 501), more
        assert (await web.get(API)).status == 200


async def test_streams_are_limited(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "MOST_STREAMS", 2)
    async with serve() as web:
        async with web.events() as one, web.events() as other:
            await one.wait(type="hello")
            await other.wait(type="hello")
            refused = await web.get("/api/events")
            assert (refused.status, refused.data["code"]) == (503, "busy")
            assert (await web.get(API)).status == 200
        await web.until(API, lambda _: not web.server.streams)
        async with web.events() as again:
            await again.wait(type="hello")


async def test_token_is_kept_from_logs_and_other_users(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        async with serve() as web:
            link = web.locations.web_link
            assert stat.S_IMODE(link.stat().st_mode) == 0o600 and stat.S_IMODE(link.parent.stat().st_mode) == 0o700
            for path in (API, "/api/session?id=none", "/api/nothing", f"/api/state?token={web.server.token}x"):
                reply = await web.get(path)
                assert web.server.token not in reply.body.decode() + repr(reply.headers)
            await web.send("GET", API, [("host", "evil.example"), ("authorization", f"Bearer {web.server.token}")])
    assert web.server.token not in caplog.text
    assert not link.exists()


async def test_link_of_the_first_of_two_pages_is_there_again_when_the_second_ends(serve: Serve) -> None:
    async with serve() as first:
        link = read_web_link(first.locations)
        assert link is not None
        async with serve() as second:
            assert read_web_link(second.locations) not in (None, link)
        assert read_web_link(first.locations) == link
    assert not first.locations.web_link.exists()


async def test_read_only_page_changes_nothing(serve: Serve) -> None:
    async with serve(read_only=True) as web:
        for path in ("answer", "say", "stop", "resume", "fork", "rename", "delete", "undo", "redo", "mode"):
            reply = await web.post(f"/api/{path}", {})
            assert (reply.status, reply.data["code"]) == (403, "read_only"), path
        for path in ("run", "preview", "rules/save", "rules/remove", "servers/connect", "servers/accept"):
            body = {"tool": "bash", "arguments": {"command": "touch made"}}
            assert (await web.post(f"/api/{path}", body)).status == 403
        verdict = await web.post("/api/verdict", {"tool": "bash", "arguments": {"command": "touch made"}})
        assert verdict.data["decision"] == "ask" and not (web.project / "made").exists()
