"""Several models in one: when a model is overloaded, down or its context is too small, the next one answers."""

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from time import monotonic
from typing import Any, NoReturn

from callwright.core.errors import UsageError
from callwright.providers.base import (
    MessageDone,
    ModelEvent,
    ModelRequest,
    Provider,
    ProviderError,
    close_provider,
    closing_events,
    require_provider,
    vendor_of,
)
from callwright.providers.resolve import provider_for

_FAULTS = frozenset(("transient", "unavailable", "too_large"))
_REST_SECONDS = 60.0


class Fallback:
    """A model, and others that answer in its place while it cannot.

    The next model is asked when one is overloaded, rate limited, out of reach or not large enough for the conversation,
    before anything of its answer has arrived. A model that was overloaded or out of reach is left out for a minute, or
    as long as its server asks. Other failures, such as a wrong key, are raised. Each message names the model that
    answered, and is charged at its price.

    Args:
        first: The preferred model: a provider, or the name of a model.
        others: The models to ask instead, in order.
        report: Receives a notice when another model is asked.

    Raises:
        UsageError: No other model is given, a name is not known, or one is no provider.
    """

    def __init__(
        self, first: Provider | str, *others: Provider | str, report: Callable[[str], None] | None = None
    ) -> None:
        if not others:
            raise UsageError("Fallback needs at least two models")
        self.providers: tuple[Provider, ...] = tuple(
            provider_for(each) if isinstance(each, str) else require_provider(each) for each in (first, *others)
        )
        self.current: Provider = self.providers[0]
        """The model that answered last."""
        self._report = report
        self._rests_until = [0.0] * len(self.providers)

    @property
    def model(self) -> str:
        """The name of the model that answered last."""
        return self.current.model

    @property
    def vendor(self) -> str:
        """The vendor of the model that answered last."""
        return vendor_of(self.current)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Send the request to the first model that can answer it.

        Raises:
            ProviderError: No model can; the first failure counts, but for one out of reach if another may be retried.
        """
        failures: list[tuple[Provider, ProviderError]] = []
        for place in self._order():
            provider, started = self.providers[place], False
            self._report_fallback(failures, provider)
            try:
                async with closing_events(provider.stream(request)) as events:
                    async for event in events:
                        if isinstance(event, MessageDone):
                            self.current = provider
                            # the configured name, under which its price is found
                            event = MessageDone(replace(event.message, model=provider.model or event.message.model))
                        yield event
                        started = True
                return
            except ProviderError as error:
                if started or error.fault not in _FAULTS:
                    raise
                failures.append((provider, error))
                if error.fault != "too_large":
                    self._rests_until[place] = monotonic() + (error.retry_after or _REST_SECONDS)
        raise _summarise(failures)

    def wire_options(self, options: object) -> NoReturn:
        """Refuse options for all models at once: each API has its own names for them."""
        raise UsageError("give the options to each model of a Fallback: Fallback(WithOptions(a, …), WithOptions(b, …))")

    async def aclose(self) -> None:
        """Close the connections of every model."""
        for provider in self.providers:
            await close_provider(provider)

    def __getattr__(self, name: str) -> Any:
        if name in ("providers", "current"):  # not set yet, as while being copied: looking them up would recurse
            raise AttributeError(name)
        return getattr(self.current, name)

    def _order(self) -> list[int]:
        """Return the models in order; those that just failed come last, so that none is left out for good."""
        now = monotonic()
        places = range(len(self.providers))
        rested = [place for place in places if self._rests_until[place] <= now]
        return rested + [place for place in places if place not in rested]

    def _report_fallback(self, failures: list[tuple[Provider, ProviderError]], provider: Provider) -> None:
        if failures and self._report is not None:
            failed, error = failures[-1]
            self._report(f"{failed.model} cannot answer ({error}); asking {provider.model}")


def _summarise(failures: list[tuple[Provider, ProviderError]]) -> ProviderError:
    fault = failures[0][1].fault
    # the run waits for the model that can be asked again first
    waits = [error.retry_after or 0.0 for _, error in failures if error.fault == "transient"]
    if waits and fault == "unavailable":
        fault = "transient"
    told = "; ".join(f"{provider.model}: {error}" for provider, error in failures)
    return ProviderError(f"no model can answer: {told}", fault=fault, retry_after=min(waits, default=0.0) or None)
