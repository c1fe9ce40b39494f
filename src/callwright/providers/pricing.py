"""Model prices in US dollars, from the offline data of `genai-prices`: a guide for budgets, not a bill."""

import asyncio
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from callwright.core._fast import frozen
from callwright.core.messages import Usage

if TYPE_CHECKING:
    from genai_prices.types import ModelPrice

_MILLION = 1_000_000
_VENDORS = (
    ("anthropic", re.compile(r"claude-")),
    ("openai", re.compile(r"(?:chat)?gpt-|o\d")),
    ("google", re.compile(r"gemini-")),
)
"""Vendors by the names of their models. A local model has no price, even if a vendor sells one of the same name."""
_OTHER_MEDIA = re.compile(r"-(?:audio|embedding|image|live|realtime|transcribe|tts)")
"""Models that charge for audio and images by other units than `Usage` counts."""
_loaded: set[str] = set()
"""Vendors whose price list was read."""
_KINDS = ("input_mtok", "output_mtok", "cache_read_mtok", "cache_write_mtok")


@frozen
class Prices:
    """Prices of a million tokens; those that `prices_for` finds are in US dollars."""

    input: float
    output: float
    cache_read: float | None = None
    """None charges the price of other input; `cache_write` likewise."""
    cache_write: float | None = None
    above_tokens: int = 0
    """A request with more input than this is charged at `long`, from its first token on."""
    long: "Prices | None" = None

    def cost(self, usage: Usage) -> float:
        """Return the price of tokens used in requests of ordinary length."""
        read = self.input if self.cache_read is None else self.cache_read
        write = self.input if self.cache_write is None else self.cache_write
        return (
            usage.input_tokens * self.input
            + usage.output_tokens * self.output
            + usage.cache_read_tokens * read
            + usage.cache_write_tokens * write
        ) / _MILLION

    def request_cost(self, usage: Usage) -> float:
        """Return the price of one request, long or not."""
        sent = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
        return (self if self.long is None or sent <= self.above_tokens else self.long).cost(usage)


def prices_for(model: str) -> Prices | None:
    """Find the prices of a model.

    Args:
        model: The name, with or without its vendor (`anthropic:…`, `models/…`), a date or `-latest`.

    Returns:
        The prices, or None where they are not known or the package `genai-prices` is not installed.
    """
    vendor = _vendor_of(model)
    if vendor is None:  # scripted and local models must not cost the import, which takes 0.3 s
        return None
    known = _price_list(vendor)
    _loaded.add(vendor)
    name = _bare_name(model)
    stem, _, ending = name.partition("-20")
    return known.get(name) or known.get(stem if ending[:2].isdigit() else name.removesuffix("-latest"))


def _bare_name(model: str) -> str:
    return model.rpartition(":")[2].rpartition("/")[2]


@lru_cache(maxsize=256)
def _vendor_of(model: str) -> str | None:
    name = _bare_name(model)
    return next((vendor for vendor, names in _VENDORS if names.match(name)), None)


async def find_prices(model: str) -> Prices | None:
    """Find the prices of a model in a thread if their list must be loaded first, which takes a third of a second."""
    vendor = _vendor_of(model)
    if vendor is None or vendor in _loaded:
        return prices_for(model)
    return await asyncio.to_thread(prices_for, model)


def cost_of(model: str, usage: Usage) -> float | None:
    """Return what a request of this `usage` to a `model` cost in US dollars; None where its prices are not known."""
    prices = prices_for(model)
    return None if prices is None else prices.request_cost(usage)


@cache
def _price_list(vendor: str) -> Mapping[str, Prices]:
    """Read the vendor's prices of today by every name they are listed under.

    Only whole names count: `genai-prices` itself also matches by prefix, which would charge a model that it does not
    know for its predecessor. Cheaper batches, dearer speed and longer cache lifetimes are not included.
    """
    try:
        # the data in the package; `UpdatePrices` would use the network
        from genai_prices.data_snapshot import get_snapshot
    except ImportError:
        return {}
    now = datetime.now(UTC)
    found: dict[str, Prices] = {}
    for model in get_snapshot().find_provider(None, vendor, None).models:
        prices = None if _OTHER_MEDIA.search(model.id) else _read_prices(model.get_prices(now))
        if prices is not None:
            names = (model.id, model.id.removesuffix("-latest"), *_whole_names(model.match))
            found |= {name: prices for name in names if name not in found}
    return found


def _whole_names(match: Any) -> Iterator[str]:
    """Yield the names that a clause of `genai-prices` matches as a whole."""
    if hasattr(match, "equals"):
        yield match.equals
    for clause in getattr(match, "or_", ()):
        yield from _whole_names(clause)


def _read_prices(listed: "ModelPrice") -> Prices | None:
    values: list[Any] = [getattr(listed, kind) for kind in _KINDS]
    if not values[0] or not values[1]:
        return None
    base = [_float(getattr(value, "base", value)) for value in values]
    tiers = [getattr(value, "tiers", None) for value in values]
    if not tiers[0]:
        return _prices(base)
    long = [_float(tier[0].price) if tier else price for tier, price in zip(tiers, base, strict=True)]
    return _prices(base, tiers[0][0].start, _prices(long))


def _float(price: Any) -> float | None:
    return None if price is None else float(price)


def _prices(values: list[float | None], above_tokens: int = 0, long: Prices | None = None) -> Prices:
    fresh, output, read, write = values
    return Prices(fresh or 0.0, output or 0.0, read, write, above_tokens, long)
