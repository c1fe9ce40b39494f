"""What all adapters share, without any framework."""

import asyncio

from callwright import ApprovalRequired, Effect, Executor, Interrupted, Registry, ToolCall, ToolContext, tool
from callwright.core.access import ReadPath, WritePath
from callwright.core.content import Text
from callwright.core.decisions import make_reply
from callwright.core.json import JsonObject
from callwright.core.spec import Annotations, ToolSpec
from callwright.interop.bridge import Bridge, ShownQuestions, make_output
from callwright.policy import AllowEverything
from callwright.tool.base import State
from callwright.tool.schema_tool import Handler, SchemaInvocation, SchemaTool


class Place:
    """Where a session's calls write."""

    folder = "/start"


async def _write(arguments: dict[str, str], context: ToolContext) -> str:
    return f"{context.state.get(Place).folder}/{arguments['name']}"


class PlacedTool(SchemaTool):
    """Writes where its session is, as a shell does."""

    def __init__(self, write: Handler = _write) -> None:
        self.write = write
        super().__init__(
            ToolSpec("write", "Write.", {"type": "object"}, annotations=Annotations(Effect.WRITE)),
            write,
            accesses=lambda given: (WritePath(f"{Place.folder}/{given['name']}"),),
        )

    def bind_in(self, arguments: JsonObject | str | bytes, state: State, session_id: str) -> SchemaInvocation:
        """Bind for the folder of a session."""
        folder = state.get(Place).folder
        placed = SchemaTool(self.spec, self.write, accesses=lambda given: (WritePath(f"{folder}/{given['name']}"),))
        return placed.bind(arguments)


async def test_question_is_about_the_call_as_its_session_would_run_it() -> None:
    bridge = Bridge(Executor(Registry(PlacedTool())), None)
    bridge.state("s").get(Place).folder = "/elsewhere"
    call = ToolCall("c", "write", {"name": "a"})
    (asked,) = await bridge.questions(call, "s")
    assert asked.accesses == (WritePath("/elsewhere/a"),)
    outcome = await bridge.call(call, "s", "batch", approval=(ShownQuestions((asked.id,)), make_reply(True)))
    assert not isinstance(outcome, Interrupted) and outcome.text == "/elsewhere/a"


async def test_calls_conflict_where_their_session_would_run_them() -> None:
    log: list[str] = []

    @tool(effect=Effect.READ, accesses=lambda _: [ReadPath("/elsewhere/a")])
    async def look() -> str:
        """Read the file."""
        log.append("read")
        return ""

    async def write_slowly(arguments: dict[str, str]) -> str:
        await asyncio.sleep(0)
        log.append("written")
        return ""

    bridge = Bridge(Executor(Registry(PlacedTool(write_slowly), look), AllowEverything()), None)
    bridge.state("s").get(Place).folder = "/elsewhere"
    calls = [ToolCall("c", "write", {"name": "a"}), ToolCall("d", "look")]
    await asyncio.gather(*(bridge.call(call, "s", "batch") for call in calls))
    assert log == ["written", "read"]


async def test_call_that_asks_twice_ends_after_two_approvals() -> None:
    reasons: list[str] = []

    @tool(effect=Effect.READ)
    async def careful(context: ToolContext) -> str:
        """Ask, and ask again."""
        reasons.append("" if context.question is None else context.question.reason)
        if reasons[-1] != "really?":
            raise ApprovalRequired("really?" if reasons[-1] else "sure?")
        return "done"

    bridge = Bridge(Executor(Registry(careful)), None)
    call, approval = ToolCall("c", "careful"), None
    for asked in ("sure?", "really?"):
        outcome = await bridge.call(call, "s", "batch", approval=approval)
        assert isinstance(outcome, Interrupted) and [question.reason for question in outcome.questions] == [asked]
        approval = ShownQuestions(tuple(question.id for question in outcome.questions)), make_reply(True)
    ended = await bridge.call(call, "s", "batch", approval=approval)
    assert not isinstance(ended, Interrupted) and ended.text == "done"
    assert reasons == ["", "sure?", "really?"]


def test_structured_data_that_is_not_json_fails_no_call() -> None:
    deep: list[object] = []
    for _ in range(5_000):
        deep = [deep]
    assert all(make_output([Text("done")], data).structured is None for data in (deep, {1}, float("nan")))
