"""Our client and our server together over HTTP: a gateway in front of a gateway."""

import asyncio
import json
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
import mcp_types as types
import pytest
from mcp import Client
from tests.forked import warm_command
from tests.mcp.conftest import rough_world
from tests.serve.conftest import text_of
from tests.waiting import LONG_SECONDS

from callwright import Answers, Completed, Executor, Failed, Registry
from callwright.core.calls import Question
from callwright.executor.turn_context import Turn
from callwright.mcp import McpServers, ServerConfig
from callwright.policy import AllowEverything
from callwright.serve import Gateway

if TYPE_CHECKING:
    from tests.serve.conftest import Desk, OpenDesk

PROGRAM = str(Path(__file__).parent / "gateway_program.py")


@asynccontextmanager
async def client_of(desk: "Desk", token: str = "sesame") -> AsyncGenerator[tuple[Executor, McpServers], None]:
    registry = Registry()
    config = ServerConfig("desk", url=desk.url, headers={"Authorization": f"Bearer {token}"}, connect_seconds=10)
    async with McpServers([config], registry) as servers:
        yield Executor(registry, AllowEverything()), servers


async def test_tool_through_gateway_behaves_like_local(desk: "Desk"):
    async with client_of(desk) as (executor, _):
        outcome = await executor.run("mcp__desk__add", {"a": 2, "b": 3})
        assert isinstance(outcome, Completed)
        assert outcome.output.structured == {"sum": 5}


@pytest.mark.slow
async def test_approval_is_asked_at_far_client(desk: "Desk"):
    asked: list[str] = []

    async def ask(questions: Sequence[Question]) -> Answers:
        asked.extend(question.reason for question in questions)
        [question] = questions
        return Answers().approve(question, arguments={**question.arguments, "answer": {"decision": "yes"}})

    async with client_of(desk) as (executor, _):
        outcome = await executor.run("mcp__desk__save", {"text": "it"}, turn=Turn(ask=ask))
        assert isinstance(outcome, Completed), outcome
        assert outcome.text == "saved it"
        assert "Allow save: text='it'?" in asked[0]
        refused = await executor.run("mcp__desk__save", {"text": "it"})
        assert isinstance(refused, Failed)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize(
    ("action", "sent"),
    [("accept", {"action": "accept", "content": {"name": "Ada"}}), ("decline", {"action": "decline"})],
)
async def test_form_of_a_server_reaches_the_far_user(mode: str, action: Any, sent: dict[str, Any]):
    asked: list[types.ElicitRequestParams] = []

    async def answer(context: object, params: types.ElicitRequestParams) -> types.ElicitResult:
        asked.append(params)
        return types.ElicitResult(action=action, content={"name": "Ada"} if action == "accept" else None)

    async with rough_world() as rough:
        gateway = Gateway(rough.registry, rough.executor)
        async with gateway.running(), Client(gateway.server, mode=mode, elicitation_callback=answer) as client:
            assert json.loads(text_of(await client.call_tool("mcp__rough__ask", {}))) == sent
    (form,) = asked
    assert isinstance(form, types.ElicitRequestFormParams) and form.message == "rough asks: Who?"
    assert form.requested_schema["required"] == ["name"]


async def test_new_tools_reach_far_client(desk: "Desk", open_desk: "OpenDesk"):
    async with client_of(desk) as (executor, _):
        desk.registry.remove("picture")
        async with asyncio.timeout(LONG_SECONDS):
            while "mcp__desk__picture" in executor.registry.snapshot():  # noqa: ASYNC110 - has no event
                await asyncio.sleep(0.01)


class Sesame(httpx2.Auth):
    """Signs every request by itself."""

    def auth_flow(self, request: httpx2.Request) -> Generator[httpx2.Request, httpx2.Response, None]:
        request.headers["Authorization"] = "Bearer sesame"
        yield request


async def test_custom_auth_needs_no_sign_in(desk: "Desk"):
    registry = Registry()
    config = ServerConfig("desk", url=desk.url, connect_seconds=10)
    async with McpServers([config], registry, auth=lambda _: Sesame()) as servers:
        assert servers.status()[0].condition == "ready"
        assert "mcp__desk__add" in registry


async def test_rejected_credentials_are_reported(desk: "Desk"):
    async with client_of(desk, "wrong") as (executor, servers):
        [status] = servers.status()
        assert status.condition == "waiting"
        assert len(executor.registry.snapshot()) == 0


async def test_unreachable_server_is_reported():
    registry = Registry()
    config = ServerConfig("gone", url="http://127.0.0.1:9/mcp", connect_seconds=5)
    async with McpServers([config], registry) as servers:
        assert servers.status()[0].condition == "waiting"
        assert servers.status()[0].reason


@pytest.fixture
def configuration(tmp_path: Path) -> Path:
    file = tmp_path / "servers.json"
    command, *arguments = warm_command(PROGRAM)
    entry: dict[str, Any] = {"command": command, "args": arguments}
    file.write_text(json.dumps({"mcpServers": {"desk": entry}}))
    return file


@pytest.mark.slow
async def test_serve_command_is_a_gateway(configuration: Path):
    program = "from callwright.cli.commands.serve import run; import sys; sys.exit(run(sys.argv[1:]))"
    options = ("--config", str(configuration), "--allow", "mcp__desk__add", "--mode", "dontAsk")
    command, *arguments = warm_command("-c", program, *options)
    registry = Registry()
    async with McpServers([ServerConfig("outer", command, tuple(arguments))], registry) as servers:
        assert servers.status()[0].condition == "ready", servers.status()
        executor = Executor(registry, AllowEverything())
        allowed = await executor.run("mcp__outer__mcp__desk__add", {"a": 1, "b": 2})
        assert isinstance(allowed, Completed), allowed
        assert allowed.output.structured == {"sum": 3}
        denied = await executor.run("mcp__outer__mcp__desk__save", {"text": "x"})
        assert isinstance(denied, Failed)
        assert "never asks" in denied.text
