"""Costs of sessions: the tokens of each message at the prices of its model."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

from callwright.app.locations import Locations
from callwright.app.settings import Settings
from callwright.app.trust import load_trusted_settings
from callwright.core.errors import UsageError
from callwright.core.messages import AssistantMessage, Usage
from callwright.providers.pricing import Prices, prices_for
from callwright.sessions.base import SessionEntry
from callwright.sessions.records import Compacted, Record, Said, Spent


@dataclass(frozen=True, slots=True)
class Cost:
    """An amount in USD, and the tokens whose price is unknown."""

    usd: float = 0.0
    unpriced_tokens: int = 0
    """Tokens of models without a known price; not part of `usd`."""

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(self.usd + other.usd, self.unpriced_tokens + other.unpriced_tokens)

    def __str__(self) -> str:
        known, unknown = f"{self.usd:.4f} USD", f"{self.unpriced_tokens} tokens of unknown price"
        if not self.unpriced_tokens:
            return known
        return f"{known} and {unknown}" if self.usd else unknown


def prices_in(settings: Settings, model: str) -> Prices | None:
    """Return the prices of a model, from the settings or the built-in table; None if unknown."""
    given: Mapping[str, float] | None = settings.merged("prices").get(model)
    if not given:
        return prices_for(model)
    return Prices(given["input"], given["output"], given.get("cacheRead"), given.get("cacheWrite"))


def unknown_price(model: str) -> UsageError:
    """Return the error for a limit in money that cannot be kept with a model."""
    return UsageError(
        f"a limit in USD needs the price of {model}, which is unknown: add"
        f' "prices": {{"{model}": {{"input": …, "output": …}}}} to the settings, in USD per million tokens'
    )


def price_lookup(locations: Locations) -> Callable[[str], Prices | None]:
    """Return a function that finds the prices of a model by the settings of a project."""
    return partial(prices_in, load_trusted_settings(locations))


class _Placed(Protocol):
    """A record, or what is kept of it."""

    @property
    def position(self) -> int: ...

    @property
    def at(self) -> float: ...


Placed = TypeVar("Placed", bound=_Placed)


class CopiedRecords:
    """Tells what forks have copied, which was spent once. Sessions are given in the order of their creation."""

    def __init__(self) -> None:
        self._seen: set[tuple[int, float]] = set()

    def leave_out(self, entry: SessionEntry, stored: Sequence[Placed]) -> list[Placed]:
        """Return the records of a session without copies: those are older than the session."""
        own = [each for each in stored if each.at >= entry.created_at or (each.position, each.at) not in self._seen]
        self._seen |= {(each.position, each.at) for each in stored}
        return own


def cost_of_records(records: Iterable[Record], prices_of: Callable[[str], Prices | None]) -> Cost:
    """Add up the costs of a session, with those of sub-agents.

    Args:
        records: The records of the session.
        prices_of: Returns the prices of a model by name.
    """
    total, model = Cost(), ""
    for record in records:
        usage = Usage()
        if isinstance(record, Spent) and record.cost is not None:
            total += Cost(record.cost)  # of a sub-agent, at the prices of its model
        elif isinstance(record, (Compacted, Spent)):
            usage = record.usage  # the record does not name its model: it was the last one before
        elif isinstance(record, Said) and isinstance(record.message, AssistantMessage):
            usage, model = record.message.usage, record.message.model or model
        # a message without tokens, as of a scripted model, is not of unknown price
        prices = prices_of(model) if usage.total else None
        total += Cost(unpriced_tokens=usage.total) if prices is None else Cost(prices.request_cost(usage))
    return total
