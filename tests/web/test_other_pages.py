"""Other pages in a real browser, on another port of the same machine, read nothing and do nothing."""

import http.server
import threading
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from tests.web.conftest import RealServer

from callwright.web.assets import Assets

Web = Callable[..., RealServer]


@pytest.fixture
def evil() -> Generator[str, None, None]:
    """Return the address of a page on another port of this machine."""

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = b"<!doctype html><title>evil</title><body>evil"
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
            return

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


_ATTACKS = {
    "fetch": """async ([url, token]) => {
        const found = {};
        for (const path of ["/api/state", "/api/sessions", "/", "/static/VERSION/app.js"]) {
            for (const [name, options] of Object.entries({
                plain: {}, bearer: {headers: {authorization: "Bearer " + token}}, opaque: {mode: "no-cors"},
                credentials: {credentials: "include"},
            })) {
                try {
                    const reply = await fetch(url + path, options);
                    found[path + name] = reply.type + " " + reply.status + " " + (await reply.text()).length;
                } catch (error) { found[path + name] = "refused"; }
            }
        }
        return found;
    }""",
    "post": """async ([url, token]) => {
        const found = {};
        for (const type of ["text/plain", "application/json", "application/x-www-form-urlencoded"]) {
            try {
                const body = JSON.stringify({tool: "bash", arguments: {command: "touch made"}});
                const reply = await fetch(url + "/api/run", {
                    method: "POST", body, headers: {"content-type": type, authorization: "Bearer " + token}});
                found[type] = reply.type + " " + reply.status;
            } catch (error) { found[type] = "refused"; }
        }
        return found;
    }""",
    "frame": """async ([url]) => {
        const frame = document.createElement("iframe");
        frame.src = url + "/";
        document.body.append(frame);
        await new Promise((resolve) => { frame.onload = resolve; setTimeout(resolve, 3000); });
        try { return {frame: frame.contentDocument ? "blank" : "refused"}; }
        catch (error) { return {frame: "refused"}; }
    }""",
    "script": """async ([url]) => {
        const script = document.createElement("script");
        script.src = url + "/static/VERSION/app.js";
        script.type = "module";
        const outcome = new Promise((resolve) => {
            script.onload = () => resolve("loaded"); script.onerror = () => resolve("refused"); });
        document.body.append(script);
        return {script: await outcome};
    }""",
    "image": """async ([url]) => {
        const image = new Image();
        const outcome = new Promise((resolve) => {
            image.onload = () => resolve("loaded"); image.onerror = () => resolve("refused"); });
        image.src = url + "/api/image?id=a&position=0&place=0";
        return {image: await outcome};
    }""",
    "window": """async ([url]) => {
        const opened = window.open(url + "/");
        await new Promise((resolve) => setTimeout(resolve, 1500));
        let title = "refused";
        try { title = opened === null ? "refused" : (opened.document.title || "blank"); } catch (error) { }
        let storage = "refused";
        try { storage = opened.localStorage.length; } catch (error) { }
        return {window: title === "blank" ? "refused" : title, storage: storage === 0 ? "refused" : storage};
    }""",
}


@pytest.mark.slow
def test_another_page_reads_and_does_nothing(web: Web, browser: Any, evil: str) -> None:
    """Even a page that has guessed the token gets nothing: its origin is another one."""
    server = web("--demo")
    context = browser.new_context()
    try:
        page = context.new_page()
        page.set_default_timeout(90_000)
        page.goto(evil)
        for name, attack in _ATTACKS.items():
            found = page.evaluate(attack.replace("VERSION", Assets().version), [server.url, server.token])
            readable = {
                key: value
                for key, value in found.items()
                if value != "refused" and not str(value).startswith("opaque 0 0") and value != "blank"
            }
            assert not readable, (name, found)
        state = server.get("/api/state")
        assert state["demo"] and not Path(state["project"], "made").exists()
    finally:
        context.close()
