"""What one run asks for on top of the settings, and what it may take by both."""

from dataclasses import dataclass

from callwright.agent import Budget
from callwright.app.costs import prices_in
from callwright.app.settings import Settings
from callwright.core.errors import UsageError


@dataclass(frozen=True, slots=True)
class Wishes:
    """The options of the command line."""

    mode: str = ""
    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    directories: tuple[str, ...] = ()
    servers: tuple[str, ...] = ()
    """MCP configuration, each a file's name or JSON."""
    turns: int | None = None
    usd: float | None = None
    system: str = ""
    """Instead of our own prompt."""
    more_system: str = ""
    keep: bool = True
    """Sessions are written to disk."""
    log: str = ""
    """Where the structured log goes; `-` for stderr."""


def budget(settings: Settings, wishes: Wishes, model: str) -> Budget:
    """What one run may take, by options first and settings second."""
    limits = settings.merged("limits")
    prices = prices_in(settings, model)
    money = wishes.usd if wishes.usd is not None else limits.get("usd")
    if money is not None and prices is None:
        raise UsageError(
            f"a limit in money needs the price of {model}: add"
            f' "prices": {{"{model}": {{"input": …, "output": …}}}} to the settings, in USD for a million tokens'
        )
    return Budget(
        turns=wishes.turns or limits.get("turns") or Budget().turns,
        tokens=limits.get("tokens"),
        seconds=limits.get("seconds"),
        money=money,
        prices=prices,
    )
