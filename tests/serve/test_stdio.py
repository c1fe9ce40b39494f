"""The gateway over pipes with the fast path, with the official SDK's client at the other end."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.client import ClientRequestContext
from mcp.client.stdio import stdio_client
from mcp_types import LOG_LEVEL_META_KEY
from tests.forked import warm_command
from tests.serve.conftest import text_of
from tests.waiting import LONG_SECONDS

PROGRAM = str(Path(__file__).parent / "gateway_program.py")


@asynccontextmanager
async def served(
    mode: str, log: Path, answer: dict[str, Any] | None = None, **more: Any
) -> AsyncGenerator[Client, None]:
    """A client of a gateway that runs as its child; with an answer it can be asked."""

    async def elicit(context: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content=answer)

    with log.open("w") as errors:
        command, *arguments = warm_command(PROGRAM)
        transport = stdio_client(StdioServerParameters(command=command, args=arguments), errlog=errors)
        async with Client(transport, mode=mode, elicitation_callback=elicit if answer else None, **more) as client:
            yield client


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_pipes_behave_like_http(mode: str, tmp_path: Path):
    heard: list[float] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append(progress)

    async with served(mode, tmp_path / "log", {"decision": "yes"}) as client:
        assert {found.name for found in (await client.list_tools()).tools} >= {"add", "save", "count"}
        assert (await client.call_tool("add", {"a": 2, "b": 3})).structured_content == {"sum": 5}
        assert text_of(await client.call_tool("save", {"text": "it"})) == "saved it"
        assert (await client.call_tool("add", {"a": "x", "b": 3})).is_error
        assert text_of(await client.call_tool("read_input", {})) == "''"
        await client.call_tool("count", {}, progress_callback=hear)
        assert heard == [1, 2, 3]
        with pytest.raises(MCPError, match="unknown tool"):
            await client.call_tool("nothing", {})
        task = asyncio.ensure_future(client.call_tool("forever", {}))
        async with asyncio.timeout(LONG_SECONDS):
            while "began" not in (tmp_path / "log").read_text():  # noqa: ASYNC110 - another process writes it
                await asyncio.sleep(0.01)
        task.cancel()
        results = await asyncio.gather(*(client.call_tool("add", {"a": n, "b": 0}) for n in range(20)))
        assert [result.structured_content for result in results] == [{"sum": n} for n in range(20)]
    assert "stopped" in (tmp_path / "log").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_pipe_client_without_elicitation_is_denied(mode: str, tmp_path: Path):
    async with served(mode, tmp_path / "log") as client:
        result = await client.call_tool("save", {"text": "it"})
    assert result.is_error
    assert "cannot ask the user" in text_of(result)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_pipe_client_is_notified_of_new_tools(mode: str, tmp_path: Path):
    told = asyncio.Event()

    async def hear(message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            told.set()

    async with served(mode, tmp_path / "log", message_handler=hear) as client:
        await client.list_tools()
        if mode == "legacy":
            await client.call_tool("grow", {})
            await asyncio.wait_for(told.wait(), LONG_SECONDS)
        else:
            async with client.listen(tools_list_changed=True) as events:
                await client.call_tool("grow", {})
                await asyncio.wait_for(anext(events), LONG_SECONDS)
        assert "late" in {found.name for found in (await client.list_tools(cache_mode="bypass")).tools}


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_pipe_client_supports_sampling_and_log(mode: str, tmp_path: Path):
    heard: list[object] = []

    async def lend(
        context: ClientRequestContext, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult:
        return types.CreateMessageResult(role="assistant", content=types.TextContent(text="so"), model="theirs")

    async def hear(params: types.LoggingMessageNotificationParams) -> None:
        heard.append(params.data)

    async with served(mode, tmp_path / "log", sampling_callback=lend, logging_callback=hear) as client:
        meta: Any = {LOG_LEVEL_META_KEY: "info"} if mode == "auto" else None
        assert text_of(await client.call_tool("think", {}, meta=meta)) == "theirs"
        async with asyncio.timeout(LONG_SECONDS):
            while not heard:  # noqa: ASYNC110 - notifications are handled when they come
                await asyncio.sleep(0)
    assert heard == ["thinking"]
