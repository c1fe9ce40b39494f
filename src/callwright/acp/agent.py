"""The agent's side of the Agent Client Protocol: answers or refuses every method of its schema."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast
from weakref import WeakValueDictionary

from acp.connection import Connection
from acp.exceptions import RequestError
from acp.meta import PROTOCOL_VERSION
from acp.schema import (
    AgentCapabilities,
    AuthenticateRequest,
    CancelNotification,
    CloseSessionRequest,
    CloseSessionResponse,
    DeleteSessionRequest,
    DeleteSessionResponse,
    ForkSessionRequest,
    ForkSessionResponse,
    Implementation,
    InitializeRequest,
    InitializeResponse,
    ListSessionsRequest,
    ListSessionsResponse,
    LoadSessionRequest,
    LoadSessionResponse,
    McpCapabilities,
    NewSessionRequest,
    NewSessionResponse,
    PromptCapabilities,
    PromptRequest,
    ResumeSessionRequest,
    ResumeSessionResponse,
    SessionAdditionalDirectoriesCapabilities,
    SessionCapabilities,
    SessionCloseCapabilities,
    SessionDeleteCapabilities,
    SessionForkCapabilities,
    SessionInfo,
    SessionListCapabilities,
    SessionResumeCapabilities,
    SetSessionConfigOptionResponse,
    SetSessionConfigOptionSelectRequest,
    SetSessionModeRequest,
    SetSessionModeResponse,
)
from pydantic import BaseModel

from callwright import __version__
from callwright.acp.commands import config_options, session_modes, set_mode, set_model
from callwright.acp.editor import Editor, EditorFiles
from callwright.acp.permissions import DescribeQuestion
from callwright.acp.requests import check_folder, check_folders, parse_params, read_servers, refuse
from callwright.acp.session import EditorSession
from callwright.acp.stored_sessions import delete_stored, fork_stored, list_stored, require_stored
from callwright.acp.transport import LineTransport
from callwright.acp.updates import escape_controls
from callwright.app.app import App
from callwright.app.live import LiveAgent
from callwright.app.locations import Locations
from callwright.core.errors import CallwrightError, describe_exception
from callwright.core.events import Event
from callwright.toolbox import FileAccess

_MOST_SESSIONS = 64
"""Open at the same time; each has its own MCP servers."""


@dataclass(frozen=True, slots=True)
class OpenRequest:
    """What a session asks for."""

    locations: Locations
    directories: tuple[str, ...] = ()
    servers: str = ""
    """MCP servers of the editor, as the JSON of an `.mcp.json`."""


@dataclass(frozen=True, slots=True)
class SessionParts:
    """What a session brings to its app."""

    report: Callable[[str], None]
    """Receives notices for the user."""
    files: FileAccess
    observe: Callable[[Event], None]
    """Receives the events of calls and runs."""


OpenApp = Callable[[OpenRequest, SessionParts], App]
"""Builds the app of a session; called in a thread."""


class EditorAgent:
    """Serves one editor.

    Args:
        open_app: Builds the app of a session.
        describe: Describes a question in full.
        within: If given, the folder that every session must be in.
    """

    def __init__(self, open_app: OpenApp, describe: DescribeQuestion, *, within: Path | None = None) -> None:
        self._open_app = open_app
        self._describe = describe
        self._within = within
        self._editor: Editor | None = None
        self._initialized = False
        self._sessions: dict[str, EditorSession] = {}
        self._opening: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """Held while a session is opened, which may take long: its MCP servers are started."""
        self._folders: dict[str, Path] = {}
        """Where the sessions are that the editor has been told about."""
        self._later: set[asyncio.Task[None]] = set()
        self._methods: dict[str, tuple[type[BaseModel], Callable[[Any], Awaitable[BaseModel | None]]]] = {
            "authenticate": (AuthenticateRequest, self._authenticate),
            "initialize": (InitializeRequest, self._initialize),
            "session/cancel": (CancelNotification, self._cancel),
            "session/close": (CloseSessionRequest, self._close),
            "session/delete": (DeleteSessionRequest, self._delete),
            "session/fork": (ForkSessionRequest, self._fork),
            "session/list": (ListSessionsRequest, self._list),
            "session/load": (LoadSessionRequest, self._load),
            "session/new": (NewSessionRequest, self._new),
            "session/prompt": (PromptRequest, self._prompt),
            "session/resume": (ResumeSessionRequest, self._resume),
            "session/set_config_option": (SetSessionConfigOptionSelectRequest, self._set_option),
            "session/set_mode": (SetSessionModeRequest, self._set_mode),
        }

    async def serve(self, transport: LineTransport) -> None:
        """Answer the editor until it closes the connection."""
        connection = Connection(self.handle, transport, listening=False)
        self._editor = Editor(connection.send_request, connection.send_notification)
        try:
            await connection.main_loop()
        finally:
            await asyncio.shield(self._end())
            await connection.close()
            await asyncio.shield(self._end())  # those that were opened while the others ended

    async def _end(self) -> None:
        sessions, self._sessions = list(self._sessions.values()), {}
        await asyncio.gather(*(session.close() for session in sessions), return_exceptions=True)

    async def handle(self, method: str, params: object, is_notification: bool) -> dict[str, Any] | None:
        """Answer one request or notification.

        Raises:
            RequestError: The method is not supported, or the request cannot be met; the message says why.
        """
        known = self._methods.get(method)
        if known is None or is_notification != (method == "session/cancel"):
            if is_notification:  # the caller reads no error for a notification
                return None
            raise RequestError(-32601, f"Method not found: {method[:200]}", {"method": method[:200]})
        if not self._initialized and method != "initialize":
            raise RequestError(-32600, "the first request must be initialize")
        model, answer = known
        request = parse_params(model, params)
        try:
            result = await answer(request)
        except CallwrightError as error:
            raise RequestError(-32603, str(error)) from error
        except OSError as error:
            raise RequestError(-32603, describe_exception(error)) from error
        if result is None:
            return {}
        return result.model_dump(mode="json", by_alias=True, exclude_none=True)

    async def _initialize(self, request: InitializeRequest) -> InitializeResponse:
        self._initialized = True
        if self._editor is not None and request.client_capabilities is not None:
            self._editor.capabilities = request.client_capabilities
        return InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_capabilities=AgentCapabilities(
                load_session=True,
                prompt_capabilities=PromptCapabilities(image=True, audio=False, embedded_context=True),
                mcp_capabilities=McpCapabilities(http=True, sse=False, acp=False),
                session_capabilities=SessionCapabilities(
                    list=SessionListCapabilities(),
                    delete=SessionDeleteCapabilities(),
                    additional_directories=SessionAdditionalDirectoriesCapabilities(),
                    fork=SessionForkCapabilities(),
                    resume=SessionResumeCapabilities(),
                    close=SessionCloseCapabilities(),
                ),
            ),
            auth_methods=[],
            agent_info=Implementation(name="callwright", title="callwright", version=__version__),
        )

    async def _authenticate(self, request: AuthenticateRequest) -> None:
        raise refuse(
            f"there is no authentication method {request.method_id[:200]!r}: models are configured by the environment"
            " of this process or its settings, see callwright doctor"
        )

    async def _new(self, request: NewSessionRequest) -> NewSessionResponse:
        asked = self._read_request(request.cwd, request.additional_directories, request.mcp_servers)
        session = await self._open(str(uuid.uuid4()), asked, "startup")
        self._run_later(session.show_commands())
        return NewSessionResponse(
            session_id=session.session_id, modes=session_modes(session.app), config_options=config_options(session.app)
        )

    async def _load(self, request: LoadSessionRequest) -> LoadSessionResponse:
        session, waiting = await self._reopen(request, replay=True)
        self._run_later(self._go_on(session, waiting=waiting))
        return LoadSessionResponse(modes=session_modes(session.app), config_options=config_options(session.app))

    async def _resume(self, request: ResumeSessionRequest) -> ResumeSessionResponse:
        session, waiting = await self._reopen(request, replay=False)
        self._run_later(self._go_on(session, waiting=waiting))
        return ResumeSessionResponse(modes=session_modes(session.app), config_options=config_options(session.app))

    async def _fork(self, request: ForkSessionRequest) -> ForkSessionResponse:
        asked = self._read_request(request.cwd, request.additional_directories, request.mcp_servers or [])
        await require_stored(request.session_id, asked.locations)
        copy = str(uuid.uuid4())
        await fork_stored(request.session_id, copy, asked.locations)
        session = await self._open(copy, asked, "resume")
        self._run_later(session.show_commands())
        return ForkSessionResponse(
            session_id=copy, modes=session_modes(session.app), config_options=config_options(session.app)
        )

    async def _reopen(
        self, request: LoadSessionRequest | ResumeSessionRequest, *, replay: bool
    ) -> tuple[EditorSession, bool]:
        asked = self._read_request(request.cwd, request.additional_directories, request.mcp_servers or [])
        await require_stored(request.session_id, asked.locations)
        session = await self._open(request.session_id, asked, "resume")
        return session, await session.replay(silently=not replay)

    async def _go_on(self, session: EditorSession, *, waiting: bool) -> None:
        await session.show_commands()
        if waiting:
            session.resume_question()

    def _read_request(self, cwd: str, folders: Sequence[str] | None, servers: Sequence[Any]) -> OpenRequest:
        folder = check_folder(cwd, self._within)
        return OpenRequest(
            Locations.of(folder), check_folders(folders or (), self._within), read_servers(servers, folder)
        )

    async def _open(self, session_id: str, asked: OpenRequest, source: str) -> EditorSession:
        if self._editor is None:
            raise RequestError(-32603, "there is no connection")
        opening = self._opening.setdefault(session_id, asyncio.Lock())
        async with opening:  # two requests for one session must not open it twice
            before = self._sessions.get(session_id)
            if before is not None and before.running:
                raise RequestError(-32600, f"session {session_id} is answering a prompt; cancel it first")
            if before is not None:
                await self._sessions.pop(session_id).close()
            # counted by state: the traceback of a failed opening keeps its lock until garbage collection
            being_opened = sum(lock.locked() for lock in self._opening.values())
            if len(self._sessions) + being_opened > _MOST_SESSIONS:
                raise RequestError(-32600, f"{_MOST_SESSIONS} sessions are open; close one with session/close")
            notices: list[str] = []
            files = EditorFiles(self._editor, session_id, asyncio.get_running_loop())
            live = LiveAgent(asked.locations.live, "editor")
            app = await self._build(asked, SessionParts(notices.append, files, live.observe))
            session = EditorSession(session_id, app, self._editor, self._describe, source, live)
            try:
                await session.open()
            except asyncio.CancelledError:  # the editor has gone while MCP servers were starting
                await session.close()
                raise
            for notice in notices:
                session.report(notice)
            self._sessions[session_id] = session
            self._folders[session_id] = asked.locations.cwd
        return session

    async def _build(self, asked: OpenRequest, parts: SessionParts) -> App:
        building = asyncio.ensure_future(asyncio.to_thread(self._open_app, asked, parts))
        try:
            return await asyncio.shield(building)
        except asyncio.CancelledError:
            building.add_done_callback(_close_unused)
            raise

    async def _list(self, request: ListSessionsRequest) -> ListSessionsResponse:
        folder = check_folder(request.cwd, self._within) if request.cwd else self._within or Path.cwd()
        locations = Locations.of(folder)
        entries, next_cursor = await list_stored(locations, request.cursor or "0")
        self._folders |= {entry.session_id: self._folders.get(entry.session_id, folder) for entry in entries}
        return ListSessionsResponse(
            sessions=[
                SessionInfo(
                    session_id=entry.session_id,
                    cwd=str(self._folders[entry.session_id]),
                    title=escape_controls(entry.title) or None,
                    updated_at=datetime.fromtimestamp(entry.updated_at, UTC).isoformat(),
                )
                for entry in entries
            ],
            next_cursor=next_cursor,
        )

    async def _delete(self, request: DeleteSessionRequest) -> DeleteSessionResponse:
        folder = self._folders.get(request.session_id, self._within or Path.cwd())
        locations = Locations.of(folder)
        await require_stored(request.session_id, locations)
        await self._drop(request.session_id)
        await delete_stored(request.session_id, locations)
        return DeleteSessionResponse()

    async def _close(self, request: CloseSessionRequest) -> CloseSessionResponse:
        self._require(request.session_id)
        await self._drop(request.session_id)
        return CloseSessionResponse()

    async def _drop(self, session_id: str) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            await session.close()

    async def _prompt(self, request: PromptRequest) -> BaseModel:
        return await self._require(request.session_id).prompt(request.prompt)

    async def _cancel(self, request: CancelNotification) -> None:
        session = self._sessions.get(request.session_id)
        if session is not None:
            session.cancel("cancelled by the user")

    async def _set_mode(self, request: SetSessionModeRequest) -> SetSessionModeResponse:
        session = self._require(request.session_id)
        set_mode(session.app, request.mode_id)
        await session.show_mode()
        return SetSessionModeResponse()

    async def _set_option(self, request: SetSessionConfigOptionSelectRequest) -> SetSessionConfigOptionResponse:
        session = self._require(request.session_id)
        match request.config_id:
            case "mode":
                set_mode(session.app, request.value)
                await session.show_mode()
            case "model":
                await asyncio.to_thread(set_model, session.app, request.value)
            case other:
                raise refuse(f"there is no option {other[:200]!r}; there are mode and model")
        return SetSessionConfigOptionResponse(config_options=config_options(session.app))

    def _require(self, session_id: str) -> EditorSession:
        session = self._sessions.get(session_id)
        if session is None:
            raise RequestError(-32002, f"session {session_id[:200]!r} is not open; use session/new or session/load")
        return session

    def _run_later(self, work: Awaitable[None]) -> None:
        """Do something after the response of this request, which names the session, has been sent."""
        task = asyncio.ensure_future(cast("Any", work))
        self._later.add(task)
        task.add_done_callback(self._later.discard)


def _close_unused(building: "asyncio.Future[App]") -> None:
    if not building.cancelled() and building.exception() is None:
        building.result().close()
