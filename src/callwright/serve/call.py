"""One call on its way through the executor, which may stop to ask. It waits between two requests of a client.

Progress of a call, passed on to the client that made it, in order and before the result.
"""

import asyncio
import secrets
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Generic, TypeVar, cast

import mcp_types as types

from callwright.core.calls import Answers, Question
from callwright.core.errors import ToolFailed
from callwright.core.events import CallProgressed, Event
from callwright.serve.clients import Asking, Caller

Found = TypeVar("Found")

_MOST_WAITING = 256
_WAIT_SECONDS = 900.0


class Conversation(Generic[Found]):
    """A call that runs until it is done or has a question; with the answers it goes on."""

    def __init__(self, about: object, run: Callable[[Asking], Awaitable[Found]]) -> None:
        self.about = about
        """What was called, with what: an answer for another call is no answer."""
        self.questions: tuple[Question, ...] = ()
        self.requests: types.InputRequests = {}
        """What a tool itself wants of the client."""
        self._turn: asyncio.Lock | None = None
        self._reply: asyncio.Future[Any] | None = None
        self._news: asyncio.Future[None] | None = None
        self._task = asyncio.ensure_future(run(self))
        self._task.add_done_callback(self._tell)

    async def people(self, questions: Sequence[Question]) -> Answers:
        """Wait for what people say."""
        return await self._ask(tuple(questions), {})

    async def client(self, requests: types.InputRequests) -> types.InputResponses:
        """Wait for what the client gives; what it leaves out is no answer."""
        given: Mapping[str, object] = await self._ask((), requests)
        missing = [key for key in requests if key not in given]
        if missing:
            raise ToolFailed(f"the client came back without {', '.join(missing)}")
        return cast("types.InputResponses", {key: given[key] for key in requests})

    async def _ask(self, questions: tuple[Question, ...], requests: types.InputRequests) -> Any:
        self._turn = self._turn or asyncio.Lock()
        async with self._turn:  # tools that call tools may ask two things at once
            self._reply = asyncio.get_running_loop().create_future()
            self.questions, self.requests = questions, requests
            self._tell(self._reply)
            return await self._reply

    def _tell(self, about: object) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    @property
    def result(self) -> Found:
        """What came of it, once it is done."""
        return self._task.result()

    async def step(self) -> bool:
        """Wait until it is done; False: there are questions to be answered first."""
        if not self._task.done() and not self.questions and not self.requests:
            self._news = asyncio.get_running_loop().create_future()
            try:
                await self._news
            except asyncio.CancelledError:
                await self.stop()
                raise
        return self._task.done()

    def answer(self, answers: Answers | Mapping[str, object]) -> None:
        """Let it go on, with answers to its questions or with what the client gave for its requests."""
        self.questions, self.requests = (), {}
        if self._reply is not None and not self._reply.done():
            self._reply.set_result(answers)

    async def stop(self) -> None:
        """End the call; it learns of it as of any cancellation."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


class Waiting:
    """Conversations whose client has been asked something and may come back. The longest ago is given up first."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[float, Conversation[Any]]] = {}

    async def keep(self, conversation: Conversation[Any]) -> str:
        """Put one aside; returns the word to take it up again with."""
        now = time.monotonic()
        stale = [key for key, (stamp, _) in self._kept.items() if now - stamp > _WAIT_SECONDS]
        if len(self._kept) - len(stale) >= _MOST_WAITING:
            stale.append(next(key for key in self._kept if key not in stale))
        for key in stale:
            await self._kept.pop(key)[1].stop()
        token = secrets.token_urlsafe(24)
        self._kept[token] = (now, conversation)
        return token

    def take(self, token: str, about: object) -> Conversation[Any] | None:
        """The conversation put aside under this word, once, and only for the same call."""
        kept = self._kept.get(token)
        if kept is None or kept[1].about != about:
            return None
        del self._kept[token]
        return kept[1]

    async def stop(self) -> None:
        """Give all of them up."""
        kept = [conversation for _, conversation in self._kept.values()]
        self._kept.clear()
        for conversation in kept:
            await conversation.stop()


_MOST_QUEUED = 256


class ProgressPump:
    """Takes a turn's events, which come without waiting, and sends what is progress, which has to wait."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._queue: deque[tuple[float, float | None, str | None]] = deque(maxlen=_MOST_QUEUED)
        self._count = 0
        self._sending: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "ProgressPump":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._sending is not None:
            await asyncio.gather(self._sending, return_exceptions=True)

    def __call__(self, event: Event) -> None:
        """Observe one event of the turn."""
        if not isinstance(event, CallProgressed):
            return
        self._count += 1
        self._queue.append(self._read(event.progress))
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._send())

    def _read(self, progress: object) -> tuple[float, float | None, str | None]:
        """Numbers as they are; anything else is a message, numbered."""
        if isinstance(progress, Mapping):
            said = cast("Mapping[str, Any]", progress)
            done, total, message = said.get("progress"), said.get("total"), said.get("message")
            if isinstance(done, (int, float)):
                return (
                    done,
                    total if isinstance(total, (int, float)) else None,
                    None if message is None else str(message),
                )
        return self._count, None, str(cast("object", progress))

    async def _send(self) -> None:
        while self._queue:
            await self._caller.progress(*self._queue.popleft())
