"""The official conformance suite against our server and our client, with the known failures and their reasons."""

import asyncio
import os
import re
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.forked import COMMANDS, warm_command
from tests.mcp import peers
from tests.waiting import LONG_SECONDS, find_port

pytestmark = [pytest.mark.conformance, pytest.mark.slow, pytest.mark.timeout(900)]
TESTS = Path(__file__).parent.parent
OLD, NEW = "0.1.16", "0.2.0-alpha.12"
CLIENT = (
    f"{COMMANDS}, httpx2, callwright.mcp.http, callwright.mcp.oauth, callwright.mcp.servers,"
    "mcp.client.auth.extensions.client_credentials, mcp.client.auth.extensions.identity_assertion,"
    "mcp.client.streamable_http"
)
"""What the client imports."""
NO_TASKS = "the tasks extension is not offered"
NO_DPOP = "tokens bound to a key (DPoP) are not offered, as in the SDK"
SERVER_OLD: dict[str, str] = {}
TASKS = """
    tasks-lifecycle tasks-capability-negotiation tasks-wire-fields tasks-request-state-removal tasks-mrtr-input
    tasks-request-headers tasks-dispatch-and-envelope tasks-required-task-error tasks-mrtr-composition
"""
SERVER_NEW: dict[str, str] = dict.fromkeys(TASKS.split(), NO_TASKS)
CLIENT_OLD = {
    "auth/2025-03-26-oauth-metadata-backcompat": "the SDK finds no metadata there and does not go on",
}
CLIENT_NEW = {
    "auth/dpop": NO_DPOP,
    "auth/dpop-nonce": NO_DPOP,
    "http-custom-headers": "a null that the tool's own schema forbids is refused before anything is sent",
}


async def run_suite(version: str, *arguments: str) -> tuple[str, str]:
    """What the suite says, and what it says aside: a lone scenario of the old suite is reported there."""
    node = peers.node()
    package = peers.CONFORMANCE if version == OLD else peers.CONFORMANCE_NEXT
    process = await asyncio.create_subprocess_exec(
        node,
        peers.node_script(package, "dist/index.js"),
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PATH": f"{Path(node).parent}:{os.environ['PATH']}"},
    )
    said, aside = await process.communicate()
    return said.decode(), aside.decode()


def failures(said: str) -> set[str]:
    """The scenarios that failed; prints the totals."""
    total = re.search(r"Total: .*", said)
    assert total is not None, said[-2000:]
    print(total.group())
    return set(re.findall(r"✗ (\S+):", said))


@asynccontextmanager
async def fixture_server() -> AsyncGenerator[str, None]:
    port = find_port()
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(TESTS / "serve" / "conformance_server.py"), str(port)
    )
    try:
        async with asyncio.timeout(LONG_SECONDS):
            while not await _answers(port):  # noqa: ASYNC110 - another process has no event of ours
                await asyncio.sleep(0.05)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        await process.wait()


async def _answers(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True


@pytest.mark.parametrize(("version", "known"), [(OLD, SERVER_OLD), (NEW, SERVER_NEW)])
async def test_our_server_conforms(version: str, known: dict[str, str]):
    async with fixture_server() as url:
        said, _ = await run_suite(version, "server", "--url", url, "--suite", "all")
    assert failures(said) <= known.keys()


@pytest.mark.parametrize(("version", "known"), [(OLD, CLIENT_OLD), (NEW, CLIENT_NEW)])
async def test_our_client_conforms(version: str, known: dict[str, str]):
    # the suite starts some sixty clients at once, which would spend minutes on their imports
    command = warm_command(str(TESTS / "mcp" / "conformance_client.py"), preload=CLIENT)
    client = ("client", "--command", " ".join(command), "--timeout", "180000")
    crowded = failures((await run_suite(version, *client, "--suite", "all"))[0]) - known.keys()
    # what fails in that crowd has to hold when it has the machine
    alone = {name: "".join(await run_suite(version, *client, "--scenario", name)) for name in sorted(crowded)}
    assert {name: said[-2000:] for name, said in alone.items() if "OVERALL: PASSED" not in said} == {}
