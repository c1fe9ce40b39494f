"""The server of the page: its address, its routes and static files; runs until it is stopped."""

import asyncio
import errno
import json
import os
import secrets
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from types import FrameType
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from callwright.app.locations import Locations, read_web_link
from callwright.app.transcripts import export_redacted
from callwright.app.trust import Trust
from callwright.core.errors import UsageError, describe_exception
from callwright.serve.access import TimedProtocol
from callwright.sessions.base import read_readable
from callwright.system.private_files import open_private
from callwright.web.api import ApiError, Fields, route, take_text
from callwright.web.assets import PAGES, Assets, StaticFile
from callwright.web.export import export_html
from callwright.web.figures import FigureRoutes
from callwright.web.guard import AsgiApp, Guard
from callwright.web.hosting import Hosts, OpenApp
from callwright.web.hub import Hub
from callwright.web.session_actions import RunRoutes, SessionActions
from callwright.web.sessions import SessionRoutes
from callwright.web.tools import ToolRoutes
from callwright.web.workspace import OpenBareApp, WebWorkspace

DEFAULT_PORT = 4870
HTTP_PORT = 80
LOOPBACK = ("127.0.0.1", "localhost", "::1")
_MOST_HEAD_BYTES = 1 << 16
_STOP_SECONDS = 2


class PageServer(uvicorn.Server):
    """A server that tells when it is ready, and ends the endless streams before it waits for its connections."""

    def __init__(self, app: Any, ready: Callable[[], None], end_streams: Callable[[], None]) -> None:
        config = uvicorn.Config(
            app,
            http=TimedProtocol,
            h11_max_incomplete_event_size=_MOST_HEAD_BYTES,
            log_level="error",
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            ws="none",
            lifespan="on",
            timeout_graceful_shutdown=_STOP_SECONDS,
        )
        super().__init__(config)
        self._ready = ready
        self._end_streams = end_streams

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        # not as the base does, which raises the signal again: the process would end before it has cleaned up
        self.force_exit = self.should_exit
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._end_streams()
        await super().shutdown(sockets)


def list_host_names(host: str) -> tuple[str, ...]:
    """Return the names in the Host header that mean this server; the first is for the link."""
    if host in LOOPBACK:
        shown = f"[{host}]" if ":" in host else host
        return tuple(dict.fromkeys((shown, "127.0.0.1", "localhost", "[::1]")))
    return (f"[{host}]" if ":" in host else host.lower(),)


def list_host_values(names: tuple[str, ...], port: int) -> tuple[str, ...]:
    """Return the values of the Host header that mean this server; browsers leave the usual port of HTTP out."""
    return (*(f"{name}:{port}" for name in names), *(names if port == HTTP_PORT else ()))


def listen(host: str, port: int | None) -> socket.socket:
    """Return a socket on the address.

    Raises:
        UsageError: The address cannot be used.
    """
    if host in ("", "0.0.0.0", "::", "*"):
        raise UsageError("--host needs the address or name of one interface: with all of them, no name is exact")
    ports = (DEFAULT_PORT, 0) if port is None else (port,)
    failure: OSError | None = None
    for each in ports:
        try:
            family = socket.getaddrinfo(host, each, type=socket.SOCK_STREAM)[0][0]
            found = socket.socket(family, socket.SOCK_STREAM)
            try:
                found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                found.bind((host, each))
                found.listen(128)
            except BaseException:
                found.close()
                raise
            found.setblocking(False)
            return found
        except (OSError, OverflowError, ValueError) as error:  # ValueError: a name that no host can have
            failure = error if isinstance(error, OSError) else OSError(str(error))
    reason = "" if failure is None else describe_exception(failure)
    taken = failure is not None and failure.errno in (errno.EADDRINUSE, errno.EACCES)
    option = "--port" if taken else "--host"
    raise UsageError(f"cannot serve the page on {host} port {ports[0]}: {reason}; choose another with {option}")


@dataclass(frozen=True, slots=True)
class WebOptions:
    """How the page is served."""

    host: str = "127.0.0.1"
    port: int | None = None
    """The port; None tries the usual one and then any that is free."""
    read_only: bool = False
    demo: bool = False
    model: str | None = None
    """The model of sessions that the page starts; None if none is configured."""
    prompt: str = ""
    """Said in a new session when the server starts."""


_DEFAULTS = WebOptions()


class WebServer:
    """The page of one project.

    Args:
        locations: The project.
        open_app: Builds an app with a model, for sessions that the page starts.
        open_bare: Builds an app without a model.
        options: How the page is served.
    """

    def __init__(
        self, locations: Locations, open_app: OpenApp, open_bare: OpenBareApp, options: WebOptions = _DEFAULTS
    ) -> None:
        self.locations = locations
        self.options = options
        self.token = secrets.token_urlsafe(32)
        self._open_app = open_app
        self._open_bare = open_bare
        self.assets = Assets()
        self._running: PageServer | None = None
        self._hub: Hub
        self._workspace: WebWorkspace
        self._sessions: SessionRoutes
        self._runs: RunRoutes
        self.routes: list[Route] = []

    def asgi(self, hosts: tuple[str, ...]) -> AsgiApp:
        """Return the application that answers to these values of the Host header."""
        self._hub = Hub(self.locations, version("callwright"))
        self._workspace = WebWorkspace(self.locations, self._open_bare)
        running = Hosts(self.locations, self._open_app, self._hub.publish)
        self._sessions = SessionRoutes(self._hub, self._workspace, running.touch)
        read_only = self.options.read_only
        self._runs = RunRoutes(read_only=read_only)
        actions = SessionActions(self._hub, running, self._workspace, self._sessions, read_only=read_only)

        @asynccontextmanager
        async def lifespan(app: Starlette) -> AsyncGenerator[None, None]:
            await self._hub.open()
            try:
                if self.options.prompt and not self.options.read_only:
                    (await running.open(None)).say(self.options.prompt)
                yield
            finally:
                await running.aclose()
                await self._runs.aclose()
                await self._workspace.aclose()
                await self._hub.aclose()

        self.routes = [
            *(Route(path, self._page, methods=["GET"]) for path in PAGES),
            Route("/static/{name:path}", self._file, methods=["GET"]),
            Route("/favicon.ico", _no_content, methods=["GET"]),
            route("/api/state", self._state),
            route("/api/export", self._export),
            *self._sessions.routes(),
            *actions.routes(),
            *ToolRoutes(self._hub, self._workspace, read_only=read_only).routes(),
            *self._runs.routes(),
            *FigureRoutes(self._hub, self._workspace).routes(),
        ]
        app = Starlette(routes=self.routes, lifespan=lifespan, exception_handlers={404: _not_found, 405: _not_found})
        return Guard(app, self.token, hosts)

    async def _page(self, request: Request) -> Response:
        return _serve(request, await asyncio.to_thread(self.assets.page, request.url.path))

    async def _file(self, request: Request) -> Response:
        found = await asyncio.to_thread(self.assets.file, request.path_params["name"])
        return Response("there is no such file\n", 404) if found is None else _serve(request, found)

    async def _state(self, request: Request) -> Fields:
        problems: list[str] = []
        mode, trusted = "default", False
        try:
            app = await self._workspace.app()
            problems, mode = list(app.problems), app.switch.mode
            trusted = await asyncio.to_thread(lambda: Trust(self.locations).given)
        except UsageError as error:  # settings that are not valid are said on the page, not instead of it
            problems = [str(error)]
        return {
            "version": version("callwright"),
            "project": str(self.locations.project),
            "name": self.locations.project.name,
            "cwd": str(self.locations.cwd),
            "read_only": self.options.read_only,
            "demo": self.options.demo,
            "model": self.options.model,
            "mode": mode,
            "trusted": trusted,
            "runs": bool(self._runs.address),
            "problems": problems,
            "open_questions": sum(len(link.questions) for link in self._hub.agents.links),
        }

    async def _export(self, request: Request) -> Response:
        session_id, form = take_text(request, "id"), request.query_params.get("format", "html")
        store = self._sessions.store
        if form == "jsonl":
            text, media_type = await export_redacted(store, session_id), "application/x-ndjson"
        elif form == "html":
            entry = await self._sessions.find_entry(session_id)
            stored = await read_readable(store, session_id)
            view, rewound = await self._sessions.view(session_id), await self._sessions.find_rewound(session_id)
            text = await asyncio.to_thread(export_html, entry.title, view, stored, rewound)
            media_type = "text/html; charset=utf-8"
        else:
            raise ApiError(400, "invalid", f"expected the format html or jsonl, got {form!r}")
        headers = {"content-disposition": f'attachment; filename="session.{form}"', "content-type": media_type}
        return Response(text.encode(errors="replace"), headers=headers)

    async def run(self, started: Callable[[str], None]) -> None:
        """Serve until the process is interrupted.

        Args:
            started: Receives the link of the page, with the token.

        Raises:
            UsageError: The address cannot be used.
        """
        listening = listen(self.options.host, self.options.port)
        address, port = listening.getsockname()[:2]
        # not localhost: where it has two addresses, another user may serve a page on the other one and take the token
        names = list_host_names(address if self.options.host in LOOPBACK else self.options.host)
        app = self.asgi(list_host_values(names, port))
        link = f"http://{names[0]}:{port}/#token={self.token}"

        earlier = read_web_link(self.locations)

        def ready() -> None:
            self._write_link(link, os.getpid())
            started(link)

        self._running = PageServer(app, ready, self._hub.end_streams)
        try:
            await self._running.serve(sockets=[listening])
        finally:
            self._remove_link(link, earlier)
            listening.close()

    @property
    def streams(self) -> int:
        """How many pages follow the live events."""
        return self._hub.streams

    def stop(self) -> None:
        """Let `run` return soon."""
        if self._running is not None:
            self._running.should_exit = True

    def _write_link(self, link: str, process_id: int) -> None:
        """Keep a link for `/web` in the terminal, in a file that only the user can read."""
        with suppress(OSError):
            self.locations.record.mkdir(mode=0o700, parents=True, exist_ok=True)
            with open_private(self.locations.web_link) as file:
                json.dump({"link": link, "pid": process_id}, file)

    def _remove_link(self, link: str, earlier: tuple[str, int] | None) -> None:
        """Remove our link; that of a server which was there before and still runs takes its place again."""
        found = read_web_link(self.locations)
        if found is None or found[0] != link:
            return
        if earlier is not None:
            self._write_link(*earlier)
        if earlier is None or read_web_link(self.locations) is None:
            self.locations.web_link.unlink(missing_ok=True)


def _serve(request: Request, file: StaticFile) -> Response:
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(file.packed, headers={"content-type": file.media_type, "content-encoding": "gzip"})
    return Response(file.data, headers={"content-type": file.media_type})


async def _no_content(request: Request) -> Response:
    return Response(status_code=204)


async def _not_found(request: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 404)
    text = "there is no such page" if status == 404 else "this address takes another method"
    body = json.dumps({"error": text, "code": "not_found" if status == 404 else "invalid"})
    return Response(f"{body}\n", status, media_type="application/json")
