"""`Gateway`: a registry and an executor as an MCP server. Every call passes the policies, hooks and limits."""

import itertools
import secrets
import shlex
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

import mcp_types as types
from mcp import MCPError
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.subscriptions import ListenHandler

from callwright import __version__
from callwright.core.calls import Answers, Failed, Outcome, ToolCall
from callwright.core.errors import ToolError, UnknownTool
from callwright.core.json import JsonObject, thaw
from callwright.core.spec import ELICITS, ToolSpec
from callwright.executor.executor import Executor
from callwright.executor.turn_context import Turn
from callwright.providers.tool_encoding import to_mcp
from callwright.registry.catalog import SEARCH_NAME, Catalog, Toolset, session_catalog
from callwright.registry.compose import combined
from callwright.registry.deferred import Deferred
from callwright.registry.registry import Registry
from callwright.repairs.names import repair_name
from callwright.serve.call import (
    Asked,
    CallingClient,
    ClientLacks,
    ProgressPump,
    SuspendableCall,
    SuspendedCalls,
    cancel_once,
    payload_of,
    set_calling_client,
)
from callwright.serve.clients import (
    MAX_CLIENTS,
    Asker,
    Caller,
    CallRequest,
    ClientStates,
    Context,
    ContextCaller,
    ListChangeNotifier,
    read_request,
)
from callwright.serve.elicitation import DirectAsker, askable, decline_all, forms_of, read_answers
from callwright.skills.loader import Skills
from callwright.skills.render import ExpansionContext, render_skill
from callwright.skills.skill import Skill
from callwright.skills.skill_tool import Execute, SkillCalls, SkillTool, list_skills
from callwright.tool.base import Invocation, State, Tool

_ALL = "arguments"


class ListedSkills:
    """The tool `skill`; its description lists the skills, because a client does not have our system prompt."""

    def __init__(self, skills: Skills) -> None:
        self._tool = cast("Tool", SkillTool(skills))
        about = f"{self._tool.spec.description} The skills:\n{list_skills(skills)}"
        self.spec: ToolSpec = replace(self._tool.spec, description=about)

    def bind(self, arguments: JsonObject | str | bytes) -> Invocation:
        """Bind the tool itself."""
        return self._tool.bind(arguments)


def prompts_of(skills: Skills) -> list[types.Prompt]:
    """Reload the skills and return those that users may call, as prompts."""
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


def find_prompt(skills: Skills, name: str) -> Skill:
    """Find the skill a user picked; raises `MCPError` with the nearest names."""
    skill = skills.get(name)
    if skill is None or not skill.user_invocable:
        near = skills.nearest(name)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise MCPError(types.INVALID_PARAMS, f"unknown prompt {name[:100]!r}: no skill has this name{hint}")
    return skill


async def render_prompt(
    skill: Skill, given: Mapping[str, str], execute: Execute, around: ExpansionContext
) -> types.GetPromptResult:
    """Render a skill's instructions; its commands and file reads are calls, judged like any other."""
    calls = SkillCalls(execute, f"prompt-{skill.name}")
    text = await render_skill(skill, _words(skill, given), replace(around, run=calls.run, read=calls.read))
    message = types.PromptMessage(role="user", content=types.TextContent(text=text))
    return types.GetPromptResult(description=skill.description, messages=[message])


def _words(skill: Skill, given: Mapping[str, str]) -> str:
    """Return the arguments as a user would type them after the name."""
    if not skill.arguments:
        return given.get(_ALL, "")
    return shlex.join(given.get(name, "") for name in skill.arguments) if given else ""


Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class ListingOptions:
    """Which tools clients see in their list when there are many."""

    budget_tokens: int | None = 20_000
    """Above this size the least used tools are not listed but found with `tool_search`; None lists all."""
    pinned: tuple[str, ...] = ()
    """Tools that are always listed."""


DEFAULT_LISTING = ListingOptions()


class _ToolServer(Server[Any]):
    """The SDK's server, announcing that its list of tools may change."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        options = notification_options or NotificationOptions(tools_changed=True)
        return super().create_initialization_options(options, experimental_capabilities, extensions)


class Gateway:
    """Serves tools to MCP clients. Resources and prompts may be added to `server`, the SDK's server.

    Args:
        registry: The tools.
        executor: Runs the calls; its policies and hooks apply to clients too.
        listing: Which tools are listed when there are many.
        name: The name the server reports.
        instructions: Sent to clients in the handshake.
        skills: Offered as prompts for users and as the tool `skill` for models.
    """

    def __init__(
        self,
        registry: Toolset,
        executor: Executor,
        *,
        listing: ListingOptions = DEFAULT_LISTING,
        name: str = "callwright",
        instructions: str | None = None,
        skills: Skills | None = None,
    ) -> None:
        self._registry = registry
        self._executor = executor
        self._skills = skills
        self._tools = _limit_listing(_with_skills(registry, skills), executor, listing)
        self._suspended = SuspendedCalls()
        self._list_changes = ListChangeNotifier()
        self._states = ClientStates(executor.state.copy)
        self._levels: dict[str, types.LoggingLevel] = {}
        self._sessions: set[str] = set()
        self._listed: tuple[Catalog, list[types.Tool]] | None = None
        # Random, so that idempotency keys do not repeat after a restart.
        run_id = secrets.token_hex(8)
        self._call_ids = (f"mcp-{run_id}-{number}" for number in itertools.count(1))
        self.server: Server[Any] = _ToolServer(
            name,
            version=__version__,
            instructions=instructions,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_prompts=None if skills is None else self._list_prompts,
            on_get_prompt=None if skills is None else self._get_prompt,
            on_subscriptions_listen=ListenHandler(self._list_changes.bus),
            get_tool_input_schema=self._input_schema,
        )

        self.server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, self._set_level)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None, None]:
        """Notify clients of changes while this is open; suspended calls are cancelled at the end."""
        async with self._list_changes.follow(self._registry):
            try:
                yield
            finally:
                await self._suspended.stop()

    def _find_caller(self, context: Context) -> ContextCaller:
        """Return the client of a request; what is kept for one with a session is dropped when that ends."""
        caller = ContextCaller(context)
        if not caller.modern and caller.key and caller.key not in self._sessions:
            self._sessions.add(caller.key)
            caller.on_session_end(lambda: self._forget(caller.key))
        return caller

    def _forget(self, key: str) -> None:
        self._sessions.discard(key)
        self._states.forget(key)
        self._list_changes.forget(key)
        self._levels.pop(key, None)

    def _catalog(self, caller: Caller) -> tuple[Catalog, State]:
        # a copy per client: tools that one has searched for must not appear in another's list
        state = self._states.find(caller.key, known=caller.known)
        return session_catalog(self._tools, state), state

    async def _list_tools(self, context: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        caller = self._find_caller(context)
        if not caller.modern:
            self._list_changes.remember(caller.key, context.session)
        catalog, _ = self._catalog(caller)
        if self._listed is None or self._listed[0] is not catalog:  # a catalog is frozen, so its list is too
            self._listed = (catalog, [_describe_tool(catalog, name) for name in _names(catalog)])
        return types.ListToolsResult(tools=self._listed[1])

    async def _set_level(self, context: Context, params: types.SetLevelRequestParams) -> types.EmptyResult:
        while len(self._levels) >= MAX_CLIENTS:
            del self._levels[next(iter(self._levels))]
        self._levels[self._find_caller(context).key] = params.level
        return types.EmptyResult()

    def _input_schema(self, name: str) -> Mapping[str, Any] | None:
        tool = _find_tool(self._tools.snapshot(), name)
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
        caller, skill = self._find_caller(context), find_prompt(self._skills, params.name)
        catalog, state = self._catalog(caller)
        expansion = ExpansionContext(cwd=self._skills.cwd, session=caller.key)
        given = params.arguments or {}

        async def run(asker: Asker) -> types.GetPromptResult:
            turn = Turn(caller.key, next(self._call_ids), state, catalog, ask=asker.ask_user)
            return await render_prompt(skill, given, lambda call: self._executor.execute((call,), turn=turn), expansion)

        request = CallRequest(f"prompt {params.name}", given, params.request_state, params.input_responses or {})
        try:
            return await cancel_once(self._run_call(caller, request, catalog, run))
        except ToolError as error:
            raise MCPError(types.INVALID_PARAMS, error.message) from error

    async def _call_tool(
        self, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        result = await cancel_once(self.call(self._find_caller(context), read_request(params)))
        return result if isinstance(result, types.InputRequiredResult) else types.CallToolResult.model_validate(result)

    async def call(self, caller: Caller, call: CallRequest) -> dict[str, Any] | types.InputRequiredResult:
        """Run `call` for the client `caller`, or resume a suspended one."""
        catalog, state = self._catalog(caller)
        outcome = await self._run_call(caller, call, catalog, self._make_run(caller, call, catalog, state))
        if isinstance(outcome, types.InputRequiredResult):
            return outcome
        found = _find_tool(catalog, call.name)
        if found is not None and found.spec.name == SEARCH_NAME:
            self._list_changes.notify()  # tools revealed by a search are listed from now on
        # the protocol wants an error for unknown tools and a result for all other failures
        if isinstance(outcome, Failed) and isinstance(outcome.error, UnknownTool):
            raise MCPError(types.INVALID_PARAMS, outcome.error.message)
        if caller.modern and isinstance(outcome, Failed) and isinstance(outcome.error, ClientLacks):
            raise outcome.error.refusal()
        return payload_of(outcome, modern=caller.modern)

    async def _run_call(
        self, caller: Caller, call: CallRequest, catalog: Catalog, run: Callable[[Asker], Awaitable[Found]]
    ) -> Found | types.InputRequiredResult:
        """Run a call, with its questions put to the client as its protocol version requires."""
        if caller.modern and (call.state is not None or caller.can_answer):
            return await self._run_suspendable(caller, call, catalog, run)
        return await run(DirectAsker(caller, catalog))

    async def _run_suspendable(
        self, caller: Caller, call: CallRequest, catalog: Catalog, run: Callable[[Asker], Awaitable[Found]]
    ) -> Found | types.InputRequiredResult:
        """Run a call in a task of its own, which can wait until the client resumes it with answers."""
        # not by client: the token, which cannot be guessed, belongs to it, and a client may not return its id
        about = (call.name, call.arguments)
        suspendable = self._take_suspended(call.state, about) or SuspendableCall(about, run, caller)
        try:
            if suspendable.shown is not None:
                suspendable.caller = caller
                suspendable.reply(suspendable.shown, _read_reply(suspendable.shown, catalog, call.responses))
            while (asked := await suspendable.step()) is not None:
                if asked.requests or askable(caller, asked.questions, catalog):
                    return await self._suspend(suspendable, asked, catalog, caller.key if caller.known else "")
                # this client cannot show the questions, so the call continues with a no
                suspendable.reply(asked, decline_all(asked.questions))
        except BaseException:  # the client has gone, or cannot be told what is asked: no client would resume the call
            await suspendable.stop()
            raise
        return suspendable.result

    def _make_run(
        self, caller: Caller, request: CallRequest, catalog: Catalog, state: State
    ) -> Callable[[Asker], Awaitable[Outcome]]:
        call = ToolCall(next(self._call_ids), request.name, request.arguments)

        async def run(asker: Asker) -> Outcome:
            set_calling_client(CallingClient(asker, self._levels.get(caller.key, "debug")))
            if not caller.wants_progress:
                turn = Turn(caller.key, call.id, state, catalog, ask=asker.ask_user)
                return (await self._executor.execute((call,), turn=turn))[0]
            async with ProgressPump(asker) as observe:
                turn = Turn(caller.key, call.id, state, catalog, ask=asker.ask_user, observe=observe)
                return (await self._executor.execute((call,), turn=turn))[0]

        return run

    async def _suspend(
        self, suspendable: SuspendableCall[Any], asked: Asked, catalog: Catalog, owner: str
    ) -> types.InputRequiredResult:
        """Return the questions as the result; in this protocol version the client repeats the call with the answers."""
        requests = asked.requests or forms_of(asked.questions, catalog)
        suspendable.shown = asked
        state = await self._suspended.keep(suspendable, owner)
        return types.InputRequiredResult(input_requests=requests, request_state=state)

    def _take_suspended(self, state: str | None, about: object) -> SuspendableCall[Any] | None:
        if state is None:
            return None
        suspendable = self._suspended.take(state, about)
        if suspendable is None:
            raise MCPError(types.INVALID_PARAMS, "no call is suspended under this requestState; call again without it")
        return suspendable


def _read_reply(asked: Asked, catalog: Catalog, responses: Mapping[str, object]) -> Answers | Mapping[str, object]:
    return read_answers(asked.questions, catalog, responses) if asked.questions else responses


def _with_skills(registry: Toolset, skills: Skills | None) -> Toolset:
    """Add the tool `skill`, before any other tool of that name, if models may use any skill."""
    if skills is None or not any(skill.model_invocable for skill in skills):
        return registry
    return combined(Registry(ListedSkills(skills)), registry)


def _limit_listing(tools: Toolset, executor: Executor, listing: ListingOptions) -> Toolset:
    # a toolset that tells sessions apart, such as Deferred or CodeMode, decides by itself what it shows
    if listing.budget_tokens is None or hasattr(tools, "snapshot_for"):
        return tools
    return Deferred(
        tools,
        budget_tokens=listing.budget_tokens,
        always=listing.pinned,
        calls=lambda tool: executor.stats[tool].calls,
    )


def _find_tool(catalog: Catalog, name: str) -> Tool | None:
    """Return the tool that a call of this name runs: the executor repairs spellings."""
    return catalog.get(name) or catalog.get(repair_name(name, catalog.spellings) or "")


def _names(catalog: Catalog) -> list[str]:
    """Return the names to list, without the tools that only carry questions of other servers to the user."""
    return [spec.name for spec in catalog.definitions if not spec.metadata.get(ELICITS)]


def _describe_tool(catalog: Catalog, name: str) -> types.Tool:
    encoded = to_mcp(catalog.tools[name].spec, catalog.wire_names[name])
    return types.Tool.model_validate(thaw(encoded.payload))
