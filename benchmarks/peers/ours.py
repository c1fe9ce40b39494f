"""callwright itself, measured by the same harness."""

import math
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from benchmarks.peers.contract import ASKED_AGAIN, Call, Function, Session
from callwright import Answers, Effect, Executor, Interrupted, Limits, Registry, ToolCall, tool
from callwright.policy import AllowEverything
from callwright.providers.tool_encoding import to_openai_chat, to_payloads

DISTRIBUTION = "callwright"
PACKAGE = "callwright"
IMPORT = "from callwright import Executor, Registry, tool"
CALL = "Executor.run"
TURN = "Executor.execute (no model)"
TUNING = "width=1000"
ASYNC = NESTED = True


def define(functions: Sequence[Function]) -> list[Any]:
    return [tool(effect=Effect.READ)(function) for function in functions]


def payloads(tools: list[Any]) -> dict[str, Callable[[], Any]]:
    registry = Registry(*tools)
    return {
        "Registry.definitions()": registry.definitions,
        "the same in OpenAI's shape": lambda: to_payloads(registry.definitions(), to_openai_chat),
    }


def _unlimited(made: Any) -> Any:
    return tool(effect=Effect.READ, limits=Limits(seconds=math.inf))(made.function)


@asynccontextmanager
async def opened(tools: list[Any], *, tuned: bool = False) -> AsyncIterator[Session]:
    executor = Executor(Registry(*tools), width=1_000 if tuned else None)

    async def turn(calls: Sequence[Call]) -> list[str]:
        outcomes = await executor.execute([ToolCall(str(place), *call) for place, call in enumerate(calls)])
        return [outcome.text for outcome in outcomes]

    free = Executor(Registry(*(_unlimited(each) for each in tools)), AllowEverything())
    yield Session(executor.run, turn, free.run)


async def approve(function: Function, asked: Call, stored: Call, times: int) -> str:
    executor = Executor(Registry(tool(effect=Effect.WRITE)(function)))
    outcomes = await executor.execute([ToolCall("1", *asked)])
    answers = Answers.approving(
        [each for outcome in outcomes if isinstance(outcome, Interrupted) for each in outcome.questions]
    )
    for _ in range(times):
        outcomes = await executor.execute([ToolCall("1", *stored)], answers=answers)
    return ASKED_AGAIN if isinstance(outcomes[0], Interrupted) else f"told: {outcomes[0].text}"
