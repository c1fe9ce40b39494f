"""Fixtures: the server of the page in this process or as a real one, a scripted model, and a browser."""

import asyncio
import gzip
import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import LONG_SECONDS, close_stream

from callwright.app.app import App
from callwright.app.assembly import assemble
from callwright.app.locations import Locations
from callwright.app.run_context import RunOptions
from callwright.app.settings import load_settings
from callwright.app.trust import Trust
from callwright.cli.commands.call import NoModel
from callwright.core.errors import UsageError
from callwright.testing import ScriptedProvider
from callwright.web.server import WebOptions, WebServer

CHROMIUM = "/usr/bin/chromium"
PATIENCE_MS = 90_000
CHROMIUM_OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@dataclass
class Reply:
    """The response to a request."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def __getitem__(self, name: str) -> str:
        return next((value for key, value in self.headers if key == name), "")

    @property
    def data(self) -> Any:
        return json.loads(self.body)


@dataclass
class Served:
    """A server of the page in this process, and a client that may send anything."""

    project: Path
    locations: Locations
    server: WebServer
    port: int = 0
    link: str = ""
    replies: list[Any] = field(default_factory=list[Any])

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    async def send(self, method: str, path: str, headers: Sequence[tuple[str, str]], body: bytes = b"") -> Reply:
        """Send exactly these headers."""
        stream, writer = await asyncio.open_connection("127.0.0.1", self.port)
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers), "connection: close"]
        lines += [f"content-length: {len(body)}"] if body else []
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        try:
            return _parse(await stream.read())
        finally:
            await close_stream(writer)

    async def get(self, path: str, **more: str) -> Reply:
        return await self.send("GET", path, self._headers(more))

    async def post(self, path: str, body: object, **more: str) -> Reply:
        headers = [*self._headers(more), ("content-type", "application/json")]
        return await self.send("POST", path, headers, json.dumps(body).encode())

    def _headers(self, more: dict[str, str]) -> list[tuple[str, str]]:
        found = {"host": self.host, "authorization": f"Bearer {self.server.token}"}
        found |= {name.replace("_", "-"): value for name, value in more.items()}
        return list(found.items())

    @asynccontextmanager
    async def events(self) -> AsyncGenerator["Events", None]:
        """Follow the live events."""
        stream, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 26)
        lines = ["GET /api/events HTTP/1.1", *(f"{name}: {value}" for name, value in self._headers({}))]
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n")
        try:
            yield Events(stream)
        finally:
            await close_stream(writer)

    async def until(self, path: str, found: Callable[[Any], Any]) -> Any:
        """Ask until the answer is as it should be, and return it."""
        for _ in range(9000):
            reply = await self.get(path)
            if reply.status == 200 and found(reply.data):
                return reply.data
            await asyncio.sleep(0.01)
        raise AssertionError(f"{path} never became as expected")


class Events:
    """The live events of a page, as they come."""

    def __init__(self, stream: asyncio.StreamReader) -> None:
        self._stream = stream
        self.seen: list[Any] = []

    async def wait(self, **fields: Any) -> Any:
        """Return the next event that has these fields."""
        at = 0
        while True:
            while at < len(self.seen):
                event, at = self.seen[at], at + 1
                if fields.items() <= event.items():
                    return event
            line = await asyncio.wait_for(self._stream.readline(), LONG_SECONDS)
            assert line, "the stream has ended"
            if line.startswith(b"data: "):
                self.seen += json.loads(line[6:])


def _parse(data: bytes) -> Reply:
    head, _, body = data.partition(b"\r\n\r\n")
    first, *rest = head.decode("latin-1").split("\r\n")
    headers = [(name.lower(), value.strip()) for name, _, value in (line.partition(":") for line in rest)]
    reply = Reply(int(first.split()[1]) if first else 0, headers, body)
    if reply["transfer-encoding"] == "chunked":
        chunks = b""
        while body:
            size, _, body = body.partition(b"\r\n")
            length = int(size, 16)
            chunks, body = chunks + body[:length], body[length + 2 :]
        reply.body = chunks
    if reply["content-encoding"] == "gzip":
        reply.body = gzip.decompress(reply.body)
    return reply


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty project; settings of the machine do not count."""
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    monkeypatch.setenv("CALLWRIGHT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(folder)
    return folder


Serve = Callable[..., AbstractAsyncContextManager[Served]]


@pytest.fixture
def serve(project: Path, tmp_path: Path) -> Serve:
    """Return a function that serves the page: `async with serve(*replies, **options) as web`."""

    @asynccontextmanager
    async def start(*replies: Any, model: bool = True, **options: Any) -> AsyncGenerator[Served, None]:
        locations = Locations.of(project, home=tmp_path / "home")
        web = Served(project, locations, WebServer.__new__(WebServer), replies=list(replies))

        def open_app(*, report: Any, wrap: Any, observe: Any) -> App:
            if not model:
                from callwright.app.models import NO_MODEL

                raise UsageError(NO_MODEL)
            settings = load_settings(locations, trusted=Trust(locations).given)
            provider = wrap(ScriptedProvider(*web.replies))
            return assemble(provider, settings, locations, RunOptions(), report=report, observe=observe)

        def open_bare(*, mode: str = "", allow: Any = (), ask: Any = (), deny: Any = ()) -> App:
            given = RunOptions(mode=mode, allow=tuple(allow), ask=tuple(ask), deny=tuple(deny), keep=False)
            return assemble(NoModel(), load_settings(locations, trusted=Trust(locations).given), locations, given)

        web.server = WebServer(locations, open_app, open_bare, WebOptions(port=0, model="scripted", **options))
        ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        running = asyncio.create_task(web.server.run(ready.set_result))
        await asyncio.wait({ready, running}, return_when=asyncio.FIRST_COMPLETED)
        web.link = ready.result()
        web.port = int(web.link.partition("/#")[0].rpartition(":")[2])
        try:
            yield web
        finally:
            web.server.stop()
            await running

    return start


@dataclass
class RealServer:
    """A server of the page in a process of its own."""

    process: "subprocess.Popen[bytes]"
    link: str
    project: Path
    home: Path

    @property
    def url(self) -> str:
        return self.link.partition("/#")[0]

    @property
    def token(self) -> str:
        return self.link.partition("token=")[2]

    def request(self, path: str, body: object = None) -> tuple[int, Any]:
        """Send a request with the token; return the status and the JSON."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"authorization": f"Bearer {self.token}", "content-type": "application/json"}
        request = urllib.request.Request(f"{self.url}{path}", data, headers)
        try:
            with urllib.request.urlopen(request, timeout=LONG_SECONDS) as reply:
                return reply.status, json.loads(reply.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read())

    def get(self, path: str) -> Any:
        return self.request(path)[1]

    def post(self, path: str, body: object) -> Any:
        return self.request(path, body)[1]


def start_server(project: Path, home: Path, *arguments: str) -> RealServer:
    """Start `callwright web` in a project and wait for its link."""
    environment = {**os.environ, "CALLWRIGHT_HOME": str(home), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "callwright", "web", "--port", "0", *arguments]
    process = subprocess.Popen(command, cwd=project, env=environment, stdout=subprocess.PIPE)
    assert process.stdout is not None
    for line in process.stdout:
        if b"#token=" in line:
            return RealServer(process, line.decode().strip(), project, home)
    raise AssertionError(f"the server ended with {process.wait()}")


@pytest.fixture
def web(tmp_path: Path) -> Generator[Callable[..., RealServer], None, None]:
    """Return a function that starts a real server: `web(*arguments, replies=[…])`."""
    started: list[RealServer] = []

    def start(*arguments: str, replies: Sequence[Any] = (), project: Path | None = None) -> RealServer:
        folder, home = project or tmp_path / "project", tmp_path / "home"
        (folder / ".git").mkdir(parents=True, exist_ok=True)
        home.mkdir(exist_ok=True)
        if replies:
            script = tmp_path / f"script-{len(started)}.json"
            script.write_text(json.dumps(replies))
            arguments = (*arguments, "--model", f"script:{script}")
        started.append(start_server(folder, home, *arguments))
        return started[-1]

    yield start
    for each in started:
        each.process.terminate()
        each.process.wait(LONG_SECONDS)
        if each.process.stdout is not None:
            each.process.stdout.close()


@pytest.fixture(scope="module")
def browser() -> Generator[Any, None, None]:
    """Return Chromium from the system's packages.

    Not for the whole session: Playwright leaves an event loop running, and asynchronous tests need their own.
    """
    if not Path(CHROMIUM).exists():
        pytest.skip("chromium is not installed; scripts/setup installs it")
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE_MS)  # a loaded machine must not fail a test
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_OPTIONS, timeout=PATIENCE_MS)
        yield chromium
        chromium.close()
