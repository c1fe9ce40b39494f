"""Overhead of the agent without its tools: `python -m benchmarks agent`. Processor time, best of several."""

import asyncio
import gc
import json
import tempfile
import time
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

from callwright import Effect, Executor, Registry, ToolCall, tool
from callwright.agent import Agent, RunLimits
from callwright.core.content import Text
from callwright.core.messages import AssistantMessage, AssistantPart, Message, ToolMessage, encode_messages
from callwright.executor.turn_context import Turn
from callwright.policy import AllowEverything
from callwright.providers.base import MessageDone, ModelEvent, ModelRequest
from callwright.sessions import MemoryStore, SessionStore, SqliteStore

_NO_REQUEST = ModelRequest(())
ARGUMENTS = '{"path":"src/main.py","pattern":"TODO","limit":20,"recursive":true}'


def _arguments_of(turn: int) -> str:
    """Return other arguments in every turn: a call that is repeated costs a note to the model."""
    return f'{{"path":"src/main.py","pattern":"TODO","limit":{turn},"recursive":true}}'


@tool(effect=Effect.READ)
async def grep(path: str, pattern: str, limit: int = 10, recursive: bool = False) -> str:
    """Search a file.

    Args:
        path: Where.
        pattern: What.
        limit: How many.
        recursive: How deep.
    """
    return "a line of text"


@tool(effect=Effect.READ)
async def wait(turn: int) -> str:
    """Take 50 ms.

    Args:
        turn: Which turn it is.
    """
    await asyncio.sleep(0.05)
    return "waited"


_write = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


def _encode(message: Message) -> bytes:
    """Return a message in the format of a vendor."""
    if isinstance(message, ToolMessage):
        outcomes = [{"type": "tool_result", "tool_use_id": o.call.id, "content": o.text} for o in message.outcomes]
        return _write({"role": "user", "content": outcomes}).encode()
    if isinstance(message, AssistantMessage):
        return _write({"role": "assistant", "content": [_encode_part(part) for part in message.parts]}).encode()
    return _write({"role": "user", "content": message.content}).encode()


def _encode_part(part: AssistantPart) -> dict[str, object]:
    if isinstance(part, ToolCall):
        return {"type": "tool_use", "id": part.id, "name": part.name, "input": part.arguments}
    return {"type": "text", "text": part.text}


class Model:
    """Calls a tool for a number of turns and builds the request body every turn, as a real provider does."""

    model = "benchmark"

    def __init__(self, turns: int, calls: int, name: str = "grep", arguments: str = "") -> None:
        self._turns = turns
        self._calls = calls
        self._name, self._arguments = name, arguments
        self._turn = 0
        self.stamps: dict[int, float] = {}
        self.bytes = 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        fragments = encode_messages(request.messages, self.model, _encode)
        self.bytes += len(fragments[-1])
        self._turn = turn = self._turn + 1
        if turn in (2, 22, self._turns - 19, self._turns + 1):  # the clock itself costs as much as half a turn
            self.stamps[turn] = time.process_time()
        if turn > self._turns:
            yield MessageDone(AssistantMessage((Text("done"),)))
            return
        arguments = self._arguments or _arguments_of(turn)
        calls = tuple(ToolCall(f"c{turn}-{n}", self._name, arguments) for n in range(self._calls))
        yield MessageDone(AssistantMessage(calls, "calls"))


class Terse:
    """Calls `wait` for a number of turns without building requests, to measure many agents alone."""

    model = "benchmark"

    def __init__(self, turns: int) -> None:
        self._left = turns

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        self._left -= 1
        if self._left < 0:
            yield MessageDone(AssistantMessage((Text("done"),)))
        else:
            call = ToolCall(f"c{self._left}", "wait", f'{{"turn":{self._left}}}')
            yield MessageDone(AssistantMessage((call,), "calls"))


def _executor() -> Executor:
    return Executor(Registry(grep, wait), AllowEverything())


def _agent(model: Model, store: SessionStore | None = None) -> Agent:
    return Agent(model, executor=_executor(), sessions=store, limits=RunLimits(turns=100_000, same_calls=None))


async def _cpu(work: Callable[[], Awaitable[object]]) -> float:
    gc.collect()
    began = time.process_time()
    await work()
    return time.process_time() - began


async def loop_overhead(repeats: int = 15) -> float:
    """Return the overhead in microseconds per call of a turn of 100 calls."""
    executor = _executor()
    calls = [ToolCall(f"c{n}", "grep", ARGUMENTS) for n in range(100)]
    await executor.execute(calls)
    best = float("inf")
    alone = min([await _cpu(lambda: executor.execute(calls, turn=Turn("s", "t"))) for _ in range(repeats)])
    for _ in range(repeats):
        best = min(best, await _cpu(lambda: _agent(Model(1, 100)).run("go")))
    return (best - alone) / 100 * 1e6


async def conversation(turns: int, store: SessionStore | None = None, session: str = "s") -> tuple[float, float, float]:
    """Return microseconds per turn: the mean, the first 20 and the last 20."""
    model = Model(turns, 1)
    whole = await _cpu(lambda: _agent(model, store).run("go", session=session))
    second, later, near, last = model.stamps.values()
    return whole / turns * 1e6, (later - second) / 20 * 1e6, (last - near) / 20 * 1e6


async def stored(turns: int = 200) -> tuple[float, float]:
    """Return the overhead of the SQLite store in microseconds per turn, and its commits (one fsync each) per turn."""
    plain = min([(await conversation(turns))[0] for _ in range(3)])
    commits = 0
    with tempfile.TemporaryDirectory() as folder:
        async with SqliteStore(Path(folder) / "s.db") as store:
            file = await store.run(lambda file: file)
            write = file.transaction

            def counted(*, synced: bool = True) -> object:
                nonlocal commits
                commits += synced
                return write(synced=synced)

            file.transaction = counted  # type: ignore[method-assign, assignment] - counting is the point
            runs = [(await conversation(turns, store, f"s{n}"))[0] for n in range(3)]
    return min(runs) - plain, commits / 3 / turns


async def crowd(agents: int = 1_000, turns: int = 10) -> tuple[float, float, float]:
    """Return the share of the ideal pace of many agents, processor seconds, and kilobytes per idle agent."""
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    executor, limits = _executor(), RunLimits(turns=100_000, same_calls=None)  # shared, as a service would
    made = [Agent(Terse(turns), executor=executor, limits=limits) for _ in range(agents)]
    idle = (tracemalloc.get_traced_memory()[0] - before) / agents / 1024
    tracemalloc.stop()
    gc.collect()
    gc.freeze()
    began, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(agent.run("go") for agent in made))
    return turns * 0.05 / (time.perf_counter() - began), time.process_time() - cpu, idle


async def bare_crowd(loops: int = 1_000, turns: int = 10) -> tuple[float, float]:
    """Return the share of the ideal pace and the processor seconds of bare loops that get a reply and wait."""

    async def loop() -> None:
        model = Terse(turns)
        for _ in range(turns):
            async for _ in model.stream(_NO_REQUEST):
                await asyncio.sleep(0.05)

    gc.collect()
    began, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(loop() for _ in range(loops)))
    return turns * 0.05 / (time.perf_counter() - began), time.process_time() - cpu


class Remote:
    """A model that takes 200 ms per request."""

    model = "benchmark"

    def __init__(self, turns: int) -> None:
        self._left = turns

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        await asyncio.sleep(0.2)
        self._left -= 1
        if self._left < 0:
            yield MessageDone(AssistantMessage((Text("done"),)))
        else:
            call = ToolCall(f"c{self._left}", "grep", _arguments_of(self._left))
            yield MessageDone(AssistantMessage((call,), "calls"))


async def sessions_seconds(store: SessionStore, count: int, turns: int = 10) -> tuple[float, float]:
    """Return the seconds and processor seconds of many sessions; each has one request more than turns with a call."""
    executor, limits = _executor(), RunLimits(turns=100_000, same_calls=None)
    began, cpu = time.perf_counter(), time.process_time()
    runs = [Agent(Remote(turns), executor=executor, sessions=store, limits=limits) for _ in range(count)]
    await asyncio.gather(*(agent.run("go", session=f"s{number}") for number, agent in enumerate(runs)))
    return time.perf_counter() - began, time.process_time() - cpu


async def shared_commits(count: int) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the seconds and processor seconds of many sessions in memory and in one SQLite file."""
    memory = min([await sessions_seconds(MemoryStore(), count) for _ in range(2)])
    stored = (float("inf"), 0.0)
    for _ in range(2):
        with tempfile.TemporaryDirectory() as folder:
            async with SqliteStore(Path(folder) / "s.db") as store:
                stored = min(stored, await sessions_seconds(store, count))
    return memory, stored


async def _main() -> None:
    print(f"loop overhead per call, one turn of 100 calls: {await loop_overhead():.1f} µs (target 20)")
    for turns in (200, 2_000):
        mean, first, last = min([await conversation(turns) for _ in range(5)])
        print(f"{turns} turns of one call: mean {mean:.1f}, first 20 {first:.1f}, last 20 {last:.1f} µs (target 60)")
    added, commits = await stored()
    print(f"the SQLite store adds per turn: {added:.0f} µs (target 1000), {commits:.2f} fsyncs (target 2)")
    for count in (1, 1_000):
        (memory, memory_cpu), (durable, durable_cpu) = await shared_commits(count)
        print(
            f"{count:,} sessions of 11 requests of 200 ms: {memory:.1f} s in memory, {durable:.1f} s in SQLite", end=""
        )
        print(f": {memory / durable:.0%} of the throughput (target 50), ", end="")
        print(f"{durable_cpu / memory_cpu:.1f}x of {memory_cpu:.2f} s CPU")
    bare_pace, bare_cpu = max([await bare_crowd() for _ in range(3)])
    print(f"1,000 bare loops of 10 waits of 50 ms: {bare_pace:.0%} of ideal, {bare_cpu:.2f} s CPU")
    for collector, thresholds in (("as it is", gc.get_threshold()), ("set for a service", (200_000, 20, 100))):
        gc.set_threshold(*thresholds)
        pace, cpu, idle = max([await crowd() for _ in range(3)])
        print(f"1,000 agents, 10 turns of 50 ms, collector {collector}: ", end="")
        print(f"{pace:.0%} of ideal (target 85), {cpu / bare_cpu:.1f}x of {bare_cpu:.2f} s CPU, ", end="")
        print(f"{idle:.1f} KB idle (target 60)")


def main() -> None:
    """Print the table."""
    asyncio.run(_main())


if __name__ == "__main__":
    main()
