"""Requests to the model, with retries, and the events that observers receive about requests and runs."""

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
_MAX_DELAY_SECONDS = 300.0
"""A provider that asks for a longer delay is treated as failed: a run should not look hung."""


@dataclass(frozen=True, slots=True)
class Requests:
    """Options of the requests to the model.

    Args:
        max_tokens: the most tokens of one answer.
        options: vendor options, passed through to the provider.
        retry: how often and after which delays a transient failure is retried.
        clock: waits between attempts; replaced in tests.
    """

    max_tokens: int = 8_192
    options: Mapping[str, Json] = field(default_factory=FrozenDict)
    retry: RetryPolicy = RetryPolicy(max_attempts=4, initial_seconds=1.0)
    clock: Clock = field(default_factory=WallClock)


def ask_model(
    provider: Provider,
    request: ModelRequest,
    requests: Requests,
    transcript: Transcript,
    on_retry: OnRetry | None = None,
) -> Awaitable[AssistantMessage]:
    """Return the model's complete message.

    A failed request has produced nothing but deltas, so retrying it repeats no effect.

    Raises:
        ProviderError: the last failure, when retries are exhausted or pointless.
        TimeoutError: the run was stopped.
    """
    asking = _ask_with_retries(provider, request, requests, transcript, on_retry)
    return asking if transcript.watch.cancellation is None else _ask_until_cancelled(asking, transcript)


async def _ask_until_cancelled(asking: Awaitable[AssistantMessage], transcript: Transcript) -> AssistantMessage:
    async with transcript.watch.time_out():
        return await asking


async def _ask_with_retries(
    provider: Provider, request: ModelRequest, requests: Requests, transcript: Transcript, on_retry: OnRetry | None
) -> AssistantMessage:
    attempt = 1
    while True:
        try:
            return ensure_unique_ids(await _ask_once(provider, request, transcript))
        except ProviderError as error:
            failure = error
        except (ConnectionError, EOFError, TimeoutError) as error:
            failure = ProviderError(f"the connection broke: {type(error).__name__}: {error}", fault="transient")
        delay = requests.retry.delay(Transient(str(failure), retry_after=failure.retry_after), attempt)
        if failure.fault != "transient" or attempt >= requests.retry.max_attempts or delay > _MAX_DELAY_SECONDS:
            raise failure
        transcript.emit_event(ModelRetried(failure, attempt, delay))
        if on_retry is not None:
            on_retry(failure, attempt, delay)
        await requests.clock.sleep(delay)
        attempt += 1


async def _ask_once(provider: Provider, request: ModelRequest, transcript: Transcript) -> AssistantMessage:
    emit = transcript.emit
    stream = provider.stream(request)
    try:
        async for event in stream:
            if isinstance(event, MessageDone):
                return event.message
            if emit is not None:
                emit(event)
    finally:
        close = getattr(stream, "aclose", None)
        if close is not None:  # an open generator would keep the connection of an abandoned request
            await close()
    raise ProviderError("the stream ended before the message was complete", fault="transient")


Observe = Callable[[Event], None]


async def run_observed(
    observe: Observe, began: RunBegan, spending: Spending, run: Coroutine[Any, Any, Result]
) -> Result:
    """Run, and report the beginning and the end to the observer, also when the run raises or is cancelled."""
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
        prices = spending.limits.prices or prices_for(began.model)
        cost = None if prices is None else spending.cost or prices.cost(usage)
        observe(RunEnded(began, *ended, usage, spending.turns, perf_counter() - started, cost))


async def ask_model_observed(
    observe: Observe, provider: Provider, request: ModelRequest, requests: Requests, transcript: Transcript
) -> AssistantMessage:
    """Call `ask_model`, and report the request, its retries and its end to the observer."""
    shaped = request.output_schema is not None
    began = RequestBegan(
        transcript.session_id,
        provider.model,
        vendor_of(provider),
        request.messages,
        request.system,
        request.max_tokens,
        shaped,
    )
    timing = _Timing()

    def on_retry(error: ProviderError, attempt: int, delay_seconds: float) -> None:
        observe(RequestRetried(began, error, attempt, delay_seconds))

    observe(began)
    try:
        message = await ask_model(TappedProvider(provider, timing), request, requests, transcript, on_retry)
    except BaseException as error:
        observe(RequestEnded(began, None, error, _describe_failure(error, transcript), timing.elapsed(), timing.first))
        raise
    cost = _compute_cost(transcript.spending.limits.prices, message.model or provider.model, message.usage)
    observe(RequestEnded(began, message, None, "", timing.elapsed(), timing.first, cost))
    return message


class _Timing:
    """Measures a request and the time to its first event."""

    def __init__(self) -> None:
        self._began = perf_counter()
        self.first: float | None = None

    def __call__(self, event: ModelEvent) -> None:
        if self.first is None:
            self.first = self.elapsed()

    def elapsed(self) -> float:
        return perf_counter() - self._began


def _describe_end(result: Result) -> tuple[RunEnd, str]:
    if isinstance(result, Done):
        return "done", ""
    return ("paused", "") if isinstance(result, Paused) else ("stopped", result.kind)


def _describe_failure(error: BaseException, transcript: Transcript) -> str:
    if isinstance(error, ProviderError):
        return error.fault
    if isinstance(error, asyncio.CancelledError):
        return "cancelled"
    stopped = transcript.watch.find_stop_reason() if isinstance(error, TimeoutError) else None
    return type(error).__name__ if stopped is None else stopped[0]


def _compute_cost(agreed: Prices | None, model: str, usage: Usage) -> float | None:
    prices = agreed or prices_for(model)  # prices of the run limits come first: a contract may differ from the list
    return None if prices is None else prices.request_cost(usage)
