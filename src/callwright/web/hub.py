"""Live events for the pages: from the sockets of running agents and from changes of the session file."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, suppress
from typing import Any

from callwright.app.live_client import LiveAgents
from callwright.app.locations import Locations
from callwright.core.errors import describe_exception
from callwright.sessions import SessionError, SessionStore, SqliteStore

_FLUSH_SECONDS = 0.015
_PING_SECONDS = 15.0
_POLL_SECONDS = 0.05
_IDLE_SECONDS = 1.0
_MOST_WAITING = 20_000
_MOST_WAITING_BYTES = 1 << 24
_MOST_WATCHED = 200
MOST_STREAMS = 100
"""The tabs of a browser share one; each stream holds a connection and the events it has not sent."""
Fields = dict[str, Any]


class _Subscriber:
    """The events that one page has not received yet, as JSON."""

    def __init__(self) -> None:
        self.ready = asyncio.Event()
        self._events: list[bytes] = []
        self._bytes = 0
        self._lagged = False

    def add(self, event: bytes) -> None:
        self._events.append(event)
        self._bytes += len(event)
        if len(self._events) > _MOST_WAITING or self._bytes > _MOST_WAITING_BYTES:
            self.take()
            self._lagged = True
        self.ready.set()

    def take(self) -> tuple[list[bytes], bool]:
        """Return the events, and whether earlier ones were left out: the page must read everything again."""
        found = self._events, self._lagged
        self._events, self._bytes, self._lagged = [], 0, False
        self.ready.clear()
        return found


class Hub:
    """Collects the events of a project and passes them to every page.

    Args:
        locations: The project.
        version: The version of this program, for the first event of a page.
    """

    def __init__(self, locations: Locations, version: str) -> None:
        self._locations = locations
        self._version = version
        self.agents = LiveAgents(locations.live, self.publish)
        self._store: SqliteStore | None = None
        self._subscribers: set[_Subscriber] = set()
        self._known: dict[str, tuple[int, float, str]] = {}
        self._problem = ""
        self._open = AsyncExitStack()
        self._closing = False
        self._wanted = asyncio.Event()
        self.number = 0
        """The number of the last event: a page that has read a session knows which events that includes."""

    async def open(self) -> None:
        """Start following agents and the session file."""
        await self._open.enter_async_context(self.agents.following())
        task = asyncio.create_task(self._watch_sessions())
        self._open.push_async_callback(_end_task, task)

    def end_streams(self) -> None:
        """End the streams of all pages."""
        self._closing = True
        for each in self._subscribers:
            each.ready.set()

    async def aclose(self) -> None:
        """End the streams of all pages and stop following agents."""
        self.end_streams()
        await self._open.aclose()
        if self._store is not None:
            self._store.close()

    @property
    def store(self) -> SessionStore | None:
        """The sessions of the project; None while there is no file, because opening would create it.

        Raises:
            SessionError: Its folder may not be entered.
        """
        file = self._locations.sessions
        try:
            if self._store is None and file.exists():
                self._store = SqliteStore(file)
        except OSError as error:
            raise SessionError(f"the session file {file} cannot be opened: {describe_exception(error)}") from None
        return self._store

    def publish(self, event: Fields) -> None:
        """Pass an event to every page, with its number."""
        self.number += 1
        encoded = _encode({**event, "number": self.number}) if self._subscribers else b""
        for each in self._subscribers:
            each.add(encoded)

    @property
    def streams(self) -> int:
        """How many pages follow the events."""
        return len(self._subscribers)

    @property
    def full(self) -> bool:
        """Whether no further page can follow."""
        return self.streams >= MOST_STREAMS

    async def stream(self) -> AsyncGenerator[bytes, None]:
        """Yield server-sent events for one page: batches of events, the first with the state of now."""
        subscriber = _Subscriber()
        self._subscribers.add(subscriber)
        self._wanted.set()
        try:
            yield _join([self._hello()])
            while not self._closing:
                try:
                    await asyncio.wait_for(subscriber.ready.wait(), _PING_SECONDS)
                except TimeoutError:
                    yield b": ping\n\n"
                    continue
                await asyncio.sleep(_FLUSH_SECONDS)  # events come in bursts, and a page draws once per frame
                events, lagged = subscriber.take()
                # after a gap: questions and agents as they are now, which the events that were left out changed
                if found := [*([self._hello()] if lagged else ()), *events]:
                    yield _join(found)
        finally:
            self._subscribers.discard(subscriber)

    def _hello(self) -> bytes:
        links = self.agents.links
        agents = [
            {"session": link.session_id, "state": link.state, "where": link.where, "pid": link.pid} for link in links
        ]
        questions = [question for link in links for question in link.questions.values()]
        return _encode({"type": "hello", "version": self._version, "agents": agents, "questions": questions})

    async def _watch_sessions(self) -> None:
        """Tell which sessions have new records; nothing is read while no page listens."""
        version = ""
        while True:
            if not self._subscribers:
                self._wanted.clear()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._wanted.wait(), _IDLE_SECONDS)
            try:
                store = self.store
                if store is not None and (now := await store.version()) != version:
                    await self._publish_changes(store)
                    version = now  # not before: what could not be read is told at the next look
                self._problem = ""
            except SessionError as error:
                if str(error) != self._problem:
                    self._problem = str(error)
                    self.publish({"type": "problem", "text": self._problem})
            await asyncio.sleep(_POLL_SECONDS)

    async def _publish_changes(self, store: SessionStore) -> None:
        found = await self._list(store)
        for session_id, state in found.items():
            if self._known.get(session_id) != state:
                records, updated_at, title = state
                news = {"session": session_id, "records": records, "updated_at": updated_at, "title": title}
                self.publish({"type": "stored", **news})
        if len(found) < _MOST_WATCHED:  # of a longer list, the oldest drop out without being deleted
            for session_id in self._known.keys() - found.keys():
                self.publish({"type": "removed", "session": session_id})
        self._known = found

    async def _list(self, store: SessionStore) -> dict[str, tuple[int, float, str]]:
        entries = await store.list(limit=_MOST_WATCHED)
        return {entry.session_id: (entry.records, entry.updated_at, entry.title) for entry in entries}


async def _end_task(task: "asyncio.Task[None]") -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def _encode(event: Fields) -> bytes:
    # ASCII: a line separator of Unicode inside a text must not end the event
    return json.dumps(event, separators=(",", ":"), default=str).encode()


def _join(events: list[bytes]) -> bytes:
    return b"data: [" + b",".join(events) + b"]\n\n"
