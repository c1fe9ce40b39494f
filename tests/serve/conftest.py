"""A gateway on loopback, and the official SDK's client to call it with."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Literal

import httpx2
import mcp_types as types
import pytest
from mcp import Client
from mcp.client import ClientRequestContext
from mcp.client.streamable_http import streamable_http_client
from tests.waiting import LONG_SECONDS

from callwright import Effect, Executor, Registry, ToolContext, tool
from callwright.core.content import Image, Text
from callwright.policy import ByMode, Policy
from callwright.serve import Gateway, HttpOptions, ListingOptions
from callwright.serve.http import listen
from callwright.tool.base import Tool


def pytest_configure(config: pytest.Config) -> None:
    """Known here until it stands in the project's own list."""
    config.addinivalue_line("markers", "conformance: the official MCP conformance suite, installed from npm")


def text_of(result: types.CallToolResult) -> str:
    """Return the text of a result."""
    return "\n".join(block.text for block in result.content if isinstance(block, types.TextContent))


Action = Literal["accept", "decline", "cancel"]
TOKEN = "sesame"


@tool(effect=Effect.READ)
async def add(a: int, b: int) -> dict[str, int]:
    """Add two numbers."""
    return {"sum": a + b}


@tool(effect=Effect.WRITE)
async def save(text: str) -> str:
    """Save a text."""
    return f"saved {text}"


@tool(effect=Effect.READ)
async def picture() -> list[Any]:
    """Show a picture."""
    return [Image(b"hi", "image/png"), Text("there")]


@tool(effect=Effect.READ)
async def count(context: ToolContext) -> str:
    """Count to three, aloud."""
    for number in (1, 2, 3):
        context.report({"progress": number, "total": 3})
        await asyncio.sleep(0)
    return "three"


def make_forever(began: asyncio.Event, ended: asyncio.Event | None = None) -> Tool:
    """Return a tool that runs until it is stopped."""

    @tool(effect=Effect.READ)
    async def forever() -> str:
        """Run until stopped."""
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            if ended is not None:
                ended.set()
        return "never"

    return forever


class Desk:
    """A gateway that is running, and ways to reach it."""

    def __init__(self, registry: Registry, executor: Executor, gateway: Gateway, url: str) -> None:
        self.registry = registry
        self.executor = executor
        self.gateway = gateway
        self.url = url
        self.asked: list[types.ElicitRequestParams] = []
        self.began_forever = asyncio.Event()

    @asynccontextmanager
    async def client(
        self, mode: str = "auto", *, action: Action | None = None, content: dict[str, Any] | None = None, **more: Any
    ) -> AsyncGenerator[Client, None]:
        """The SDK's client; with an action it answers what it is asked."""

        async def answer(context: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
            self.asked.append(params)
            return types.ElicitResult(action=action or "cancel", content=content if action == "accept" else None)

        asks = {"elicitation_callback": answer} if action else {}
        async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}, timeout=LONG_SECONDS) as http:
            transport = streamable_http_client(self.url, http_client=http)
            async with Client(transport, mode=mode, **asks, **more) as client:
                yield client


@asynccontextmanager
async def open_desk_(
    *tools: Any, policy: Policy | None = None, listing: ListingOptions | None = None, **options: Any
) -> AsyncGenerator[Desk, None]:
    registry = Registry(*(tools or (add, save, picture, count)))
    executor = Executor(registry, policy or ByMode("default"))
    gateway = Gateway(registry, executor, listing=listing or ListingOptions())
    async with listen(gateway, HttpOptions(port=0, token=TOKEN, **options)) as (url, _):
        desk = Desk(registry, executor, gateway, url)
        if not tools:
            registry.add(make_forever(desk.began_forever))
        yield desk


OpenDesk = Callable[..., AbstractAsyncContextManager[Desk]]


@pytest.fixture
def open_desk() -> OpenDesk:
    return open_desk_


@pytest.fixture
async def desk() -> AsyncGenerator[Desk, None]:
    async with open_desk_() as opened:
        yield opened
