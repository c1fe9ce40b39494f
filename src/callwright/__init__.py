"""callwright: the tool runtime for AI agents. Write a typed function, and any model can call it safely.

The names most programs need; everything else is in the package it belongs to (`callwright.policy`, `callwright.hooks`,
`callwright.registry`, …). Names are loaded when first used, so that importing the package stays cheap.
"""

import callwright.core._safe_path as _safe_path  # first: it decides where the others come from
import callwright.tool as _package  # loaded now, so that no later import puts the package where the decorator belongs
from callwright.core._lazy import lazy_exports

del tool, _package, _safe_path  # type: ignore[name-defined] # noqa: F821 - the import above bound both

__version__ = "0.2.0"

TYPE_CHECKING = False  # read as true by type checkers; importing typing would cost more than this file
if TYPE_CHECKING:
    from callwright.agent.agent import Agent as Agent
    from callwright.agent.results import Done as Done, Paused as Paused, Stopped as Stopped
    from callwright.agent.run_limits import RunLimits as RunLimits
    from callwright.core.access import (
        Allow as Allow,
        Ask as Ask,
        DeletePath as DeletePath,
        DeleteResource as DeleteResource,
        Deny as Deny,
        ReadPath as ReadPath,
        ReadResource as ReadResource,
        WritePath as WritePath,
        WriteResource as WriteResource,
    )
    from callwright.core.calls import (
        Answers as Answers,
        Approve as Approve,
        Completed as Completed,
        Decline as Decline,
        Failed as Failed,
        Interrupted as Interrupted,
        Outcome as Outcome,
        Question as Question,
        ToolCall as ToolCall,
    )
    from callwright.core.content import Image as Image, Output as Output, Text as Text
    from callwright.core.errors import (
        ApprovalRequired as ApprovalRequired,
        AuthRequired as AuthRequired,
        CallwrightError as CallwrightError,
        Cancelled as Cancelled,
        Crashed as Crashed,
        Denied as Denied,
        Halted as Halted,
        InputRequired as InputRequired,
        InvalidArguments as InvalidArguments,
        TimedOut as TimedOut,
        ToolError as ToolError,
        ToolFailed as ToolFailed,
        Transient as Transient,
        UnknownTool as UnknownTool,
        Unsafe as Unsafe,
        UsageError as UsageError,
    )
    from callwright.core.spec import (
        Annotations as Annotations,
        Effect as Effect,
        Limits as Limits,
        ToolSpec as ToolSpec,
    )
    from callwright.executor.executor import Executor as Executor
    from callwright.executor.runtime import TurnLimits as TurnLimits
    from callwright.executor.turn_context import Turn as Turn, TurnCancelled as TurnCancelled
    from callwright.policy.base import Policy as Policy
    from callwright.registry.registry import Registry as Registry
    from callwright.sessions.memory import MemoryStore as MemoryStore
    from callwright.sessions.sqlite import SqliteStore as SqliteStore
    from callwright.tool.base import Tool as Tool, ToolContext as ToolContext
    from callwright.tool.decorator import tool as tool
    from callwright.tool.schema import Arguments as Arguments
    from callwright.tool.schema_tool import SchemaTool as SchemaTool
    from callwright.tool.typed import TypedTool as TypedTool
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "agent.agent": "Agent",
            "agent.run_limits": "RunLimits",
            "agent.results": "Done Paused Stopped",
            "core.access": "Allow Ask DeletePath DeleteResource Deny ReadPath ReadResource WritePath WriteResource",
            "core.calls": "Answers Approve Completed Decline Failed Interrupted Outcome Question ToolCall",
            "core.content": "Image Output Text",
            "core.errors": (
                "ApprovalRequired AuthRequired CallwrightError Cancelled Crashed Denied Halted "
                "InputRequired InvalidArguments TimedOut ToolError ToolFailed Transient UnknownTool Unsafe UsageError"
            ),
            "core.spec": "Annotations Effect Limits ToolSpec",
            "executor.executor": "Executor",
            "executor.runtime": "TurnLimits",
            "executor.turn": "Turn TurnCancelled",
            "policy.base": "Policy",
            "registry.registry": "Registry",
            "sessions.memory": "MemoryStore",
            "sessions.sqlite": "SqliteStore",
            "tool.base": "Tool ToolContext",
            "tool.decorator": "tool",
            "tool.schema": "Arguments",
            "tool.schema_tool": "SchemaTool",
            "tool.typed": "TypedTool",
        },
    )
