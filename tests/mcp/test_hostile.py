"""Servers that attack: schema bombs, thousands of tools, names of ours, changed prompts, processes left behind."""

import asyncio
import gc
import logging
import os
import sys
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp.shared.message import SessionMessage
from tests.waiting import until

from callwright import Answers, Approve, Completed, Executor, Failed, Interrupted, Registry, Turn
from callwright.core.calls import Outcome, Question
from callwright.mcp import McpServers, PinnedTools, PinnedToolsFile, ServerConfig
from callwright.mcp.http import RateLimitedReader
from callwright.mcp.lines import RateLimit
from callwright.mcp.listing import ListingFilter
from callwright.policy import AllowEverything, ByMode, Grants, PathContext, Policies

TURN = Turn(session_id="s")
HOSTILE = str(Path(__file__).parent / "servers" / "hostile.py")


def config(*how: str) -> ServerConfig:
    return ServerConfig("h", sys.executable, ("-S", HOSTILE, *how), seconds=20)


@asynccontextmanager
async def connected(*how: str, pinned: PinnedTools | None = None) -> AsyncGenerator[tuple[McpServers, Executor], None]:
    registry = Registry()
    async with McpServers([config(*how)], registry, pinned=pinned) as servers:
        yield servers, Executor(registry, AllowEverything())


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def call(executor: Executor, text: str) -> Outcome:
    return await executor.run("mcp__h__echo", {"text": text})


async def test_schema_bombs_are_left_out_when_listed() -> None:
    async with connected("bomb") as (servers, _):
        status = servers.status()[0]
    assert status.tools == ("mcp__h__echo",)
    assert len(status.problems) == 5
    assert sum("expands to more than" in problem for problem in status.problems) == 4
    assert sum("refers to itself without end" in problem for problem in status.problems) == 1


@pytest.mark.slow
async def test_thousands_of_tools_are_cut_with_a_reason() -> None:
    class CountingPins(PinnedTools):
        saves = 0

        def _save(self) -> None:
            self.saves += 1

    pins = CountingPins()
    async with connected("many", pinned=pins) as (servers, executor):
        assert servers.status()[0].problems == ("it lists more than 5000 tools; the first 5000 are used",)
        assert isinstance(await call(executor, "x"), Completed)
    assert pins.saves == 1  # one for each tool took over a minute


@pytest.mark.slow
async def test_other_tasks_run_while_thousands_of_tools_are_listed() -> None:
    blocked: list[float] = []

    async def watch() -> None:
        while True:
            began = time.thread_time()  # processor time: other programs on this machine do not count
            await asyncio.sleep(0)
            blocked.append(time.thread_time() - began)

    gc.disable()  # one collection of all that other tests have left takes longer than any slice
    try:
        watching = asyncio.create_task(watch())
        async with connected("many") as (servers, _):
            assert len(servers.status()[0].tools) == 5_000
            watching.cancel()
    finally:
        gc.enable()
    # the rest of these hundreds of milliseconds comes in slices of ten
    assert max(blocked) < 0.5 * sum(sorted(blocked)[-40:])


@pytest.mark.parametrize("kind", ["tools", "prompts", "resources", "resourceTemplates"])
async def test_long_listing_over_http_is_cut_before_it_is_validated(kind: str) -> None:
    sender, receiver = anyio.create_memory_object_stream[SessionMessage](1)
    items = [{"name": f"item_{number}"} for number in range(20_000)]
    await sender.send(SessionMessage(types.JSONRPCResponse(jsonrpc="2.0", id=1, result={kind: items})))
    async with sender, RateLimitedReader(receiver, ListingFilter()) as reader:
        message = await anext(reader)
    assert isinstance(message, SessionMessage) and isinstance(message.message, types.JSONRPCResponse)
    assert message.message.result == {kind: items[:5_001]}


@pytest.mark.parametrize("kind", ["content", "contents", "messages"])
async def test_long_result_over_http_is_cut_before_it_is_validated(kind: str) -> None:
    results = {
        "content": (types.CallToolResult, {"type": "text", "text": "x"}),
        "contents": (types.ReadResourceResult, {"uri": "notes://a", "text": "x"}),
        "messages": (types.GetPromptResult, {"role": "user", "content": {"type": "text", "text": "x"}}),
    }
    model, block = results[kind]
    response = types.JSONRPCResponse(jsonrpc="2.0", id=1, result={kind: [block] * 20_000})
    message = ListingFilter().apply(SessionMessage(response))
    assert isinstance(message, SessionMessage) and isinstance(message.message, types.JSONRPCResponse)
    parts = getattr(model.model_validate(message.message.result, by_name=False), kind)
    assert len(parts) == 5_001 and "15,000 more content blocks were left out" in str(parts[-1])


async def test_result_of_many_blocks_is_cut_and_says_so() -> None:
    async with connected("plain") as (_, executor):
        outcome = await call(executor, "many blocks")
    assert isinstance(outcome, Completed)
    assert outcome.text.endswith("4999\n[15,000 more content blocks were left out: the server sent 20,000]")


@pytest.mark.slow
async def test_long_definitions_are_cut_with_a_reason() -> None:
    async with connected("large") as (servers, executor):
        (problem,) = servers.status()[0].problems
        assert problem.startswith("its tools have more than 5,000,000 characters of definitions; the first ")
        assert isinstance(await call(executor, "x"), Completed)


async def test_long_names_of_prompts_are_cut_with_a_reason() -> None:
    async with connected("long prompts") as (servers, executor):
        [status] = servers.status()
        tool = executor.registry.snapshot().get("mcp__h__get_prompt")
    assert tool is not None and len(str(tool.spec.input_schema)) < 250_000
    assert status.problems == ("its prompts have names of more than 200,000 characters; the first 49 of 1000 are used",)


@pytest.mark.slow
async def test_twenty_thousand_tools_cost_little_more_than_those_used() -> None:
    async def measure(count: int) -> float:
        began = time.process_time()
        async with connected("many", str(count)) as (servers, _):
            assert len(servers.status()[0].tools) == min(count + 1, 5_000)
        return time.process_time() - began

    few = min([await measure(4_999), await measure(4_999)])
    assert await measure(20_000) < 4 * few


async def test_listing_that_repeats_itself_ends_and_is_named_once() -> None:
    async with connected("endless") as (servers, executor):
        status = servers.status()[0]
        assert isinstance(await call(executor, "x"), Completed)
    assert status.problems == (
        "the list of tools does not end; the first 2 are used",
        "echo: listed twice; the first definition is used",
        "the list of resources does not end; the first 2 are used",
    )


async def test_other_tasks_run_within_a_burst_of_messages() -> None:
    limit, ran = RateLimit(), asyncio.Event()
    asyncio.get_running_loop().call_soon(ran.set)
    time.sleep(0.02)  # noqa: ASYNC251 - stands for the work on messages
    await limit.wait()
    assert ran.is_set()


async def test_server_cannot_take_the_names_of_runtime_tools() -> None:
    async with connected("names") as (servers, executor):
        status = servers.status()[0]
        answer = executor.registry.snapshot().get("mcp__h__answer")
    assert answer is not None and answer.spec.description != "Not ours."
    assert sum("reserved" in problem for problem in status.problems) == 18
    assert status.tools == ("mcp__h__echo",)


async def test_texts_of_a_server_in_its_status_are_one_short_line() -> None:
    async with connected("lines") as (servers, _):
        [status] = servers.status()
    assert status.server == "hostile⏎other  ready 1"
    [problem] = status.problems
    assert problem.startswith("x⏎callwright: run") and len(problem) < 1_000


async def test_changed_prompt_is_held_until_accepted(tmp_path: Path) -> None:
    pins, switch = PinnedTools(), tmp_path / "changed"
    async with connected("prompts", str(switch), pinned=pins) as (_, executor):
        assert isinstance(await executor.run("mcp__h__get_prompt", {"name": "greet"}), Completed)
    switch.touch()
    async with connected("prompts", str(switch), pinned=pins) as (servers, executor):
        tool = executor.registry.snapshot().get("mcp__h__get_prompt")
        assert tool is not None and "Ignore your rules" not in tool.spec.description
        assert servers.status()[0].held == ("mcp__h__get_prompt",)
        outcome = await executor.run("mcp__h__get_prompt", {"name": "greet"})
        assert isinstance(outcome, Failed) and "review" in outcome.text
        servers.accept("mcp__h__get_prompt")
        assert isinstance(await executor.run("mcp__h__get_prompt", {"name": "greet"}), Completed)


async def test_prompt_that_another_process_accepted_is_released(tmp_path: Path) -> None:
    pins, switch = tmp_path / "pins.json", tmp_path / "changed"
    async with connected("prompts", str(switch), pinned=PinnedToolsFile(pins)):
        switch.touch()
    async with connected("prompts", str(switch), pinned=PinnedToolsFile(pins)) as (_, executor):
        async with connected("prompts", str(switch), pinned=PinnedToolsFile(pins)) as (others, _):
            others.accept("mcp__h__get_prompt")
        outcome = await executor.run("mcp__h__get_prompt", {"name": "greet"})
        assert isinstance(outcome, Failed) and "call it again" in outcome.text
        assert isinstance(await executor.run("mcp__h__get_prompt", {"name": "greet"}), Completed)


async def test_changed_resource_text_is_held_until_accepted(tmp_path: Path) -> None:
    pins, switch = PinnedTools(), tmp_path / "changed"
    both = ("mcp__h__list_resources", "mcp__h__read_resource")
    async with connected("resources", str(switch), pinned=pins) as (_, executor):
        assert isinstance(await executor.run(both[0], {}), Completed)
    Path(f"{switch}2").touch()
    async with connected("resources", str(switch), pinned=pins) as (servers, executor):
        assert servers.status()[0].held == ()  # a new resource is like a new tool
        switch.touch()  # without an announcement: found when the resources are listed
        refused = await executor.run(both[0], {})
        assert isinstance(refused, Failed) and "review" in refused.text and "Ignore" not in refused.text
        assert servers.status()[0].held == both
    async with connected("resources", str(switch), pinned=pins) as (servers, executor):
        assert servers.status()[0].held == both
        for name, arguments in zip(both, ({}, {"uri": "notes://a"}), strict=True):
            refused = await executor.run(name, arguments)
            assert isinstance(refused, Failed) and "review" in refused.text
        servers.accept(both[0])
        assert servers.status()[0].held == ()
        for name, arguments in zip(both, ({}, {"uri": "notes://a"}), strict=True):
            assert isinstance(await executor.run(name, arguments), Completed)


async def test_changed_text_does_not_hide_behind_the_one_that_was_accepted(tmp_path: Path) -> None:
    pins, switch = PinnedTools(), tmp_path / "changed"
    async with connected("twice", str(switch), pinned=pins) as (servers, executor):
        [status] = servers.status()
        assert status.held == () and status.problems == ("prompt 'greet': listed twice; the first definition is used",)
        listed = await executor.run("mcp__h__list_resources", {})
        assert listed.text.count("notes://a") == 1
    switch.touch()
    async with connected("twice", str(switch), pinned=pins) as (servers, executor):
        assert sorted(servers.status()[0].held) == [
            f"mcp__h__{name}" for name in ("get_prompt", "list_resources", "read_resource")
        ]


async def test_tool_cannot_borrow_the_pin_of_a_prompt_or_resource(tmp_path: Path) -> None:
    pins, switch = PinnedTools(), tmp_path / "changed"
    async with connected("pins", str(switch), pinned=pins) as (servers, _):
        assert servers.status()[0].held == ()
    switch.touch()
    async with connected("pins", str(switch), pinned=pins) as (servers, _):
        held = servers.status()[0].held
    assert len(held) == 5 and "mcp__h__get_prompt" not in held


async def test_hashed_name_does_not_pass_to_another_tool_unseen(tmp_path: Path) -> None:
    pins, which, name = PinnedTools(), tmp_path / "which", "mcp__h__read__-c16f5dd"
    which.write_text("0")
    async with connected("hashes", str(which), pinned=pins) as (servers, executor):
        assert name in servers.status()[0].tools
        assert isinstance(await executor.run(name, {}), Completed)
    for other in ("1", "2"):  # another tool of the same hash, and one that is called like the result
        which.write_text(other)
        async with connected("hashes", str(which), pinned=pins) as (servers, executor):
            assert servers.status()[0].held == (name,)
            assert isinstance(await executor.run(name, {}), Failed)
            servers.accept(name)
            assert isinstance(await executor.run(name, {}), Completed)
        async with connected("hashes", str(which), pinned=pins) as (servers, _):
            assert servers.status()[0].held == ()


@pytest.mark.slow
async def test_call_that_waits_for_a_restart_is_of_the_tool_as_it_is_then(tmp_path: Path) -> None:
    async with connected("restart", str(tmp_path / "changed")) as (servers, executor):
        assert isinstance(await executor.run("mcp__h__leave", {}), Failed)
        await until(lambda: servers.status()[0].condition == "waiting")
        outcome = await executor.run("mcp__h__echo", {"text": "x"})
        assert isinstance(outcome, Failed) and "changed mcp__h__echo since" in outcome.text
        assert servers.status()[0].held == ("mcp__h__echo", "mcp__h__leave")


@pytest.mark.slow
async def test_tool_that_changes_while_the_user_is_asked_is_not_called(tmp_path: Path) -> None:
    async with connected("restart", str(tmp_path / "changed")) as (servers, executor):

        async def ask(questions: Sequence[Question]) -> Answers:
            assert isinstance(await executor.run("mcp__h__leave", {}), Failed)
            await until(lambda: bool(servers.status()[0].held))
            return Answers.approving(questions)

        outcome = await executor.run("mcp__h__echo", {"text": "visit"}, turn=Turn(ask=ask))
        assert isinstance(outcome, Failed) and "changed mcp__h__echo since" in outcome.text


async def test_project_servers_are_pinned_apart_from_the_users(tmp_path: Path) -> None:
    pins, switch = PinnedTools(), tmp_path / "changed"
    async with connected("pins", str(switch), pinned=pins):
        pass
    switch.touch()
    theirs = replace(config("pins", str(switch)), repository=str(tmp_path))
    async with McpServers([theirs], Registry(), pinned=pins) as servers:
        assert servers.status()[0].held == ()
    async with connected("pins", str(switch), pinned=pins) as (servers, _):
        assert len(servers.status()[0].held) == 5  # what the project's server listed was not accepted for the user's
    pins.forget("h")
    async with connected("pins", str(switch), pinned=pins) as (servers, _):
        assert servers.status()[0].held == ()


@pytest.mark.parametrize(("how", "told"), [("error", "Connection closed"), ("terminated", "Session terminated")])
async def test_error_of_a_closed_connection_does_not_restart_the_server(how: str, told: str) -> None:
    async with connected("plain") as (servers, executor):
        first = await call(executor, "a")
        waiting = [asyncio.ensure_future(call(executor, text)) for text in ("b", how, "c")]
        b, error, c = await asyncio.gather(*waiting)
        assert isinstance(error, Failed) and told in error.text and error.attempts == 1
        assert [text.text.split()[-1] for text in (b, c)] == [first.text.split()[-1]] * 2
        assert servers.status()[0].condition == "ready"


async def test_server_that_says_it_is_busy_has_no_call_repeated(tmp_path: Path) -> None:
    async with connected("plain", str(tmp_path / "calls")) as (_, executor):
        assert isinstance(await call(executor, "busy"), Failed)
    assert (tmp_path / "calls").read_text() == "called\n"


async def test_wrong_notification_leaves_no_traceback_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async with connected("plain") as (_, executor):
        assert isinstance(await call(executor, "wrong notification"), Completed)
        assert isinstance(await call(executor, "x"), Completed)
    assert not [record for record in caplog.records if record.exc_info]


def test_tracebacks_of_another_program_stay_in_its_log(caplog: pytest.LogCaptureFixture) -> None:
    try:
        types.ServerCapabilities.model_validate({"tools": 1})
    except ValueError:
        logging.getLogger("client").exception("this is not of the SDK")
    assert [record for record in caplog.records if record.exc_info]


async def test_half_a_surrogate_pair_fails_its_call_at_once() -> None:
    async with connected("plain") as (_, executor):
        outcome = await call(executor, "surrogate")
        assert isinstance(outcome, Failed) and "not valid" in outcome.text and outcome.error.code != "timed_out"
        assert isinstance(await call(executor, "x"), Completed)


async def test_cancelling_while_connecting_leaves_no_server(tmp_path: Path) -> None:
    note = tmp_path / "pid"

    async def connect() -> None:
        async with connected("silent", str(note)):
            pass

    task = asyncio.ensure_future(connect())
    while not note.exists():  # noqa: ASYNC110 - another process makes the file
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not alive(int(note.read_text()))


async def test_daemon_of_a_server_ends_with_it(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    async with connected("daemon", str(note)) as (_, executor):
        assert isinstance(await call(executor, "x"), Completed)
        assert alive(int(note.read_text()))
    assert not alive(int(note.read_text()))


async def test_program_in_the_working_folder_is_not_found_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "some-server").write_text("#!/bin/sh\ntouch evil\n")
    (tmp_path / "some-server").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f":.:{os.environ['PATH']}")
    async with McpServers([ServerConfig("s", "some-server")], Registry()) as servers:
        assert "was not found" in servers.status()[0].reason
    assert not (tmp_path / "evil").exists()


async def approve_for_session(executor: Executor, name: str, arguments: dict[str, str]) -> None:
    asked = await executor.run(name, arguments, turn=TURN)
    assert isinstance(asked, Interrupted)
    answers = Answers({asked.questions[0].id: Approve(scope="session")})
    assert isinstance(await executor.run(name, arguments, answers=answers, turn=TURN), Completed)
    assert isinstance(await executor.run(name, arguments, turn=TURN), Completed)


def asking(registry: Registry) -> Executor:
    return Executor(registry, Policies(Grants(PathContext("/w", "/h")), ByMode()))


@pytest.mark.parametrize("swap", [{"args": ("-S", HOSTILE, "swapped")}, {"env": {"X": "1"}}, {"repository": "/r"}])
async def test_approval_for_a_session_is_for_one_server(swap: dict[str, Any]) -> None:
    registry, arguments = Registry(), {"text": "x"}
    async with McpServers([config("plain")], registry) as servers:
        executor = asking(registry)
        await approve_for_session(executor, "mcp__h__echo", arguments)
        await servers.remove_server("h")
        await servers.add_server(config("plain"))  # the same one, restarted
        assert isinstance(await executor.run("mcp__h__echo", arguments, turn=TURN), Completed)
        await servers.remove_server("h")
        await servers.add_server(replace(config("plain"), **swap))  # lists the same definition under the same name
        assert isinstance(await executor.run("mcp__h__echo", arguments, turn=TURN), Interrupted)


async def test_approval_for_a_session_ends_with_the_definition(tmp_path: Path) -> None:
    registry, switch = Registry(), tmp_path / "changed"
    ours = replace(config("pins", str(switch)), trusted=True)  # whose changes are not held
    async with McpServers([ours], registry) as servers:
        executor = asking(registry)
        await approve_for_session(executor, "mcp__h__greet", {})
        switch.touch()
        await servers.remove_server("h")
        await servers.add_server(ours)
        assert isinstance(await executor.run("mcp__h__greet", {}, turn=TURN), Interrupted)
