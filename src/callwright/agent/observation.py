"""Reports runs and model requests to observers; imported only by runs that are observed."""

import asyncio
from collections.abc import Callable, Coroutine
from time import perf_counter
from typing import Any

from callwright.agent.model_request import Requests, ask_model
from callwright.agent.results import Done, Paused, Result
from callwright.agent.run_request import RunRequest
from callwright.agent.transcript import Transcript
from callwright.core._fast import make_constructor
from callwright.core.events import Event
from callwright.core.messages import AssistantMessage
from callwright.core.run_events import RequestBegan, RequestEnded, RequestRetried, RunBegan, RunEnd, RunEnded
from callwright.providers.base import ModelRequest, Provider, ProviderError, vendor_of
from callwright.providers.pricing import find_prices, prices_for

Observe = Callable[[Event], None]
_request_began = make_constructor(RequestBegan)
_request_ended = make_constructor(RequestEnded)


async def run_observed(
    observe: Observe,
    request: RunRequest,
    name: str,
    provider: Provider,
    transcript: Transcript,
    run: Coroutine[Any, Any, Result],
) -> Result:
    """Run, and report the beginning and the end to the observer, also when the run raises or is cancelled."""
    spending, vendor = transcript.spending, vendor_of(provider)
    began = RunBegan(request.session_id, name or request.name, provider.model, vendor, request.prompt)
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
        cost = spending.known_cost
        if cost is None and (prices := prices_for(began.model)) is not None:
            cost = spending.estimate_cost(prices)
        observe(RunEnded(began, *ended, spending.usage, spending.turns, perf_counter() - started, cost))


async def ask_model_observed(
    observe: Observe, provider: Provider, request: ModelRequest, requests: Requests, transcript: Transcript
) -> AssistantMessage:
    """Call `ask_model`, and report the request, its retries and its end to the observer."""
    shaped = request.output_schema is not None
    began = _request_began(
        transcript.session_id,
        provider.model,
        vendor_of(provider),
        request.messages,
        request.system,
        request.max_tokens,
        shaped,
    )
    watch = _Watch(observe, began)
    observe(began)
    try:
        message = await ask_model(provider, request, requests, transcript, watch)
    except BaseException as error:
        observe(RequestEnded(began, None, error, _describe_failure(error, transcript), watch.elapsed(), watch.first))
        raise
    # prices of the run limits come first: a contract may differ from the list
    limits = transcript.spending.limits
    known = limits.other_prices.get(message.model) or limits.prices
    cost = None
    try:  # a run may be cancelled while the prices are loaded
        prices = known or await find_prices(message.model or provider.model)
        cost = None if prices is None else prices.request_cost(message.usage)
    finally:
        if known is None:
            transcript.spending.note_usual_cost(message.usage, cost)
        observe(_request_ended(began, message, None, "", watch.elapsed(), watch.first, cost))
    return message


class _Watch:
    """Measures a request and the time to the first part of its answer, and reports its repetitions."""

    __slots__ = ("_began", "_observe", "_starts", "first")

    def __init__(self, observe: Observe, began: RequestBegan) -> None:
        self._observe = observe
        self._began = began
        self._starts = perf_counter()
        self.first: float | None = None

    def on_event(self) -> None:
        if self.first is None:
            self.first = self.elapsed()

    def on_retry(self, error: ProviderError, attempt: int, delay_seconds: float) -> None:
        self._observe(RequestRetried(self._began, error, attempt, delay_seconds))

    def elapsed(self) -> float:
        return perf_counter() - self._starts


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
