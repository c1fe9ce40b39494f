"""An MCP server's question to a person, as hooks are told of it and may answer it."""

from collections.abc import Mapping
from typing import Any, cast

from callwright.core.call import Completed, Failed
from callwright.core.content import Output
from callwright.core.errors import Denied
from callwright.core.json import JsonObject
from callwright.core.spec import ELICITS, ToolSpec
from callwright.hooks.shell_reply import HookReply


def server_asking(spec: ToolSpec) -> str:
    """The server a tool puts questions for; empty for every other tool."""
    return str(spec.metadata.get("server", "unknown")) if spec.metadata.get(ELICITS) else ""


def form_asked(server: str, arguments: JsonObject) -> dict[str, object]:
    """What the Elicitation hooks are told: the question and the fields it wants filled in."""
    url = arguments.get("url")
    wanted = {"mode": "url", "url": url} if url else {"mode": "form", "requested_schema": arguments.get("fields", {})}
    return {"mcp_server_name": server, "message": arguments.get("message", ""), **wanted}


def form_filled_in(outcome: Completed | Failed) -> dict[str, object]:
    """What the ElicitationResult hooks are told."""
    if isinstance(outcome, Completed):
        given = cast("Mapping[str, Any]", outcome.output.structured or {})
        return {"action": "accept", "content": given.get("answer", {})}
    return {"action": "decline" if isinstance(outcome.error, Denied) else "cancel"}


def refilled(outcome: Completed | Failed, reply: HookReply) -> Completed | Failed:
    """The answer as the hooks want it to reach the server; a no cannot be made a yes."""
    if reply.word == "deny" or reply.halt:
        return Failed(outcome.call, Denied(reply.reason or "a hook declined the answer"))
    if isinstance(outcome, Failed) or reply.arguments is None:
        return outcome
    return Completed(outcome.call, Output("", {"answer": reply.arguments}), outcome.seconds, outcome.attempts)
