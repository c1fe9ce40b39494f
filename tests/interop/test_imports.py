"""Other frameworks' tools in a registry: unchanged schemas, with our policies."""

import base64
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest
from pydantic import BaseModel

from callwright import Annotations, Completed, Effect, Executor, Failed, Interrupted, Registry, interop, tool
from callwright.core.calls import Answers, ToolCall
from callwright.core.content import File, Image, Output, Part, Text
from callwright.core.errors import UsageError
from callwright.interop.bridge import make_output
from callwright.policy import AllowEverything
from callwright.tool.base import Tool

# the frameworks are imported when they are used: together they take three seconds, in each process that runs tests
pytestmark = pytest.mark.slow
READS = Annotations(Effect.READ)


@dataclass
class Shop:
    """What tools of the frameworks find in their contexts."""

    name: str


def executor_of(tools: list[Tool]) -> Executor:
    return Executor(Registry(*tools), AllowEverything())


async def text_of(tools: list[Tool], name: str, arguments: dict[str, Any]) -> str:
    outcome = await executor_of(tools).run(name, arguments)
    assert not isinstance(outcome, Interrupted)
    return outcome.text if isinstance(outcome, Completed) else f"{outcome.error.code}: {outcome.text}"


def price(item: str, count: int = 1) -> dict[str, int]:
    """What something costs.

    Args:
        item: Its name.
        count: How many.
    """
    if item == "moon":
        raise ValueError("not for sale")
    return {"cents": len(item) * count}


async def all_three() -> dict[str, list[Tool]]:
    from agents import function_tool
    from langchain_core.tools import StructuredTool
    from pydantic_ai import Tool as PydanticTool

    return {
        "pydantic-ai": await interop.from_pydantic_ai(PydanticTool(price)),
        "langchain": interop.from_langchain(StructuredTool.from_function(price)),
        "openai-agents": interop.from_openai_agents(function_tool(price, failure_error_function=None)),
    }


@pytest.mark.parametrize("origin", ["pydantic-ai", "langchain", "openai-agents"])
async def test_imported_tool_is_called_like_any_other(origin: str) -> None:
    tools = (await all_three())[origin]
    assert [tool.spec.origin for tool in tools] == [origin]
    assert "cents" in await text_of(tools, "price", {"item": "tea", "count": 2})
    assert "6" in await text_of(tools, "price", {"item": "tea", "count": 2})


@pytest.mark.parametrize("origin", ["pydantic-ai", "langchain", "openai-agents"])
async def test_imported_tool_asks_without_claims(origin: str) -> None:
    tools = (await all_three())[origin]
    assert tools[0].spec.annotations == Annotations(Effect.DESTROY, open_world=True)
    assert isinstance(await Executor(Registry(*tools)).run("price", {"item": "tea", "count": 1}), Interrupted)


@pytest.mark.parametrize("origin", ["pydantic-ai", "langchain", "openai-agents"])
async def test_exception_in_imported_tool_is_a_failure(origin: str) -> None:
    outcome = await executor_of((await all_three())[origin]).run("price", {"item": "moon", "count": 1})
    assert isinstance(outcome, Failed)
    assert outcome.started
    assert "not for sale" in outcome.text


@pytest.mark.parametrize("origin", ["pydantic-ai", "langchain", "openai-agents"])
async def test_imported_tool_arguments_are_validated_first(origin: str) -> None:
    outcome = await executor_of((await all_three())[origin]).run("price", {"item": 5, "count": 1})
    assert isinstance(outcome, Failed)
    assert not outcome.started


async def test_imported_schemas_are_unchanged() -> None:
    from agents import function_tool
    from langchain_core.tools import StructuredTool
    from pydantic_ai import Tool as PydanticTool

    own, theirs = PydanticTool(price), StructuredTool.from_function(price)
    agents = function_tool(price)
    assert (await interop.from_pydantic_ai(own))[0].spec.input_schema == own.tool_def.parameters_json_schema
    shape = cast("type[BaseModel]", theirs.tool_call_schema)
    assert interop.from_langchain(theirs)[0].spec.input_schema == shape.model_json_schema()
    assert interop.from_openai_agents(agents)[0].spec.input_schema == agents.params_json_schema


async def test_claims_may_differ_by_tool_name() -> None:
    from langchain_core.tools import StructuredTool

    tools = interop.from_langchain(
        StructuredTool.from_function(price),
        StructuredTool.from_function(price, name="buy"),
        claims=lambda name: READS if name == "price" else Annotations(Effect.DESTROY),
    )
    assert [tool.spec.annotations.effect for tool in tools] == [Effect.READ, Effect.DESTROY]


async def test_claims_do_not_lift_required_approval() -> None:
    from agents import function_tool
    from pydantic_ai import Tool as PydanticTool

    asking = PydanticTool(price, requires_approval=True)
    guarded = function_tool(price, needs_approval=True)
    lists = [await interop.from_pydantic_ai(asking, claims=READS), interop.from_openai_agents(guarded, claims=READS)]
    for tools in lists:
        assert isinstance(await Executor(Registry(*tools)).run("price", {"item": "tea", "count": 1}), Interrupted)


async def test_pydantic_ai_approval_of_single_calls_is_asked_for() -> None:
    from pydantic_ai import ApprovalRequired, FunctionToolset, RunContext

    sold: list[str] = []

    def sell(item: str) -> str:
        sold.append(item)
        return f"sold {item}"

    def order(ctx: RunContext[object], item: str) -> str:
        if item == "car" and not ctx.tool_call_approved:
            raise ApprovalRequired
        return sell(item)

    def never(item: str) -> str:
        raise ApprovalRequired

    by_function = FunctionToolset[object]([sell]).approval_required(lambda ctx, tool, given: given["item"] == "car")
    tools = await interop.from_pydantic_ai(by_function, FunctionToolset[object]([order, never]), claims=READS)
    for name in ("sell", "order"):
        executor = executor_of(tools)
        assert (await executor.run(name, {"item": "tea"})).text == "sold tea"
        call = ToolCall(f"c-{name}", name, {"item": "car"})
        (asked,) = await executor.execute([call])
        assert isinstance(asked, Interrupted) and sold[-1] == "tea"
        (done,) = await executor.execute([call], answers=Answers.approving(asked.questions))
        assert done.text == "sold car"
    executor, call = executor_of(tools), ToolCall("c", "never", {"item": "car"})
    (asked,) = await executor.execute([call])
    assert isinstance(asked, Interrupted)
    (done,) = await executor.execute([call], answers=Answers.approving(asked.questions))
    assert isinstance(done, Failed) and "asks for an approval again" in done.text


async def test_pydantic_ai_validator_of_arguments_is_run() -> None:
    from pydantic_ai import ApprovalRequired, ModelRetry, RunContext, Tool as PydanticTool

    async def check(ctx: RunContext[Shop], item: str, count: int = 1) -> None:
        if count > 9:
            raise ModelRetry(f"{ctx.deps.name} sells nine at most")
        if item == "car" and not ctx.tool_call_approved:
            raise ApprovalRequired

    tools = await interop.from_pydantic_ai(PydanticTool(price, args_validator=check), deps=Shop("Kiosk"), claims=READS)
    text = await text_of(tools, "price", {"item": "tea", "count": 10})
    assert text == "invalid_input: invalid arguments: Kiosk sells nine at most"
    assert isinstance(await executor_of(tools).run("price", {"item": "car"}), Interrupted)
    assert await text_of(tools, "price", {"item": "tea", "count": 9}) == '{"cents":27}'


async def test_pydantic_ai_sequential_tool_runs_alone() -> None:
    from pydantic_ai import Tool as PydanticTool

    alone, beside = await interop.from_pydantic_ai(
        PydanticTool(price, sequential=True), PydanticTool(price, name="other"), claims=READS
    )
    assert (alone.spec.annotations.parallel, beside.spec.annotations.parallel) == (False, None)


async def test_pydantic_ai_tools_receive_deps_and_call_id() -> None:
    from pydantic_ai import RunContext, Tool as PydanticTool

    def where(ctx: RunContext[Shop]) -> str:
        return f"{ctx.deps.name} {ctx.tool_name} {ctx.tool_call_approved}"

    assert await text_of(await interop.from_pydantic_ai(PydanticTool(where), deps=Shop("Kiosk")), "where", {}) == (
        "Kiosk where False"
    )


async def test_pydantic_ai_toolset_errors_are_converted() -> None:
    from pydantic_ai import CallDeferred, FunctionToolset, ModelRetry
    from pydantic_ai.exceptions import ToolFailed as PydanticToolFailed

    toolset: FunctionToolset[object] = FunctionToolset()

    @toolset.tool_plain
    def again() -> str:
        raise ModelRetry("say it louder")

    @toolset.tool_plain
    def never() -> str:
        raise PydanticToolFailed("closed for good")

    @toolset.tool_plain
    def later() -> str:
        raise CallDeferred

    tools = await interop.from_pydantic_ai(toolset.prefixed("shop"))
    assert await text_of(tools, "shop_again", {}) == "tool_failed: say it louder"
    assert await text_of(tools, "shop_never", {}) == "tool_failed: closed for good"
    assert "only pydantic-ai supports" in await text_of(tools, "shop_later", {})


async def test_imported_images_stay_images() -> None:
    from agents import FunctionTool, RunContextWrapper, ToolOutputImage
    from langchain_core.tools import StructuredTool
    from pydantic_ai import BinaryContent, Tool as PydanticTool

    def photo() -> list[Any]:
        """Take a photo."""
        return ["a dot", BinaryContent(b"png", media_type="image/png")]

    def pair() -> tuple[str, BinaryContent]:
        """Take a photo."""
        return "a dot", BinaryContent(b"png", media_type="image/png")

    def snapshot() -> tuple[list[dict[str, str]], None]:
        """Take a photo."""
        data = base64.b64encode(b"png").decode()
        return [{"type": "text", "text": "a dot"}, {"type": "image", "base64": data, "mime_type": "image/png"}], None

    async def shoot(context: RunContextWrapper[Any], arguments: str) -> ToolOutputImage:
        return ToolOutputImage(image_url=f"data:image/png;base64,{base64.b64encode(b'png').decode()}")

    chain = StructuredTool.from_function(snapshot, response_format="content_and_artifact")
    lists = [
        await interop.from_pydantic_ai(PydanticTool(photo)),
        await interop.from_pydantic_ai(PydanticTool(pair)),
        interop.from_langchain(chain),
        interop.from_openai_agents(FunctionTool("shoot", "Take a photo.", {"type": "object", "properties": {}}, shoot)),
    ]
    for tools in lists:
        outcome = await executor_of(tools).run(tools[0].spec.name)
        assert isinstance(outcome, Completed)
        assert outcome.output.parts[-1] == Image(b"png", "image/png")


DATA = base64.b64encode(b"pdf").decode()
PNG = base64.b64encode(b"png").decode()


@pytest.mark.parametrize(
    ("given", "part"),
    [
        (
            {"file_data": f"data:application/pdf;base64,{DATA}", "filename": "a.pdf"},
            File(b"pdf", "application/pdf", "a.pdf"),
        ),
        ({"file_data": DATA, "filename": "a.pdf"}, File(b"pdf", "application/pdf", "a.pdf")),
        ({"file_data": DATA}, File(b"pdf")),
        ({"file_data": "no base64!", "filename": "a.pdf"}, Text("[file a.pdf left out: its data cannot be read]")),
        ({"file_url": "https://h/a.pdf"}, Text("file: https://h/a.pdf")),
        (
            {"file_id": "f1", "filename": "a.pdf"},
            Text("[file a.pdf left out: the tool returned only the id of an uploaded file, f1]"),
        ),
    ],
)
@pytest.mark.parametrize("as_dict", [False, True])
async def test_files_of_openai_agents_stay_files(given: dict[str, str], part: Part, as_dict: bool) -> None:
    from agents import FunctionTool, RunContextWrapper, ToolOutputFileContent, ToolOutputText

    async def fetch(context: RunContextWrapper[Any], arguments: str) -> Any:
        file = {"type": "file", **given} if as_dict else ToolOutputFileContent.model_validate(given)
        return [ToolOutputText(text="here"), file]

    tools = interop.from_openai_agents(FunctionTool("fetch", "Fetch.", {"type": "object", "properties": {}}, fetch))
    outcome = await executor_of(tools).run("fetch")
    assert isinstance(outcome, Completed)
    assert outcome.output == make_output([Text("here"), part])


async def test_image_of_openai_agents_by_id_is_named() -> None:
    from agents import FunctionTool, RunContextWrapper, ToolOutputImage

    async def shoot(context: RunContextWrapper[Any], arguments: str) -> Any:
        return ToolOutputImage(file_id="f1")

    tools = interop.from_openai_agents(FunctionTool("shoot", "Shoot.", {"type": "object", "properties": {}}, shoot))
    assert "image left out: the tool returned only the id of an uploaded file, f1" in await text_of(tools, "shoot", {})


@pytest.mark.parametrize(
    ("block", "part"),
    [
        ({"type": "image_url", "image_url": {"url": f"data:image/gif;base64,{PNG}"}}, Image(b"png", "image/gif")),
        ({"type": "image_url", "image_url": f"data:image/gif;base64,{PNG}"}, Image(b"png", "image/gif")),
        ({"type": "image_url", "image_url": {"url": "https://h/a.png"}}, Text("image: https://h/a.png")),
        ({"type": "image", "url": "https://h/a.png"}, Text("image: https://h/a.png")),
        ({"type": "image", "source_type": "base64", "data": PNG, "mime_type": "image/gif"}, Image(b"png", "image/gif")),
        (
            {"type": "image", "source": {"type": "base64", "data": PNG, "media_type": "image/gif"}},
            Image(b"png", "image/gif"),
        ),
        (
            {"type": "image", "id": "lc_1", "base64": "?", "mime_type": "image/gif"},
            Text("[image left out: its data cannot be read]"),
        ),
        (
            {"type": "file", "base64": DATA, "mime_type": "application/pdf", "extras": {"filename": "a.pdf"}},
            File(b"pdf", "application/pdf", "a.pdf"),
        ),
        (
            {"type": "file", "file": {"file_data": f"data:application/pdf;base64,{DATA}", "filename": "a.pdf"}},
            File(b"pdf", "application/pdf", "a.pdf"),
        ),
        (
            {"type": "file", "id": "lc_1", "file_id": "f1"},
            Text("[file left out: the tool returned only the id of an uploaded file, f1]"),
        ),
        (
            {
                "type": "document",
                "title": "A",
                "source": {"type": "base64", "data": DATA, "media_type": "application/pdf"},
            },
            File(b"pdf", "application/pdf", "A"),
        ),
        ({"type": "document", "source": {"type": "text", "data": "words", "media_type": "text/plain"}}, Text("words")),
        ({"type": "json", "json": {"a": 1}}, Text('{"type":"json","json":{"a":1}}')),
    ],
)
async def test_blocks_of_langchain_become_parts(block: dict[str, Any], part: Part) -> None:
    from langchain_core.tools import StructuredTool

    def fetch() -> list[dict[str, Any]]:
        """Fetch."""
        return [{"type": "text", "text": "here"}, block]

    outcome = await executor_of(interop.from_langchain(StructuredTool.from_function(fetch))).run("fetch")
    assert isinstance(outcome, Completed)
    assert outcome.output == make_output([Text("here"), part])


async def test_file_keeps_its_name_through_langchain() -> None:
    @tool(effect=Effect.READ)
    async def fetch() -> Output:
        """Fetch."""
        return Output((File(b"pdf", "application/pdf", "a.pdf"),))

    tools = interop.from_langchain(*interop.to_langchain(Executor(Registry(fetch), AllowEverything())))
    outcome = await executor_of(tools).run("fetch")
    assert isinstance(outcome, Completed)
    assert outcome.output.parts == (File(b"pdf", "application/pdf", "a.pdf"),)


async def test_external_tool_cannot_be_imported() -> None:
    from pydantic_ai import ExternalToolset
    from pydantic_ai.tools import ToolDefinition

    with pytest.raises(UsageError, match="cannot be imported"):
        await interop.from_pydantic_ai(ExternalToolset([ToolDefinition(name="far")]))


async def test_langchain_tool_keeps_its_error_text() -> None:
    from langchain_core.tools import BaseTool, StructuredTool, ToolException

    def shut() -> str:
        """Be shut."""
        raise ToolException("come back on Monday")

    for handled in (True, False):
        chain: BaseTool = StructuredTool.from_function(shut, handle_tool_error=handled)
        assert await text_of(interop.from_langchain(chain), "shut", {}) == "tool_failed: come back on Monday"


async def test_langchain_tool_of_one_text_is_called_with_it() -> None:
    from langchain_core.tools import Tool as TextTool

    def shout(text: str) -> str:
        return text.upper()

    imported = interop.from_langchain(TextTool("shout", shout, "Shout."))
    schema = imported[0].spec.input_schema
    assert schema == {
        "type": "object",
        "properties": {"tool_input": {"type": "string"}},
        "required": ["tool_input"],
    }
    assert await text_of(imported, "shout", {"tool_input": "hey"}) == "HEY"


async def test_what_is_no_tool_of_the_framework_is_refused() -> None:
    from agents import WebSearchTool

    with pytest.raises(UsageError, match=r"expected a toolset or a pydantic_ai\.Tool, .*price"):
        await interop.from_pydantic_ai(cast("Any", price))
    with pytest.raises(UsageError, match=r"expected a LangChain tool, .*price"):
        interop.from_langchain(cast("Any", price))
    with pytest.raises(UsageError, match=r"expected a function tool, .*WebSearchTool"):
        interop.from_openai_agents(cast("Any", WebSearchTool()))


async def test_validation_error_inside_a_pydantic_ai_tool_is_its_failure() -> None:
    from pydantic_ai import Tool as PydanticTool

    class Stored(BaseModel):
        count: int

    def load(name: str) -> int:
        """Load."""
        return Stored.model_validate({"count": name}).count

    text = await text_of(await interop.from_pydantic_ai(PydanticTool(load)), "load", {"name": "x"})
    assert text.startswith("crashed: ValidationError")


async def test_langchain_command_result_is_an_error() -> None:
    from langchain_core.tools import StructuredTool
    from langgraph.types import Command

    def leave() -> Command[Any]:
        """Leave."""
        return Command(goto="exit")

    assert "only a graph" in await text_of(interop.from_langchain(StructuredTool.from_function(leave)), "leave", {})


async def test_tool_with_guardrails_is_rejected() -> None:
    from agents import function_tool, tool_input_guardrail

    @tool_input_guardrail
    def watch(data: Any) -> Any:
        raise AssertionError("only the runner calls this")

    guarded = function_tool(price)
    guarded.tool_input_guardrails = [watch]
    with pytest.raises(UsageError, match="has guardrails"):
        interop.from_openai_agents(guarded)


async def test_tool_that_a_function_enables_is_rejected() -> None:
    from agents import function_tool

    with pytest.raises(UsageError, match="price is enabled by a function"):
        interop.from_openai_agents(function_tool(price, is_enabled=lambda context, agent: False))


async def test_disabled_tool_is_skipped_and_timeout_kept() -> None:
    from agents import function_tool

    async def slow() -> str:
        """Take a while."""
        return "done"

    off, on = function_tool(price, is_enabled=False), function_tool(slow, timeout=5.0)
    tools = interop.from_openai_agents(off, on)
    assert [(tool.spec.name, tool.spec.limits.seconds) for tool in tools] == [("slow", 5.0)]


@pytest.mark.parametrize(
    ("name", "missing", "fix"),
    [
        ("to_pydantic_ai", "pydantic_ai", "pip install pydantic-ai-slim"),
        ("from_langchain", "langchain_core", "pip install langgraph"),
        ("to_openai_agents", "agents", "pip install openai-agents"),
    ],
)
def test_missing_framework_names_the_package_to_install(name: str, missing: str, fix: str) -> None:
    code = (
        f"import sys\nsys.modules[{missing!r}] = None\nimport callwright.interop as interop\n"
        f"try:\n    interop.{name}\nexcept Exception as error:\n    print(type(error).__name__, error)\n"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("UsageError")
    assert fix in done.stdout


def test_importing_interop_loads_no_framework() -> None:
    code = "import sys, callwright.interop\nprint(*{'pydantic_ai', 'langgraph', 'agents'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert not done.stdout.strip()


def test_tests_import_frameworks_when_they_run() -> None:
    """Each worker imports every test file, but only one of them runs these tests."""
    costly = re.compile(
        r"(from|import) (agents|callwright\.interop|langchain_core|langgraph|openai|pydantic_ai)[. ](?!bridge|call_o)"
    )
    files = list(Path(__file__).parent.glob("*.py"))
    lines = [(file.name, line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    assert [(name, line) for name, line in lines if costly.match(line)] == []
    assert any(costly.match(line.strip()) for _, line in lines)
