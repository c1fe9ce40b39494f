"""Concurrency limits of tools: how many calls of a tool run at the same time, in all event loops and threads.

A call takes a place among the calls of its tool and gives it back when it has really ended: a thread that was left
behind keeps the place. A call that would wait for itself, directly or through other calls, is refused instead.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from contextvars import ContextVar, Token
from weakref import WeakKeyDictionary, WeakSet

from callwright.core.errors import ToolFailed
from callwright.system.platforms import on_fork

_all_places: "WeakSet[Places]" = WeakSet()
_lock = threading.Lock()  # one for all: waiting is rare, and the search for cycles looks at every waiting call


class Places:
    """The running calls of one tool."""

    __slots__ = ("__weakref__", "holders", "name", "waiting")

    def __init__(self, name: str) -> None:
        self.name = name
        _all_places.add(self)
        self.holders: set[Hold | LeftBehind] = set()
        self.waiting: deque[_Waiter] = deque()

    def give_back(self, holder: "Hold | LeftBehind") -> None:
        """Free a place, and pass it on; the lock must be held."""
        self.holders.discard(holder)
        while self.waiting and len(self.holders) < self.waiting[0].limit:
            waiter = self.waiting.popleft()
            self.holders.add(waiter.hold)
            waiter.hold.waits_for = None
            _waiting.discard(waiter.hold)
            try:
                waiter.loop.call_soon_threadsafe(waiter.wake)
            except RuntimeError:  # its event loop is closed
                self.holders.discard(waiter.hold)


class _Waiter:
    """A call that waits for a place."""

    __slots__ = ("future", "hold", "limit", "loop")

    def __init__(self, hold: "Hold", limit: int) -> None:
        self.hold = hold
        self.limit = limit
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[None] = self.loop.create_future()

    def wake(self) -> None:
        if not self.future.done():
            self.future.set_result(None)


class LeftBehind:
    """A thread of a call that timed out; it keeps the places of the call until it ends."""

    __slots__ = ("_places",)

    def __init__(self, places: "list[Places]") -> None:
        self._places = places

    def end(self) -> None:
        """Give the places back."""
        with _lock:
            for places in self._places:
                places.give_back(self)
            self._places = []


class Hold:
    """The places of one call: taken before it runs, given back when it has ended.

    Args:
        places: Where to take a place, always in the same order.
        limit: How many calls may run at the same time.
        seconds: How long to wait for a thread that was left behind.
    """

    __slots__ = ("_limit", "_seconds", "_token", "_wanted", "held", "parent", "taken", "waits_for")

    def __init__(self, places: tuple[Places, ...], limit: int, seconds: float) -> None:
        self._wanted = places
        self._limit = limit
        self._seconds = seconds
        self._token: Token[Hold | None] | None = None
        self.parent = _current.get()
        self.held: list[Places] = []
        self.taken = False
        """Whether it has ever had its places: before, its call cannot have started."""
        self.waits_for: Places | None = None

    async def take(self) -> None:
        """Take every place that is not held; also before a repetition, which may have lost them to a thread.

        Raises:
            ToolFailed: The call would wait for itself, or for a thread that does not end.
        """
        try:
            for places in self._wanted:
                if places not in self.held:
                    await self._take(places)
        except BaseException:
            self.give_back()
            raise
        self.taken = True
        if self._token is None:
            self._token = _current.set(self)

    async def _take(self, places: Places) -> None:
        with _lock:
            if len(places.holders) < self._limit and not places.waiting:
                places.holders.add(self)
                self.held.append(places)
                return
            self.waits_for = places
            if _is_stuck(places, set(self._ancestors()), set()):
                self.waits_for = None
                raise ToolFailed(
                    f"{places.name} is limited to {self._limit} at a time, and this call would wait for itself"
                )
            waiter = _Waiter(self, self._limit)
            places.waiting.append(waiter)
            _waiting.add(self)
        try:
            await self._wait(places, waiter)
            self.held.append(places)
        except BaseException:
            with _lock:
                with suppress(ValueError):
                    places.waiting.remove(waiter)
                if self in places.holders:
                    places.give_back(self)
            raise
        finally:
            with _lock:
                self.waits_for = None
                _waiting.discard(self)

    async def _wait(self, places: Places, waiter: _Waiter) -> None:
        seconds = min(self._seconds, threading.TIMEOUT_MAX)
        while not waiter.future.done():
            await asyncio.wait((waiter.future,), timeout=seconds)
            if not waiter.future.done() and places.holders and all(type(each) is LeftBehind for each in places.holders):
                raise ToolFailed(
                    f"{places.name} is limited to {self._limit} at a time, and a call that timed out still runs"
                )

    def leave(self) -> LeftBehind:
        """Hand the places to a thread that goes on after its call has ended."""
        with _lock:
            left = LeftBehind(self.held)
            for places in self.held:
                places.holders.discard(self)
                places.holders.add(left)
            self.held = []
        return left

    def give_back(self) -> None:
        """Give the places back; a second call changes nothing."""
        with _lock:
            for places in reversed(self.held):
                places.give_back(self)
            self.held = []
        if self._token is not None:
            with suppress(ValueError):  # ended in another context, by being closed
                _current.reset(self._token)
            self._token = None

    def _ancestors(self) -> "Iterator[Hold]":
        hold: Hold | None = self
        while hold is not None:
            yield hold
            hold = hold.parent

    def is_inside(self, other: "Hold") -> bool:
        """Whether this call was made by another one, directly or not."""
        return other in self._ancestors()


_current: ContextVar[Hold | None] = ContextVar("callwright_hold", default=None)
"""The innermost call with a limit; inherited by tasks, threads and inner agents."""
_waiting: set[Hold] = set()
_by_tool: "WeakKeyDictionary[object, Places]" = WeakKeyDictionary()


def _forget_all() -> None:
    """Forget the calls of the parent process, which do not run in a child."""
    global _lock  # noqa: PLW0603 - the parent's may be locked for ever
    _lock = threading.Lock()
    _waiting.clear()
    for places in list(_all_places):
        places.holders.clear()
        places.waiting.clear()


on_fork(in_child=_forget_all)


def places_of(tool: object, name: str) -> Places | None:
    """Return the running calls of a tool in this process, whichever executor made them."""
    with _lock:
        try:
            return _by_tool.setdefault(tool, Places(name))
        except TypeError:  # a tool that cannot be referenced weakly or hashed
            return None


def leave_hold() -> LeftBehind | None:
    """Hand the places of the current call to a thread it leaves behind."""
    hold = _current.get()
    return None if hold is None or not hold.held else hold.leave()


def _is_stuck(places: Places, chain: set[Hold], seen: set[Places]) -> bool:
    """Whether no holder of a place can end before one of the calls in `chain` does; the lock must be held."""
    if places in seen:
        return True
    return bool(places.holders) and all(
        isinstance(holder, Hold) and (holder in chain or _needs_stuck(holder, chain, seen | {places}))
        for holder in places.holders
    )


def _needs_stuck(holder: Hold, chain: set[Hold], seen: set[Places]) -> bool:
    return any(
        hold.waits_for is not None and _is_stuck(hold.waits_for, chain, seen)
        for hold in _waiting
        if hold.is_inside(holder)
    )
