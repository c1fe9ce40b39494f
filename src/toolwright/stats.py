"""What each tool was used for and what it cost: cheap enough to be always on."""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from toolwright.core.call import Completed, Failed, Outcome
from toolwright.core.json import Json
from toolwright.core.tokens import tokens_for

_REMEMBERED = 1024


@dataclass(frozen=True, slots=True)
class ToolStats:
    """One tool's figures so far."""

    name: str
    calls: int
    outcomes: Mapping[str, int]
    """How often each ending happened: `completed`, `interrupted` or an error's code."""
    attempts: int
    seconds_total: float
    seconds_p50: float
    seconds_p95: float
    seconds_max: float
    chars_in: int
    chars_out: int

    @property
    def tokens_out(self) -> int:
        """About how many tokens its results cost the conversation."""
        return tokens_for(self.chars_out)

    def to_json(self) -> dict[str, Json]:
        """The figures as JSON, for status lines and exports."""
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
        }


class _Tally:
    """Running figures of one tool; durations of the last thousand calls give the percentiles."""

    __slots__ = ("attempts", "calls", "chars_in", "chars_out", "durations", "longest", "outcomes", "seconds")

    def __init__(self) -> None:
        self.calls = self.attempts = self.chars_in = self.chars_out = 0
        self.seconds = self.longest = 0.0
        self.outcomes: dict[str, int] = {}
        self.durations: deque[float] = deque(maxlen=_REMEMBERED)


class Stats:
    """Counts calls by tool name."""

    def __init__(self) -> None:
        self._tallies: dict[str, _Tally] = {}

    def record(self, name: str, outcome: Outcome) -> None:
        """Count one outcome."""
        tally = self._tallies.get(name)
        if tally is None:
            tally = self._tallies[name] = _Tally()
        tally.calls += 1
        arguments = outcome.call.arguments
        if isinstance(arguments, (str, bytes)):
            tally.chars_in += len(arguments)
        if isinstance(outcome, Completed):
            ending = "completed"
            content = outcome.output.content
            tally.chars_out += len(content) if isinstance(content, str) else len(outcome.output.text)
        elif isinstance(outcome, Failed):
            ending = outcome.error.code
            tally.chars_out += len(outcome.error.message)
        else:
            ending = "interrupted"
            tally.outcomes[ending] = tally.outcomes.get(ending, 0) + 1
            return
        tally.outcomes[ending] = tally.outcomes.get(ending, 0) + 1
        tally.attempts += outcome.attempts
        tally.seconds += outcome.seconds
        tally.durations.append(outcome.seconds)
        if outcome.seconds > tally.longest:
            tally.longest = outcome.seconds

    def __getitem__(self, name: str) -> ToolStats:
        tally = self._tallies.get(name) or _Tally()
        ordered = sorted(tally.durations)
        return ToolStats(
            name,
            tally.calls,
            dict(tally.outcomes),
            tally.attempts,
            tally.seconds,
            _quantile(ordered, 0.5),
            _quantile(ordered, 0.95),
            tally.longest,
            tally.chars_in,
            tally.chars_out,
        )

    def __iter__(self) -> Iterator[ToolStats]:
        return (self[name] for name in sorted(self._tallies))

    def to_json(self) -> list[Json]:
        """Every tool's figures, by name."""
        return [entry.to_json() for entry in self]


def _quantile(ordered: list[float], share: float) -> float:
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)] if ordered else 0.0
