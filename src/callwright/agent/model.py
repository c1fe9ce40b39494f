"""One request to the model, made again where that may help, until it is a whole message."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from callwright.agent.result import ModelRetried
from callwright.agent.talk import Talk, with_unique_ids
from callwright.core.errors import Transient
from callwright.core.json import FrozenDict, Json
from callwright.core.message import AssistantMessage
from callwright.providers.base import MessageDone, ModelRequest, Provider, ProviderError
from callwright.retry import Clock, RetryPolicy, WallClock

Retried = Callable[[ProviderError, int, float], None]
_LONGEST_WAIT_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Requests:
    """How requests are made: their size, their options, and how often a failed one is made again."""

    max_tokens: int = 8_192
    options: Mapping[str, Json] = field(default_factory=FrozenDict)
    retry: RetryPolicy = RetryPolicy(max_attempts=4, initial_seconds=1.0)
    clock: Clock = field(default_factory=WallClock)


def ask_model(
    provider: Provider, request: ModelRequest, requests: Requests, talk: Talk, retried: Retried | None = None
) -> Awaitable[AssistantMessage]:
    """Return the model's whole message; raise the last `ProviderError`, or `TimeoutError` when the run was stopped.

    Nothing but deltas has come of a request that failed, so making it again repeats no effect.
    """
    asking = _persist(provider, request, requests, talk, retried)
    return asking if talk.watch.cancellation is None else _watched(asking, talk)


async def _watched(asking: Awaitable[AssistantMessage], talk: Talk) -> AssistantMessage:
    async with talk.watch.over():
        return await asking


async def _persist(
    provider: Provider, request: ModelRequest, requests: Requests, talk: Talk, retried: Retried | None
) -> AssistantMessage:
    attempt = 1
    while True:
        try:
            return with_unique_ids(await _once(provider, request, talk))
        except ProviderError as error:
            failure = error
        except (ConnectionError, EOFError, TimeoutError) as error:
            failure = ProviderError(f"the connection broke: {type(error).__name__}: {error}", fault="transient")
        delay = requests.retry.delay(Transient(str(failure), retry_after=failure.retry_after), attempt)
        if failure.fault != "transient" or attempt >= requests.retry.max_attempts or delay > _LONGEST_WAIT_SECONDS:
            raise failure
        talk.tell(ModelRetried(failure, attempt, delay))
        if retried is not None:
            retried(failure, attempt, delay)
        await requests.clock.sleep(delay)
        attempt += 1


async def _once(provider: Provider, request: ModelRequest, talk: Talk) -> AssistantMessage:
    emit = talk.emit
    stream = provider.stream(request)
    try:
        async for event in stream:
            if isinstance(event, MessageDone):
                return event.message
            if emit is not None:
                emit(event)
    finally:
        close = getattr(stream, "aclose", None)
        if close is not None:  # left open, it would keep the connection of an abandoned request
            await close()
    raise ProviderError("the stream ended before the message did", fault="transient")
