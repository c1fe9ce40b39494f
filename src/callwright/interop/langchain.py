"""LangChain and LangGraph: exports tools for `ToolNode` and prebuilt agents, and imports LangChain tools."""

import base64
from collections.abc import Hashable, Mapping, MutableMapping
from typing import Any, Literal, NoReturn, cast

from langchain_core.callbacks import AsyncCallbackManagerForToolRun
from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, Tool as TextTool, ToolException
from pydantic import BaseModel, Field

from callwright.core.calls import Answers, Approve, Completed, Failed, Interrupted, Outcome, Question, ToolCall
from callwright.core.content import File, Image, Output, Part, Text
from callwright.core.errors import Denied, ToolError, ToolFailed, UsageError
from callwright.core.json import JsonObject, compact, thaw
from callwright.executor.executor import Executor
from callwright.interop.bridge import (
    UNKNOWN_TOOL,
    Bridge,
    Claims,
    ForeignTool,
    import_tool,
    list_advertised,
    make_output,
    require_foreign,
)
from callwright.interop.langgraph import GraphTask, GraphTasks
from callwright.interop.media import decode_media
from callwright.tool.base import Tool, ToolContext

_ORIGIN = "langchain"


def to_langchain(executor: Executor, *, pending: MutableMapping[str, str] | None = None) -> list[BaseTool]:
    """Return the executor's present tools for `create_agent(model, tools)` or `ToolNode(tools)`; async only.

    A call that needs an approval interrupts the graph.

    Args:
        executor: Runs the calls, with its policies and hooks.
        pending: Stores the questions that were shown, with the outcomes of the other calls of the task that waits for
            an answer; pass a persistent mapping to resume in another process.
    """
    caller = _LangChainCaller(Bridge(executor, pending))
    return [
        _ExecutorTool(caller=caller, name=name, description=spec.description, args_schema=thaw(spec.input_schema))
        for name, spec in list_advertised(executor.registry.snapshot())
    ]


class _LangChainCaller:
    """Runs the calls of all tools of one list, because calls of different tools can conflict."""

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge
        self._tasks = GraphTasks(bridge.pending)

    async def run(self, call: ToolCall, config: RunnableConfig, parent: Hashable) -> Outcome:
        configurable: Mapping[str, Any] = config.get("configurable", {})
        session, task = str(configurable.get("thread_id") or ""), configurable.get("checkpoint_ns")
        step = tuple(configurable.get("checkpoint_map", {}).items())  # the same for all tasks of one step
        batch = step or parent
        if not task:
            outcome = await self._bridge.call(call, session, batch)
            return _decline(outcome) if isinstance(outcome, Interrupted) else outcome
        return await self._tasks.run(
            session, str(task), call, lambda task: self._run_with_approvals(call, session, batch, task)
        )

    async def _run_with_approvals(self, call: ToolCall, session: str, batch: Hashable, task: GraphTask) -> Outcome:
        current, edited, answers, claimed = call, None, None, ()
        while True:
            outcome = await self._bridge.call(current, session, batch, answers=answers, resumes=True)
            if not isinstance(outcome, Interrupted):
                return outcome
            task.give_back(claimed)
            if edited is not None:  # the edit needs more than was approved, so it is asked about itself
                try:
                    current = self._bridge.edit_call(current, edited, outcome.questions, session)
                except ToolError as error:
                    return Failed(call, error)
            answers = await task.ask(outcome.questions)
            claimed = task.claim(outcome.questions, answers)
            if claimed is None:
                return Failed(call, Denied("the approval of this call was used already"))
            edited = _find_edit(answers, outcome.questions)


def _find_edit(answers: Answers | None, questions: tuple[Question, ...]) -> JsonObject | None:
    reply = None if answers is None or not questions else dict(answers).get(questions[0].id)
    return reply.arguments if isinstance(reply, Approve) else None


def _decline(outcome: Interrupted) -> Outcome:
    reason = (
        f"{outcome.call.name} needs an approval, and the user cannot be asked outside of a graph;"
        " allow it with a rule, or call it in a graph with a checkpointer"
    )
    return Failed(outcome.call, Denied(reason))


class _ExecutorTool(BaseTool):
    """One exported tool. LangChain does not validate its arguments: the executor does, with better messages."""

    caller: _LangChainCaller = Field(exclude=True)
    response_format: Literal["content", "content_and_artifact"] = "content_and_artifact"
    handle_tool_error: Any = True
    """Turn a failure into a message with the error flag instead of ending the graph."""

    def _to_args_and_kwargs(self, tool_input: str | dict[str, Any], tool_call_id: str | None) -> tuple[Any, Any]:
        return (), {"call": ToolCall(tool_call_id or self.name, self.name, tool_input)}

    def _run(self, call: ToolCall) -> NoReturn:
        raise UsageError(
            f"{self.name} is asynchronous; use `await graph.ainvoke(…)`, `graph.astream(…)` or `await tool.ainvoke(…)`"
        )

    async def _arun(
        self, call: ToolCall, config: RunnableConfig, run_manager: AsyncCallbackManagerForToolRun
    ) -> tuple[str | list[dict[str, Any]], Any]:
        match await self.caller.run(call, config, run_manager.parent_run_id):
            case Completed(output=output):
                return _encode_content(output), thaw(output.structured)
            case Failed(error=error):
                raise ToolException(error.message)
            case Interrupted():
                raise AssertionError("an approval request was not handled")


def _encode_content(output: Output) -> str | list[dict[str, Any]]:
    return output.content if isinstance(output.content, str) else [_encode_part(part) for part in output.content]


def _encode_part(part: Part) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    kind = "image" if isinstance(part, Image) else "file"
    block = {"type": kind, "base64": base64.b64encode(part.data).decode("ascii"), "mime_type": part.media_type}
    return {**block, "extras": {"filename": part.name}} if isinstance(part, File) and part.name else block


def from_langchain(*tools: BaseTool, claims: Claims = UNKNOWN_TOOL) -> list[Tool]:
    """Import tools that need nothing from a graph: no injected state, no store, no commands.

    Args:
        tools: LangChain tools.
        claims: What the tools may do; by default anything, so that the default mode asks.

    Raises:
        UsageError: One of them is no LangChain tool.
    """
    require_foreign(tools, BaseTool, "a LangChain tool, as langchain_core.tools.tool makes of a function")
    return [_import_langchain_tool(tool, claims) for tool in tools]


def _import_langchain_tool(tool: BaseTool, claims: Claims) -> Tool:
    schema = _find_schema(tool)

    async def handle(arguments: dict[str, Any], context: ToolContext) -> Output:
        call = {"type": "tool_call", "name": tool.name, "args": arguments, "id": context.call_id}
        try:
            message = await tool.ainvoke(call)
        except ToolException as error:
            raise ToolFailed(str(error)) from error
        return _decode_message(tool.name, message)

    return import_tool(ForeignTool(tool.name, tool.description, schema, _ORIGIN), claims, handle)


def _find_schema(tool: BaseTool) -> dict[str, Any]:
    if isinstance(tool, TextTool) and tool.args_schema is None:  # else it would be that of a function of any text
        return {"type": "object", "properties": tool.args, "required": list(tool.args)}
    shape: Any = tool.tool_call_schema
    if isinstance(shape, dict):
        return cast("dict[str, Any]", shape)
    return shape.model_json_schema() if issubclass(shape, BaseModel) else shape.schema()


def _decode_message(name: str, message: Any) -> Output:
    if not isinstance(message, ToolMessage):
        raise ToolFailed(f"{name} returned a {type(message).__name__}, which only a graph can process")
    blocks: Any = message.content
    parts: list[Part] = [_decode_block(block) for block in ([blocks] if isinstance(blocks, str) else blocks)]
    if message.status == "error":
        raise ToolFailed("\n".join(part.text for part in parts if isinstance(part, Text)))
    return make_output(parts, message.artifact)


def _decode_block(block: Any) -> Part:
    match block:
        case str():
            return Text(block)
        case {"type": "text", "text": str(text)}:
            return Text(text)
        case {"type": "image_url", "image_url": str(url) | {"url": str(url)}}:
            return decode_media("image", url=url)
        case {"type": "document", "source": {"type": "text", "data": str(text)}}:
            return Text(text)
        case {"type": "document", "source": {"type": "content"}}:
            return Text(compact(block))
        case {"type": "image" | "file" | "document" as kind}:
            return _decode_file("image" if kind == "image" else "file", cast("dict[str, Any]", block))
        case _:
            return Text(compact(block))


def _decode_file(kind: Literal["image", "file"], block: dict[str, Any]) -> Part:
    """Read an image or file in LangChain's format, or in that of OpenAI or Anthropic."""
    inner = block.get("file" if "file" in block else "source")
    held = cast("dict[str, Any]", inner) if isinstance(inner, dict) else block
    places = [block, held, *(block[key] for key in ("extras", "metadata") if isinstance(block.get(key), dict))]
    return decode_media(
        kind,
        data=held.get("base64") or held.get("data") or held.get("file_data"),
        url=held.get("url"),
        file_id=held.get("file_id") or (held.get("id") if held.get("source_type") == "id" else None),
        media_type=held.get("mime_type") or held.get("media_type"),
        name=next((place["filename"] for place in places if "filename" in place), block.get("title")),
    )
