"""An editor built with the client side of the official SDK."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from acp import RequestError
from acp.client.connection import ClientSideConnection
from acp.connection import StreamDirection
from acp.schema import (
    AllowedOutcome,
    ClientCapabilities,
    DeniedOutcome,
    PermissionOption,
    RequestPermissionResponse,
    ToolCallUpdate,
)

from callwright.acp import EditorAgent

Choose = Callable[[list[PermissionOption]], Any]


def call(name: str, /, **arguments: object) -> dict[str, object]:
    """Return a reply of the model with one call."""
    return {"calls": [{"name": name, "arguments": arguments}]}


def choose(start: str) -> Choose:
    """Return a user who picks the option whose id starts like this; without one, the user cancels."""

    def pick(options: list[PermissionOption]) -> str | None:
        return next((option.option_id for option in options if option.option_id.startswith(start)), None)

    return pick


@dataclass
class EditorClient:
    """The editor's side: keeps every update and answers permission requests as the test says."""

    answer: Choose = field(default_factory=lambda: choose("once"))
    updates: list[Any] = field(default_factory=list[Any])
    asked: list[tuple[ToolCallUpdate, list[PermissionOption]]] = field(default_factory=list[Any])
    question_arrived: asyncio.Event = field(default_factory=asyncio.Event)
    files: dict[str, str] = field(default_factory=dict[str, str])
    written: dict[str, str] = field(default_factory=dict[str, str])

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **meta: Any
    ) -> Any:
        self.asked.append((tool_call, options))
        self.question_arrived.set()
        picked = self.answer(options)
        if isinstance(picked, Awaitable):
            picked = cast("Any", await picked)
        if picked is None:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        if isinstance(picked, str):
            return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=picked))
        return picked

    async def session_update(self, session_id: str, update: Any, **meta: Any) -> None:
        self.updates.append((session_id, update))

    async def read_text_file(self, session_id: str, path: str, **rest: Any) -> Any:
        if path not in self.files:
            raise RequestError.resource_not_found(path)
        return {"content": self.files[path]}

    async def write_text_file(self, session_id: str, path: str, content: str, **rest: Any) -> None:
        self.written[path] = self.files[path] = content
        Path(path).write_text(content)

    def on_connect(self, conn: Any) -> None: ...

    def kinds(self, session_id: str = "") -> list[str]:
        return [each.session_update for owner, each in self.updates if session_id in ("", owner)]

    def text(self) -> str:
        return self._texts("agent_message_chunk")

    def thoughts(self) -> str:
        return self._texts("agent_thought_chunk")

    def _texts(self, kind: str) -> str:
        return "".join(each.content.text for _, each in self.updates if each.session_update == kind)

    def calls(self) -> dict[str, dict[str, Any]]:
        """The calls as an editor shows them: every update is merged into what came before."""
        found: dict[str, dict[str, Any]] = {}
        for _, update in self.updates:
            if update.session_update in ("tool_call", "tool_call_update"):
                shown = update.model_dump(exclude_none=True, exclude={"session_update"})
                found.setdefault(update.tool_call_id, {}).update(shown)
        return found

    def statuses(self) -> list[str]:
        return [each["status"] for each in self.calls().values()]


@dataclass
class Connected:
    """A client that is connected, and the folders it works in."""

    connection: ClientSideConnection
    client: EditorClient
    project: Path
    agent: EditorAgent

    async def start(self, capabilities: ClientCapabilities | None = None, **more: Any) -> str:
        """Initialize and open a session; return its id."""
        await self.connection.initialize(1, client_capabilities=capabilities)
        return (await self.connection.new_session(str(self.project), mcp_servers=[], **more)).session_id

    async def say(self, session_id: str, *blocks: Any) -> str:
        """Send a prompt; return its stop reason."""
        given = [{"type": "text", "text": each} if isinstance(each, str) else each for each in blocks]
        return (await self.connection.prompt(session_id, given)).stop_reason  # type: ignore[arg-type] - the SDK takes objects too

    async def say_until_asked(self, session_id: str, *blocks: Any) -> asyncio.Task[str]:
        """Send a prompt and wait for its question; return the stop reason to come."""
        answer = asyncio.create_task(self.say(session_id, *blocks))
        await self.client.question_arrived.wait()
        return answer

    async def raw(self, method: str, params: object) -> Any:
        """Send a request as it is."""
        return await self.connection._conn.send_request(method, params)  # pyright: ignore[reportPrivateUsage] - the SDK has no public way

    def record(self) -> list[dict[str, Any]]:
        """Return a list that gets every further message of the agent, as it is."""
        messages: list[dict[str, Any]] = []
        self.connection._conn.add_observer(  # pyright: ignore[reportPrivateUsage] - the SDK has no public way
            lambda event: messages.append(event.message) if event.direction is StreamDirection.INCOMING else None
        )
        return messages


async def until(condition: Callable[[], object]) -> None:
    """Wait for something outside of this process, or for an update that no response stands for."""
    while not condition():  # noqa: ASYNC110 - a file has no event
        await asyncio.sleep(0.01)
