"""Drives foreign coroutines, so that one which ignores its cancellation can be left behind.

Awaiting a coroutine lasts until it ends, whatever it does with a `CancelledError`. Here its steps are taken one by one:
after a cancellation it has a grace period, then it is closed and the awaiting side goes on. Unlike a task of its own,
this costs nothing until the coroutine waits for the first time.
"""

import asyncio
import gc
import logging
import sys
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterator
from contextvars import Context
from itertools import count
from typing import Any, TypeAlias, cast
from weakref import WeakKeyDictionary

_log = logging.getLogger("callwright")
AnyCoroutine = Coroutine[Any, Any, Any]
Steps: TypeAlias = "types.GeneratorType[Any, Any, None]"


_Future: type = asyncio.Future
next_order = count().__next__
"""Numbers time limits and driven coroutines as they begin."""


class Abandoned(asyncio.CancelledError):
    """The coroutine ignored a cancellation for the whole grace period and was left behind."""


def count_cancellations() -> int:
    """Return how many requests to cancel the current task were not taken back."""
    task = asyncio.current_task()
    return 0 if task is None else task.cancelling()


def is_cancelling() -> bool:
    """Whether this task itself is being cancelled, and not only something it awaited."""
    return count_cancellations() > 0


async def drive(awaitable: Awaitable[Any], grace_seconds: float) -> Any:
    """Await something as `await` does, but after a cancellation for a grace period only.

    Raises:
        Abandoned: It was cancelled and did not end in time.
    """
    order = next_order()
    steps, ended, waits_for = take_first_step(as_coroutine(awaitable))
    return ended[0] if ended else await drive_on(steps, ended, waits_for, grace_seconds, order, count_cancellations())


def take_first_step(coroutine: AnyCoroutine) -> tuple[Steps, list[Any], Any]:
    """Take the first step of a coroutine; most end with it.

    Returns:
        What takes its further steps, where its value is when it has ended, and what it waits for until then.
    """
    ended: list[Any] = []
    steps = take_steps(coroutine, ended)
    try:
        return steps, ended, next(steps, None)
    except GeneratorExit as error:
        raise wrap_exit(error) from error


def as_coroutine(awaitable: Awaitable[Any]) -> AnyCoroutine:
    """Return a coroutine that awaits something; a coroutine itself."""
    return awaitable if type(awaitable) is types.CoroutineType else _await(awaitable)  # type: ignore[return-value] - it is


def _take_steps(coroutine: Any, ended: list[Any]) -> Generator[Any, Any, None]:
    """Take the steps of a coroutine, one each time `next` is called; the last one puts its value into `ended`.

    The coroutine itself would give its value by an exception, which costs as much as the rest of a short one.
    """
    ended.append((yield from coroutine))


take_steps = cast("Callable[[AnyCoroutine, list[Any]], Steps]", types.coroutine(_take_steps))


@types.coroutine
def drive_on(
    steps: Steps, ended: list[Any], waits_for: Any, grace_seconds: float, order: int, cancellations: int
) -> Generator[Any, Any, Any]:
    """Continue a coroutine that has taken its first step and waits for a future.

    Args:
        steps: What to drive, from `take_steps`.
        ended: Where its value will be.
        waits_for: What its first step gave.
        grace_seconds: How long it may take to end after a cancellation.
        order: From `next_order`; taken before the first step if that may drive other coroutines.
        cancellations: From `count_cancellations`, after the first step.
    """
    grace: _Grace | None = None  # made with the first cancellation: most coroutines never see one
    groups: tuple[asyncio.TaskGroup, ...] = ()
    try:
        while not ended:
            # what is waited for is nearly always a plain future
            relayed = waits_for if type(waits_for) is not _Future and _may_ignore_cancellation(waits_for) else None
            raised: BaseException | None = None
            try:
                yield waits_for if relayed is None else _relay(relayed)
            except GeneratorExit:  # whatever awaits this was abandoned itself, or its event loop is gone
                _close(steps)
                raise
            except asyncio.CancelledError as stopped:
                if _LEAVES_REQUESTS:
                    groups = _take_back_requests(steps, groups)
                grace = grace or _Grace(grace_seconds, order, cancellations)
                if grace.claim_end():
                    _close(steps)
                    if relayed is not None:
                        relayed.add_done_callback(_find_exception)  # read, so that asyncio does not report it
                    raise Abandoned from None
                grace.begin()
                if relayed is not None and relayed.cancel():
                    continue  # as a task does: the coroutine is told when what it waits for has ended
                raised = stopped
            except BaseException as error:  # noqa: BLE001 - handed to the coroutine
                raised = error
            else:
                raised = None if relayed is None else _find_exception(relayed)
            try:
                waits_for = next(steps, None) if raised is None else steps.throw(raised)
            except GeneratorExit as error:
                raise wrap_exit(error) from error
    except StopIteration:  # it ended with what was thrown into it
        pass
    finally:
        if grace is not None:
            grace.end()
    return ended[0]


@types.coroutine
def go_on_in(context: Context, steps: Steps, waits_for: Any) -> Generator[Any, Any, None]:
    """Continue a coroutine that has taken its first step in a context of its own, as the task of that context would.

    Args:
        context: Where the first step was taken.
        steps: What to continue, from `take_steps`.
        waits_for: What its first step gave.
    """
    try:
        while True:
            try:
                sent = yield waits_for
            except GeneratorExit:
                steps.close()
                raise
            except BaseException as raised:  # noqa: BLE001 - handed to the coroutine
                waits_for = context.run(steps.throw, raised)
            else:
                waits_for = context.run(steps.send, sent)
    except StopIteration:
        return


async def _await(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


def wrap_exit(error: BaseException) -> RuntimeError:
    """Return what stands for a `GeneratorExit` of the coroutine's own, which would close the awaiting side."""
    return RuntimeError(f"the coroutine raised {type(error).__name__}")


def _may_ignore_cancellation(waits_for: Any) -> bool:
    """Whether cancelling a future may not end it at once: a task, or several. A plain future always ends."""
    if waits_for is None or type(waits_for) is _Future:
        return False
    if getattr(waits_for, "_asyncio_future_blocking", None) is None or waits_for is asyncio.current_task():
        return False  # a mistake, which the event loop reports
    return waits_for.get_loop() is asyncio.get_running_loop()


def _relay(future: Any) -> "asyncio.Future[None]":
    """Return a plain future that ends with another one."""
    future._asyncio_future_blocking = False  # noqa: SLF001 - asyncio's protocol for objects that act as futures
    relay = asyncio.get_running_loop().create_future()
    relay._asyncio_future_blocking = True  # type: ignore[attr-defined]  # noqa: SLF001 - as when it is awaited

    def pass_on(_: object) -> None:
        if not relay.done():
            relay.set_result(None)

    future.add_done_callback(pass_on)
    return relay


def _find_exception(future: Any) -> BaseException | None:
    try:
        future.result()
    except BaseException as error:  # noqa: BLE001 - thrown into the coroutine that waits for it
        return error
    return None


def _close(steps: Steps) -> None:
    """End a coroutine by force; one that goes on even then is never resumed."""
    coroutine = steps.gi_yieldfrom
    chain = list(_list_awaited(coroutine))
    try:
        steps.close()
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001 - nothing waits for it any more
        _log.debug("%s failed while it was closed", coroutine, exc_info=True)
    for each in chain:
        if each.cr_frame is not None:  # freeing closes it once more, and one that ignores that may loop at exit
            from callwright.system.platforms import keep_forever

            keep_forever(each)


def _list_awaited(coroutine: Any) -> "Iterator[types.CoroutineType[Any, Any, Any]]":
    """Yield a coroutine and those it awaits."""
    while isinstance(coroutine, types.CoroutineType):
        yield coroutine
        coroutine = coroutine.cr_await


_LEAVES_REQUESTS = sys.version_info < (3, 13)
"""Whether a task group whose task fails while the group is being left cancels its parent, and never takes that back."""


def _take_back_requests(steps: Steps, known: tuple[asyncio.TaskGroup, ...]) -> tuple[asyncio.TaskGroup, ...]:
    """Take back the cancellations of this task that task groups have requested and forget: none came from outside.

    Args:
        steps: What was driven when the cancellation arrived.
        known: The groups whose request was taken back before.

    Returns:
        The groups that are known now.
    """
    task, groups = asyncio.current_task(), known
    for frame in _list_frames(steps):
        if task is None or frame is None or frame.f_code is not _LEAVE_GROUP:
            continue
        group, left_by = frame.f_locals["self"], frame.f_locals["et"]
        # a group that was cancelled inside its block has taken that back itself
        requested = group._parent_task is task and group._parent_cancel_requested  # noqa: SLF001 - kept nowhere else
        if requested and left_by is not asyncio.CancelledError and group not in groups:
            groups = (*groups, group)
            task.uncancel()
    return groups


_LEAVE_GROUP = asyncio.TaskGroup.__aexit__.__code__


def _list_frames(waiting: Any) -> "Iterator[types.FrameType | None]":
    """Yield the frames of a coroutine and of what it awaits, async generators included."""
    while True:
        kind = cast(Any, type(waiting))
        if kind in _AWAITING:
            frame, awaited = _AWAITING[kind]
            yield getattr(waiting, frame)
            waiting = getattr(waiting, awaited)
        elif kind.__name__.startswith("async_generator_"):  # a step of one, which tells no other which one it is
            known: list[Any] = gc.get_referents(waiting)
            waiting = next((each for each in known if hasattr(each, "ag_await")), None)
        else:
            return


_AWAITING: dict[Any, tuple[str, str]] = {
    types.CoroutineType: ("cr_frame", "cr_await"),
    types.GeneratorType: ("gi_frame", "gi_yieldfrom"),
    types.AsyncGeneratorType: ("ag_frame", "ag_await"),
}


class OwnCancellation:
    """A cancellation of the current task that a time limit requests and takes back.

    Calls nest in one task: an outer call must not take the time limit of an inner one for a cancellation of its own.
    """

    __slots__ = ("_task", "cancelling", "order", "requested")

    def __init__(self, task: "asyncio.Task[Any] | None", order: int) -> None:
        self._task = task
        self.order = order
        """From `next_order`: of two in one task, the later one is further inside."""
        self.cancelling = 0 if task is None else task.cancelling()
        """How many requests were pending before."""
        self.requested = False

    def request(self) -> None:
        """Cancel the task."""
        if self._task is not None:
            self.requested = True
            _requested.setdefault(self._task, []).append(self)
            self._task.cancel()

    def take_back(self) -> int:
        """Take the request back; return how many others are pending."""
        if not self.requested or self._task is None:
            return 0
        self.requested = False
        _requested[self._task].remove(self)
        return self._task.uncancel()

    def is_cancelled_from_outside(self) -> bool:
        """Whether the task is being cancelled, and not only by the time limits of inner calls."""
        if self._task is None:
            return False
        inner = sum(other.order > self.order for other in _requested.get(self._task, ()))
        return self._task.cancelling() - inner > self.cancelling


_requested: "WeakKeyDictionary[asyncio.Task[Any], list[OwnCancellation]]" = WeakKeyDictionary()


class _Grace(OwnCancellation):
    """The time a cancelled coroutine has to end."""

    __slots__ = ("_seconds", "_timer")

    def __init__(self, seconds: float, order: int, cancelling: int) -> None:
        super().__init__(asyncio.current_task(), order)
        self.cancelling = cancelling
        self._seconds = seconds
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Start the time, if the task is being cancelled and not only something it waited for."""
        if self._timer is None and self.is_cancelled_from_outside():
            self._timer = asyncio.get_running_loop().call_later(self._seconds, self._expire)

    def _expire(self) -> None:
        self._timer = None
        if self.is_cancelled_from_outside():  # and not taken back meanwhile
            self.request()

    def claim_end(self) -> bool:
        """Whether the cancellation that arrived says that the time is over; it is taken back."""
        over = self.requested
        self.take_back()
        return over

    def end(self) -> None:
        """Stop the time."""
        if self._timer is not None:
            self._timer.cancel()
        self.take_back()
