"""The slash command `/runs`: lists the runs of workers that wait for an answer, and answers them."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence

from callwright.app.waiting_runs import STORE_VARIABLE, find_run_store, open_run_store, sign_reply
from callwright.core.calls import Answers, Question
from callwright.core.errors import CallwrightError, UsageError
from callwright.core.escaping import visible_line
from callwright.sessions.waiting import WaitingRun, list_waiting, record_answers

_PLACE = "the terminal"
_MOST_RUNS = 50


class RunsCommand:
    """Answers runs from their store: neither a worker nor a server needs to run.

    Args:
        show: Shows lines to the user.
        review: Shows the approval dialogs of questions; returns the answers to those that the user decided.
    """

    def __init__(self, show: Callable[..., None], review: Callable[[Sequence[Question]], Awaitable[Answers]]) -> None:
        self._show = show
        self._review = review
        self._hint: asyncio.Task[None] | None = None
        self._listed: list[str] = []
        """Sessions in the order of the last list, which numbers refer to."""

    async def perform(self, rest: str) -> None:
        """List the waiting runs, or answer the questions of the one that is named by its number or its session."""
        if not find_run_store():
            raise UsageError(
                f"set {STORE_VARIABLE} to the store of your workers: postgresql://user@host/name, or a file"
            )
        async with open_run_store(find_run_store()) as store:
            waiting = {run.session_id: run for run in await list_waiting(store, limit=_MOST_RUNS)}
            if not rest:
                self._list(waiting.values())
                return
            run = waiting.get(self._resolve(rest))
            if run is None:
                raise UsageError(f"no run {visible_line(rest)} waits for an answer; /runs lists those that do")
            answers = await self._review(run.questions)
            if not len(answers):
                self._show("  not answered; the run keeps waiting")
                return
            signed = {question_id: sign_reply(reply, _PLACE) for question_id, reply in answers}
            await record_answers(store, run.session_id, Answers(signed))
        left = len(run.questions) - len(answers)
        more = f"; {left} more to answer before it goes on" if left else "; a worker goes on with it"
        self._show(f"  recorded in {visible_line(run.session_id)}{more}")

    def start_hint(self) -> None:
        """Say in the background that runs wait, if a store is named and any do."""
        if find_run_store():
            self._hint = asyncio.ensure_future(self._show_waiting())

    async def aclose(self) -> None:
        """End what runs in the background."""
        if self._hint is not None:
            self._hint.cancel()
            await asyncio.wait([self._hint])

    async def _show_waiting(self) -> None:
        try:
            async with open_run_store(find_run_store()) as store:
                count = len(await list_waiting(store, limit=_MOST_RUNS))
        except CallwrightError as error:
            self._show(f"! {STORE_VARIABLE}: {error}")
            return
        if count:
            self._show(f"  {count} run{' waits' if count == 1 else 's wait'} for your answer: /runs")

    def _resolve(self, given: str) -> str:
        if given.isascii() and given.isdigit() and 1 <= int(given) <= len(self._listed):
            return self._listed[int(given) - 1]
        return given

    def _list(self, waiting: Iterable[WaitingRun]) -> None:
        self._listed = []
        for number, run in enumerate(waiting, 1):
            self._listed.append(run.session_id)
            self._show(f"  {number}. {visible_line(run.session_id)}  {visible_line(run.title)}")
            for question in run.questions:
                self._show(f"     {visible_line(question.summary)}")
        self._show("  /runs NUMBER answers one" if self._listed else "  no run waits for an answer")
