"""Limits of one run, and the counters that are compared with them."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import monotonic

from callwright.agent.results import StopKind
from callwright.core.calls import Completed, Failed, ToolCall
from callwright.core.errors import UsageError, check_number
from callwright.core.json import FrozenDict
from callwright.core.messages import NO_USAGE, AssistantMessage, Usage
from callwright.providers.pricing import Prices, prices_for


@dataclass(frozen=True, slots=True)
class RunLimits:
    """Limits of one run. Reaching one ends the run with `Stopped`; it is not an error. None means no limit.

    A run lasts from a prompt to its result. Resuming it after a pause or a crash, also in another process, does not
    start the limits again. A new prompt does; and after `Stopped`, resuming starts the limit again that was reached.
    The exception is `seconds`, which `resume` starts again, unless the run is handed over between processes as workers
    do: then it counts from the prompt on, without the time in which questions waited.

    Args:
        turns: Model messages.
        calls: Calls of tools that the model asks for. Those of a message that reaches the limit still run.
        tokens: Input and output tokens of all requests.
        money: Cost of all requests, in the currency of `prices`, which must then be given.
        seconds: Wall-clock time. It also ends a request or a batch of calls that is running.
        same_failures: How often in a row the same call, with the same arguments, may fail.
        same_calls: How often in a row the same call may have the same outcome; high, as polling is legitimate.
        invalid_calls: How often in a row calls of one tool may have invalid arguments, whatever these are.
        prices: Prices per million tokens, for `money` and for the cost in results.
        other_prices: Those of other models that may answer, such as of a `Fallback`, by model name.

    Raises:
        UsageError: `turns` is below 1, another limit is below 0 or not a number, or `money` is given without `prices`.
    """

    turns: int = 50
    tokens: int | None = None
    money: float | None = None
    seconds: float | None = None
    same_failures: int | None = 5
    same_calls: int | None = 50
    invalid_calls: int | None = 8
    prices: Prices | None = None
    other_prices: Mapping[str, Prices] = field(default_factory=FrozenDict)
    calls: int | None = None

    def __post_init__(self) -> None:
        check_number("RunLimits.turns", self.turns, 1, whole=True)
        for name in ("calls", "tokens", "money", "seconds", "same_failures", "same_calls", "invalid_calls"):
            value = getattr(self, name)
            if value is not None:
                check_number(f"RunLimits.{name}", value, 0, whole=name not in ("money", "seconds"))
        if self.money is not None and self.prices is None:
            raise UsageError("RunLimits.money needs RunLimits.prices: Prices(input=…, output=…) per million tokens")


class Spending:
    """What one run has used, compared with its limits."""

    __slots__ = (
        "_around",
        "_bounded",
        "_counts",
        "_earlier",
        "_fields",
        "_invalid",
        "_listed",
        "_model",
        "_new",
        "_outer",
        "_priced",
        "_texts",
        "_unpriced",
        "calls",
        "cost",
        "deadline",
        "limits",
        "repetition",
        "turns",
    )

    def __init__(self, limits: RunLimits, used_seconds: float = 0.0) -> None:
        self.limits = limits
        self.turns = 0
        self.calls = 0
        """Counted only if they are limited."""
        self.cost = 0.0
        """In the currency of the prices; 0 without prices."""
        self._listed = 0.0
        self._unpriced = NO_USAGE
        self._priced = limits.prices is not None or bool(limits.other_prices)
        self._fields = (0, 0, 0, 0)
        self.deadline = None if limits.seconds is None else monotonic() + max(limits.seconds - used_seconds, 0.0)
        self._texts: dict[str, str] = {}
        """The text of the outcome of each call of the last turn."""
        self._counts: dict[str, int] = {}
        """How often in a row each of them had it. Flat: pairs would be work for the garbage collector."""
        self._new: Completed | None = None
        """The only outcome of the last turn, of a call that the turn before did not have.

        It is not in `_texts` yet, which is empty then, as is `_invalid`: most calls are never repeated.
        """
        self._invalid: dict[str, int] = {}
        """In how many turns in a row the calls of a tool had invalid arguments, by tool name."""
        self.repetition: str | None = None
        """What the calls of the last turn repeated too often, described for the result of the run."""
        self._earlier = (0, 0, 0, 0.0)
        """Turns, calls, tokens and cost before the run was resumed: they count for limits, not for the result."""
        self._outer: Callable[[Usage, float | None], None] | None = None
        self._around: Spending | None = None
        self._bounded = limits.tokens is not None or limits.money is not None
        """Whether tokens or money are limited, here or in a run around this one."""
        self._model = ""

    @property
    def known_cost(self) -> float | None:
        """The cost, or None without prices."""
        return None if self.limits.prices is None else self.cost

    def note_usual_cost(self, usage: Usage, cost: float | None) -> None:
        """Note what a request without prices costs usually, for `estimate_cost`; None if that is unknown."""
        self._listed += cost or 0.0
        self._unpriced += usage if cost is None else NO_USAGE

    def estimate_cost(self, prices: Prices) -> float:
        """Return the cost of a run without prices, with its inner runs; `prices` are for requests of unknown cost."""
        return self.cost + self._listed + prices.cost(self._unpriced)

    @property
    def tokens(self) -> int:
        """The tokens of the run's requests so far, whatever their price."""
        return sum(self._fields)

    def report_to(
        self, outer: Callable[[Usage, float | None], None], model: str, around: "Spending | None" = None
    ) -> None:
        """Report each request to the run around this one as it ends: a crash must not lose what was used.

        Without prices, its cost is reported at the usual prices of a model, and as None if those are unknown. What the
        run `around` this one may use bounds this one too: several inner runs must not use its limit once each.
        """
        self._outer, self._model, self._around = outer, model, around
        self._bounded = self._bounded or around is not None

    def _report(self, outer: Callable[[Usage, float | None], None], usage: Usage, cost: float | None) -> None:
        prices = prices_for(self._model) if cost is None else None
        outer(usage, cost if prices is None else prices.cost(usage))

    @property
    def usage(self) -> Usage:
        """The tokens of the run's requests so far."""
        return Usage(*self._fields)

    def count_request(self, message: AssistantMessage) -> None:
        """Count a turn, and what its request used."""
        self.turns += 1
        if self.limits.calls is not None:
            self.calls += len(message.calls)
        if message.usage is not NO_USAGE or self._priced:
            self.add(message.usage, message.model)

    def add(self, usage: Usage, model: str = "") -> None:
        """Add the usage of one request, at the price of the model that answered."""
        cost = None
        if (prices := self.limits.other_prices.get(model) or self.limits.prices) is not None:
            cost = prices.request_cost(usage)
            self.cost += cost
        self._add_tokens(usage)
        if self._outer is not None:
            self._report(self._outer, usage, cost)

    def add_inner(self, usage: Usage, cost: float | None) -> None:
        """Add all requests of an inner run, at its own cost; at this run's prices if that is not known."""
        if cost is None and (prices := self.limits.prices) is not None:
            cost = prices.cost(usage)
        if cost is None:
            self._unpriced += usage
        self.cost += cost or 0.0
        self._add_tokens(usage)
        if self._outer is not None:
            self._report(self._outer, usage, cost)

    def carry(self, earlier: "Spending") -> None:
        """Count what the same run used before it was resumed."""
        self._earlier = (earlier.turns, earlier.calls, earlier.tokens, earlier.cost)
        self._texts, self._counts, self._invalid = earlier._texts, earlier._counts, earlier._invalid  # noqa: SLF001 - its own class
        self._new = earlier._new  # noqa: SLF001 - as above

    def restart(self, kind: str) -> None:
        """Start one limit again: it was reached and reported, and the run was continued all the same."""
        match kind:
            case "turns":
                self.turns = 0
            case "calls":
                self.calls = 0
            case "tokens":
                self._fields = (0, 0, 0, 0)
            case "money":
                self.cost = 0.0
            case "repeated":
                self._texts, self._counts, self._invalid, self._new = {}, {}, {}, None
            case _:
                pass

    def _add_tokens(self, usage: Usage) -> None:
        input_tokens, output_tokens, cache_read, cache_write = self._fields
        self._fields = (
            input_tokens + usage.input_tokens,
            output_tokens + usage.output_tokens,
            cache_read + usage.cache_read_tokens,
            cache_write + usage.cache_write_tokens,
        )

    def find_exceeded(self) -> tuple[StopKind, str] | None:
        """Return the first limit that does not permit another turn, with a description, or None."""
        limits = self.limits
        if self.turns + self._earlier[0] >= limits.turns:
            return "turns", f"the limit of {limits.turns} turn{'' if limits.turns == 1 else 's'} is reached"
        if limits.calls is not None and (calls := self.calls + self._earlier[1]) >= limits.calls:
            return "calls", f"the limit of {limits.calls} calls is reached: {calls} were made"
        if self._bounded and (used_up := self._find_used_up()) is not None:
            return used_up
        if self.deadline is not None and monotonic() >= self.deadline:
            return "seconds", f"the limit of {limits.seconds:g} s is reached"
        return None

    def _find_used_up(self) -> tuple[StopKind, str] | None:
        """Return the limit of tokens or money that is reached, of this run or of one around it."""
        limits, (_, _, earlier_tokens, earlier_cost) = self.limits, self._earlier
        if limits.tokens is not None and (tokens := self.tokens + earlier_tokens) >= limits.tokens:
            return "tokens", f"the limit of {limits.tokens} tokens is reached: {tokens} were used"
        if limits.money is not None and (cost := self.cost + earlier_cost) >= limits.money:
            return "money", f"the limit of {limits.money:g} is reached: {cost:.4f} was spent"
        return None if self._around is None else self._around._find_used_up()  # noqa: SLF001 - its own class

    def count_outcomes(self, outcomes: Sequence[Completed | Failed]) -> Sequence[Completed | Failed]:
        """Count a turn's outcomes, and find the `repetition` among them.

        The key is tool and arguments, because call ids are never the same. The count of a call that does not occur in
        a turn starts again.

        Returns:
            The outcomes, with a note for the model on each call that it repeats.
        """
        self.repetition = None
        if len(outcomes) == 1 and self._take_new(outcomes[0]):
            return outcomes
        if self._new is not None:
            key = _make_call_key(self._new.call)
            self._texts, self._counts, self._new = {key: _find_plain_text(self._new)}, {key: 1}, None
        texts: dict[str, str] = {}
        counts: dict[str, int] = {}
        noted: list[Completed | Failed] = []
        failures = 0
        for outcome in outcomes:
            key, text, failed = _make_call_key(outcome.call), _find_plain_text(outcome), isinstance(outcome, Failed)
            count = self._counts[key] + 1 if self._texts.get(key) == text else 1
            texts[key], counts[key] = text, count
            failures += failed
            limit = self.limits.same_failures if failed else self.limits.same_calls
            if limit is not None and count >= limit:
                self.repetition = f"{outcome.call.name} was called {count} times in a row with the same arguments " + (
                    f"and failed each time: {text}" if failed else "and had the same outcome each time"
                )
            noted.append(outcome if count == 1 else self._warn(outcome, count))
        self._texts, self._counts = texts, counts  # of this turn only: "in a row" means in consecutive turns
        if self.repetition is None and (self._invalid or failures):
            self.repetition = self._find_invalid(noted)
        return noted

    def _take_new(self, outcome: Completed | Failed) -> bool:
        """Take the outcome of a turn's only call if there is nothing to count: the last turn had another call.

        This is the usual turn. Where it cannot tell quickly, it says no.
        """
        if type(outcome) is not Completed:
            return False
        if self._new is None:
            limit = self.limits.same_calls
            if self._invalid or (limit is not None and limit <= 1) or _make_call_key(outcome.call) in self._texts:
                return False
            self._texts, self._counts = {}, {}
        else:
            call, last = outcome.call, self._new.call
            if type(call.arguments) is not str or type(last.arguments) is not str:
                return False
            if call.arguments == last.arguments and call.name == last.name:
                return False
        self._new = outcome
        return True

    def _warn(self, outcome: Completed | Failed, count: int) -> Completed | Failed:
        """Tell the model about a call that it repeats: what to change if it fails, that it has the answer if not."""
        if isinstance(outcome, Completed):
            return replace(outcome, output=outcome.output.with_note(_KNOWN))
        limit = self.limits.same_failures
        if limit is None or limit <= _WARNED_FAILURES or count < _WARNED_FAILURES:
            return outcome
        advice = _ADVICE.get(outcome.error.code, "change the arguments, use another tool, or say what is missing")
        warning = f"{_WARNING} {count} times in a row with this error, and the run ends at {limit}: {advice}"
        return replace(outcome, error=outcome.error.with_message(f"{outcome.error.message}{warning}"))

    def _find_invalid(self, outcomes: Sequence[Completed | Failed]) -> str | None:
        """Describe a tool whose calls had invalid arguments, never the same ones, in too many turns in a row."""
        wrong: dict[str, str] = {}
        for outcome in outcomes:
            code = outcome.error.code if isinstance(outcome, Failed) else ""
            name = _UNKNOWN if code == "not_found" else outcome.call.name
            if code in ("invalid_input", "not_found"):
                wrong.setdefault(name, outcome.text)
            else:
                self._invalid.pop(name, None)
        right = {outcome.call.name for outcome in outcomes if isinstance(outcome, Completed)}
        for name, text in wrong.items():
            if name in right:  # a message with good and bad calls is no sign of being stuck
                continue
            self._invalid[name] = count = self._invalid.get(name, 0) + 1
            limit = self.limits.invalid_calls
            if limit is not None and count >= limit:
                what = "a tool that does not exist was" if name == _UNKNOWN else f"{name} was"
                how = "" if name == _UNKNOWN else " with invalid arguments"
                return f"{what} called {count} times in a row{how}; the last error: {text}"
        return None


_WARNED_FAILURES = 3
_UNKNOWN = ""
"""Stands for all tools that do not exist."""
_WARNING = "\nThe same call has now failed"
_KNOWN = "[this call was made before and had the same outcome; with it the question can be answered]"
_ADVICE = {
    "not_found": "call a tool that exists, or do without",
    "invalid_input": "send other arguments: compare each field with the tool's schema",
    "denied": "do not repeat it; go on without, or ask the user",
    "tool_failed": "look at the present state first (read the file, list the folder), then send something else",
}


def _find_plain_text(outcome: Completed | Failed) -> str:
    """Return the text of an outcome without a warning about the repetition."""
    if isinstance(outcome, Failed):
        return outcome.text.partition(_WARNING)[0]
    text = outcome.output.text
    return text.removesuffix(_KNOWN).removesuffix("\n") if text.endswith(_KNOWN) else text


def _make_call_key(call: ToolCall) -> str:
    """Return what makes two calls the same: tool and arguments."""
    if isinstance(call.arguments, str):
        return f"{call.name}\0{call.arguments}"
    if isinstance(call.arguments, bytes):
        return f"{call.name}\0{call.arguments.decode(errors='replace')}"
    return f"{call.name}\0{json.dumps(call.arguments, sort_keys=True, default=str)}"
