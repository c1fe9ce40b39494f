"""Calls that are invalid in ever new ways end the run early."""

import pytest

from callwright import Effect, ToolCall, tool
from callwright.agent import Agent, Done, RunLimits, Stopped
from callwright.providers.base import ModelRequest
from callwright.testing import ScriptedProvider


def _invalid_script(name: str) -> ScriptedProvider:
    numbers = iter(range(100))

    def reply(request: ModelRequest) -> ToolCall:
        number = next(numbers)
        return ToolCall(f"c{number}", name.format(number=number), {"wrong": number})

    return ScriptedProvider.answering(reply)


@pytest.mark.parametrize("name", ["strict", "missing_{number}"])
async def test_calls_that_are_invalid_in_ever_new_ways_end_the_run(name: str) -> None:
    @tool(effect=Effect.READ)
    async def strict(number: int) -> str:
        """Take a number."""
        return str(number)

    result = await Agent(_invalid_script(name), [strict], limits=RunLimits(invalid_calls=4)).run("go")
    assert isinstance(result, Stopped) and result.kind == "repeated" and result.turns == 4
    assert "4 times in a row" in result.reason
    unlimited = await Agent(_invalid_script(name), [strict], limits=RunLimits(invalid_calls=None, turns=12)).run("go")
    assert isinstance(unlimited, Stopped) and unlimited.kind == "turns"


async def test_valid_call_starts_the_count_of_invalid_ones_again() -> None:
    @tool(effect=Effect.READ)
    async def strict(number: int) -> str:
        """Take a number."""
        return str(number)

    def reply(request: ModelRequest) -> ToolCall | str:
        number = len(request.messages) // 2
        if number >= 9:
            return "done"
        return ToolCall(f"c{number}", "strict", {"number": number} if number % 3 == 2 else {"wrong": number})

    result = await Agent(ScriptedProvider.answering(reply), [strict], limits=RunLimits(invalid_calls=3)).run("go")
    assert isinstance(result, Done)
