"""Answers that violate the protocol, or only just keep to it: what they say is told, and nothing else is affected."""

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from mcp import MCPError
from mcp.shared.message import SessionMessage

from callwright import Completed, Executor, Failed, Registry
from callwright.core.calls import Outcome
from callwright.mcp import McpServers, ServerConfig
from callwright.mcp.lines import LineReader, LineTap
from callwright.mcp.translate import fault_of
from callwright.policy import AllowEverything

SCRIPTED = str(Path(__file__).parent / "servers" / "scripted.py")


@asynccontextmanager
async def connected(answers: Mapping[str, str], *how: str) -> AsyncGenerator[tuple[McpServers, Registry], None]:
    """A server that answers methods with these bodies of responses."""
    arguments = ("-S", SCRIPTED, json.dumps(answers), *how)
    registry = Registry()
    config = ServerConfig("odd", sys.executable, arguments, seconds=20, connect_seconds=20)
    async with McpServers([config], registry) as servers:
        yield servers, registry


async def call(body: str) -> Outcome:
    """Call a tool that answers with this body."""
    async with connected({"tools/call": body}) as (_, registry):
        return await Executor(registry, AllowEverything()).run("mcp__odd__echo", {})


@pytest.mark.parametrize(
    ("method", "listed", "told"),
    [
        ("prompts/list", {"prompts": [{"name": "greet"}, {"name": 5}]}, "prompts.1.name"),
        ("resources/list", {"resources": [{"uri": "notes://a"}]}, "resources.0.name"),
        ("resources/templates/list", {"resourceTemplates": "none"}, "resourceTemplates"),
    ],
)
async def test_invalid_prompts_or_resources_leave_the_tools_usable(method: str, listed: object, told: str):
    async with connected({method: f'"result": {json.dumps(listed)}'}) as (servers, registry):
        [status] = servers.status()
        outcome = await Executor(registry, AllowEverything()).run("mcp__odd__echo", {})
    assert isinstance(outcome, Completed)
    [problem] = status.problems
    kind = "prompts" if method == "prompts/list" else "resources"
    assert problem.startswith(f"its {kind} are left out, the list is not valid: {told}: ")
    left = "list_resources" if kind == "prompts" else "get_prompt"
    assert f"mcp__odd__{left}" in status.tools
    assert len(status.tools) == (3 if kind == "prompts" else 2)


async def test_ids_that_come_back_as_texts_are_understood():
    async with connected({}, "text_ids") as (servers, registry):
        [status] = servers.status()
        outcome = await Executor(registry, AllowEverything()).run("mcp__odd__echo", {})
    assert (status.condition, outcome.text) == ("ready", "called")


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ('"error": "the disk is full"', "odd: the disk is full"),
        ('"error": {"message": "the disk is full"}', "odd: the disk is full"),
        ('"error": {"code": "E1", "message": "the disk is full"}', "odd: the disk is full"),
        ('"error": {"code": -32000, "reason": "full"}', "odd: {'code': -32000, 'reason': 'full'}"),
        ('"error": {"code": 1, "message": "full"}, "result": {"content": []}', "odd: full"),
        ('"result": {"content": [], "isError": true, "structuredContent": {"disk": "full"}}', '{"disk":"full"}'),
        ('"result": {"content": [], "isError": true}', "the tool failed without a message"),
        ('"result": ["full"]', "odd: the response has neither a result nor an error"),
    ],
)
async def test_failure_is_told_however_it_is_written(body: str, told: str):
    outcome = await call(body)
    assert isinstance(outcome, Failed)
    assert outcome.text == told


@pytest.mark.parametrize(
    "body",
    [
        '"result": {"content": [{"type": "text", "text": "caf\xe9"}]}',
        f'"result": {{"content": [], "structuredContent": {{"n": 1{"0" * 5_000}}}}}',
    ],
    ids=["not UTF-8", "long number"],
)
async def test_answer_that_cannot_be_read_fails_its_call_at_once(body: str):
    outcome = await call(body)
    assert isinstance(outcome, Failed)
    assert "the response is not valid" in outcome.text


@pytest.mark.parametrize(("how", "told"), [("batch", "it is a batch"), ("wide", "it is UTF-16")])
async def test_server_that_writes_otherwise_is_refused_at_once(how: str, told: str):
    async with asyncio.timeout(15):  # it may take 20 seconds to answer
        async with connected({}, how) as (servers, _):
            [status] = servers.status()
    assert status.condition != "ready" and told in status.reason


async def test_every_answer_of_a_batch_fails_its_request():
    reader, ours = asyncio.StreamReader(), list[bytes]()

    def take(line: bytes) -> bool:
        ours.extend([line] if b'"id":7,' in line else [])
        return b'"id":7,' in line

    lines = LineReader(reader, take, answers_follow=True)
    batch = (
        '[{"id": 1, "result": {}}, {"id": 2, "method": "ping"}, 3, {"id": "4", "error": {}}, {"id": 7, "result": 1}]'
    )
    reader.feed_data(batch.encode() + b"\n")
    reader.feed_eof()
    failed = [each.message async for each in lines if isinstance(each, SessionMessage)]
    assert [getattr(each, "id", None) for each in failed] == [1, "4"]
    assert [type(each).__name__ for each in failed] == ["JSONRPCError", "JSONRPCError"] and len(ours) == 1


@pytest.mark.parametrize(
    ("start", "end", "answered"),
    [
        ('{"jsonrpc": "2.0", "id": 5, "result": "', '"}', 5),
        ('{"id":"a","jsonrpc":"2.0","result":"', '"}', "a"),
        ('{"error": "', '", "id": 5, "jsonrpc": "2.0"}', 5),
        ('{"jsonrpc": "2.0", "result": "', '", "id": 5}', 5),
        ('{"jsonrpc": "2.0", "id": "\1", "result": "', '"}', None),  # not JSON
        ('{"jsonrpc": "2.0", "id": 05, "result": "', '"}', None),
        ('{"jsonrpc": "2.0", "result": {"a": "', '", "id": 5}}', None),
        ('{"jsonrpc": "2.0", "id": 5, "method": "ping", "params": "', '"}', None),  # the server's own request
        ('{"jsonrpc": "2.0", "method": "ping", "params": "', '", "id": 5}', None),
    ],
)
async def test_line_that_is_too_large_fails_only_what_it_answers(
    start: str, end: str, answered: int | str | None
) -> None:
    reader = asyncio.StreamReader(limit=1_000)
    lines = LineReader(reader, answers_follow=True)
    reader.feed_data(f"{start}{'x' * 5_000}{end}\n".encode())
    reader.feed_data(b'{"jsonrpc": "2.0", "id": 9, "result": {}}\n')
    reader.feed_eof()
    found = [getattr(each.message, "id", None) async for each in lines if isinstance(each, SessionMessage)]
    assert found == ([] if answered is None else [answered, 9])
    assert ("one message of" in lines.reason) == (answered is None)


def test_error_without_a_message_is_told_by_its_code():
    assert fault_of(MCPError(-32000, ""), "odd").message == "odd: error -32000 without a message"


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        ({"tools": {"name": "echo"}}, "it sent an invalid response: tools: Input should be a valid list"),
        ({"tools": [], "nextCursor": 5}, "it sent an invalid response: nextCursor: Input should be a valid string"),
    ],
)
async def test_invalid_listing_is_explained_in_one_line(result: object, reason: str):
    async with connected({"tools/list": f'"result": {json.dumps(result)}'}) as (servers, _):
        assert servers.status()[0].reason == reason


async def test_empty_cursor_ends_the_list():
    listed = {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}], "nextCursor": ""}
    async with connected({"tools/list": f'"result": {json.dumps(listed)}'}) as (servers, _):
        [status] = servers.status()
    assert "mcp__odd__echo" in status.tools and status.problems == ()


async def test_tools_that_are_none_are_explained():
    listed = {"tools": [{"name": "", "inputSchema": {"type": "object"}}, None]}
    async with connected({"tools/list": f'"result": {json.dumps(listed)}'}) as (servers, _):
        problems = servers.status()[0].problems
    assert problems == (
        "'': left out, its definition is not valid: Input should be a valid dictionary or instance of Tool",
        "a tool without a name: left out",
    )


async def test_carriage_return_of_a_progress_bar_leaves_the_next_message_whole():
    reader = asyncio.StreamReader()
    tap = LineTap(reader, lambda line: json.loads(line) == "ours")
    tap.feed(b'loading 99%\r"ours"\n"other"\n"ours"\n')
    reader.feed_eof()
    assert [line async for line in reader] == [b'loading 99%\r"ours"\n', b'"other"\n']
