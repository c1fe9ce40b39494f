"""The workers that the programs of a process share, and the calls that end by a cancellation."""

import asyncio
import gc
import os
import warnings
from typing import Any

import pytest
from tests.waiting import LONG_SECONDS

from callwright import Effect, Executor, Failed, Interrupted, Registry, tool
from callwright.codemode import CodeMode
from callwright.codemode.engine import Interpreter, Step
from callwright.core.errors import Cancelled
from callwright.policy import AllowEverything
from callwright.retry import RetryPolicy


async def test_program_waits_until_a_worker_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    pools: dict[int, Any] = {}
    monkeypatch.setattr("callwright.codemode.engine._pools", pools)
    monkeypatch.setattr("callwright.codemode.engine._MAX_WORKERS", 1)
    monkeypatch.setattr("callwright.codemode.engine._CHECKOUT_SECONDS", 0.02)
    begun, released = asyncio.Event(), asyncio.Event()

    @tool(effect=Effect.READ)
    async def wait() -> str:
        """Wait, as for the user or a slow server."""
        begun.set()
        await released.wait()
        return "waited"

    executor = Executor(CodeMode(Registry(wait)), AllowEverything(), retry=RetryPolicy(max_attempts=1))
    running = [asyncio.ensure_future(executor.run("run_code", {"code": "await wait()"}))]
    try:
        await begun.wait()
        running += [asyncio.ensure_future(executor.run("run_code", {"code": "1 + 1"})) for _ in range(2)]
        await asyncio.sleep(0.2)
        assert not running[1].done() and not running[2].done()
        running[1].cancel()
        released.set()
        assert (await running[0]).text == '"waited"' and (await running[2]).text == "2"
        assert (await executor.run("run_code", {"code": "3"})).text == "3"  # the cancelled one holds no worker
    finally:
        await asyncio.gather(*running, return_exceptions=True)
        for pool in pools.values():
            pool.__exit__(None, None, None)


async def test_program_whose_worker_crashes_fails_and_the_next_one_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    sessions: list[Interpreter] = []

    class Kept(Interpreter):
        def start(self) -> Step:
            sessions.append(self)
            return super().start()

    @tool(effect=Effect.READ)
    async def crash() -> str:
        """End the worker, as the kernel does where memory is short."""
        sessions[-1].kill()
        return "too late"

    monkeypatch.setattr("callwright.codemode.program.Interpreter", Kept)
    executor = Executor(CodeMode(Registry(crash)), AllowEverything())
    outcome = await executor.run("run_code", {"code": "print('begun')\nprint(await crash())"})
    assert isinstance(outcome, Failed)
    expected = "printed before that:\nbegun\n\nthe program was ended: it ran out of memory or crashed"
    assert outcome.error.message == expected
    assert (await executor.run("run_code", {"code": "1 + 1"})).text == "2"


async def test_programs_that_end_at_a_call_leave_nothing() -> None:
    def count() -> int:
        gc.collect()
        return sum(isinstance(each, Interpreter) for each in gc.get_objects())

    begun = asyncio.Event()

    @tool(effect=Effect.READ)
    async def wait() -> str:
        """Wait for good."""
        begun.set()
        await asyncio.Event().wait()
        return "never"

    @tool(effect=Effect.WRITE)
    async def save() -> str:
        """Save, which asks."""
        return "saved"

    executor, before = Executor(CodeMode(Registry(wait, save))), count()
    for _ in range(3):
        assert isinstance(await executor.run("run_code", {"code": "await save()"}), Interrupted)
        running = asyncio.ensure_future(executor.run("run_code", {"code": "await wait()"}))
        await begun.wait()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        begun.clear()
        del running
    assert count() <= before + 1  # the traceback of the last cancellation may still be held


async def test_cancelled_work_of_a_tool_is_an_exception_in_the_program() -> None:
    @tool(effect=Effect.READ)
    async def job() -> str:
        """Wait for a job elsewhere."""
        raise Cancelled("the job was cancelled")

    code = "try:\n    await job()\nexcept RuntimeError as error:\n    print('caught', error)"
    outcome = await Executor(CodeMode(Registry(job)), AllowEverything()).run("run_code", {"code": code})
    assert outcome.text == "caught the job was cancelled\n"


async def _run_one() -> str:
    outcome = await Executor(CodeMode(Registry()), AllowEverything()).run("run_code", {"code": "1 + 1"})
    return outcome.error.message if isinstance(outcome, Failed) else outcome.text


def test_program_in_a_forked_process_is_refused_and_does_not_hang() -> None:
    assert asyncio.run(_run_one()) == "2"
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # forking beside threads is what is tested
        child = os.fork()
    if not child:
        try:
            os.write(write, asyncio.run(asyncio.wait_for(_run_one(), LONG_SECONDS)).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as told:
        assert "it was forked after its parent had run one" in told.read()
    os.waitpid(child, 0)
    assert asyncio.run(_run_one()) == "2"
