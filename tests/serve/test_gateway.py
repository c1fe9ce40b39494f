"""The gateway over HTTP on loopback, in both generations of the protocol."""

import asyncio
import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mcp_types as types
import pytest
from mcp import MCPError
from mcp_types import LOG_LEVEL_META_KEY
from tests.serve.conftest import save, text_of
from tests.waiting import LONG_SECONDS

from callwright import Completed, Effect, SchemaTool, ToolCall, ToolContext, ToolSpec, tool
from callwright.core.content import File, Output
from callwright.core.spec import ELICITS
from callwright.serve import ListingOptions, calling_client
from callwright.serve.call import payload_of
from callwright.toolbox import AskUser, Bash, Write

if TYPE_CHECKING:
    from tests.serve.conftest import Desk, OpenDesk

ERAS = pytest.mark.parametrize("mode", ["auto", "legacy"])


@ERAS
async def test_client_lists_and_calls_tools(desk: "Desk", mode: str):
    async with desk.client(mode) as client:
        listed = {found.name: found for found in (await client.list_tools()).tools}
        assert listed["add"].annotations is not None
        assert listed["add"].annotations.read_only_hint is True
        result = await client.call_tool("add", {"a": 2, "b": 3})
        assert result.structured_content == {"sum": 5}
        assert not result.is_error


async def test_tool_that_carries_questions_of_a_server_is_not_listed(open_desk: "OpenDesk"):
    async def ask(arguments: object, context: ToolContext) -> str:
        return "asked"

    spec = ToolSpec("server_asks", "Carries a question.", {"type": "object"}, metadata={ELICITS: True})
    async with open_desk(save, SchemaTool(spec, ask)) as desk, desk.client() as client:
        assert [found.name for found in (await client.list_tools()).tools] == ["save"]


@pytest.mark.slow
@ERAS
async def test_bad_arguments_return_error_result(desk: "Desk", mode: str):
    async with desk.client(mode) as client:
        result = await client.call_tool("add", {"a": "two", "b": 3})
        assert result.is_error
        assert text_of(result).startswith("invalid arguments: a")


async def test_unknown_tool_is_protocol_error(desk: "Desk"):
    async with desk.client() as client:
        with pytest.raises(MCPError, match="did you mean add"):
            await client.call_tool("ad", {})


async def test_images_reach_client(desk: "Desk"):
    async with desk.client() as client:
        result = await client.call_tool("picture", {})
        assert isinstance(result.content[0], types.ImageContent)
        assert result.content[0].data == "aGk="


@pytest.mark.parametrize(
    ("file", "block"),
    [
        (File(b"hi", "text/plain", "a b.txt"), {"uri": "file:///a%20b.txt", "mimeType": "text/plain", "text": "hi"}),
        (File(b"{}", "application/json", "db://x"), {"uri": "db://x", "mimeType": "application/json", "text": "{}"}),
        (File(b"\xff", "text/plain"), {"uri": "file:///output", "mimeType": "text/plain", "blob": "/w=="}),
        (File(b"hi", "application/pdf", "a"), {"uri": "file:///a", "mimeType": "application/pdf", "blob": "aGk="}),
    ],
)
def test_files_become_resources(file: File, block: dict[str, str]):
    result = payload_of(Completed(ToolCall("1", "save"), Output((file,))), modern=True)
    assert result["content"] == [{"type": "resource", "resource": block}]
    types.CallToolResult.model_validate(result)


@ERAS
async def test_progress_arrives_before_result(desk: "Desk", mode: str):
    heard: list[tuple[float, float | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total))

    async with desk.client(mode) as client:
        await client.call_tool("count", {}, progress_callback=hear)
    assert heard == [(1, 3), (2, 3), (3, 3)]


@ERAS
async def test_client_cancellation_stops_tool(desk: "Desk", mode: str):
    async with desk.client(mode) as client:
        task = asyncio.ensure_future(client.call_tool("forever", {}))
        async with asyncio.timeout(LONG_SECONDS):
            await desk.began_forever.wait()
        task.cancel()
        async with asyncio.timeout(LONG_SECONDS):
            while desk.executor.stats["forever"].calls == 0:  # noqa: ASYNC110 - what is waited for has no event
                await asyncio.sleep(0.01)
    assert dict(desk.executor.stats["forever"].outcomes) == {"cancelled": 1}


@ERAS
async def test_approval_is_asked_through_client(desk: "Desk", mode: str):
    async with desk.client(mode, action="accept", content={"decision": "yes"}) as client:
        result = await client.call_tool("save", {"text": "it"})
    assert text_of(result) == "saved it"
    [form] = desk.asked
    assert form.message.startswith("Allow save: text='it'?")


@ERAS
async def test_questions_at_the_same_time_are_all_answered(open_desk: "OpenDesk", mode: str):
    @tool(effect=Effect.READ)
    async def both(context: ToolContext) -> list[str]:
        """Save two things at once."""
        calls = [ToolCall(text, "save", {"text": text}) for text in ("one", "two")]
        ended = await asyncio.gather(*(context.execute(call) for call in calls))
        return sorted(outcome.text for (outcome,) in ended)

    yes: Any = {"action": "accept", "content": {"decision": "yes"}}
    async with open_desk(save, both) as desk, desk.client(mode, **yes) as client:
        assert json.loads(text_of(await client.call_tool("both", {}))) == ["saved one", "saved two"]
        assert len(desk.asked) == 2


@ERAS
async def test_approved_call_reports_to_the_request_with_the_answer(open_desk: "OpenDesk", mode: str):
    @tool(effect=Effect.WRITE)
    async def save(context: ToolContext) -> str:
        """Save, and report it."""
        context.report({"progress": 1, "total": 1})
        if (client := calling_client()) is not None:
            await client.log("saved", "warning")
        return "saved"

    heard: list[object] = []

    async def hear_progress(progress: float, total: float | None, message: str | None) -> None:
        heard.append(progress)

    async def hear_log(params: types.LoggingMessageNotificationParams) -> None:
        heard.append(params.data)

    yes: Any = {"action": "accept", "content": {"decision": "yes"}}
    async with open_desk(save) as desk, desk.client(mode, **yes, logging_callback=hear_log) as client:
        meta: Any = {LOG_LEVEL_META_KEY: "info"} if mode == "auto" else None
        result = await client.call_tool("save", {}, progress_callback=hear_progress, meta=meta)
    assert text_of(result) == "saved"
    assert set(heard) == {1, "saved"}


@ERAS
async def test_approval_shows_everything_that_will_run(open_desk: "OpenDesk", mode: str, tmp_path: Path):
    line = f"echo {'a' * 150}; echo hidden > middle.txt; echo {'b' * 150}\nbecause it is harmless"
    async with open_desk(Bash(tmp_path), Write(tmp_path)) as desk, desk.client(mode, action="decline") as client:
        await client.call_tool("bash", {"command": line})
        await client.call_tool("write", {"path": "a.txt", "content": f"{'a' * 150}hidden{'b' * 150}"})
        await client.call_tool("bash", {"command": "make"})
    asked, written, short = (form.message.split("\n") for form in desk.asked)
    assert f"command: {line.partition(chr(10))[0]}" in asked
    assert "│ because it is harmless" in asked
    assert f"writes {tmp_path / 'middle.txt'}" in asked
    assert f"content: {'a' * 150}hidden{'b' * 150}" in written
    assert f"writes {tmp_path / 'a.txt'}" in written
    assert short[:2] == ["Allow bash: make?", f"in {tmp_path}"]


@ERAS
@pytest.mark.parametrize(
    ("content", "reply"),
    [
        ({"choice": "red"}, "the user chose: red"),
        ({"text": "blue"}, "the user wrote: blue"),
        ({"choice": "pink"}, "gave no reply"),
        ({"decision": "yes"}, "gave no reply"),
    ],
)
async def test_question_of_a_tool_takes_a_reply(
    open_desk: "OpenDesk", mode: str, content: dict[str, Any], reply: str
) -> None:
    async with open_desk(AskUser()) as desk, desk.client(mode, action="accept", content=content) as client:
        choices = [{"label": "red", "description": "as a rose"}, "green"]
        result = await client.call_tool("ask_user", {"question": "Which colour?", "choices": choices})
    assert reply in text_of(result)
    (form,) = desk.asked
    assert form.message == "ask_user asks: Which colour?\n│ red: as a rose"


@ERAS
@pytest.mark.parametrize(
    ("action", "content"), [("accept", {"decision": "no"}), ("accept", {}), ("decline", None), ("cancel", None)]
)
async def test_anything_but_yes_declines(desk: "Desk", mode: str, action: Any, content: dict[str, Any] | None):
    async with desk.client(mode, action=action, content=content) as client:
        result = await client.call_tool("save", {"text": "it"})
    assert result.is_error
    assert desk.executor.stats["save"].outcomes.get("completed", 0) == 0


@ERAS
async def test_client_without_elicitation_is_denied(desk: "Desk", mode: str):
    async with desk.client(mode) as client:
        result = await client.call_tool("save", {"text": "it"})
    assert result.is_error
    assert "cannot ask the user" in text_of(result)


@pytest.mark.slow
async def test_approval_is_valid_once_for_its_call(desk: "Desk"):
    async with desk.client(action="accept", content={"decision": "yes"}) as client:
        asked = await client.session.call_tool("save", {"text": "it"}, allow_input_required=True)
        assert isinstance(asked, types.InputRequiredResult)
        assert asked.input_requests is not None
        yes = types.ElicitResult(action="accept", content={"decision": "yes"})
        given: types.InputResponses = dict.fromkeys(asked.input_requests, yes)
        save = partial(client.session.call_tool, input_responses=given, request_state=asked.request_state)
        with pytest.raises(MCPError, match="no call is suspended"):
            await save("save", {"text": "something else"})
        result = await save("save", {"text": "it"})
        assert text_of(result) == "saved it"
        with pytest.raises(MCPError, match="no call is suspended"):
            await save("save", {"text": "it"})


def many(number: int) -> Any:
    @tool(name=f"report_{number}", effect=Effect.READ)
    async def report() -> str:
        """Report the figures of one of the many branches of the bank, month by month and in full detail."""
        return f"branch {number}"

    return report


@pytest.mark.slow
async def test_many_tools_list_search_and_pinned_only(open_desk: "OpenDesk"):
    tools = [many(number) for number in range(2000)]
    async with (
        open_desk(*tools, listing=ListingOptions(budget_tokens=2000, pinned=("report_7",))) as desk,
        desk.client() as client,
    ):
        names = {found.name for found in (await client.list_tools()).tools}
        assert {"tool_search", "report_7"} <= names
        assert len(names) < 60
        hidden = next(f"report_{n}" for n in range(2000) if f"report_{n}" not in names)
        await client.call_tool("tool_search", {"query": f"select:{hidden}"})
        assert hidden in {found.name for found in (await client.list_tools(cache_mode="bypass")).tools}
        assert text_of(await client.call_tool(hidden, {})).startswith("branch")


async def test_found_tools_are_per_client(open_desk: "OpenDesk"):
    def called(name: str) -> dict[str, Any]:
        return {"client_info": types.Implementation(name=name, version="1")}

    tools = [many(number) for number in range(300)]
    async with (
        open_desk(*tools, listing=ListingOptions(budget_tokens=1000)) as desk,
        desk.client(**called("one")) as one,
        desk.client(**called("two")) as two,
    ):
        before = {found.name for found in (await two.list_tools()).tools}
        hidden = next(f"report_{n}" for n in range(300) if f"report_{n}" not in before)
        await one.call_tool("tool_search", {"query": f"select:{hidden}"})
        assert hidden in {found.name for found in (await one.list_tools(cache_mode="bypass")).tools}
        assert {found.name for found in (await two.list_tools(cache_mode="bypass")).tools} == before


@pytest.mark.parametrize("name", ["tool_search", "ToolSearch", "functions.tool_search"])
async def test_client_is_notified_of_tools_that_it_found(open_desk: "OpenDesk", name: str):
    told = asyncio.Event()

    async def hear(message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            told.set()

    tools = [many(number) for number in range(60)]
    async with (
        open_desk(*tools, listing=ListingOptions(budget_tokens=300)) as desk,
        desk.client("legacy", message_handler=hear) as client,
    ):
        names = {found.name for found in (await client.list_tools()).tools}
        hidden = next(f"report_{number}" for number in range(60) if f"report_{number}" not in names)
        await client.call_tool(next(found for found in names if found.startswith("report")), {})
        await asyncio.sleep(0.1)
        assert not told.is_set()  # other calls change no list
        await client.call_tool(name, {"query": f"select:{hidden}"})
        await asyncio.wait_for(told.wait(), LONG_SECONDS)


@ERAS
async def test_client_is_notified_of_new_tools(desk: "Desk", mode: str):
    told = asyncio.Event()

    async def hear(message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            told.set()

    async with desk.client(mode, message_handler=hear) as client:
        await client.list_tools()
        if mode == "legacy":
            desk.registry.add(many(1))
            await asyncio.wait_for(told.wait(), LONG_SECONDS)
        else:
            async with client.listen(tools_list_changed=True) as events:
                desk.registry.add(many(1))
                await asyncio.wait_for(anext(events), LONG_SECONDS)
        assert "report_1" in {found.name for found in (await client.list_tools(cache_mode="bypass")).tools}
