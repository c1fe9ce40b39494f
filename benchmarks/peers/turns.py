"""Whole turns of one package: how long wide ones take, and what happens when something is wrong."""

import asyncio
import json
import time
from collections.abc import Sequence
from typing import Any

from benchmarks.peers.contract import Adapter, ApprovingAdapter, Call, Figures, Session
from benchmarks.peers.workload import TEXT, WRONG, Watched

_SERIAL_SECONDS = 2.0
_ENDED = "run ended"
_NUMBER = '{"number": 1}'
_ASKED, _EDITED = '{"amount": 10}', '{"amount": 999}'


def tools_of(adapter: Adapter, watched: Watched) -> list[Any]:
    """Return the observed tools as tools of the package."""
    return adapter.define(watched.tools(asynchronous=adapter.ASYNC))


async def waiting(adapter: Adapter, *, tuned: bool) -> Figures:
    """Return the wall and processor milliseconds of a turn of 50 ms calls, best of several."""
    prefix = "tuned_" if tuned else ""
    figures: Figures = {}
    watched = Watched()
    async with adapter.opened(tools_of(adapter, watched), tuned=tuned) as session:
        for name, kind in (("nap", "async"), ("snore", "sync")) if adapter.ASYNC else (("snore", "sync"),):
            for size in (100, 1_000):
                wall, processor = await _seconds_of_turn(session, watched, name, size)
                figures[f"{prefix}{kind}_{size}"] = [wall * 1e3, processor * 1e3]
                if wall > _SERIAL_SECONDS:
                    break
    return figures


async def _seconds_of_turn(session: Session, watched: Watched, name: str, size: int) -> tuple[float, float]:
    wall, processor = [], []
    for _ in range(5 if size == 100 else 4):
        watched.rested = 0
        began, spent = time.perf_counter(), time.process_time()
        await session.turn([(name, json.dumps({"number": number})) for number in range(size)])
        wall.append(time.perf_counter() - began)
        processor.append(time.process_time() - spent)
        if watched.rested != size:
            raise AssertionError(f"{watched.rested} of {size} calls of {name} ran to their end")
        if wall[-1] > _SERIAL_SECONDS:
            break
    return min(wall), min(processor)


async def behaving(adapter: Adapter) -> Figures:
    """Return how turns with errors end, and how many calls run in parallel."""
    watched = Watched()
    nap = "nap" if adapter.ASYNC else "snore"
    async with adapter.opened(tools_of(adapter, watched)) as session:
        raises = await _told(session, [("boom", _NUMBER)])
        unknown = await _told(session, [("serch_0", TEXT)])
        wrong = await _told(session, [("look", WRONG)])
        siblings = await _siblings(session, watched, nap)
        watched.peak = 0
        await session.turn([(nap, json.dumps({"number": number})) for number in range(200)])
    wrong = "not checked: the body ran with limit='many'" if "many" in watched.limits else wrong
    return {"raises": raises, "unknown": unknown, "wrong": wrong, "siblings": siblings, "peak": watched.peak}


async def _siblings(session: Session, watched: Watched, nap: str) -> str:
    """Return the outcomes of two naps when the call between them raises."""
    watched.rested = 0
    told = await _told(session, [(nap, _NUMBER), ("boom", _NUMBER), (nap, _NUMBER)])
    finished = watched.rested
    await asyncio.sleep(0.1)  # one left running would end by now
    late = watched.rested - finished
    lost = 2 - finished - late
    parts = [(finished, "finished"), (late, "left running after the run had ended"), (lost, "cancelled")]
    said = ", ".join(f"{count} {fate}" for count, fate in parts if count)
    return f"{_ENDED}; siblings: {said}" if told.startswith(_ENDED) else f"siblings: {said}"


async def _told(session: Session, calls: Sequence[Call]) -> str:
    try:
        return "told: " + " / ".join(await session.turn(calls))
    except Exception as error:  # noqa: BLE001 - that the run ends is the finding
        return f"{_ENDED}: {type(error).__name__}: {error}"


async def approving(adapter: ApprovingAdapter) -> Figures:
    """Return what ran when the saved call was edited before the approval, and when one approval was used twice."""
    return {"edited": await _approved(adapter, _EDITED, 1), "twice": await _approved(adapter, _ASKED, 2)}


async def _approved(adapter: ApprovingAdapter, stored: str, times: int) -> str:
    paid: list[int] = []

    def pay(amount: int) -> str:
        """Pay an amount.

        Args:
            amount: How much.
        """
        paid.append(amount)
        return f"paid {amount}"

    try:
        ended = await adapter.approve(pay, ("pay", _ASKED), ("pay", stored), times)
    except Exception as error:  # noqa: BLE001 - that the run ends is the finding
        ended = f"{_ENDED}: {type(error).__name__}: {error}"
    return f"paid {', '.join(map(str, paid)) or 'nothing'}; {ended}"
