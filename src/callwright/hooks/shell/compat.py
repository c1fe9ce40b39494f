"""Translates calls and MCP elicitations to the field names that hooks of other agents expect, and back."""

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
from callwright.system.paths import expand_home


def elicitation_server(spec: ToolSpec) -> str:
    """Return the MCP server that a tool elicits answers for; empty for every other tool."""
    return str(spec.metadata.get("server", "unknown")) if spec.metadata.get(ELICITS) else ""


def elicitation_fields(server: str, arguments: JsonObject) -> dict[str, object]:
    """Return the fields of an Elicitation event: the question, and the form or address."""
    url = arguments.get("url")
    wanted = {"mode": "url", "url": url} if url else {"mode": "form", "requested_schema": arguments.get("fields", {})}
    return {"mcp_server_name": server, "message": arguments.get("message", ""), **wanted}


def elicitation_result_fields(outcome: Completed | Failed) -> dict[str, object]:
    """Return the fields of an ElicitationResult event: the action and the answer."""
    if isinstance(outcome, Completed):
        given = cast("Mapping[str, Any]", outcome.output.structured or {})
        return {"action": "accept", "content": given.get("answer", {})}
    return {"action": "decline" if isinstance(outcome.error, Denied) else "cancel"}


def apply_elicitation_reply(outcome: Completed | Failed, reply: HookReply) -> Completed | Failed:
    """Return the answer to send to the server after hooks saw it. A hook cannot turn a decline into an answer."""
    if reply.decision == "deny" or reply.halt:
        return Failed(outcome.call, Denied(reply.reason or "declined by a hook"))
    if isinstance(outcome, Failed) or reply.arguments is None:
        return outcome
    return Completed(outcome.call, Output("", {"answer": reply.arguments}), outcome.seconds, outcome.attempts)


_OTHER_NAMES = {
    "file": ("path", "file_path"),
    "agent": ("agent", "subagent_type"),
    "shell": ("background", "run_in_background"),
}
"""By the group of a tool: an argument, and what hooks of other agents call it. A guard must not look for it in vain."""


@dataclass(frozen=True, slots=True)
class CallView:
    """A call as hooks see it: `Bash` for `bash`, and `file_path` in full."""

    name: str
    arguments: JsonObject
    renamed: tuple[str, str] | None = None
    """The argument that is shown under another name too, and that name."""

    @classmethod
    def of(cls, spec: ToolSpec, arguments: JsonObject, folder: str) -> "CallView":
        """Make the view of a call that runs in a folder."""
        name = next((alias for alias in spec.aliases if alias[:1].isupper()), spec.name)
        own, other = _OTHER_NAMES.get(spec.group, ("", ""))
        value = arguments.get(own)
        if value is None or other in arguments or (own == "path" and not isinstance(value, str)):
            return cls(name, arguments)
        shown = str(expand_home(Path(folder, value))) if own == "path" and isinstance(value, str) else value
        return cls(name, {**arguments, other: shown}, (own, other))

    def restore_arguments(self, arguments: JsonObject) -> JsonObject:
        """Translate arguments that a hook returned back to the tool's own names."""
        given = dict(arguments)
        if self.renamed is not None and self.renamed[1] in given:
            own, other = self.renamed
            value = given.pop(other)
            if value != self.arguments[other]:
                given[own] = value
            else:
                given.setdefault(own, self.arguments[own])
        return given
