"""What sessions have cost: each message at the prices of the model that gave it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from callwright.app.locations import Locations
from callwright.app.settings import Settings, load_settings
from callwright.app.trust import Trust
from callwright.core.messages import AssistantMessage, Usage
from callwright.providers.pricing import Prices, prices_for
from callwright.sessions.records import Compacted, Record, Said


@dataclass(frozen=True, slots=True)
class Cost:
    """US dollars, as far as prices are known."""

    usd: float = 0.0
    unpriced_tokens: int = 0
    """What models took whose prices are not known; it is not in the sum."""

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(self.usd + other.usd, self.unpriced_tokens + other.unpriced_tokens)

    def __str__(self) -> str:
        known = f"{self.usd:.4f} USD"
        return f"{known} and {self.unpriced_tokens} tokens of unknown price" if self.unpriced_tokens else known


def prices_in(settings: Settings, model: str) -> Prices | None:
    """What a model's tokens cost: as the settings say, else as far as is known."""
    given: Mapping[str, float] | None = settings.merged("prices").get(model)
    if not given:
        return prices_for(model)
    return Prices(given["input"], given["output"], given.get("cacheRead"), given.get("cacheWrite"))


def known_prices(places: Locations) -> Callable[[str], Prices | None]:
    """The prices by model that hold in a project."""
    return partial(prices_in, load_settings(places, trusted=Trust(places).given))


def cost_of_records(records: Iterable[Record], prices_of: Callable[[str], Prices | None]) -> Cost:
    """Add up a session; a summary was made by the model that spoke last before it."""
    total, model = Cost(), ""
    for record in records:
        usage = Usage()
        if isinstance(record, Compacted):
            usage = record.usage
        elif isinstance(record, Said) and isinstance(record.message, AssistantMessage):
            usage, model = record.message.usage, record.message.model or model
        prices = prices_of(model) if usage.total else None
        total += Cost(unpriced_tokens=usage.total) if prices is None else Cost(prices.request_cost(usage))
    return total
