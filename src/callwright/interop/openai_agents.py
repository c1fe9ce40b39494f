"""OpenAI Agents SDK: exports tools as function tools, and imports function tools."""

import base64
from collections.abc import Callable, MutableMapping
from typing import Any, cast

from agents import (
    FunctionTool,
    RunContextWrapper,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
    Usage,
)
from agents.tool import ValidToolOutputPydanticModelsTypeAdapter
from agents.tool_context import ToolContext as AgentsContext
from pydantic import ValidationError

from callwright.core.calls import Completed, Failed, Interrupted, Outcome, ToolCall
from callwright.core.content import Image, Part, Text
from callwright.core.decisions import make_reply
from callwright.core.errors import Denied, UsageError
from callwright.core.json import compact, thaw
from callwright.core.spec import Limits, ToolSpec
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
from callwright.interop.media import decode_media
from callwright.tool.base import Tool, ToolContext

_ORIGIN = "openai-agents"
_ALREADY_USED = Denied("the approval of this call was used already")
_NOT_APPROVED = Denied(
    "this exact call has not been approved: it has changed since the approval, or it was approved for always, which a"
    " framework cannot grant; the user can allow it with a rule"
)


def to_openai_agents(
    executor: Executor,
    *,
    session: Callable[[Any], str] = lambda context: "",
    pending: MutableMapping[str, str] | None = None,
) -> list[FunctionTool]:
    """Return the executor's present tools for `Agent(tools=…)`.

    A call that needs an approval interrupts the run. Calling a tool that was removed since is an error for the model.

    Args:
        executor: Runs the calls, with its policies and hooks.
        session: Returns the session id for the run's context object.
        pending: Stores the questions that were shown; pass a persistent mapping to resume in another process.
    """
    caller = _AgentsCaller(Bridge(executor, pending), session)
    return [_export_tool(caller, name, spec) for name, spec in list_advertised(executor.registry.snapshot())]


class _AgentsCaller:
    """Runs the calls of all tools of one list, because calls of different tools can conflict."""

    def __init__(self, bridge: Bridge, session: Callable[[Any], str]) -> None:
        self._bridge = bridge
        self._session = session

    async def needs_approval(self, call: ToolCall, context: RunContextWrapper[Any]) -> bool:
        """Return whether the user must approve. The SDK does not call this between the answer and the call."""
        session = self._session(context.context)
        questions = await self._bridge.questions(call, session)
        if questions:
            self._bridge.pending.save(session, call.id, questions)
        return bool(questions)

    async def run(self, call: ToolCall, context: AgentsContext[Any]) -> Outcome:
        session = self._session(context.context)
        approved = context.is_tool_approved(context.tool_name, call.id) is True  # None: not decided yet
        shown = self._bridge.pending.take(session, call.id) if approved else None
        if shown is not None and shown.used:
            return Failed(call, _ALREADY_USED)
        approval = None if shown is None else (shown, make_reply(approved))
        outcome = await self._bridge.call(call, session, id(context.usage), approval=approval)
        if not approved:
            self._bridge.pending.drop(session, call.id)
        return Failed(call, _NOT_APPROVED) if isinstance(outcome, Interrupted) else outcome


def _export_tool(caller: _AgentsCaller, name: str, spec: ToolSpec) -> FunctionTool:
    async def invoke(context: AgentsContext[Any], arguments: str) -> Any:
        return _encode_outcome(await caller.run(ToolCall(context.tool_call_id, name, arguments or "{}"), context))

    async def needs_approval(context: RunContextWrapper[Any], arguments: dict[str, Any], call_id: str) -> bool:
        return await caller.needs_approval(ToolCall(call_id, name, arguments), context)

    return FunctionTool(
        name=name,
        description=spec.description,
        params_json_schema=thaw(spec.input_schema),
        on_invoke_tool=invoke,
        strict_json_schema=False,  # strict mode would change the schema
        needs_approval=needs_approval,
    )


def _encode_outcome(outcome: Outcome) -> Any:
    match outcome:
        case Completed(output=output) if isinstance(output.content, str):
            return output.content
        case Completed(output=output):
            return [_encode_part(part) for part in output.parts]
        case Failed(error=error):
            return f"error: {error}"  # the API has no error flag, so the prefix is the flag
        case Interrupted():
            raise AssertionError("an approval request was not handled")


def _encode_part(part: Part) -> ToolOutputText | ToolOutputImage | ToolOutputFileContent:
    if isinstance(part, Text):
        return ToolOutputText(text=part.text)
    url = f"data:{part.media_type};base64,{base64.b64encode(part.data).decode('ascii')}"
    if isinstance(part, Image):
        return ToolOutputImage(image_url=url)
    return ToolOutputFileContent(file_data=url, filename=part.name or "output")


def from_openai_agents(*tools: FunctionTool, context: object = None, claims: Claims = UNKNOWN_TOOL) -> list[Tool]:
    """Import function tools.

    Args:
        tools: Function tools; those that are disabled are left out.
        context: The value of `ctx.context` in the tools.
        claims: What the tools may do; by default anything, so that the default mode asks.

    Raises:
        UsageError: A tool has guardrails, or is run by OpenAI and not by a function.
    """
    require_foreign(tools, FunctionTool, "a function tool, as agents.function_tool makes of a function")
    return [_import_function_tool(tool, context, claims) for tool in tools if tool.is_enabled is not False]


def _import_function_tool(tool: FunctionTool, shared: object, claims: Claims) -> Tool:
    if tool.tool_input_guardrails or tool.tool_output_guardrails:
        raise UsageError(
            f"{tool.name} has guardrails, which only the Agents runner applies; replace them with callwright hooks"
        )
    if callable(tool.is_enabled):
        raise UsageError(
            f"{tool.name} is enabled by a function, which only the Agents runner calls; import it only where it may be "
            "used, with is_enabled=True"
        )

    async def handle(arguments: dict[str, Any], context: ToolContext) -> object:
        text = compact(arguments)
        own = AgentsContext(shared, Usage(), tool.name, context.call_id, text)
        return _decode_result(await tool.on_invoke_tool(own, text))

    foreign = ForeignTool(
        tool.name,
        tool.description,
        tool.params_json_schema,
        _ORIGIN,
        needs_approval=tool.needs_approval is not False,  # a function needs their runner, so treat it as always
        limits=Limits() if tool.timeout_seconds is None else Limits(tool.timeout_seconds),
    )
    return import_tool(foreign, claims, handle)


def _decode_result(value: Any) -> object:
    """Convert the result of an imported tool."""
    items: list[Any] = [*cast("list[Any]", value)] if isinstance(value, (list, tuple)) else [value]
    parts = [part for part in map(_decode_part, items) if part is not None]
    return make_output(parts) if parts and len(parts) == len(items) else cast("object", value)


def _decode_part(value: Any) -> Part | None:
    match value:
        case ToolOutputText(text=text):
            return Text(text)
        case ToolOutputImage(image_url=url, file_id=file_id):
            return decode_media("image", url=url, file_id=file_id)
        case ToolOutputFileContent(file_data=data, file_url=url, file_id=file_id, filename=name):
            return decode_media("file", data=data, url=url, file_id=file_id, name=name)
        case {"type": _}:  # the SDK takes dicts of the same fields too
            try:
                return _decode_part(ValidToolOutputPydanticModelsTypeAdapter.validate_python(value))
            except ValidationError:
                return None
        case _:
            return None
