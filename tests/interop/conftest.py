"""The same conversation in every framework: scripted models, real packages, decisions by a function."""

import asyncio
import warnings
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeAlias, cast

import pytest

from callwright import Effect, Executor, Registry, tool
from callwright.core.access import Access, ReadPath, WritePath
from callwright.core.calls import ToolCall
from callwright.core.content import Image, Text
from callwright.core.errors import ToolFailed
from callwright.core.json import JsonObject
from callwright.hooks import Hook
from callwright.policy import AllowEverything, ByMode, Policies, Rules, parse_rule

Decision: TypeAlias = "bool | str | dict[str, Any]"
"""Yes, no, no with a reason, or yes to other arguments."""
Decide: TypeAlias = Callable[[str, dict[str, Any]], Decision]
_REFUSALS = ("error: ", "Tool execution was not approved", "no ", "Tool ")
"""How OpenAI Agents' outputs of failed calls begin: they carry no flag."""
PIXEL = b"\x89PNG\r\n\x1a\n" + bytes(8)


@dataclass
class Played:
    """What the model was told about each call, and which calls it was told had failed."""

    texts: dict[str, str] = field(default_factory=dict[str, str])
    failed: set[str] = field(default_factory=set[str])
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list[tuple[str, dict[str, Any]]])
    offered: list[list[str]] = field(default_factory=list[list[str]])
    raw: dict[str, Any] = field(default_factory=dict[str, Any])


class Play(Protocol):
    """Has a scripted model make these calls, turn by turn."""

    def __call__(
        self,
        executor: Executor,
        *turns: Sequence[ToolCall],
        decide: Decide = ...,
        between: Callable[[], object] = ...,
        pending: MutableMapping[str, str] | None = None,
    ) -> Awaitable[Played]: ...


class Notes:
    """Tools over a folder; every run leaves its beginning and its end in `log`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log: list[str] = []
        self.hanging = asyncio.Event()
        self.registry = Registry(self._write(), self._append(), self._read(), *self._plain())

    def executor(self, *, ask: bool = False, hooks: Sequence[Hook] = ()) -> Executor:
        """With `ask`, what changes something needs a person; `burn` is forbidden either way."""
        forbidden = Rules([parse_rule("deny", "burn")])
        rest = ByMode("default") if ask else AllowEverything()
        return Executor(self.registry, Policies(forbidden, rest), hooks=hooks)

    def _at(self, arguments: JsonObject) -> str:
        return str(self.folder / str(arguments["path"]))

    def _write(self) -> Any:
        def touches(arguments: JsonObject) -> list[Access]:
            return [WritePath(self._at(arguments))]

        @tool(effect=Effect.WRITE, accesses=touches)
        async def write(path: str, text: str) -> dict[str, str]:
            """Write a note."""
            self.log.append(f"begin {text}")
            await asyncio.sleep(0.01)
            (self.folder / path).write_text(text)
            self.log.append(f"end {text}")
            return {"wrote": text}

        return write

    def _append(self) -> Any:
        def touches(arguments: JsonObject) -> list[Access]:
            return [WritePath(self._at(arguments))]

        @tool(effect=Effect.WRITE, accesses=touches)
        async def append(path: str, text: str) -> str:
            """Add to a note."""
            old = (self.folder / path).read_text() if (self.folder / path).exists() else ""
            await asyncio.sleep(0.01)
            (self.folder / path).write_text(old + text)
            return old + text

        return append

    def _read(self) -> Any:
        def touches(arguments: JsonObject) -> list[Access]:
            return [ReadPath(self._at(arguments))]

        @tool(effect=Effect.READ, accesses=touches)
        async def read(path: str) -> str:
            """Read a note."""
            self.log.append(f"read {path}")
            return (self.folder / path).read_text() if (self.folder / path).exists() else "nothing"

        return read

    def _plain(self) -> list[Any]:
        @tool(effect=Effect.DESTROY)
        async def burn() -> str:
            """Burn everything."""
            self.log.append("burned")
            return "ashes"

        @tool(effect=Effect.READ)
        async def crash() -> str:
            """Fall over."""
            raise RuntimeError("out of paper")

        @tool(effect=Effect.READ)
        async def fail() -> str:
            """Say no."""
            raise ToolFailed("there is no pencil")

        @tool(effect=Effect.READ)
        async def draw() -> tuple[Text, Image]:
            """Draw."""
            return Text("a dot"), Image(PIXEL)

        @tool(effect=Effect.READ)
        async def hang() -> str:
            """Take for ever."""
            self.log.append("hanging")
            self.hanging.set()
            try:
                await asyncio.sleep(30)
            except asyncio.CancelledError:
                self.log.append("stopped")
                raise
            return "never"

        return [burn, crash, fail, draw, hang]


@pytest.fixture
def notes(tmp_path: Path) -> Notes:
    return Notes(tmp_path)


def _yes(name: str, arguments: dict[str, Any]) -> Decision:
    return True


def _nothing() -> None: ...


async def play_pydantic_ai(
    executor: Executor,
    *turns: Sequence[ToolCall],
    decide: Decide = _yes,
    between: Callable[[], object] = _nothing,
    pending: MutableMapping[str, str] | None = None,
) -> Played:
    from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, ToolApproved, ToolDenied
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    from callwright.interop import to_pydantic_ai

    played, script = Played(), iter(turns)

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if played.offered:
            between()
        played.offered.append([told.name for told in info.function_tools])
        calls = next(script, None)
        if calls is None:
            return ModelResponse([TextPart("done")])
        return ModelResponse([ToolCallPart(call.name, cast("Any", call.arguments), call.id) for call in calls])

    toolset = to_pydantic_ai(executor, pending=pending)
    agent = Agent(FunctionModel(answer), toolsets=[toolset], output_type=[str, DeferredToolRequests], retries=3)
    result = await agent.run("hello")
    while isinstance(result.output, DeferredToolRequests):
        approvals: dict[str, Any] = {}
        for call in result.output.approvals:
            shown = result.output.metadata[call.tool_call_id]["questions"][0]
            played.asked.append((shown["tool"], shown["arguments"]))
            said = decide(shown["tool"], shown["arguments"])
            if isinstance(said, dict):
                approvals[call.tool_call_id] = ToolApproved(override_args=said)
            else:
                approvals[call.tool_call_id] = said if isinstance(said, bool) else ToolDenied(said)
        results = DeferredToolResults(approvals=approvals)
        if pending is not None:  # as another process would, with nothing but what was written down
            agent = Agent(
                FunctionModel(answer),
                toolsets=[to_pydantic_ai(executor, pending=pending)],
                output_type=[str, DeferredToolRequests],
            )
        result = await agent.run(message_history=result.all_messages(), deferred_tool_results=results)
    for message in result.all_messages():
        for part in message.parts:
            if isinstance(part, ToolReturnPart):
                played.raw[part.tool_call_id] = part.content
                played.texts[part.tool_call_id] = part.model_response_str()
                if part.outcome != "success":
                    played.failed.add(part.tool_call_id)
    return played


def _chat_model(turns: Sequence[Sequence[ToolCall]], between: Callable[[], object]) -> Any:
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage

    class Model(GenericFakeChatModel):
        def bind_tools(self, tools: Any, **options: Any) -> Any:
            return self

    def script() -> Any:
        for number, calls in enumerate(turns):
            if number:
                between()
            told = [{"name": call.name, "args": call.arguments, "id": call.id, "type": "tool_call"} for call in calls]
            yield AIMessage("", tool_calls=told)
        yield AIMessage("done")

    return Model(messages=script())


def _agent_graph(model: Any, tools: list[Any], keeper: Any) -> Any:
    """A ready-made agent: every call is a task of its own."""
    from langgraph import prebuilt
    from langgraph.warnings import LangGraphDeprecatedSinceV10

    with warnings.catch_warnings():
        # the same function lives in the package langchain now, which is not needed for anything else here
        warnings.simplefilter("ignore", LangGraphDeprecatedSinceV10)
        return cast("Any", prebuilt).create_react_agent(model, tools, checkpointer=keeper)


def _node_graph(model: Any, tools: list[Any], keeper: Any) -> Any:
    """A graph by hand: all calls of a turn are one task, which is run again from its start after an interrupt."""
    from langgraph.graph import START, MessagesState, StateGraph
    from langgraph.prebuilt import ToolNode, tools_condition

    async def think(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(state["messages"])]}

    graph: Any = StateGraph(MessagesState)
    graph.add_node("think", think)
    graph.add_node("tools", ToolNode(tools))
    graph.add_edge(START, "think")
    graph.add_conditional_edges("think", tools_condition)
    graph.add_edge("tools", "think")
    return graph.compile(checkpointer=keeper)


def _play_graph(build: Callable[[Any, list[Any], Any], Any]) -> Play:
    async def play(
        executor: Executor,
        *turns: Sequence[ToolCall],
        decide: Decide = _yes,
        between: Callable[[], object] = _nothing,
        pending: MutableMapping[str, str] | None = None,
    ) -> Played:
        from langchain_core.messages import ToolMessage
        from langgraph.checkpoint.memory import InMemorySaver
        from langgraph.types import Command

        from callwright.interop import to_langchain

        played, keeper, model = Played(), InMemorySaver(), _chat_model(turns, between)
        graph = build(model, to_langchain(executor, pending=pending), keeper)
        place: Any = {"configurable": {"thread_id": "one"}}
        state = await graph.ainvoke({"messages": [("user", "hello")]}, place)
        while "__interrupt__" in state:
            replies: dict[str, Any] = {}
            for stop in state["__interrupt__"]:
                decisions: list[dict[str, Any]] = []
                for request in stop.value["action_requests"]:
                    played.asked.append((request["name"], request["args"]))
                    decisions.append(_decision(request["name"], decide(request["name"], request["args"])))
                replies[stop.id] = {"decisions": decisions}
            if pending is not None:  # as another process would, with nothing but what was written down
                graph = build(model, to_langchain(executor, pending=pending), keeper)
            state = await graph.ainvoke(Command(resume=replies), place)
        for message in state["messages"]:
            if isinstance(message, ToolMessage):
                played.raw[message.tool_call_id] = message
                played.texts[message.tool_call_id] = message.text
                if message.status == "error":
                    played.failed.add(message.tool_call_id)
        return played

    return play


def _decision(name: str, said: Decision) -> dict[str, Any]:
    if isinstance(said, dict):
        return {"type": "edit", "edited_action": {"name": name, "args": said}}
    if isinstance(said, str):
        return {"type": "reject", "message": said}
    return {"type": "approve" if said else "reject"}


async def play_openai_agents(
    executor: Executor,
    *turns: Sequence[ToolCall],
    decide: Decide = _yes,
    between: Callable[[], object] = _nothing,
    pending: MutableMapping[str, str] | None = None,
) -> Played:
    from agents import Agent, RunConfig, Runner, RunState
    from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call

    from callwright.core.json import compact, thaw
    from callwright.interop import to_openai_agents

    played, script = Played(), iter(turns)

    def answer(made: Any) -> Any:
        if played.offered:
            between()
        played.offered.append([told.name for told in made.tools])
        calls = next(script, None)
        if calls is None:
            return [assistant_message("done")]
        texts = [
            (call, call.arguments if isinstance(call.arguments, str) else compact(thaw(call.arguments)))
            for call in calls
        ]
        return [function_call(call.name, text, call_id=call.id) for call, text in texts]

    model = ScriptedModel([ModelStep.respond(answer) for _ in range(len(turns) + 1)])
    config = RunConfig(tracing_disabled=True, tool_not_found_behavior="return_error_to_model")
    agent = Agent("writer", model=model, tools=[*to_openai_agents(executor, pending=pending)])
    result = await Runner.run(agent, "hello", run_config=config)
    while result.interruptions:
        state = result.to_state()
        if pending is not None:  # as another process would, with nothing but what was written down
            agent = Agent("writer", model=model, tools=[*to_openai_agents(executor, pending=pending)])
            state = await RunState.from_json(agent, state.to_json())
        for item in state.get_interruptions():
            raw = cast("Any", item.raw_item)
            arguments = _read(raw.arguments)
            played.asked.append((raw.name, arguments))
            said = decide(raw.name, arguments)
            if said is True:
                state.approve(item)
            else:
                state.reject(item, rejection_message=said if isinstance(said, str) else None)
        result = await Runner.run(agent, state, run_config=config)
    for item in cast("list[Any]", result.to_input_list()):
        if item.get("type") == "function_call_output":
            played.raw[item["call_id"]] = item["output"]
            played.texts[item["call_id"]] = _text(item["output"])
            if _text(item["output"]).startswith(_REFUSALS):
                played.failed.add(item["call_id"])
    return played


def _read(text: str) -> dict[str, Any]:
    import json

    return json.loads(text)


def _text(output: object) -> str:
    if isinstance(output, str):
        return output
    parts = cast("list[Mapping[str, Any]]", output)
    return "\n".join(part["text"] for part in parts if "text" in part)


PLAYS: dict[str, Play] = {
    "pydantic-ai": play_pydantic_ai,
    "langgraph-agent": _play_graph(_agent_graph),
    "langgraph-node": _play_graph(_node_graph),
    "openai-agents": play_openai_agents,
}


@pytest.fixture(params=list(PLAYS))
def play(request: pytest.FixtureRequest) -> Play:
    return PLAYS[request.param]


@pytest.fixture(params=[name for name in PLAYS if name != "openai-agents"])
def play_with_edits(request: pytest.FixtureRequest) -> Play:
    """The frameworks where a person may change the arguments; OpenAI Agents has no place for that."""
    return PLAYS[request.param]
