"""Tools that use the client that called them: its log, its model, its roots."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import mcp_types as types
import pytest
from mcp import Client, MCPError
from mcp.client import ClientRequestContext
from mcp_types import CLIENT_CAPABILITIES_META_KEY, LOG_LEVEL_META_KEY, PROTOCOL_VERSION_META_KEY
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from tests.waiting import LONG_SECONDS

from callwright import Completed, Effect, Executor, Registry, ToolContext, tool
from callwright.core.errors import AuthRequired
from callwright.mcp.fast_path import PipeFastPath
from callwright.policy import ByMode
from callwright.serve import CallingClient, Gateway, calling_client
from callwright.serve.clients import CallRequest
from callwright.serve.elicitation import can_show
from callwright.serve.stdio import PipeCaller

ERAS = pytest.mark.parametrize("mode", ["auto", "legacy"])


def client() -> CallingClient:
    found = calling_client()
    assert found is not None
    return found


@tool(effect=Effect.READ)
async def think() -> str:
    """Borrow the client's model."""
    said = types.SamplingMessage(role="user", content=types.TextContent(text="Well?"))
    answer = await client().sample(types.CreateMessageRequestParams(messages=[said], max_tokens=5))
    return str(answer.model)


@tool(effect=Effect.READ)
async def folders() -> list[str]:
    """Ask for the client's folders."""
    return [str(root.uri) for root in await client().roots()]


@tool(effect=Effect.READ)
async def talk() -> str:
    """Write into the client's log."""
    await client().log("a detail", "debug")
    await client().log({"what": "happened"}, "warning", "talker")
    return "said"


@tool(effect=Effect.WRITE)
async def keep() -> str:
    """Keep something, which must be asked."""
    return "kept"


@tool(effect=Effect.READ)
async def alone() -> bool:
    """Tell whether a client called."""
    return calling_client() is None


async def lend(context: ClientRequestContext, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
    return types.CreateMessageResult(role="assistant", content=types.TextContent(text="so"), model="theirs")


async def show(context: ClientRequestContext) -> types.ListRootsResult:
    return types.ListRootsResult(roots=[types.Root(uri="file:///work/project")])  # type: ignore[arg-type] - a text will do


@asynccontextmanager
async def opened(mode: str, **callbacks: Any) -> AsyncGenerator[Client, None]:
    registry = Registry(think, folders, talk, alone, keep)
    gateway = Gateway(registry, Executor(registry, ByMode("default")))
    async with gateway.running(), Client(gateway.server, mode=mode, **callbacks) as opened_client:
        yield opened_client


@ERAS
async def test_tool_can_sample_and_list_roots(mode: str):
    async with opened(mode, sampling_callback=lend, list_roots_callback=show) as used:
        assert "theirs" in str((await used.call_tool("think", {})).content)
        assert "file:///work/project" in str((await used.call_tool("folders", {})).content)


async def test_missing_client_capability_is_named():
    async with opened("auto") as used:
        with pytest.raises(MCPError, match="needs a client with sampling") as caught:
            await used.call_tool("think", {})
        assert caught.value.code == types.MISSING_REQUIRED_CLIENT_CAPABILITY
    async with opened("legacy") as used:
        result = await used.call_tool("think", {})
        assert result.is_error and "needs a client with sampling" in str(result.content)


async def test_refusal_of_the_client_is_said():
    async def refuse(context: ClientRequestContext, params: object) -> types.ErrorData:
        return types.ErrorData(code=-1, message="the user said no")

    async with opened("legacy", sampling_callback=refuse) as used:
        refused = str((await used.call_tool("think", {})).content)
        assert "the client did not answer sampling/createMessage: the user said no" in refused


async def test_nonsense_of_the_client_is_said_and_approves_nothing(caplog: pytest.LogCaptureFixture):
    class Pipe(PipeFastPath):
        async def request(self, method: str, params: Any, progress: Any = None) -> dict[str, Any]:
            return {"action": "perhaps"}

    registry = Registry(folders, keep)
    gateway = Gateway(registry, Executor(registry, ByMode("default")))
    can = types.ClientCapabilities(elicitation=types.ElicitationCapability(), roots=types.RootsCapability())
    caller = PipeCaller(Pipe.__new__(Pipe), {}, can)
    shown = await gateway.call(caller, CallRequest("folders", {}))
    assert "the client's answer to roots/list is not valid: roots: Field required" in str(shown)
    declined = await gateway.call(caller, CallRequest("keep", {}))
    assert "declined: the question was dismissed" in str(declined)
    assert not caplog.records


def call_of_a_client(capabilities: dict[str, Any]) -> PipeCaller:
    version = max(MODERN_PROTOCOL_VERSIONS)
    meta = {PROTOCOL_VERSION_META_KEY: version, CLIENT_CAPABILITIES_META_KEY: capabilities}
    return PipeCaller(PipeFastPath.__new__(PipeFastPath), meta, None)


async def test_suspended_call_goes_on_once_and_with_an_answer_only():
    caller = call_of_a_client({"elicitation": {}})
    registry = Registry(keep, alone)
    gateway = Gateway(registry, Executor(registry, ByMode("default")))
    async with gateway.running():
        asked = await gateway.call(caller, CallRequest("keep", {}))
        assert isinstance(asked, types.InputRequiredResult) and asked.input_requests is not None
        state, (key,) = asked.request_state, asked.input_requests
        yes = types.ElicitResult(action="accept", content={"decision": "yes"})
        for request in (CallRequest("keep", {"n": 1}, state, {key: yes}), CallRequest("alone", {}, state, {key: yes})):
            with pytest.raises(MCPError, match="no call is suspended"):
                await gateway.call(caller, request)
        declined = await gateway.call(caller, CallRequest("keep", {}, state, {"another": yes}))
        assert "declined: the question was dismissed" in str(declined)
        with pytest.raises(MCPError, match="no call is suspended"):
            await gateway.call(caller, CallRequest("keep", {}, state, {key: yes}))


@pytest.mark.parametrize(
    ("action", "told"), [("accept", "'text': 'a letter'"), ("decline", "declined"), ("cancel", "dismissed")]
)
async def test_sign_in_is_a_page_to_visit(action: Any, told: str):
    @tool(effect=Effect.READ)
    async def mail(context: ToolContext) -> str:
        """Read mail, after signing in."""
        if context.answer is None:
            raise AuthRequired("sign in to the mail server", url="https://example.org/sign-in")
        return "a letter"

    registry = Registry(mail)
    gateway = Gateway(registry, Executor(registry, ByMode("default")))
    async with gateway.running():
        denied = await gateway.call(call_of_a_client({"elicitation": {"form": {}}}), CallRequest("mail", {}))
        assert "cannot ask the user" in str(denied)
        caller = call_of_a_client({"elicitation": {"url": {}}})
        asked = await gateway.call(caller, CallRequest("mail", {}))
        assert isinstance(asked, types.InputRequiredResult) and asked.input_requests is not None
        ((key, request),) = asked.input_requests.items()
        assert isinstance(request.params, types.ElicitRequestURLParams)
        assert request.params.url == "https://example.org/sign-in" and "sign in" in request.params.message
        answers = {key: types.ElicitResult(action=action)}
        assert told in str(await gateway.call(caller, CallRequest("mail", {}, asked.request_state, answers)))


@pytest.mark.parametrize(
    ("declared", "page", "form"),
    [(None, False, False), ({}, False, True), ({"form": {}}, False, True), ({"url": {}}, True, False)],
)
def test_client_is_asked_only_in_ways_it_can_show(declared: Any, page: bool, form: bool):
    can = types.ClientCapabilities.model_validate({"elicitation": declared})
    url = types.ElicitRequestURLParams(message="Sign in", url="https://example.com")
    fields = types.ElicitRequestFormParams(message="Well?", requested_schema={"type": "object", "properties": {}})
    assert (can_show(can, url), can_show(can, fields), can_show(None, fields)) == (page, form, False)


@ERAS
async def test_tool_logs_to_client_that_requests_it(mode: str):
    heard: list[types.LoggingMessageNotificationParams] = []

    async def hear(params: types.LoggingMessageNotificationParams) -> None:
        heard.append(params)

    async with opened(mode, logging_callback=hear) as used:
        meta: Any = {LOG_LEVEL_META_KEY: "info"} if mode == "auto" else None
        if mode == "legacy":
            await used.session.send_request(
                types.SetLevelRequest(params=types.SetLevelRequestParams(level="info")), types.EmptyResult
            )
        await used.call_tool("talk", {}, meta=meta)
        async with asyncio.timeout(LONG_SECONDS):
            while not heard:  # noqa: ASYNC110 - notifications are handled when they come
                await asyncio.sleep(0)
    assert [(said.level, said.data, said.logger) for said in heard] == [("warning", {"what": "happened"}, "talker")]


async def test_client_without_log_level_gets_no_log():
    heard: list[object] = []

    async def hear(params: object) -> None:
        heard.append(params)

    async with opened("auto", logging_callback=hear) as used:
        await used.call_tool("talk", {})
        await used.call_tool("alone", {})
    assert heard == []


async def test_calling_client_is_none_without_client():
    registry = Registry(alone)
    outcome = await Executor(registry, ByMode("default")).run("alone", {})
    assert isinstance(outcome, Completed) and outcome.text == "true"
