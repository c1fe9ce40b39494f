"""Metrics: the conventions' histograms, and counts by outcome."""

from typing import TYPE_CHECKING

import pytest

from callwright import Effect, Executor, Registry, ToolCall, ToolFailed, tool
from callwright.agent import Agent, Prices, Requests, RunLimits
from callwright.core.content import Text
from callwright.core.messages import AssistantMessage, Usage
from callwright.policy import AllowEverything
from callwright.providers.base import ProviderError
from callwright.retry import RetryPolicy
from callwright.testing.fakes import ScriptedProvider

if TYPE_CHECKING:
    from tests.telemetry.conftest import Collected


@tool(effect=Effect.READ)
async def look() -> str:
    """Look."""
    return "ok"


@tool(effect=Effect.READ)
async def refuse() -> str:
    """Say no."""
    raise ToolFailed("no")


@tool(effect=Effect.READ, aliases=("find_it",))
async def seek() -> str:
    """Seek."""
    return "ok"


async def test_requests_record_duration_and_tokens_by_type(collected: "Collected") -> None:
    said = AssistantMessage((Text("hi"),), usage=Usage(100, 20, 30, 7), model="m-1")
    agent = Agent(ScriptedProvider(said, model="m"), observe=collected.telemetry)
    await agent.run("go")
    about = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "_OTHER",
        "gen_ai.request.model": "m",
        "gen_ai.response.model": "m-1",
    }
    for name in ("gen_ai.client.operation.duration", "gen_ai.client.operation.time_to_first_chunk"):
        ((found, point),) = collected.points(name)
        assert (found, point.count) == (about, 1)
    tokens = {found["gen_ai.token.type"]: point.sum for found, point in collected.points("gen_ai.client.token.usage")}
    assert tokens == {"input": 137, "output": 20}


async def test_histograms_use_the_conventions_buckets(collected: "Collected") -> None:
    agent = Agent(ScriptedProvider(AssistantMessage((Text("hi"),), usage=Usage(1, 1))), observe=collected.telemetry)
    await agent.run("go")
    ((_, seconds),) = collected.points("gen_ai.client.operation.duration")
    assert (seconds.explicit_bounds[0], seconds.explicit_bounds[-1]) == (0.01, 81.92)
    assert collected.points("gen_ai.client.token.usage")[0][1].explicit_bounds[:3] == (1, 4, 16)


async def test_failed_request_records_error_without_tokens(collected: "Collected") -> None:
    agent = Agent(
        ScriptedProvider(ProviderError("no", fault="auth")),
        observe=collected.telemetry,
        requests=Requests(retry=RetryPolicy(max_attempts=1)),
    )
    await agent.run("go")
    ((found, _),) = collected.points("gen_ai.client.operation.duration")
    assert found["error.type"] == "auth"
    assert collected.points("gen_ai.client.token.usage") == []
    ((run, _),) = collected.points("gen_ai.invoke_agent.duration")
    assert run["error.type"] == "provider"


async def test_calls_are_counted_by_outcome_and_timed_if_run(collected: "Collected") -> None:
    executor = Executor(Registry(look, refuse), AllowEverything(), observe=collected.telemetry)
    await executor.execute([ToolCall(str(n), name) for n, name in enumerate(("look", "look", "refuse", "a", "b"))])
    counts = {
        (found["gen_ai.tool.name"], found["callwright.outcome"]): point.value
        for found, point in collected.points("callwright.tool.calls")
    }
    assert counts == {("look", "completed"): 2, ("refuse", "tool_failed"): 1, ("_OTHER", "not_found"): 2}
    timed = {
        (found["gen_ai.tool.name"], found.get("error.type")): point.count
        for found, point in collected.points("gen_ai.execute_tool.duration")
    }
    assert timed == {("look", None): 2, ("refuse", "tool_failed"): 1}


async def test_calls_are_counted_by_the_name_of_the_tool(collected: "Collected") -> None:
    executor = Executor(Registry(seek, refuse), AllowEverything(), observe=collected.telemetry)
    for name in ("seek", "SEEK", "find_it", "functions.seek"):
        await executor.run(name)
    await executor.execute([ToolCall(str(n), name) for n, name in enumerate(("Seek", "find_it", "REFUSE", "x"))])
    counts = {found["gen_ai.tool.name"]: point.value for found, point in collected.points("callwright.tool.calls")}
    assert counts == {"seek": 6, "refuse": 1, "_OTHER": 1}
    timed = {
        found["gen_ai.tool.name"]: point.count for found, point in collected.points("gen_ai.execute_tool.duration")
    }
    assert timed == {"seek": 6, "refuse": 1}
    assert {span.name for span in collected.spans} == {"execute_tool seek", "execute_tool refuse", "execute_tool x"}


async def test_cost_uses_prices_of_run_limits_first(collected: "Collected") -> None:
    said = AssistantMessage((Text("hi"),), usage=Usage(1_000_000, 0))
    budget = RunLimits(prices=Prices(input=4.5, output=0))
    await Agent(ScriptedProvider(said, model="gpt-5"), observe=collected.telemetry, limits=budget).run("go")
    await Agent(ScriptedProvider(said, model="gpt-5"), observe=collected.telemetry).run("go")
    await Agent(ScriptedProvider(said, model="unlisted-model"), observe=collected.telemetry).run("go")
    costs = {found["gen_ai.request.model"]: point.value for found, point in collected.points("callwright.cost")}
    assert costs == {"gpt-5": pytest.approx(4.5 + 1.25)}
