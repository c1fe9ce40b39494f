"""A registry with the hand-written server's tools in it."""

import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from callwright import Executor, Registry
from callwright.core.calls import Outcome
from callwright.core.json import JsonObject
from callwright.executor.turn_context import Turn
from callwright.mcp import McpServers, PinnedTools, ServerConfig
from callwright.policy import AllowEverything, Policy

ROUGH = str(Path(__file__).parent / "servers" / "rough.py")


class World:
    """One server, connected, and an executor to call its tools with."""

    def __init__(self, config: ServerConfig, policy: Policy | None = None, pinned: PinnedTools | None = None) -> None:
        self.registry = Registry()
        self.executor = Executor(self.registry, policy or AllowEverything())
        self.servers = McpServers([config], self.registry, pinned=pinned)

    def run(self, tool: str, arguments: JsonObject | None = None, turn: Turn | None = None) -> Awaitable[Outcome]:
        """Call one of the server's tools by its short name."""
        return self.executor.run(f"mcp__rough__{tool}", arguments or {}, turn=turn or Turn())


@asynccontextmanager
async def rough_world(
    *arguments: str,
    trusted: bool = False,
    policy: Policy | None = None,
    pinned: PinnedTools | None = None,
    **limits: float,
) -> AsyncGenerator[World, None]:
    """The hand-written server behind an executor."""
    config = ServerConfig("rough", sys.executable, ("-S", ROUGH, *arguments), trusted=trusted, **limits)  # type: ignore[arg-type] - limits are numbers
    world = World(config, policy, pinned)
    async with world.servers:
        yield world


@pytest.fixture
def open_rough() -> "OpenRough":
    return rough_world


@pytest.fixture
async def rough() -> AsyncGenerator[World, None]:
    async with rough_world() as world:
        yield world


OpenRough = Callable[..., AbstractAsyncContextManager[World]]
