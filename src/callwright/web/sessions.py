"""The routes that show sessions: the list, one session, its records by position, and live events."""

import asyncio
import os
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from urllib.parse import quote
from weakref import WeakValueDictionary

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from callwright.app.costs import cost_of_records
from callwright.app.live_client import AgentLink
from callwright.app.questions import question_fields
from callwright.app.session_view import RecordView, find_image, usage_fields
from callwright.app.shared_questions import Settled
from callwright.core.calls import Completed, Question
from callwright.core.content import WEB_IMAGES
from callwright.core.messages import ToolMessage
from callwright.policy.tool_names import canonical
from callwright.providers.pricing import Prices
from callwright.sessions import SessionError, SessionStore
from callwright.sessions.base import SessionDamaged, SessionEntry, StoredRecord, no_such_session
from callwright.sessions.records import OpenQuestions, Record, Rewound, Said, UndoPoint, follow_rewinds, sum_usage
from callwright.toolbox.todo import read_todos
from callwright.web.api import ApiError, Fields, route, take_int, take_text
from callwright.web.hub import Hub
from callwright.web.workspace import WebWorkspace

_MOST_ITEMS = 1_000
_MOST_SESSIONS = 1_000
_MOST_HITS = 500
_MOST_CACHED = 4
_MOST_SUMMARIES = 200
_SLICE = 250
_LONG = 1_000
_TAIL = 200
_REST_SECONDS = 0.5


class RecordCache:
    """The records of the sessions that pages look at; only new ones are read."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, list[Record]] = OrderedDict()
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def read(self, store: SessionStore, session_id: str) -> tuple[Sequence[Record], dict[int, str]]:
        """Return the records that can be read, and what is wrong with the others, by position.

        Raises:
            SessionError: There is no such session.
        """
        async with self._locks.setdefault(session_id, asyncio.Lock()):
            known = self._known.pop(session_id, [])
            try:
                # in slices: the store has one thread, and the messages on the screen must not wait for all the others
                while added := await store.read_from(session_id, len(known), limit=_SLICE):
                    known += [stored.record for stored in added]
            except SessionDamaged:
                return await _read_damaged(store, session_id)
            self._known[session_id] = known
            if len(self._known) > _MOST_CACHED:
                self._known.popitem(last=False)
            return known, {}

    def holds(self, session_id: str) -> bool:
        """Whether most of a session is known already."""
        return session_id in self._known

    def forget(self, session_id: str) -> None:
        """Read the session from its beginning the next time."""
        self._known.pop(session_id, None)


async def _read_damaged(store: SessionStore, session_id: str) -> tuple[Sequence[Record], dict[int, str]]:
    try:
        return await store.read(session_id), {}
    except SessionDamaged as error:
        return [stored.record for stored in error.readable], error.faults


class SessionRoutes:
    """Answers the requests that show sessions.

    Args:
        hub: The live events and the session file.
        workspace: The app without a model.
        touch: Receives each session that a page reads.
    """

    def __init__(
        self, hub: Hub, workspace: WebWorkspace, touch: Callable[[str], None] = lambda session_id: None
    ) -> None:
        self._hub = hub
        self._touch = touch
        self._workspace = workspace
        self.records = RecordCache()
        self._reading: dict[str, asyncio.Task[None]] = {}
        self._summaries: dict[str, tuple[int, Fields]] = {}
        """What is the same until a session has more records, by session: the count, and the fields."""
        self.answered: dict[str, Settled] = {}
        """Answers to questions of sessions that no process ran."""

    def routes(self) -> list[Route]:
        """Return the routes."""
        gets = {
            "events": self.events,
            "sessions": self.list_sessions,
            "session": self.show,
            "messages": self.messages,
            "find": self.find,
            "output": self.output,
            "image": self.image,
        }
        return [route(f"/api/{name}", handler) for name, handler in gets.items()]

    @property
    def store(self) -> SessionStore:
        """The session store.

        Raises:
            ApiError: There is no session file yet.
        """
        found = self._hub.store
        if found is None:
            raise ApiError(404, "not_found", "there is no session in this project yet")
        return found

    async def events(self, request: Request) -> Response:
        if self._hub.full:
            raise ApiError(503, "busy", "too many pages follow this server; close some of them")
        return StreamingResponse(self._hub.stream(), headers={"content-type": "text/event-stream"})

    async def list_sessions(self, request: Request) -> Fields:
        limit = take_int(request, "limit", 100, least=1, most=_MOST_SESSIONS)
        store = self._hub.store
        if store is None:
            return {"sessions": self._new_sessions(()), "error": None}
        try:
            open_ones, newest = await store.list(limit=limit, waiting=True), await store.list(limit=limit)
        except SessionError as error:
            return {"sessions": [], "error": str(error)}
        waiting = {entry.session_id for entry in open_ones}
        older = waiting - {entry.session_id for entry in newest}  # one that waits for the user is listed, however old
        entries = [*newest, *(entry for entry in open_ones if entry.session_id in older)]
        listed = [{**_entry_fields(entry), **self._state(entry.session_id, waiting)} for entry in entries]
        return {"sessions": [*self._new_sessions(entries), *listed], "error": None}

    def _new_sessions(self, entries: Sequence[SessionEntry]) -> list[Fields]:
        """Return the sessions of running agents that have no record yet."""
        known = {entry.session_id for entry in entries}
        found = [link for link in self._hub.agents.links if link.session_id and link.session_id not in known]
        empty = {"title": "", "created_at": 0.0, "updated_at": 0.0, "records": 0}
        return [{"id": link.session_id, **empty, **self._state(link.session_id, set())} for link in found]

    def _state(self, session_id: str, waiting: set[str]) -> Fields:
        link = self._hub.agents.find(session_id)
        if link is not None:
            return {"state": link.state, "where": link.where, "questions": len(link.questions)}
        paused = session_id in waiting
        return {"state": "paused" if paused else "ended", "where": "", "questions": int(paused)}

    async def find_entry(self, session_id: str) -> SessionEntry:
        """Return a session of the list.

        Raises:
            SessionError: There is no such session.
        """
        found = await self.store.find(session_id)
        if found is None:
            raise no_such_session(session_id)
        return found

    async def show(self, request: Request) -> Fields:
        session_id = take_text(request, "id")
        self._touch(session_id)
        shown = await self._show(session_id)
        items: list[Fields] = []
        if "from" in request.query_params:  # a page that opens needs both, in one round trip
            page = shown["messages"] = await self.messages(request)
            items = page["items"]
        # both at one moment, with nothing awaited afterwards: a later event is not in it, an earlier one is
        link, shown["number"] = self._hub.agents.find(session_id), self._hub.number
        partial = None if link is None else link.partial
        shown["partial"] = None if any(holds(item, partial) for item in items) else partial  # stored meanwhile
        return shown

    async def _show(self, session_id: str) -> Fields:
        link = self._hub.agents.find(session_id)
        if link is not None and not await self._has_records(session_id):
            entry, records, faults = SessionEntry(session_id, "", 0.0, 0.0, 0), (), dict[int, str]()
        else:
            entry = await self.find_entry(session_id)
            tail = await self._read_tail(entry)
            if tail is not None:
                return await self._show_tail(entry, link, tail)
            records, faults = await self.records.read(self.store, session_id)
        questions = await self._open_questions(session_id, link, records)
        summary = self._summaries.get(session_id)
        if summary is None or summary[0] != len(records):
            summary = (len(records), _summarize(records, await self._workspace.prices()))
            self._keep_summary(session_id, summary)
        faulty = [{"position": position, "fault": fault} for position, fault in faults.items()]
        return {**self._fields(entry, link, records, questions), **summary[1], "damaged": faulty}

    def _keep_summary(self, session_id: str, summary: tuple[int, Fields]) -> None:
        self._summaries[session_id] = summary
        if len(self._summaries) > _MOST_SUMMARIES:
            del self._summaries[next(iter(self._summaries))]

    async def _read_tail(self, entry: SessionEntry) -> Sequence[StoredRecord] | None:
        """Return the last records of a long session while all of them are read; None if a summary takes no time."""
        if entry.records <= _LONG or self.records.holds(entry.session_id):
            return None
        try:
            tail = await self.store.read_from(entry.session_id, entry.records - _TAIL)
        except SessionDamaged:
            return None
        if any(isinstance(each.record, Rewound) for each in tail):  # what counts now may be far above
            return None
        if entry.session_id not in self._reading:
            task = self._reading[entry.session_id] = asyncio.create_task(self._read_all(entry.session_id))
            task.add_done_callback(lambda _: self._reading.pop(entry.session_id, None))
        return tail

    async def _read_all(self, session_id: str) -> None:
        await asyncio.sleep(_REST_SECONDS)  # the page draws first
        with suppress(SessionError):
            await self.records.read(self.store, session_id)
            self._hub.publish({"type": "summary", "session": session_id})

    async def _show_tail(self, entry: SessionEntry, link: AgentLink | None, tail: Sequence[StoredRecord]) -> Fields:
        records = [each.record for each in tail]
        questions = await self._open_questions(entry.session_id, link, records)
        undo = _undo_points((each.position, each.record) for each in tail)
        unknown = {"usage": None, "cost": None, "todos": _todos(records), "undo": undo, "damaged": []}
        return {**self._fields(entry, link, records, questions), **unknown}

    def _fields(
        self, entry: SessionEntry, link: AgentLink | None, records: Sequence[Record], questions: list[Fields]
    ) -> Fields:
        """Return what is known about a session without counting anything."""
        session_id = entry.session_id
        return {
            **_entry_fields(entry),
            **self._state(session_id, {session_id} if questions else set()),
            "pid": None if link is None else link.pid,
            "model": _last_model(records) or ("" if link is None else link.model),
            "mode": "" if link is None else link.mode,
            "questions": questions,
            "running": [] if link is None else list(link.running.values()),
            "waits": {} if link is None else link.waits,
            "end": {} if link is None else link.end,
        }

    async def _has_records(self, session_id: str) -> bool:
        store = self._hub.store
        try:
            return store is not None and await store.find(session_id) is not None
        except SessionError:  # a store that fails hides neither a live session nor its questions
            return False

    async def _open_questions(self, session_id: str, link: AgentLink | None, records: Sequence[Record]) -> list[Fields]:
        """Return the questions of the running agent; those on record if no process runs the session."""
        if link is not None and (link.state != "idle" or link.pid != os.getpid()):
            return list(link.questions.values())
        toolset = await self._workspace.toolset()
        open_questions = [each for each in OpenQuestions(records) if each.id not in self.answered]
        return [question_fields(each, session_id, toolset) for each in open_questions]

    async def messages(self, request: Request) -> Fields:
        session_id = take_text(request, "id")
        self._touch(session_id)
        limit = take_int(request, "limit", 100, least=1, most=_MOST_ITEMS)
        if self._hub.agents.find(session_id) is not None and not await self._has_records(session_id):
            return {"records": 0, "from": 0, "items": []}
        entry = await self.find_entry(session_id)
        start = take_int(request, "from", -limit)
        start = max(entry.records + start, 0) if start < 0 else start
        faults: dict[int, str] = {}
        try:
            stored = await self.store.read_from(session_id, start, limit=limit)
        except SessionDamaged as error:
            stored, faults = error.readable, error.faults
        view = await self.view(session_id)
        items = [view.fields(each) for each in stored]
        items += [{"position": at, "at": 0.0, "kind": "damaged", "fault": why} for at, why in faults.items()]
        items.sort(key=lambda item: item["position"])
        rewound = await self.find_rewound(session_id)
        for item in items:
            if item["position"] in rewound:
                item["rewound"] = True
        return {"records": entry.records, "from": start, "items": items}

    async def find_rewound(self, session_id: str) -> set[int]:
        """Return the positions of records that were undone."""
        if not await self.store.search("rewound", limit=1, session=session_id):  # much cheaper than reading all
            return set()
        records, faults = await self.records.read(self.store, session_id)
        if faults or not any(isinstance(record, Rewound) for record in records):
            return set()
        return set(range(len(records))) - set(follow_rewinds(records))

    async def view(self, session_id: str) -> RecordView:
        """Return what describes the records of a session."""
        toolset = await self._workspace.toolset()

        def describe(question: Question, at: float) -> Fields:
            # without a preview: the file has changed since, and the call itself shows what it would write
            return question_fields(question, session_id, toolset, at, preview=False)

        def image_url(position: int, place: int) -> str:
            return f"/api/image?id={quote(session_id, safe='')}&position={position}&place={place}"

        return RecordView(session_id, await self._workspace.prices(), describe, image_url)

    async def find(self, request: Request) -> Fields:
        session_id, text = take_text(request, "id"), take_text(request, "q")
        hits = await self.store.search(text, limit=_MOST_HITS + 1, session=session_id)
        shown = [{"position": hit.position, "excerpt": hit.excerpt} for hit in hits[:_MOST_HITS]]
        shown.sort(key=lambda hit: int(str(hit["position"])))
        return {"hits": shown, "more": len(hits) > _MOST_HITS}

    async def output(self, request: Request) -> Fields:
        text = await self.store.read_output(take_text(request, "id"), take_text(request, "output"))
        if text is None:
            raise ApiError(404, "not_found", "this output was not kept")
        return {"text": text}

    async def image(self, request: Request) -> Response:
        position = take_int(request, "position", 0, least=0)
        place = take_int(request, "place", 0, least=0)
        (stored, *_) = await self.store.read_from(take_text(request, "id"), position, limit=1) or (None,)
        image = None if stored is None or stored.position != position else find_image(stored.record, place)
        if image is None or image.media_type not in WEB_IMAGES:
            raise ApiError(404, "not_found", "there is no such image")
        return Response(image.data, media_type=image.media_type, headers={"content-disposition": "inline"})


def _entry_fields(entry: SessionEntry) -> Fields:
    fields = ("title", "created_at", "updated_at", "records")
    return {"id": entry.session_id, **{name: getattr(entry, name) for name in fields}}


def _summarize(records: Sequence[Record], prices_of: Callable[[str], Prices | None]) -> Fields:
    cost = cost_of_records(records, prices_of)
    counting = [records[at] for at in follow_rewinds(records)]
    return {
        "usage": usage_fields(sum_usage(records)),
        "cost": {"usd": cost.usd, "unpriced_tokens": cost.unpriced_tokens},
        "todos": _todos(counting),
        "undo": _undo_points(enumerate(records)),
    }


def _undo_points(placed: Iterable[tuple[int, Record]]) -> list[Fields]:
    points = ((at, record) for at, record in placed if isinstance(record, UndoPoint))
    return [{"position": at, "id": point.point_id, "label": point.label} for at, point in points]


def holds(item: Fields, partial: Fields | None) -> bool:
    """Tell whether a stored message is the one that was streamed."""
    if partial is None or item.get("kind") != "assistant":
        return False
    calls = {call["id"] for call in partial["calls"]}
    parts: list[Fields] = item["parts"]
    return any(part["id"] in calls if part["type"] == "call" else part.get("text") == partial["text"] for part in parts)


def _last_model(records: Sequence[Record]) -> str:
    for record in reversed(records):
        model = getattr(record.message, "model", "") if isinstance(record, Said) else ""
        if model:
            return model
    return ""


def _todos(records: Sequence[Record]) -> list[Fields]:
    for record in reversed(records):
        if isinstance(record, Said) and isinstance(record.message, ToolMessage):
            for outcome in reversed(record.message.outcomes):
                if isinstance(outcome, Completed) and canonical(outcome.call.name) == "todo":
                    found = read_todos(outcome.output.structured)
                    return [{"text": each.content, "status": each.status} for each in found or ()]
    return []
