"""Requests that do not come from the page itself are refused with a status and one line."""

import pytest
from tests.web.conftest import Serve

from callwright.web.assets import Assets

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
        ):
            assert (await web.send("GET", API, headers)).status == 400


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


@pytest.mark.parametrize("method", ["OPTIONS", "PUT", "DELETE", "TRACE", "PATCH", "CONNECT"])
async def test_other_methods_are_refused(serve: Serve, method: str) -> None:
    async with serve() as web:
        token = ("authorization", f"Bearer {web.server.token}")
        reply = await web.send(method, API, [("host", web.host), token])
        assert reply.status in (400, 405) and not reply["access-control-allow-methods"]


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
