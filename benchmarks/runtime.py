"""The runtime table: one call, wide turns, definitions, payloads, import."""

import asyncio
import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pydantic import BaseModel, TypeAdapter

from benchmarks.measure import cpu_seconds, ratio, seconds_each, start_seconds, table
from callwright import Completed, Effect, Executor, Limits, Registry, ToolCall, tool
from callwright.core.events import Event
from callwright.executor.admit import Gate
from callwright.hooks import Hook, PendingCall
from callwright.policy import AllowEverything, ByMode
from callwright.policy.decide import Policies
from callwright.providers.tool_encoding import to_openai_chat, to_payloads
from callwright.registry.catalog import Catalog
from callwright.tool.function import FunctionTool
from callwright.toolbox import coding_tools

TEXT = json.dumps({"city": "Paris", "days": 3, "unit": "C", "tags": ["a", "b"], "detail": True})
_BINDS = 200
Row = tuple[str, str, str, bool]


async def bare(city: str, days: int, unit: str, tags: list[str], detail: bool) -> str:
    return city


def weather(limits: Limits) -> FunctionTool:
    @tool(effect=Effect.READ, limits=limits, name="weather")
    async def weather(city: str, days: int, unit: str, tags: list[str], detail: bool) -> str:
        """Weather of a city."""
        return city

    return weather


@tool(effect=Effect.READ)
async def nap() -> str:
    """Take 50 ms without blocking."""
    await asyncio.sleep(0.05)
    return "rested"


@tool(effect=Effect.READ)
def snore() -> str:
    """Take 50 ms of a thread."""
    time.sleep(0.05)
    return "rested"


def ignore(event: Event) -> None:
    """Observe nothing."""


class InspectingHook(Hook):
    """A hook that is asked before and after every call, unlike a plain `Hook`."""

    def before(self, pending: PendingCall) -> None:
        return None

    def after(self, pending: PendingCall, outcome: object) -> None:
        return None


async def calls() -> list[Row]:
    plain = Executor(Registry(weather(Limits(seconds=math.inf))), AllowEverything())
    full = Executor(Registry(weather(Limits())), ByMode("default"), hooks=[Hook()])
    hooked = Executor(Registry(weather(Limits())), ByMode("default"), hooks=[InspectingHook()])
    observed = Executor(Registry(weather(Limits())), ByMode("default"), observe=ignore)

    async def floor() -> object:
        return await bare(**json.loads(TEXT))

    rows: list[Row] = []
    for name, executor, target in (
        ("one call, nothing attached", plain, 1.5),
        ("one call, hook, mode policy, deadline, statistics", full, 2.5),
        ("the same with a hook that inspects before and after", hooked, 4.0),
        ("the same with an observer", observed, math.inf),
    ):
        assert isinstance(await executor.run("weather", TEXT), Completed)
        times, microseconds = await ratio(lambda executor=executor: executor.run("weather", TEXT), floor)
        shown = f"<= {target}x" if target < math.inf else "-"
        rows.append((name, f"{times:.2f}x of {microseconds:.1f} µs", shown, times <= target))
    return [*rows, await nested_call(), await further_call(full)]


async def nested_call() -> Row:
    """Measure a call whose arguments hold a model, which is validated."""
    function = functions(1)[0]
    text = json.dumps({"path": "src", "pattern": "x", "limit": 9, "recursive": True, "options": {"deep": True}})
    executor = Executor(Registry(tool(effect=Effect.READ)(function)), AllowEverything())
    assert isinstance(await executor.run("search_0", text), Completed)
    times, microseconds = await ratio(lambda: executor.run("search_0", text), lambda: function(**json.loads(text)))
    return "one call with a nested model", f"{times:.2f}x of {microseconds:.1f} µs", "<= 2x", times <= 2


async def further_call(executor: Executor) -> Row:
    """Measure what each further call of a turn adds."""
    batches = [[ToolCall(str(number), "weather", TEXT) for number in range(count)] for count in (1, 101)]
    best = [math.inf, math.inf]
    for _ in range(40):
        for place, batch in enumerate(batches):
            best[place] = min(best[place], await seconds_each(lambda batch=batch: executor.execute(batch), 10))
    each = (best[1] - best[0]) / 100 * 1e6
    return "each further call of a turn", f"{each:.1f} µs", "<= 15 µs", each <= 15


def repair_stage() -> list[Row]:
    """Measure what repairs add to the binding of a call that needs none: with them and without, in turns."""
    with TemporaryDirectory() as folder:
        Path(folder, "calc.py").write_text("a = 1\n")
        registry = Registry(weather(Limits()), *coding_tools(folder))
        rows: list[Row] = []
        for title, call in (
            ("repair stage, a well-formed call", ToolCall("1", "weather", TEXT)),
            ("repair stage, a well-formed call with a path", ToolCall("1", "read", '{"path": "calc.py"}')),
        ):
            repairing = Gate(Policies(AllowEverything()), ())
            plain = Gate(Policies(AllowEverything()), (), repairs="off")
            catalog, on, off = registry.snapshot(), math.inf, math.inf
            for _ in range(200):
                off = min(off, _bind_seconds(plain, call, catalog))
                on = min(on, _bind_seconds(repairing, call, catalog))
            extra = max(0.0, on - off) * 1e6
            rows.append((title, f"{extra:.1f} µs of {on * 1e6:.1f} µs", "<= 3 µs", extra <= 3))
    return rows


def _bind_seconds(gate: Gate, call: ToolCall, catalog: Catalog) -> float:
    began = time.process_time()
    for _ in range(_BINDS):
        gate.bind(call, catalog, "")
    return (time.process_time() - began) / _BINDS


async def wide_turns() -> list[Row]:
    executor = Executor(Registry(nap, snore), width=2_000)
    rows: list[Row] = []
    for name, target in (("nap", {100: 55, 1000: 80}), ("snore", {100: 58, 1000: 110})):
        for count, limit in target.items():
            best = math.inf
            for _ in range(8):  # the first ones start the threads
                batch = [ToolCall(str(number), name) for number in range(count)]
                began = time.perf_counter()
                outcomes = await executor.execute(batch)
                best = min(best, time.perf_counter() - began)
                assert all(isinstance(outcome, Completed) for outcome in outcomes)
            kind = "async" if name == "nap" else "sync"
            rows.append(
                (f"{count} {kind} calls of 50 ms", f"{best * 1e3:.0f} ms", f"<= {limit} ms", best * 1e3 <= limit)
            )
    return rows


class Options(BaseModel):
    deep: bool = False
    limit: int = 10


def functions(count: int) -> list[Callable[..., Any]]:
    made: list[Callable[..., Any]] = []
    for number in range(count):

        async def search(path: str, pattern: str, limit: int, recursive: bool, options: Options) -> str:
            """Search files.

            Args:
                path: Where to look.
                pattern: What to look for.
                limit: How many hits.
                recursive: Also below.
                options: More choices.
            """
            return path

        search.__name__ = f"search_{number}"
        made.append(search)
    return made


def definitions() -> list[Row]:
    given = functions(1_000)
    floor = cpu_seconds(lambda: [TypeAdapter(function).json_schema() for function in given], 2)
    define = cpu_seconds(lambda: [tool(function) for function in given])
    whole = cpu_seconds(lambda: json.dumps([tool(function).spec.input_schema for function in given]))
    rows: list[Row] = [
        (
            "define 1,000 typed tools",
            f"{define / floor:.3f}x of {floor * 1e3:.0f} ms",
            "<= 0.15x",
            define / floor <= 0.15,
        ),
        ("define and first payload", f"{whole / floor:.3f}x", "<= 1.05x", whole / floor <= 1.05),
    ]
    for count in (1_000, 10_000):
        registry = Registry(*(tool(function) for function in functions(count)))
        first = registry.definitions()
        later = cpu_seconds(lambda registry=registry: [registry.definitions() for _ in range(1_000)]) / 1_000
        assert registry.definitions() is first
        rows.append((f"payload of {count:,} tools, later turns", f"{later * 1e3:.4f} ms", "<= 0.05 ms", later <= 5e-5))
        to_payloads(registry.definitions(), to_openai_chat)
        shaped = cpu_seconds(
            lambda registry=registry: [to_payloads(registry.definitions(), to_openai_chat) for _ in range(1_000)]
        )
        rows.append(("the same in OpenAI's shape", f"{shaped:.4f} ms", "<= 0.05 ms", shaped <= 0.05))
        # best of several: a full garbage collection of so many tools takes as long as thousands of changes
        each = cpu_seconds(lambda registry=registry: change(registry, 1_000)) / 1_000
        rows.append((f"add and remove one of {count:,}", f"{each * 1e6:.1f} µs", "<= 10 µs", each <= 1e-5))
    return rows


def change(registry: Registry, times: int) -> None:
    """Add one tool and remove it again."""
    one = tool(name="one_more")(functions(1)[0])
    for _ in range(times):
        registry.add(one)
        registry.remove("one_more")


def starting() -> list[Row]:
    first = (
        "import asyncio\n"
        "from callwright import Effect, Executor, Registry, tool\n"
        "@tool(effect=Effect.READ)\n"
        "async def greet(name: str) -> str:\n"
        "    'Greet a person.'\n"
        "    return name\n"
        "asyncio.run(Executor(Registry(greet)).run('greet', '{\"name\": \"Ada\"}'))\n"
    )
    python = start_seconds("pass")
    imported, ran = start_seconds("import callwright") / python, start_seconds(first) / python
    return [
        ("import callwright", f"{imported:.2f}x of {python * 1e3:.1f} ms", "<= 2x", imported <= 2),
        ("until the first tool has run", f"{ran:.1f}x", "<= 10x", ran <= 10),
    ]


def main() -> None:
    """Print the table."""
    rows = [*asyncio.run(calls()), *repair_stage(), *asyncio.run(wide_turns()), *definitions(), *starting()]
    table("runtime (floor of a call: await fn(**json.loads(text)))", rows)
