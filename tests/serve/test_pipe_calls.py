"""Calls over pipes: who may answer questions, what a cancellation ends, and what is left to the SDK."""

import asyncio
import json
from typing import Any

import pytest
from mcp_types import CLIENT_CAPABILITIES_META_KEY, LOG_LEVEL_META_KEY, PROTOCOL_VERSION_META_KEY
from tests.serve.conftest import make_forever
from tests.serve.test_every_request_is_answered import Wire, open_wire
from tests.waiting import LONG_SECONDS

from callwright import Effect, ToolContext, tool
from callwright.serve import calling_client

MODERN: dict[str, Any] = {PROTOCOL_VERSION_META_KEY: "2026-07-28"}
FORMS: dict[str, Any] = {CLIENT_CAPABILITIES_META_KEY: {"elicitation": {"form": {}}}}
saved: list[str] = []


@tool(effect=Effect.WRITE)
async def save(text: str) -> str:
    """Save a text."""
    saved.append(text)
    return f"saved {text}"


@tool(effect=Effect.WRITE)
async def keep(text: str) -> str:
    """Keep a text, which takes the same arguments."""
    saved.append(f"kept {text}")
    return f"kept {text}"


@pytest.fixture(autouse=True)
def nothing_saved() -> None:
    saved.clear()


async def call(wire: Wire, number: int = 2, name: str = "save", **params: Any) -> dict[str, Any]:
    wire.call(number, name, **{"arguments": {"text": "it"}, **params})
    return await wire.receive()


@pytest.mark.parametrize(
    "meta",
    [
        MODERN,
        {**MODERN, CLIENT_CAPABILITIES_META_KEY: {}},
        {**MODERN, CLIENT_CAPABILITIES_META_KEY: {"experimental": {}}},
        {**MODERN, CLIENT_CAPABILITIES_META_KEY: {"sampling": {}}},
        {**MODERN, CLIENT_CAPABILITIES_META_KEY: {"elicitation": 1}},
        {**MODERN, CLIENT_CAPABILITIES_META_KEY: ["elicitation"]},
        FORMS,  # counts only in the protocol that has it
    ],
)
async def test_client_that_cannot_be_asked_gets_a_refusal(meta: dict[str, Any]) -> None:
    async with open_wire(save) as wire:
        answer = await call(wire, _meta=meta)
    assert answer["result"]["isError"] and "cannot ask the user" in answer["result"]["content"][0]["text"]
    assert saved == []


@pytest.mark.parametrize(
    ("action", "decision", "ran"),
    [("accept", "yes", ["it"]), ("accept", "no", []), ("accept", "", []), ("decline", "yes", []), ("cancel", "", [])],
)
async def test_question_is_a_result_whose_answer_comes_with_the_call(
    action: str, decision: str, ran: list[str]
) -> None:
    meta = {**MODERN, **FORMS}

    async def ask(number: int) -> dict[str, Any]:
        asked = (await call(wire, number, _meta=meta))["result"]
        (key,) = asked["inputRequests"]
        given = {key: {"action": action, "content": {"decision": decision}}}
        return {"_meta": meta, "requestState": asked["requestState"], "inputResponses": given}

    async with open_wire(save, keep) as wire:
        assert "error" in await call(wire, 7, "keep", **await ask(8)) and saved == []
        other: dict[str, Any] = {**await ask(2), "arguments": {"text": "other"}}  # not what was shown
        assert "error" in await call(wire, 3, **other) and saved == []
        resumed = await ask(4)
        assert saved == []
        failed = (await call(wire, 5, **resumed))["result"].get("isError", False)
        assert failed is not bool(ran) and saved == ran
        assert "error" in await call(wire, 6, **resumed) and saved == ran  # an answer counts once


async def test_client_that_was_greeted_is_asked_during_the_call() -> None:
    async with open_wire(save, capabilities={"elicitation": {}}) as wire:
        for decision, ran in (("no", []), ("yes", ["it"])):
            wire.call(2, "save", arguments={"text": "it"})
            asked = await wire.receive()
            assert asked["method"] == "elicitation/create" and saved == []
            result = {"action": "accept", "content": {"decision": decision}}
            wire.send(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}))
            assert (await wire.receive())["id"] == 2 and saved == ran


async def test_cancelled_call_ends() -> None:
    began, ended = asyncio.Event(), asyncio.Event()
    async with open_wire(make_forever(began, ended)) as wire:
        for number in (1, "seven"):
            wire.call(number, "forever")
            await asyncio.wait_for(began.wait(), LONG_SECONDS)
            for other in (8, [1], True, 1.0, "1", None, number):
                assert "error" in await call(wire, 9, "nothing") and not ended.is_set()
                cancelled = {"method": "notifications/cancelled", "params": {"requestId": other}}
                wire.send(json.dumps({"jsonrpc": "2.0", **cancelled}))
            await asyncio.wait_for(ended.wait(), LONG_SECONDS)
            began.clear()
            ended.clear()


async def test_calls_end_with_the_connection() -> None:
    began, ended = asyncio.Event(), asyncio.Event()
    async with open_wire(make_forever(began, ended)) as wire:
        wire.call(2, "forever")
        await asyncio.wait_for(began.wait(), LONG_SECONDS)
    assert ended.is_set()


@pytest.mark.parametrize(
    "params",
    [
        {"name": 1},
        {"name": "save", "arguments": ["it"]},
        {"name": "save", "arguments": "it"},
        {"name": "save", "requestState": 1},
        {"name": "save", "_meta": {PROTOCOL_VERSION_META_KEY: "1999-01-01"}, "arguments": {"text": "it"}},
    ],
)
async def test_call_that_is_not_valid_gets_an_error(params: dict[str, Any]) -> None:
    async with open_wire(save, capabilities={"elicitation": {}}) as wire:
        wire.send(json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}))
        assert "error" in await wire.receive()
    assert saved == []


@pytest.mark.parametrize("method", ["tools/call", "notifications/cancelled", "initialize"])
@pytest.mark.parametrize("params", [[1], "text", 5, None])
async def test_lines_that_are_no_message_hold_up_no_other(method: str, params: object) -> None:
    async with open_wire(save, capabilities={"elicitation": {}}) as wire:
        for line in (params, [{"jsonrpc": "2.0", "id": 3, "method": method, "params": {"name": "save"}}]):
            wire.send(json.dumps(line))
        wire.send(json.dumps({"jsonrpc": "2.0", "id": True, "method": method, "params": {"name": "save"}}))
        wire.send(json.dumps({"jsonrpc": "2.0", "id": 4, "method": method, "params": params}))
        wire.call(5, "nothing")
        while (answer := await wire.receive()).get("id") != 5:
            assert "result" not in answer
        assert "error" in answer
    assert saved == []


async def test_every_request_of_a_batch_gets_an_error() -> None:
    async with open_wire(save) as wire:
        wire.send("[]")
        wire.send(
            '[{"id": 2, "method": "tools/call"}, {"method": "x"}, {"id": 4, "result": 1}, {"id": "5", "method": "x"}]'
        )
        for number in (2, "5"):
            refused = await wire.receive()
            assert refused["id"] == number and "batches are not read" in refused["error"]["message"]
        assert "error" in await call(wire, 6, "nothing")


async def test_call_before_the_greeting_gets_an_error() -> None:
    async with open_wire(save, greet=False) as wire:
        assert "error" in await call(wire)
        about = {"protocolVersion": "2025-06-18", "capabilities": 5, "clientInfo": {"name": "t", "version": "1"}}
        wire.send(json.dumps({"jsonrpc": "2.0", "id": 3, "method": "initialize", "params": about}))
        assert "error" in await wire.receive()
        assert "error" in await call(wire, 4)
    assert saved == []


async def test_progress_and_log_reach_the_client_that_wants_them() -> None:
    @tool(effect=Effect.READ)
    async def count(context: ToolContext) -> str:
        """Count."""
        client = calling_client()
        assert client is not None
        context.report({"progress": 1, "total": 3})
        await client.log("counting", level="info")
        return "one"

    async with open_wire(count) as wire:
        wire.call(2, "count", arguments={}, _meta={**MODERN, LOG_LEVEL_META_KEY: "info", "progressToken": "p"})
        heard = [await wire.receive() for _ in range(3)]
        told = {each.get("method", "result"): each.get("params") for each in heard}
        assert told["notifications/progress"] == {"progressToken": "p", "progress": 1, "total": 3}
        assert told["notifications/message"] == {"level": "info", "data": "counting"}
        wire.call(3, "count", arguments={}, _meta=MODERN)
        assert (await wire.receive())["id"] == 3


async def test_progress_that_a_client_does_not_read_is_not_kept() -> None:
    reports, reported = 1_000, asyncio.Event()

    @tool(effect=Effect.READ)
    async def tell(context: ToolContext) -> str:
        """Tell."""
        for _ in range(reports):
            context.report("x" * 10_000)
            await asyncio.sleep(0)
        reported.set()
        return "told"

    async with open_wire(tell) as wire:
        wire.call(2, "tell", arguments={}, _meta={**MODERN, "progressToken": "p"})
        await asyncio.wait_for(reported.wait(), LONG_SECONDS)  # and reads nothing meanwhile
        heard = 0
        while "method" in await wire.receive():
            heard += 1
    assert 1 <= heard < reports / 2
