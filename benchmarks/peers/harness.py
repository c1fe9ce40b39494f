"""Measures one package; run by that package's own Python: `python -m benchmarks.peers.harness ADAPTER RESULT.json`."""

import asyncio
import gc
import inspect
import json
import resource
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from importlib import import_module, metadata
from pathlib import Path
from typing import Any, cast

from pydantic import TypeAdapter

from benchmarks.measure import Work, cpu_seconds, ratio, seconds_each
from benchmarks.peers.contract import Adapter, ApprovingAdapter, Call, Figures, Session
from benchmarks.peers.turns import approving, behaving, tools_of, waiting
from benchmarks.peers.workload import ANSWER, TEXT, Watched, searches

COUNT = 1_000


def starting(adapter: Adapter, repeats: int = 6) -> Figures:
    """Measure the import: wall milliseconds, and processor time as a ratio to bare Python."""
    lines = {"bare": "pass", "import": f"import {adapter.PACKAGE}", "names": adapter.IMPORT}
    costs: dict[str, list[tuple[float, float]]] = {name: [] for name in lines}
    for _ in range(repeats):
        for name, line in lines.items():
            costs[name].append(_start(line))
    wall = {f"{name}_ms": min(each[0] for each in spent) * 1e3 for name, spent in costs.items()}
    bare, *others = (min(each[1] for each in spent) for spent in costs.values())
    return {**wall, "import_ratio": others[0] / bare, "names_ratio": others[1] / bare}


def _start(code: str) -> tuple[float, float]:
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
    after, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - began
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def defining(adapter: Adapter, count: int = COUNT) -> Figures:
    """Measure definitions, compared with pydantic for the same functions."""
    kinds = {"asynchronous": adapter.ASYNC, "nested": adapter.NESTED}
    floor = cpu_seconds(lambda: [TypeAdapter(function).json_schema() for function in searches(count)], 2)
    define = cpu_seconds(lambda: adapter.define(searches(count, **kinds)), 2)
    first = cpu_seconds(
        lambda: _listed(next(iter(adapter.payloads(adapter.define(searches(count, **kinds))).values()))), 1
    )
    listed = adapter.payloads(adapter.define(searches(count, **kinds)))
    later = {name: _later_seconds(work) * 1e3 for name, work in listed.items()}
    figures = {"define_us": define / count * 1e6, "define_ratio": define / floor, "first_ratio": first / floor}
    return {**figures, "payload_ms": later}


def _later_seconds(work: Callable[[], Any]) -> float:
    _listed(work)
    times = int(min(1_000, max(1, 0.02 / (cpu_seconds(lambda: _listed(work), 1) + 1e-6))))
    return cpu_seconds(lambda: [_listed(work) for _ in range(times)], 5) / times


def _listed(work: Callable[[], Any]) -> object:
    made = work()
    return asyncio.run(_awaited(made)) if inspect.isawaitable(made) else made


async def _awaited(made: Awaitable[object]) -> object:
    return await made


async def calling(adapter: Adapter) -> Figures:
    """Measure one call, and each further call of a turn."""
    function = searches(1, asynchronous=adapter.ASYNC)[0]

    async def floor() -> object:
        made = function(**json.loads(TEXT))
        return await made if adapter.ASYNC else made

    async with adapter.opened(tools_of(adapter, Watched())) as session:
        call_ratio, floor_us = await _ratio(session.call, floor)
        bare_ratio = None if session.bare is None else (await _ratio(session.bare, floor))[0]
        lone, many = [await _cpu_of_turn(session, [("search_0", TEXT)] * size) for size in (1, 101)]
    further_us = (many - lone) / 100 * 1e6
    figures = {
        "floor_us": floor_us,
        "call_ratio": call_ratio,
        "call_us": call_ratio * floor_us,
        "bare_ratio": bare_ratio,
    }
    return {**figures, "further_us": further_us, "further_ratio": further_us / floor_us, "lone_us": lone * 1e6}


async def _ratio(call: Callable[[str, str], Awaitable[object]], floor: Work) -> tuple[float, float]:
    answer = await call("search_0", TEXT)  # what is built at the first call is part of no later one
    if ANSWER not in str(answer):
        raise AssertionError(f"the tool did not answer: {answer}")
    times = int(min(2_000, max(20, 0.02 / await seconds_each(lambda: call("search_0", TEXT), 3))))
    return await ratio(lambda: call("search_0", TEXT), floor, times=times, slices=15)


async def _cpu_of_turn(session: Session, calls: Sequence[Call]) -> float:
    gc.collect()
    return min([await seconds_each(lambda: session.turn(calls), 1) for _ in range(6)])


def measure(adapter: Adapter) -> Figures:
    """Return all figures of one package; a failing workload gives its reason."""
    figures: Figures = {"version": metadata.version(adapter.DISTRIBUTION), "failed": {}}
    figures |= {"call": adapter.CALL, "turn": adapter.TURN, "tuning": adapter.TUNING}
    workloads: dict[str, Callable[[], Figures]] = {
        "import": lambda: starting(adapter),
        "definitions": lambda: defining(adapter),
        "one call": lambda: asyncio.run(calling(adapter)),
        "behaviour": lambda: asyncio.run(behaving(adapter)),
        "wide turns": lambda: asyncio.run(waiting(adapter, tuned=False)),
    }
    if isinstance(adapter, ApprovingAdapter):
        workloads["approvals"] = lambda: asyncio.run(approving(adapter))
    if adapter.TUNING:
        workloads["wide turns, tuned"] = lambda: asyncio.run(waiting(adapter, tuned=True))
    for name, workload in workloads.items():
        try:
            figures |= workload()
        except Exception as error:  # noqa: BLE001 - one workload a package cannot do must not hide the others
            figures["failed"][name] = f"{type(error).__name__}: {error}"
    return figures


if __name__ == "__main__":
    module = cast(Adapter, import_module(f"benchmarks.peers.{sys.argv[1]}"))
    Path(sys.argv[2]).write_text(json.dumps(measure(module)), encoding="utf-8")
