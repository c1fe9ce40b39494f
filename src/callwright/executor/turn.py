"""What belongs to one turn: whose it is, what it may call, how it is stopped, who is asked."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from callwright.core.call import Answers, Outcome, Question
from callwright.core.errors import UsageError
from callwright.core.event import BatchBegan, Event
from callwright.registry.catalog import Catalog
from callwright.tool.base import Cancellation, State

AskPerson: TypeAlias = Callable[[Sequence[Question]], Awaitable[Answers]]
Journal: TypeAlias = Callable[[BatchBegan], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Bounds:
    """What one turn may take; the defaults suit one agent on one machine."""

    width: int = 16
    """Calls of one turn that run at the same time."""
    depth: int = 8
    """Tools that may be inside each other."""
    turn_chars: int = 200_000
    """What the outputs of one turn may come to together."""
    question_seconds: float | None = 3600.0
    """How long an answer to a question counts."""

    def __post_init__(self) -> None:
        if self.width < 1 or self.depth < 1 or self.turn_chars < 1:
            raise UsageError(f"Bounds must be at least 1 each: {self!r}")


@dataclass(frozen=True, slots=True)
class Turn:
    """The circumstances of a batch of calls; the default is a call outside of any conversation."""

    session_id: str = ""
    turn_id: str = ""
    state: State | None = None
    """Values the session's tools share; without one the executor's own is used."""
    catalog: Catalog | None = None
    """The tools as they were advertised; without one the registry's present ones."""
    cancellation: Cancellation | None = None
    ask: AskPerson | None = None
    """Answers questions on the spot; without one they come back as `Interrupted`."""
    journal: Journal | None = None
    """Told what is about to run, and awaited; if it raises, nothing runs."""
    observe: Callable[[Event], None] | None = None
    """Hears this turn's events, beside the executor's own observers."""


class TurnCancelled(asyncio.CancelledError):
    """The task that was executing a turn was cancelled; every call still has its outcome here."""

    def __init__(self, outcomes: Sequence[Outcome]) -> None:
        super().__init__("the turn was cancelled")
        self.outcomes = list(outcomes)
