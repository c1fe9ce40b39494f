"""The server of the page: assembles the routes, serves the static files and runs until it is stopped."""

import asyncio
import json
import os
import secrets
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from callwright.app.locations import Locations, read_web_link
from callwright.app.transcripts import export_redacted
from callwright.app.trust import Trust
from callwright.core.errors import UsageError
from callwright.sessions.base import SessionDamaged
from callwright.system.private_files import open_private
from callwright.web.api import ApiError, Fields, route, take_text
from callwright.web.assets import PAGES, Assets, StaticFile
from callwright.web.export import export_html
from callwright.web.figures import FigureRoutes
from callwright.web.guard import AsgiApp, Guard
from callwright.web.hosting import Hosts, OpenApp
from callwright.web.hub import Hub
from callwright.web.listener import PageServer, list_host_names, listen
from callwright.web.session_actions import RunRoutes, SessionActions
from callwright.web.sessions import SessionRoutes
from callwright.web.tools import ToolRoutes
from callwright.web.workspace import OpenBareApp, WebWorkspace


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
        running = Hosts(self.locations, self._open_app)
        self._sessions = SessionRoutes(self._hub, self._workspace)
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
            try:
                stored = await store.read_from(session_id)
            except SessionDamaged as error:
                stored = error.readable
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
        port = listening.getsockname()[1]
        names = list_host_names(self.options.host)
        app = self.asgi(tuple(f"{name}:{port}" for name in names))
        link = f"http://{names[0]}:{port}/#token={self.token}"

        def ready() -> None:
            self._write_link(link)
            started(link)

        self._running = PageServer(app, ready, self._hub.end_streams)
        try:
            await self._running.serve(sockets=[listening])
        finally:
            self._remove_link()
            listening.close()

    @property
    def streams(self) -> int:
        """How many pages follow the live events."""
        return self._hub.streams

    def stop(self) -> None:
        """Let `run` return soon."""
        if self._running is not None:
            self._running.should_exit = True

    def _write_link(self, link: str) -> None:
        """Keep the link for `/web` in the terminal, in a file that only the user can read."""
        with suppress(OSError):
            self.locations.record.mkdir(mode=0o700, parents=True, exist_ok=True)
            with open_private(self.locations.web_link) as file:
                json.dump({"link": link, "pid": os.getpid()}, file)

    def _remove_link(self) -> None:
        found = read_web_link(self.locations)
        if found is not None and found[1] == os.getpid():
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
