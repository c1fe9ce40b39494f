"""What went wrong with a server, in our words."""

from collections.abc import Mapping
from typing import Any, cast

import mcp_types as types
from mcp import MCPError
from mcp.client.auth import OAuthFlowError

from callwright.core.errors import ToolError, ToolFailed, Transient

_REASON_CHARS = 500


def ends_session(error: MCPError) -> bool:
    """Whether the session is over, so that another has to be begun."""
    ended = error.code == types.INVALID_REQUEST and error.message == "Session terminated"
    return ended or error.code == types.CONNECTION_CLOSED


def fault_of(error: MCPError, server: str) -> ToolError:
    """The failure of one call behind an error a server, or the way to it, answered with."""
    if error.code == types.CONNECTION_CLOSED:
        broken = Transient(f"the connection to the MCP server {server} broke: {error.message}")
        broken.inferred = True
        return broken
    if ends_session(error):
        return Transient(f"the MCP server {server} ended the session; another one is begun")
    data: Any = error.data
    told = cast("Mapping[str, Any]", data if isinstance(data, dict) else {})
    if told.get("busy"):
        after = str(told.get("retryAfter") or "")
        return Transient(f"{server}: {error.message}", retry_after=float(after) if after.isdecimal() else None)
    return ToolFailed(f"{server}: {error.message}")


def nonsense(error: Exception, server: str) -> ToolFailed:
    """The failure of a call that was answered with something the protocol does not know."""
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return ToolFailed(f"{server} answered with something that is no answer: {reason[:_REASON_CHARS]}")


def reason_of(error: BaseException) -> str:
    """The innermost reason: what an operator can act on."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    match error:
        case TimeoutError():
            return "it did not answer in time"
        case OAuthFlowError():
            return f"the sign-in failed: {error}"
        case MCPError(message=message) if message:
            return message
        case FileNotFoundError(filename=str() as name):
            return f"there is no {name}; install it, or give its full path"
        case OSError(filename=str() as name, strerror=str() as why):
            return f"{name} cannot be started: {why.lower()}"
        case _:
            pass
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
