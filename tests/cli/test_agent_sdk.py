"""The command driven by claude-agent-sdk: prompts, approvals, hooks, interrupts, models and servers of the program."""

import asyncio
import json
import re
import shlex
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.forked import warm_command

from callwright.cli.options import build_parser
from callwright.cli.parsing import REFUSED_OPTIONS

sdk = pytest.importorskip("claude_agent_sdk")

Call = Callable[..., dict[str, object]]


@pytest.fixture
def options(tmp_path: Path) -> Callable[..., Any]:
    """Options for a project, with a scripted model."""
    command = tmp_path / "callwright"
    command.write_text(f'#!/bin/sh\nexec {shlex.join(warm_command("-m", "callwright"))} "$@"\n')
    command.chmod(0o755)
    project, home = tmp_path / "project", tmp_path / "home"
    project.mkdir()
    home.mkdir()

    def make(*replies: object, **more: Any) -> Any:
        script = tmp_path / f"script-{len(list(tmp_path.glob('script-*')))}.json"
        script.write_text(json.dumps(replies))
        env = {"CALLWRIGHT_HOME": str(home / ".callwright"), "HOME": str(home)}
        return sdk.ClaudeAgentOptions(
            cli_path=str(command), cwd=str(project), model=f"script:{script}", env=env, **more
        )

    return make


def calls(name: str, **arguments: object) -> dict[str, object]:
    return {"calls": [{"name": name, "arguments": arguments}]}


async def collect(prompt: Any, options: Any) -> list[Any]:
    return [message async for message in sdk.query(prompt=prompt, options=options)]


async def stream(*texts: str) -> AsyncIterator[dict[str, Any]]:
    for text in texts:
        yield {"type": "user", "message": {"role": "user", "content": text}, "parent_tool_use_id": None}


@pytest.mark.slow
async def test_query_returns_typed_messages(options: Any, tmp_path: Path) -> None:
    (tmp_path / "project" / "a.txt").write_text("alpha")
    given = options(calls("read", path="a.txt"), "it says alpha", include_partial_messages=True)
    messages = await collect("look", given)
    kinds = [type(message).__name__ for message in messages]
    assert kinds[0] == "SystemMessage" and kinds[-1] == "ResultMessage" and "StreamEvent" in kinds
    used = next(block for m in messages if isinstance(m, sdk.AssistantMessage) for block in m.content)
    assert (used.name, used.input) == ("read", {"path": "a.txt"})
    result = messages[-1]
    assert (result.subtype, result.is_error, result.result, result.num_turns) == ("success", False, "it says alpha", 2)
    assert result.model_usage and result.duration_api_ms >= 0 and result.uuid


@pytest.mark.slow
async def test_can_use_tool_decides_and_edits(options: Any, tmp_path: Path) -> None:
    asked: list[tuple[str, dict[str, Any]]] = []

    async def decide(name: str, given: dict[str, Any], context: Any) -> Any:
        asked.append((name, given))
        if given["path"] == "b.txt":
            return sdk.PermissionResultDeny(message="not b")
        if given["path"] == "c.txt":
            return sdk.PermissionResultAllow(updated_input={**given, "content": "edited"})
        return sdk.PermissionResultAllow()

    turn = {"calls": [{"name": "write", "arguments": {"path": f"{n}.txt", "content": n}} for n in "abc"]}
    messages = await collect("write", options(turn, "done", can_use_tool=decide))
    project = tmp_path / "project"
    assert [name for name, _ in asked] == ["Write"] * 3
    assert (project / "a.txt").read_text() == "a" and (project / "c.txt").read_text() == "edited"
    assert not (project / "b.txt").exists()
    assert messages[-1].result == "done"
    assert [denied["reason"] for denied in messages[-1].permission_denials] == ["declined: not b"]


@pytest.mark.slow
async def test_edited_input_is_judged_again(options: Any, tmp_path: Path) -> None:
    async def decide(name: str, given: dict[str, Any], context: Any) -> Any:
        return sdk.PermissionResultAllow(updated_input={**given, "file_path": str(tmp_path / "project" / "secret.txt")})

    given = options(
        calls("write", path="a.txt", content="x"), "done", can_use_tool=decide, disallowed_tools=["Edit(secret.txt)"]
    )
    await collect("write", given)
    assert list((tmp_path / "project").glob("*.txt")) == []


@pytest.mark.slow
async def test_a_callback_that_fails_declines(options: Any, tmp_path: Path) -> None:
    async def decide(name: str, given: dict[str, Any], context: Any) -> Any:
        raise RuntimeError("no idea")

    messages = await collect("write", options(calls("write", path="a.txt", content="x"), "done", can_use_tool=decide))
    assert not (tmp_path / "project" / "a.txt").exists()
    assert "no idea" in messages[-1].permission_denials[0]["reason"]


@pytest.mark.slow
async def test_without_a_callback_calls_are_declined(options: Any, tmp_path: Path) -> None:
    messages = await collect("write", options(calls("write", path="a.txt", content="x"), "done"))
    assert not (tmp_path / "project" / "a.txt").exists() and messages[-1].result == "done"
    assert "can_use_tool" in messages[-1].permission_denials[0]["reason"]


@pytest.mark.slow
async def test_hooks_of_the_program_guard_calls(options: Any, tmp_path: Path) -> None:
    seen: list[str] = []

    async def guard(given: Any, tool_use_id: str | None, context: Any) -> dict[str, Any]:
        seen.append(f"{given['tool_name']} {given['tool_input']['command']} {bool(tool_use_id)}")
        denied = {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "no touch"}
        return {"hookSpecificOutput": denied} if "touch" in given["tool_input"]["command"] else {}

    async def broken(given: Any, tool_use_id: str | None, context: Any) -> dict[str, Any]:
        raise RuntimeError("boom")

    hooks = {
        "PreToolUse": [sdk.HookMatcher(matcher="Bash", hooks=[guard]), sdk.HookMatcher(matcher="Write", hooks=[broken])]
    }
    turn = {
        "calls": [
            {"name": "bash", "arguments": {"command": "touch made"}},
            {"name": "bash", "arguments": {"command": "echo fine"}},
            {"name": "write", "arguments": {"path": "b.txt", "content": "b"}},
        ]
    }
    given = options(turn, "done", hooks=hooks, permission_mode="bypassPermissions", include_hook_events=True)
    messages = await collect("go", given)
    assert sorted(seen) == ["Bash echo fine True", "Bash touch made True"]
    assert list((tmp_path / "project").iterdir()) == []
    reasons = " ".join(denied["reason"] for denied in messages[-1].permission_denials)
    assert "no touch" in reasons and "boom" in reasons
    assert {m.subtype for m in messages if isinstance(m, sdk.HookEventMessage)} == {"hook_started", "hook_response"}


@pytest.mark.slow
async def test_client_switches_mode_and_model_between_prompts(options: Any, tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text(json.dumps([calls("write", path="b.txt", content="b"), "from the other model"]))
    async with sdk.ClaudeSDKClient(options(calls("write", path="a.txt", content="a"), "first")) as client:
        await client.query("one")
        first = [message async for message in client.receive_response()]
        await client.set_permission_mode("acceptEdits")
        await client.set_model(f"script:{other}")
        await client.query("two")
        second = [message async for message in client.receive_response()]
        with pytest.raises(Exception, match="no mode 'wild'"):
            await client.set_permission_mode("wild")
        info = await client.get_server_info()
        usage = await client.get_context_usage()
    assert first[-1].result == "first" and second[-1].result == "from the other model"
    assert [file.name for file in (tmp_path / "project").glob("*.txt")] == ["b.txt"]
    assert info is not None and "commands" in info and usage["totalTokens"] > 0


@pytest.mark.slow
async def test_interrupt_stops_a_run_and_the_next_prompt_works(options: Any) -> None:
    given = options(calls("bash", command="sleep 60"), "again", permission_mode="bypassPermissions")
    async with sdk.ClaudeSDKClient(given) as client:
        await client.query("wait")
        async for message in client.receive_messages():
            if isinstance(message, sdk.AssistantMessage):
                break
        await asyncio.sleep(0.2)
        await client.interrupt()
        stopped = [message async for message in client.receive_response()][-1]
        await client.query("go on")
        done = [message async for message in client.receive_response()][-1]
    assert stopped.is_error and stopped.subtype == "interrupted"
    assert done.result == "again"


@pytest.mark.slow
async def test_servers_inside_the_program_are_called(options: Any) -> None:
    @sdk.tool("add", "Add two numbers", {"a": int, "b": int})
    async def add(given: dict[str, Any]) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": f"sum {given['a'] + given['b']}"}]}

    server = sdk.create_sdk_mcp_server("calc", tools=[add])
    script = (calls("mcp__calc__add", a=2, b=3), "five")
    allowed = options(*script, mcp_servers={"calc": server}, allowed_tools=["mcp__calc__add"], strict_mcp_config=True)
    messages = await collect("add", allowed)
    results = [b for m in messages if isinstance(m, sdk.UserMessage) for b in m.content]
    assert "sum 5" in results[0].content and messages[-1].result == "five"
    declined = (await collect("add", options(*script, mcp_servers={"calc": server})))[-1]
    assert len(declined.permission_denials) == 1


@pytest.mark.slow
async def test_several_prompts_and_structured_output(options: Any) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    given = options('{"n": 1}', '{"n": 2}', output_format={"type": "json_schema", "schema": schema})
    messages = await collect(stream("one", "two"), given)
    results = [message.structured_output for message in messages if isinstance(message, sdk.ResultMessage)]
    assert results == [{"n": 1}, {"n": 2}]


@pytest.mark.slow
async def test_agents_tools_and_settings_of_the_program(options: Any) -> None:
    agent = sdk.AgentDefinition(description="Counts lines", prompt="Count.", tools=["Read"])
    given = options(
        "ok", agents={"counter": agent}, tools=["Read", "Task"], setting_sources=[], system_prompt="Be brief."
    )
    messages = await collect("hi", given)
    init = messages[0].data
    assert "counter" in init["agents"] and {"read", "task"} <= set(init["tools"]) and "bash" not in init["tools"]


@pytest.mark.slow
async def test_what_cannot_be_honoured_is_refused_by_name(options: Any) -> None:
    said: list[str] = []
    for more in (
        {"betas": ["x"]},
        {"max_thinking_tokens": 5},
        {"resume_session_at": "x"},
        {"task_budget": {"total": 9}},
    ):
        with pytest.raises(Exception, match="exit code 2"):
            await collect("hi", options("ok", stderr=said.append, **more))
    flags = ["--betas", "--max-thinking-tokens", "--resume-session-at", "--task-budget"]
    assert [flag for flag in flags if not any(f"{flag} is not supported" in line for line in said)] == []


@pytest.mark.slow
async def test_a_run_that_cannot_start_says_why(options: Any, tmp_path: Path) -> None:
    folder = tmp_path / "home" / ".callwright"
    folder.mkdir()
    (folder / "settings.json").write_text('{"permissions": {"deny": [1]}}')
    with pytest.raises(Exception, match=r"settings.json:1: permissions.deny"):
        await collect("hi", options("ok"))


def test_every_option_of_the_sdk_is_known_or_refused_by_name() -> None:
    from claude_agent_sdk._internal.transport import subprocess_cli

    source = Path(subprocess_cli.__file__).read_text(encoding="utf-8")
    built = source.split("def _build_command")[1].split("async def connect")[0]
    flags = set(re.findall(r"""f?["'](--[a-z][a-z-]+|--allowedTools|--disallowedTools)[="']""", built))
    known = {name for action in build_parser()._actions for name in action.option_strings}  # pyright: ignore[reportPrivateUsage]
    assert len(flags) > 30 and {"--allowedTools", "--resume", "--setting-sources"} <= flags
    assert flags - known == set(REFUSED_OPTIONS) & flags
