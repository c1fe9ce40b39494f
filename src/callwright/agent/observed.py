"""Runs and requests that somebody watches: told when they begin, and when they end, whatever happens in between."""

import asyncio
from collections.abc import Callable, Coroutine
from time import perf_counter
from typing import Any

from callwright.agent.budget import Spending
from callwright.agent.model import Requests, ask_model
from callwright.agent.result import Done, Paused, Result
from callwright.agent.talk import Talk
from callwright.core.event import Event
from callwright.core.message import AssistantMessage, Usage
from callwright.core.run import RequestBegan, RequestEnded, RequestRetried, RunBegan, RunEnd, RunEnded
from callwright.providers.base import ModelEvent, ModelRequest, Provider, ProviderError, vendor_of
from callwright.providers.overhear import Overheard
from callwright.providers.prices import Prices, prices_for

Observe = Callable[[Event], None]


async def observed_run(
    observe: Observe, began: RunBegan, spending: Spending, run: Coroutine[Any, Any, Result]
) -> Result:
    """Bring a run to its result; it is told to be over also where it raises or is cancelled."""
    started = perf_counter()
    ended: tuple[RunEnd, str] = ("failed", "")
    observe(began)
    try:
        result = await run
        ended = _ending(result)
        return result
    except BaseException as error:
        ended = ("cancelled" if isinstance(error, asyncio.CancelledError) else "failed", type(error).__name__)
        raise
    finally:
        usage = spending.usage
        prices = spending.budget.prices or prices_for(began.model)
        cost = None if prices is None else spending.cost or prices.cost(usage)
        observe(RunEnded(began, *ended, usage, spending.turns, perf_counter() - started, cost))


async def observed_request(
    observe: Observe, provider: Provider, request: ModelRequest, requests: Requests, talk: Talk
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
        message = await ask_model(Overheard(provider, timing), request, requests, talk, retried)
    except BaseException as error:
        observe(RequestEnded(began, None, error, _reason(error, talk), timing.passed(), timing.first))
        raise
    cost = _cost(talk.spending.budget.prices, message.model or provider.model, message.usage)
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


def _ending(result: Result) -> tuple[RunEnd, str]:
    if isinstance(result, Done):
        return "done", ""
    return ("paused", "") if isinstance(result, Paused) else ("stopped", result.kind)


def _reason(error: BaseException, talk: Talk) -> str:
    if isinstance(error, ProviderError):
        return error.fault
    if isinstance(error, asyncio.CancelledError):
        return "cancelled"
    stopped = talk.watch.stopped() if isinstance(error, TimeoutError) else None
    return type(error).__name__ if stopped is None else stopped[0]


def _cost(given: Prices | None, model: str, usage: Usage) -> float | None:
    """What was agreed counts more than what is known."""
    prices = given or prices_for(model)
    return None if prices is None else prices.request_cost(usage)
