"""The routes that act on sessions and on waiting runs: answers, prompts, stop, fork, undo.

None of them changes anything with `--read-only`.
"""

import asyncio
import os
import uuid
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, suppress
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from callwright.agent.undo import Rewinding, UndoHistory
from callwright.app.delete_session import delete_session
from callwright.app.live_client import AgentLink
from callwright.app.questions import question_fields, read_reply
from callwright.app.shared_questions import Settled
from callwright.app.waiting_runs import answer_run, find_run_store, list_waiting_runs, open_run_store
from callwright.core.calls import Question
from callwright.core.errors import UsageError
from callwright.sessions import SessionError, SessionStore
from callwright.sessions.base import check_session_id
from callwright.sessions.records import Answered, OpenQuestions, Record, list_asked_ids
from callwright.sessions.waiting import QuestionClosed
from callwright.system.undo.undo_store import UndoStore
from callwright.web.api import ApiError, Fields, json_response, read_body, route
from callwright.web.hosting import Hosts
from callwright.web.hub import Hub
from callwright.web.sessions import SessionRoutes
from callwright.web.workspace import WebWorkspace

_MOST_RUNS = 50


class RunRoutes:
    """The waiting runs of one store; neither a worker nor a server of theirs needs to run.

    Args:
        read_only: Whether answers are refused.
    """

    def __init__(self, *, read_only: bool) -> None:
        self.address = find_run_store()
        self._read_only = read_only
        self._open = AsyncExitStack()
        self._store: SessionStore | None = None
        self._lock = asyncio.Lock()

    def routes(self) -> list[Route]:
        """Return the routes."""
        answer = refuse_if(self._read_only, self.answer)
        return [route("/api/runs", self.list_runs), route("/api/runs/answer", answer, method="POST")]

    async def aclose(self) -> None:
        """Close the store."""
        await self._open.aclose()

    async def list_runs(self, request: Request) -> Fields:
        if not self.address:
            return {"runs": [], "error": None}
        try:
            return {"runs": await list_waiting_runs(await self._find_store(), limit=_MOST_RUNS), "error": None}
        except (SessionError, UsageError) as error:  # said on the page, beside the sessions of the project
            return {"runs": [], "error": str(error)}

    async def answer(self, request: Request) -> Fields:
        session_id, question_id, body = await _read_answer(request)
        try:
            question = await answer_run(await self._find_store(), session_id, question_id, body, place="the page")
        except QuestionClosed as error:
            raise ApiError(409, "answered", str(error)) from None
        return {"settled": _describe_answer(question_id, body), "summary": question.summary}

    async def _find_store(self) -> SessionStore:
        async with self._lock:
            if self._store is None:
                self._store = await self._open.enter_async_context(open_run_store(self.address))
            return self._store


_MOST_ANSWERED = 1_000
Act = Callable[[Request], Awaitable[Any]]


def refuse_if(read_only: bool, handler: Act) -> Act:
    """Return a handler that is refused if the page only watches."""

    async def guarded(request: Request) -> Any:
        if read_only:
            raise ApiError(403, "read_only", "this page only watches: the server runs with --read-only")
        return await handler(request)

    return guarded


class SessionActions:
    """Answers the requests that act on sessions.

    Args:
        hub: The live events and the session file.
        hosts: The sessions that this process runs.
        workspace: The app without a model.
        shown: The routes that show sessions.
        read_only: Whether nothing may be changed.
    """

    def __init__(
        self, hub: Hub, hosts: Hosts, workspace: WebWorkspace, shown: SessionRoutes, *, read_only: bool
    ) -> None:
        self._hub = hub
        self._hosts = hosts
        self._workspace = workspace
        self._shown = shown
        self._read_only = read_only

    def routes(self) -> list[Route]:
        """Return the routes."""
        posts = {
            "answer": self.answer,
            "say": self.say,
            "stop": self.stop,
            "resume": self.resume,
            "fork": self.fork,
            "rename": self.rename,
            "delete": self.delete,
            "undo": self.undo,
            "redo": self.redo,
            "mode": self.mode,
        }
        return [
            route(f"/api/{name}", refuse_if(self._read_only, handler), method="POST") for name, handler in posts.items()
        ]

    async def answer(self, request: Request) -> Any:
        session_id, question_id, body = await _read_answer(request)
        link = self._find_agent(session_id)
        if link is None:
            return await self._answer_paused(session_id, question_id, body)
        result = await link.request(op="answer", question=question_id, reply=body, by="page")
        if not result.get("ok"):
            if result.get("code") == "not_found":
                if question_id in self._shown.answered:
                    raise _late(self._shown.answered[question_id])
                if self._hosts.find(session_id) is not None:  # perhaps asked again under another id
                    return await self._answer_paused(session_id, question_id, body)
            raise _refused(result)
        return {"settled": _describe_answer(question_id, body), "resumed": False}

    async def _answer_paused(self, session_id: str, question_id: str, body: Fields) -> Fields:
        """Answer a question of a session that no process runs, and go on with it here."""
        if question_id in self._shown.answered:
            raise _late(self._shown.answered[question_id])
        app = await self._workspace.app()
        question = _find_open(await self._shown.store.read(session_id), question_id)
        if question is None or question.is_expired():
            raise ApiError(404, "not_found", "there is no such open question, or it has expired")
        reply = read_reply(question, body, app.executor.registry, "page")
        if question.id in self._shown.answered:  # while the record was read, or under an earlier id
            raise _late(self._shown.answered[question.id])
        ids, settled = {question_id, question.id}, Settled(reply, "page")
        self._shown.answered |= dict.fromkeys(ids, settled)
        try:
            hosted = await self._hosts.open(session_id)
        except BaseException:
            self._forget_answer(ids)  # nothing was answered
            raise
        while len(self._shown.answered) > _MOST_ANSWERED:
            del self._shown.answered[next(iter(self._shown.answered))]
        hosted.answer(question.id, reply, lambda: self._ask_again(session_id, question_id, ids))
        for each in ids:
            self._hub.publish({"type": "settled", "session": session_id, "question": each, **settled.fields()})
        return {"settled": {"question": question_id, **settled.fields()}, "resumed": True}

    async def _ask_again(self, session_id: str, question_id: str, ids: set[str]) -> None:
        """Show a question again whose answer counts nowhere: its session could not be resumed."""
        self._forget_answer(ids)
        with suppress(SessionError):
            question = _find_open(await self._shown.store.read(session_id), question_id)
            if question is not None:
                shown = question_fields(question, session_id, await self._workspace.toolset())
                self._hub.publish({"type": "asked", "session": session_id, "questions": [shown]})

    def _forget_answer(self, ids: set[str]) -> None:
        for each in ids:
            self._shown.answered.pop(each, None)

    async def say(self, request: Request) -> Response:
        body = await read_body(request, {"text": str}, "session")
        session_id, text = body.get("session"), body["text"]
        if not text.strip() or not isinstance(session_id, (str, type(None))):
            raise ApiError(400, "invalid", "expected a text, and the id of a session or null")
        link = None if session_id is None else self._find_agent(session_id)
        hosted = None if session_id is None else self._hosts.find(session_id)
        if link is not None and (hosted is None or link.pid != os.getpid()):
            result = await _request(link, op="say", text=text)
            return json_response(request, {"session": session_id, "queued": bool(result.get("queued"))}, 202)
        if session_id is not None and hosted is None:
            await self._shown.find_entry(check_session_id(session_id))
        hosted = hosted or await self._hosts.open(session_id)
        queued = hosted.live.state != "idle"
        hosted.say(text)
        self._hub.agents.scan()
        return json_response(request, {"session": hosted.session_id, "queued": queued}, 202)

    def _find_agent(self, session_id: str) -> AgentLink | None:
        """Return the running agent of a session; one of this process that is being closed is waited for instead."""
        return None if self._hosts.is_ending(session_id) else self._hub.agents.find(session_id)

    async def resume(self, request: Request) -> Response:
        body = await read_body(request, {"session": str})
        if self._find_agent(body["session"]) is not None:
            raise ApiError(409, "busy", "an agent has this session open already")
        await self._shown.find_entry(body["session"])
        hosted = await self._hosts.open(body["session"])
        hosted.go_on()
        return json_response(request, {"session": hosted.session_id}, 202)

    async def stop(self, request: Request) -> Response:
        body = await read_body(request, {"session": str})
        await _request(self._link(body["session"]), op="stop")
        return json_response(request, {}, 202)

    async def mode(self, request: Request) -> Fields:
        body = await read_body(request, {"session": str, "mode": str})
        result = await _request(self._link(body["session"]), op="mode", mode=body["mode"])
        return {"mode": result["mode"]}

    def _link(self, session_id: str) -> AgentLink:
        link = self._hub.agents.find(session_id)
        if link is None:
            raise ApiError(409, "gone", "no running agent has this session open")
        return link

    async def fork(self, request: Request) -> Fields:
        body = await read_body(request, {"session": str})
        new = str(uuid.uuid4())
        await self._shown.store.fork(body["session"], new)
        return {"session": new}

    async def rename(self, request: Request) -> Fields:
        body = await read_body(request, {"session": str, "title": str})
        await self._shown.store.rename(body["session"], body["title"][:200])
        return {}

    async def delete(self, request: Request) -> Fields:
        body = await read_body(request, {"session": str})
        await self._hosts.close_session(body["session"])
        await delete_session(self._shown.store, body["session"], self._workspace.locations)
        self._shown.records.forget(body["session"])
        return {}

    async def undo(self, request: Request) -> Fields:
        body = await read_body(request, {"session": str}, "position", "dry_run", "overwrite")
        history, dry_run = self._history(body["session"]), body.get("dry_run") is not False
        position = body.get("position")
        points = await history.points()
        chosen = next((point.point_id for point in points if point.position == position), "")
        if position is not None and not chosen:
            raise ApiError(404, "not_found", "there is no point to return to at this position")
        result = await history.rewind(chosen, overwrite=body.get("overwrite") is True, dry_run=dry_run)
        return _rewind_fields(result, done=not dry_run)

    async def redo(self, request: Request) -> Fields:
        body = await read_body(request, {"session": str}, "dry_run", "overwrite")
        dry_run = body.get("dry_run") is not False
        result = await self._history(body["session"]).redo(overwrite=body.get("overwrite") is True, dry_run=dry_run)
        return _rewind_fields(result, done=not dry_run)

    def _history(self, session_id: str) -> UndoHistory:
        return UndoHistory(self._shown.store, session_id, UndoStore(self._workspace.locations.undo))


def _find_open(records: Sequence[Record], question_id: str) -> Question | None:
    """Return an open question by its id, or by an earlier one under which it was asked and has no answer."""
    known = list_asked_ids(records)  # of this turn only: a later one may ask the same about a call of the same id
    known -= {each for record in records if isinstance(record, Answered) for each in record.replies}
    if question_id not in known:
        return None
    asked = OpenQuestions(records)
    return next((each for each in asked if each.id == question_id or each.matches(question_id)), None)


async def _read_answer(request: Request) -> tuple[str, str, Fields]:
    """Return the session, the question and the reply that a page sends."""
    fields = {"session": str, "question": str, "approved": bool}
    body = await read_body(request, fields, "scope", "arguments", "reason")
    return body.pop("session"), body.pop("question"), body


def _describe_answer(question_id: str, body: Fields) -> Fields:
    edited = body.get("arguments") is not None
    reply = {"approved": body["approved"] is True, "scope": body.get("scope", "once"), "edited": edited}
    return {"question": question_id, **reply, "by": "page"}


def _late(settled: Settled) -> ApiError:
    return ApiError(409, "answered", settled.describe(), **settled.fields())


async def _request(link: AgentLink, **fields: str) -> Fields:
    """Send a request to a running agent; a refusal is an error."""
    result = await link.request(**fields)
    if not result.get("ok"):
        raise _refused(result)
    return result


def _refused(result: Fields) -> ApiError:
    """Return the error of a request that a running agent refused."""
    code = str(result.get("code", "invalid"))
    status = {"answered": 409, "gone": 409, "busy": 409, "not_found": 404, "internal": 500}.get(code, 400)
    more = {name: result[name] for name in ("approved", "scope", "reason", "edited", "by") if name in result}
    return ApiError(status, code, str(result.get("error", "refused")), **more)


def _rewind_fields(result: Rewinding, *, done: bool) -> Fields:
    changes = [{"path": path, "action": "restore"} for path in result.restored]
    changes += [{"path": path, "action": "delete"} for path in result.removed]
    return {
        "changes": changes,
        "conversation": result.conversation,
        "label": result.label,
        "conflicts": list(result.conflicts),
        "problems": list(result.notes),
        "done": done,
    }
