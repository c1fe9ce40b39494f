"""One program of a model: makes its calls through the executor, and keeps on record what it needs to be repeated.

A program that was interrupted by a question or a crash runs again from its start. Calls that have ended are not made
again: their results are on record, in the order in which the program made them.
"""

import asyncio
import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple, cast

from callwright.codemode.engine import (
    CodeLimits,
    Interpreter,
    ProgramBatch,
    ProgramCall,
    ProgramFailed,
    Raised,
    Returned,
    Settled,
    Step,
    StepTooLong,
    find_unawaited,
)
from callwright.codemode.stubs import order_parameters
from callwright.codemode.texts import describe_changes, describe_missing, describe_result, mark_line, write_parts
from callwright.core._fast import make_constructor
from callwright.core.calls import Completed, Failed, Interrupted, Outcome, ToolCall
from callwright.core.decisions import AnswersNeeded, Question
from callwright.core.errors import (
    Cancelled,
    Declined,
    Denied,
    Halted,
    InvalidArguments,
    TimedOut,
    ToolError,
    ToolFailed,
    UnknownTool,
)
from callwright.core.json import hash_text, make_json_writer, replace_surrogates, thaw
from callwright.registry.catalog import Catalog
from callwright.tool.base import InnerBatch, ToolContext
from callwright.tool.threads import threads

_EXCEPTIONS: Mapping[type[ToolError], str] = {
    Denied: "PermissionError",
    InvalidArguments: "ValueError",
    TimedOut: "TimeoutError",
    UnknownTool: "NameError",
}
_encode_arguments = make_json_writer(json.JSONEncoder(allow_nan=False))
_tool_call = make_constructor(ToolCall)
_inner_batch = make_constructor(InnerBatch)
_UNKNOWN = "the process ended while this call was running; it may have had an effect"
_MAX_STEP_SECONDS = 0.05
"""The longest step of a program whose steps may be taken in the event loop."""
_SHORT_STEP_SECONDS = 0.002
_MAX_RESULT_CHARS = 1_000_000
"""How long a text that a call returns may be in the program; what the model gets is limited by what it prints."""
_MAX_HOLD_SECONDS = 0.005
_MAX_TOLD = 10
_STAYS_DONE = (
    "so it cannot go on. The calls it has made stay done, nothing more was done; find out what was done before you "
    "write another program, which must not do it again"
)
_CHANGED = f"the record of this program does not fit it, {_STAYS_DONE}"


@dataclass(slots=True)
class _Journal:
    """What earlier runs of the program kept: its beginning, and the starts and results of its calls."""

    now: datetime
    seed: int
    digests: dict[int, str] = field(default_factory=dict[int, str])
    """What each call was, by its number."""
    functions: dict[int, str] = field(default_factory=dict[int, str])
    """What each call was a call of, as far as it is on record."""
    settled: dict[int, Settled] = field(default_factory=dict[int, Settled])
    declined: dict[str, Raised] = field(default_factory=dict[str, Raised])
    """The calls that the user declined, by digest."""


class _Facts(NamedTuple):
    """What every call of a tool needs, found once in a program."""

    repeatable: bool
    structured: bool
    """Its calls return the structured output, not the text."""
    parameters: Sequence[str]


class Program:
    """One run of a program.

    Args:
        code: The program.
        context: The call that runs it.
        catalog: The tools.
        functions: The tools' names by the names of their functions.
        limits: What the program may use.
    """

    def __init__(
        self, code: str, context: ToolContext, catalog: Catalog, functions: Mapping[str, str], limits: CodeLimits
    ) -> None:
        self._code = code
        self._context = context
        self._catalog = catalog
        self._functions = functions
        self._limits = limits
        self._facts: dict[str, _Facts] = {}
        self._origins: dict[int, str] = {}
        self._lines = code.removesuffix("\n").split("\n")  # as the engine counts them: a form feed ends no line
        self._told: dict[str, None] = {}
        """Notes for the model about calls that did not run as the program wrote them."""
        self._made: dict[str, tuple[ProgramCall, ToolCall]] = {}
        """The calls as the program made them, by id: hooks may have changed what runs."""

    async def run(self) -> str:
        """Run the program to its end and return what it printed and returned.

        Raises:
            ToolFailed: It ended with an error.
            AnswersNeeded: Some of its calls need answers; with them it goes on.
        """
        self._journal = await self._open_journal()
        try:
            return await self._run(_MAX_STEP_SECONDS)
        except StepTooLong:  # from its start, as after a restart: the calls that it made are not made again
            return await self._run(None)

    async def _run(self, step_seconds: float | None) -> str:
        journal = self._journal
        describe = partial(describe_missing, functions=self._functions, catalog=self._catalog)
        interpreter = Interpreter(
            self._code, self._functions.keys(), self._limits, journal.now, journal.seed, describe, step_seconds
        )
        loop_ran_at = 0.0
        short = False
        try:
            step = await self._step_in_thread(interpreter, interpreter.start)
            while isinstance(step, ProgramBatch):
                settled = await self._make_calls(step)
                began = perf_counter()
                # Waking the event loop costs more than most steps, so they are taken in it, as long as they are short;
                # but its other tasks get their turn every few milliseconds.
                if short and step_seconds is not None:
                    if began - loop_ran_at > _MAX_HOLD_SECONDS:
                        await asyncio.sleep(0)
                        loop_ran_at = began = perf_counter()
                    step = interpreter.resume(settled)
                else:
                    step = await self._step_in_thread(interpreter, partial(interpreter.resume, settled))
                    loop_ran_at = perf_counter()
                short = perf_counter() - began < _SHORT_STEP_SECONDS
            return "\n".join([describe_result(interpreter.printed, step), *self._told])
        except ProgramFailed as failed:
            printed = f"printed before that:\n{interpreter.printed}\n" if interpreter.printed else ""
            raise ToolFailed("\n".join([f"{printed}{failed}", *self._told])) from None
        finally:
            await asyncio.shield(threads.run(interpreter.close))

    async def _step_in_thread(self, interpreter: Interpreter, step: Callable[[], Step]) -> Step:
        """Let the program run until it waits again; a cancelled call ends its worker."""
        try:
            return await threads.run(step)
        except asyncio.CancelledError:
            interpreter.kill()  # its thread cannot be stopped, and would wait for the worker
            raise

    async def _open_journal(self) -> _Journal:
        """Return what is on record of this program, or begin its record."""
        digest = hash_text(self._code)
        notes = [note for note in self._context.kept if isinstance(note, Mapping)]
        if not notes:
            now, seed = datetime.now(UTC), secrets.randbits(53)
            await self._context.keep({"program": digest, "now": now.isoformat(), "seed": seed}, wait=False)
            return _Journal(now, seed)
        try:
            first = cast("dict[str, Any]", notes[0])
            if first["program"] != digest:
                raise ToolFailed(_CHANGED)
            journal = _Journal(datetime.fromisoformat(first["now"]), int(first["seed"]))
            for note in notes[1:]:
                self._read_note(journal, cast("dict[str, Any]", note))
        except (KeyError, TypeError, ValueError) as error:
            raise ToolFailed(_CHANGED) from error
        # The program would be told that such a function does not exist, and might do by another what was done by this.
        gone = sorted(set(journal.functions.values()) - self._functions.keys())
        if gone:
            raise ToolFailed(f"this program has called {', '.join(gone)}, which does not exist any more, {_STAYS_DONE}")
        return journal

    def _read_note(self, journal: _Journal, note: dict[str, Any]) -> None:
        number = int(note["call"])
        if "told" in note:
            self._told[str(note["told"])] = None
        if "digest" in note:
            journal.digests[number] = str(note["digest"])
        if "function" in note:
            journal.functions[number] = str(note["function"])
        if "waits" in note:
            del journal.digests[number]
            journal.functions.pop(number, None)
        elif "raised" in note:
            journal.settled[number] = raised = Raised(*map(str, note["raised"]))
            if "declined" in note:
                journal.declined[journal.digests[number]] = raised
        elif "returned" in note or "digest" not in note:
            journal.settled[number] = Returned(note["returned"])

    async def _make_calls(self, batch: ProgramBatch) -> Mapping[int, Settled]:
        """Return a result for every call of a batch: from the record, or by making the call."""
        began = perf_counter() if batch.sleeps else 0.0
        settled: dict[int, Settled] = {}  # literals, because dict[…]() costs a microsecond more
        calls: list[ToolCall] = []
        origins: list[str] = []
        for pending in batch.calls:
            try:
                call = self._to_call(pending)
            except InvalidArguments as error:
                if pending.number in self._journal.digests:  # it was a valid call before
                    raise ToolFailed(_CHANGED) from error
                settled[pending.number] = _raise_in_program(error)
                continue
            recorded = self._find_recorded(pending.number, call)
            if recorded is not None:
                settled[pending.number] = recorded
            else:
                calls.append(call)
                origins.append(self._find_origin(pending.line))
                self._made[call.id] = pending, call
        if calls:
            inner = _inner_batch(origins, self._note_start, self._note_end, _MAX_RESULT_CHARS)
            _raise_end(await self._context.execute(*calls, batch=inner), cancelled=self._context.cancelled)
            for call in calls:
                number = self._made[call.id][0].number
                settled[number] = self._journal.settled[number]
        if batch.sleeps:
            settled |= await self._sleep(batch.sleeps, began)
        return settled

    async def _sleep(self, sleeps: Mapping[int, float], began: float) -> Mapping[int, Settled]:
        """Wait for the sleeps of a batch that are not on record: a repetition does not sleep again."""
        calls = {number: ToolCall("", "asyncio.sleep", str(seconds)) for number, seconds in sleeps.items()}
        fresh = [number for number, call in calls.items() if self._find_recorded(number, call) is None]
        if fresh:
            await asyncio.sleep(began + max(sleeps[number] for number in fresh) - perf_counter())
        for number in fresh:
            self._journal.settled[number] = Returned(None)
            self._journal.digests[number] = digest = _digest(calls[number])
            await self._context.keep({"call": number, "digest": digest, "returned": None}, wait=False)
        return dict.fromkeys(sleeps, Returned(None))

    def _find_recorded(self, number: int, call: ToolCall) -> Settled | None:
        """Return the result of a call that was made before; None if it must be made now."""
        digest = self._journal.digests.get(number)
        if digest is None:  # a program that repeats a declined call does not get the user asked again
            return self._journal.declined.get(_digest(call)) if self._journal.declined else None
        if digest != _digest(call):
            raise ToolFailed(_CHANGED)
        if number in self._journal.settled:
            return self._journal.settled[number]
        return None if self._find_facts(call.name).repeatable else Raised("RuntimeError", _UNKNOWN)

    def _find_facts(self, name: str) -> _Facts:
        facts = self._facts.get(name)
        if facts is None:
            tool = self._catalog.get(name)
            if tool is None:  # withheld: whether a call that was made before may be repeated is not known
                facts = _Facts(False, False, ())
            else:
                spec = tool.spec
                parameters = order_parameters(spec.input_schema)
                facts = _Facts(spec.annotations.repeatable, spec.output_schema is not None, parameters)
            self._facts[name] = facts
        return facts

    async def _note_start(self, call: ToolCall) -> None:
        if not self._find_facts(call.name).repeatable:
            pending, made = self._made[call.id]
            self._journal.digests[pending.number] = digest = _digest(made)
            await self._context.keep({"call": pending.number, "digest": digest, "function": pending.function})

    async def _note_end(self, outcome: Outcome) -> None:
        journal = self._journal
        pending, made = self._made[outcome.call.id]
        number = pending.number
        if isinstance(outcome, Interrupted):
            if journal.digests.pop(number, None):  # it asked while it ran, and runs again with the answer
                await self._context.keep({"call": number, "waits": True})
            return
        journal.settled[number] = result = self._settle(outcome)
        note: dict[str, Any] = {"call": number}
        if number not in journal.digests:  # no start on record: repeatable, or refused before it started
            journal.digests[number] = note["digest"] = _digest(made)
            note["function"] = pending.function
        if isinstance(result, Returned):
            note["returned"] = result.value
        else:
            note["raised"] = [result.kind, result.message]
            if isinstance(outcome, Failed) and isinstance(outcome.error, Declined):
                note["declined"] = True
                journal.declined[journal.digests[number]] = result
        if outcome.repairs and len(self._told) < _MAX_TOLD and (told := describe_changes(outcome)):
            self._told[told], note["told"] = None, told
        await self._context.keep(note, wait=False)

    def _to_call(self, pending: ProgramCall) -> ToolCall:
        """Return the call of a tool that a call of its function stands for.

        Raises:
            InvalidArguments: There are more positional arguments than parameters, or a parameter has two values.
        """
        name = self._functions[pending.function]
        arguments = self._name_arguments(pending, name) if pending.positional else pending.named
        try:
            text = _encode_arguments(arguments)
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidArguments(f"{pending.function}(): the arguments are not JSON: {error}") from error
        if "<" in text and (unawaited := find_unawaited(text)):
            message = f"{pending.function}(): the arguments have {unawaited}, a call without its result; write `await`"
            raise InvalidArguments(message)
        return _tool_call(f"{self._context.call.id}.{pending.number}", name, text)

    def _name_arguments(self, pending: ProgramCall, name: str) -> Mapping[str, Any]:
        if self._catalog.get(name) is None:  # withheld, and refused whatever the arguments are
            return pending.named
        names = self._find_facts(name).parameters
        if len(pending.positional) > len(names):
            raise InvalidArguments(f"{pending.function}() takes {len(names)} arguments: {', '.join(names)}")
        given = dict(zip(names, pending.positional, strict=False))
        if twice := given.keys() & pending.named.keys():
            raise InvalidArguments(f"{pending.function}() got two values for {', '.join(sorted(twice))}")
        return {**given, **pending.named}

    def _find_origin(self, line: int) -> str:
        """Return the program with a mark at a line, for the user who is asked about a call in it."""
        if line not in self._origins:
            self._origins[line] = mark_line(self._lines, line)
        return self._origins[line]

    def _settle(self, outcome: Completed | Failed) -> Settled:
        if isinstance(outcome, Failed):
            return _raise_in_program(outcome.error)
        structured = outcome.output.structured
        if structured is None or not self._find_facts(outcome.call.name).structured:
            return Returned(replace_surrogates(write_parts(outcome.output)))
        return Returned(thaw(structured))


def _raise_end(outcomes: Sequence[Outcome], *, cancelled: bool) -> None:
    """Raise what ends the program: questions of its calls, a halted run, a cancellation."""
    questions: list[Question] = []
    for outcome in outcomes:
        if isinstance(outcome, Interrupted):
            questions += outcome.questions
        elif isinstance(outcome, Failed) and _ends_program(outcome, cancelled=cancelled):
            raise outcome.error
    if questions:
        raise AnswersNeeded(questions)


def _ends_program(outcome: Failed, *, cancelled: bool) -> bool:
    if isinstance(outcome.error, Cancelled):
        return cancelled or not outcome.started  # otherwise a tool says so of its own work: a failure like others
    return isinstance(outcome.error, Halted)


def _raise_in_program(error: ToolError) -> Raised:
    kind = next((name for known, name in _EXCEPTIONS.items() if isinstance(error, known)), "RuntimeError")
    return Raised(kind, replace_surrogates(error.message))


def _digest(call: ToolCall) -> str:
    return hash_text(f"{call.name}\0{call.arguments}")[:32]
