"""Asking the user, and waiting for anything foreign while the turn may be cancelled."""

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from typing import Any

from callwright.core.decisions import Answers, Decline, Question, check_answers
from callwright.core.errors import Unanswered, UsageError, describe_raised, safe_str
from callwright.executor.driver import drive, is_cancelling
from callwright.executor.turn_context import AskPerson
from callwright.hooks.base import await_if_needed
from callwright.tool.base import Cancellation

_log = logging.getLogger("callwright")


async def race(cancellation: Cancellation | None, waiting: Coroutine[Any, Any, Any]) -> Any:
    """Await a coroutine, unless the turn is cancelled meanwhile.

    Raises:
        CancelledError: The turn was cancelled; the current task is not, unless `is_cancelling` says so.
    """
    if cancellation is None:
        return await waiting
    loop, task = asyncio.get_running_loop(), asyncio.ensure_future(waiting)

    def stop() -> None:  # by way of the loop, because a cancellation may come from any thread
        loop.call_soon_threadsafe(task.cancel)

    unsubscribe = cancellation.subscribe(stop)
    try:
        return await task
    finally:
        unsubscribe()
        task.cancel()


async def ask_user(
    ask: AskPerson, questions: Sequence[Question], cancellation: Cancellation | None, grace_seconds: float
) -> Answers:
    """Return the user's answers; if asking fails or the turn is cancelled, every question is declined.

    Raises:
        Unanswered: The user has left, and the questions stay open.
        CancelledError: The current task was cancelled.
    """

    async def wait() -> object:
        return await drive(await_if_needed(ask(questions)), grace_seconds)

    try:
        return check_answers(await race(cancellation, wait()))
    except (Unanswered, KeyboardInterrupt):
        raise
    except BaseException as error:
        if isinstance(error, asyncio.CancelledError) and is_cancelling():
            raise
        if isinstance(error, asyncio.CancelledError) and cancellation is not None and cancellation.requested:
            reason = cancellation.reason or "the run was stopped"
        else:
            # the programmer's mistake explains itself, anything else needs its traceback
            _log.error("asking the user failed: %s", safe_str(error), exc_info=not isinstance(error, UsageError))
            reason = f"asking the user failed ({describe_raised(error)})"
        return Answers({question.id: Decline(reason) for question in questions})
