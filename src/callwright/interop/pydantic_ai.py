"""pydantic-ai: exports an executor as a toolset, and imports tools and toolsets."""

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

from callwright.core.calls import Completed, Failed, Interrupted, Outcome, Reply, ToolCall
from callwright.core.content import File, Image, Part, Text
from callwright.core.decisions import make_reply
from callwright.core.errors import (
    ApprovalRequired as ApprovalNeeded,
    Denied,
    InvalidArguments,
    ToolError,
    ToolFailed,
    UsageError,
)
from callwright.core.json import compact, thaw
from callwright.core.spec import Effect, ToolSpec
from callwright.executor.executor import Executor
from callwright.hooks.base import await_if_needed
from callwright.interop.bridge import (
    UNKNOWN_TOOL,
    Bridge,
    Claims,
    ForeignTool,
    ShownQuestions,
    describe_question,
    import_tool,
    list_advertised,
    make_output,
    plain_arguments,
    require_foreign,
)
from callwright.registry.catalog import Catalog
from callwright.tool.base import Tool, ToolContext
from callwright.tool.render import render

_ACCEPT_ANYTHING = SchemaValidator(core_schema.any_schema())  # the executor validates arguments, with better messages


def to_pydantic_ai(
    executor: Executor, *, name: str | None = None, pending: MutableMapping[str, str] | None = None
) -> AbstractToolset[Any]:
    """Return the executor's tools as a toolset: `Agent(model, toolsets=[to_pydantic_ai(executor)])`.

    A call that needs an approval becomes a deferred call.

    Args:
        executor: Runs the calls, with its policies and hooks.
        name: The id of the toolset.
        pending: Stores the questions that were shown; pass a persistent mapping to resume in another process.
    """
    return _ExecutorToolset(Bridge(executor, pending), name)


class _ExecutorToolset(AbstractToolset[Any]):
    """The executor's tools, listed again before every request to the model."""

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
        shown = self._bridge.pending.take(session, call.id) if ctx.tool_call_approved is True else None
        if shown is not None and shown.used:
            return ToolDenied("the approval of this call was used already")
        approved, approval = (call, None) if shown is None else _apply_approval(call, shown, ctx.tool_call_approved)
        catalog = tool.catalog if isinstance(tool, _AdvertisedTool) else None
        batch = (ctx.run_id, ctx.run_step)
        outcome = await self._bridge.call(approved, session, batch, approval=approval, catalog=catalog, resumes=True)
        if isinstance(outcome, Interrupted):
            given, written = plain_arguments(call), None
            if approved is not call:  # edited: with the next approval, pydantic-ai has only what was shown of it
                try:
                    written = plain_arguments(self._bridge.edit_call(approved, given, outcome.questions, session))
                except ToolError as error:
                    return ToolDenied(error.message)
            self._bridge.pending.save(session, call.id, outcome.questions, given, written)
            raise ApprovalRequired({"questions": [describe_question(question) for question in outcome.questions]})
        if shown is None:
            self._bridge.pending.drop(session, call.id)
        return _encode_outcome(outcome)


def _apply_approval(
    call: ToolCall, shown: ShownQuestions, approved: object
) -> tuple[ToolCall, tuple[ShownQuestions, Reply]]:
    """Return the call that was shown, with the approval of it or of the edited arguments."""
    edited, written = plain_arguments(call), shown.written or shown.arguments
    asked = call if edited == written else ToolCall(call.id, call.name, compact(written))
    return asked, (shown, make_reply(approved, arguments=None if edited == shown.arguments else edited))


@dataclass(kw_only=True)
class _AdvertisedTool(ToolsetTool[Any]):
    """A tool as the model was shown it; callable until the end of the turn, even if it is removed meanwhile."""

    catalog: Catalog


def _make_definition(name: str, spec: ToolSpec) -> ToolDefinition:
    claims = spec.annotations
    effect = Effect.DESTROY if claims.delegates else claims.effect  # the calls that it makes may have any effect
    return ToolDefinition(
        name=name,
        description=spec.description,
        parameters_json_schema=thaw(spec.input_schema),
        return_schema=thaw(spec.output_schema),
        sequential=claims.parallel is False,
        metadata={"effect": effect.name, "group": spec.group, "origin": spec.origin},
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
            raise ModelRetry(error.message)  # counts as a retry, as with pydantic-ai's own tools
        case Failed(error=error):
            raise PydanticToolFailed(error.message)
        case Interrupted():
            raise AssertionError("an approval request was not handled")


def _encode_part(part: Part) -> str | BinaryContent:
    if isinstance(part, Text):
        return part.text
    name = part.name if isinstance(part, File) else ""
    return BinaryContent(part.data, media_type=part.media_type, identifier=name or None)


async def from_pydantic_ai(
    *sources: "PydanticTool[Any] | AbstractToolset[Any]",
    deps: object = None,
    model: Model | None = None,
    claims: Claims = UNKNOWN_TOOL,
) -> list[Tool]:
    """Import tools and toolsets; a toolset that must be entered has to be open.

    Args:
        sources: Pydantic-ai tools and toolsets.
        deps: The value of `ctx.deps` in the tools.
        model: The value of `ctx.model` in the tools.
        claims: What the tools may do; by default anything, so that the default mode asks.

    Raises:
        UsageError: A tool is run outside of pydantic-ai, or a source is neither a tool nor a toolset.
    """
    require_foreign(sources, (PydanticTool, AbstractToolset), "a toolset or a pydantic_ai.Tool, as of a function")
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
    definition = tool.tool_def
    if definition.kind == "external":
        raise UsageError(f"{definition.name} is run outside of pydantic-ai, so it cannot be imported")

    needs_approval = definition.kind == "unapproved"

    async def handle(arguments: dict[str, Any], context: ToolContext) -> object:
        # the executor asked before the call where every call needs an approval, and else when this one required it
        approved = needs_approval or context.answer is not None
        own = replace(run, tool_call_id=context.call_id, tool_name=definition.name, tool_call_approved=approved)
        try:
            checked = await _check_arguments(tool, arguments, own)
            return _decode_result(await toolset.call_tool(definition.name, checked, own, tool))
        except (ModelRetry, PydanticToolFailed) as error:
            raise ToolFailed(error.message) from error
        except ApprovalRequired as error:
            if approved:
                raise ToolFailed(f"{definition.name} asks for an approval again, although it has one") from error
            raise ApprovalNeeded(f"{definition.name} requires an approval of this call") from error
        except CallDeferred as error:
            raise ToolFailed(f"{definition.name} deferred its call, which only pydantic-ai supports") from error

    foreign = ForeignTool(
        definition.name,
        definition.description,
        definition.parameters_json_schema,
        "pydantic-ai",
        needs_approval,
        runs_alone=definition.sequential,
    )
    return import_tool(foreign, claims, handle)


async def _check_arguments(tool: ToolsetTool[Any], arguments: dict[str, Any], run: RunContext[Any]) -> dict[str, Any]:
    """Validate arguments as the runner does before it calls a toolset: by their types, and by the author's function."""
    try:
        checked = tool.args_validator.validate_python(arguments, context=run.validation_context)
        if tool.args_validator_func is not None:
            await await_if_needed(tool.args_validator_func(run, **checked))
    except ValidationError as error:
        raise InvalidArguments(str(error)) from error
    except ModelRetry as error:
        raise InvalidArguments(error.message) from error
    return checked


def _decode_result(value: Any) -> object:
    """Convert the result of an imported tool."""
    if isinstance(value, ToolDenied):
        raise Denied(value.message)
    if isinstance(value, ToolReturn):
        more: Any = value.content or ()
        return make_output([*_decode_parts(value.return_value), *_decode_parts(more)], value.metadata)
    items = cast("list[Any]", [*value] if isinstance(value, (list, tuple)) else [value])
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
    raise ToolFailed("the tool uses a model and none was given; pass one to from_pydantic_ai(…, model=…)")
