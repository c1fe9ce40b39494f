"""Property test: exactly one outcome per call, in call order, for any mix of calls and cancellations."""

import asyncio
from collections.abc import Sequence

from hypothesis import given, settings, strategies as st

from callwright import (
    Answers,
    Completed,
    Effect,
    Executor,
    Failed,
    Interrupted,
    Limits,
    Outcome,
    Registry,
    ToolCall,
    ToolFailed,
    Transient,
    Turn,
    TurnCancelled,
    tool,
)
from callwright.hooks import Answer, Ask, Deny, Halt, PendingCall, Verdict
from callwright.policy import AllowEverything
from callwright.testing import FakeClock, ScriptedHook


@tool(effect=Effect.READ)
async def fine() -> str:
    """Work."""
    await asyncio.sleep(0)
    return "fine"


@tool(effect=Effect.WRITE)
async def change() -> str:
    """Change something."""
    await asyncio.sleep(0)
    return "changed"


@tool(effect=Effect.READ)
def threaded() -> str:
    """Work in a thread."""
    return "threaded"


@tool(effect=Effect.READ)
async def failing() -> str:
    """Fail."""
    raise ToolFailed("no")


@tool(effect=Effect.READ)
async def busy() -> str:
    """Never have time."""
    raise Transient("busy")


@tool(effect=Effect.READ, limits=Limits(seconds=0.005))
async def late() -> str:
    """Take too long."""
    await asyncio.sleep(30)
    return "late"


@tool(effect=Effect.READ)
async def stubborn() -> str:
    """Swallow one cancellation."""
    try:
        await asyncio.sleep(0.02)
    except asyncio.CancelledError:
        return "stayed"
    return "done"


@tool(effect=Effect.READ, limits=Limits(concurrency=1))
async def narrow() -> str:
    """Work alone."""
    await asyncio.sleep(0)
    return "narrow"


VERDICTS: dict[str, Verdict] = {
    "refuse": Deny("no"),
    "answer": Answer("cached"),
    "ask": Ask("?"),
    "halt": Halt("stop"),
}


def verdict(pending: PendingCall) -> Verdict | None:
    return next((verdict for word, verdict in VERDICTS.items() if word in pending.call.id), None)


names = st.sampled_from(["fine", "change", "threaded", "failing", "busy", "late", "stubborn", "narrow", "missing"])
marks = st.sampled_from(["", "", "", "", "refuse", "answer", "ask", "halt"])
arguments = st.sampled_from(["{}", "{}", "{}", "{", '{"extra": 1}'])
batches = st.lists(st.tuples(names, marks, arguments), max_size=9)


async def carry_out(calls: Sequence[ToolCall], width: int, cancel_after: int | None) -> tuple[list[Outcome], bool]:
    tools = (fine, change, threaded, failing, busy, late, stubborn, narrow)
    executor = Executor(
        Registry(*tools), AllowEverything(), hooks=[ScriptedHook(verdict)], width=width, clock=FakeClock()
    )
    task = asyncio.create_task(executor.execute(calls, turn=Turn(session_id="s")))
    if cancel_after is not None:
        for _ in range(cancel_after):
            await asyncio.sleep(0)
        task.cancel()
    try:
        outcomes = await task
    except asyncio.CancelledError as stopped:
        cancelled = TurnCancelled.find(stopped)  # None: cancelled before anything was admitted
        return [] if cancelled is None else cancelled.outcomes, True
    questions = [q for outcome in outcomes if isinstance(outcome, Interrupted) for q in outcome.questions]
    if questions:
        answers = Answers.approving(questions[::2])
        for question in questions[1::2]:
            answers.decline(question, "no")
        outcomes = await executor.execute(calls, turn=Turn(session_id="s"), answers=answers)
        assert not any(isinstance(outcome, Interrupted) for outcome in outcomes)
    return outcomes, False


@settings(max_examples=60, deadline=None)
@given(batches, st.integers(1, 4), st.one_of(st.none(), st.integers(0, 12)))
def test_every_call_has_one_outcome_in_call_order(
    batch: list[tuple[str, str, str]], width: int, cancel_after: int | None
) -> None:
    calls = [ToolCall(f"{place}-{mark}", name, text) for place, (name, mark, text) in enumerate(batch)]
    outcomes, cancelled = asyncio.run(carry_out(calls, width, cancel_after))
    if outcomes or not cancelled:
        assert [outcome.call for outcome in outcomes] == calls
    for outcome in outcomes:
        assert isinstance(outcome, (Completed, Failed, Interrupted))
        if isinstance(outcome, Failed):
            assert outcome.error.message, "a failure always says something"
        if outcome.call.name == "missing" and not cancelled and isinstance(outcome, Failed):
            assert not outcome.started
