"""The official TypeScript SDK's clients, both generations, against our server over pipes and over HTTP."""

import asyncio
import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.mcp import peers

pytestmark = [pytest.mark.peers, pytest.mark.slow, pytest.mark.timeout(600)]
HERE = Path(__file__).parent
PROGRAM = str(HERE / "gateway_program.py")
CLIENTS = pytest.mark.parametrize(("sdk", "era"), [("1", "legacy"), ("2", "legacy"), ("2", "auto")])
WAYS = pytest.mark.parametrize("way", ["pipes", "http"])


@asynccontextmanager
async def target(way: str) -> AsyncGenerator[tuple[str, ...], None]:
    """What the client is told to use: a command, or the address of a server that is running."""
    if way == "pipes":
        yield sys.executable, PROGRAM
        return
    server = await asyncio.create_subprocess_exec(sys.executable, PROGRAM, "--http", stdout=asyncio.subprocess.PIPE)
    assert server.stdout is not None
    try:
        yield ((await server.stdout.readline()).decode().strip(),)
    finally:
        server.terminate()
        await server.communicate()


async def used(sdk: str, era: str, answer: str, way: str) -> Any:
    """What the client reports."""
    package = peers.node_package(peers.TYPESCRIPT_SDK if sdk == "1" else peers.TYPESCRIPT_CLIENT)
    script = str(HERE / "clients" / "typescript.mjs")
    async with target(way) as words:
        client = await asyncio.create_subprocess_exec(
            *(peers.node(), script, str(package), sdk, era, answer, *words),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        said, errors = await asyncio.wait_for(client.communicate(), 400)
    assert client.returncode == 0, errors.decode()
    return json.loads(said)


@CLIENTS
@WAYS
async def test_typescript_client_can_use_gateway(sdk: str, era: str, way: str):
    report = await used(sdk, era, "yes", way)
    assert report["before"] == ["add", "count", "forever", "grow", "read_input", "save", "think"]
    assert report["sum"]["structuredContent"] == {"sum": 5}
    assert report["wrong"]["isError"] and "expected an integer" in report["wrong"]["content"][0]["text"]
    assert "unknown tool: nothing" in report["unknown"]["thrown"]
    assert report["saved"]["content"][0]["text"] == "saved it"
    assert report["asked"] == ["Allow save: text='it'?\nit changes something"]
    # this SDK forgets who wants progress when the result arrives, which may be in one piece with the last notice
    assert report["progress"] in ([1], [1, 2], [1, 2, 3])
    assert "enough" in report["aborted"]["thrown"]
    assert set(report["after"]) - set(report["before"]) == {"late"}
    if sdk == "2":
        assert report["version"] == ("2026-07-28" if era == "auto" else "2025-11-25")


@CLIENTS
@pytest.mark.parametrize(("answer", "why"), [("none", "cannot ask the user"), ("no", "")])
async def test_unapproved_call_does_not_run(sdk: str, era: str, answer: str, why: str):
    report = await used(sdk, era, answer, "pipes")
    assert report["saved"]["isError"] and why in report["saved"]["content"][0]["text"]
    assert len(report["asked"]) == (answer == "no")
