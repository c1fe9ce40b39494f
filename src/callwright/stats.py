"""Statistics of tool calls, cheap enough to be always on."""

import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from threading import Lock
from typing import Any

from callwright.core._fast import field, frozen
from callwright.core.calls import Completed, Failed, Interrupted, Outcome, Repair
from callwright.core.content import tokens_for
from callwright.core.errors import UnknownTool
from callwright.core.json import Json

_KEPT_DURATIONS = 1024
_NOTED_VALUES = 5
_MOST_UNKNOWN = 256
OTHER_NAMES = "(other names)"
"""Under which calls of unknown tools are counted after the first of them."""
MOST_NOTED = _KEPT_DURATIONS * _NOTED_VALUES
"""How many values may be noted before they are added up."""
_lock = Lock()  # one for all: a tool's calls are added up once in a thousand
if hasattr(os, "register_at_fork"):  # as `on_fork`, whose module would be loaded at start for this alone
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


def count_argument_chars(arguments: object) -> int:
    """Return the length of arguments that the model wrote as text; 0 for values."""
    return len(arguments) if isinstance(arguments, (str, bytes)) else 0


@frozen
class ToolStats:
    """The figures of one tool."""

    name: str
    calls: int
    outcomes: Mapping[str, int]
    """Counts by outcome: `completed`, `interrupted` or an error's code."""
    attempts: int
    seconds_total: float
    seconds_p50: float
    seconds_p95: float
    seconds_max: float
    chars_in: int
    chars_out: int
    repairs: Mapping[str, int] = field(default_factory=dict[str, int])
    """Counts of repaired slips by kind."""

    @property
    def tokens_out(self) -> int:
        """An estimate of the tokens its outputs took in conversations."""
        return tokens_for(self.chars_out)

    def to_json(self) -> dict[str, Json]:
        """Return the figures as JSON."""
        return {
            "name": self.name,
            "calls": self.calls,
            "outcomes": dict(self.outcomes),
            "attempts": self.attempts,
            "seconds": {
                "total": self.seconds_total,
                "p50": self.seconds_p50,
                "p95": self.seconds_p95,
                "max": self.seconds_max,
            },
            "chars_in": self.chars_in,
            "chars_out": self.chars_out,
            "tokens_out": self.tokens_out,
            "repairs": dict(self.repairs),
        }


class Tally:
    """The running figures of one tool. Calls are only noted at first and added up in batches, which is cheaper."""

    __slots__ = (
        "_durations",
        "attempts",
        "calls",
        "chars_in",
        "chars_out",
        "longest",
        "noted",
        "outcomes",
        "repairs",
        "seconds",
    )

    def __init__(self) -> None:
        self.calls = self.attempts = self.chars_in = self.chars_out = 0
        self.seconds = self.longest = 0.0
        self.outcomes: dict[str, int] = {}
        self.repairs: dict[str, int] = {}
        self.noted: list[Any] = []
        """The values of `note`, call after call. Flat: a tuple per call would be work for the garbage collector."""
        self._durations: deque[float] = deque(maxlen=_KEPT_DURATIONS)

    def note(self, ending: str, attempts: int, seconds: float, chars_in: int, chars_out: int) -> None:
        """Count one call.

        Args:
            ending: `completed`, `interrupted` or an error's code.
            attempts: How many attempts were made.
            seconds: How long all attempts took.
            chars_in: The length of the arguments as text.
            chars_out: The length of the output or message.
        """
        noted = self.noted
        noted.extend((ending, attempts, seconds, chars_in, chars_out))
        if len(noted) >= MOST_NOTED:
            self.add_up()

    def add_up(self) -> None:
        """Add up what was noted; several threads may."""
        with _lock:
            self._add_up()

    def _add_up(self) -> None:
        noted = self.noted[:]
        del self.noted[: len(noted)]  # not all: another thread may note a call now
        if not noted:
            return
        endings, attempts, seconds, chars_in, chars_out = (noted[at::_NOTED_VALUES] for at in range(_NOTED_VALUES))
        self.calls += len(endings)
        self.attempts += sum(attempts)
        self.seconds += sum(seconds)
        self.longest = max(self.longest, *seconds)
        self.chars_in += sum(chars_in)
        self.chars_out += sum(chars_out)
        self._durations.extend(seconds)
        for ending in set(endings):
            self.outcomes[ending] = self.outcomes.get(ending, 0) + endings.count(ending)

    def figures(self, name: str) -> ToolStats:
        """Return the figures so far; the percentiles are those of the last thousand calls."""
        with _lock:
            self._add_up()
            ordered = sorted(self._durations)
            return ToolStats(
                name,
                self.calls,
                dict(self.outcomes),
                self.attempts,
                self.seconds,
                _quantile(ordered, 0.5),
                _quantile(ordered, 0.95),
                self.longest,
                self.chars_in,
                self.chars_out,
                dict(self.repairs),
            )


class Stats:
    """Counts calls by tool name."""

    def __init__(self) -> None:
        self._tallies: dict[str, Tally] = {}
        self._unknown = 0

    def tally(self, name: str) -> Tally:
        """Return a tool's running figures, for callers that note calls themselves."""
        found = self._tallies.get(name)
        if found is None:
            found = self._tallies[name] = Tally()
        return found

    def record(self, name: str, outcome: Outcome) -> None:
        """Count one outcome."""
        tally = self._tallies.get(name)
        if tally is None:
            name = self._limit_names(name, outcome)
            tally = self.tally(name)
        chars_in = count_argument_chars(outcome.call.arguments)
        if isinstance(outcome, Completed):
            content = outcome.output.content
            chars_out = len(content if isinstance(content, str) else outcome.text)
            tally.note("completed", outcome.attempts, outcome.seconds, chars_in, chars_out)
        elif isinstance(outcome, Interrupted):
            tally.note("interrupted", 0, 0.0, chars_in, 0)
            return
        else:
            error = outcome.error
            tally.note(error.code, outcome.attempts, outcome.seconds, chars_in, len(error.message))
        if outcome.repairs:
            self.count_repairs(name, outcome.repairs)

    def _limit_names(self, name: str, outcome: Outcome) -> str:
        """Return the name to count a call under: models and clients invent names of tools without end."""
        if not isinstance(outcome, Failed) or outcome.error.code != UnknownTool.code:
            return name
        self._unknown += 1
        return name if self._unknown <= _MOST_UNKNOWN else OTHER_NAMES

    def count_repairs(self, name: str, repairs: Iterable[Repair]) -> None:
        """Count repairs of a tool's calls."""
        counts = self.tally(name).repairs
        for repair in repairs:
            counts[repair.kind] = counts.get(repair.kind, 0) + 1

    def __getitem__(self, name: str) -> ToolStats:
        return (self._tallies.get(name) or Tally()).figures(name)

    def __iter__(self) -> Iterator[ToolStats]:
        return (self[name] for name in sorted(self._tallies))

    def to_json(self) -> list[Json]:
        """Return the figures of every tool, by name."""
        return [entry.to_json() for entry in self]


def _quantile(ordered: list[float], share: float) -> float:
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)] if ordered else 0.0
