"""Worker threads: many at once, carried contexts, carried errors, several loops."""

import asyncio
import gc
import threading
from contextvars import ContextVar
from weakref import ref

import pytest
from tests.waiting import LONG_SECONDS, until_so

from callwright.tool.base import State
from callwright.tool.threads import Threads

number: ContextVar[int] = ContextVar("number", default=0)


@pytest.mark.slow
async def test_a_thousand_functions_run_at_once() -> None:
    threads = Threads()
    barrier = threading.Barrier(1000)
    done = await asyncio.gather(*(threads.run(lambda: barrier.wait(timeout=60)) for _ in range(1000)))
    assert sorted(done) == list(range(1000))


async def test_threads_are_named_reused_and_daemons() -> None:
    threads = Threads()
    seen = {await threads.run(threading.current_thread) for _ in range(50)}
    assert all(thread.daemon and thread.name.startswith("callwright-tool-") for thread in seen)
    assert len(seen) < 10


async def test_context_variables_are_carried_and_stay_inside() -> None:
    threads = Threads()
    number.set(5)

    def change() -> int:
        before = number.get()
        number.set(before + 1)
        return before

    assert await threads.run(change) == 5
    assert number.get() == 5


@pytest.mark.parametrize("error", [ValueError("x"), KeyboardInterrupt(), SystemExit(3), LookupError()])
async def test_errors_reach_the_caller(error: BaseException) -> None:
    def fail() -> None:
        raise error

    with pytest.raises(type(error)) as caught:
        await Threads().run(fail)
    assert caught.value is error


@pytest.mark.parametrize("error", [StopIteration(1), asyncio.CancelledError(), GeneratorExit()])
async def test_control_flow_errors_become_ordinary_errors(error: BaseException) -> None:
    def fail() -> None:
        raise error

    with pytest.raises(RuntimeError) as caught:
        await Threads().run(fail)
    assert caught.value.__cause__ is error


async def test_a_cancelled_waiter_leaves_and_the_others_are_served() -> None:
    threads = Threads()
    release = threading.Event()

    def wait() -> str:
        release.wait(timeout=LONG_SECONDS)
        return "done"

    tasks = [asyncio.ensure_future(threads.run(wait)) for _ in range(4)]
    await asyncio.sleep(0.01)
    tasks[0].cancel()
    with pytest.raises(asyncio.CancelledError):
        await tasks[0]
    release.set()
    assert await asyncio.gather(*tasks[1:]) == ["done"] * 3
    assert await threads.run(lambda: 1) == 1


def test_several_loops_share_the_threads() -> None:
    threads = Threads()
    results: list[int] = []

    def serve(start: int) -> None:
        async def main() -> None:
            results.extend(await asyncio.gather(*(threads.run(lambda at=at: at) for at in range(start, start + 50))))

        asyncio.run(main())

    loops = [threading.Thread(target=serve, args=(start,)) for start in (0, 100, 200)]
    for loop in loops:
        loop.start()
    for loop in loops:
        loop.join(timeout=LONG_SECONDS)
    assert sorted(results) == [*range(50), *range(100, 150), *range(200, 250)]


def test_closed_loop_does_not_break_the_thread() -> None:
    threads = Threads()
    release = threading.Event()
    finished = threading.Event()

    def wait() -> None:
        release.wait(timeout=LONG_SECONDS)
        finished.set()

    async def abandon() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(threads.run(wait), 0.01)

    asyncio.run(abandon())
    release.set()
    assert finished.wait(timeout=LONG_SECONDS)
    assert asyncio.run(threads.run(lambda: 7)) == 7


def _wait(release: threading.Event, _: set[str]) -> None:
    release.wait(LONG_SECONDS)


def _is_freed(argument: "ref[set[str]]") -> bool:
    gc.collect()
    return argument() is None


def test_function_left_behind_leaves_nothing_for_its_loop() -> None:
    threads = Threads()
    release = threading.Event()

    async def abandon() -> "ref[set[str]]":
        argument = {"held by the run"}
        waiting = asyncio.ensure_future(threads.run(_wait, release, argument))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait((waiting,))
        return ref(argument)

    loop = asyncio.new_event_loop()
    argument = loop.run_until_complete(abandon())
    release.set()
    until_so(lambda: _is_freed(argument))
    loop.close()


def test_functions_that_end_after_their_loop_keep_nothing() -> None:
    threads = Threads()

    async def begin() -> "list[tuple[threading.Event, ref[set[str]]]]":
        begun: list[tuple[threading.Event, ref[set[str]]]] = []
        for _ in range(2):
            release, argument = threading.Event(), {"held by the run"}
            threads.start(_wait, release, argument)
            begun.append((release, ref(argument)))
        return begun

    loop = asyncio.new_event_loop()
    begun = loop.run_until_complete(begin())
    loop.close()
    for release, argument in begun:  # the end of the second must not wait for the delivery of the first
        release.set()
        until_so(lambda argument=argument: _is_freed(argument))


def test_state_of_one_session_does_not_wait_for_a_value_of_another() -> None:
    begun, go_on = threading.Event(), threading.Event()

    class Slow:
        made = 0

        def __init__(self) -> None:
            begun.set()
            go_on.wait(LONG_SECONDS)
            Slow.made += 1

    slow, other = State(), State()
    making = [threading.Thread(target=slow.get, args=(Slow,), daemon=True) for _ in range(2)]
    making[0].start()
    assert begun.wait(LONG_SECONDS)
    making[1].start()
    quick = threading.Thread(target=other.get, args=(dict,), daemon=True)
    quick.start()
    quick.join(5)
    held_up = quick.is_alive()
    go_on.set()
    for each in (*making, quick):
        each.join(LONG_SECONDS)
    assert not held_up and Slow.made == 1
