"""Elicitation: a server's question to the user, as a call of `…__answer` that only the user can complete.

The arguments of the answer tool hold the question. Bound without an answer it requires approval; the user approves with
the answer among the arguments. So it passes the same hooks and policies as any call, and `Turn.ask` shows it.
"""

import itertools
from collections import Counter
from collections.abc import Mapping
from typing import Any, cast

import mcp_types as types

from callwright.core.calls import Completed, Failed, Outcome, ToolCall
from callwright.core.errors import ApprovalRequired, Denied, ToolFailed
from callwright.core.escaping import remove_hidden
from callwright.core.json import JsonObject, canonical
from callwright.core.spec import ELICITS, Annotations, Effect, ToolSpec
from callwright.mcp.config import ServerConfig
from callwright.mcp.translate import server_metadata
from callwright.tool.base import ToolContext
from callwright.tool.schema_tool import SchemaInvocation, SchemaTool

_numbers = itertools.count(1)
_asked: "Counter[str]" = Counter()
"""The questions that servers ask now: a model that calls the tool must not ask the user in a server's name."""
_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "message": {"type": "string"},
        "fields": {"type": "object"},
        "url": {"type": "string"},
        "key": {"type": "string"},
        "answer": {"type": "object"},
    },
    "required": ["message"],
}


class AnswerTool(SchemaTool):
    """The tool that carries a server's questions to the user."""

    def __init__(self, name: str, config: ServerConfig) -> None:
        spec = ToolSpec(
            name,
            f"Answers a question the MCP server {config.name} asked during a call. Used by the runtime, not by models.",
            _SCHEMA,
            annotations=Annotations(Effect.READ, parallel=True),
            group=f"mcp:{config.name}",
            origin=f"mcp:{config.name}",
            deferred=True,
            metadata={ELICITS: True, **server_metadata(config)},
        )
        super().__init__(spec, _return_answer)
        self._server = config.name

    def bind(self, arguments: JsonObject | str | bytes) -> SchemaInvocation:
        bound = super().bind(arguments)
        if "answer" not in bound.arguments:
            if not _asked[_identify(self.spec.name, bound.arguments)]:
                raise Denied(f"{self.spec.name} cannot be called: only {self._server} itself asks the user with it")
            raise ApprovalRequired(f"{self._server} asks: {remove_hidden(str(bound.arguments['message']))}", bound)
        return bound


def _identify(answerer: str, arguments: Mapping[str, Any]) -> str:
    return canonical([answerer, arguments])


async def _return_answer(arguments: Mapping[str, Any]) -> object:
    return {"answer": arguments.get("answer", {})}


async def ask_person(
    params: types.ElicitRequestParams, context: ToolContext, answerer: str, *, key: str = ""
) -> types.ElicitResult:
    """Put a server's question to the user of this turn; without one it is cancelled.

    `key` is the server's own id of the question, kept where it is forwarded.
    """
    arguments: dict[str, Any] = {"message": params.message, **({"key": key} if key else {})}
    if isinstance(params, types.ElicitRequestURLParams):
        arguments["url"] = params.url
    else:
        arguments["fields"] = params.requested_schema
    call = ToolCall(f"{context.call_id}-answer-{next(_numbers)}", answerer, arguments)
    match await _execute(call, arguments, context):
        case Completed(output=output):
            given = cast("Mapping[str, Any]", output.structured)["answer"]
            return _accept(params, given)
        case Failed(error=Denied()):
            return types.ElicitResult(action="decline")
        case _:
            return types.ElicitResult(action="cancel")


async def _execute(call: ToolCall, arguments: Mapping[str, Any], context: ToolContext) -> Outcome:
    """Call the answer tool for a question that is asked meanwhile."""
    try:
        question = _identify(call.name, arguments)
    except (TypeError, ValueError, RecursionError) as error:
        raise ToolFailed("the server asked for something that is not JSON") from error
    _asked[question] += 1
    try:
        return (await context.execute(call))[0]
    finally:
        _asked[question] -= 1
        if not _asked[question]:
            del _asked[question]


def _accept(params: types.ElicitRequestParams, given: Mapping[str, Any]) -> types.ElicitResult:
    if isinstance(params, types.ElicitRequestURLParams):
        return types.ElicitResult(action="accept")
    # the server's defaults are not filled in: only the user decides about `grant_admin`
    if (params.requested_schema.get("properties") and not given) or any(
        name not in given for name in params.requested_schema.get("required", ())
    ):
        return types.ElicitResult(action="decline")  # accepting a form without filling it in is not an answer
    return types.ElicitResult(action="accept", content=dict(given))
