"""Clients that cancel, leave or answer late: their calls end, tools clean up, and nothing is kept for them."""

import asyncio
import json
import weakref
from contextlib import suppress
from typing import Any, cast

import mcp_types as types
import pytest
from mcp_types import CLIENT_CAPABILITIES_META_KEY, PROTOCOL_VERSION_META_KEY
from tests.serve.conftest import Desk, OpenDesk
from tests.serve.test_access import suspend
from tests.serve.test_calling_client import call_of_a_client, client
from tests.serve.test_every_request_is_answered import open_wire
from tests.waiting import LONG_SECONDS

from callwright import Effect, Executor, Registry, ToolCall, ToolContext, tool
from callwright.mcp.fast_path import PipeFastPath
from callwright.policy import ByMode
from callwright.serve import Gateway
from callwright.serve.call import SuspendableCall, SuspendedCalls
from callwright.serve.clients import Caller, CallRequest, ClientStates
from callwright.serve.stdio import CallFastPath, PipeCaller
from callwright.tool.base import Tool


class Careful:
    """A tool that takes a while to clean up, and what became of it."""

    def __init__(self) -> None:
        self.began, self.cleaning, self.may_end = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.cleaned = asyncio.Event()

    def tool(self) -> Tool:
        @tool(effect=Effect.READ)
        async def careful() -> str:
            """Run until cancelled, then clean up."""
            self.began.set()
            try:
                await asyncio.Event().wait()
            finally:
                self.cleaning.set()
                await self.may_end.wait()
                self.cleaned.set()
            return "never"

        return careful


async def wait_for(event: asyncio.Event) -> None:
    await asyncio.wait_for(event.wait(), LONG_SECONDS)


@pytest.mark.parametrize(("mode", "action"), [("auto", None), ("auto", "accept"), ("legacy", None)])
async def test_tool_cleans_up_when_its_client_has_left(open_desk: OpenDesk, mode: str, action: Any) -> None:
    careful = Careful()
    async with open_desk(careful.tool()) as desk, desk.client(mode, action=action) as used:
        call = asyncio.ensure_future(used.call_tool("careful", {}))
        await wait_for(careful.began)
        call.cancel()
        await wait_for(careful.cleaning)
        for _ in range(5):  # a scope of anyio cancels again in every round of the loop
            await asyncio.sleep(0)
        careful.may_end.set()
        await wait_for(careful.cleaned)


@pytest.mark.parametrize("action", [None, "accept"])
async def test_call_that_reports_ends_when_its_client_has_left(
    open_desk: OpenDesk, monkeypatch: pytest.MonkeyPatch, action: Any
) -> None:
    heard, ended = asyncio.Event(), asyncio.Event()

    @tool(effect=Effect.READ)
    async def tell(context: ToolContext) -> str:
        """Report without end."""
        while True:
            context.report({"progress": 1})
            await asyncio.sleep(0)

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.set()

    async with open_desk(tell) as desk, desk.client(action=action) as used:
        serve_call = desk.gateway.call

        async def note_end(caller: Caller, request: CallRequest) -> Any:
            try:
                return await serve_call(caller, request)
            finally:
                ended.set()

        monkeypatch.setattr(desk.gateway, "call", note_end)
        call = asyncio.ensure_future(used.call_tool("tell", {}, progress_callback=hear))
        await wait_for(heard)
        call.cancel()
        await wait_for(ended)


async def test_progress_that_cannot_be_sent_fails_no_call() -> None:
    class Broken(PipeCaller):
        async def progress(self, done: float, total: float | None, message: str | None) -> None:
            raise RuntimeError("the pipe is closed")

    @tool(effect=Effect.READ)
    async def tell(context: ToolContext) -> str:
        """Report."""
        context.report({"progress": 1})
        await asyncio.sleep(0)
        return "told"

    registry = Registry(tell)
    gateway = Gateway(registry, Executor(registry, ByMode("default")))
    caller = Broken(PipeFastPath.__new__(PipeFastPath), {"progressToken": "p"}, None)
    assert "told" in str(await gateway.call(caller, CallRequest("tell", {})))


async def test_tool_cleans_up_though_its_pipe_client_cancels_twice() -> None:
    careful = Careful()
    async with open_wire(careful.tool()) as wire:
        wire.call(2, "careful")
        await wait_for(careful.began)
        for number in (3, 4):
            wire.send(json.dumps({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}}))
            wire.call(number, "nothing")
            assert (await wire.receive())["id"] == number
        assert careful.cleaning.is_set()
        asyncio.get_running_loop().call_later(0.02, careful.may_end.set)  # while the connection ends
    assert careful.cleaned.is_set()


async def test_call_that_comes_while_the_connection_ends_is_refused() -> None:
    sent: list[bytes] = []

    class Writer:
        def write(self, data: bytes) -> None:
            sent.append(data)

    careful, other = Careful(), Careful()
    registry = Registry(careful.tool())
    calls = CallFastPath(Gateway(registry, Executor(registry)), cast("asyncio.StreamWriter", Writer()))
    meta = {PROTOCOL_VERSION_META_KEY: "2026-07-28"}
    line = {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "careful", "_meta": meta}}
    assert calls.take(json.dumps({**line, "id": 1}).encode())
    await wait_for(careful.began)
    stopping = asyncio.create_task(calls.stop())
    await wait_for(careful.cleaning)
    registry.add(other.tool())
    assert calls.take(json.dumps({**line, "id": 2}).encode())
    careful.may_end.set()
    await asyncio.wait_for(stopping, LONG_SECONDS)
    await asyncio.sleep(0)
    assert not other.began.is_set() and "the server is stopping" in str(sent)


def sample(text: str) -> types.CreateMessageRequestParams:
    said = types.SamplingMessage(role="user", content=types.TextContent(text=text))
    return types.CreateMessageRequestParams(messages=[said], max_tokens=5)


async def test_late_reply_goes_to_no_other_request_of_the_tool() -> None:
    patience = asyncio.Event()

    @tool(effect=Effect.READ)
    async def think() -> str:
        """Ask for something else when the first answer does not come."""
        first = asyncio.ensure_future(client().sample(sample("first")))
        await patience.wait()
        first.cancel()
        return (await client().sample(sample("second"))).model

    def answer(text: str) -> dict[str, object]:
        content = types.TextContent(text="so")
        return {"sample": types.CreateMessageResult(role="assistant", content=content, model=text)}

    registry, caller = Registry(think), call_of_a_client({"sampling": {}})
    gateway = Gateway(registry, Executor(registry, ByMode("default")))
    async with gateway.running():
        asked = await gateway.call(caller, CallRequest("think", {}))
        assert isinstance(asked, types.InputRequiredResult) and "first" in str(asked.input_requests)
        patience.set()
        for _ in range(5):
            await asyncio.sleep(0)
        again = await gateway.call(caller, CallRequest("think", {}, asked.request_state, answer("of the first")))
        assert isinstance(again, types.InputRequiredResult) and "second" in str(again.input_requests)
        done = await gateway.call(caller, CallRequest("think", {}, again.request_state, answer("of the second")))
        assert "of the second" in str(done)


async def test_call_goes_on_when_it_has_taken_its_question_back() -> None:
    patience = asyncio.Event()

    @tool(effect=Effect.READ)
    async def think() -> str:
        """Ask, and do without the answer."""
        asking = asyncio.ensure_future(client().sample(sample("first")))
        await patience.wait()
        asking.cancel()
        await asyncio.sleep(0.01)
        return "without it"

    registry, caller = Registry(think), call_of_a_client({"sampling": {}})
    gateway = Gateway(registry, Executor(registry, ByMode("default")))
    async with gateway.running():
        asked = await gateway.call(caller, CallRequest("think", {}))
        assert isinstance(asked, types.InputRequiredResult)
        patience.set()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert "without it" in str(await gateway.call(caller, CallRequest("think", {}, asked.request_state)))


async def test_call_whose_question_cannot_be_told_does_not_stay_behind() -> None:
    ended = asyncio.Event()

    @tool(effect=Effect.WRITE)
    async def save() -> str:
        """Save, which must be asked."""
        return "saved"

    @tool(effect=Effect.READ)
    async def outer(context: ToolContext) -> str:
        """Call what must be asked."""
        try:
            await context.execute(ToolCall("1", "save", {}))
        finally:
            ended.set()
        return "never"

    class Strange(PipeCaller):
        @property
        def capabilities(self) -> types.ClientCapabilities | None:
            raise RuntimeError("no capabilities")

    registry = Registry(save, outer)
    gateway = Gateway(registry, Executor(registry, ByMode("default")))
    meta: dict[str, Any] = {PROTOCOL_VERSION_META_KEY: "2026-07-28", CLIENT_CAPABILITIES_META_KEY: {"elicitation": {}}}
    with pytest.raises(RuntimeError, match="no capabilities"):
        await gateway.call(Strange(PipeFastPath.__new__(PipeFastPath), meta, None), CallRequest("outer", {}))
    assert ended.is_set()


async def test_calls_that_make_room_end_though_the_client_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    hold, ended = asyncio.Event(), list[int]()

    def old(number: int) -> SuspendableCall[None]:
        async def wait(asker: object) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                await hold.wait()
                ended.append(number)

        return SuspendableCall("old", wait, cast("Caller", None))

    suspended = SuspendedCalls()
    for number in range(3):
        await suspended.keep(old(number), "one")
    await asyncio.sleep(0)
    monkeypatch.setattr("callwright.serve.call._MAX_OF_CLIENT", 1)
    new = suspend("new")
    keeping = asyncio.create_task(suspended.keep(new, "one"))
    await asyncio.sleep(0)
    keeping.cancel()
    with suppress(asyncio.CancelledError):
        await keeping
    hold.set()
    async with asyncio.timeout(LONG_SECONDS):
        while len(ended) < 3:  # noqa: ASYNC110 - each is a task of its own
            await asyncio.sleep(0)
    monkeypatch.setattr("callwright.serve.call._MAX_SUSPENDED", 1)
    last = suspend("last")
    await suspended.keep(last, "one")  # the one that was not told has left its place
    for call in (new, last):
        await call.stop()


async def test_suspended_call_is_cancelled_once() -> None:
    cleaning, may_end, cleaned = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def wait(asker: object) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cleaning.set()
            await may_end.wait()
            cleaned.set()

    call = SuspendableCall("it", wait, cast("Caller", None))
    await asyncio.sleep(0)
    call.cancel()
    await wait_for(cleaning)
    stopping = [asyncio.create_task(call.stop()) for _ in range(2)]
    await asyncio.sleep(0)
    stopping[0].cancel()  # who waits for its end may leave too
    await asyncio.sleep(0)
    may_end.set()
    await asyncio.wait_for(stopping[1], LONG_SECONDS)
    assert cleaned.is_set()


class Notes:
    """Something that is kept for a client."""


async def test_nothing_is_kept_for_a_session_that_has_ended(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[weakref.ref[Notes]] = []

    @tool(effect=Effect.READ)
    async def note(context: ToolContext) -> str:
        """Keep something."""
        kept.append(weakref.ref(context.state.get(Notes)))
        return "noted"

    desk.registry.add(note)
    monkeypatch.setattr(desk.gateway, "_states", ClientStates(desk.executor.state.copy, most=2))
    for _ in range(3):  # more than have a state at the same time
        async with desk.client("legacy") as used:
            for _ in range(2):
                assert not (await used.call_tool("note", {})).is_error
            assert kept[-1]() is kept[-2]() is not None
        async with asyncio.timeout(LONG_SECONDS):
            while any(each() is not None for each in kept):  # noqa: ASYNC110 - what is waited for has no event
                await asyncio.sleep(0.01)
