"""Elicitation: a server's question to the user, as a call of `…__answer` that only the user can complete.

The arguments of the answer tool hold the question. Bound without an answer it requires approval; the user approves with
the answer among the arguments. So it passes the same hooks and policies as any call, and `Turn.ask` shows it.
"""

import itertools
from collections.abc import Mapping
from typing import Any, cast

import mcp_types as types

from callwright.core.calls import Completed, Failed, ToolCall
from callwright.core.errors import ApprovalRequired, Denied
from callwright.core.json import JsonObject
from callwright.core.spec import ELICITS, Annotations, Effect, ToolSpec
from callwright.mcp.config import ServerConfig
from callwright.mcp.translate import server_metadata, visible
from callwright.tool.base import ToolContext
from callwright.tool.schema_tool import SchemaInvocation, SchemaTool

_numbers = itertools.count(1)
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
            raise ApprovalRequired(f"{self._server} asks: {visible(str(bound.arguments['message']))}", bound)
        return bound


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
    [outcome] = await context.execute(call)
    match outcome:
        case Completed(output=output):
            given = cast("Mapping[str, Any]", output.structured)["answer"]
            return _accept(params, given)
        case Failed(error=Denied()):
            return types.ElicitResult(action="decline")
        case _:
            return types.ElicitResult(action="cancel")


def _accept(params: types.ElicitRequestParams, given: Mapping[str, Any]) -> types.ElicitResult:
    if isinstance(params, types.ElicitRequestURLParams):
        return types.ElicitResult(action="accept")
    # the server's defaults are not filled in: only the user decides about `grant_admin`
    if (params.requested_schema.get("properties") and not given) or any(
        name not in given for name in params.requested_schema.get("required", ())
    ):
        return types.ElicitResult(action="decline")  # accepting a form without filling it in is not an answer
    return types.ElicitResult(action="accept", content=dict(given))
