"""pydantic-ai: our executor as one of its toolsets, and its tools and toolsets as tools of ours."""

from collections.abc import MutableMapping
from dataclasses import dataclass, replace
from typing import Any, cast

from pydantic import ValidationError
from pydantic_ai import (
    AbstractToolset,
    ApprovalRequired,
    BinaryContent,
    CallDeferred,
    FunctionToolset,
    ModelRetry,
    RunContext,
    Tool as PydanticTool,
    ToolDenied,
    ToolReturn,
    ToolsetTool,
)
from pydantic_ai.exceptions import ToolFailed as PydanticToolFailed
from pydantic_ai.models import Model
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.usage import RunUsage
from pydantic_core import SchemaValidator, core_schema

from callwright.core.calls import Answers, Approve, Completed, Failed, Interrupted, Outcome, ToolCall
from callwright.core.content import File, Image, Part, Text
from callwright.core.errors import Denied, InvalidArguments, ToolFailed, UsageError
from callwright.core.json import compact, thaw
from callwright.core.spec import ToolSpec
from callwright.executor.executor import Executor
from callwright.interop.approvals import plain_arguments
from callwright.interop.bridge import (
    UNKNOWN_TOOL,
    Bridge,
    Claims,
    ForeignTool,
    describe_question,
    import_tool,
    list_advertised,
    make_output,
)
from callwright.registry.catalog import Catalog
from callwright.tool.base import Tool, ToolContext
from callwright.tool.render import render

_ACCEPT_ANYTHING = SchemaValidator(core_schema.any_schema())  # the executor checks arguments, and explains better


def to_pydantic_ai(
    executor: Executor, *, name: str | None = None, pending: MutableMapping[str, str] | None = None
) -> AbstractToolset[Any]:
    """Our tools as a toolset: `Agent(model, toolsets=[to_pydantic_ai(executor)])`.

    What needs a person's approval becomes a deferred call; `pending` remembers which, across processes if it does.
    """
    return _ExecutorToolset(Bridge(executor, pending), name)


class _ExecutorToolset(AbstractToolset[Any]):
    """The executor's tools, read again before every request to the model."""

    def __init__(self, bridge: Bridge, name: str | None) -> None:
        self._bridge = bridge
        self._name = name
        self._listed: tuple[Catalog, dict[str, ToolDefinition]] | None = None

    @property
    def id(self) -> str | None:
        return self._name

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        catalog = self._bridge.catalog(ctx.conversation_id or "")
        if self._listed is None or self._listed[0] is not catalog:
            self._listed = (catalog, {name: _make_definition(name, spec) for name, spec in list_advertised(catalog)})
        return {
            name: _AdvertisedTool(
                toolset=self,
                tool_def=shown,
                max_retries=ctx.max_retries,
                args_validator=_ACCEPT_ANYTHING,
                catalog=catalog,
            )
            for name, shown in self._listed[1].items()
        }

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        session, call = ctx.conversation_id or "", ToolCall(ctx.tool_call_id or name, name, tool_args)
        made, answers = self._approved(session, call) if ctx.tool_call_approved else (call, None)
        catalog = tool.catalog if isinstance(tool, _AdvertisedTool) else None
        outcome = await self._bridge.call(made, session, ctx.run_id, answers=answers, catalog=catalog)
        if isinstance(outcome, Interrupted):
            self._bridge.pending.keep(session, call.id, outcome.questions, plain_arguments(call))
            raise ApprovalRequired({"questions": [describe_question(question) for question in outcome.questions]})
        self._bridge.pending.drop(session, call.id)
        return _encode_outcome(outcome)

    def _approved(self, session: str, call: ToolCall) -> tuple[ToolCall, Answers | None]:
        """The call the person was shown, with their yes to it, or to what they made of it."""
        shown = self._bridge.pending.find(session, call.id)
        if shown is None:
            return call, None
        edited = plain_arguments(call)
        if edited == shown.arguments:
            return call, shown.replied(Approve())
        return ToolCall(call.id, call.name, compact(shown.arguments)), shown.replied(Approve(edited))


@dataclass(kw_only=True)
class _AdvertisedTool(ToolsetTool[Any]):
    """A tool as the model was shown it: it can be called to the end of the turn, even if it is removed meanwhile."""

    catalog: Catalog


def _make_definition(name: str, spec: ToolSpec) -> ToolDefinition:
    return ToolDefinition(
        name=name,
        description=spec.description,
        parameters_json_schema=thaw(spec.input_schema),
        return_schema=thaw(spec.output_schema),
        sequential=spec.annotations.parallel is False,
        metadata={"effect": spec.annotations.effect.name, "group": spec.group, "origin": spec.origin},
    )


def _encode_outcome(outcome: Outcome) -> Any:
    match outcome:
        case Completed(output=output):
            content = (
                output.content if isinstance(output.content, str) else [_encode_part(part) for part in output.parts]
            )
            return content if output.structured is None else ToolReturn(content, metadata=thaw(output.structured))
        case Failed(error=Denied() as error):
            return ToolDenied(error.message)
        case Failed(error=InvalidArguments() as error):
            raise ModelRetry(error.message)  # counts against the agent's retries, as its own tools' mistakes do
        case Failed(error=error):
            raise PydanticToolFailed(error.message)
        case Interrupted():
            raise AssertionError("a question was left open")


def _encode_part(part: Part) -> str | BinaryContent:
    return part.text if isinstance(part, Text) else BinaryContent(part.data, media_type=part.media_type)


async def from_pydantic_ai(
    *sources: "PydanticTool[Any] | AbstractToolset[Any]",
    deps: object = None,
    model: Model | None = None,
    claims: Claims = UNKNOWN_TOOL,
) -> list[Tool]:
    """Take over tools, and toolsets that are open where they have to be. `deps` is what they find in `ctx.deps`."""
    context = RunContext[Any](deps=deps, model=model or FunctionModel(_reject_model_use), usage=RunUsage())
    tools = [source for source in sources if isinstance(source, PydanticTool)]
    toolsets = [source for source in sources if isinstance(source, AbstractToolset)]
    found: list[Tool] = []
    for toolset in (FunctionToolset[Any](tools), *toolsets):
        for tool in (await toolset.get_tools(context)).values():
            found.append(_import_pydantic_tool(toolset, tool, context, claims))
    return found


def _import_pydantic_tool(
    toolset: AbstractToolset[Any], tool: ToolsetTool[Any], run: RunContext[Any], claims: Claims
) -> Tool:
    told = tool.tool_def
    if told.kind == "external":
        raise UsageError(f"{told.name} is run outside of pydantic-ai, so there is nothing here to call")

    async def handle(arguments: dict[str, Any], context: ToolContext) -> object:
        # what its author wanted approved was approved by us, or the call would not be here
        own = replace(run, tool_call_id=context.call_id, tool_name=told.name, tool_call_approved=True)
        try:
            checked = tool.args_validator.validate_python(arguments)
            return _decode_result(await toolset.call_tool(told.name, checked, own, tool))
        except ValidationError as error:
            raise InvalidArguments(str(error)) from error
        except (ModelRetry, PydanticToolFailed) as error:
            raise ToolFailed(error.message) from error
        except (ApprovalRequired, CallDeferred) as error:
            raise ToolFailed(f"{told.name} wants to wait for somebody, which only pydantic-ai can do for it") from error

    needs_approval = told.kind == "unapproved"
    schema = told.parameters_json_schema
    return import_tool(ForeignTool(told.name, told.description, schema, "pydantic-ai", needs_approval), claims, handle)


def _decode_result(value: Any) -> object:
    """What a tool of theirs returned, as one of ours would have."""
    if isinstance(value, ToolDenied):
        raise Denied(value.message)
    if isinstance(value, ToolReturn):
        more: Any = value.content or ()
        return make_output([*_decode_parts(value.return_value), *_decode_parts(more)], value.metadata)
    items: list[Any] = cast("list[Any]", value) if isinstance(value, list) else [value]
    return (
        make_output(_decode_parts(items))
        if any(isinstance(item, BinaryContent) for item in items)
        else cast("object", value)
    )


def _decode_parts(value: Any) -> list[Part]:
    if isinstance(value, BinaryContent):
        held = Image if value.is_image else File
        return [held(value.data, value.media_type)]
    if isinstance(value, (list, tuple)):
        return [part for item in cast("list[Any]", value) for part in _decode_parts(item)]
    return list(render(value).parts)


def _reject_model_use(*_: object) -> Any:
    raise ToolFailed("the tool asked for a model and was given none; name one in from_pydantic_ai(…, model=…)")
