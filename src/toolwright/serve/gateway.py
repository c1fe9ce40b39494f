"""`Gateway`: a registry and an executor as an MCP server. Every call passes our policies, hooks and limits."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import anyio
import mcp_types as types
from mcp import MCPError
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged

from toolwright.core.call import Answers, Failed, Outcome, Question, Reply, ToolCall
from toolwright.core.errors import UnknownTool
from toolwright.core.json import thaw
from toolwright.executor.executor import Executor
from toolwright.executor.turn import AskPerson, Turn
from toolwright.mcp.elicit import ELICITS
from toolwright.providers.formats import to_mcp
from toolwright.registry.catalog import SEARCH_NAME, Catalog, Toolset, session_catalog
from toolwright.registry.deferral import Deferred
from toolwright.serve.ask import can_show, declined, form_of, keys_of, reply_to
from toolwright.serve.caller import Caller, Context, ContextCaller, Wanted, wanted
from toolwright.serve.content import payload_of
from toolwright.serve.conversation import Conversation, Waiting
from toolwright.serve.progress import ProgressPump
from toolwright.tool.base import State

_MOST_CLIENTS = 1024


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
    """Any MCP client's way to our tools. `server` is the SDK's: resources and prompts may be added to it there."""

    def __init__(
        self,
        registry: Toolset,
        executor: Executor,
        *,
        shown: Shown = SHOWN,
        name: str = "toolwright",
        instructions: str | None = None,
    ) -> None:
        self._tools = (
            Deferred(
                registry,
                budget_tokens=shown.budget_tokens,
                always=shown.pinned,
                calls=lambda tool: executor.stats[tool].calls,
            )
            if shown.budget_tokens is not None
            else registry
        )
        self._registry = registry
        self._executor = executor
        self._waiting = Waiting()
        self._states: dict[str, State] = {}
        self._sessions: dict[str, ServerSession] = {}
        self._listed: tuple[Catalog, list[types.Tool]] | None = None
        self._bus = InMemorySubscriptionBus()
        self._news = asyncio.Event()
        self._numbers = iter(range(1, 1 << 62))
        self.server: Server[Any] = _ToolServer(
            name,
            version="0.1.0",
            instructions=instructions,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_subscriptions_listen=ListenHandler(self._bus),
            get_tool_input_schema=self._input_schema,
        )

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None, None]:
        """Tell clients of changes while this is open; calls nobody came back for end with it."""
        subscribe: Callable[[Callable[[object], None]], object] | None = getattr(self._registry, "subscribe", None)
        leave = None if subscribe is None else subscribe(self._changed)
        telling = asyncio.create_task(self._tell_news())
        try:
            yield
        finally:
            if callable(leave):
                leave()
            telling.cancel()
            await self._waiting.stop()

    def _changed(self, change: object) -> None:
        self._news.set()

    async def _tell_news(self) -> None:
        while True:
            await self._news.wait()
            await asyncio.sleep(0.02)  # a server that brings a hundred tools is one change
            self._news.clear()
            await self._bus.publish(ToolsListChanged())
            for key, session in list(self._sessions.items()):
                try:
                    await session.send_tool_list_changed()
                except (MCPError, anyio.ClosedResourceError, anyio.BrokenResourceError):
                    self._sessions.pop(key, None)

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
            self._remember(caller.key, context.session)
        catalog, _ = self._catalog(caller.key)
        if self._listed is None or self._listed[0] is not catalog:
            self._listed = (catalog, [_advertised(catalog, name) for name in _names(catalog)])
        return types.ListToolsResult(tools=self._listed[1])

    def _remember(self, key: str, session: ServerSession) -> None:
        """Who has seen a list is told when it changes."""
        while len(self._sessions) >= _MOST_CLIENTS:
            del self._sessions[next(iter(self._sessions))]
        self._sessions[key] = session

    def _input_schema(self, name: str) -> Mapping[str, Any] | None:
        tool = self._tools.snapshot().get(name)
        return None if tool is None else tool.spec.input_schema

    async def _call_tool(
        self, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        result = await self.call(ContextCaller(context), wanted(params))
        return result if isinstance(result, types.InputRequiredResult) else types.CallToolResult.model_validate(result)

    async def call(self, caller: Caller, call: Wanted) -> dict[str, Any] | types.InputRequiredResult:
        """Make one call for a client, or go on with one that it was asked something about."""
        catalog, state = self._catalog(caller.key)
        run = self._begin(caller, call, catalog, state)
        if caller.modern and (call.state is not None or caller.elicits):
            outcome = await self._converse(caller, call, catalog, run)
        else:
            outcome = await run(lambda questions: _ask(caller, questions, catalog))
        if isinstance(outcome, types.InputRequiredResult):
            return outcome
        if call.name == SEARCH_NAME:
            self._news.set()  # what a search revealed is in the list from now on
        if isinstance(outcome, Failed) and isinstance(outcome.error, UnknownTool):
            raise MCPError(types.INVALID_PARAMS, outcome.error.message)
        return payload_of(outcome, any_value=caller.modern)

    async def _converse(
        self, caller: Caller, call: Wanted, catalog: Catalog, run: Callable[[AskPerson], Awaitable[Outcome]]
    ) -> Outcome | types.InputRequiredResult:
        """Let a call run in a task of its own, which can wait until the client comes back with answers."""
        about = (caller.key, call.name, call.arguments)
        conversation = self._resumed(call, about, catalog) or Conversation(about, run)
        outcome = await conversation.step()
        while outcome is None:
            if _askable(caller, conversation.questions, catalog):
                return await self._put_aside(conversation, catalog)
            conversation.answer(declined(conversation.questions))
            outcome = await conversation.step()
        return outcome

    def _begin(
        self, caller: Caller, wanted: Wanted, catalog: Catalog, state: State
    ) -> Callable[[AskPerson], Awaitable[Outcome]]:
        call = ToolCall(f"mcp-{next(self._numbers)}", wanted.name, wanted.arguments)

        async def run(ask: AskPerson) -> Outcome:
            if not caller.watches:
                turn = Turn(caller.key, call.id, state, catalog, ask=ask)
                return (await self._executor.execute((call,), turn=turn))[0]
            async with ProgressPump(caller) as observe:
                turn = Turn(caller.key, call.id, state, catalog, ask=ask, observe=observe)
                return (await self._executor.execute((call,), turn=turn))[0]

        return run

    async def _put_aside(self, conversation: Conversation, catalog: Catalog) -> types.InputRequiredResult:
        """The protocol has no questions to clients any more: the call is answered with them, and made again."""
        requests = {
            key: types.ElicitRequest(params=_without_id(form_of(question, catalog)))
            for key, question in keys_of(conversation.questions, catalog).items()
        }
        state = await self._waiting.keep(conversation)
        return types.InputRequiredResult(input_requests={**requests}, request_state=state)

    def _resumed(self, call: Wanted, about: object, catalog: Catalog) -> Conversation | None:
        if call.state is None:
            return None
        conversation = self._waiting.take(call.state, about)
        if conversation is None:
            raise MCPError(types.INVALID_PARAMS, "this call is not waiting for an answer; make it again without one")
        replies: dict[str, Reply] = {}
        for key, question in keys_of(conversation.questions, catalog).items():
            result = call.responses.get(key)
            shown = result if isinstance(result, types.ElicitResult) else types.ElicitResult(action="cancel")
            replies[question.id] = reply_to(question, catalog, shown)
        conversation.answer(Answers(replies))
        return conversation


def _askable(caller: Caller, questions: Sequence[Question], catalog: Catalog) -> bool:
    can = caller.capabilities
    return all(can_show(can, form_of(question, catalog)) for question in questions)


async def _ask(caller: Caller, questions: Sequence[Question], catalog: Catalog) -> Answers:
    """Ask the client in the middle of the call, where it can be."""
    if caller.modern or not (caller.reachable and _askable(caller, questions, catalog)):
        return declined(questions)
    replies: dict[str, Reply] = {}
    for question in questions:
        result = types.ElicitResult(action="cancel")
        with suppress(MCPError):
            result = await caller.elicit(form_of(question, catalog))
        replies[question.id] = reply_to(question, catalog, result)
    return Answers(replies)


def _without_id(form: types.ElicitRequestParams) -> types.ElicitRequestParams:
    if isinstance(form, types.ElicitRequestURLParams):
        return types.ElicitRequestURLParams(message=form.message, url=form.url)
    return form


def _names(catalog: Catalog) -> list[str]:
    """What is advertised; the tools that carry other servers' questions to a person are not for models."""
    return [spec.name for spec in catalog.definitions if not spec.metadata.get(ELICITS)]


def _advertised(catalog: Catalog, name: str) -> types.Tool:
    shape = to_mcp(catalog.tools[name].spec, catalog.wire_names[name])
    return types.Tool.model_validate(thaw(shape.payload))
