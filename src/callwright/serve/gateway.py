"""`Gateway`: a registry and an executor as an MCP server. Every call passes our policies, hooks and limits.

Outcomes as an MCP client reads them.

Skills for MCP clients: prompts a person picks, and the tool `skill` for models, which tells what there is.
"""

import base64
import shlex
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar, cast
from urllib.parse import quote

import mcp_types as types
from mcp import MCPError
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.subscriptions import ListenHandler

from callwright.core.calls import Completed, Failed, Outcome, ToolCall
from callwright.core.content import File, Image, Part, Text
from callwright.core.errors import ToolError, UnknownTool
from callwright.core.json import JsonObject, thaw
from callwright.core.spec import ELICITS, ToolSpec
from callwright.executor.executor import Executor
from callwright.executor.turn import Turn
from callwright.providers.tool_encoding import to_mcp
from callwright.registry.catalog import SEARCH_NAME, Catalog, Toolset, session_catalog
from callwright.registry.compose import combined
from callwright.registry.deferred import Deferred
from callwright.registry.registry import Registry
from callwright.serve.call import Conversation, ProgressPump, Waiting
from callwright.serve.clients import (
    Asking,
    Caller,
    CallingClient,
    ClientLacks,
    Context,
    ContextCaller,
    News,
    Wanted,
    called_by,
    wanted,
)
from callwright.serve.elicitation import Directly, askable, declined, forms_of, read_answers
from callwright.skills.loader import Skills
from callwright.skills.render import ExpansionContext, prepared
from callwright.skills.skill import Skill
from callwright.skills.skill_tool import Calls, Execute, SkillTool, listing
from callwright.tool.base import Invocation, State, Tool


def payload_of(outcome: Outcome, *, modern: bool) -> dict[str, Any]:
    """Make MCP's result of an outcome; `modern` is 2026-07-28: structured content need not be an object there."""
    payload: dict[str, Any] = {"resultType": "complete"} if modern else {}
    if isinstance(outcome, Completed):
        payload["content"] = [_block(part) for part in outcome.output.parts]
        structured: Any = thaw(outcome.output.structured)
        if isinstance(structured, dict) or (modern and structured is not None):
            payload["structuredContent"] = structured
        return payload
    said = outcome.error.message if isinstance(outcome, Failed) else "a person has to decide, and nobody was asked"
    return payload | {"content": [{"type": "text", "text": said}], "isError": True}


def _block(part: Part) -> dict[str, Any]:
    match part:
        case Text(text=text):
            return {"type": "text", "text": text}
        case Image(data=data, media_type=kind):
            return {"type": "image", "data": _base64(data), "mimeType": kind}
        case File(data=data, media_type=kind) if kind.startswith("audio/"):
            return {"type": "audio", "data": _base64(data), "mimeType": kind}
        case File():
            return {"type": "resource", "resource": _resource(part)}


def _resource(file: File) -> dict[str, Any]:
    uri = file.name if "://" in file.name else f"file:///{quote(file.name or 'output')}"
    about = {"uri": uri, "mimeType": file.media_type}
    if file.media_type.startswith("text/") or file.media_type == "application/json":
        with suppress(UnicodeDecodeError):  # what calls itself text and is none goes as it is
            return {**about, "text": file.data.decode()}
    return {**about, "blob": _base64(file.data)}


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


_ALL = "arguments"


class ListedSkills:
    """The tool `skill`; its description names the skills, because a client has no prompt of ours to read them in."""

    def __init__(self, skills: Skills, *, project: Path | None = None) -> None:
        self._tool = cast("Tool", SkillTool(skills, project=project))
        about = f"{self._tool.spec.description} The skills:\n{listing(skills)}"
        self.spec: ToolSpec = replace(self._tool.spec, description=about)

    def bind(self, arguments: JsonObject | str | bytes) -> Invocation:
        """Bind as the tool itself does."""
        return self._tool.bind(arguments)


def prompts_of(skills: Skills) -> list[types.Prompt]:
    """The skills a person may call, as they are now."""
    skills.reload()
    return [
        types.Prompt(name=skill.name, description=skill.description, arguments=_arguments(skill))
        for skill in skills
        if skill.user_invocable
    ]


def _arguments(skill: Skill) -> list[types.PromptArgument]:
    hint = skill.argument_hint or "what to apply it to"
    if not skill.arguments:
        return [types.PromptArgument(name=_ALL, description=hint, required=False)]
    return [types.PromptArgument(name=name, description=hint, required=False) for name in skill.arguments]


def called(skills: Skills, name: str) -> Skill:
    """The skill a person picked."""
    skill = skills.get(name)
    if skill is None or not skill.user_invocable:
        near = skills.nearest(name)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise MCPError(types.INVALID_PARAMS, f"unknown prompt: there is no skill {name[:100]!r}{hint}")
    return skill


async def said(
    skill: Skill, given: Mapping[str, str], execute: Execute, around: ExpansionContext
) -> types.GetPromptResult:
    """The instructions for these arguments; their commands are run and files read as calls, judged like any."""
    calls = Calls(execute, f"prompt-{skill.name}")
    text = await prepared(skill, _words(skill, given), replace(around, run=calls.run, read=calls.read))
    message = types.PromptMessage(role="user", content=types.TextContent(text=text))
    return types.GetPromptResult(description=skill.description, messages=[message])


def _words(skill: Skill, given: Mapping[str, str]) -> str:
    """As a person would type them after the name."""
    if not skill.arguments:
        return given.get(_ALL, "")
    return shlex.join(given.get(name, "") for name in skill.arguments) if given else ""


_MOST_CLIENTS = 1024
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Shown:
    """What clients are shown of many tools."""

    budget_tokens: int | None = 20_000
    """Above this the least used tools are left out of the list and found with `tool_search`; None shows all."""
    pinned: tuple[str, ...] = ()
    """Tools that are always in the list."""


SHOWN = Shown()


class _ToolServer(Server[Any]):
    """The SDK's server; it says that its list of tools may change."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        told = notification_options or NotificationOptions(tools_changed=True)
        return super().create_initialization_options(told, experimental_capabilities, extensions)


class Gateway:
    """Any MCP client's way to our tools. `server` is the SDK's: resources and prompts may be added to it there.

    With `skills` clients have them too: as prompts that people pick, and as the tool `skill` for models.
    """

    def __init__(
        self,
        registry: Toolset,
        executor: Executor,
        *,
        shown: Shown = SHOWN,
        name: str = "callwright",
        instructions: str | None = None,
        skills: Skills | None = None,
    ) -> None:
        self._registry = registry
        self._executor = executor
        self._skills = skills
        self._tools = _shown(_skilled(registry, skills), executor, shown)
        self._waiting = Waiting()
        self._news = News()
        self._states: dict[str, State] = {}
        self._levels: dict[str, types.LoggingLevel] = {}
        self._listed: tuple[Catalog, list[types.Tool]] | None = None
        self._numbers = iter(range(1, 1 << 62))
        self.server: Server[Any] = _ToolServer(
            name,
            version="0.1.0",
            instructions=instructions,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_prompts=None if skills is None else self._list_prompts,
            on_get_prompt=None if skills is None else self._get_prompt,
            on_subscriptions_listen=ListenHandler(self._news.bus),
            get_tool_input_schema=self._input_schema,
        )

        self.server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, self._set_level)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None, None]:
        """Tell clients of changes while this is open; calls nobody came back for end with it."""
        async with self._news.told(self._registry):
            try:
                yield
            finally:
                await self._waiting.stop()

    def _catalog(self, key: str) -> tuple[Catalog, State]:
        state = self._states.get(key)
        if state is None:
            while len(self._states) >= _MOST_CLIENTS:
                del self._states[next(iter(self._states))]
            state = self._states[key] = self._executor.state.copy()
        return session_catalog(self._tools, state), state

    async def _list_tools(self, context: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        caller = ContextCaller(context)
        if not caller.modern:
            self._news.remember(caller.key, context.session)
        catalog, _ = self._catalog(caller.key)
        if self._listed is None or self._listed[0] is not catalog:
            self._listed = (catalog, [_advertised(catalog, name) for name in _names(catalog)])
        return types.ListToolsResult(tools=self._listed[1])

    async def _set_level(self, context: Context, params: types.SetLevelRequestParams) -> types.EmptyResult:
        while len(self._levels) >= _MOST_CLIENTS:
            del self._levels[next(iter(self._levels))]
        self._levels[ContextCaller(context).key] = params.level
        return types.EmptyResult()

    def _input_schema(self, name: str) -> Mapping[str, Any] | None:
        tool = self._tools.snapshot().get(name)
        return None if tool is None else tool.spec.input_schema

    async def _list_prompts(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        assert self._skills is not None
        return types.ListPromptsResult(prompts=prompts_of(self._skills))

    async def _get_prompt(
        self, context: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult | types.InputRequiredResult:
        assert self._skills is not None
        caller, skill = ContextCaller(context), called(self._skills, params.name)
        catalog, state = self._catalog(caller.key)
        around = ExpansionContext(cwd=self._skills.cwd, session=caller.key)
        given = params.arguments or {}

        async def run(asking: Asking) -> types.GetPromptResult:
            turn = Turn(caller.key, f"mcp-{next(self._numbers)}", state, catalog, ask=asking.people)
            return await said(skill, given, lambda call: self._executor.execute((call,), turn=turn), around)

        wish = Wanted(f"prompt {params.name}", given, params.request_state, params.input_responses or {})
        try:
            return await self._answered(caller, wish, catalog, run)
        except ToolError as error:
            raise MCPError(types.INVALID_PARAMS, error.message) from error

    async def _call_tool(
        self, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        result = await self.call(ContextCaller(context), wanted(params))
        return result if isinstance(result, types.InputRequiredResult) else types.CallToolResult.model_validate(result)

    async def call(self, caller: Caller, call: Wanted) -> dict[str, Any] | types.InputRequiredResult:
        """Make one call for a client, or go on with one that it was asked something about."""
        catalog, state = self._catalog(caller.key)
        outcome = await self._answered(caller, call, catalog, self._begin(caller, call, catalog, state))
        if isinstance(outcome, types.InputRequiredResult):
            return outcome
        if call.name == SEARCH_NAME:
            self._news.changed()  # what a search revealed is in the list from now on
        if isinstance(outcome, Failed) and isinstance(outcome.error, UnknownTool):
            raise MCPError(types.INVALID_PARAMS, outcome.error.message)
        if caller.modern and isinstance(outcome, Failed) and isinstance(outcome.error, ClientLacks):
            raise outcome.error.refusal()
        return payload_of(outcome, modern=caller.modern)

    async def _answered(
        self, caller: Caller, call: Wanted, catalog: Catalog, run: Callable[[Asking], Awaitable[Found]]
    ) -> Found | types.InputRequiredResult:
        """What comes of it, its questions put to the client in the way it understands."""
        if caller.modern and (call.state is not None or caller.answers):
            return await self._converse(caller, call, catalog, run)
        return await run(Directly(caller, catalog))

    async def _converse(
        self, caller: Caller, call: Wanted, catalog: Catalog, run: Callable[[Asking], Awaitable[Found]]
    ) -> Found | types.InputRequiredResult:
        """Let a call run in a task of its own, which can wait until the client comes back with answers."""
        about = (caller.key, call.name, call.arguments)
        conversation: Conversation[Found] = self._resumed(call, about, catalog) or Conversation(about, run)
        while not await conversation.step():
            if conversation.requests or askable(caller, conversation.questions, catalog):
                return await self._put_aside(conversation, catalog)
            conversation.answer(declined(conversation.questions))
        return conversation.result

    def _begin(
        self, caller: Caller, wanted: Wanted, catalog: Catalog, state: State
    ) -> Callable[[Asking], Awaitable[Outcome]]:
        call = ToolCall(f"mcp-{next(self._numbers)}", wanted.name, wanted.arguments)

        async def run(asking: Asking) -> Outcome:
            called_by(CallingClient(caller, asking, self._levels.get(caller.key, "debug")))
            if not caller.watches:
                turn = Turn(caller.key, call.id, state, catalog, ask=asking.people)
                return (await self._executor.execute((call,), turn=turn))[0]
            async with ProgressPump(caller) as observe:
                turn = Turn(caller.key, call.id, state, catalog, ask=asking.people, observe=observe)
                return (await self._executor.execute((call,), turn=turn))[0]

        return run

    async def _put_aside(self, conversation: Conversation[Any], catalog: Catalog) -> types.InputRequiredResult:
        """The protocol has no questions to clients any more: the call is answered with them, and made again."""
        requests = conversation.requests or forms_of(conversation.questions, catalog)
        state = await self._waiting.keep(conversation)
        return types.InputRequiredResult(input_requests=requests, request_state=state)

    def _resumed(self, call: Wanted, about: object, catalog: Catalog) -> Conversation[Any] | None:
        if call.state is None:
            return None
        conversation = self._waiting.take(call.state, about)
        if conversation is None:
            raise MCPError(types.INVALID_PARAMS, "this call is not waiting for an answer; make it again without one")
        asked = conversation.questions
        conversation.answer(read_answers(asked, catalog, call.responses) if asked else call.responses)
        return conversation


def _skilled(registry: Toolset, skills: Skills | None) -> Toolset:
    """With the tool `skill` before whatever else goes by that name, where models may use any."""
    if skills is None or not any(skill.model_invocable for skill in skills):
        return registry
    return combined(Registry(ListedSkills(skills)), registry)


def _shown(tools: Toolset, executor: Executor, shown: Shown) -> Toolset:
    if shown.budget_tokens is None:
        return tools
    return Deferred(
        tools,
        budget_tokens=shown.budget_tokens,
        always=shown.pinned,
        calls=lambda tool: executor.stats[tool].calls,
    )


def _names(catalog: Catalog) -> list[str]:
    """What is advertised; the tools that carry other servers' questions to a person are not for models."""
    return [spec.name for spec in catalog.definitions if not spec.metadata.get(ELICITS)]


def _advertised(catalog: Catalog, name: str) -> types.Tool:
    shape = to_mcp(catalog.tools[name].spec, catalog.wire_names[name])
    return types.Tool.model_validate(thaw(shape.payload))
