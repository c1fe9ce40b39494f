"""Code mode: what a call in a program costs, and what programs save in requests and tokens."""

import asyncio
import json
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.bfcl_chains import compare_chains
from benchmarks.measure import table
from callwright import Agent, Answers, Effect, Executor, Registry, SqliteStore, ToolCall, tool
from callwright.agent import Paused, RunLimits
from callwright.codemode import CodeLimits, CodeMode
from callwright.core.content import estimate_tokens
from callwright.core.messages import AssistantMessage
from callwright.policy import AllowEverything
from callwright.testing import ScriptedProvider

_CALLS = 1_000
_ITEMS = 50


@tool(effect=Effect.READ)
async def look(number: int) -> int:
    """Look a number up."""
    return number


@tool(effect=Effect.READ)
async def order(number: int) -> dict[str, Any]:
    """Return an order with its lines."""
    return {
        "number": number,
        "customer": f"customer {number % 7}",
        "lines": [{"item": f"item {n}", "n": n} for n in range(9)],
    }


async def _best_micros(executor: Executor, code: str, repeats: int = 7) -> float:
    best = float("inf")
    for _ in range(repeats):
        began = time.perf_counter()
        outcome = await executor.run("run_code", {"code": code})
        best = min(best, time.perf_counter() - began)
        assert outcome.text == str(sum(range(_CALLS))), outcome
    return best / _CALLS * 1e6


async def _plain_micros(repeats: int = 7) -> float:
    executor, best = Executor(Registry(look), AllowEverything()), float("inf")
    for _ in range(repeats):
        began = time.perf_counter()
        for number in range(_CALLS):
            await executor.run("look", {"number": number})
        best = min(best, time.perf_counter() - began)
    return best / _CALLS * 1e6


async def _measure_calls() -> list[tuple[str, str, str, bool]]:
    executor = Executor(CodeMode(Registry(look), limits=CodeLimits(calls=_CALLS)), AllowEverything())
    plain = await _plain_micros()
    one_by_one = await _best_micros(executor, f"t = 0\nfor n in range({_CALLS}):\n    t += await look(number=n)\nt")
    together = await _best_micros(executor, f"sum(await asyncio.gather(*[look(number=n) for n in range({_CALLS})]))")
    return [
        (
            f"{_CALLS} calls one by one, each above a plain call",
            f"{one_by_one - plain:.0f} µs",
            "≤ 150 µs",
            one_by_one - plain <= 150,
        ),
        (
            f"{_CALLS} calls gathered, each above a plain call",
            f"{together - plain:.0f} µs",
            "≤ 150 µs",
            together - plain <= 150,
        ),
    ]


async def _run_script(registry: Registry, *script: Any, code: bool) -> tuple[int, int]:
    """Return the requests and the tokens of all requests together of a scripted run."""
    toolset = CodeMode(registry) if code else registry
    provider = ScriptedProvider(*script)
    agent = Agent(provider, executor=Executor(toolset, AllowEverything()), limits=RunLimits(turns=100))
    await agent.run("Do it.", session="s")
    definitions = sum(
        estimate_tokens(spec.name + spec.description + json.dumps(spec.input_schema, default=dict))
        for spec in toolset.snapshot().definitions
    )
    tokens, requests, seen = 0, 0, 0
    for message in await agent.messages("s"):
        if isinstance(message, AssistantMessage):
            requests += 1
            tokens += seen + definitions  # a request sends everything before it
        seen += estimate_tokens(repr(message))
    return requests, tokens


async def _measure_savings() -> list[tuple[str, str, str, bool]]:
    rows: list[tuple[str, str, str, bool]] = []
    loop = f"names = [(await order(number=n))['customer'] for n in range({_ITEMS})]\nprint(sorted(set(names)))"
    chain = (
        "a = await look(number=1)\nb = await order(number=a)\nprint(b['customer'], await look(number=len(b['lines'])))"
    )
    cases: list[tuple[str, list[Any], str]] = [
        (f"a loop over {_ITEMS} items", [[ToolCall(str(n), "order", {"number": n})] for n in range(_ITEMS)], loop),
        (
            "a chain of three calls",
            [
                [ToolCall("1", "look", {"number": 1})],
                [ToolCall("2", "order", {"number": 1})],
                [ToolCall("3", "look", {"number": 9})],
            ],
            chain,
        ),
    ]
    for name, calls, code in cases:
        registry = Registry(look, order)
        before = await _run_script(registry, *calls, "done", code=False)
        after = await _run_script(registry, [ToolCall("1", "run_code", {"code": code})], "done", code=True)
        rows.append((f"{name}: requests", f"{before[0]} → {after[0]}", "fewer", after[0] < before[0]))
        rows.append((f"{name}: tokens of all requests", f"{before[1]:,} → {after[1]:,}", "fewer", after[1] < before[1]))
    return rows


async def _measure_suspension() -> list[tuple[str, str, str, bool]]:
    code = "t = 0\nfor n in range(100):\n    t += await look(number=n)\nawait stop(total=t)"

    @tool(effect=Effect.WRITE)
    async def stop(total: int) -> str:
        """Report the total."""
        return f"total {total}"

    with tempfile.TemporaryDirectory() as folder:
        async with SqliteStore(Path(folder) / "s.db") as store:
            registry = Registry(look, stop)
            call = ToolCall("c", "run_code", {"code": code})
            agent = Agent(ScriptedProvider([call]), executor=Executor(CodeMode(registry)), sessions=store)
            paused = await agent.run("Go.", session="s")
            assert isinstance(paused, Paused)
            began = time.perf_counter()
            fresh = Agent(ScriptedProvider("done"), executor=Executor(CodeMode(registry)), sessions=store)
            await fresh.resume("s", Answers.approving(paused.questions))
            millis = (time.perf_counter() - began) * 1e3
    return [("resumed at a question after 100 calls", f"{millis:.0f} ms", "≤ 100 ms", millis <= 100)]


async def _measure() -> None:
    table("Code mode, in the same process", await _measure_calls())
    table("Code mode, the same scripted task with and without", await _measure_savings())
    table("Code mode, suspension", await _measure_suspension())
    figures, equal = await compare_chains()
    table("Code mode, BFCL's multi-turn chains as programs", [("final states", figures, "all equal", equal)])


def main() -> None:
    """Print the tables."""
    asyncio.run(_measure())
