"""Clients that this project did not write: the TypeScript SDK and acpx, each with our command as its agent."""

import asyncio
import json
import shlex
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.acp.editor import call
from tests.mcp import peers

pytestmark = [pytest.mark.peers, pytest.mark.slow, pytest.mark.timeout(600)]
_CLIENT = Path(__file__).parent / "clients" / "typescript_client.mjs"
_WRITE = call("write", path="a.txt", content="hi\n")
_DENIED = 5
"""The exit code of acpx if a permission was denied."""
Script = Callable[..., str]


async def run_node(*arguments: str, cwd: Path, code: int = 0) -> str:
    process = await asyncio.create_subprocess_exec(
        peers.node(), *arguments, cwd=cwd, stdin=DEVNULL, stdout=PIPE, stderr=PIPE
    )
    out, err = await process.communicate()
    assert process.returncode == code, f"{out.decode()}\n{err.decode()}"
    return out.decode()


@pytest.fixture
def typescript(project: Path, script: Script) -> Callable[..., Any]:
    async def run(scenario: str, *replies: object) -> dict[str, Any]:
        sdk = peers.node_script(peers.ACP_SDK, "dist/v1/stable/acp.js")
        command = (sys.executable, "-m", "callwright", "acp", script(*replies))
        return json.loads(await run_node(str(_CLIENT), sdk, scenario, str(project), *command, cwd=project))

    return run


def kinds(seen: dict[str, Any]) -> list[str]:
    return [each["update"]["sessionUpdate"] for each in seen["updates"]]


async def test_typescript_client_approves_a_write(typescript: Callable[..., Any], project: Path) -> None:
    seen = await typescript("approve", {**_WRITE, "text": "I write."}, "done")
    assert (project / "a.txt").read_text() == "hi\n"
    assert seen["answered"]["stopReason"] == "end_turn"
    assert seen["asked"][0]["toolCall"]["content"][0]["type"] == "diff"
    shown = kinds(seen)
    assert shown.index("agent_message_chunk") < shown.index("tool_call") < shown.index("tool_call_update")
    assert "available_commands_update" in shown
    assert seen["errors"] == {"logout": -32601, "authenticate": -32602, "session/nothing": -32601}


@pytest.mark.parametrize(("scenario", "stop"), [("reject", "end_turn"), ("cancel", "cancelled"), ("plan", "end_turn")])
async def test_typescript_client_stops_a_write(
    typescript: Callable[..., Any], project: Path, scenario: str, stop: str
) -> None:
    seen = await typescript(scenario, _WRITE, "done")
    assert not (project / "a.txt").exists()
    assert seen["answered"]["stopReason"] == stop
    statuses = [each["update"].get("status") for each in seen["updates"]]
    assert "failed" in statuses and "completed" not in statuses


async def test_typescript_client_lists_loads_and_deletes(typescript: Callable[..., Any]) -> None:
    seen = await typescript("sessions", _WRITE, "done")
    session = seen["session"]["sessionId"]
    assert [each["sessionId"] for each in seen["listed"]["sessions"]] == [session]
    assert "user_message_chunk" in kinds(seen)[seen["before"] :]
    assert seen["left"]["sessions"] == []


async def test_typescript_client_shares_its_buffers(typescript: Callable[..., Any], project: Path) -> None:
    (project / "a.txt").write_text("this is saved\n")
    edit = call("edit", path="a.txt", old_string="is unsaved", new_string="was unsaved")
    seen = await typescript("files", call("read", path="a.txt"), edit, "done")
    assert (project / "a.txt").read_text() == "this was unsaved\n"
    assert seen["written"] == [str(project / "a.txt")]


async def acpx(project: Path, agent: str, *arguments: str, code: int = 0) -> str:
    program = peers.node_script(peers.ACPX, "dist/cli.js")
    command = shlex.join([sys.executable, "-m", "callwright", "acp", agent])
    return await run_node(program, "--agent", command, "--cwd", str(project), *arguments, cwd=project, code=code)


async def test_acpx_runs_a_prompt(project: Path, script: Script) -> None:
    out = await acpx(project, script(_WRITE, "all done"), "--approve-all", "exec", "write it")
    assert "all done" in out
    assert (project / "a.txt").read_text() == "hi\n"


async def test_acpx_denies(project: Path, script: Script) -> None:
    arguments = ("--deny-all", "--format", "json", "exec", "write it")
    out = await acpx(project, script(_WRITE, "not then"), *arguments, code=_DENIED)
    assert "not then" in out
    assert not (project / "a.txt").exists()


async def test_acpx_continues_a_session(project: Path, script: Script) -> None:
    agent = script("first answer", "second answer")
    await acpx(project, agent, "sessions", "new")
    assert "first answer" in await acpx(project, agent, "--ttl", "60", "prompt", "one")
    assert "second answer" in await acpx(project, agent, "--ttl", "60", "prompt", "two")
    await acpx(project, agent, "sessions", "close")
