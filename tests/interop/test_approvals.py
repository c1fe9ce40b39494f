"""Approvals where frameworks differ: lost questions, permanent approvals, calls outside of a graph."""

import asyncio
import json
import random
from typing import TYPE_CHECKING, Any, cast

import pytest
from tests.executor.replies import make_value

from callwright import Effect, Executor, Registry, interop, tool
from callwright.core.errors import UsageError
from callwright.hooks import Hook, PendingCall
from callwright.interop.bridge import PendingApprovals
from callwright.policy import ByMode, Policies, Rules, parse_rule

# the frameworks are imported when they are used: together they take three seconds, in each process that runs tests
if TYPE_CHECKING:
    from agents.tool_context import ToolContext as AgentsContext
    from langgraph.types import Command
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models.function import AgentInfo
    from tests.interop.conftest import Notes

pytestmark = pytest.mark.slow  # the frameworks take seconds to load, in each process
HELLO = {"path": "note", "text": "hello"}


def answer(messages: "list[ModelMessage]", info: "AgentInfo") -> "ModelResponse":
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart

    if len(messages) == 1:
        return ModelResponse([ToolCallPart("write", HELLO, "c1")])
    return ModelResponse([TextPart("done")])


def pydantic_agent(executor: Executor, pending: dict[str, str] | None = None) -> Any:
    from pydantic_ai import Agent, DeferredToolRequests
    from pydantic_ai.models.function import FunctionModel

    toolset = interop.to_pydantic_ai(executor, pending=pending)
    return Agent(FunctionModel(answer), toolsets=[toolset], output_type=[str, DeferredToolRequests])


def is_question(output: object) -> bool:
    from pydantic_ai import DeferredToolRequests

    return isinstance(output, DeferredToolRequests)


async def test_pydantic_ai_asks_again_without_saved_question(notes: "Notes") -> None:
    first = await pydantic_agent(notes.executor(ask=True)).run("hello")
    approved = first.output.build_results(approve_all=True)
    again = await pydantic_agent(notes.executor(ask=True)).run(
        message_history=first.all_messages(), deferred_tool_results=approved
    )
    assert is_question(again.output)
    assert notes.log == []


async def test_pydantic_ai_rejects_approval_of_other_conversation(notes: "Notes") -> None:
    agent = pydantic_agent(notes.executor(ask=True))
    await agent.run("hello", conversation_id="mine")
    other = await agent.run("hello", conversation_id="theirs")
    approved = other.output.build_results(approve_all=True)
    crossed = await agent.run(
        message_history=other.all_messages(), deferred_tool_results=approved, conversation_id="other"
    )
    assert is_question(crossed.output)
    assert notes.log == []


async def test_pydantic_ai_question_is_not_an_answer(notes: "Notes") -> None:
    agent = pydantic_agent(notes.executor(ask=True))
    await agent.run("hello", conversation_id="mine")
    again = await agent.run("hello", conversation_id="mine")
    assert is_question(again.output)
    assert notes.log == []


async def test_answered_questions_are_marked_as_used(notes: "Notes") -> None:
    kept: dict[str, str] = {}
    agent = pydantic_agent(notes.executor(ask=True), kept)
    first = await agent.run("hello")
    assert is_question(first.output)
    assert len(kept) == 1
    approved = first.output.build_results(approve_all=True)
    await agent.run(message_history=first.all_messages(), deferred_tool_results=approved)
    assert [json.loads(text)["used"] for text in kept.values()] == [True]


@pytest.mark.parametrize("shared", [True, False], ids=["two executors", "one executor"])
async def test_pydantic_ai_approval_runs_a_call_once(notes: "Notes", shared: bool) -> None:
    kept: dict[str, str] = {}
    executors = [notes.executor(ask=True), notes.executor(ask=True)] if shared else [notes.executor(ask=True)]
    agents = [pydantic_agent(executor, kept) for executor in executors]
    first = await agents[0].run("hello", conversation_id="mine")
    assert is_question(first.output)
    approved = first.output.build_results(approve_all=True)
    for agent in agents * 6:
        await agent.run(message_history=first.all_messages(), deferred_tool_results=approved, conversation_id="mine")
    assert notes.log == ["begin hello", "end hello"]


async def test_session_id_is_the_frameworks_conversation_id(notes: "Notes") -> None:
    sessions: list[str] = []

    class Listen(Hook):
        def before(self, pending: PendingCall) -> None:
            sessions.append(pending.session_id)

    executor = notes.executor(hooks=[Listen()])
    await pydantic_agent(executor).run("hi", conversation_id="talk")
    chain = next(tool for tool in interop.to_langchain(executor) if tool.name == "write")
    await chain.ainvoke({"type": "tool_call", "name": "write", "args": HELLO, "id": "c1"}, PLACE)
    tools = interop.to_openai_agents(executor, session=lambda context: f"user {context}")
    own = next(tool for tool in tools if tool.name == "write")
    await own.on_invoke_tool(agents_context(7), '{"path": "note", "text": "x"}')
    assert sessions == ["talk", "one", "user 7"]


def make_keeper() -> Any:
    from langgraph.checkpoint.memory import InMemorySaver

    return InMemorySaver()


def resume(said: object) -> "Command[Any]":
    from langgraph.types import Command

    return Command(resume=said)


def tool_graph(executor: "Executor | Notes", keeper: Any, pending: dict[str, str] | None = None) -> Any:
    from langgraph.graph import START, MessagesState, StateGraph
    from langgraph.prebuilt import ToolNode

    executor = executor if isinstance(executor, Executor) else executor.executor(ask=True)
    graph: Any = StateGraph(MessagesState)
    graph.add_node("tools", ToolNode(interop.to_langchain(executor, pending=pending)))
    graph.add_edge(START, "tools")
    return graph.compile(checkpointer=keeper)


PLACE: Any = {"configurable": {"thread_id": "one"}}


def asking(*calls: tuple[str, dict[str, Any], str]) -> dict[str, Any]:
    from langchain_core.messages import AIMessage

    made: Any = [
        {"name": name, "args": arguments, "id": call_id, "type": "tool_call"}
        for name, arguments, call_id in calls or (("write", HELLO, "c1"),)
    ]
    return {"messages": [AIMessage("", tool_calls=made)]}


async def test_langgraph_asks_again_without_saved_question(notes: "Notes") -> None:
    keeper = make_keeper()
    await tool_graph(notes, keeper).ainvoke(asking(), PLACE)
    graph = tool_graph(notes, keeper)
    state = await graph.ainvoke(resume(True), PLACE)
    assert "__interrupt__" in state
    assert notes.log == []
    await graph.ainvoke(resume(True), PLACE)
    assert notes.log == ["begin hello", "end hello"]


@pytest.mark.parametrize(
    ("said", "ran"),
    [
        (True, True),
        ({"type": "approve"}, True),
        ({"decisions": [{"type": "approve"}]}, True),
        (False, False),
        ("yes", False),
        (1, False),
        ({"type": "maybe"}, False),
        ({"type": "approve", "message": "but not the second file"}, False),
        ({"type": "approve", "edited_action": {"args": HELLO}}, False),
        ({"type": ["approve"]}, False),
        ({"type": True}, False),
        ({"approve": True}, False),
        ({"decisions": [{"type": "approve"}], "note": "wait"}, False),
        ({"decisions": ({"type": "approve"},)}, False),
        ({"decisions": [[{"type": "approve"}]]}, False),
        ({"type": "edit", "edited_action": {"args": HELLO}}, True),
        ({"type": "edit", "edited_action": {"name": "write", "args": HELLO}}, True),
        ({"type": "edit", "edited_action": {"name": "burn", "args": HELLO}}, False),
        ({"type": "edit", "edited_action": {"args": HELLO, "then": "more"}}, False),
        ({"type": "edit", "message": "wait", "edited_action": {"args": HELLO}}, False),
        ({"type": "edit", "edited_action": {"args": "oops"}}, False),
        ({"decisions": []}, False),
        ({"decisions": [{"type": "approve"}, {"type": "approve"}]}, False),
        ({"decisions": "approve"}, False),
    ],
)
async def test_langgraph_runs_only_after_explicit_approval(notes: "Notes", said: Any, ran: bool) -> None:
    graph = tool_graph(notes, make_keeper())
    await graph.ainvoke(asking(), PLACE)
    state = await graph.ainvoke(resume(said), PLACE)
    assert "__interrupt__" not in state
    assert bool(notes.log) is ran
    assert state["messages"][-1].status == ("success" if ran else "error")


@pytest.mark.parametrize("count", [60, pytest.param(240, marks=pytest.mark.slow)])
async def test_langgraph_reply_that_is_no_approval_runs_nothing(notes: "Notes", count: int) -> None:
    source, graph = random.Random(8), tool_graph(notes, make_keeper())
    near: list[Any] = ["yes", "approve", 1, 1.0, "True", {"type": "Approve"}, {"type": "approve "}, {"approve": True}]
    near += [{"decisions": [True, True]}, {"decisions": {"type": "approve"}}, {"type": "approve", "note": "no"}, [True]]
    for number in range(count):
        # as JSON, which a checkpointer can store
        value: Any = json.loads(json.dumps(make_value(source, 1), default=repr), parse_int=float)
        said = source.choice(near) if value in (True, None) or source.random() < 0.5 else value
        place: Any = {"configurable": {"thread_id": str(number)}}
        await graph.ainvoke(asking(), place)
        state = await graph.ainvoke(resume(said), place)
        assert "__interrupt__" in state or state["messages"][-1].status == "error", said
    assert notes.log == []


async def test_langgraph_approval_runs_a_call_once_in_all_processes(notes: "Notes") -> None:
    """Each graph stands for a process: their own executors and outcomes, one checkpointer and one pending store."""
    keeper, kept = make_keeper(), dict[str, str]()
    graphs = [tool_graph(notes, keeper, kept) for _ in range(4)]
    await graphs[0].ainvoke(asking(), PLACE)
    before = (await graphs[0].aget_state(PLACE)).config
    ended = await asyncio.gather(*(graph.ainvoke(resume(True), before) for graph in graphs))
    assert notes.log == ["begin hello", "end hello"]
    assert sorted(state["messages"][-1].status for state in ended if "__interrupt__" not in state)[-1] == "success"
    for _ in range(3):  # once more from the same checkpoint, as a repeated request to another process would
        state = await tool_graph(notes, keeper, kept).ainvoke(resume(True), before)
        assert "used already" in state["messages"][-1].content
    assert notes.log == ["begin hello", "end hello"]


@pytest.mark.parametrize("elsewhere", [False, True], ids=["same process", "other process"])
async def test_langgraph_repeats_no_call_that_had_ended(elsewhere: bool) -> None:
    ran: list[int] = []

    @tool(effect=Effect.WRITE)
    async def free(number: int) -> str:
        """Change something, unasked."""
        ran.append(number)
        return f"did {number}"

    @tool(effect=Effect.WRITE)
    async def asked() -> str:
        """Change something."""
        ran.append(0)
        return "did 0"

    policies = Policies(Rules([parse_rule("allow", "free")]), ByMode("default"))
    keeper, kept = make_keeper(), dict[str, str]()
    graph = tool_graph(Executor(Registry(free, asked), policies), keeper, kept)
    # two calls with one id, as some models write them
    calls: list[tuple[str, dict[str, Any], str]] = [
        ("free", {"number": 1}, "a"),
        ("free", {"number": 2}, "a"),
        ("free", {"number": 2}, "a"),
        ("asked", {}, "b"),
    ]
    await graph.ainvoke(asking(*calls), PLACE)
    assert ran == [1, 2, 2]
    if elsewhere:
        graph = tool_graph(Executor(Registry(free, asked), policies), keeper, kept)
    state = await graph.ainvoke(resume(True), PLACE)
    assert ran == [1, 2, 2, 0]
    assert [message.content for message in state["messages"][1:]] == ["did 1", "did 2", "did 2", "did 0"]


async def test_langgraph_answer_is_lost_with_the_process_that_took_it(notes: "Notes") -> None:
    keeper, kept = make_keeper(), dict[str, str]()
    graph = tool_graph(notes, keeper, kept)
    await graph.ainvoke(asking(), PLACE)
    pending = PendingApprovals(kept)
    for key in list(kept):  # what a process does that is killed before the call ran
        pending.claim(*json.loads(key))
    other = tool_graph(notes, keeper, kept)
    state = await other.ainvoke(resume(True), PLACE)
    assert notes.log == [] and ("__interrupt__" in state or "used already" in str(state["messages"][-1].content))


async def test_langchain_outside_graph_denies_approval_calls(notes: "Notes") -> None:
    tool = next(tool for tool in interop.to_langchain(notes.executor(ask=True)) if tool.name == "write")
    message = await tool.ainvoke({"type": "tool_call", "name": "write", "args": HELLO, "id": "c1"})
    assert message.status == "error"
    assert "the user cannot be asked outside of a graph" in message.content
    assert notes.log == []


async def test_langchain_sync_call_is_rejected(notes: "Notes") -> None:
    tool = next(tool for tool in interop.to_langchain(notes.executor()) if tool.name == "write")
    with pytest.raises(UsageError, match="ainvoke"):
        tool.invoke({"type": "tool_call", "name": "write", "args": HELLO, "id": "c1"})


def agents_context(context: Any) -> "AgentsContext[Any]":
    from agents.tool_context import ToolContext
    from agents.usage import Usage

    return ToolContext(context, Usage(), "write", "c1", "{}")


async def test_openai_agents_always_approval_does_not_count(notes: "Notes") -> None:
    from agents import Agent, RunConfig, Runner
    from agents.testing import ScriptedModel, assistant_message, function_call

    steps: list[Any] = [
        [function_call("write", HELLO, call_id="c1")],
        [function_call("write", {"path": "note", "text": "more"}, call_id="c2")],
        [assistant_message("done")],
    ]
    agent = Agent("writer", model=ScriptedModel(steps), tools=[*interop.to_openai_agents(notes.executor(ask=True))])
    quiet = RunConfig(tracing_disabled=True)
    result = await Runner.run(agent, "hello", run_config=quiet)
    state = result.to_state()
    state.approve(result.interruptions[0], always_approve=True)
    result = await Runner.run(agent, state, run_config=quiet)
    assert result.final_output == "done"
    assert notes.log == ["begin hello", "end hello"]
    assert "this exact call has not been approved" in str(result.to_input_list())


async def test_openai_agents_direct_tool_call_is_judged(notes: "Notes") -> None:
    tool = next(tool for tool in interop.to_openai_agents(notes.executor(ask=True)) if tool.name == "write")
    context = agents_context(None)
    needs = cast("Any", tool.needs_approval)
    assert await needs(context, HELLO, "c1")
    said = await tool.on_invoke_tool(context, '{"path": "note", "text": "hello"}')
    assert "this exact call has not been approved" in said
    assert notes.log == []


def test_saved_questions_are_bounded() -> None:
    pending = PendingApprovals()
    for number in range(5000):
        pending.save("", str(number), [])
    assert pending.find("", "0") is None
    assert pending.find("", "4999") is not None
