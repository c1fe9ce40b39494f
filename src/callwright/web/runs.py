"""Runs of workers that wait for a person: listed from the store that `CALLWRIGHT_STORE` names, and answered in it."""

import asyncio
from contextlib import AsyncExitStack

from starlette.requests import Request
from starlette.routing import Route

from callwright.app.waiting_runs import answer_run, find_run_store, list_waiting_runs, open_run_store
from callwright.core.errors import UsageError
from callwright.sessions import SessionError, SessionStore
from callwright.sessions.waiting import QuestionClosed
from callwright.web.api import ApiError, Fields, read_body, route
from callwright.web.session_actions import refuse_if

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
        body = await read_body(
            request, {"session": str, "question": str, "approved": bool}, "scope", "arguments", "reason"
        )
        session_id, question_id = body.pop("session"), body.pop("question")
        try:
            question = await answer_run(await self._find_store(), session_id, question_id, body, place="the page")
        except QuestionClosed as error:
            raise ApiError(409, "answered", str(error)) from None
        approved = body["approved"] is True
        settled = {"question": question_id, "approved": approved, "scope": body.get("scope", "once"), "by": "page"}
        return {"settled": settled, "summary": question.summary}

    async def _find_store(self) -> SessionStore:
        async with self._lock:
            if self._store is None:
                self._store = await self._open.enter_async_context(open_run_store(self.address))
            return self._store
