"""Runs programs in worker processes: a Python interpreter without files, network, environment or imports.

The methods block, so they belong in threads, unless the steps of the program have a limit. A program stops wherever all
of its tasks wait for calls; those are one batch.
"""

import atexit
import os
import re
import signal
from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from math import inf
from typing import Any, NamedTuple, TypeAlias

import pydantic_monty as monty

from callwright.codemode.sizes import MAX_CHARS, measure
from callwright.core.errors import ToolFailed, check_number

_MAX_WORKERS = 64
_MAX_LIMIT = 10**15
"""The highest limit that the engine accepts for everything."""
_PRELUDE = "import asyncio, datetime, json, math, random, re"
"""Models often forget these; a program that imports them too does no harm."""
_PROGRAM_NAME = "<python-input-1>"
"""The engine's name for the program: what it is fed after the prelude."""
_CHECKOUT_SECONDS = 1.0
"""How often a program that waits for a worker finds out whether it was cancelled."""
_NOT_BEGUN = "the program was cancelled before it began"
_STEP_LIMIT = "TimeoutError: turn time limit exceeded"
_STEP_GRACE_SECONDS = 0.1
"""How long after the limit of a step a worker that does not stop by itself is killed."""
_MAX_SLEEP_SECONDS = 60.0
"""How long a program may sleep in all."""
_NOT_AWAITED = re.compile(r"<coroutine (?:external_future\(\d+\)|object \w+)>|<gather\(\d+\)>")
"""What stands in texts for calls without `await`: the engine hands over the representation of what is not data."""
_LINE_END = ord("\n")
_FORKED = "no program can run in this process: it was forked after its parent had run one; start it with spawn"
_LATER: monty.ExternalFuture = {"future": ...}
_SUSPENSIONS_PER_CALL = 3
"""A call stops the program when it is made and when it is awaited, and once more to look its name up."""


@dataclass(frozen=True, slots=True)
class CodeLimits:
    """The limits of one program.

    Raises:
        UsageError: A limit is not a number above 0, or is one that no program can reach.
    """

    seconds: float = 30.0
    """Running time of the program itself; the time of its calls does not count, which have limits of their own."""
    memory_bytes: int = 256_000_000
    calls: int = 1_000
    printed_chars: int = 1_000_000
    """What it may print; more is dropped, and the model is told."""

    def __post_init__(self) -> None:
        for name in ("seconds", "memory_bytes", "calls", "printed_chars"):
            whole = name != "seconds"
            check_number(f"CodeLimits.{name}", getattr(self, name), 0, most=_MAX_LIMIT, whole=whole, above=True)


class ProgramFailed(Exception):
    """The program ended with an error; the text is a traceback for the model."""


class StepTooLong(Exception):
    """The program ran for longer than a step may take; it can be run again without that limit."""


class ProgramCall(NamedTuple):
    """A call that the program waits for."""

    number: int
    """Counts the calls of the program, the same in every run of it."""
    function: str
    positional: tuple[Any, ...]
    named: Mapping[str, Any]
    line: int
    """Where the program makes it; 0 if that is in a text that it evaluates."""


class ProgramBatch(NamedTuple):
    """The program waits for all of these calls and sleeps."""

    calls: Sequence[ProgramCall]
    sleeps: Mapping[int, float] = {}
    """The seconds of each sleep, by its number."""


class Finished(NamedTuple):
    """The program has ended with this value."""

    value: object


class Returned(NamedTuple):
    """A call has returned."""

    value: object


class Raised(NamedTuple):
    """A call has failed: an exception in the program."""

    kind: str
    """The name of a built-in exception."""
    message: str


Step: TypeAlias = ProgramBatch | Finished
Settled: TypeAlias = Returned | Raised
_Snapshot: TypeAlias = monty.FunctionSnapshot | monty.NameLookupSnapshot | monty.FutureSnapshot | monty.MontyComplete
_pools: dict[int, monty.Monty] = {}


def _open_pool() -> monty.Monty:
    """Return this process's pool; a process forked from one that has a pool cannot have any: it lacks its threads."""
    pool = _pools.get(os.getpid())
    if pool is None:
        if _pools:
            raise ToolFailed(_FORKED)
        pool = monty.Monty(
            min_processes=0,
            max_processes=_MAX_WORKERS,
            checkout_timeout=_CHECKOUT_SECONDS,
            turn_duration_limit_grace=_STEP_GRACE_SECONDS,
        )
        pool.__enter__()
        _pools[os.getpid()] = pool
        atexit.register(_close_pool, os.getpid())
    return pool


def _close_pool(process_id: int) -> None:
    if process_id == os.getpid() and (pool := _pools.pop(process_id, None)) is not None:
        pool.__exit__(None, None, None)


class Interpreter:
    """One program in its worker.

    Args:
        code: The program.
        functions: The names of the functions it may call.
        limits: What it may use.
        now: The time that its clock shows; it stands still, so that a repetition takes the same way.
        seed: What its random numbers start from, for the same reason.
        describe_missing: Returns what the program is told about a name that means nothing.
        step_seconds: How long it may run without making a call; a limit allows to run its steps in the event loop.
    """

    def __init__(
        self,
        code: str,
        functions: Collection[str],
        limits: CodeLimits,
        now: datetime,
        seed: int,
        describe_missing: Callable[[str], str],
        step_seconds: float | None = None,
    ) -> None:
        self.code = code
        self._functions = functions
        self._limits = limits
        self._describe_missing = describe_missing
        self._missing = ""
        self._step_seconds = step_seconds
        self._make_checkout = partial(
            _open_pool().checkout,
            script_name="program.py",
            limits={
                "max_feed_duration_secs": limits.seconds,
                "max_turn_duration_secs": step_seconds,
                "max_memory": limits.memory_bytes,
                "max_suspensions": limits.calls * _SUSPENSIONS_PER_CALL + 1_000,
            },
            os_policy={"datetime": now, "random_start": {"seed": seed}, "sleep_system_max": inf},
        )
        self._checkout = self._make_checkout()
        self._line_ends = [at for at, byte in enumerate(code.encode(errors="replace")) if byte == _LINE_END]
        self._pending: dict[int, ProgramCall] = {}
        self._sleeps: dict[int, float] = {}
        self._slept_seconds = 0.0
        self._waiting: monty.FutureSnapshot | monty.FunctionSnapshot | None = None
        self._made = 0
        self._argument_chars = 0
        self._worker: int | None = None
        self._killed = False
        self._printed: list[str] = []
        self._printed_chars = 0

    @property
    def printed(self) -> str:
        """What the program has printed so far."""
        text = "".join(self._printed)
        dropped = self._printed_chars - len(text)
        return f"{text}\n[{dropped} more characters were printed and dropped]\n" if dropped > 0 else text

    def start(self) -> Step:
        """Run the program to its first calls, or its end.

        Raises:
            ProgramFailed: It cannot be parsed, raised an exception or used more than it may.
            StepTooLong: The step reached its limit.
        """
        session = self._take_worker()
        self._worker = session.worker_pid
        if self._killed:  # while the worker was waited for or started, and perhaps after `close`
            self.kill()
            self.close()
            raise ProgramFailed(_NOT_BEGUN)
        try:
            session.feed_run(_PRELUDE)
            return self._advance(session.feed_start(self.code, print_callback=self._print))
        except monty.MontyError as error:
            raise self._explain(error) from error

    def _take_worker(self) -> monty.MontySession:
        """Wait until a worker is free: all may be in use by programs that wait for their calls, which takes long."""
        while True:
            try:
                return self._checkout.__enter__()
            except TimeoutError:
                if self._killed:
                    raise ProgramFailed(_NOT_BEGUN) from None
                self._checkout = self._make_checkout()

    def resume(self, settled: Mapping[int, Settled]) -> Step:
        """Go on with the results of the last batch, by the numbers of its calls.

        Raises:
            ProgramFailed: It raised an exception or used more than it may.
            StepTooLong: The step reached its limit.
        """
        waiting, self._waiting = self._waiting, None
        if waiting is None:
            raise RuntimeError("the program is not waiting for calls")
        results: dict[int, monty.ExternalSettledResult] = {}
        for number, result in sorted(settled.items()):  # tasks go on in this order, which a repetition must keep
            if self._pending.pop(number, None) is None:
                self._sleeps.pop(number, None)
            results[number] = _encode(result)
        try:
            if isinstance(waiting, monty.FunctionSnapshot):
                waiting = waiting.resume(_LATER)
                if not isinstance(waiting, monty.FutureSnapshot):
                    raise ProgramFailed("the program was ended: it went on before its call had ended")
            return self._advance(waiting.resume(results))
        except monty.MontyError as error:
            raise self._explain(error) from error

    def kill(self) -> None:
        """End the worker at once, from any thread; the pool replaces it."""
        self._killed = True
        if self._worker is not None:
            with suppress(ProcessLookupError):
                os.kill(self._worker, signal.SIGKILL)

    def close(self) -> None:
        """Give the worker back."""
        self._worker = self._waiting = None  # a snapshot has `_print`, in a cycle that is not found as garbage
        with suppress(monty.MontyError):  # a worker that was killed
            self._checkout.__exit__(None, None, None)

    def _print(self, stream: str, text: str) -> None:
        room = self._limits.printed_chars - min(self._printed_chars, self._limits.printed_chars)
        self._printed_chars += len(text)
        if room:
            self._printed.append(text[:room])

    def _advance(self, snapshot: _Snapshot) -> Step:
        while True:
            match snapshot:
                case monty.FunctionSnapshot() if snapshot.is_os_function:
                    snapshot = self._answer_system(snapshot)
                case monty.FunctionSnapshot():
                    call = self._find_call(snapshot)
                    if call is None:
                        message = self._describe_missing(str(snapshot.function_name))
                        snapshot = snapshot.resume({"exc_type": "NameError", "message": message})
                    elif snapshot.allow_eager_await:  # awaited at once, and no other task can run: a batch of one
                        self._waiting = snapshot
                        return ProgramBatch((call,))
                    else:
                        snapshot = snapshot.resume(_LATER)
                case monty.FutureSnapshot():
                    self._waiting = snapshot
                    numbers = sorted(snapshot.pending_call_ids)
                    sleeps = {number: self._sleeps[number] for number in numbers if number in self._sleeps}
                    return ProgramBatch([self._pending[number] for number in numbers if number not in sleeps], sleeps)
                case monty.NameLookupSnapshot():
                    snapshot = self._look_up(snapshot)
                case monty.MontyComplete():
                    return Finished(self._check_awaited(snapshot.output))

    def _answer_system(self, snapshot: monty.FunctionSnapshot) -> _Snapshot:
        """Let the program sleep; everything else is refused: files, environment, imports."""
        match snapshot.function_name, snapshot.args:
            case "system.async_sleep", (float() | int() as seconds,):
                self._count_call()
                self._slept_seconds += max(seconds, 0.0)
                if self._slept_seconds <= _MAX_SLEEP_SECONDS:
                    self._sleeps[snapshot.call_id] = seconds
                    return snapshot.resume(_LATER)
                message = f"programs may sleep {_MAX_SLEEP_SECONDS:g} seconds in all, not {self._slept_seconds:g}"
                return snapshot.resume({"exc_type": "TimeoutError", "message": message})
            case "system.sleep", _:
                message = "there is no time.sleep; write `await asyncio.sleep(…)`"
                return snapshot.resume({"exc_type": "RuntimeError", "message": message})
            case _:
                return snapshot.resume_not_handled()

    def _count_call(self) -> None:
        self._made += 1
        if self._made > self._limits.calls:
            raise ProgramFailed(f"the program made more than {self._limits.calls} calls, which is the limit")

    def _find_call(self, snapshot: monty.FunctionSnapshot) -> ProgramCall | None:
        """Return the call of a tool that the program makes; None if there is no such function."""
        function = str(snapshot.function_name)
        if function not in self._functions:
            return None
        self._count_call()
        position = snapshot.position
        line = bisect_left(self._line_ends, position.start) + 1 if position.filename == _PROGRAM_NAME else 0
        number = snapshot.call_id
        self._pending[number] = call = ProgramCall(number, function, snapshot.args, snapshot.kwargs, line)
        self._count_arguments(call)
        return call

    def _count_arguments(self, call: ProgramCall) -> None:
        """End a program whose calls hold much more outside its worker than inside."""
        chars = sum(map(len, call.named)) + sum(map(measure, (*call.positional, *call.named.values())))
        if chars > MAX_CHARS:
            raise ProgramFailed(
                f"line {call.line}: the arguments of {call.function}() have over {MAX_CHARS} characters"
            )
        self._argument_chars += chars
        if self._argument_chars > self._limits.memory_bytes:
            raise ProgramFailed("the arguments of the program's calls are longer together than its memory limit")

    def _look_up(self, snapshot: monty.NameLookupSnapshot) -> _Snapshot:
        name = snapshot.variable_name
        if snapshot.object_id is not None or name not in self._functions:
            self._missing = name
            return snapshot.resume()

        def function() -> None:
            """Stands for a tool: the program gets a reference by this name and calls it like the tool."""

        function.__name__ = name
        return snapshot.resume(value=function)

    def _explain(self, error: monty.MontyError) -> ProgramFailed | StepTooLong:
        """Return an error of the engine as the program's."""
        match error:
            case monty.MontyRuntimeError() if self._step_seconds and str(error).startswith(_STEP_LIMIT):
                return StepTooLong(str(error))
            case monty.MontyCrashedError() if self._step_seconds and error.timed_out:
                return StepTooLong(str(error))
            case monty.MontySyntaxError() | monty.MontyRuntimeError():
                text = error.display().replace(f'File "{_PROGRAM_NAME}", ', "")
                plain = f"name {self._missing!r} is not defined"  # which is all that the engine says
                if self._missing and text.endswith(f"NameError: {plain}"):
                    text = text.removesuffix(plain) + self._describe_missing(self._missing)
                return ProgramFailed(text)
            case monty.MontyCrashedError():
                reason = "its time was up" if error.timed_out else "it ran out of memory or crashed"
                return ProgramFailed(f"the program was ended: {reason}")
            case _:
                return ProgramFailed(f"the program was ended: {error}")

    def _check_awaited(self, value: object) -> object:
        if self._pending:
            missed = ", ".join(f"{call.function}() in line {call.line}" for call in self._pending.values())
            raise ProgramFailed(f"these calls were not awaited, so they did not run: {missed}; write `await`")
        if isinstance(value, str) and _NOT_AWAITED.fullmatch(value):
            raise ProgramFailed(f"the program ends with {value}, which was not awaited and did not run; write `await`")
        return value


def find_unawaited(text: str) -> str | None:
    """Return what stands in a text for a call without `await`."""
    found = _NOT_AWAITED.search(text)
    return found and found[0]


def _encode(result: Settled) -> Any:
    if isinstance(result, Returned):
        return {"return_value": result.value}
    return {"exc_type": result.kind, "message": result.message}
