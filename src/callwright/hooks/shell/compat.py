"""An MCP server's question to a person, as hooks are told of it and may answer it.

A call in the words other agents' hooks know: `Bash`, and `file_path` in full.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from callwright.core.calls import Completed, Failed
from callwright.core.content import Output
from callwright.core.errors import Denied
from callwright.core.json import JsonObject
from callwright.core.spec import ELICITS, ToolSpec
from callwright.hooks.shell.reply import HookReply


def elicitation_server(spec: ToolSpec) -> str:
    """The server a tool puts questions for; empty for every other tool."""
    return str(spec.metadata.get("server", "unknown")) if spec.metadata.get(ELICITS) else ""


def elicitation_fields(server: str, arguments: JsonObject) -> dict[str, object]:
    """What the Elicitation hooks are told: the question and the fields it wants filled in."""
    url = arguments.get("url")
    wanted = {"mode": "url", "url": url} if url else {"mode": "form", "requested_schema": arguments.get("fields", {})}
    return {"mcp_server_name": server, "message": arguments.get("message", ""), **wanted}


def elicitation_result_fields(outcome: Completed | Failed) -> dict[str, object]:
    """What the ElicitationResult hooks are told."""
    if isinstance(outcome, Completed):
        given = cast("Mapping[str, Any]", outcome.output.structured or {})
        return {"action": "accept", "content": given.get("answer", {})}
    return {"action": "decline" if isinstance(outcome.error, Denied) else "cancel"}


def apply_elicitation_reply(outcome: Completed | Failed, reply: HookReply) -> Completed | Failed:
    """The answer as the hooks want it to reach the server; a no cannot be made a yes."""
    if reply.decision == "deny" or reply.halt:
        return Failed(outcome.call, Denied(reply.reason or "a hook declined the answer"))
    if isinstance(outcome, Failed) or reply.arguments is None:
        return outcome
    return Completed(outcome.call, Output("", {"answer": reply.arguments}), outcome.seconds, outcome.attempts)


@dataclass(frozen=True, slots=True)
class CallView:
    """What a hook is shown of a call."""

    name: str
    arguments: JsonObject
    added: str = ""
    """The `file_path` that was put in beside our `path`."""

    @classmethod
    def of(cls, spec: ToolSpec, arguments: JsonObject, folder: str) -> "CallView":
        """Show a call that is made in a folder."""
        name = next((alias for alias in spec.aliases if alias[:1].isupper()), spec.name)
        path = arguments.get("path")
        if spec.group != "file" or not isinstance(path, str) or "file_path" in arguments:
            return cls(name, arguments)
        added = str(Path(folder, path).expanduser())
        return cls(name, {**arguments, "file_path": added}, added)

    def restore_arguments(self, arguments: JsonObject) -> JsonObject:
        """Arguments a hook gave back, in our words again."""
        given = dict(arguments)
        if self.added and "file_path" in given:
            path = given.pop("file_path")
            if path != self.added:
                given["path"] = path
        return given
