"""What all adapters share, without any framework."""

from callwright import Effect, Executor, Interrupted, Registry, ToolCall, ToolContext
from callwright.core.access import WritePath
from callwright.core.decisions import make_reply
from callwright.core.json import JsonObject
from callwright.core.spec import Annotations, ToolSpec
from callwright.interop.bridge import Bridge, ShownQuestions
from callwright.tool.base import State
from callwright.tool.schema_tool import SchemaInvocation, SchemaTool


class Place:
    """Where a session's calls write."""

    folder = "/start"


async def _write(arguments: dict[str, str], context: ToolContext) -> str:
    return f"{context.state.get(Place).folder}/{arguments['name']}"


class PlacedTool(SchemaTool):
    """Writes where its session is, as a shell does."""

    def __init__(self) -> None:
        super().__init__(
            ToolSpec("write", "Write.", {"type": "object"}, annotations=Annotations(Effect.WRITE)),
            _write,
        )

    def bind_in(self, arguments: JsonObject | str | bytes, state: State, session_id: str) -> SchemaInvocation:
        """Bind for the folder of a session."""
        folder = state.get(Place).folder
        placed = SchemaTool(self.spec, _write, accesses=lambda given: (WritePath(f"{folder}/{given['name']}"),))
        return placed.bind(arguments)


async def test_question_is_about_the_call_as_its_session_would_run_it() -> None:
    bridge = Bridge(Executor(Registry(PlacedTool())), None)
    bridge.state("s").get(Place).folder = "/elsewhere"
    call = ToolCall("c", "write", {"name": "a"})
    (asked,) = await bridge.questions(call, "s")
    assert asked.accesses == (WritePath("/elsewhere/a"),)
    outcome = await bridge.call(call, "s", "batch", approval=(ShownQuestions((asked.id,)), make_reply(True)))
    assert not isinstance(outcome, Interrupted) and outcome.text == "/elsewhere/a"
