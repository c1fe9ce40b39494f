"""One request to the model, made again where that may help, until it is a whole message.

Runs and requests that somebody watches: told when they begin, and when they end, whatever happens in between.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from callwright.agent.results import Done, ModelRetried, Paused, Result
from callwright.agent.run_limits import Spending
from callwright.agent.transcript import Transcript, ensure_unique_ids
from callwright.core.errors import Transient
from callwright.core.events import Event
from callwright.core.json import FrozenDict, Json
from callwright.core.messages import AssistantMessage, Usage
from callwright.core.run_events import RequestBegan, RequestEnded, RequestRetried, RunBegan, RunEnd, RunEnded
from callwright.providers.base import MessageDone, ModelEvent, ModelRequest, Provider, ProviderError, vendor_of
from callwright.providers.pricing import Prices, prices_for
from callwright.providers.streaming import TappedProvider
from callwright.retry import Clock, RetryPolicy, WallClock

OnRetry = Callable[[ProviderError, int, float], None]
_LONGEST_WAIT_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Requests:
    """How requests are made: their size, their options, and how often a failed one is made again."""

    max_tokens: int = 8_192
    options: Mapping[str, Json] = field(default_factory=FrozenDict)
    retry: RetryPolicy = RetryPolicy(max_attempts=4, initial_seconds=1.0)
    clock: Clock = field(default_factory=WallClock)


def ask_model(
    provider: Provider, request: ModelRequest, requests: Requests, talk: Transcript, retried: OnRetry | None = None
) -> Awaitable[AssistantMessage]:
    """Return the model's whole message; raise the last `ProviderError`, or `TimeoutError` when the run was stopped.

    Nothing but deltas has come of a request that failed, so making it again repeats no effect.
    """
    asking = _ask_with_retries(provider, request, requests, talk, retried)
    return asking if talk.watch.cancellation is None else _ask_until_cancelled(asking, talk)


async def _ask_until_cancelled(asking: Awaitable[AssistantMessage], talk: Transcript) -> AssistantMessage:
    async with talk.watch.over():
        return await asking


async def _ask_with_retries(
    provider: Provider, request: ModelRequest, requests: Requests, talk: Transcript, retried: OnRetry | None
) -> AssistantMessage:
    attempt = 1
    while True:
        try:
            return ensure_unique_ids(await _ask_once(provider, request, talk))
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


async def _ask_once(provider: Provider, request: ModelRequest, talk: Transcript) -> AssistantMessage:
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


Observe = Callable[[Event], None]


async def run_observed(
    observe: Observe, began: RunBegan, spending: Spending, run: Coroutine[Any, Any, Result]
) -> Result:
    """Bring a run to its result; it is told to be over also where it raises or is cancelled."""
    started = perf_counter()
    ended: tuple[RunEnd, str] = ("failed", "")
    observe(began)
    try:
        result = await run
        ended = _describe_end(result)
        return result
    except BaseException as error:
        ended = ("cancelled" if isinstance(error, asyncio.CancelledError) else "failed", type(error).__name__)
        raise
    finally:
        usage = spending.usage
        prices = spending.budget.prices or prices_for(began.model)
        cost = None if prices is None else spending.cost or prices.cost(usage)
        observe(RunEnded(began, *ended, usage, spending.turns, perf_counter() - started, cost))


async def ask_model_observed(
    observe: Observe, provider: Provider, request: ModelRequest, requests: Requests, talk: Transcript
) -> AssistantMessage:
    """Ask the model as `ask_model` does."""
    shaped = request.output_schema is not None
    began = RequestBegan(
        talk.session_id,
        provider.model,
        vendor_of(provider),
        request.messages,
        request.system,
        request.max_tokens,
        shaped,
    )
    timing = _Timing()

    def retried(error: ProviderError, attempt: int, delay_seconds: float) -> None:
        observe(RequestRetried(began, error, attempt, delay_seconds))

    observe(began)
    try:
        message = await ask_model(TappedProvider(provider, timing), request, requests, talk, retried)
    except BaseException as error:
        observe(RequestEnded(began, None, error, _describe_failure(error, talk), timing.passed(), timing.first))
        raise
    cost = _compute_cost(talk.spending.budget.prices, message.model or provider.model, message.usage)
    observe(RequestEnded(began, message, None, "", timing.passed(), timing.first, cost))
    return message


class _Timing:
    """Notes when a request's first piece came."""

    def __init__(self) -> None:
        self._began = perf_counter()
        self.first: float | None = None

    def __call__(self, event: ModelEvent) -> None:
        if self.first is None:
            self.first = self.passed()

    def passed(self) -> float:
        return perf_counter() - self._began


def _describe_end(result: Result) -> tuple[RunEnd, str]:
    if isinstance(result, Done):
        return "done", ""
    return ("paused", "") if isinstance(result, Paused) else ("stopped", result.kind)


def _describe_failure(error: BaseException, talk: Transcript) -> str:
    if isinstance(error, ProviderError):
        return error.fault
    if isinstance(error, asyncio.CancelledError):
        return "cancelled"
    stopped = talk.watch.stopped() if isinstance(error, TimeoutError) else None
    return type(error).__name__ if stopped is None else stopped[0]


def _compute_cost(given: Prices | None, model: str, usage: Usage) -> float | None:
    """What was agreed counts more than what is known."""
    prices = given or prices_for(model)
    return None if prices is None else prices.request_cost(usage)
