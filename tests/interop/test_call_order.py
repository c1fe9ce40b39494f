"""Calls that frameworks start in parallel: conflicting calls wait, others do not."""

import asyncio
from collections.abc import Hashable

from hypothesis import given, settings, strategies as st
from tests.waiting import LONG_SECONDS

from callwright import Effect, Registry, ToolCall, tool
from callwright.core.access import Access, ReadPath, WritePath
from callwright.core.json import JsonObject
from callwright.interop.call_order import CallOrder


def touched(arguments: JsonObject) -> list[Access]:
    return [WritePath(f"/{arguments['path']}")]


def looked(arguments: JsonObject) -> list[Access]:
    return [ReadPath(f"/{arguments['path']}")]


@tool(effect=Effect.WRITE, accesses=touched)
async def write(path: str) -> str:
    """Write."""
    return path


@tool(effect=Effect.READ, accesses=looked)
async def read(path: str) -> str:
    """Read."""
    return path


@tool(effect=Effect.WRITE)
async def anything() -> str:
    """Touch anything."""
    return ""


CATALOG = Registry(write, read, anything).snapshot()


class Line:
    """Runs calls in an order and notes who was running beside whom."""

    def __init__(self) -> None:
        self.order = CallOrder()
        self.running: list[int] = []
        self.beside: set[tuple[int, int]] = set()
        self.began: list[int] = []

    async def run(self, number: int, call: ToolCall, batch: Hashable = "turn") -> None:
        async def perform(behind: bool) -> None:
            self.beside |= {(other, number) for other in self.running}
            self.began.append(number)
            self.running.append(number)
            for _ in range(number % 3 + 1):
                await asyncio.sleep(0)
            self.running.remove(number)

        await self.order.run(batch, call, CATALOG, perform)


CALLS = st.lists(
    st.tuples(st.sampled_from(["write", "read", "anything"]), st.sampled_from(["a", "a/b", "c"])),
    min_size=1,
    max_size=8,
)


def conflict(first: tuple[str, str], second: tuple[str, str]) -> bool:
    if "anything" in (first[0], second[0]):
        return True
    one, two = first[1], second[1]
    meet = one == two or one.startswith(f"{two}/") or two.startswith(f"{one}/")
    return meet and "write" in (first[0], second[0])


def made(name: str, path: str) -> ToolCall:
    return ToolCall("x", name, {} if name == "anything" else {"path": path})


@given(CALLS)
@settings(max_examples=60, deadline=None)
def test_conflicting_calls_keep_their_order(calls: list[tuple[str, str]]) -> None:
    line = Line()

    async def all_at_once() -> None:
        await asyncio.gather(*(line.run(number, made(*call)) for number, call in enumerate(calls)))

    asyncio.run(all_at_once())
    assert sorted(line.began) == list(range(len(calls)))
    for later in range(len(calls)):
        for earlier in range(later):
            if conflict(calls[earlier], calls[later]):
                assert (earlier, later) not in line.beside
                assert (later, earlier) not in line.beside
                assert line.began.index(earlier) < line.began.index(later)


async def test_calls_of_two_batches_do_not_wait() -> None:
    line = Line()
    await asyncio.gather(line.run(0, made("anything", ""), "mine"), line.run(1, made("anything", ""), "theirs"))
    assert line.beside == {(0, 1)}


async def test_inner_call_does_not_wait_for_its_outer_call() -> None:
    order, log = CallOrder(), list[str]()

    async def note(text: str) -> None:
        log.append(text)

    async def outer(behind: bool) -> None:
        await asyncio.sleep(0)  # the second call is in the line by now, and waits for this one
        await order.run("turn", made("anything", ""), CATALOG, lambda behind: note("inner"))
        log.append("outer")

    async with asyncio.timeout(LONG_SECONDS):
        await asyncio.gather(
            order.run("turn", made("anything", ""), CATALOG, outer),
            order.run("turn", made("anything", ""), CATALOG, lambda behind: note("second")),
        )
    assert log == ["inner", "outer", "second"]


async def test_cancelled_call_releases_waiting_calls() -> None:
    order, started = CallOrder(), asyncio.Event()

    async def hang(behind: bool) -> None:
        started.set()
        await asyncio.sleep(30)

    async def quick(behind: bool) -> str:
        return "done"

    hanging = asyncio.create_task(order.run("turn", made("write", "a"), CATALOG, hang))
    await started.wait()
    waiting = asyncio.create_task(order.run("turn", made("write", "a"), CATALOG, quick))
    await asyncio.sleep(0)
    hanging.cancel()
    assert await waiting == "done"


async def test_call_behind_one_that_waits_is_told() -> None:
    order, told = CallOrder(), dict[str, bool]()

    async def run(number: str, path: str, *, waits: bool = False) -> None:
        async def perform(behind: bool) -> bool:
            told[number] = behind
            return waits or behind

        call = ToolCall(number, "write", {"path": path})
        await order.run("turn", call, CATALOG, perform, lambda waiting: waiting)

    await run("1", "a", waits=True)
    await run("2", "a", waits=True)
    await run("3", "c")
    await run("4", "a/b")
    assert told == {"1": False, "2": True, "3": False, "4": True}
    await run("1", "a")  # approved: it keeps its place, before the others
    await run("2", "a")
    await run("4", "a/b")
    assert told == {"1": False, "2": False, "3": False, "4": False}


async def test_call_that_fails_to_bind_blocks_no_call() -> None:
    line = Line()
    await asyncio.gather(line.run(0, ToolCall("x", "write", {})), line.run(1, made("write", "a")))
    assert line.beside == {(0, 1)}
