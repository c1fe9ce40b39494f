"""The parts of an executor that its turns share, and the limits of a turn."""

import asyncio
import logging
import os
from collections.abc import Sequence
from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING

from callwright.core._fast import field, frozen, slotted
from callwright.core.errors import ToolFailed, UsageError, check_number
from callwright.core.events import Event
from callwright.core.json import Json
from callwright.executor.admit import Gate
from callwright.executor.admitted import ToolEntry
from callwright.executor.deadlines import LoopLocal
from callwright.executor.ledger import Ledger
from callwright.executor.perform import Observe, Runner
from callwright.registry.catalog import Catalog, Toolset
from callwright.tool.base import State

if TYPE_CHECKING:  # otherwise loaded with the first call of a tool that has a limit
    from callwright.tool.concurrency import Hold, Places

_log = logging.getLogger("callwright")
_MAX_NOTED_CALLS = 1_000
_MAX_DROPPED_CALLS = 100_000


@frozen
class TurnLimits:
    """The limits of one turn; the defaults suit one agent on one machine.

    Raises:
        UsageError: `width`, `depth` or `turn_chars` is below 1, `question_seconds` or `grace_seconds` below 0, or one
            of them is not a number.
    """

    width: int = 16
    """How many calls of a turn run at the same time."""
    depth: int = 8
    """How deep tools may call other tools."""
    turn_chars: int = 200_000
    """The length of all outputs and errors of a turn together."""
    question_seconds: float | None = 3600.0
    """How long a question may be answered; None for no limit."""
    grace_seconds: float = 5.0
    """How long a tool or hook that was cancelled may take to end before it is abandoned."""

    def __post_init__(self) -> None:
        for name in ("width", "depth", "turn_chars"):
            check_number(f"TurnLimits.{name}", getattr(self, name), 1, whole=True)
        check_number("TurnLimits.grace_seconds", self.grace_seconds, 0)
        if self.grace_seconds == inf:
            raise UsageError("TurnLimits.grace_seconds must be a number of seconds, not inf: a turn would never end")
        if self.question_seconds is not None:
            check_number("TurnLimits.question_seconds", self.question_seconds, 0)
            if self.question_seconds == inf:
                raise UsageError("TurnLimits.question_seconds must be a number of seconds, not inf; write None")


class CallNotes:
    """The notes of calls outside of a session, until they have ended.

    If there are too many, those of the oldest call are dropped, and it cannot run again: it would not know what it had
    done, and do that twice.
    """

    def __init__(self) -> None:
        self._calls: dict[tuple[str, str], dict[str, list[Json]]] = {}
        """By session and id of the model's call, then by path: those of the calls inside it too."""
        self._dropped: dict[tuple[str, str], None] = {}

    def add(self, session_id: str, path: str, note: Json) -> None:
        """Add a note of the call with this session and path."""
        call = session_id, path.partition("/")[0]
        if call in self._dropped:
            return
        self._calls.setdefault(call, {}).setdefault(path, []).append(note)
        if len(self._calls) > _MAX_NOTED_CALLS:
            oldest = next(iter(self._calls))
            del self._calls[oldest]
            self._dropped[oldest] = None
            if len(self._dropped) > _MAX_DROPPED_CALLS:
                del self._dropped[next(iter(self._dropped))]

    def find(self, session_id: str, path: str) -> Sequence[Json]:
        """Return the notes of a call.

        Raises:
            ToolFailed: They were dropped.
        """
        call = session_id, path.partition("/")[0]
        if call in self._dropped:
            raise ToolFailed(
                f"not done again: more than {_MAX_NOTED_CALLS} other calls have waited for answers since this one "
                "asked, and what it had done before was forgotten; look at the present state, then make a new call"
            )
        return tuple(self._calls.get(call, {}).get(path, ()))

    def __len__(self) -> int:
        return len(self._calls) + len(self._dropped)

    def drop(self, session_id: str, call_id: str) -> None:
        """Forget the notes of a call of the model that has ended, and of the calls inside it."""
        self._calls.pop((session_id, call_id), None)
        self._dropped.pop((session_id, call_id), None)


@slotted
class Runtime:
    """The parts of an executor that its turns use."""

    registry: Toolset
    gate: Gate
    runner: Runner
    state: State
    observe: Observe | None
    limits: TurnLimits
    loops: LoopLocal
    ledger: Ledger = field(default_factory=Ledger)
    notes: CallNotes = field(default_factory=CallNotes)
    run_id: str = field(default_factory=lambda: os.urandom(8).hex())
    """Takes the place of a turn id in idempotency keys, so that two processes never make the same key."""
    places: "dict[str, Places]" = field(default_factory=dict[str, "Places"])
    """The running calls of tools with a concurrency limit, by tool name: a tool that replaces another shares them."""
    _catalog: tuple[int, Catalog] | None = None
    """The registry's tools after that many changes; one value, because other threads read it meanwhile."""

    def catalog(self) -> Catalog:
        """Return the registry's current tools."""
        known, changes = self._catalog, self.registry.changes
        if known is None or changes != known[0]:
            # the count from before the snapshot: a change made meanwhile by another thread must not be lost
            known = self._catalog = (changes, self.registry.snapshot())
        return known[1]

    def hold(self, entry: ToolEntry, limit: int) -> "Hold":
        """Return the places that a call of a tool with a concurrency limit has to take."""
        from callwright.tool.concurrency import Hold, Places, places_of

        of_name = self.places.get(entry.name) or self.places.setdefault(entry.name, Places(entry.name))
        of_tool = places_of(entry.tool, entry.name)  # shared with other executors, those of inner agents for example
        places = (of_name,) if of_tool is None else (of_name, of_tool)
        return Hold(places, limit, entry.limits.seconds)


def add_observer(executor_observe: Observe | None, turn_observe: Observe) -> Observe:
    """Combine the executor's observers, which cannot raise, with the turn's own, which may."""

    def observe(event: Event) -> None:
        if executor_observe is not None:
            executor_observe(event)
        try:
            turn_observe(event)
        except KeyboardInterrupt:
            raise
        except BaseException:  # noqa: BLE001 - an observer that fails must not fail the call
            _log.exception("an observer failed on %s", type(event).__name__)

    return observe


def observe_in_loop(observe: Observe, event: Event, loop: asyncio.AbstractEventLoop) -> None:
    """Pass an event on from any thread: observers are called on the thread of the turn's event loop only."""
    try:
        here = asyncio.get_running_loop()
    except RuntimeError:  # in a worker thread
        here = None
    if here is loop:
        observe(event)
    else:
        with suppress(RuntimeError):  # the loop has ended, as the turn has
            loop.call_soon_threadsafe(observe, event)
