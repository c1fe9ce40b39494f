"""Follows the running agents of a project through their live sockets."""

import asyncio
import itertools
import json
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, cast

from callwright.core.errors import CallwrightError
from callwright.system.private_files import check_socket_folder, is_own_peer, socket_folder

_MOST_LINE_BYTES = 256 << 20
_SCAN_SECONDS = 0.2
_ANSWER_SECONDS = 10.0
Fields = dict[str, Any]
Tell = Callable[[Fields], None]


class AgentGone(CallwrightError):
    """The process of a running agent has ended, or does not answer."""


def _empty_message() -> Fields:
    return {"text": "", "thinking": "", "calls": []}


class AgentLink:
    """A connection to one running agent, with its state as it last told it."""

    def __init__(self, writer: asyncio.StreamWriter, hello: Fields) -> None:
        self._writer = writer
        self._results: dict[int, asyncio.Future[Fields]] = {}
        self._numbers = itertools.count(1)
        self.session_id = str(hello.get("session", ""))
        self.where, self.pid = str(hello.get("where", "")), int(hello.get("pid", 0))
        self.model, self.mode = str(hello.get("model", "")), str(hello.get("mode", ""))
        self.state = str(hello.get("state", "idle"))
        self.questions: dict[str, Fields] = {each["id"]: each for each in hello.get("questions", ())}
        self.partial: Fields = hello.get("partial") or _empty_message()
        self.running: dict[str, Fields] = {each["id"]: each for each in hello.get("running", ())}
        self.waits: dict[str, list[str]] = dict(hello.get("waits") or {})
        """The calls that each call waited for, by id."""
        self.end: Fields = dict(hello.get("end") or {})
        """How and when the last run ended; empty before its end."""

    async def request(self, **fields: Any) -> Fields:
        """Send a request and return its result.

        Raises:
            AgentGone: The process has ended, or does not answer.
        """
        number = next(self._numbers)
        self._results[number] = result = asyncio.get_running_loop().create_future()
        try:
            self._writer.write(json.dumps({"id": number, **fields}).encode() + b"\n")
            await self._writer.drain()
            return await asyncio.wait_for(result, _ANSWER_SECONDS)
        except (OSError, TimeoutError, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and not result.cancelled():
                raise
            raise AgentGone(f"the agent with process id {self.pid} is gone") from None
        finally:
            self._results.pop(number, None)

    def take(self, event: Fields) -> bool:
        """Apply an event to the state; False for the result of a request, which is not for displays."""
        if event.get("type") == "result":
            waiting = self._results.get(event.get("id", 0))
            if waiting is not None and not waiting.done():
                waiting.set_result(event)
            return False
        if event.get("session") != self.session_id and event.get("type") == "agent" and event.get("state") != "gone":
            self.session_id = str(event.get("session", ""))
            self.partial, self.running, self.end = _empty_message(), {}, {}
        self._apply(event)
        return True

    def _apply(self, event: Mapping[str, Any]) -> None:
        match event:
            case {"type": "agent", "state": str() as state} if state != "gone":
                self.state, self.mode = state, str(event.get("mode", self.mode))
            case {"type": "asked", "questions": [*questions]}:
                self.questions |= {each["id"]: each for each in cast("list[Fields]", questions)}
            case {"type": "settled", "question": str() as question}:
                self.questions.pop(question, None)
            case {"type": "text" | "thinking" as kind, "text": str() as text}:
                self.partial[kind] += text
            case {"type": "call_text", "call": str() as call, "name": str() as name, "text": str() as text}:
                calls = cast("list[Fields]", self.partial["calls"])
                known = next((each for each in calls if each["id"] == call), None)
                if known is None:
                    calls.append({"id": call, "name": name, "arguments": text})
                else:
                    known["arguments"] += text
            case {"type": "run_began"}:
                self.end = {}
            case {"type": "message"}:
                self.partial = _empty_message()
            case {"type": "run_ended"}:
                self.partial = _empty_message()
                self.end = {key: event.get(key) for key in ("ended", "reason", "at")}
            case {"type": "call_waits", "call": str() as call, "on": [*on]}:
                self.waits[call] = [str(each) for each in cast("list[object]", on)]
            case {"type": "call_began", "call": str() as call, "name": str() as name, "at": at}:
                self.running[call] = {"id": call, "name": name, "since": at, "progress": ""}
            case {"type": "call_progressed", "call": str() as call, "text": str() as text} if call in self.running:
                self.running[call]["progress"] = text
            case {"type": "call_ended", "outcome": {"call": str() as call}}:
                self.running.pop(call, None)
            case _:
                pass

    def close(self) -> None:
        """Give up the connection; pending requests fail."""
        for waiting in self._results.values():
            waiting.cancel()
        self._writer.close()


class LiveAgents:
    """The running agents of a project.

    Args:
        folder: The folder of the live sockets, `Locations.live`.
        tell: Receives every event of every agent.
    """

    def __init__(self, folder: Path, tell: Tell) -> None:
        self._folder = socket_folder(folder)
        self._tell = tell
        self._links: dict[str, AgentLink] = {}
        self._following: dict[str, asyncio.Task[None]] = {}

    @property
    def links(self) -> list[AgentLink]:
        """The agents that are connected."""
        return list(self._links.values())

    def find(self, session_id: str) -> AgentLink | None:
        """Return the agent that has a session open; one that works on it before one that is idle."""
        found = [link for link in self._links.values() if link.session_id == session_id]
        return min(found, key=lambda link: link.state == "idle", default=None)

    @asynccontextmanager
    async def following(self) -> AsyncGenerator["LiveAgents", None]:
        """Find and follow agents inside of the block."""
        task = asyncio.create_task(self._watch())
        try:
            yield self
        finally:
            for each in (task, *self._following.values()):
                each.cancel()
            await asyncio.gather(task, *self._following.values(), return_exceptions=True)

    async def _watch(self) -> None:
        while True:
            self.scan()
            await asyncio.sleep(_SCAN_SECONDS)

    def scan(self) -> None:
        """Look for agents that have started since."""
        try:
            check_socket_folder(self._folder)
            names = [file.name for file in self._folder.iterdir() if file.suffix == ".sock"]
        except OSError:
            return
        for name in names:
            if name not in self._following:
                task = self._following[name] = asyncio.create_task(self._follow(name))
                task.add_done_callback(lambda _, name=name: self._following.pop(name, None))

    async def _follow(self, name: str) -> None:
        path = self._folder / name
        try:
            stream, writer = await asyncio.open_unix_connection(path, limit=_MOST_LINE_BYTES)
        except ConnectionRefusedError:  # left behind by a process that was killed
            path.unlink(missing_ok=True)
            return
        except OSError:
            return
        link: AgentLink | None = None
        try:
            if not is_own_peer(writer.get_extra_info("socket")):
                return
            while line := await stream.readline():
                event = cast("Fields", json.loads(line))
                if link is None:
                    link = self._links[name] = AgentLink(writer, event)
                    self._announce(link, link.state)
                elif link.take(event):
                    self._tell(event)
        except (OSError, ValueError, LookupError, TypeError, AttributeError):  # gone, or not one of ours
            pass
        finally:
            writer.close()
            self._links.pop(name, None)
            if link is not None:
                link.close()
                self._announce(link, "gone")

    def _announce(self, link: AgentLink, state: str) -> None:
        agent = {"session": link.session_id, "state": state, "where": link.where, "pid": link.pid}
        with suppress(RuntimeError):
            self._tell({"type": "agent", **agent})
            if state != "gone" and link.questions:
                self._tell({"type": "asked", "session": link.session_id, "questions": list(link.questions.values())})
