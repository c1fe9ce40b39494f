"""One call by a client: its questions, its progress, its result, and the client as the tool sees it."""

import asyncio
import base64
import secrets
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generic, Literal, TypeVar, cast
from urllib.parse import quote

import anyio
import mcp_types as types
from mcp import MCPError

from callwright.core.calls import Answers, Completed, Failed, Outcome, Question
from callwright.core.content import File, Image, Part, Text
from callwright.core.errors import ToolFailed
from callwright.core.events import CallProgressed, Event
from callwright.core.json import Json, replace_surrogates, thaw
from callwright.serve.clients import LOG_LEVELS, Asker, Caller

Found = TypeVar("Found")

_MAX_SUSPENDED = 1024
_MAX_OF_CLIENT = 64
_WAIT_SECONDS = 900.0


async def cancel_once(work: Coroutine[Any, Any, Found]) -> Found:
    """Await `work`; a cancellation reaches it once, and its end is waited for.

    The SDK cancels by scopes of anyio, which cancel each further `await` too: a tool could not clean up.
    """
    task = asyncio.create_task(work)
    try:
        await asyncio.wait({task})
    except asyncio.CancelledError:
        task.cancel()
        with anyio.CancelScope(shield=True):
            await asyncio.wait({task})  # not for ever: the executor abandons what ignores its cancellation
        _retrieve(task)
        raise
    return task.result()


def _retrieve(task: "asyncio.Future[Any]") -> None:
    """Look at the error of a task that no caller wants, so that asyncio does not report it."""
    if not task.cancelled():
        task.exception()


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """What a call asks its client, and where it waits for the reply."""

    questions: tuple[Question, ...]
    """Approval questions for the user."""
    requests: types.InputRequests
    """Requests of the tool itself to the client."""
    reply: "asyncio.Future[Any]"


class SuspendableCall(Generic[Found]):
    """A call that runs until it is done or asks something, and continues with the reply."""

    def __init__(self, about: object, run: Callable[[Asker], Awaitable[Found]], caller: Caller) -> None:
        self.caller = caller
        """The client, in the request that it waits for now: the one before has been answered with questions."""
        self.about = about
        """The tool and arguments; only a request for the same may resume the call."""
        self.shown: Asked | None = None
        """What the client was told to reply to; the call may ask something else since."""
        self._asked: Asked | None = None
        self._turn: asyncio.Lock | None = None  # made on first use: most calls never ask
        self._ready: asyncio.Future[None] | None = None
        self._cancelled = False
        self._task = asyncio.ensure_future(run(self))
        self._task.add_done_callback(self._signal_ready)

    async def ask_user(self, questions: Sequence[Question]) -> Answers:
        """Wait for the user's answers."""
        return await self._ask(tuple(questions), {})

    async def ask_client(self, requests: types.InputRequests) -> types.InputResponses:
        """Wait for the client's responses; a missing one fails the call."""
        given: Mapping[str, object] = await self._ask((), requests)
        missing = [key for key in requests if key not in given]
        if missing:
            raise ToolFailed(f"the client resumed the call without {', '.join(missing)}")
        return cast("types.InputResponses", {key: given[key] for key in requests})

    async def _ask(self, questions: tuple[Question, ...], requests: types.InputRequests) -> Any:
        self._turn = self._turn or asyncio.Lock()
        async with self._turn:  # tools that call tools may ask two things at once
            asked = self._asked = Asked(questions, requests, asyncio.get_running_loop().create_future())
            self._signal_ready(asked)
            try:
                return await asked.reply
            finally:
                asked.reply.cancel()  # does nothing if there is one; otherwise the tool does not wait any more

    def _signal_ready(self, about: object) -> None:
        if self._ready is not None and not self._ready.done():
            self._ready.set_result(None)

    @property
    def result(self) -> Found:
        """The result of the finished call."""
        return self._task.result()

    async def step(self) -> Asked | None:
        """Wait until the call is done, or return what it asks first."""
        while not self._task.done():
            if self._asked is not None and not self._asked.reply.done():
                return self._asked
            self._ready = asyncio.get_running_loop().create_future()
            await self._ready
        return None

    def reply(self, asked: Asked, answers: Answers | Mapping[str, object]) -> None:
        """Continue with the answers to the questions or the responses to the requests of `asked`.

        Does nothing if the call does not wait for it any more: what it asks now may have the same keys.
        """
        if not asked.reply.done():
            asked.reply.set_result(answers)

    def cancel(self) -> None:
        """Cancel the call, once: a second cancellation would end what a tool does to clean up."""
        if not self._cancelled:  # not by `cancelling`, which counts the time limits of the tools too
            self._cancelled = True
            self._task.cancel()

    async def stop(self) -> None:
        """Cancel the call and wait for its end."""
        self.cancel()
        await asyncio.wait({self._task})
        _retrieve(self._task)


class SuspendedCalls:
    """Calls that wait for the answers of their client, for some time.

    A client with too many loses its own oldest, and no other's.
    """

    def __init__(self) -> None:
        self._calls: dict[str, tuple[str, SuspendableCall[Any], asyncio.TimerHandle]] = {}

    async def keep(self, call: SuspendableCall[Any], owner: str) -> str:
        """Store a call; returns the token to resume it with.

        Args:
            call: The call.
            owner: The id of its client; empty for all clients that have not returned their id.

        Raises:
            MCPError: Too many calls of other clients wait; this one is cancelled.
        """
        own = [key for key, (whose, _, _) in self._calls.items() if whose == owner]
        # all at once, and before anything is awaited: meanwhile others are kept and taken
        ended = [self._pop(key) for key in own[: max(len(own) + 1 - _MAX_OF_CLIENT, 0)]]
        token = secrets.token_urlsafe(24)  # must not be guessable: it resumes the call
        full = len(self._calls) >= _MAX_SUSPENDED
        if full:
            ended.append(call)
        else:
            # by a timer: what its tool holds, such as a place among those that run at once, must not wait for others
            timer = asyncio.get_running_loop().call_later(_WAIT_SECONDS, self._expire, token)
            self._calls[token] = (owner, call, timer)
        try:
            await _stop_all(ended)
        except asyncio.CancelledError:  # the client has gone, and no other knows the token
            if token in self._calls:
                self._pop(token)
            raise
        if full:
            raise MCPError(types.INTERNAL_ERROR, f"{_MAX_SUSPENDED} calls wait for answers, the limit; try again later")
        return token

    def take(self, token: str, about: object) -> SuspendableCall[Any] | None:
        """Return the call stored under this token, once, and only for the same request."""
        kept = self._calls.get(token)
        return None if kept is None or kept[1].about != about else self._pop(token)

    def _pop(self, token: str) -> SuspendableCall[Any]:
        _, call, timer = self._calls.pop(token)
        timer.cancel()
        return call

    def _expire(self, token: str) -> None:
        self._pop(token).cancel()

    async def stop(self) -> None:
        """Cancel all of them."""
        await _stop_all([self._pop(token) for token in list(self._calls)])


async def _stop_all(calls: Sequence[SuspendableCall[Any]]) -> None:
    for call in calls:  # all of them first: waiting for one may be cancelled
        call.cancel()
    for call in calls:
        await call.stop()


_MAX_QUEUED = 256


class ProgressPump:
    """Sends the progress of a call to its client: events arrive synchronously, sending must be awaited."""

    def __init__(self, asker: Asker) -> None:
        self._asker = asker
        # bounded: a client that reads slowly loses the oldest reports
        self._queue: deque[tuple[float, float | None, str | None]] = deque(maxlen=_MAX_QUEUED)
        self._count = 0
        self._sending: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "ProgressPump":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._sending is not None:
            if raised is not None:  # the call was cancelled: its client has gone, and may never take another report
                self._sending.cancel()
            await asyncio.gather(self._sending, return_exceptions=True)  # all progress comes before the result

    def __call__(self, event: Event) -> None:
        """Observe one event of the turn."""
        if not isinstance(event, CallProgressed):
            return
        self._count += 1
        self._queue.append(self._read(event.progress))
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._send())

    def _read(self, progress: object) -> tuple[float, float | None, str | None]:
        """Return numeric progress unchanged; anything else becomes a numbered message."""
        if isinstance(progress, Mapping):
            fields = cast("Mapping[str, Any]", progress)
            done, total, message = fields.get("progress"), fields.get("total"), fields.get("message")
            if isinstance(done, (int, float)):
                return (
                    done,
                    total if isinstance(total, (int, float)) else None,
                    None if message is None else replace_surrogates(str(message)),
                )
        return self._count, None, replace_surrogates(str(cast("object", progress)))

    async def _send(self) -> None:
        while self._queue:
            progress = self._queue.popleft()
            if self._asker.caller.wants_progress:
                await self._asker.caller.progress(*progress)


def payload_of(outcome: Outcome, *, modern: bool) -> dict[str, Any]:
    """Convert an outcome to an MCP result; since 2026-07-28 (`modern`) structured content need not be an object."""
    payload: dict[str, Any] = {"resultType": "complete"} if modern else {}
    if isinstance(outcome, Completed):
        payload["content"] = [_block(part) for part in outcome.output.parts]
        structured: Any = thaw(outcome.output.structured)
        if isinstance(structured, dict) or (modern and structured is not None):
            payload["structuredContent"] = structured
        return payload
    text = outcome.error.message if isinstance(outcome, Failed) else "the call needs an approval, and no user was asked"
    return payload | {"content": [{"type": "text", "text": replace_surrogates(text)}], "isError": True}


def _block(part: Part) -> dict[str, Any]:
    match part:
        case Text(text=text):
            return {"type": "text", "text": replace_surrogates(text)}
        case Image(data=data, media_type=kind):
            return {"type": "image", "data": _base64(data), "mimeType": kind}
        case File(data=data, media_type=kind) if kind.startswith("audio/"):
            return {"type": "audio", "data": _base64(data), "mimeType": kind}
        case File():
            return {"type": "resource", "resource": _resource(part)}


def _resource(file: File) -> dict[str, Any]:
    name = replace_surrogates(file.name)
    uri = name if "://" in name else f"file:///{quote(name or 'output')}"
    about = {"uri": uri, "mimeType": file.media_type}
    if file.media_type.startswith("text/") or file.media_type == "application/json":
        with suppress(UnicodeDecodeError):  # declared as text but not decodable: sent as bytes
            return {**about, "text": file.data.decode()}
    return {**about, "blob": _base64(file.data)}


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


_CALLING: ContextVar["CallingClient | None"] = ContextVar("calling_client", default=None)


class ClientLacks(ToolFailed):
    """A tool needs a capability that its client does not have."""

    def __init__(self, capabilities: Sequence[str]) -> None:
        super().__init__(
            f"this tool needs a client with {' and '.join(capabilities)}, and this client has not declared it"
        )
        self.capabilities = tuple(capabilities)

    def refusal(self) -> MCPError:
        """Return the error of the protocol of 2026-07-28."""
        needed: dict[str, Any] = {name: {} for name in self.capabilities}
        return MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, self.message, {"requiredCapabilities": needed})


class CallingClient:
    """The client that called a tool. A request it cannot fulfil fails the call.

    Args:
        asker: The client, and what sends requests to its user.
        log_level: The lowest level of log messages that are sent, if the client does not request a higher one.
    """

    def __init__(self, asker: Asker, log_level: types.LoggingLevel = "debug") -> None:
        self._asker = asker
        self._min_level = log_level

    async def log(self, data: Json, level: types.LoggingLevel = "info", logger: str | None = None) -> None:
        """Send `data` as a log message of `logger`, unless the client requested a higher level than `level`."""
        log_level = self._asker.caller.log_level
        if log_level is not None and LOG_LEVELS.index(level) >= max(
            map(LOG_LEVELS.index, (log_level, self._min_level))
        ):
            await self._asker.caller.log(level, replace_surrogates(data) if isinstance(data, str) else data, logger)

    async def request(self, requests: types.InputRequests) -> types.InputResponses:
        """Send several requests at once; the responses have the same keys.

        Raises:
            ClientLacks: The client has not declared a capability for one of them.
        """
        lacking = sorted({kind for kind in map(_kind, requests.values()) if not self.offers(kind)})
        if lacking:
            raise ClientLacks(lacking)
        return await self._asker.ask_client(requests)

    async def sample(self, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
        """Have the client's model generate one message."""
        answer = (await self.request({"sample": types.CreateMessageRequest(params=params)}))["sample"]
        if not isinstance(answer, types.CreateMessageResult):
            raise ToolFailed("the client declined the sampling request")
        return answer

    async def roots(self) -> Sequence[types.Root]:
        """Return the folders the client works in."""
        answer = (await self.request({"roots": types.ListRootsRequest()}))["roots"]
        if not isinstance(answer, types.ListRootsResult):
            raise ToolFailed("the client declined the request for its roots")
        return answer.roots

    def offers(self, kind: Literal["elicitation", "sampling", "roots"]) -> bool:
        """Whether the client declares this capability."""
        can = self._asker.caller.capabilities
        return can is not None and getattr(can, kind) is not None


def _kind(request: types.InputRequest) -> Literal["elicitation", "sampling", "roots"]:
    """Return the capability a client needs for a request."""
    match request:
        case types.ElicitRequest():
            return "elicitation"
        case types.CreateMessageRequest():
            return "sampling"
        case types.ListRootsRequest():
            return "roots"


def calling_client() -> CallingClient | None:
    """Return the client that called the running tool; None where no MCP client did."""
    return _CALLING.get()


def set_calling_client(client: CallingClient) -> None:
    """Set the client for the tools that run in this context."""
    _CALLING.set(client)
