"""Worker threads for synchronous tools, created on demand.

`asyncio.to_thread` costs one wake-up of the loop per call (90 µs); here completions are collected and one wake-up
delivers all that have gathered (4.5 µs). A thread cannot be stopped: an abandoned one runs to its end and its result
is dropped.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextvars import copy_context
from itertools import count
from queue import Empty, SimpleQueue
from typing import TypeVar, TypeVarTuple, cast
from weakref import WeakKeyDictionary, ref

from callwright.system.platforms import on_fork
from callwright.tool.concurrency import LeftBehind, leave_hold

Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")
_IDLE_SECONDS = 10.0
_FOR_COROUTINES = (StopIteration, StopAsyncIteration, GeneratorExit, asyncio.CancelledError)


class _Mailbox:
    """Collects the ended runs of threads for one event loop and delivers them in one wake-up."""

    __slots__ = ("_ended", "_rung", "loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._ended: deque[ThreadRun] = deque()
        self.loop = ref(loop)  # weakly: a loop that has ended must not be kept by its mailbox
        self._rung = False

    def post(self, run: "ThreadRun") -> None:
        self._ended.append(run)
        if self._rung:  # the delivery to come finds this too; two rings at once would do no harm
            return
        self._rung = True
        loop = self.loop()
        try:
            if loop is not None:
                loop.call_soon_threadsafe(self._deliver)
        except RuntimeError:
            loop = None
        if loop is None:  # or closed: there is no waiter left
            self._rung = False  # before emptying, as below
            self._ended.clear()

    def _deliver(self) -> None:
        self._rung = False  # before emptying, so that whatever is posted from now on rings again
        while self._ended:
            future = self._ended.popleft().future
            if not future.done():
                future.set_result(None)


class ThreadRun:
    """One function in a thread; if it is left behind, it keeps the places of its call until it ends.

    It holds all that the thread needs and makes, because closures and tuples would be six objects more per call.
    """

    __slots__ = ("_arguments", "_box", "_context", "_ended", "_error", "_function", "_left", "_value", "future")

    def __init__(
        self,
        function: Callable[..., object],
        arguments: tuple[object, ...],
        box: _Mailbox,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._function = function
        self._arguments = arguments
        self._box = box
        self._context = copy_context()
        self._value: object = None
        self._error: BaseException | None = None
        self._ended = False
        self._left: LeftBehind | None = None
        self.future: asyncio.Future[None] = loop.create_future()
        """Done when the function has ended; set in the event loop."""

    def work(self) -> None:
        """Call the function, in the thread, and post the end."""
        try:
            self._value = self._context.run(_call, self._function, self._arguments)
        except BaseException as error:  # noqa: BLE001 - carried over to the awaiting side whole
            self._error = error
        self._ended = True  # before looking: either this thread sees what was left to it, or `leave` sees the end
        if self._left is not None:
            self._left.end()
        if not self.future.done():  # else it was left behind, and a loop that has ended would be kept by it
            self._box.post(self)

    def leave(self) -> None:
        """Leave the function behind, if it still runs: the places of the call are its own from now on."""
        if not self._ended:
            self._left = leave_hold()
            if self._left is not None and self._ended:  # meanwhile; ended twice does no harm
                self._left.end()

    def result(self) -> object:
        """Return what the function returned, or raise what it raised."""
        error, self._error = self._error, None
        if error is None:
            return self._value
        try:
            if isinstance(error, _FOR_COROUTINES):  # raised here it would cancel or end the awaiting side instead
                raise RuntimeError(f"the function raised {type(error).__name__}") from error  # noqa: TRY004 - no type is at fault
            raise error
        finally:
            error = None  # its traceback leads here, which would be a cycle


def _call(function: Callable[..., object], arguments: tuple[object, ...]) -> object:
    return function(*arguments)


class Threads:
    """Runs functions in worker threads, without a limit on their number."""

    def __init__(self) -> None:
        self._work: SimpleQueue[ThreadRun] = SimpleQueue()
        # one token per waiting thread; a deque, because a thousand threads that end together would queue up for a lock
        self._idle: deque[None] = deque()
        self._started = count(1)
        self._boxes: WeakKeyDictionary[asyncio.AbstractEventLoop, _Mailbox] = WeakKeyDictionary()
        self._last_box: _Mailbox | None = None
        """That of the loop used last: most processes have one."""

    async def run(self, function: Callable[[*Arguments], Result], *arguments: *Arguments) -> Result:
        """Call a function in a thread, with the caller's context variables, and return its result."""
        run = self.start(function, *arguments)
        try:
            await run.future
        except BaseException:
            run.leave()
            raise
        return cast(Result, run.result())

    def start(self, function: Callable[[*Arguments], object], *arguments: *Arguments) -> ThreadRun:
        """Call a function in a thread, as `run` does; the caller awaits its future, or else leaves it."""
        loop = asyncio.get_running_loop()
        box = self._last_box
        if box is None or box.loop() is not loop:
            box = self._last_box = self._find_box(loop)
        run = ThreadRun(function, arguments, box, loop)
        self._submit(run)
        return run

    def _find_box(self, loop: asyncio.AbstractEventLoop) -> _Mailbox:
        box = self._boxes.get(loop)
        if box is None:
            box = self._boxes[loop] = _Mailbox(loop)
        return box

    def _submit(self, run: ThreadRun) -> None:
        try:
            self._idle.pop()
        except IndexError:
            # daemon: an abandoned tool must not keep the interpreter from ending
            threading.Thread(target=self._serve, name=f"callwright-tool-{next(self._started)}", daemon=True).start()
        self._work.put(run)

    def _serve(self) -> None:
        while True:
            try:
                run = self._work.get(timeout=_IDLE_SECONDS)
            except Empty:
                try:
                    self._idle.pop()
                except IndexError:
                    continue  # a caller has just reserved this thread: its work is on the way
                return
            run.work()
            del run
            self._idle.append(None)

    def reset(self) -> None:
        """Forget the threads of the parent process, which do not exist in a child."""
        self._work = SimpleQueue()
        self._idle.clear()
        self._boxes = WeakKeyDictionary()
        self._last_box = None


threads = Threads()
"""Shared by all tools of the process."""
on_fork(in_child=threads.reset)
